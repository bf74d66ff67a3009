/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets for queue pairs of another lcore.
 */
#include "rcd_hand_over.h"

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "rcd_counter.h"
#include "rcd_lcore.h"
#include "rcd_lport.h"
#include "rcd_thread.h"

static void
hand_over_numbered(struct rcd_lcore *lcore, struct rcd_lcore *owner, const struct rcd_lport *lport,
	struct rte_mbuf *mbuf, uint32_t number)
{
	struct rcd_counters *counters = rcd_lcore_counters(lcore, lport);

	mbuf->hash.usr = number;
	if (rte_ring_enqueue(owner->handover, mbuf) != 0) {
		rcd_counter_add(counters, RCD_COUNTER_RX_DROP_HANDOVER, 1);
		rte_pktmbuf_free(mbuf);
		return;
	}
	rcd_counter_add(counters, RCD_COUNTER_RX_HANDOVER, 1);
	rcd_lcore_wake(owner);
}

void
rcd_hand_over(struct rcd_lcore *lcore, struct rcd_lcore *owner, const struct rcd_lport *lport,
	struct rte_mbuf *mbuf)
{
	RCD_ON_LCORE(lcore);
	hand_over_numbered(lcore, owner, lport, mbuf, lport->index);
}

void
rcd_hand_over_sniffed(struct rcd_lcore *lcore, struct rcd_lcore *owner,
	const struct rcd_lport *lport, struct rte_mbuf *mbuf)
{
	RCD_ON_LCORE(lcore);
	hand_over_numbered(lcore, owner, lport, mbuf, lport->index | RCD_HAND_OVER_SNIFFED);
}

bool
rcd_hand_over_fits(
	struct rcd_lcore *lcore, const struct rcd_lcore *owner, const struct rcd_lport *lport)
{
	RCD_ON_LCORE(lcore);
	if (rte_ring_count(owner->handover) < rte_ring_get_capacity(owner->handover) / 2)
		return true;
	rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_COPIES, 1);
	return false;
}
