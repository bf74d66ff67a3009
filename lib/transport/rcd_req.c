/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester: from work requests to request packets, the first time and again after a loss. RC
 * keeps a record of each request until it is acknowledged; UC and UD are done with a request when
 * its last packet is out.
 */
#include <errno.h>

#include "rcd_qp_priv.h"
#include "rcd_req_read.h"

/*
 * PSNs of several requests outstanding at most. One READ of 2^31 bytes may take one more, which is
 * as many as there may be (IBTA 9.7.1); nothing else is outstanding then.
 */
#define PSN_SPAN_MAX ((UINT32_C(1) << (RCD_PSN_BITS - 1)) - 1)

/* What each work request is on the wire: opcodes of RC (rcd_qp_opcode()); UD has one. */
struct wire_form {
	uint8_t first, middle, last, only;
	bool remote;   /**< has a RETH in its first packet */
	uint8_t types; /**< services that offer it, as 1 << enum rcd_qp_type */
};

#define RC_ONLY   (1 << RCD_QP_RC)
#define RELIABLE  (RC_ONLY | (1 << RCD_QP_XRC_SEND))
#define CONNECTED (RELIABLE | (1 << RCD_QP_UC))
#define ALL_TYPES (CONNECTED | (1 << RCD_QP_UD) | (1 << RCD_QP_GSI))
#define RAW       (1 << RCD_QP_RAW)

/* Which operations each service offers, and how they look on the wire. */
static const struct wire_form wire_forms[RCD_WR_OPCODE_COUNT] = {
	[RCD_WR_RDMA_WRITE] = { RCD_OPCODE_RC_RDMA_WRITE_FIRST, RCD_OPCODE_RC_RDMA_WRITE_MIDDLE,
		RCD_OPCODE_RC_RDMA_WRITE_LAST, RCD_OPCODE_RC_RDMA_WRITE_ONLY, true, CONNECTED },
	[RCD_WR_RDMA_WRITE_WITH_IMM] = { RCD_OPCODE_RC_RDMA_WRITE_FIRST,
		RCD_OPCODE_RC_RDMA_WRITE_MIDDLE, RCD_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE,
		RCD_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, true, CONNECTED },
	[RCD_WR_SEND] = { RCD_OPCODE_RC_SEND_FIRST, RCD_OPCODE_RC_SEND_MIDDLE,
		RCD_OPCODE_RC_SEND_LAST, RCD_OPCODE_RC_SEND_ONLY, false, ALL_TYPES | RAW },
	[RCD_WR_SEND_WITH_IMM] = { RCD_OPCODE_RC_SEND_FIRST, RCD_OPCODE_RC_SEND_MIDDLE,
		RCD_OPCODE_RC_SEND_LAST_WITH_IMMEDIATE, RCD_OPCODE_RC_SEND_ONLY_WITH_IMMEDIATE,
		false, ALL_TYPES },
	[RCD_WR_RDMA_READ] = { .only = RCD_OPCODE_RC_RDMA_READ_REQUEST, .types = RELIABLE },
	[RCD_WR_COMPARE_SWAP] = { .only = RCD_OPCODE_RC_COMPARE_SWAP, .types = RELIABLE },
	[RCD_WR_FETCH_ADD] = { .only = RCD_OPCODE_RC_FETCH_ADD, .types = RELIABLE },
	[RCD_WR_LOCAL_INV] = { .types = CONNECTED },
	[RCD_WR_BIND_MW] = { .types = CONNECTED },
	[RCD_WR_SEND_WITH_INV] = { RCD_OPCODE_RC_SEND_FIRST, RCD_OPCODE_RC_SEND_MIDDLE,
		RCD_OPCODE_RC_SEND_LAST_WITH_INVALIDATE, RCD_OPCODE_RC_SEND_ONLY_WITH_INVALIDATE,
		false, RELIABLE },
	[RCD_WR_FLUSH] = { .only = RCD_OPCODE_RC_FLUSH, .types = RC_ONLY },
	[RCD_WR_ATOMIC_WRITE] = { .only = RCD_OPCODE_RC_ATOMIC_WRITE, .types = RC_ONLY },
};

/* Asks the host for a work request and measures it. @return 0, or -EAGAIN */
static int
req_fetch(struct rcd_qp *qp, struct rcd_wr_slot *slot, uint32_t number)
{
	struct rcd_send_wr *wr = &slot->wr;
	uint64_t len = 0;
	int err;

	slot->loaded = false;
	err = qp->hot.ops->fetch_send(qp->hot.arg, number, wr);
	if (err != 0)
		return err;
	if (rcd_wr_is_empty_read((enum rcd_wr_opcode)wr->opcode))
		len = wr->opcode == RCD_WR_ATOMIC_WRITE ? RCD_ATOMIC_LEN : 0;
	else if (wr->flags & RCD_SEND_INLINE)
		len = wr->inline_len;
	else if (wr->sge_count <= qp->init.max_send_sge)
		len = rcd_sg_len(wr->sges, wr->sge_count);
	slot->number = number;
	slot->loaded = true;
	/* Too long is found by req_check_wr(); only what fits is ever used. */
	slot->len = len > RCD_MSG_MAX_BYTES ? RCD_MSG_MAX_BYTES + 1 : (uint32_t)len;
	return 0;
}

/*
 * Where a work request is, or is to be: not in the place of the one that the last packet was built
 * from, whose inline data the caller may not have copied yet.
 */
static struct rcd_wr_slot *
req_slot_of(struct rcd_qp *qp, uint32_t number)
{
	struct rcd_wr_slot *built = &qp->tx[qp->hot.tx_built];

	return built->loaded && built->number == number ? built : &qp->tx[qp->hot.tx_built ^ 1];
}

/* Spec: IBTA 10.8.2 what makes a send work request invalid, for its service or altogether */
static enum rcd_wc_status
req_check_wr(const struct rcd_qp *qp, const struct rcd_wr_slot *slot)
{
	const struct rcd_send_wr *wr = &slot->wr;
	bool with_data = wr->opcode < RCD_WR_OPCODE_COUNT &&
		!rcd_wr_is_read((enum rcd_wr_opcode)wr->opcode) &&
		!rcd_wr_is_local((enum rcd_wr_opcode)wr->opcode);
	uint8_t type = 1 << qp->hot.type;

	if (wr->opcode >= RCD_WR_OPCODE_COUNT || !(wire_forms[wr->opcode].types & type))
		return RCD_WC_LOC_QP_OP_ERR;
	if (wr->flags & RCD_SEND_INLINE) {
		if (!with_data || wr->inline_len > qp->init.max_inline)
			return RCD_WC_LOC_QP_OP_ERR;
	} else if (wr->sge_count > qp->init.max_send_sge) {
		return RCD_WC_LOC_QP_OP_ERR;
	}
	if (slot->len > RCD_MSG_MAX_BYTES)
		return RCD_WC_LOC_LEN_ERR;
	if (qp->hot.type == RCD_QP_RAW)
		return slot->len < RCD_ETH_LEN ||
				slot->len > __atomic_load_n(qp->init.frame_max, __ATOMIC_RELAXED)
			? RCD_WC_LOC_LEN_ERR
			: RCD_WC_SUCCESS;
	if (rcd_qp_is_datagram(qp)) {
		if (slot->len > qp->init.port_mtu_bytes)
			return RCD_WC_LOC_LEN_ERR;
		if (rcd_ah_get(qp->init.ahs, qp->init.pd, wr->ud.ah) == NULL)
			return RCD_WC_LOC_QP_OP_ERR;
	}
	return rcd_wr_is_read((enum rcd_wr_opcode)wr->opcode) ? rcd_req_check_read(qp, slot)
							      : RCD_WC_SUCCESS;
}

bool
rcd_req_load(struct rcd_qp *qp, struct rcd_wr_slot *slot, uint32_t number)
{
	const struct rcd_sq_rec *rec = rcd_sq_rec(qp, number);

	if (slot->loaded && slot->number == number)
		return true;
	/* The client may have written over a request that is outstanding: all is checked again. */
	if (req_fetch(qp, slot, number) == 0 && slot->wr.opcode == rcd_rec_opcode(rec) &&
		slot->len == rec->len && req_check_wr(qp, slot) == RCD_WC_SUCCESS)
		return true;
	slot->loaded = false;
	rcd_qp_error(qp, RCD_EVENT_QP_FATAL);
	return false;
}

/* Packets before this PSN expected more to follow and did not ask for an acknowledge: ask. */
static void
req_ask_again(struct rcd_qp *qp, struct rcd_psn end)
{
	if (rcd_qp_is_reliable(qp) && qp->hot.since_ack_req > 0 &&
		rcd_psn_before(qp->hot.psn_una, end))
		rcd_req_go_back(qp, rcd_psn_sub(end, 1));
}

void
rcd_req_fail_at(struct rcd_qp *qp, uint32_t number, enum rcd_wc_status status)
{
	struct rcd_psn start = rcd_rec_psn(rcd_sq_rec(qp, number));

	qp->hot.sq_failed = (uint8_t)status;
	qp->sq_fail = number;
	if (qp->hot.sq_head == number)
		rcd_qp_complete_head(qp, status);
	else
		req_ask_again(qp, start);
}

/* Whether a READ, an atomic or a fence has to wait. */
static bool
req_must_wait(const struct rcd_qp *qp, const struct rcd_wr_slot *slot)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	uint32_t outstanding = rcd_psn_span(hot->psn_una, hot->psn_next);
	uint32_t packets = rcd_packets(qp, slot->len);

	if (!rcd_qp_is_reliable(qp))
		return false;
	if ((slot->wr.flags & RCD_SEND_FENCE) && hot->reads_out > 0)
		return true;
	if (rcd_wr_is_read((enum rcd_wr_opcode)slot->wr.opcode) && rcd_req_read_waits(qp, packets))
		return true;
	return outstanding > 0 && outstanding + packets > PSN_SPAN_MAX;
}

/*
 * Begins the next work request: makes its record. Local operations are carried out at once.
 *
 * @return whether psn_tx now is a packet to send
 */
static bool
req_begin(struct rcd_qp *qp)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint32_t first = hot->sq_next;

	hot->paused = false;
	while (hot->state == RCD_QP_RTS && hot->sq_failed == 0) {
		uint32_t number = hot->sq_next;
		struct rcd_wr_slot *slot = req_slot_of(qp, number);
		struct rcd_sq_rec *rec = rcd_sq_rec(qp, number);
		const struct rcd_send_wr *wr = &slot->wr;
		enum rcd_wc_status status;

		if (number - hot->sq_head > qp->sq_mask || number - hot->sq_head >= RCD_REQ_BEGUN)
			return false;
		hot->paused = number - first >= RCD_REQ_LOCAL;
		if (hot->paused)
			return false;
		if (!(slot->loaded && slot->number == number) && req_fetch(qp, slot, number) != 0)
			return false;
		status = req_check_wr(qp, slot);
		if (status == RCD_WC_SUCCESS && req_must_wait(qp, slot))
			return false;
		*rec = (struct rcd_sq_rec){
			.wr_id = wr->wr_id,
			.psn_flags = hot->psn_next.val |
				(wr->opcode & UINT32_C(0xf)) << RCD_REC_OPCODE_SHIFT |
				((wr->flags & RCD_SEND_SIGNALED) || qp->init.signal_all
						? RCD_REC_SIGNALED
						: 0),
			.len = slot->len,
		};
		hot->sq_next++;
		if (rcd_wr_is_read((enum rcd_wr_opcode)wr->opcode))
			hot->pass = 0;
		if (status == RCD_WC_SUCCESS && !rcd_wr_is_local((enum rcd_wr_opcode)wr->opcode))
			return true;
		if (status == RCD_WC_SUCCESS)
			status = rcd_req_do_local(qp, wr);
		hot->sq_tx = hot->sq_next;
		if (status != RCD_WC_SUCCESS)
			rcd_req_fail_at(qp, number, status);
		else if (hot->sq_head == number)
			rcd_qp_complete_head(qp, RCD_WC_SUCCESS);
	}
	return false;
}

/* Whether a packet could be sent now: begins a work request if need be. */
static bool
req_ready(struct rcd_qp *qp, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_psn from = hot->psn_una;

	if (hot->state != RCD_QP_RTS && hot->state != RCD_QP_SQD)
		return false;
	if (hot->wait_until != 0 && now_ns < hot->wait_until)
		return false;
	if (hot->sq_failed != 0 && (int32_t)(hot->sq_tx - qp->sq_fail) >= 0)
		return false;
	/* Going back may have brought us to a local operation: it was carried out long ago. */
	while (hot->sq_tx != hot->sq_next && rcd_rec_packets(qp, hot->sq_tx) == 0)
		hot->sq_tx++;
	if (hot->sq_tx == hot->sq_next && !req_begin(qp))
		return false;
	if (hot->limited && hot->pass == 0 &&
		(rcd_req_read_pauses(qp) || !rcd_gate_open(qp, now_ns)))
		return false;
	if (!rcd_qp_is_reliable(qp))
		return true;
	if (hot->window == RCD_REQ_WINDOW && rcd_psn_before(from, hot->psn_read) &&
		!rcd_psn_before(hot->psn_tx, hot->psn_read))
		from = hot->psn_read;
	return rcd_psn_diff(hot->psn_tx, from) < hot->window;
}

/* @return false when local memory does not allow it */
static bool
req_set_payload(struct rcd_qp *qp, struct rcd_wr_slot *slot, uint32_t offset, uint32_t len,
	struct rcd_tx_pkt *pkt)
{
	struct rcd_send_wr *wr = &slot->wr;
	int count;

	qp->hot.tx_built = slot == &qp->tx[1];
	pkt->payload_len = len;
	if (wr->flags & RCD_SEND_INLINE) {
		pkt->pieces[0] = (struct rcd_piece){ wr->inline_data + offset, len };
		pkt->piece_count = len > 0;
		return true;
	}
	count = rcd_sg_pieces(qp, wr->sges, wr->sge_count, offset, len, 0, pkt->pieces);
	pkt->piece_count = count < 0 ? 0 : (uint32_t)count;
	return count >= 0;
}

/* SEND and WRITE. @return false when the work request failed */
static bool
req_build_data(struct rcd_qp *qp, struct rcd_wr_slot *slot, struct rcd_tx_pkt *pkt)
{
	const struct wire_form *form = &wire_forms[slot->wr.opcode];
	struct rcd_psn start = rcd_rec_psn(rcd_sq_rec(qp, qp->hot.sq_tx));
	uint32_t offset = (uint32_t)rcd_psn_diff(qp->hot.psn_tx, start) << qp->hot.mtu_shift;
	uint32_t rest = slot->len - offset;
	uint32_t len = rest > qp->hot.mtu ? qp->hot.mtu : rest;
	bool first = offset == 0;
	bool last = len == rest;
	uint8_t opcode =
		first ? (last ? form->only : form->first) : (last ? form->last : form->middle);

	rcd_qp_start_pkt(qp, pkt, rcd_qp_opcode(qp, opcode), qp->hot.psn_tx);
	pkt->roce.xrceth.srqn = slot->wr.remote.srqn;
	if (last)
		pkt->roce.bth.solicited = slot->wr.flags & RCD_SEND_SOLICITED;
	pkt->roce.reth = (struct rcd_reth){
		.va = slot->wr.remote.va,
		.rkey = slot->wr.remote.rkey,
		.dma_len = slot->len,
	};
	pkt->roce.immdt.data = slot->wr.imm;
	pkt->roce.ieth.rkey.val = slot->wr.imm;
	return req_set_payload(qp, slot, offset, len, pkt);
}

static bool
req_build_datagram(struct rcd_qp *qp, struct rcd_wr_slot *slot, struct rcd_tx_pkt *pkt)
{
	const struct rcd_send_wr *wr = &slot->wr;
	bool imm = wr->opcode == RCD_WR_SEND_WITH_IMM;

	rcd_qp_start_pkt(qp, pkt,
		imm ? RCD_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE : RCD_OPCODE_UD_SEND_ONLY,
		qp->hot.psn_tx);
	pkt->av = rcd_ah_get(qp->init.ahs, qp->init.pd, wr->ud.ah);
	if (pkt->av == NULL)
		return false;
	pkt->roce.bth.dest_qpn.val = wr->ud.qpn.val & RCD_PSN_MASK;
	pkt->roce.bth.solicited = wr->flags & RCD_SEND_SOLICITED;
	/* Spec: IBTA 10.2.5 a Q_Key with the top bit set stands for the queue pair's own */
	pkt->roce.deth.qkey = wr->ud.qkey.val >> 31 ? qp->attr.qkey : wr->ud.qkey;
	pkt->roce.deth.src_qpn = qp->init.qpn;
	pkt->roce.immdt.data = wr->imm;
	return req_set_payload(qp, slot, 0, slot->len, pkt);
}

/* A frame as it is. Who counts packets counts a datagram. */
static bool
req_build_frame(struct rcd_qp *qp, struct rcd_wr_slot *slot, struct rcd_tx_pkt *pkt)
{
	rcd_qp_start_pkt(qp, pkt, RCD_OPCODE_UD_SEND_ONLY, qp->hot.psn_tx);
	pkt->csum = slot->wr.flags & RCD_SEND_IP_CSUM;
	return req_set_payload(qp, slot, 0, slot->len, pkt);
}

/* Moves on behind the packet that was just built, which takes so many PSNs. */
static void
req_advance(struct rcd_qp *qp, bool read, uint32_t psns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_psn start = rcd_rec_psn(rcd_sq_rec(qp, hot->sq_tx));
	struct rcd_psn end = rcd_psn_add(start, rcd_rec_packets(qp, hot->sq_tx));

	hot->psn_tx = rcd_psn_add(hot->psn_tx, psns);
	if (read)
		hot->psn_read = hot->psn_tx;
	if (rcd_psn_before(hot->psn_next, hot->psn_tx)) {
		hot->psn_next = hot->psn_tx;
		hot->reads_out += read;
	}
	if (rcd_psn_eq(hot->psn_tx, end))
		hot->sq_tx++;
}

static void
req_count_sent(struct rcd_qp *qp, const struct rcd_tx_pkt *pkt, bool again)
{
	rcd_qp_count(qp, RCD_COUNTER_SENT_PKTS, 1);
	rcd_qp_count(qp, RCD_COUNTER_SENT_BYTES, pkt->payload_len);
	if (qp->hot.limited)
		rcd_gate_charge(qp, pkt, !again);
	if (again)
		rcd_qp_count(qp, RCD_COUNTER_RETRANSMITTED_PKTS, 1);
	if (rcd_opcode_ends(pkt->roce.bth.opcode) &&
		rcd_opcode_info(pkt->roce.bth.opcode)->op == RCD_OP_SEND)
		rcd_qp_count(qp, RCD_COUNTER_RDMA_SENDS, 1);
}

/*
 * Asks for an acknowledge when nothing more can follow, so that one covers a burst, and now and
 * then within a long one.
 *
 * Spec: IBTA 9.7.3 the requester chooses where
 */
static void
req_set_ack_req(struct rcd_qp *qp, uint64_t now_ns, bool again, struct rcd_tx_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_psn sent = pkt->roce.bth.psn;
	bool more = req_ready(qp, now_ns);

	if (!more || ++hot->since_ack_req >= hot->ask_every)
		pkt->roce.bth.ack_req = true;
	if (!pkt->roce.bth.ack_req)
		return;
	hot->since_ack_req = 0;
	qp->asked_ns = now_ns;
	/* Karn: an answer to a packet that is sent again may be to its first copy. */
	if (qp->rtt_begin_ns == 0 && !again) {
		qp->rtt_psn = sent;
		qp->rtt_probed = false;
		qp->rtt_begin_ns = now_ns;
	}
}

/* The packet for psn_tx. @return false when local memory does not allow it: its request failed */
static bool
req_build_request(struct rcd_qp *qp, struct rcd_wr_slot *slot, bool read, struct rcd_tx_pkt *pkt)
{
	uint32_t psns = 1;

	if (read) {
		psns = rcd_req_build_read(
			qp, slot, rcd_qp_opcode(qp, wire_forms[slot->wr.opcode].only), pkt);
	} else if (!req_build_data(qp, slot, pkt)) {
		rcd_req_fail_at(qp, qp->hot.sq_tx, RCD_WC_LOC_PROT_ERR);
		return false;
	}
	req_advance(qp, read, psns);
	return true;
}

static bool
req_next_reliable(
	struct rcd_qp *qp, struct rcd_wr_slot *slot, uint64_t now_ns, struct rcd_tx_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;
	bool read = rcd_wr_is_read((enum rcd_wr_opcode)slot->wr.opcode);
	bool again = !rcd_psn_eq(hot->psn_tx, hot->psn_next);

	if (!req_build_request(qp, slot, read, pkt))
		return false;
	if (qp->sack != NULL)
		rcd_sack_sent(qp, pkt->roce.bth.psn, again, now_ns);
	if (hot->rto_deadline == 0)
		rcd_rto_arm(qp, now_ns);
	req_count_sent(qp, pkt, again);
	req_set_ack_req(qp, now_ns, again, pkt);
	return true;
}

/*
 * Whether a probe is the newest packet. Who keeps what comes early, or has said nothing of a hole
 * yet, says at once what is missing before it. Who has said it, and is not heard, may not say it
 * again before the oldest one comes: they take turns. A NAK is the end where nothing is to be sent
 * again. The newest may be of a request that failed, which has no packets any more.
 */
static bool
req_newest_asks(struct rcd_qp *qp)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	uint32_t newest;

	if (!qp->repair_probe || qp->probes % 2 == 0 || qp->attr.retry_cnt == 0 ||
		hot->sq_failed != 0 || !rcd_psn_eq(hot->psn_tx, hot->psn_next))
		return false;
	newest = rcd_req_find(qp, rcd_psn_sub(hot->psn_next, 1));
	return !rcd_wr_is_read(rcd_rec_opcode(rcd_sq_rec(qp, hot->sq_head))) &&
		!rcd_wr_is_read(rcd_rec_opcode(rcd_sq_rec(qp, newest)));
}

/* A packet that is outstanding, alone and out of turn. @return false when its request failed */
static bool
req_send_alone(struct rcd_qp *qp, struct rcd_psn psn, uint64_t now_ns, struct rcd_tx_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_psn psn_tx = hot->psn_tx;
	struct rcd_psn psn_read = hot->psn_read;
	uint16_t since_ack_req = hot->since_ack_req;
	uint32_t sq_tx = hot->sq_tx;
	struct rcd_wr_slot *slot;

	rcd_req_go_back(qp, psn);
	while (hot->sq_tx != hot->sq_next && rcd_rec_packets(qp, hot->sq_tx) == 0)
		hot->sq_tx++;
	slot = req_slot_of(qp, hot->sq_tx);
	if (!rcd_req_load(qp, slot, hot->sq_tx) ||
		!req_build_request(
			qp, slot, rcd_wr_is_read((enum rcd_wr_opcode)slot->wr.opcode), pkt))
		return false;
	qp->repair_end = hot->psn_tx;
	/* Where sending stands does not change by it. */
	if (!rcd_psn_before(psn_tx, hot->psn_tx)) {
		hot->psn_tx = psn_tx;
		hot->sq_tx = sq_tx;
	}
	hot->psn_read = psn_read;
	hot->since_ack_req = since_ack_req;
	pkt->roce.bth.ack_req = true;
	if (qp->sack != NULL)
		rcd_sack_sent(qp, psn, true, now_ns);
	req_count_sent(qp, pkt, true);
	return true;
}

/* The oldest packet that is not acknowledged, or a probe that is the newest. */
static bool
req_next_repair(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;
	bool newest, built;

	hot->repair = false;
	/* Nothing is outstanding any more, or it comes next anyway. */
	if (hot->state < RCD_QP_RTS || rcd_psn_eq(hot->psn_una, hot->psn_next) ||
		rcd_psn_eq(hot->psn_una, hot->psn_tx))
		return false;
	newest = req_newest_asks(qp);
	qp->repairing = true;
	built = req_send_alone(
		qp, newest ? rcd_psn_sub(hot->psn_next, 1) : hot->psn_una, now_ns, pkt);
	qp->repairing = false;
	if (!built)
		return false;
	qp->repaired = !newest;
	qp->repair_high = hot->psn_next;
	return true;
}

static bool
req_next_unreliable(struct rcd_qp *qp, struct rcd_wr_slot *slot, struct rcd_tx_pkt *pkt)
{
	bool built = qp->hot.type == RCD_QP_UC ? req_build_data(qp, slot, pkt)
		: qp->hot.type == RCD_QP_RAW   ? req_build_frame(qp, slot, pkt)
					       : req_build_datagram(qp, slot, pkt);
	uint32_t before = qp->hot.sq_tx;

	if (!built) {
		rcd_qp_complete_head(qp, RCD_WC_LOC_PROT_ERR);
		return false;
	}
	req_advance(qp, false, 1);
	req_count_sent(qp, pkt, false);
	qp->sent_unreliable = qp->hot.sq_tx != before;
	return true;
}

/* What is sent again, and is not a part of going back. */
static bool
req_repair(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_psn lost;

	if (hot->wait_until > now_ns || (hot->limited && rcd_gate_paced(qp, now_ns)))
		return false;
	if (hot->repair && req_next_repair(qp, now_ns, pkt))
		return true;
	return hot->sack_holes && rcd_sack_next(qp, now_ns, &lost) &&
		req_send_alone(qp, lost, now_ns, pkt);
}

bool
rcd_req_next(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_wr_slot *slot;

	if (qp->sent_unreliable) {
		qp->sent_unreliable = false;
		rcd_qp_complete_head(qp, RCD_WC_SUCCESS);
	}
	if ((hot->repair || hot->sack_holes) && req_repair(qp, now_ns, pkt))
		return true;
	if (!req_ready(qp, now_ns))
		return false;
	slot = req_slot_of(qp, hot->sq_tx);
	if (!rcd_req_load(qp, slot, hot->sq_tx))
		return false;
	return rcd_qp_is_reliable(qp) ? req_next_reliable(qp, slot, now_ns, pkt)
				      : req_next_unreliable(qp, slot, pkt);
}

void
rcd_req_go_back(struct rcd_qp *qp, struct rcd_psn psn)
{
	struct rcd_qp_hot *hot = &qp->hot;

	hot->sq_tx = rcd_req_find(qp, psn);
	hot->psn_tx = psn;
	hot->pass = 0;
	hot->repair = false;
	hot->since_ack_req = 0;
	hot->psn_read = hot->psn_una;
}

void
rcd_req_skip_acked(struct rcd_qp *qp)
{
	/* It may be half of all PSNs ahead. */
	if (rcd_psn_diff(qp->hot.psn_una, qp->hot.psn_tx) > 0)
		rcd_req_go_back(qp, qp->hot.psn_una);
}

void
rcd_req_drain(struct rcd_qp *qp)
{
	struct rcd_qp_hot *hot = &qp->hot;

	if (hot->sq_tx == hot->sq_next)
		req_ask_again(qp, hot->psn_next);
}
