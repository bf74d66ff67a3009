/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Raw packets: frames matched with flows, and copied to queue pairs.
 */
#include "rcd_raw.h"

#include <assert.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "rcd_budget.h"
#include "rcd_counter.h"
#include "rcd_eth.h"
#include "rcd_flow.h"
#include "rcd_hand_over.h"
#include "rcd_ip.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_rx.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_udp.h"

static_assert(RCD_FLOWS_MAX <= 64, "a word has a bit for each context with flows");
static_assert(RCD_LCORES_MAX <= 64, "and for each lcore");

/** Where a copy for another lcore comes from: its packet type, which drivers set for others. */
enum {
	RAW_RECEIVED,
	RAW_SENT,
};

/** Checksums of a frame: not looked at, right, wrong or not there. */
enum {
	SUMS_UNKNOWN,
	SUMS_RIGHT,
	SUMS_OTHER,
};

#define TCP_LEN      20
#define TCP_CSUM_AT  16
#define UDP_CSUM_AT  6
#define IPV4_CSUM_AT 10
#define FLAG_MORE    1

/** Bytes of a frame that are copied, and summed, for a unit of work. */
#define WORK_BYTES 512

/* A frame, and what is known of it. */
struct raw_frame {
	const struct rte_mbuf *mbuf;
	const uint8_t *data;
	uint32_t len;
	bool sent;    /**< by a queue pair of the device */
	bool handed;  /**< by another lcore, which counted it */
	uint8_t sums; /**< what is known of its checksums */
	struct rcd_flow_key key;
	struct rcd_flow_layout layout;
};

static inline bool
raw_ipv4_is_short(const uint8_t *ip)
{
	return (ip[0] & 0xf) == RCD_IPV4_LEN / 4;
}

/*
 * Whether its IPv4 header and its TCP or UDP are whole, without options and no fragment: what
 * checksums are put into and judged.
 */
static bool
raw_has_sums(const struct raw_frame *frame)
{
	const uint8_t *ip = frame->data + frame->layout.l3;
	uint32_t hdr_len = frame->key.l4 == RCD_IP_PROTO_UDP ? RCD_UDP_LEN : TCP_LEN;
	uint32_t ip_len;

	if (frame->key.version != 4 || frame->key.l4 == 0 || frame->key.ip_flags & FLAG_MORE ||
		!raw_ipv4_is_short(ip))
		return false;
	ip_len = rcd_get_be16(ip + 2);
	return ip_len >= RCD_IPV4_LEN + hdr_len && ip_len <= frame->len - frame->layout.l3;
}

static bool
raw_sum(const struct raw_frame *frame)
{
	const struct rte_ipv4_hdr *ip = (const void *)(frame->data + frame->layout.l3);
	const uint8_t *l4 = frame->data + frame->layout.l4;

	if (!raw_has_sums(frame) || rte_raw_cksum(ip, RCD_IPV4_LEN) != 0xffff)
		return false;
	/* A UDP checksum of 0 is none. */
	if (frame->key.l4 == RCD_IP_PROTO_UDP && rcd_get_be16(l4 + UDP_CSUM_AT) == 0)
		return true;
	/* With the right one in its place the sum is 0, which UDP writes as its complement. */
	return rte_ipv4_udptcp_cksum(ip, l4) == (frame->key.l4 == RCD_IP_PROTO_UDP ? 0xffff : 0);
}

/* Once, however many it is given to. */
static bool
raw_sums_right(struct raw_frame *frame)
{
	if (frame->sums == SUMS_UNKNOWN)
		frame->sums = raw_sum(frame) ? SUMS_RIGHT : SUMS_OTHER;
	return frame->sums == SUMS_RIGHT;
}

static void
raw_put_sums(const struct raw_frame *frame, uint8_t *data)
{
	struct rte_ipv4_hdr *ip = (void *)(data + frame->layout.l3);
	uint8_t *l4 = data + frame->layout.l4;
	uint32_t at = frame->key.l4 == RCD_IP_PROTO_UDP ? UDP_CSUM_AT : TCP_CSUM_AT;
	uint16_t sum;

	if (frame->key.version != 4 || !raw_ipv4_is_short((const uint8_t *)ip))
		return;
	memset((uint8_t *)ip + IPV4_CSUM_AT, 0, 2);
	sum = rte_ipv4_cksum(ip);
	memcpy((uint8_t *)ip + IPV4_CSUM_AT, &sum, 2);
	if (!raw_has_sums(frame))
		return;
	memset(l4 + at, 0, 2);
	sum = rte_ipv4_udptcp_cksum(ip, l4);
	memcpy(l4 + at, &sum, 2);
}

static void
raw_look(struct raw_frame *frame, const struct rte_mbuf *mbuf, bool sent, bool handed)
{
	frame->mbuf = mbuf;
	frame->data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	frame->len = rte_pktmbuf_data_len(mbuf);
	frame->sent = sent;
	frame->handed = handed;
	frame->sums = SUMS_UNKNOWN;
	rcd_flow_key_of(frame->data, frame->len, &frame->key, &frame->layout);
}

static bool
raw_wants(const struct rcd_raw_flow *flow, const struct raw_frame *frame)
{
	/* A group's address has the lowest bit of the first byte. */
	if ((flow->kind == RCD_FLOW_MULTICAST || flow->kind == RCD_FLOW_ALL) &&
		(frame->sent || (flow->kind == RCD_FLOW_MULTICAST && !(frame->key.dst_mac[0] & 1))))
		return false;
	return rcd_flow_key_matches(&frame->key, &flow->value, &flow->mask);
}

/* Lcores share the count: there is one for each flow that may be, not for each lcore as well. */
static inline void
raw_count(struct rcd_raw_count *count, const struct raw_frame *frame)
{
	if (frame->handed)
		return;
	__atomic_fetch_add(&count->frames, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&count->bytes, frame->len, __ATOMIC_RELAXED);
}

/* A copy of it was made. */
static inline void
raw_worked(struct rcd_lcore *lcore, const struct raw_frame *frame)
{
	lcore->work += 1 + frame->len / WORK_BYTES;
}

static void
raw_give(struct rcd_lcore *lcore, struct rcd_hqp *hqp, struct raw_frame *frame)
{
	rcd_qp_rx_frame(hqp->qp, frame->data, frame->len, raw_sums_right(frame));
	__atomic_store_n(
		&hqp->rx_bytes, hqp->rx_bytes + frame->len + RCD_FRAME_OVERHEAD, __ATOMIC_RELAXED);
	rcd_lcore_touch(lcore, hqp);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	raw_worked(lcore, frame);
}

static void
raw_pass_on(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct raw_frame *frame,
	uint64_t others, bool sniffed)
{
	for (; others != 0; others &= others - 1) {
		struct rcd_lcore *owner = lcore->lcores->lcore[__builtin_ctzll(others)];
		struct rte_mbuf *copy;

		if (!rcd_hand_over_fits(lcore, owner, lport))
			continue;
		copy = rte_pktmbuf_copy(frame->mbuf, lcore->pool, 0, UINT32_MAX);
		if (copy == NULL) {
			rcd_counter_add(
				rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_HANDOVER, 1);
			return;
		}
		raw_worked(lcore, frame);
		copy->packet_type = frame->sent ? RAW_SENT : RAW_RECEIVED;
		if (sniffed)
			rcd_hand_over_sniffed(lcore, owner, lport, copy);
		else
			rcd_hand_over(lcore, owner, lport, copy);
	}
}

/* @return the bit of the lcore that the queue pair is on; 0: it is here, or nowhere */
static uint64_t
raw_lead(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_raw_flow *flow,
	struct raw_frame *frame)
{
	uint32_t slot = flow->qpn % RCD_QP_SLOTS;
	struct rcd_hqp *hqp = lcore->qps[slot];
	uint8_t owner;

	if (hqp != NULL && hqp->qpn == flow->qpn && hqp->raw && hqp->lport == lport) {
		raw_give(lcore, hqp, frame);
		return 0;
	}
	owner = __atomic_load_n(&lcore->lcores->qp_owner[slot], __ATOMIC_RELAXED);
	return owner != 0 && owner - 1u != lcore->index ? UINT64_C(1) << (owner - 1u) : 0;
}

/*
 * Each context once, by the first of its flows in this part of the table that wants the frame.
 *
 * @return lcores of others
 */
static uint64_t
raw_match(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_raw_table *table,
	uint32_t first, uint32_t end, struct raw_frame *frame)
{
	uint64_t served = 0;
	uint64_t others = 0;

	for (uint32_t i = first; i < end; i++) {
		const struct rcd_raw_flow *flow = &table->flows[i];

		if (served >> flow->group & 1 || !raw_wants(flow, frame))
			continue;
		served |= UINT64_C(1) << flow->group;
		raw_count(&table->counts[flow->count], frame);
		if (!flow->drop)
			others |= raw_lead(lcore, lport, flow, frame);
	}
	lcore->work++;
	return others;
}

/* Sniffers see it elsewhere. @return lcores of others */
static uint64_t
raw_match_flows(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct raw_frame *frame)
{
	const struct rcd_raw_table *table = __atomic_load_n(&lport->flows, __ATOMIC_ACQUIRE);

	if (table == NULL || rcd_flow_key_is_roce(&frame->key))
		return 0;
	return raw_match(lcore, lport, table, 0, table->count - table->sniffers, frame);
}

/* With the tag that the port took off. @return NULL: no buffer */
static struct rte_mbuf *
raw_with_tag(struct rcd_lcore *lcore, const struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(mbuf, lcore->pool, 0, UINT32_MAX);

	if (copy == NULL)
		return NULL;
	copy->vlan_tci = mbuf->vlan_tci;
	if (rte_vlan_insert(&copy) == 0)
		return copy;
	rte_pktmbuf_free(copy);
	return NULL;
}

void
rcd_raw_rx(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rte_mbuf *mbuf,
	bool handed)
{
	struct rte_mbuf *copy = NULL;
	struct raw_frame frame;
	uint64_t others;

	RCD_ON_LCORE(lcore);
	/* Longer than any frame that there is room for. */
	if (mbuf->nb_segs != 1)
		return;
	if (!handed && rcd_rx_stripped_vlan(mbuf) != 0) {
		copy = raw_with_tag(lcore, mbuf);
		if (copy == NULL)
			return;
		mbuf = copy;
	}
	raw_look(&frame, mbuf, handed && mbuf->packet_type == RAW_SENT, handed);
	others = raw_match_flows(lcore, lport, &frame);
	if (!handed)
		raw_pass_on(lcore, lport, &frame, others, false);
	rte_pktmbuf_free(copy);
}

void
rcd_raw_tx(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf, bool csum)
{
	struct raw_frame frame;

	RCD_ON_LCORE(lcore);
	if (!csum && __atomic_load_n(&lport->flows, __ATOMIC_RELAXED) == NULL)
		return;
	raw_look(&frame, mbuf, true, false);
	if (csum)
		raw_put_sums(&frame, rte_pktmbuf_mtod(mbuf, uint8_t *));
	raw_pass_on(lcore, lport, &frame, raw_match_flows(lcore, lport, &frame), false);
}

void
rcd_raw_show(struct rcd_lport *lport, const struct rcd_raw_table *table, bool sniffed)
{
	bool copies = sniffed && table != NULL && table->sniffers > 0;

	RCD_ON_CONTROL();
	__atomic_store_n(&lport->flows, table, __ATOMIC_RELEASE);
	__atomic_store_n(&lport->sniffed, copies ? table : NULL, __ATOMIC_RELEASE);
	rcd_lcores_synchronize(lport->lcores);
}

/* @return whether it could be shown */
static bool
raw_sniff(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_raw_table *table,
	const struct rte_mbuf *mbuf, bool sent, bool handed)
{
	struct rte_mbuf *copy = NULL;
	struct raw_frame frame;
	uint64_t others;

	if (mbuf->nb_segs != 1)
		return false;
	if (!sent && !handed && rcd_rx_stripped_vlan(mbuf) != 0) {
		copy = raw_with_tag(lcore, mbuf);
		if (copy == NULL)
			return false;
		mbuf = copy;
	}
	raw_look(&frame, mbuf, sent, handed);
	others = raw_match(
		lcore, lport, table, table->count - table->sniffers, table->count, &frame);
	if (!handed)
		raw_pass_on(lcore, lport, &frame, others, true);
	rte_pktmbuf_free(copy);
	return true;
}

/* All sniffers get a frame, or none: nobody has the part of another, who came later. */
static void
raw_sniff_burst(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf **mbufs,
	uint32_t count, bool sent, bool handed)
{
	const struct rcd_raw_table *table = __atomic_load_n(&lport->sniffed, __ATOMIC_ACQUIRE);
	uint32_t missed = 0;

	for (uint32_t i = 0; table != NULL && i < count; i++) {
		uint32_t work = lcore->work;

		if (lcore->sniff_work >= RCD_WORK_SNIFF ||
			!raw_sniff(lcore, lport, table, mbufs[i], sent, handed))
			missed++;
		/* Of the budgets of others nothing is taken. */
		lcore->sniff_work += lcore->work - work;
		lcore->work = work;
	}
	if (missed > 0)
		rcd_counter_add(
			rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_COPIES, missed);
}

void
rcd_raw_sniff(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf **mbufs,
	uint32_t count, bool sent)
{
	RCD_ON_LCORE(lcore);
	/* The receive path does so in any case. One that no buffer holds stays as it is. */
	for (uint32_t i = 0; !sent && i < count; i++)
		if (mbufs[i]->nb_segs > 1)
			(void)rte_pktmbuf_linearize(mbufs[i]);
	raw_sniff_burst(lcore, lport, mbufs, count, sent, false);
}

void
rcd_raw_sniff_handed(struct rcd_lcore *lcore, const struct rcd_lport *lport,
	struct rte_mbuf **mbufs, uint32_t count)
{
	RCD_ON_LCORE(lcore);
	raw_sniff_burst(lcore, lport, mbufs, count, false, true);
}
