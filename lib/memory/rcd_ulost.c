/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory that clients take away: whose it was, and which regions end by it. A report of a fault is
 * an address alone, so it is taken back from the guard before somebody else gets that address.
 */
#include "rcd_ulost.h"

#include "rcd_guard.h"
#include "rcd_thread.h"
#include "rcd_umem.h"
#include "rcd_ushare.h"

#define CUT_AT_ONCE 64

static bool
ulost_umr_has(const struct rcd_umr *umr, uintptr_t addr)
{
	if (umr->reserved != NULL && addr - (uintptr_t)umr->reserved < umr->reserved_len)
		return true;
	/* Its files may have no handle any more. */
	for (uint32_t i = 0; i < umr->mem_count; i++)
		if (addr - (uintptr_t)umr->mems[i]->base < umr->mems[i]->len)
			return true;
	return false;
}

/* Keys of regions to be cut off by one command. */
struct cut {
	struct rcd_mr_table *mrs;
	uint32_t count;
	struct rcd_key keys[CUT_AT_ONCE];
};

static int
ulost_cut_on_lcore(void *arg)
{
	const struct cut *cut = arg;

	for (uint32_t i = 0; i < cut->count; i++)
		rcd_mr_cut(cut->mrs, cut->keys[i]);
	return 0;
}

bool
rcd_ulost_cut(struct rcd_umem *umem, uintptr_t addr)
{
	struct cut cut = { .mrs = umem->mrs };
	const struct rcd_umr *umr;
	bool found = false;

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < umem->mems.fresh; i++) {
		struct rcd_mem *mem = umem->mems.slots[i];

		if (mem == NULL || addr - (uintptr_t)mem->base >= mem->len)
			continue;
		mem->gone = true;
		found = true;
	}
	TAILQ_FOREACH(umr, &umem->umrs, link) {
		if (!ulost_umr_has(umr, addr))
			continue;
		cut.keys[cut.count++] = umr->key;
		if (cut.count == CUT_AT_ONCE) {
			umem->ops->on_lcore(umem->owner, ulost_cut_on_lcore, &cut);
			cut.count = 0;
		}
		found = true;
	}
	if (cut.count > 0)
		umem->ops->on_lcore(umem->owner, ulost_cut_on_lcore, &cut);
	return found;
}

void
rcd_ulost_release(struct rcd_umem *umem, void *start, uint64_t len)
{
	RCD_ON_CONTROL();
	if (rcd_guard_release(start, len))
		umem->lost = true;
}
