/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Files that clients share, mapped into the guarded window.
 */
#include "rcd_ushare.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "rcd_budget.h"
#include "rcd_guard.h"
#include "rcd_thread.h"
#include "rcd_ulost.h"
#include "rcd_umem.h"

#define PAGE         4096u
#define MEM_MAPPINGS 2

/*
 * Only files that are memory: a fault on any other could wait for a disk or for a server of the
 * client's choice, and an lcore never waits.
 */
static int
ushare_check_file(int fd, uint64_t *page)
{
	struct statfs fs;

	if (!rcd_ufile_is_memory(fd) || fstatfs(fd, &fs) != 0)
		return -EBADF;
	if (fs.f_type == TMPFS_MAGIC)
		*page = PAGE;
	else if (fs.f_type == HUGETLBFS_MAGIC)
		*page = (uint64_t)fs.f_bsize;
	else
		return -EBADF;
	return 0;
}

/* Enter pages that follow one another. */
static void
ushare_enter_pages(const struct rcd_mem *mem, uint32_t from, uint32_t to)
{
	madvise(mem->base + mem->filled + (uint64_t)from * PAGE, (size_t)(to - from) * PAGE,
		mem->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/*
 * Enter what is there into the page table now, so that lcores meet no fault on it: a part of it.
 * Holes stay holes: a sparse region takes no memory. Where the kernel doesn't tell what is there,
 * as of files that their owner keeps from us, all of it comes to be, which is charged for.
 *
 * The kernel is asked for this part and nothing beyond: where data or a hole ends it would look at
 * each page of a file up to there, of which a client may have shared a few.
 *
 * @return 0; -EINPROGRESS: there is more
 */
static int
ushare_populate(struct rcd_umem *umem, struct rcd_mem *mem)
{
	unsigned char there[RCD_ROUND_SLICE];
	uint32_t count = RCD_ROUND_SLICE, from = 0;
	struct stat about;

	if (mem->page != PAGE)
		return 0;
	/* Addresses that are kept for later: there may be a terabyte of them. */
	if (mem->filled == 0 && fstat(mem->fd, &about) == 0 && about.st_blocks == 0)
		return 0;
	if (mem->len - mem->filled < (uint64_t)count * PAGE)
		count = (uint32_t)((mem->len - mem->filled) / PAGE);
	if (mincore(mem->base + mem->filled, (size_t)count * PAGE, there) != 0)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		if (there[i] & 1)
			continue;
		if (i > from)
			ushare_enter_pages(mem, from, i);
		from = i + 1;
	}
	if (count > from)
		ushare_enter_pages(mem, from, count);
	mem->filled += (uint64_t)count * PAGE;
	*umem->work += count;
	return mem->filled < mem->len ? -EINPROGRESS : 0;
}

/* One at a time in a context: the memory of another connection is entered by use. */
static int
ushare_fill(struct rcd_umem *umem, uint32_t conn_serial, struct rcd_mem *mem, uint32_t *handle)
{
	int err = 0;

	*handle = mem->handle;
	if (umem->filling == NULL || umem->filling == mem)
		err = ushare_populate(umem, mem);
	umem->filling_conn = err != 0 ? conn_serial : umem->filling_conn;
	if (err != 0)
		umem->filling = mem;
	else if (umem->filling == mem)
		umem->filling = NULL;
	return err;
}

void
rcd_ushare_settle(struct rcd_umem *umem, uint32_t conn_serial)
{
	RCD_ON_CONTROL();
	if (umem->filling != NULL && umem->filling_conn == conn_serial)
		rcd_ushare_del(umem, umem->filling->handle);
}

/* Its addresses, and what may come to be there. */
static int
ushare_charge_bytes(struct rcd_umem *umem, struct rcd_mem *mem)
{
	int err = rcd_quota_charge(umem->quota, RCD_RESOURCE_WINDOW, mem->len);

	if (err != 0 || mem->page != PAGE)
		return err;
	err = rcd_ufile_get(&umem->files, umem->quota, mem->fd, mem->offset, mem->len, &mem->file);
	if (err != 0)
		rcd_quota_uncharge(umem->quota, RCD_RESOURCE_WINDOW, mem->len);
	return err;
}

/* Its descriptor, its mapping with the gap behind it, and its bytes. */
static int
ushare_charge_mem(struct rcd_umem *umem, struct rcd_mem *mem)
{
	struct rcd_quota_entry *quota = umem->quota;
	int err = rcd_quota_charge(quota, RCD_RESOURCE_DESCRIPTORS, 1);

	if (err != 0)
		return err;
	err = rcd_quota_charge(quota, RCD_RESOURCE_MAPPINGS, MEM_MAPPINGS);
	if (err == 0) {
		err = ushare_charge_bytes(umem, mem);
		if (err == 0)
			return 0;
		rcd_quota_uncharge(quota, RCD_RESOURCE_MAPPINGS, MEM_MAPPINGS);
	}
	rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
	return err;
}

static void
ushare_uncharge_mem(struct rcd_umem *umem, const struct rcd_mem *mem)
{
	struct rcd_quota_entry *quota = umem->quota;

	rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
	rcd_quota_uncharge(quota, RCD_RESOURCE_MAPPINGS, MEM_MAPPINGS);
	rcd_quota_uncharge(quota, RCD_RESOURCE_WINDOW, mem->len);
	if (mem->file != NULL)
		rcd_ufile_put(umem->quota, mem->file, mem->offset, mem->len);
}

int
rcd_ushare_add(struct rcd_umem *umem, uint32_t conn_serial, const struct rcd_ctrl_mem_req *req,
	int fd, uint32_t *handle)
{
	int prot = PROT_READ | (req->writable ? PROT_WRITE : 0);
	struct rcd_mem *mem;
	uint64_t page;
	int err;

	RCD_ON_CONTROL();
	/* The same request again, which has its descriptor no more. */
	if (umem->filling != NULL && umem->filling_conn == conn_serial)
		return ushare_fill(umem, conn_serial, umem->filling, handle);
	err = ushare_check_file(fd, &page);
	if (err != 0)
		return err;
	if (req->len == 0 || req->len % page != 0 || req->offset % page != 0 ||
		req->offset > INT64_MAX || req->len > INT64_MAX - req->offset)
		return -EINVAL;
	mem = calloc(1, sizeof(*mem));
	if (mem == NULL)
		return -ENOMEM;
	*mem = (struct rcd_mem){ .fd = fd,
		.offset = req->offset,
		.len = req->len,
		.page = page,
		.writable = req->writable != 0,
		.refs = 1 };
	err = ushare_charge_mem(umem, mem);
	if (err != 0) {
		free(mem);
		return err;
	}
	mem->base = rcd_guard_reserve(RCD_GUARD_SHARED, req->len);
	if (mem->base == NULL || rcd_table_add(&umem->mems, mem, &mem->handle) != 0) {
		if (mem->base != NULL)
			rcd_guard_release(mem->base, req->len);
		ushare_uncharge_mem(umem, mem);
		free(mem);
		return -ENOMEM;
	}
	rcd_guard_cover(mem->base, mem->base, req->len);
	if (mmap(mem->base, req->len, prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		    (off_t)req->offset) == MAP_FAILED) {
		err = -errno;
		rcd_table_del(&umem->mems, mem->handle);
		rcd_guard_release(mem->base, req->len);
		ushare_uncharge_mem(umem, mem);
		free(mem);
		return err;
	}
	return ushare_fill(umem, conn_serial, mem, handle);
}

void
rcd_ushare_put(struct rcd_umem *umem, struct rcd_mem *mem)
{
	RCD_ON_CONTROL();
	if (--mem->refs > 0)
		return;
	ushare_uncharge_mem(umem, mem);
	rcd_ulost_release(umem, mem->base, mem->len);
	close(mem->fd);
	free(mem);
}

int
rcd_ushare_del(struct rcd_umem *umem, uint32_t handle)
{
	struct rcd_mem *mem = rcd_table_get(&umem->mems, handle);

	RCD_ON_CONTROL();
	if (mem == NULL)
		return -ENOENT;
	if (umem->filling == mem)
		umem->filling = NULL;
	rcd_table_del(&umem->mems, handle);
	rcd_ushare_put(umem, mem);
	return 0;
}
