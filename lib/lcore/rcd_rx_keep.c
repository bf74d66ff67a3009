/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Buffers that packets came in: kept, or given back.
 */
#include "rcd_rx_keep.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "rcd_lcore.h"
#include "rcd_reorder.h"
#include "rcd_thread.h"

/*
 * Buffers that an lcore keeps, at most. Those behind a hole or two; with more the ones that packets
 * are built in would come from the far end of the pool, whose memory no cache has: then it is
 * cheaper to copy.
 */
#define KEPT_MAX 128

/* Of a small pool all lcores together keep one in so many: ports and senders need the others. */
#define POOL_SHARE 16

/* Those of a port's own pool can't be kept: it may have few, and goes with the port. */
static bool
rx_keep_spares(const struct rcd_lcore *lcore, const struct rte_mbuf *mbuf)
{
	return mbuf->pool == lcore->pool && mbuf->nb_segs == 1 && RTE_MBUF_DIRECT(mbuf) &&
		lcore->buffers_kept < KEPT_MAX &&
		lcore->buffers_kept * lcore->lcores->count < lcore->pool->size / POOL_SHARE;
}

static void *
rx_keep_hold(void *arg, const struct rcd_pkt *pkt)
{
	struct rcd_lcore *lcore = arg;
	struct rte_mbuf *mbuf;
	uintptr_t at;

	RCD_ON_LCORE(lcore);
	/* In the burst that is looked at now: others are not of this array. */
	at = ((uintptr_t)pkt - (uintptr_t)lcore->pkts) / sizeof(*pkt);
	if (lcore->burst == NULL || at >= RCD_BURST_MAX || lcore->burst[at] == NULL)
		return NULL;
	mbuf = lcore->burst[at];
	if (!rx_keep_spares(lcore, mbuf))
		return NULL;
	/* The burst is freed without it. */
	lcore->burst[at] = NULL;
	lcore->buffers_kept++;
	return mbuf;
}

/* The last queue pairs go with the lcore stopped. Any thread, then. */
static void
rx_keep_release(void *arg, void *held)
{
	struct rcd_lcore *lcore = arg;
	struct rte_mbuf *mbuf = held;

	lcore->buffers_kept--;
	/* As it came from the pool (rcd_rx_free_burst()). */
	if (rte_mbuf_refcnt_read(mbuf) == 1)
		rte_mempool_put(lcore->pool, mbuf);
	else
		rte_pktmbuf_free(mbuf);
}

void
rcd_rx_keep_init(struct rcd_lcore *lcore)
{
	struct rcd_reorder_host host = {
		.hold = rx_keep_hold,
		.release = rx_keep_release,
		.arg = lcore,
	};

	RCD_ON_CONTROL();
	rcd_reorder_pool_set_host(lcore->reorder, &host);
}

/*
 * Those of one segment with one reference, as nearly all are, go back to their pool as they came
 * from it: their second cache line need not be looked at.
 */
void
rcd_rx_free_burst(const struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint32_t count)
{
	void *batch[RCD_BURST_MAX];
	struct rte_mempool *pool = NULL;
	uint32_t used = 0;

	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = mbufs[i];

		if (mbuf == NULL)
			continue;
		if (unlikely(rte_mbuf_refcnt_read(mbuf) != 1 || !RTE_MBUF_DIRECT(mbuf) ||
			    mbuf->nb_segs != 1)) {
			rte_pktmbuf_free(mbuf);
			continue;
		}
		if (mbuf->pool != pool && used > 0) {
			rte_mempool_put_bulk(pool, batch, used);
			used = 0;
		}
		pool = mbuf->pool;
		batch[used++] = mbuf;
	}
	if (used > 0)
		rte_mempool_put_bulk(pool, batch, used);
}
