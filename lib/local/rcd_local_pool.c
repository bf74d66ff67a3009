/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Regions of a mempool, and keys of the mbufs that lie there. What lies between two parts of a pool
 * is nobody's, so no region has it.
 */
#include <errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <stdlib.h>

#include "rcd_local.h"

/* Contiguous memory of a pool. */
struct part {
	uintptr_t start;
	uint64_t len;
	struct rcd_key key;
};

struct rcd_local_pool {
	struct rcd_local *local;
	uint32_t count; /**< by their addresses */
	uint32_t room;
	struct part parts[];
};

static void
local_pool_add(struct rte_mempool *pool, void *arg, struct rte_mempool_memhdr *mem, unsigned index)
{
	struct rcd_local_pool *made = arg;

	(void)pool;
	(void)index;
	if (mem->len > 0 && made->count < made->room)
		made->parts[made->count++] =
			(struct part){ .start = (uintptr_t)mem->addr, .len = mem->len };
}

static int
local_pool_by_start(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Neighbours are one. */
static void
local_pool_join(struct rcd_local_pool *pool)
{
	uint32_t last = 0;

	qsort(pool->parts, pool->count, sizeof(pool->parts[0]), local_pool_by_start);
	for (uint32_t i = 1; i < pool->count; i++) {
		if (pool->parts[last].start + pool->parts[last].len == pool->parts[i].start)
			pool->parts[last].len += pool->parts[i].len;
		else
			pool->parts[++last] = pool->parts[i];
	}
	pool->count = last + 1;
}

int
rcd_local_pool_reg(struct rcd_local *local, uint32_t pd, struct rte_mempool *pool, uint32_t access,
	struct rcd_local_pool **made)
{
	struct rcd_local_pool *regions =
		calloc(1, sizeof(*regions) + pool->nb_mem_chunks * sizeof(regions->parts[0]));
	uint32_t count;
	int err = 0;

	if (regions == NULL)
		return -ENOMEM;
	regions->local = local;
	regions->room = pool->nb_mem_chunks;
	rte_mempool_mem_iter(pool, local_pool_add, regions);
	if (regions->count == 0) {
		free(regions);
		return -EINVAL;
	}
	local_pool_join(regions);
	count = regions->count;
	for (regions->count = 0; err == 0 && regions->count < count;) {
		struct part *part = &regions->parts[regions->count];

		err = rcd_local_mr_reg(
			local, pd, (void *)part->start, part->len, access, &part->key);
		regions->count += err == 0;
	}
	if (err != 0) {
		rcd_local_pool_dereg(regions);
		return err;
	}
	*made = regions;
	return 0;
}

void
rcd_local_pool_dereg(struct rcd_local_pool *pool)
{
	/* With the device they went. */
	for (uint32_t i = 0; i < pool->count; i++)
		rcd_local_mr_dereg(pool->local, pool->parts[i].key);
	free(pool);
}

int
rcd_local_pool_key(
	const struct rcd_local_pool *pool, const void *addr, uint32_t len, struct rcd_key *key)
{
	uintptr_t at = (uintptr_t)addr;
	uint32_t low = 0, high = pool->count;

	/* The last that does not begin behind it. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (pool->parts[middle].start <= at)
			low = middle;
		else
			high = middle;
	}
	if (at < pool->parts[low].start || at - pool->parts[low].start > pool->parts[low].len ||
		len > pool->parts[low].len - (at - pool->parts[low].start))
		return -EINVAL;
	*key = pool->parts[low].key;
	return 0;
}

int
rcd_local_pool_sges(const struct rcd_local_pool *pool, const struct rte_mbuf *mbuf,
	struct rcd_sge *sges, uint32_t count_max)
{
	uint32_t count = 0;

	for (; mbuf != NULL; mbuf = mbuf->next) {
		struct rcd_sge *sge = &sges[count];
		int err;

		if (count == count_max)
			return -EMSGSIZE;
		sge->addr = (uintptr_t)rte_pktmbuf_mtod(mbuf, const void *);
		sge->len = mbuf->data_len;
		err = rcd_local_pool_key(
			pool, (const void *)(uintptr_t)sge->addr, sge->len, &sge->lkey);
		if (err != 0)
			return err;
		count++;
	}
	return (int)count;
}
