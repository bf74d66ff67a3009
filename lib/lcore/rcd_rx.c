/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The receive path: bursts from ports and rings, parsed and checked, to the queue pairs.
 */
#include "rcd_rx.h"

#include <rte_branch_prediction.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "rcd_bth.h"
#include "rcd_budget.h"
#include "rcd_counter.h"
#include "rcd_exception.h"
#include "rcd_gid_table.h"
#include "rcd_hand_over.h"
#include "rcd_late.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_link.h"
#include "rcd_lport.h"
#include "rcd_mcast.h"
#include "rcd_opcode.h"
#include "rcd_pkt.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_raw.h"
#include "rcd_rx_keep.h"
#include "rcd_stage.h"
#include "rcd_stage_enter.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_tx.h"
#include "rcd_ucopy.h"
#include "rcd_verdict.h"

#define PREFETCH 4                   /**< packets ahead */
#define MANY     (RCD_BURST_MAX / 8) /**< packets in a burst: two turns of 4096 bytes each */

/** Packets whose ICRC is checked at once: their payload is still near when it is copied. */
#define ICRC_GROUP 4

/* Where the packet at hand belongs. */
enum fate {
	FATE_OURS,
	FATE_OTHER_LCORE, /**< the buffer went there */
	FATE_LATER,       /**< the buffer is in the line of those for groups */
	FATE_KERNEL,      /**< the buffer is on its way there */
	FATE_NOWHERE,
};

static inline struct rcd_hqp *
rx_qp_of(const struct rcd_lcore *lcore, const struct rcd_pkt *pkt)
{
	return lcore->qps[pkt->roce.bth.dest_qpn.val % RCD_QP_SLOTS];
}

/* Whether a device has an address in a VLAN, and so hears the groups there. */
static bool
rx_in_vlan(const struct rcd_lport *lport, uint16_t vlan_id)
{
	const struct rcd_gid_table *gids = &rcd_lport_view(lport)->gids;

	for (uint32_t i = 0; i < gids->count; i++)
		if (gids->entries[i].used && gids->entries[i].vlan_id == vlan_id)
			return true;
	return false;
}

/* To a queue pair whose address is in this VLAN? A tag of 0 is none. */
static bool
rx_path_is_ours(struct rcd_lcore *lcore, const struct rcd_hqp *hqp, const struct rcd_pkt *pkt,
	uint16_t vlan_id)
{
	const struct rcd_lport *lport = hqp->lport;
	enum rcd_counter counter = RCD_COUNTER_RX_DROP_VLAN;

	if (likely(!hqp->datagram)) {
		/* Addresses are compared by the queue pair with those of its peer. */
		if (likely(hqp->vlan_id == vlan_id))
			return true;
	} else {
		const struct rcd_gid_table *gids = &rcd_lport_view(lport)->gids;
		int at = rcd_gid_table_find(gids, &pkt->dgid);

		if (at >= 0 && gids->entries[at].vlan_id == vlan_id)
			return true;
		if (at < 0)
			counter = RCD_COUNTER_RX_DROP_ADDRESS;
	}
	rcd_counter_add(rcd_lcore_counters(lcore, lport), counter, 1);
	return false;
}

static bool
rx_member_admits(void *arg, const struct rcd_pkt *pkt)
{
	return !rcd_tx_came_back(arg, pkt) && rcd_ucopy_admits_any(arg);
}

/* To all members here, or into the line: one packet is as many as there are members. */
static enum fate
rx_members(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_pkt *pkt,
	struct rte_mbuf *mbuf)
{
	struct rcd_rest *rest = &lcore->rest;

	if (rest->groups_turn ||
		(lcore->work < rest->groups_limit && rte_ring_empty(rest->groups))) {
		lcore->work += rcd_mcast_rx(
			lcore->mcast[lport->index], pkt, lcore->now_ns, rx_member_admits);
		return FATE_OURS;
	}
	mbuf->hash.usr = lport->index;
	if (rte_ring_enqueue(rest->groups, mbuf) == 0)
		return FATE_LATER;
	rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_GROUPS, 1);
	return FATE_OURS;
}

/* A copy for each other lcore; the groups of this one get theirs here. */
static enum fate
rx_multicast(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_pkt *pkt,
	struct rte_mbuf *mbuf, bool handed)
{
	struct rcd_mcast_table *table = lcore->mcast[lport->index];
	uint32_t got = table != NULL ? rcd_mcast_members(table, &pkt->dgid) : 0;
	bool here = got > 0;
	for (uint32_t i = 0; !handed && i < lcore->lcores->count; i++) {
		struct rcd_lcore *other = lcore->lcores->lcore[i];

		if (other == lcore ||
			__atomic_load_n(&other->mcast[lport->index], __ATOMIC_RELAXED) == NULL)
			continue;
		rte_pktmbuf_refcnt_update(mbuf, 1);
		rcd_hand_over(lcore, other, lport, mbuf);
		got++;
	}
	if (got == 0)
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_NO_QP, 1);
	return here ? rx_members(lcore, lport, pkt, mbuf) : FATE_OURS;
}

/* To no queue pair of this lcore. */
static __rte_noinline enum fate
rx_elsewhere(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_pkt *pkt,
	struct rte_mbuf *mbuf, bool handed)
{
	uint32_t qpn = pkt->roce.bth.dest_qpn.val;
	struct rcd_counters *counters = rcd_lcore_counters(lcore, lport);
	uint16_t vlan_id = rcd_link_vlan(&pkt->eth, rcd_rx_stripped_vlan(mbuf));
	uint8_t owner;

	if (qpn == RCD_QPN_MULTICAST) {
		if (!rx_in_vlan(lport, vlan_id)) {
			rcd_counter_add(counters, RCD_COUNTER_RX_DROP_VLAN, 1);
			return FATE_NOWHERE;
		}
		return rx_multicast(lcore, lport, pkt, mbuf, handed);
	}
	if (qpn == RCD_QPN_GSI) {
		lcore->lcores->ops->rx_gsi(lcore->lcores->arg, lcore, lport, pkt, vlan_id);
		return FATE_OURS;
	}
	owner = __atomic_load_n(&lcore->lcores->qp_owner[qpn % RCD_QP_SLOTS], __ATOMIC_RELAXED);
	if (handed || owner == 0 || owner - 1u == lcore->index) {
		rcd_counter_add(counters, RCD_COUNTER_RX_DROP_NO_QP, 1);
		return FATE_NOWHERE;
	}
	rcd_hand_over(lcore, lcore->lcores->lcore[owner - 1u], lport, mbuf);
	return FATE_OTHER_LCORE;
}

/*
 * Who sends as well does not wait for his turn, nor who has many packets of a burst up to this one:
 * as many more come before his peer hears. To keep a few costs less than a burst for each hole.
 */
static __rte_noinline bool
rx_is_urgent(const struct rcd_lcore *lcore, const struct rcd_hqp *hqp, const struct rcd_pkt *pkt)
{
	uint32_t count = hqp->turn.list == &lcore->turns.fresh ? 0 : MANY;

	for (uint32_t i = (uint32_t)(pkt - lcore->pkts) + 1; i-- > 0 && count < MANY;)
		count += lcore->verdicts[i] == RCD_VERDICT_OK &&
			lcore->pkts[i].roce.bth.dest_qpn.val == hqp->qpn;
	return count == MANY;
}

static __rte_always_inline enum fate
rx_packet(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_pkt *pkt,
	struct rte_mbuf *mbuf, bool handed)
{
	struct rcd_hqp *hqp = rx_qp_of(lcore, pkt);
	uint32_t len = rte_pktmbuf_data_len(mbuf);
	enum rcd_rx_verdict verdict;

	/* The numbers of groups and of management are no queue pair's. */
	if (unlikely(hqp == NULL || hqp->qpn != pkt->roce.bth.dest_qpn.val || hqp->lport != lport))
		return rx_elsewhere(lcore, lport, pkt, mbuf, handed);
	if (!rx_path_is_ours(lcore, hqp, pkt, rcd_link_vlan(&pkt->eth, rcd_rx_stripped_vlan(mbuf))))
		return FATE_NOWHERE;
	if (unlikely(hqp->may_copy) && !rcd_ucopy_admits(hqp, pkt)) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_COPY_BUSY, 1);
		return FATE_NOWHERE;
	}
	if (rcd_opcode_is_response(pkt->roce.bth.opcode)) {
		uint32_t done = rcd_qp_sq_done(hqp->qp);

		verdict = rcd_qp_rx(hqp->qp, pkt, lcore->now_ns);
		/* One ends up to a thousand requests, whether they are told of or not. */
		lcore->work += rcd_qp_sq_done(hqp->qp) - done;
	} else {
		verdict = rcd_qp_rx(hqp->qp, pkt, lcore->now_ns);
	}
	/* The buffer may be kept, and even be given back already (rcd_rx_keep.h). */
	__atomic_store_n(
		&hqp->rx_bytes, hqp->rx_bytes + len + RCD_FRAME_OVERHEAD, __ATOMIC_RELAXED);
	rcd_lcore_touch(lcore, hqp);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	/* Who sends goes on until he hears of it, and all that he sends has to be kept. */
	if (unlikely(verdict == RCD_RX_KEPT || verdict == RCD_RX_OUT_OF_SEQUENCE) &&
		!rcd_turn_is_urgent(&lcore->turns, &hqp->turn) && rcd_qp_tells_gap(hqp->qp) &&
		rx_is_urgent(lcore, hqp, pkt))
		rcd_turn_urge(&lcore->turns, &hqp->turn);
	return FATE_OURS;
}

/*
 * Whether RoCE, damaged or not, comes to us: what is for another address, in another VLAN or for
 * another MAC may be the kernel's to forward.
 */
static bool
rx_comes_to_us(
	const struct rcd_lport *lport, const struct rcd_pkt *pkt, const struct rte_mbuf *mbuf)
{
	const struct rcd_lport_view *view;
	int at;

	if (rcd_gid_is_multicast(&pkt->dgid))
		return true;
	view = rcd_lport_view(lport);
	at = rcd_gid_table_find(&view->gids, &pkt->dgid);
	return at >= 0 &&
		view->gids.entries[at].vlan_id ==
		rcd_link_vlan(&pkt->eth, rcd_rx_stripped_vlan(mbuf)) &&
		memcmp(pkt->eth.dst, view->mac, RCD_MAC_LEN) == 0;
}

/* Whether RoCE is for us, where the kernel may have a part in the port. */
static bool
rx_is_ours(const struct rcd_lport *lport, const struct rcd_pkt *pkt, const struct rte_mbuf *mbuf)
{
	if (likely(lport->exception == NULL))
		return true;
	/* Longer than any packet of RoCE's, whatever its first piece says. */
	return mbuf->nb_segs == 1 && rx_comes_to_us(lport, pkt, mbuf);
}

/* What is no RoCE, or none for us. Damaged RoCE for us, which is counted, is not the kernel's. */
static __rte_noinline enum fate
rx_other(struct rcd_lcore *lcore, const struct rcd_lport *lport, uint32_t i, struct rte_mbuf *mbuf,
	bool handed)
{
	enum rcd_verdict verdict = lcore->verdicts[i];

	/* Of what is no RoCE only copies for flows are handed over. */
	if (handed || __atomic_load_n(&lport->flows, __ATOMIC_RELAXED) != NULL)
		rcd_raw_rx(lcore, lport, mbuf, handed);
	if (handed)
		return FATE_NOWHERE;
	if (lport->answers) {
		rcd_link_rx(lcore, lport, verdict, &lcore->frames[i], rcd_rx_stripped_vlan(mbuf));
		return FATE_NOWHERE;
	}
	if (lport->exception == NULL ||
		(verdict != RCD_VERDICT_OK && lcore->pkts[i].dport == RCD_UDP_PORT_ROCE &&
			rx_comes_to_us(lport, &lcore->pkts[i], mbuf)))
		return FATE_NOWHERE;
	return rcd_exception_put(lcore, lport, mbuf) ? FATE_KERNEL : FATE_NOWHERE;
}

/*
 * What a budget leaves of a burst, from the first packet that was not looked at: the next poll
 * goes on with it as what it was, checks and all. There is no older rest then: who has one takes
 * no burst that may leave another.
 */
static void
rx_leave_rest(
	struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint32_t count, bool looped, bool handed)
{
	struct rcd_rest *rest = &lcore->rest;

	rest->looped = looped;
	rest->handed = handed;
	memcpy(rest->mbufs + rest->count, mbufs, count * sizeof(mbufs[0]));
	rest->count += count;
}

/*
 * Packets in one piece, as frames to parse. One that no buffer holds is no RoCE, and may be the
 * kernel's: then its first piece is looked at.
 *
 * @return how many: first in mbufs, as in the frames
 */
static __rte_always_inline uint32_t
rx_frames(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf **mbufs,
	uint32_t count)
{
	struct rcd_counters *counters = rcd_lcore_counters(lcore, lport);
	uint32_t whole = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = mbufs[i];

		if (unlikely(mbuf->nb_segs > 1) && rte_pktmbuf_linearize(mbuf) != 0 &&
			lport->exception == NULL) {
			rcd_counter_add(counters, RCD_COUNTER_RX_DROP_SEGMENTS, 1);
			rte_pktmbuf_free(mbuf);
			continue;
		}
		mbufs[whole] = mbuf;
		lcore->frames[whole].data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
		lcore->frames[whole++].len = rte_pktmbuf_data_len(mbuf);
	}
	return whole;
}

/*
 * Packets whose ICRC may be wrong only because the port does not show their identification. Out of
 * line: ports that have such are slow, and there are few of other ports whose ICRC is wrong.
 */
static __rte_noinline void
rx_try_any_id(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf **mbufs,
	uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		if (lcore->verdicts[i] != RCD_VERDICT_ICRC ||
			(mbufs[i]->ol_flags & lport->any_id) == 0 ||
			!rcd_pkt_icrc_any_id(&lcore->pkts[i]))
			continue;
		lcore->verdicts[i] = RCD_VERDICT_OK;
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_ANY_ID, 1);
	}
}

/* The next packets of a burst, a few at a time. */
static __rte_always_inline void
rx_check(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf **mbufs,
	uint32_t first, uint32_t count)
{
	uint32_t group = RTE_MIN(count - first, (uint32_t)ICRC_GROUP);

	if (unlikely(rcd_pkt_icrc_check_burst(
			     lcore->pkts + first, lcore->verdicts + first, group) != group) &&
		lport->any_id != 0)
		rx_try_any_id(lcore, lport, mbufs, first, first + group);
}

/*
 * A burst of one device. Handed packets were parsed, checked and counted by another lcore;
 * packets of our own making need no check.
 *
 * @return how many a budget left: the last ones, which are in the rest
 */
static __rte_always_inline uint32_t
rx_burst(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf **mbufs,
	uint32_t count, bool looped, bool handed)
{
	struct rcd_counters *counters = rcd_lcore_counters(lcore, lport);
	uint64_t fine_bytes = 0;
	uint32_t fine = 0;
	uint32_t left = 0;

	count = rx_frames(lcore, lport, mbufs, count);
	rcd_pkt_parse_burst(lcore->frames, lcore->pkts, lcore->verdicts, count);
	lcore->burst = mbufs;
	for (uint32_t i = 0; i < count; i++) {
		enum fate fate = FATE_NOWHERE;

		if (i % ICRC_GROUP == 0 && !looped && !handed) {
			rcd_stage_enter(lcore, RCD_STAGE_RX);
			rx_check(lcore, lport, mbufs, i, count);
			rcd_stage_enter(lcore, RCD_STAGE_TRANSPORT);
		}
		if (i + PREFETCH < count && lcore->verdicts[i + PREFETCH] == RCD_VERDICT_OK)
			rte_prefetch0(rx_qp_of(lcore, &lcore->pkts[i + PREFETCH]));
		if (lcore->verdicts[i] == RCD_VERDICT_OK) {
			fine++;
			fine_bytes += lcore->frames[i].len;
			if (looped || handed || rx_is_ours(lport, &lcore->pkts[i], mbufs[i]))
				fate = rx_packet(lcore, lport, &lcore->pkts[i], mbufs[i], handed);
			else
				fate = rx_other(lcore, lport, i, mbufs[i], handed);
		} else {
			if (!handed)
				rcd_verdict_count(
					counters, lcore->verdicts[i], lcore->frames[i].len);
			fate = rx_other(lcore, lport, i, mbufs[i], handed);
		}
		if (fate != FATE_OURS && fate != FATE_NOWHERE)
			mbufs[i] = NULL;
		if (unlikely(lcore->work >= lcore->rest.limit) && i + 1 < count) {
			left = count - i - 1;
			count = i + 1;
			for (uint32_t k = count; k < count + left; k++)
				mbufs[k]->hash.usr = lport->index;
			rx_leave_rest(lcore, mbufs + count, left, looped, handed);
		}
	}
	if (!handed)
		rcd_verdict_count_fine(counters, fine, fine_bytes);
	lcore->burst = NULL;
	rcd_rx_free_burst(lcore, mbufs, count);
	rcd_stage_enter(lcore, RCD_STAGE_RX);
	return left;
}

/* Copies for sniffers that another lcore made, of one device. */
static __rte_noinline void
rx_sniffed(struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint32_t count)
{
	const struct rcd_txq *txq = lcore->txq_of[mbufs[0]->hash.usr & ~RCD_HAND_OVER_SNIFFED];

	if (txq != NULL)
		rcd_raw_sniff_handed(lcore, txq->lport, mbufs, count);
	rte_pktmbuf_free_bulk(mbufs, count);
}

/*
 * Packets that carry the number of their device; neighbours of one are handled together.
 *
 * @return how many were handled
 */
static uint32_t
rx_numbered(
	struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint32_t count, bool looped, bool handed)
{
	uint32_t first = 0;
	uint32_t left = 0;

	while (first < count && left == 0) {
		uint32_t index = mbufs[first]->hash.usr;
		uint32_t end = first + 1;

		while (end < count && mbufs[end]->hash.usr == index)
			end++;
		if (unlikely(index & RCD_HAND_OVER_SNIFFED))
			rx_sniffed(lcore, mbufs + first, end - first);
		else if (lcore->txq_of[index] != NULL)
			left = rx_burst(lcore, lcore->txq_of[index]->lport, mbufs + first,
				end - first, looped, handed);
		else
			rte_pktmbuf_free_bulk(mbufs + first, end - first);
		first = end;
	}
	if (unlikely(left > 0))
		rx_leave_rest(lcore, mbufs + first, count - first, looped, handed);
	return first - left;
}

static uint32_t
rx_ring(struct rcd_lcore *lcore, struct rte_ring *ring, uint32_t budget, bool looped)
{
	struct rte_mbuf *mbufs[RCD_BURST_MAX];
	uint32_t count = rte_ring_dequeue_burst(ring, (void **)mbufs, budget, NULL);

	return rx_numbered(lcore, mbufs, count, looped, !looped);
}

/* What the poll before left of a burst. */
static uint32_t
rx_rest(struct rcd_lcore *lcore)
{
	struct rcd_rest *rest = &lcore->rest;
	struct rte_mbuf *mbufs[RCD_BURST_MAX];
	uint32_t count = rest->count;

	memcpy(mbufs, rest->mbufs, count * sizeof(mbufs[0]));
	rest->count = 0;
	return rx_numbered(lcore, mbufs, count, rest->looped, rest->handed);
}

/*
 * Packets for groups that wait, one at least. Other lcores have had theirs. They leave no rest: the
 * limit of bursts is not set yet.
 */
static uint32_t
rx_groups(struct rcd_lcore *lcore)
{
	struct rcd_rest *rest = &lcore->rest;
	uint32_t done = 0;

	rest->groups_turn = true;
	while (lcore->work < rest->groups_limit && !rte_ring_empty(rest->groups))
		done += rx_ring(lcore, rest->groups, 1, false);
	rest->groups_turn = false;
	return done;
}

static inline uint16_t
rx_take(struct rcd_lcore *lcore, const struct rcd_lport *lport, uint16_t queue,
	struct rte_mbuf **mbufs, uint16_t burst)
{
	uint16_t count = rte_eth_rx_burst(lport->port_id, queue, mbufs, burst);

	/* Here: what is left of a burst is taken again, from elsewhere. */
	if (unlikely(rcd_raw_is_sniffed(lport)))
		rcd_raw_sniff(lcore, lport, mbufs, count, false);
	return count;
}

/*
 * The queue of what is no RoCE: a few frames, so that a flood of them fills that queue and delays
 * nobody. RoCE in it, fragments say, is as any.
 */
static uint32_t
rx_exception_queue(struct rcd_lcore *lcore, const struct rcd_lport *lport)
{
	struct rte_mbuf *mbufs[RCD_WORK_OTHER];
	uint16_t count;

	if (lcore->index != 0 || lcore->rest.count > 0)
		return 0;
	count = rx_take(lcore, lport, lport->exception_queue, mbufs, RCD_WORK_OTHER);
	return count > 0 ? count - rx_burst(lcore, lport, mbufs, count, false, false) : 0;
}

static uint32_t
rx_port(struct rcd_lcore *lcore, const struct rcd_lport *lport, uint16_t burst)
{
	struct rte_mbuf *mbufs[RCD_BURST_MAX];
	uint32_t done = 0;
	uint16_t count;

	if (lcore->index >= lport->queues)
		return 0;
	count = rx_take(lcore, lport, (uint16_t)lcore->index, mbufs, burst);
	if (count > 0)
		done = count - rx_burst(lcore, lport, mbufs, count, false, false);
	if (unlikely(lport->exception != NULL)) {
		if (lport->exception_queue != 0)
			done += rx_exception_queue(lcore, lport);
		done += rcd_exception_poll(lcore, lport);
	}
	return done;
}

/* The ports, and behind them the rings. */
static uint32_t
rx_source(struct rcd_lcore *lcore, uint32_t source, uint16_t burst)
{
	if (source < lcore->txq_count)
		return rx_port(lcore, lcore->txqs[source]->lport, burst);
	if (source == lcore->txq_count)
		return rte_ring_empty(lcore->loop) ? 0 : rx_ring(lcore, lcore->loop, burst, true);
	return rte_ring_empty(lcore->handover) ? 0 : rx_ring(lcore, lcore->handover, burst, false);
}

uint32_t
rcd_rx_poll(struct rcd_lcore *lcore, uint32_t budget)
{
	struct rcd_rest *rest = &lcore->rest;
	uint16_t burst = (uint16_t)(budget < RCD_BURST_MAX ? budget : RCD_BURST_MAX);
	uint32_t source = rest->source;
	uint32_t done = 0;

	RCD_ON_LCORE(lcore);
	rest->limit = UINT32_MAX;
	rest->groups_limit = lcore->work + RCD_WORK_GROUPS;
	if (unlikely(!rte_ring_empty(rest->groups)))
		done += rx_groups(lcore);
	rest->limit = lcore->work + RCD_WORK_RX;
	if (unlikely(rest->count > 0))
		done += rx_rest(lcore);
	for (; source < lcore->txq_count + 2 && rest->count == 0; source++)
		done += rx_source(lcore, source, burst);
	rest->source = source < lcore->txq_count + 2 ? source : 0;
	if (unlikely(rest->count > 0 || !rte_ring_empty(rest->groups)))
		rcd_late_spent(lcore, NULL);
	return done;
}

uint32_t
rcd_rx_wires(struct rcd_lcore *lcore)
{
	uint32_t done = 0;

	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0;
		i < lcore->txq_count && lcore->rest.count == 0 && lcore->work < lcore->rest.limit;
		i++)
		if (lcore->txqs[i]->lport->wire)
			done += rx_port(lcore, lcore->txqs[i]->lport, RCD_TURN_URGENT);
	if (unlikely(lcore->rest.count > 0))
		rcd_late_spent(lcore, NULL);
	return done;
}
