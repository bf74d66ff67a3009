/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A region's memory: pieces of files that a client shared, each mapped at its place, and bytes that
 * are copied. Its keys and tables are rcd_umem.c's.
 */
#include "rcd_uregion.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rcd_check.h"
#include "rcd_guard.h"
#include "rcd_limits.h"
#include "rcd_thread.h"
#include "rcd_ulost.h"
#include "rcd_ushare.h"

#define HUGE ((uint64_t)2 << 20)

/* The upper bits of its addresses are given back. */
static void
uregion_free_far(struct rcd_umem *umem, const struct rcd_umr *umr)
{
	umem->fars[umr->far / 64] &= ~(UINT64_C(1) << umr->far % 64);
}

void
rcd_uregion_free(struct rcd_umem *umem, struct rcd_umr *umr)
{
	RCD_ON_CONTROL();
	if (umr->reserved != NULL)
		rcd_ulost_release(umem, umr->reserved, umr->reserved_len);
	uregion_free_far(umem, umr);
	for (uint32_t i = 0; i < umr->mem_count; i++)
		rcd_ushare_put(umem, umr->mems[i]);
	if (umr->users != NULL)
		--*umr->users;
	rcd_quota_uncharge(umem->quota, RCD_RESOURCE_WINDOW, umr->window_charged);
	rcd_quota_uncharge(umem->quota, RCD_RESOURCE_MAPPINGS, umr->mappings_charged);
	free(umr->mems);
	free(umr->copies);
	free(umr);
}

/* Whether a range lies in another. No sum of two numbers from a client is ever formed. */
static bool
uregion_inside(const uint8_t *start, uint64_t len, const uint8_t *room, uint64_t room_len)
{
	uint64_t at = (uint64_t)(uintptr_t)start - (uint64_t)(uintptr_t)room;

	return room != NULL && at <= room_len && len <= room_len - at;
}

/* Map a piece of shared memory at its place in a region's own addresses. */
static int
uregion_map_piece(struct rcd_umr *umr, struct rcd_mem *mem, const struct rcd_ctrl_extent *extent,
	uint64_t at, uint32_t access)
{
	uint8_t *start = umr->base + at;
	uint64_t slack = (uintptr_t)start % mem->page;
	uint64_t offset = mem->offset + extent->offset;
	uint64_t len = (extent->len + slack + mem->page - 1) / mem->page * mem->page;
	int prot = PROT_READ | (access & RCD_ACCESS_WRITES ? PROT_WRITE : 0);

	if (offset % mem->page != slack)
		return -EINVAL;
	/* Whole pages of the file, and nothing of a neighbour's addresses. */
	RCD_CHECK(uregion_inside(start - slack, len, umr->reserved, umr->reserved_len));
	if (mmap(start - slack, len, prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, mem->fd,
		    (off_t)(offset - slack)) == MAP_FAILED)
		return -errno;
	return 0;
}

static int
uregion_check_extent(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req,
	const struct rcd_ctrl_extent *extent, int copies, struct rcd_mem **mem)
{
	*mem = NULL;
	if (extent->len == 0 || extent->len > req->len)
		return -EINVAL;
	if (extent->mem == RCD_CTRL_MEM_COPIED) {
		if (extent->offset > UINT64_MAX - extent->len)
			return -EINVAL;
		return copies;
	}
	*mem = rcd_table_get(&umem->mems, extent->mem);
	if (*mem == NULL)
		return -ENOENT;
	if ((*mem)->gone)
		return -EFAULT;
	if (extent->offset > (*mem)->len || extent->len > (*mem)->len - extent->offset)
		return -EINVAL;
	return (req->access & RCD_ACCESS_WRITES) && !(*mem)->writable ? -EACCES : 0;
}

/* One piece of one file: it is mapped already. */
static int
uregion_make_single(struct rcd_umr *umr, struct rcd_mem *mem, const struct rcd_ctrl_extent *extent)
{
	umr->base = mem->base + extent->offset;
	umr->mems[umr->mem_count++] = mem;
	mem->refs++;
	return 0;
}

/* Of all files that it is made of, 2 MiB at least. The extents have been checked. */
static uint64_t
uregion_largest_page(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req)
{
	uint64_t page = HUGE;

	for (uint32_t i = 0; i < req->extent_count; i++) {
		const struct rcd_mem *mem = rcd_table_get(&umem->mems, req->extents[i].mem);

		if (mem != NULL && mem->page > page)
			page = mem->page;
	}
	return page;
}

/* Its addresses; and a mapping for each piece or gap between pieces, and around them. */
static int
uregion_charge_pieces(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, struct rcd_umr *umr)
{
	uint32_t mappings = req->extent_count + 2;
	int err = rcd_quota_charge(umem->quota, RCD_RESOURCE_WINDOW, umr->reserved_len);

	if (err != 0)
		return err;
	umr->window_charged = umr->reserved_len;
	err = rcd_quota_charge(umem->quota, RCD_RESOURCE_MAPPINGS, mappings);
	if (err == 0)
		umr->mappings_charged = mappings;
	return err;
}

/* Several pieces, or copies: contiguous addresses of its own. */
static int
uregion_make_pieces(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, struct rcd_umr *umr)
{
	enum rcd_guard_part part = umr->copies != NULL ? RCD_GUARD_COPIED : RCD_GUARD_SHARED;
	uint64_t page = uregion_largest_page(umem, req);
	/* As the application's addresses lie within a hugepage, so do these. */
	uint64_t pad = req->addr % page;
	uint64_t at = 0;
	int err;

	/* Reservations begin at a hugepage of 2 MiB; larger ones want room to be aligned in. */
	umr->reserved_len = req->len + pad + page + (page > HUGE ? page : 0);
	err = uregion_charge_pieces(umem, req, umr);
	if (err != 0)
		return err;
	umr->reserved = rcd_guard_reserve(part, umr->reserved_len);
	if (umr->reserved == NULL)
		return -ENOMEM;
	umr->base = umr->reserved;
	umr->base += (page - (uintptr_t)umr->base % page) % page + pad;
	rcd_guard_cover(umr->reserved, umr->reserved, umr->reserved_len);
	for (uint32_t i = 0; i < req->extent_count; i++) {
		const struct rcd_ctrl_extent *extent = &req->extents[i];
		struct rcd_mem *mem;

		err = uregion_check_extent(umem, req, extent, 0, &mem);
		if (err != 0)
			return err;
		if (mem == NULL) {
			umr->copies[umr->copy_count++] =
				(struct rcd_copy){ at, extent->len, extent->offset };
		} else {
			err = uregion_map_piece(umr, mem, extent, at, req->access);
			if (err != 0)
				return err;
			umr->mems[umr->mem_count++] = mem;
			mem->refs++;
		}
		at += extent->len;
	}
	return 0;
}

/*
 * All addresses of its process: no room of the engine's. What would be an address here names the
 * region by its upper bits and the process's address by the others; no pointer has such bits.
 */
static int
uregion_make_all(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, struct rcd_umr *umr)
{
	if (req->extent_count != 1 || umr->copies == NULL || req->extents[0].offset != 0 ||
		req->addr != 0 || req->start != 0)
		return -EINVAL;
	for (uint32_t far = 1; far <= RCD_MR_ALL_MAX && umr->far == 0; far++)
		if (!(umem->fars[far / 64] & UINT64_C(1) << far % 64))
			umr->far = (uint8_t)far;
	if (umr->far == 0)
		return -ENOMEM;
	umem->fars[umr->far / 64] |= UINT64_C(1) << umr->far % 64;
	umr->base = (uint8_t *)((uintptr_t)umr->far << RCD_MR_ALL_BITS);
	umr->copies[umr->copy_count++] = (struct rcd_copy){ .len = req->len };
	return 0;
}

/* What keys are translated to lies in addresses that are the region's own. */
static bool
uregion_holds(const struct rcd_umr *umr)
{
	if (umr->len == 0 || umr->far != 0)
		return true;
	if (umr->reserved != NULL)
		return uregion_inside(umr->base, umr->len, umr->reserved, umr->reserved_len);
	return umr->mem_count == 1 &&
		uregion_inside(umr->base, umr->len, umr->mems[0]->base, umr->mems[0]->len);
}

int
rcd_uregion_make(
	struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, int copies, struct rcd_umr **made)
{
	struct rcd_umr *umr;
	uint64_t sum = 0;
	uint32_t copied = 0;
	int err = 0;

	RCD_ON_CONTROL();
	if (req->len > RCD_MR_MAX_BYTES && req->len != RCD_MR_ALL_BYTES)
		return -EINVAL;
	umr = calloc(1, sizeof(*umr));
	if (umr == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < req->extent_count && err == 0; i++) {
		struct rcd_mem *mem;

		/* At most RCD_CTRL_EXTENTS_MAX times RCD_MR_ALL_BYTES: it can't wrap. */
		err = uregion_check_extent(umem, req, &req->extents[i], copies, &mem);
		if (err == 0)
			sum += req->extents[i].len;
		copied += req->extents[i].mem == RCD_CTRL_MEM_COPIED;
	}
	if (err == 0 && sum != req->len)
		err = -EINVAL;
	if (err == 0 && copied > 0)
		umr->copies = calloc(copied, sizeof(umr->copies[0]));
	umr->mems = calloc(req->extent_count + 1, sizeof(umr->mems[0]));
	if (err == 0 && (umr->mems == NULL || (copied > 0 && umr->copies == NULL)))
		err = -ENOMEM;
	if (err == 0 && req->len == RCD_MR_ALL_BYTES)
		err = uregion_make_all(umem, req, umr);
	else if (err == 0 && req->extent_count == 1 && copied == 0)
		err = uregion_make_single(
			umr, rcd_table_get(&umem->mems, req->extents[0].mem), &req->extents[0]);
	else if (err == 0 && req->extent_count > 0)
		err = uregion_make_pieces(umem, req, umr);
	if (err != 0) {
		rcd_uregion_free(umem, umr);
		return err;
	}
	umr->pd = req->pd;
	umr->start = req->start;
	umr->len = req->len;
	umr->access = req->access;
	RCD_CHECK(uregion_holds(umr));
	*made = umr;
	return 0;
}
