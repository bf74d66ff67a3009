/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The segment of a context: its making, and parts of it for queues.
 */
#include "rcd_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <numa.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rcd_bits.h"
#include "rcd_budget.h"
#include "rcd_guard.h"
#include "rcd_limits.h"
#include "rcd_thread.h"

#define PAGE      4096u
#define HUGE_PAGE ((uint64_t)2 << 20)

/* Queues come into hugepages, or leave: the last one takes the page along. */
static void
segment_use_hugepages(struct rcd_segment *segment, uint64_t offset, uint64_t bytes, int by)
{
	uint64_t first = (offset - segment->bytes) / HUGE_PAGE;
	uint64_t last = (offset - segment->bytes + bytes - 1) / HUGE_PAGE;

	for (uint64_t i = first; i <= last; i++) {
		segment->huge_users[i] += (uint32_t)by;
		if (segment->huge_users[i] == 0)
			fallocate(segment->huge_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)(i * HUGE_PAGE), (off_t)HUGE_PAGE);
	}
}

/*
 * A part for a queue: in hugepages if that may be, else in ordinary ones. Pages are taken as it is
 * cleared.
 */
static int
segment_take_extent(struct rcd_segment *segment, uint64_t bytes, bool huge, uint64_t *offset)
{
	int err = rcd_quota_charge(segment->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);

	if (err != 0)
		return err;
	*offset = huge ? rcd_ranges_take(&segment->huge_free, bytes) : RCD_RANGES_NONE;
	if (*offset != RCD_RANGES_NONE)
		segment_use_hugepages(segment, *offset, bytes, 1);
	else
		*offset = rcd_ranges_take(&segment->small_free, bytes);
	if (*offset == RCD_RANGES_NONE) {
		rcd_quota_uncharge(segment->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);
		return -ENOMEM;
	}
	return 0;
}

/* Memory that is not there is found out here, not by a fault on an lcore. */
static int
segment_back(const struct rcd_segment *segment, uint64_t at, uint64_t bytes)
{
	uint64_t first = (at - segment->bytes) / HUGE_PAGE;
	uint64_t last = (at - segment->bytes + bytes - 1) / HUGE_PAGE;

	if (at < segment->bytes)
		return fallocate(segment->fd, 0, (off_t)at, (off_t)bytes);
	return fallocate(segment->huge_fd, 0, (off_t)(first * HUGE_PAGE),
		(off_t)((last - first + 1) * HUGE_PAGE));
}

/* @return 0; -EINPROGRESS: there is more; -ENOMEM */
static int
segment_clear_some(struct rcd_segment *segment, struct rcd_clearing *clearing)
{
	uint64_t at = clearing->offset + clearing->done;
	uint64_t bytes = clearing->bytes - clearing->done;

	if (bytes > RCD_ROUND_SLICE * PAGE)
		bytes = RCD_ROUND_SLICE * PAGE;
	if (segment_back(segment, at, bytes) != 0)
		return -ENOMEM;
	memset((uint8_t *)segment->shm + at, 0, bytes);
	*segment->work += (uint32_t)(bytes / PAGE);
	clearing->done += bytes;
	return clearing->done < clearing->bytes ? -EINPROGRESS : 0;
}

static int
segment_begin(struct rcd_segment *segment, uint32_t conn_serial, uint64_t bytes, bool huge)
{
	struct rcd_clearing *clearing = &segment->clearing;
	int err = segment_take_extent(segment, bytes, huge, &clearing->offset);

	if (err != 0)
		return err;
	clearing->bytes = bytes;
	clearing->done = 0;
	clearing->conn_serial = conn_serial;
	return 0;
}

int
rcd_segment_alloc(
	struct rcd_segment *segment, uint32_t conn_serial, uint64_t bytes, uint64_t *offset)
{
	struct rcd_clearing *clearing = &segment->clearing;
	int err = 0;

	RCD_ON_CONTROL();
	bytes = rcd_align_up(bytes, PAGE);
	/* One at a time: another connection's comes first. */
	if (clearing->bytes != 0 && clearing->conn_serial != conn_serial)
		return -EINPROGRESS;
	if (clearing->bytes != bytes) {
		rcd_segment_settle(segment, conn_serial);
		err = segment_begin(segment, conn_serial, bytes, true);
		if (err != 0)
			return err;
	}
	err = segment_clear_some(segment, clearing);
	if (err == -ENOMEM && clearing->offset >= segment->bytes) {
		/* Others have the hugepages by now: then it lies in ordinary ones. */
		rcd_segment_settle(segment, conn_serial);
		err = segment_begin(segment, conn_serial, bytes, false);
		if (err != 0)
			return err;
		err = segment_clear_some(segment, clearing);
	}
	if (err == 0) {
		*offset = clearing->offset;
		clearing->bytes = 0;
	} else if (err != -EINPROGRESS) {
		rcd_segment_settle(segment, conn_serial);
	}
	return err;
}

void
rcd_segment_settle(struct rcd_segment *segment, uint32_t conn_serial)
{
	struct rcd_clearing *clearing = &segment->clearing;

	RCD_ON_CONTROL();
	if (clearing->bytes == 0 || clearing->conn_serial != conn_serial)
		return;
	rcd_segment_free(segment, clearing->offset, clearing->bytes);
	clearing->bytes = 0;
}

void
rcd_segment_free(struct rcd_segment *segment, uint64_t offset, uint64_t bytes)
{
	RCD_ON_CONTROL();
	bytes = rcd_align_up(bytes, PAGE);
	rcd_quota_uncharge(segment->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);
	if (offset >= segment->bytes) {
		segment_use_hugepages(segment, offset, bytes, -1);
		rcd_ranges_give(&segment->huge_free, offset, bytes);
		return;
	}
	fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		(off_t)bytes);
	rcd_ranges_give(&segment->small_free, offset, bytes);
}

/* A sealed memfd of this kind. @return descriptor or -errno */
static int
segment_make_memfd(uint64_t bytes, unsigned int flags)
{
	int fd = memfd_create("rocade-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	int err;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void
segment_give_up_hugepages(struct rcd_segment *segment, uint64_t pages)
{
	rcd_quota_uncharge(segment->quota, RCD_RESOURCE_HUGEPAGES, pages);
	if (segment->huge_fd >= 0)
		close(segment->huge_fd);
	free(segment->huge_users);
	segment->huge_fd = -1;
	segment->huge_users = NULL;
}

/*
 * Hugepages of a context are counted when it opens, all that its file has room for: a client with
 * its descriptor could take them without asking. They are taken one by one, as its queues grow.
 */
static uint64_t
segment_charge_hugepages(struct rcd_segment *segment, uint64_t pages)
{
	/* Without them it has ordinary ones: nothing is refused. */
	if (pages == 0 || !rcd_quota_fits(segment->quota, RCD_RESOURCE_HUGEPAGES, pages) ||
		rcd_quota_charge(segment->quota, RCD_RESOURCE_HUGEPAGES, pages) != 0)
		return 0;
	segment->huge_fd = segment_make_memfd(pages * HUGE_PAGE, MFD_HUGETLB | MFD_HUGE_2MB);
	segment->huge_users = calloc(pages, sizeof(segment->huge_users[0]));
	if (segment->huge_fd >= 0 && segment->huge_users != NULL)
		return pages * HUGE_PAGE;
	segment_give_up_hugepages(segment, pages);
	return 0;
}

/* Map the file of small pages, and that of hugepages behind it. @return 0 or -errno */
static int
segment_map(struct rcd_segment *segment, uint8_t *addr, int socket_id)
{
	const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
	struct stat file;

	segment->fd = segment_make_memfd(segment->bytes, 0);
	if (segment->fd < 0)
		return segment->fd;
	if (fstat(segment->fd, &file) != 0)
		return -errno;
	segment->file_dev = file.st_dev;
	segment->file_ino = file.st_ino;
	if (mmap(addr, segment->bytes, PROT_READ | PROT_WRITE, flags, segment->fd, 0) == MAP_FAILED)
		return -errno;
	madvise(addr, segment->bytes, MADV_HUGEPAGE);
	if (segment->huge_bytes > 0 &&
		mmap(addr + segment->bytes, segment->huge_bytes, PROT_READ | PROT_WRITE, flags,
			segment->huge_fd, 0) == MAP_FAILED)
		return -errno;
	if (numa_available() >= 0 && numa_max_node() > 0)
		numa_tonode_memory(addr, segment->bytes + segment->huge_bytes, socket_id);
	return 0;
}

/* Lists of what is free, with room for a hole behind each object. @return 0 or -ENOMEM */
static int
segment_make_lists(struct rcd_segment *segment, const struct rcd_quota *quota)
{
	uint32_t room = (uint32_t)(2 + quota->qps + quota->cqs + quota->srqs + RCD_DMS_MAX);

	if (rcd_ranges_init(&segment->small_free, room) != 0 ||
		rcd_ranges_init(&segment->huge_free, room) != 0)
		return -ENOMEM;
	rcd_ranges_give(&segment->small_free, PAGE, segment->bytes - PAGE);
	if (segment->huge_bytes > 0)
		rcd_ranges_give(&segment->huge_free, segment->bytes, segment->huge_bytes);
	return 0;
}

int
rcd_segment_make(struct rcd_segment *segment, const struct rcd_segment_conf *conf)
{
	uint64_t bytes = rcd_align_up(conf->quota->queue_bytes, HUGE_PAGE);
	void *addr = NULL;
	uint64_t huge;
	int err;

	RCD_ON_CONTROL();
	segment->quota = conf->entry;
	segment->work = conf->work;
	huge = segment_charge_hugepages(segment, conf->quota->hugepages);
	err = rcd_quota_charge(segment->quota, RCD_RESOURCE_WINDOW, bytes + huge);
	if (err == 0)
		addr = rcd_guard_reserve(RCD_GUARD_SHARED, bytes + huge);
	if (addr == NULL) {
		if (err == 0)
			rcd_quota_uncharge(segment->quota, RCD_RESOURCE_WINDOW, bytes + huge);
		segment_give_up_hugepages(segment, huge / HUGE_PAGE);
		return err != 0 ? err : -ENOMEM;
	}
	rcd_guard_cover(addr, addr, bytes + huge);
	segment->shm = addr;
	segment->bytes = bytes;
	segment->huge_bytes = huge;
	err = segment_map(segment, addr, conf->socket_id);
	if (err == 0)
		err = segment_make_lists(segment, conf->quota);
	if (err != 0)
		return err;
	if (fallocate(segment->fd, 0, 0, PAGE) != 0)
		return -ENOMEM;
	memset(segment->shm, 0, sizeof(*segment->shm));
	segment->shm->magic = RCD_SHM_MAGIC;
	segment->shm->abi = RCD_SHM_ABI;
	segment->shm->size = bytes;
	segment->shm->generation = conf->generation;
	segment->shm->state = RCD_SHM_LIVE;
	segment->made = true;
	return 0;
}

/*
 * Pages that nobody is charged for any more are freed, so many bytes from the start: a client that
 * has kept the descriptor would keep them. What it writes there from now on is its own.
 */
static void
segment_close_file(int fd, uint64_t bytes)
{
	if (fd < 0)
		return;
	if (bytes > 0)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
	close(fd);
}

void
rcd_segment_end(struct rcd_segment *segment, bool pages_go)
{
	RCD_ON_CONTROL();
	if (segment->shm != NULL) {
		if (segment->made)
			__atomic_store_n(&segment->shm->state, RCD_SHM_GONE, __ATOMIC_RELAXED);
		rcd_guard_release(segment->shm, segment->bytes + segment->huge_bytes);
	}
	rcd_ranges_fini(&segment->small_free);
	rcd_ranges_fini(&segment->huge_free);
	free(segment->huge_users);
	segment_close_file(segment->fd, pages_go ? segment->bytes : 0);
	segment_close_file(segment->huge_fd, pages_go ? segment->huge_bytes : 0);
	segment->fd = segment->huge_fd = -1;
	segment->huge_users = NULL;
	segment->shm = NULL;
	segment->made = false;
	segment->clearing.bytes = 0;
}

bool
rcd_segment_has(const struct rcd_segment *segment, uintptr_t addr)
{
	RCD_ON_CONTROL();
	return segment->shm != NULL &&
		addr - (uintptr_t)segment->shm < segment->bytes + segment->huge_bytes;
}
