/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What clients are charged for the files that they share.
 */
#include "rcd_ufile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "rcd_thread.h"

/** What one touch may make: a file system of a client's own can have large pages. */
#define LARGE ((uint64_t)2 << 20)

bool
rcd_ufile_is_memory(int fd)
{
	RCD_ON_CONTROL();
	/* The kernel answers for memory; for any other file it says so without asking it. */
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static uint64_t
ufile_floor_of(uint64_t offset)
{
	return offset & ~(LARGE - 1);
}

static uint64_t
ufile_ceiling_of(uint64_t offset)
{
	return ufile_floor_of(offset + LARGE - 1);
}

static struct rcd_ufile_list *
ufile_bucket_of(struct rcd_ufiles *files, ino_t inode)
{
	return &files->buckets[(uint64_t)inode % RCD_UFILE_BUCKETS];
}

static struct rcd_ufile *
ufile_find(struct rcd_ufiles *files, const struct stat *stat)
{
	struct rcd_ufile *file;

	LIST_FOREACH(file, ufile_bucket_of(files, stat->st_ino), link)
		if (file->dev == stat->st_dev && file->inode == stat->st_ino)
			break;
	return file;
}

/* No more than all parts together, and than from the first byte to the last. */
static uint64_t
ufile_most_of(const struct rcd_ufile *file)
{
	uint64_t range = file->end - file->start;

	return file->bytes < range ? file->bytes : range;
}

static int
ufile_grow(struct rcd_quota_entry *quota, struct rcd_ufile *file, uint64_t start, uint64_t end)
{
	struct rcd_ufile more = *file;
	int err;

	more.start = file->parts == 0 || start < file->start ? start : file->start;
	more.end = file->parts == 0 || end > file->end ? end : file->end;
	more.bytes += end - start;
	more.parts++;
	err = rcd_quota_charge(quota, RCD_RESOURCE_SHARED, ufile_most_of(&more) - file->charged);
	if (err != 0)
		return err;
	more.charged = ufile_most_of(&more);
	*file = more;
	return 0;
}

int
rcd_ufile_get(struct rcd_ufiles *files, struct rcd_quota_entry *quota, int fd, uint64_t offset,
	uint64_t len, struct rcd_ufile **file)
{
	uint64_t start = ufile_floor_of(offset);
	uint64_t end = ufile_ceiling_of(offset + len);
	struct rcd_ufile *of;
	struct stat stat;
	int err;

	RCD_ON_CONTROL();
	if (fstat(fd, &stat) != 0)
		return -errno;
	of = ufile_find(files, &stat);
	if (of == NULL) {
		of = calloc(1, sizeof(*of));
		if (of == NULL)
			return -ENOMEM;
		of->dev = stat.st_dev;
		of->inode = stat.st_ino;
		LIST_INSERT_HEAD(ufile_bucket_of(files, of->inode), of, link);
	}
	err = ufile_grow(quota, of, start, end);
	if (of->parts == 0) {
		LIST_REMOVE(of, link);
		free(of);
	}
	*file = err == 0 ? of : NULL;
	return err;
}

void
rcd_ufile_put(struct rcd_quota_entry *quota, struct rcd_ufile *file, uint64_t offset, uint64_t len)
{
	uint64_t most;

	RCD_ON_CONTROL();
	file->bytes -= ufile_ceiling_of(offset + len) - ufile_floor_of(offset);
	file->parts--;
	most = ufile_most_of(file);
	rcd_quota_uncharge(quota, RCD_RESOURCE_SHARED, file->charged - most);
	file->charged = most;
	if (file->parts > 0)
		return;
	LIST_REMOVE(file, link);
	free(file);
}

uint64_t
rcd_ufile_charged(const struct rcd_ufiles *files)
{
	const struct rcd_ufile *file;
	uint64_t bytes = 0;

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_UFILE_BUCKETS; i++)
		LIST_FOREACH(file, &files->buckets[i], link)
			bytes += file->charged;
	return bytes;
}
