/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The pool of kept packets.
 */
#include "rcd_reorder.h"

#include <stdlib.h>

#include "rcd_check.h"

#define COUNT_MAX (1u << 20)

#define LINE _Alignof(struct rcd_kept) /**< of a cache */

/* Of a payload: the hardware prefetches what follows. */
#define PREFETCH_BYTES 128

struct rcd_reorder_pool {
	struct rcd_kept *free;
	struct rcd_reorder_host host; /* without a hold(): all is copied */
	uint32_t used;
	uint8_t *copies;
	struct rcd_kept *packets;
};

struct rcd_reorder_pool *
rcd_reorder_pool_create(uint32_t count)
{
	struct rcd_reorder_pool *pool;

	if (count == 0 || count > COUNT_MAX)
		return NULL;
	pool = calloc(1, sizeof(*pool));
	if (pool == NULL)
		return NULL;
	pool->packets = aligned_alloc(_Alignof(struct rcd_kept), count * sizeof(pool->packets[0]));
	pool->copies = aligned_alloc(LINE, (size_t)count * RCD_PATH_MTU_MAX_BYTES);
	if (pool->packets == NULL || pool->copies == NULL) {
		rcd_reorder_pool_destroy(pool);
		return NULL;
	}
	/* Who polls is not to wait for pages. */
	memset(pool->copies, 0, (size_t)count * RCD_PATH_MTU_MAX_BYTES);
	for (uint32_t i = count; i-- > 0;) {
		pool->packets[i].copy = pool->copies + (size_t)i * RCD_PATH_MTU_MAX_BYTES;
		pool->packets[i].next = pool->free;
		pool->free = &pool->packets[i];
	}
	return pool;
}

void
rcd_reorder_pool_set_host(struct rcd_reorder_pool *pool, const struct rcd_reorder_host *host)
{
	RCD_CHECK(pool->used == 0);
	pool->host = *host;
}

void
rcd_reorder_pool_destroy(struct rcd_reorder_pool *pool)
{
	if (pool == NULL)
		return;
	RCD_CHECK(pool->used == 0);
	free(pool->packets);
	free(pool->copies);
	free(pool);
}

uint32_t
rcd_reorder_pool_used(const struct rcd_reorder_pool *pool)
{
	return pool->used;
}

/* All of its lines, if there is one. */
static void
reorder_prefetch(const struct rcd_kept *kept)
{
	for (size_t at = 0; kept != NULL && at < sizeof(*kept); at += LINE)
		__builtin_prefetch((const uint8_t *)kept + at);
}

struct rcd_kept *
rcd_reorder_get(struct rcd_reorder_pool *pool)
{
	struct rcd_kept *kept = pool->free;

	if (kept != NULL) {
		pool->free = kept->next;
		/* Of packets behind a hole the next one follows soon. */
		reorder_prefetch(pool->free);
		pool->used++;
		kept->held = NULL;
	}
	return kept;
}

void
rcd_reorder_put(struct rcd_reorder_pool *pool, struct rcd_kept *kept)
{
	RCD_CHECK(pool->used > 0);
	if (kept->held != NULL)
		pool->host.release(pool->host.arg, kept->held);
	kept->next = pool->free;
	pool->free = kept;
	pool->used--;
}

static void
reorder_set_payload(struct rcd_reorder_pool *pool, struct rcd_kept *kept, const struct rcd_pkt *pkt)
{
	const struct rcd_reorder_host *host = &pool->host;

	kept->payload_len = pkt->payload_len;
	kept->payload = pkt->payload;
	if (pkt->payload_len > RCD_REORDER_COPY_MAX && host->hold != NULL)
		kept->held = host->hold(host->arg, pkt);
	if (kept->held == NULL) {
		memcpy(kept->copy, pkt->payload, pkt->payload_len);
		kept->payload = kept->copy;
	}
}

bool
rcd_reorder_keep(
	struct rcd_reorder_pool *pool, struct rcd_kept_list *list, const struct rcd_pkt *pkt)
{
	struct rcd_psn psn = pkt->roce.bth.psn;
	struct rcd_kept **at = &list->first;
	struct rcd_kept *kept;

	if (pool == NULL || list->count >= RCD_REORDER_WINDOW ||
		pkt->payload_len > RCD_PATH_MTU_MAX_BYTES)
		return false;
	/* Mostly it is the last: then nobody has to walk. */
	if (list->first != NULL && rcd_psn_before(list->last->roce.bth.psn, psn))
		at = &list->last->next;
	for (uint32_t i = 0; *at != NULL && rcd_psn_before((*at)->roce.bth.psn, psn); i++) {
		if (i == RCD_REORDER_STEPS)
			return false;
		at = &(*at)->next;
	}
	if (*at != NULL && rcd_psn_eq((*at)->roce.bth.psn, psn))
		return false;
	kept = rcd_reorder_get(pool);
	if (kept == NULL)
		return false;
	kept->roce = pkt->roce;
	reorder_set_payload(pool, kept, pkt);
	kept->next = *at;
	if (*at == NULL)
		list->last = kept;
	*at = kept;
	list->count++;
	return true;
}

struct rcd_kept *
rcd_reorder_take(struct rcd_kept_list *list)
{
	struct rcd_kept *kept = list->first;

	RCD_CHECK(list->count > 0);
	list->first = kept->next;
	list->count--;
	/* The next one's payload came long ago, as caches go, and so did the packet behind it. */
	if (list->first != NULL) {
		reorder_prefetch(list->first->next);
		__builtin_prefetch(list->first->held);
		for (size_t at = 0; at < PREFETCH_BYTES; at += LINE)
			__builtin_prefetch(list->first->payload + at);
	}
	return kept;
}

void
rcd_reorder_drop(struct rcd_reorder_pool *pool, struct rcd_kept_list *list)
{
	while (list->first != NULL)
		rcd_reorder_put(pool, rcd_reorder_take(list));
}
