/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Responder of RC, the receiving half: executes requests that have been checked
 * (rcd_resp_check.c), and refuses others.
 *
 * Packets ahead of the expected PSN are kept, if there is a pool, and go through the same checks
 * when their turn comes.
 */
#include "rcd_qp_priv.h"
#include "rcd_resp.h"

static enum check
resp_execute_send(
	struct rcd_qp *qp, const struct rcd_roce *roce, const uint8_t *payload, uint32_t len)
{
	struct rcd_qp_hot *hot = &qp->hot;

	if (rcd_opcode_begins(roce->bth.opcode))
		hot->in_len = 0;
	if (rcd_sg_scatter(qp, qp->recv.sges, qp->recv.sge_count, hot->in_len, payload, len) != 0)
		return CHECK_LOCAL;
	/* Spec: IBTA 9.4.1 the invalidation is part of the message */
	if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_IETH) &&
		rcd_mw_invalidate(hot->mrs, roce->ieth.rkey, qp->init.pd, qp->init.qpn.val) != 0)
		return CHECK_REMOTE_ACCESS;
	hot->in_len += len;
	if (!rcd_opcode_ends(roce->bth.opcode)) {
		hot->in_progress = RCD_IN_SEND;
		return CHECK_OK;
	}
	hot->in_progress = RCD_IN_NOTHING;
	rcd_qp_note_message(hot);
	rcd_qp_complete_message(qp, roce, RCD_WC_RECV);
	return CHECK_OK;
}

static enum check
resp_execute_write(struct rcd_qp *qp, const struct rcd_roce *roce, const uint8_t *payload,
	uint32_t len, uint8_t *at)
{
	struct rcd_qp_hot *hot = &qp->hot;

	if (rcd_opcode_begins(roce->bth.opcode)) {
		hot->in_len = 0;
		hot->in_total = roce->reth.dma_len;
		qp->write_key = roce->reth.rkey;
		qp->write_va = roce->reth.va;
	}
	if (rcd_mr_write(hot->mrs, hot->arg, at, payload, len) != 0)
		return CHECK_REMOTE_ACCESS;
	hot->in_len += len;
	if (!rcd_opcode_ends(roce->bth.opcode)) {
		hot->in_progress = RCD_IN_WRITE;
		return CHECK_OK;
	}
	hot->in_progress = RCD_IN_NOTHING;
	rcd_qp_note_message(hot);
	if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_IMMDT))
		rcd_qp_complete_message(qp, roce, RCD_WC_RECV_RDMA_WITH_IMM);
	return CHECK_OK;
}

/*
 * In foreign memory an atomic is read and written back: atomic among the queue pairs of the owner,
 * not against its processors, as the specification allows (IBTA Vol. 1, 10.6.4). Its result may
 * come later (rcd_qp_atomic_done()), but before its answer leaves.
 */
static enum check
resp_atomic_foreign(struct rcd_qp *qp, const struct rcd_roce *roce, uint8_t *at, uint64_t *original)
{
	struct rcd_mr_atomic what = {
		.add = rcd_resp_op(roce) == RCD_OP_FETCH_ADD,
		.operand = roce->atomiceth.swap_or_add,
		.compare = roce->atomiceth.compare,
	};

	return rcd_mr_atomic_foreign(qp->hot.mrs, qp->hot.arg, at, &what, original) == 0
		? CHECK_OK
		: CHECK_REMOTE_ACCESS;
}

/* Other cores and the application may use the same memory: one atomic instruction. */
static enum check
resp_execute_atomic(struct rcd_qp *qp, const struct rcd_roce *roce, uint8_t *at, uint64_t *original)
{
	uint64_t *target = (uint64_t *)(void *)at;
	uint64_t compare = roce->atomiceth.compare;

	if (rcd_mr_is_foreign(qp->hot.mrs, at))
		return resp_atomic_foreign(qp, roce, at, original);
	if (rcd_resp_op(roce) == RCD_OP_FETCH_ADD) {
		*original =
			__atomic_fetch_add(target, roce->atomiceth.swap_or_add, __ATOMIC_SEQ_CST);
		return CHECK_OK;
	}
	/* On failure `compare` receives what was there, on success it is what was there. */
	__atomic_compare_exchange_n(target, &compare, roce->atomiceth.swap_or_add, false,
		__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	*original = compare;
	return CHECK_OK;
}

/*
 * What was written before is in memory that all processors and devices see alike: it is seen when
 * no store waits any more. Foreign memory is written later, but before the answer leaves
 * (rcd_mr.h).
 *
 * Spec: Annex A19 the answer to a FLUSH follows the placement of what was written before it
 */
static void
resp_flush(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* What is done at once of a request with an answer of its own: all but a READ. */
static enum check
resp_execute_at_once(struct rcd_qp *qp, const struct rcd_roce *roce, const uint8_t *payload,
	uint8_t *at, uint64_t *original)
{
	switch (rcd_resp_op(roce)) {
	case RCD_OP_COMPARE_SWAP:
	case RCD_OP_FETCH_ADD:
		return resp_execute_atomic(qp, roce, at, original);
	case RCD_OP_FLUSH:
		resp_flush();
		return CHECK_OK;
	case RCD_OP_ATOMIC_WRITE:
		return rcd_mr_write(qp->hot.mrs, qp->hot.arg, at, payload, RCD_ATOMIC_LEN) == 0
			? CHECK_OK
			: CHECK_REMOTE_ACCESS;
	case RCD_OP_SEND:
	case RCD_OP_RDMA_WRITE:
	case RCD_OP_RDMA_READ:
	case RCD_OP_READ_RESPONSE:
	case RCD_OP_ACKNOWLEDGE:
	case RCD_OP_ATOMIC_RESPONSE:
	case RCD_OP_SACK:
	case RCD_OP_CNP:
	case RCD_OP_HELLO:
	case RCD_OP_HELLO_ACK:
		break;
	}
	return CHECK_OK;
}

/* READ: to be answered. The others: done, and to be answered. */
static enum check
resp_execute_read(struct rcd_qp *qp, const struct rcd_roce *roce, const uint8_t *payload,
	uint8_t *at, uint32_t *psns)
{
	struct rcd_resp_resource *resource = &qp->resources[qp->resource_next];
	bool read = rcd_resp_op(roce) == RCD_OP_RDMA_READ;
	bool reth = rcd_opcode_has(roce->bth.opcode, RCD_EXT_RETH);
	uint64_t original = 0;

	if (resp_execute_at_once(qp, roce, payload, at, &original) != CHECK_OK)
		return CHECK_REMOTE_ACCESS;
	rcd_reply_cancel(qp, resource);
	qp->resource_next = (uint8_t)((qp->resource_next + 1) % qp->attr.max_dest_rd_atomic);
	*resource = (struct rcd_resp_resource){
		.psn = roce->bth.psn.val,
		.count = read ? rcd_packets(qp, roce->reth.dma_len) : 1,
		.va = reth ? roce->reth.va : roce->atomiceth.va,
		.rkey = reth ? roce->reth.rkey.val : roce->atomiceth.rkey.val,
		.len = reth ? roce->reth.dma_len : RCD_ATOMIC_LEN,
		.srqn = qp->srqn,
		.opcode = roce->bth.opcode,
		.first = true,
	};
	if (read) {
		resource->run = (struct rcd_reply_run){ .end = resource->count };
		resource->stop = resource->len;
	} else if (rcd_resp_op(roce) == RCD_OP_FLUSH) {
		resource->feth = roce->feth;
	} else {
		resource->original = original;
	}
	rcd_qp_note_message(&qp->hot);
	rcd_reply_add(qp, resource);
	*psns = resource->count;
	return CHECK_OK;
}

static_assert(RCD_NAK_AGAIN_PACKETS <= UINT8_MAX, "nak_seen counts so far");

/* @param spare  the NAK, if a SACK tells of the gap and enough of both have left before */
static void
resp_ask_for_missing(struct rcd_qp *qp, struct rcd_psn seen, bool spare)
{
	struct rcd_qp_hot *hot = &qp->hot;

	hot->nak_spared = spare && qp->nak_beside == 0 && (hot->nak_spared || !hot->nak_pending);
	hot->nak_state = RCD_NAK_STATE_SENT;
	hot->nak_pending = hot->hole_untold = true;
	hot->nak_syndrome = rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_PSN_SEQUENCE);
	qp->nak_high = seen;
	qp->nak_seen = 0;
}

/* Something was wrong with the request for the expected PSN. */
static enum rcd_rx_verdict
resp_refuse(struct rcd_qp *qp, enum check check)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_cqe cqe = { .status = RCD_WC_SUCCESS };
	enum rcd_nak code = RCD_NAK_INVALID_REQUEST;
	enum rcd_event event = 0;

	hot->hole_untold = false;
	switch (check) {
	case CHECK_OK:
	case CHECK_RNR:
		hot->nak_state = RCD_NAK_STATE_RNR_SENT;
		hot->nak_pending = true;
		hot->nak_syndrome = rcd_aeth_syndrome(RCD_AETH_RNR_NAK, qp->attr.min_rnr_timer);
		qp->nak_seen = 0;
		/* What was kept behind it comes again after the wait. */
		rcd_qp_drop_kept(qp);
		return RCD_RX_RNR;
	case CHECK_AGAIN:
		resp_ask_for_missing(qp, hot->epsn, false);
		return RCD_RX_OUT_OF_SEQUENCE;
	case CHECK_INVALID_REQUEST:
		event = RCD_EVENT_QP_REQ_ERR;
		break;
	case CHECK_TOO_LONG:
		/* Spec: IBTA 9.7.4.1 a SEND longer than the buffer is the sender's fault */
		cqe.status = RCD_WC_LOC_LEN_ERR;
		break;
	case CHECK_REMOTE_ACCESS:
		code = RCD_NAK_REMOTE_ACCESS;
		event = RCD_EVENT_QP_ACCESS_ERR;
		break;
	case CHECK_LOCAL:
		code = RCD_NAK_REMOTE_OPERATION;
		cqe.status = RCD_WC_LOC_PROT_ERR;
		break;
	}
	hot->nak_pending = true;
	hot->nak_syndrome = rcd_aeth_syndrome(RCD_AETH_NAK, (uint8_t)code);
	rcd_qp_count(qp, RCD_COUNTER_SEND_ERR, 1);
	if (cqe.status != RCD_WC_SUCCESS && qp->recv_valid)
		rcd_qp_complete_recv(qp, &cqe);
	rcd_qp_error(qp, event);
	return RCD_RX_REFUSED;
}

/* The request for the expected PSN. */
static enum rcd_rx_verdict
resp_execute(struct rcd_qp *qp, const struct rcd_roce *roce, const uint8_t *payload, uint32_t len)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint32_t psns = 1;
	uint8_t *at = NULL;
	enum check check = rcd_resp_check(qp, roce, len, &at);

	if (check != CHECK_OK)
		return resp_refuse(qp, check);
	/* Before anything completes: who is told of the completion may already ask again. */
	if (hot->nak_state == RCD_NAK_STATE_SENT) {
		/* What was missing came before the NAK could leave: it would ask for nothing. */
		hot->nak_pending = hot->hole_untold = false;
	}
	hot->nak_state = RCD_NAK_STATE_NONE;
	if (rcd_resp_op(roce) == RCD_OP_SEND)
		check = resp_execute_send(qp, roce, payload, len);
	else if (rcd_resp_op(roce) == RCD_OP_RDMA_WRITE)
		check = resp_execute_write(qp, roce, payload, len, at);
	else
		check = resp_execute_read(qp, roce, payload, at, &psns);
	if (check != CHECK_OK)
		return resp_refuse(qp, check);
	if (psns == 1 && rcd_resp_op(roce) <= RCD_OP_RDMA_WRITE) {
		if (roce->bth.ack_req && hot->ack_pending)
			rcd_qp_count(qp, RCD_COUNTER_ACK_DEFERRED, 1);
		hot->ack_pending |= roce->bth.ack_req;
		/* What did not ask is covered as well: who sent one packet again learns that all
		 * behind it is there. */
		if (hot->ack_pending)
			hot->ack_psn = hot->epsn;
	}
	hot->epsn = rcd_psn_add(hot->epsn, psns);
	return RCD_RX_EXECUTED;
}

/* @return whether the packet was kept */
static bool
resp_keep(struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	return rcd_psn_in(pkt->roce.bth.psn, qp->hot.epsn, RCD_REORDER_SPAN) &&
		rcd_reorder_keep(qp->init.reorder, &qp->kept, pkt);
}

/*
 * A peer that hears of the RNR NAK stops. When it goes on for long after that left, it was lost,
 * and the peer would learn nothing before its timeout.
 */
static void
resp_repeat_rnr(struct rcd_qp *qp)
{
	if (qp->hot.nak_pending || ++qp->nak_seen < RCD_NAK_AGAIN_PACKETS)
		return;
	qp->hot.nak_pending = true;
	qp->nak_seen = 0;
}

/*
 * Spec: IBTA 9.7.5.1 one NAK for a gap
 *
 * That NAK may be lost. It is sent again when PSNs go backwards, since the requester then sends
 * again and the missing packet was lost once more, or when many have come behind it.
 */
static enum rcd_rx_verdict
resp_rx_ahead(struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_psn psn = pkt->roce.bth.psn;
	enum rcd_rx_verdict verdict;

	if (hot->nak_state == RCD_NAK_STATE_RNR_SENT) {
		resp_repeat_rnr(qp);
		return RCD_RX_OUT_OF_SEQUENCE;
	}
	verdict = resp_keep(qp, pkt) ? RCD_RX_KEPT : RCD_RX_OUT_OF_SEQUENCE;
	if (qp->sack != NULL)
		rcd_sack_ahead(qp, &pkt->roce.bth, verdict == RCD_RX_KEPT,
			hot->nak_state == RCD_NAK_STATE_SENT &&
				rcd_psn_eq(psn, rcd_psn_add(qp->nak_high, 1)));
	if (hot->nak_state == RCD_NAK_STATE_NONE || !rcd_psn_before(qp->nak_high, psn) ||
		++qp->nak_seen >= RCD_NAK_AGAIN_PACKETS)
		resp_ask_for_missing(
			qp, psn, verdict == RCD_RX_KEPT && qp->nak_seen < RCD_NAK_AGAIN_PACKETS);
	qp->nak_high = psn;
	return verdict;
}

/* Packets that were kept and whose turn it is now. */
static void
resp_drain_kept(struct rcd_qp *qp)
{
	while (qp->kept.first != NULL &&
		!rcd_psn_before(qp->hot.epsn, qp->kept.first->roce.bth.psn)) {
		struct rcd_kept *kept = rcd_reorder_take(&qp->kept);

		if (qp->sack != NULL)
			rcd_sack_take_kept(qp, kept->roce.bth.psn);
		/* Others have come again meanwhile and were executed. */
		if (rcd_psn_eq(qp->hot.epsn, kept->roce.bth.psn))
			resp_execute(qp, &kept->roce, kept->payload, kept->payload_len);
		rcd_reorder_put(qp->init.reorder, kept);
	}
	/* The next gap is known already; a SACK told of it with the one before. */
	if (qp->kept.first != NULL && qp->hot.nak_state == RCD_NAK_STATE_NONE) {
		resp_ask_for_missing(qp, qp->kept.first->roce.bth.psn, true);
		if (qp->sack != NULL)
			qp->hot.hole_untold = false;
	}
}

enum rcd_rx_verdict
rcd_resp_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	int32_t ahead = rcd_psn_diff(pkt->roce.bth.psn, qp->hot.epsn);
	enum rcd_rx_verdict verdict;

	if (qp->sack != NULL)
		rcd_sack_note(qp, &pkt->roce.bth, now_ns);
	if (ahead > 0)
		return resp_rx_ahead(qp, pkt);
	if (ahead < 0)
		return rcd_reply_duplicate(qp, &pkt->roce);
	verdict = resp_execute(qp, &pkt->roce, pkt->payload, pkt->payload_len);
	if (verdict == RCD_RX_EXECUTED && qp->kept.first != NULL)
		resp_drain_kept(qp);
	/* The next gap, if there is one; of the last an acknowledge tells. */
	if (qp->sack != NULL)
		qp->hot.sack_pending = qp->kept.first != NULL;
	return verdict;
}
