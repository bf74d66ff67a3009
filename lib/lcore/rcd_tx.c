/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The send path: queue pairs in turns, each packet built in a buffer with its payload copied once,
 * bursts to the ports.
 */
#include "rcd_tx.h"

#include <rte_branch_prediction.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "rcd_bits.h"
#include "rcd_budget.h"
#include "rcd_counter.h"
#include "rcd_eth.h"
#include "rcd_gid.h"
#include "rcd_hop_word.h"
#include "rcd_ip.h"
#include "rcd_late.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_mcast.h"
#include "rcd_mr.h"
#include "rcd_pkt.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_raw.h"
#include "rcd_roce.h"
#include "rcd_stage.h"
#include "rcd_stage_enter.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_ucopy.h"
#include "rcd_udp.h"

/* Class selector 6, network control: what RNICs send CNPs with unless they are told another. */
#define CNP_DSCP 48
/* IEEE 802.1Q, 9.6: the priority of a tag has three bits, a service level four. */
#define PRIORITY_MASK  7u
#define PRIORITY_SHIFT 13

struct rte_mbuf *
rcd_tx_mbuf(struct rcd_lcore *lcore)
{
	struct rte_mbuf *mbuf;

	RCD_ON_LCORE(lcore);
	if (lcore->spare_count == 0) {
		if (rte_mempool_get_bulk(lcore->pool, (void **)lcore->spare, RCD_BURST_MAX / 2) !=
			0) {
			rcd_counter_add(&lcore->counters, RCD_COUNTER_TX_NO_BUFFER, 1);
			return NULL;
		}
		lcore->spare_count = RCD_BURST_MAX / 2;
	}
	mbuf = lcore->spare[--lcore->spare_count];
	/*
	 * What comes from a pool has one reference, one segment and no next (rte_mbuf_raw_alloc()):
	 * this is all in its first cache line, and the second one need not be touched.
	 */
	mbuf->data_off = RTE_PKTMBUF_HEADROOM;
	mbuf->port = RTE_MBUF_PORT_INVALID;
	mbuf->ol_flags = 0;
	mbuf->data_len = 0;
	mbuf->pkt_len = 0;
	return mbuf;
}

/* Move the beginning so that the payload begins a cache line. */
static inline uint8_t *
tx_align_payload(struct rte_mbuf *mbuf, size_t hdr_len)
{
	mbuf->data_off += -(RTE_PKTMBUF_HEADROOM + hdr_len) & (RCD_CACHE_LINE - 1);
	return rte_pktmbuf_mtod(mbuf, uint8_t *);
}

/* To sniffers, what waits for the port and was not there the last time that it was offered. */
static __rte_noinline void
tx_show(struct rcd_lcore *lcore, struct rcd_txq *txq)
{
	uint16_t from = RTE_MAX(txq->first, txq->shown);
	uint16_t end = txq->first + txq->count;

	rcd_raw_sniff(lcore, txq->lport, txq->mbufs + from, end - from, true);
	txq->shown = end;
}

/* What the port does not take stays, and its queue pairs wait. */
static void
tx_flush(struct rcd_lcore *lcore, struct rcd_txq *txq)
{
	uint16_t sent;

	if (txq->count == 0) {
		if (unlikely(!TAILQ_EMPTY(&txq->blocked)))
			rcd_turn_unblock(&lcore->turns, &txq->blocked, RCD_WORK_TURNS);
		return;
	}
	if (unlikely(txq->paused))
		return;
	if (unlikely(rcd_raw_is_sniffed(txq->lport)))
		tx_show(lcore, txq);
	sent = rte_eth_tx_burst(
		txq->lport->port_id, (uint16_t)lcore->index, txq->mbufs + txq->first, txq->count);
	txq->first += sent;
	txq->count -= sent;
	if (txq->count > 0) {
		rcd_counter_add(rcd_lcore_counters(lcore, txq->lport), RCD_COUNTER_TX_WAITS, 1);
		return;
	}
	txq->first = 0;
	txq->shown = 0;
	rcd_turn_unblock(&lcore->turns, &txq->blocked, RCD_WORK_TURNS);
}

void
rcd_tx_flush(struct rcd_lcore *lcore)
{
	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < lcore->txq_count; i++) {
		struct rcd_txq *txq = lcore->txqs[i];
		struct rcd_counters *counters = rcd_lcore_counters(lcore, txq->lport);

		if (txq->fresh > 0) {
			rcd_counter_add(counters, RCD_COUNTER_TX_PACKETS, txq->fresh);
			rcd_counter_add(counters, RCD_COUNTER_TX_BYTES, txq->fresh_bytes);
			txq->fresh = 0;
			txq->fresh_bytes = 0;
		}
		tx_flush(lcore, txq);
	}
}

static inline bool
tx_txq_full(const struct rcd_txq *txq)
{
	return txq->first + txq->count == RCD_BURST_MAX;
}

uint32_t
rcd_tx_room(const struct rcd_lcore *lcore, const struct rcd_lport *lport)
{
	const struct rcd_txq *txq = lcore->txq_of[lport->index];

	RCD_ON_LCORE(lcore);
	return RCD_BURST_MAX - (uint32_t)(txq->first + txq->count);
}

void
rcd_tx_frame(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf)
{
	struct rcd_txq *txq = lcore->txq_of[lport->index];

	RCD_ON_LCORE(lcore);
	if (tx_txq_full(txq))
		tx_flush(lcore, txq);
	if (tx_txq_full(txq)) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_TX_DROP_LINK, 1);
		rte_pktmbuf_free(mbuf);
		return;
	}
	txq->fresh++;
	txq->fresh_bytes += rte_pktmbuf_data_len(mbuf);
	txq->mbufs[txq->first + txq->count++] = mbuf;
}

bool
rcd_tx_loop(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_lport *loop,
	struct rte_mbuf *mbuf)
{
	struct rcd_counters *counters = rcd_lcore_counters(lcore, lport);

	RCD_ON_LCORE(lcore);
	mbuf->hash.usr = loop->index;
	if (rte_ring_enqueue(lcore->loop, mbuf) != 0) {
		rcd_counter_add(counters, RCD_COUNTER_TX_DROP_LINK, 1);
		rte_pktmbuf_free(mbuf);
		return false;
	}
	/* No port sees it; sniffers do, those of one device once. */
	if (unlikely(rcd_raw_is_sniffed(lport)))
		rcd_raw_sniff(lcore, lport, &mbuf, 1, true);
	if (unlikely(loop != lport && rcd_raw_is_sniffed(loop)))
		rcd_raw_sniff(lcore, loop, &mbuf, 1, false);
	rcd_counter_add(counters, RCD_COUNTER_TX_LOOPBACK, 1);
	return true;
}

/* The MAC that packets by this vector go to now. */
static void
tx_dmac(const uint64_t *macs, const struct rcd_av *av, uint8_t *mac)
{
	if (av->hop != RCD_HOP_NONE)
		rcd_hop_mac(rcd_hop_word(macs, av->hop), mac);
	else
		memcpy(mac, av->dmac, RCD_MAC_LEN);
}

const struct rcd_lport *
rcd_tx_path(const struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_av *av,
	uint32_t qpn, uint32_t dest_qpn, struct rcd_path *path)
{
	const struct rcd_lport_view *view = rcd_lport_view(lport);
	const struct rcd_gid_table *gids = &view->gids;
	uint16_t vlan_id = av->sgid_index < gids->count ? gids->entries[av->sgid_index].vlan_id : 0;
	const struct rcd_txq *txq;
	int local;

	RCD_ON_LCORE(lcore);
	*path = (struct rcd_path){
		.tagged = vlan_id != 0,
		.vlan_tci = (uint16_t)(vlan_id | (av->sl & PRIORITY_MASK) << PRIORITY_SHIFT),
		.l3 = rcd_gid_is_ipv4(&av->dgid) ? RCD_L3_IPV4 : RCD_L3_IPV6,
		.tclass = av->tclass,
		.hop_limit = av->hop_limit != 0 ? av->hop_limit : RCD_HOP_LIMIT,
		.sport = rcd_udp_roce_sport(av->flow_label, qpn, dest_qpn),
		.flow_label = av->flow_label,
		.sgid = av->sgid,
		.dgid = av->dgid,
	};
	memcpy(path->smac, view->mac, RCD_MAC_LEN);
	tx_dmac(lcore->hop_macs, av, path->dmac);
	local = rcd_lport_view_local(view, path->dmac);
	if (local < 0)
		return NULL;
	/* It comes to the lcores behind the views that tell of it, and goes before them. */
	txq = lcore->txq_of[local];
	return txq != NULL ? txq->lport : NULL;
}

/* Copies the payload. @return false when the application's memory is gone */
static bool
tx_copy_payload(const struct rcd_hqp *hqp, const struct rcd_tx_pkt *pkt, uint8_t *dst)
{
	const struct rcd_mr_table *mrs = hqp->client->mrs;

	for (uint32_t i = 0; i < pkt->piece_count; i++) {
		if (rcd_mr_read(mrs, dst, pkt->pieces[i].base, pkt->pieces[i].len) != 0)
			return false;
		dst += pkt->pieces[i].len;
	}
	return true;
}

bool
rcd_tx_came_back(const struct rcd_hqp *hqp, const struct rcd_pkt *pkt)
{
	RCD_ON_LCORE(hqp->lcore);
	return hqp->block_loop && pkt->roce.deth.src_qpn.val == hqp->qpn &&
		memcmp(pkt->eth.src, rcd_lport_view(hqp->lport)->mac, RCD_MAC_LEN) == 0;
}

/* Groups on this device may have members in this engine: they get a copy. */
static void
tx_loop_multicast(
	struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy;
	bool members = false;

	for (uint32_t i = 0; i < lcore->lcores->count; i++)
		members |= __atomic_load_n(&lcore->lcores->lcore[i]->mcast[lport->index],
				   __ATOMIC_RELAXED) != NULL;
	if (!members)
		return;
	copy = rte_pktmbuf_copy(mbuf, lcore->pool, 0, UINT32_MAX);
	if (copy == NULL)
		return;
	copy->hash.usr = lport->index;
	if (rte_ring_enqueue(lcore->loop, copy) != 0)
		rte_pktmbuf_free(copy);
}

/*
 * The device of this engine that a connected peer is on. It may have gone since the queue pair was
 * connected, and another may have its place: then the packets go to the port, as to any stranger.
 */
static const struct rcd_lport *
tx_loop_of(const struct rcd_lcore *lcore, const struct rcd_hqp *hqp)
{
	const struct rcd_txq *txq;

	if (hqp->loop_serial == 0)
		return NULL;
	txq = lcore->txq_of[hqp->loop_index];
	return txq != NULL && txq->lport->serial == hqp->loop_serial ? txq->lport : NULL;
}

/*
 * There are ports that stop at a frame that is much too short, for all who send by them. What is in
 * the buffer is somebody's: zeros go instead.
 */
static void
tx_pad_frame(struct rte_mbuf *mbuf)
{
	uint16_t len = rte_pktmbuf_data_len(mbuf);

	if (len >= RCD_ETH_MIN_LEN)
		return;
	memset(rte_pktmbuf_mtod(mbuf, uint8_t *) + len, 0, (size_t)RCD_ETH_MIN_LEN - len);
	mbuf->data_len = RCD_ETH_MIN_LEN;
	mbuf->pkt_len = RCD_ETH_MIN_LEN;
}

/* Of raw packets, whose payload is the frame. @return as tx_send_packet() */
static __rte_noinline uint32_t
tx_send_frame(struct rcd_lcore *lcore, struct rcd_hqp *hqp, const struct rcd_tx_pkt *pkt,
	struct rte_mbuf *mbuf)
{
	const struct rcd_lport *lport = hqp->lport;
	uint32_t len = pkt->payload_len;

	if (len > rte_pktmbuf_tailroom(mbuf) ||
		!tx_copy_payload(hqp, pkt, rte_pktmbuf_mtod(mbuf, uint8_t *))) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_TX_DROP_MEMORY, 1);
		rte_pktmbuf_free(mbuf);
		hqp->faulty = true;
		return 0;
	}
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = len;
	rcd_raw_tx(lcore, lport, mbuf, pkt->csum);
	tx_pad_frame(mbuf);
	len = mbuf->pkt_len;
	rcd_tx_frame(lcore, lport, mbuf);
	return len + RCD_FRAME_OVERHEAD;
}

/* The next hop has another MAC than the header, which begins with it. */
static __rte_noinline void
tx_follow(struct rcd_hqp *hqp, uint64_t word)
{
	rcd_hop_mac(word, hqp->hdr.bytes);
	hqp->hop_word = word;
}

/* That of a notification, which is not to wait in the queue that it is about. */
static __rte_noinline void
tx_cnp_hdr(struct rcd_lcore *lcore, const struct rcd_hqp *hqp, const struct rcd_tx_pkt *pkt,
	struct rcd_pkt_hdr *hdr)
{
	struct rcd_path path;

	rcd_tx_path(lcore, hqp->lport, pkt->av, hqp->qpn, pkt->roce.bth.dest_qpn.val, &path);
	path.tclass = CNP_DSCP << RCD_DSCP_SHIFT;
	rcd_pkt_hdr_init(hdr, &path);
}

/* @return bytes on the wire; 0: dropped, and counted */
static __rte_always_inline uint32_t
tx_send_packet(
	struct rcd_lcore *lcore, struct rcd_hqp *hqp, struct rcd_tx_pkt *pkt, struct rte_mbuf *mbuf)
{
	const struct rcd_lport *lport = hqp->lport;
	struct rcd_counters *counters = rcd_lcore_counters(lcore, lport);
	struct rcd_path path;
	struct rcd_pkt_hdr datagram_hdr;
	const struct rcd_pkt_hdr *hdr = &hqp->hdr;
	const struct rcd_lport *loop = tx_loop_of(lcore, hqp);
	uint8_t *frame;
	size_t hdr_len, len;
	bool copied;

	if (hqp->datagram) {
		if (hqp->raw)
			return tx_send_frame(lcore, hqp, pkt, mbuf);
		loop = rcd_tx_path(
			lcore, lport, pkt->av, hqp->qpn, pkt->roce.bth.dest_qpn.val, &path);
		rcd_pkt_hdr_init(&datagram_hdr, &path);
		hdr = &datagram_hdr;
	} else {
		uint64_t word = rcd_hop_word(lcore->hop_macs, hqp->hop);

		if (unlikely(word != hqp->hop_word))
			tx_follow(hqp, word);
	}
	if (unlikely(pkt->roce.bth.opcode == RCD_OPCODE_CNP)) {
		tx_cnp_hdr(lcore, hqp, pkt, &datagram_hdr);
		hdr = &datagram_hdr;
	}
	frame = tx_align_payload(mbuf, hdr->len + rcd_roce_hdr_len(pkt->roce.bth.opcode));
	hdr_len = rcd_pkt_build_on(frame, hdr, lcore->ipv4_id++, &pkt->roce, pkt->payload_len);
	rcd_stage_enter(lcore, RCD_STAGE_COPY);
	copied = tx_copy_payload(hqp, pkt, frame + hdr_len);
	rcd_stage_enter(lcore, RCD_STAGE_TX);
	if (!copied) {
		rcd_counter_add(counters, RCD_COUNTER_TX_DROP_MEMORY, 1);
		rte_pktmbuf_free(mbuf);
		hqp->faulty = true;
		return 0;
	}
	len = rcd_pkt_seal_on(frame, hdr, hdr_len, pkt->payload_len);
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	if (loop != NULL)
		return rcd_tx_loop(lcore, lport, loop, mbuf) ? (uint32_t)len + RCD_FRAME_OVERHEAD
							     : 0;
	if (hqp->datagram && rcd_gid_is_multicast(&path.dgid))
		tx_loop_multicast(lcore, lport, mbuf);
	rcd_tx_frame(lcore, lport, mbuf);
	return (uint32_t)len + RCD_FRAME_OVERHEAD;
}

/* Its address handle may be gone when the payload is there, and the next hop another's. */
static __rte_noinline void
tx_stage(struct rcd_lcore *lcore, struct rcd_hqp *hqp, struct rcd_tx_pkt *pkt)
{
	struct rcd_av av = *pkt->av;

	tx_dmac(lcore->hop_macs, pkt->av, av.dmac);
	av.hop = RCD_HOP_NONE;
	pkt->av = &av;
	rcd_ucopy_stage(lcore, hqp, pkt);
	pkt->av = NULL;
}

/* @return whether a packet was sent; the queue pair may have left the round */
static bool
tx_serve(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	struct rcd_txq *txq = lcore->txq_of[hqp->lport->index];
	struct rcd_tx_pkt pkt;
	struct rte_mbuf *mbuf;
	uint32_t bytes;

	if (unlikely(hqp->may_copy) && rcd_ucopy_waits(hqp))
		return false;
	if (tx_txq_full(txq)) {
		tx_flush(lcore, txq);
		if (tx_txq_full(txq)) {
			rcd_turn_block(&hqp->turn, &txq->blocked);
			return false;
		}
	}
	mbuf = rcd_tx_mbuf(lcore);
	if (mbuf == NULL)
		return false;
	rcd_lcore_touch(lcore, hqp);
	if (!rcd_qp_tx_next(hqp->qp, lcore->now_ns, &pkt)) {
		lcore->spare[lcore->spare_count++] = mbuf;
		if (unlikely(rcd_qp_tx_paused(hqp->qp)))
			rcd_turn_skip(&lcore->turns, &hqp->turn);
		else
			rcd_turn_end(&hqp->turn);
		return false;
	}
	if (unlikely(hqp->may_copy) && rcd_ucopy_stages(hqp, &pkt)) {
		lcore->spare[lcore->spare_count++] = mbuf;
		tx_stage(lcore, hqp, &pkt);
		rcd_turn_charge(&lcore->turns, &hqp->turn, pkt.payload_len + RCD_FRAME_OVERHEAD);
		return true;
	}
	rcd_stage_enter(lcore, RCD_STAGE_TX);
	bytes = tx_send_packet(lcore, hqp, &pkt, mbuf);
	rcd_stage_enter(lcore, RCD_STAGE_TRANSPORT);
	rcd_turn_charge(&lcore->turns, &hqp->turn, bytes);
	return true;
}

bool
rcd_tx_staged(struct rcd_lcore *lcore, struct rcd_hqp *hqp, const struct rcd_staged *staged)
{
	struct rcd_txq *txq = lcore->txq_of[hqp->lport->index];
	struct rcd_tx_pkt pkt = { .av = &staged->av,
		.roce = staged->roce,
		.payload_len = staged->payload_len,
		.piece_count = staged->payload_len > 0,
		.pieces = { { staged->payload, staged->payload_len } } };
	struct rte_mbuf *mbuf;

	RCD_ON_LCORE(lcore);
	if (tx_txq_full(txq))
		tx_flush(lcore, txq);
	if (tx_txq_full(txq) || rte_ring_free_count(lcore->loop) < 2)
		return false;
	mbuf = rcd_tx_mbuf(lcore);
	if (mbuf == NULL)
		return false;
	tx_send_packet(lcore, hqp, &pkt, mbuf);
	return true;
}

uint32_t
rcd_tx_urgent(struct rcd_lcore *lcore)
{
	struct rcd_turn *turn;
	uint32_t sent = 0;

	RCD_ON_LCORE(lcore);
	rcd_stage_enter(lcore, RCD_STAGE_TRANSPORT);
	while ((turn = rcd_turn_next_urgent(&lcore->turns)) != NULL) {
		struct rcd_hqp *hqp = RCD_OWNER(turn, struct rcd_hqp, turn);

		/* What was missing may have come in the same burst. Loopback needs room for two. */
		if (rcd_qp_tells_gap(hqp->qp) && rte_ring_free_count(lcore->loop) >= 2)
			sent += tx_serve(lcore, hqp);
	}
	rcd_stage_enter(lcore, RCD_STAGE_TX);
	if (sent > 0)
		rcd_tx_flush(lcore);
	return sent;
}

uint32_t
rcd_tx_poll(struct rcd_lcore *lcore, uint32_t budget)
{
	/* Beside what is sent: copies of raw packets for flows of the same device. */
	uint32_t limit = lcore->work + RCD_WORK_RX;
	uint32_t sent = 0;
	uint32_t idle = 0;
	struct rcd_turn *turn;

	RCD_ON_LCORE(lcore);
	while (sent < budget && idle < RCD_WORK_TURNS && lcore->work < limit &&
		(turn = rcd_turn_next(&lcore->turns)) != NULL) {
		struct rcd_hqp *hqp = RCD_OWNER(turn, struct rcd_hqp, turn);

		/* Loopback is emptied by the next poll. */
		if (rte_ring_free_count(lcore->loop) < 2)
			break;
		if (tx_serve(lcore, hqp)) {
			sent++;
			continue;
		}
		idle += unlikely(rcd_qp_tx_paused(hqp->qp)) ? RCD_WORK_PAUSED : 1;
		if (lcore->spare_count == 0 && turn->list != NULL &&
			turn->list != &lcore->txq_of[hqp->lport->index]->blocked)
			break;
	}
	rcd_stage_enter(lcore, RCD_STAGE_TX);
	rcd_tx_flush(lcore);
	if (unlikely(idle >= RCD_WORK_TURNS || lcore->work >= limit))
		rcd_late_spent(lcore, NULL);
	lcore->work += idle;
	/* Who is left has its turn in the next poll: not a time to sleep. */
	return sent + (idle >= RCD_WORK_TURNS);
}
