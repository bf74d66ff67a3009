/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory that clients take away: who did it, and what ends by it. A report of a fault is an address
 * alone, so it is taken back from the guard before somebody else gets that address.
 */
#include "rcd_engine_priv.h"

#include "rcd_guard.h"
#include "rcd_ulost.h"

#define CUT_AT_ONCE 64

static bool
umr_has(const struct rcd_umr *umr, uintptr_t addr)
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
	struct rcd_session *session;
	uint32_t count;
	struct rcd_key keys[CUT_AT_ONCE];
};

static void
cut_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct cut *cut = arg;

	(void)lcore;
	for (uint32_t i = 0; i < cut->count; i++)
		rcd_mr_cut(cut->session->mrs, cut->keys[i]);
}

/*
 * Memory at this address is gone: its regions end here, what stands in for it is nobody's.
 *
 * @return whether it was this session's
 */
static bool
lose(struct rcd_session *session, uintptr_t addr)
{
	struct cut cut = { .session = session };
	bool found = false;

	for (uint32_t i = 0; i < session->mems.fresh; i++) {
		struct rcd_mem *mem = session->mems.slots[i];

		if (mem == NULL || addr - (uintptr_t)mem->base >= mem->len)
			continue;
		mem->gone = true;
		found = true;
	}
	for (uint32_t i = 0; i < RCD_UMR_BUCKETS; i++) {
		const struct rcd_umr *umr;

		LIST_FOREACH(umr, &session->umrs[i], hash_link)
		{
			if (!umr_has(umr, addr))
				continue;
			cut.keys[cut.count++] = umr->key;
			if (cut.count == CUT_AT_ONCE) {
				rcd_lcore_call(session->lcore, cut_on_lcore, &cut);
				cut.count = 0;
			}
			found = true;
		}
	}
	if (cut.count > 0)
		rcd_lcore_call(session->lcore, cut_on_lcore, &cut);
	return found;
}

static bool
in_segment(const struct rcd_session *session, uintptr_t addr)
{
	return session->shm != NULL &&
		addr - (uintptr_t)session->shm < session->seg_bytes + session->huge_bytes;
}

void
rcd_ulost_release(struct rcd_session *session, void *start, uint64_t len)
{
	if (rcd_guard_release(start, len))
		session->lost_released = true;
}

/* What it did is counted, and told once. */
static void
blame(struct rcd_session *session)
{
	rcd_counter_add(&session->counters, RCD_COUNTER_CLIENT_BAD_MEMORY, 1);
	if (!session->bad_memory)
		RCD_LOG(WARNING, "client %d (%s) took memory away that it shares",
			(int)session->pid, session->comm);
	session->bad_memory = true;
}

void
rcd_ulost_settle(struct rcd_session *session)
{
	if (session->lost_released)
		blame(session);
	session->lost_released = false;
}

void
rcd_ulost_check(struct rcd_engine *engine)
{
	const struct rcd_session *failed = NULL;
	struct rcd_session *session;
	uintptr_t addr;

	/* Those who gave the addresses back before anybody looked. */
	LIST_FOREACH(session, &engine->sessions, link)
	{
		if (!session->lost_released)
			continue;
		rcd_ulost_settle(session);
		rcd_verbs_fail_all(session);
	}
	/* As many as the queue holds, and most are of one session: its queue pairs fail once. */
	while (rcd_guard_fault(&addr)) {
		LIST_FOREACH(session, &engine->sessions, link)
		{
			bool segment = in_segment(session, addr);

			if (session->dev == NULL || (!segment && !lose(session, addr)))
				continue;
			blame(session);
			if (session != failed)
				rcd_verbs_fail_all(session);
			failed = session;
			if (segment) {
				session->pages_go = true;
				rcd_session_end(session);
			} else {
				rcd_guard_discard(addr);
			}
			break;
		}
	}
}
