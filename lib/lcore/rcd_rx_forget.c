/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets of a device that goes, wherever they wait for an lcore.
 */
#include "rcd_rx_forget.h"

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "rcd_hand_over.h"
#include "rcd_lcore.h"
#include "rcd_thread.h"

static inline bool
rx_forget_is_of(const struct rte_mbuf *mbuf, uint32_t index)
{
	return (mbuf->hash.usr & ~RCD_HAND_OVER_SNIFFED) == index;
}

/* Free what of a ring is a device's; the rest stays in order. Others may add to it meanwhile. */
static void
rx_forget_ring(struct rte_ring *ring, uint32_t index)
{
	void *obj;

	for (uint32_t left = rte_ring_count(ring); left > 0 && rte_ring_dequeue(ring, &obj) == 0;
		left--) {
		struct rte_mbuf *mbuf = obj;

		/* Full again: what others added took its place. The peer sends it once more. */
		if (rx_forget_is_of(mbuf, index) || rte_ring_enqueue(ring, mbuf) != 0)
			rte_pktmbuf_free(mbuf);
	}
}

void
rcd_rx_forget(struct rcd_lcore *lcore, uint32_t index)
{
	struct rcd_rest *rest = &lcore->rest;
	uint32_t kept = 0;

	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < rest->count; i++) {
		if (rx_forget_is_of(rest->mbufs[i], index))
			rte_pktmbuf_free(rest->mbufs[i]);
		else
			rest->mbufs[kept++] = rest->mbufs[i];
	}
	rest->count = kept;
	rx_forget_ring(rest->groups, index);
	rx_forget_ring(lcore->loop, index);
	rx_forget_ring(lcore->handover, index);
}
