/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Responder of RC, the receiving half: checks a request in the order of the specification and
 * executes it.
 *
 * Each check looks and says what is wrong; only execution and refusal change anything. Packets
 * ahead of the expected PSN are kept, if there is a pool, and go through the same checks when
 * their turn comes.
 */
#include "rcd_qp_priv.h"

/* What a check says. */
enum check {
	CHECK_OK,
	CHECK_RNR,             /* no receive work request, or no resource yet */
	CHECK_AGAIN,           /* no resource for what its peer may not have counted */
	CHECK_INVALID_REQUEST, /* NAK codes, and what becomes of a receive work request */
	CHECK_TOO_LONG,
	CHECK_REMOTE_ACCESS,
	CHECK_LOCAL,
};

static enum rcd_op
resp_op_of(const struct rcd_roce *roce)
{
	return (enum rcd_op)rcd_opcode_info(roce->bth.opcode)->op;
}

/* Spec: IBTA 9.7.4.1 what may follow what within messages */
static enum check
resp_check_sequence(const struct rcd_qp *qp, const struct rcd_roce *roce)
{
	enum rcd_op op = resp_op_of(roce);
	bool begins = rcd_opcode_begins(roce->bth.opcode);

	switch ((enum rcd_in_progress)qp->hot.in_progress) {
	case RCD_IN_NOTHING:
		return begins ? CHECK_OK : CHECK_INVALID_REQUEST;
	case RCD_IN_SEND:
		return !begins && op == RCD_OP_SEND ? CHECK_OK : CHECK_INVALID_REQUEST;
	case RCD_IN_WRITE:
		return !begins && op == RCD_OP_RDMA_WRITE ? CHECK_OK : CHECK_INVALID_REQUEST;
	}
	return CHECK_INVALID_REQUEST;
}

/* Rights that a FLUSH needs, of the queue pair and of the region. */
static uint32_t
resp_flush_rights(const struct rcd_feth *feth)
{
	return (feth->placement & RCD_PLACEMENT_GLOBAL ? RCD_ACCESS_FLUSH_GLOBAL : 0) |
		(feth->placement & RCD_PLACEMENT_PERSISTENT ? RCD_ACCESS_FLUSH_PERSISTENT : 0);
}

/* Spec: Annex A19 placement types that the queue pair offers; what nobody knows is not promised */
static bool
resp_offers_flush(const struct rcd_qp *qp, const struct rcd_feth *feth)
{
	uint32_t rights = resp_flush_rights(feth);

	return rights != 0 && (qp->attr.access & rights) == rights &&
		(feth->placement & ~RCD_PLACEMENT_ALL) == 0 &&
		feth->selectivity <= RCD_SELECTIVITY_REGION && qp->attr.max_dest_rd_atomic > 0;
}

/* Spec: IBTA 9.7.4.1 operations that this queue pair does not offer to its peer */
static enum check
resp_check_offered(const struct rcd_qp *qp, const struct rcd_roce *roce)
{
	uint32_t access = qp->attr.access;
	bool offered = false;

	switch (resp_op_of(roce)) {
	case RCD_OP_SEND:
		offered = true;
		break;
	case RCD_OP_RDMA_WRITE:
		offered = access & RCD_ACCESS_REMOTE_WRITE;
		break;
	case RCD_OP_RDMA_READ:
		offered = (access & RCD_ACCESS_REMOTE_READ) && qp->attr.max_dest_rd_atomic > 0;
		break;
	case RCD_OP_COMPARE_SWAP:
	case RCD_OP_FETCH_ADD:
		offered = (access & RCD_ACCESS_REMOTE_ATOMIC) && qp->attr.max_dest_rd_atomic > 0;
		break;
	case RCD_OP_FLUSH:
		offered = resp_offers_flush(qp, &roce->feth);
		break;
	case RCD_OP_ATOMIC_WRITE:
		offered = (access & RCD_ACCESS_REMOTE_WRITE) && qp->attr.max_dest_rd_atomic > 0;
		break;
	case RCD_OP_READ_RESPONSE:
	case RCD_OP_ACKNOWLEDGE:
	case RCD_OP_ATOMIC_RESPONSE:
	case RCD_OP_CNP:
		break;
	}
	return offered ? CHECK_OK : CHECK_INVALID_REQUEST;
}

/* Spec: IBTA 9.7.4.1 packet lengths within a message, and what a RETH may announce */
static enum check
resp_check_length(const struct rcd_qp *qp, const struct rcd_roce *roce, uint32_t len)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	const struct rcd_opcode_info *info = rcd_opcode_info(roce->bth.opcode);
	bool whole = info->position == RCD_POS_FIRST || info->position == RCD_POS_MIDDLE;
	uint32_t before = rcd_opcode_begins(roce->bth.opcode) ? 0 : hot->in_len;
	uint32_t total =
		rcd_opcode_has(roce->bth.opcode, RCD_EXT_RETH) ? roce->reth.dma_len : hot->in_total;

	if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_RETH) && total > RCD_MSG_MAX_BYTES)
		return CHECK_INVALID_REQUEST;
	if (resp_op_of(roce) == RCD_OP_COMPARE_SWAP || resp_op_of(roce) == RCD_OP_FETCH_ADD)
		return roce->atomiceth.va % RCD_ATOMIC_LEN == 0 ? CHECK_OK : CHECK_INVALID_REQUEST;
	if (resp_op_of(roce) == RCD_OP_RDMA_READ || resp_op_of(roce) == RCD_OP_FLUSH)
		return CHECK_OK;
	/* Spec: Annex A19 an ATOMIC WRITE is of eight bytes, to where they are aligned */
	if (resp_op_of(roce) == RCD_OP_ATOMIC_WRITE)
		return len == RCD_ATOMIC_LEN && total == RCD_ATOMIC_LEN &&
				roce->reth.va % RCD_ATOMIC_LEN == 0
			? CHECK_OK
			: CHECK_INVALID_REQUEST;
	if (whole ? len != hot->mtu : len > hot->mtu)
		return CHECK_INVALID_REQUEST;
	if (info->position == RCD_POS_LAST && len == 0)
		return CHECK_INVALID_REQUEST;
	if (before + len > RCD_MSG_MAX_BYTES)
		return CHECK_INVALID_REQUEST;
	if (resp_op_of(roce) == RCD_OP_RDMA_WRITE &&
		(whole ? before + len >= total : before + len != total))
		return CHECK_INVALID_REQUEST;
	return CHECK_OK;
}

/* Aligned for the peer, but perhaps not where it lies here. */
static enum check
resp_check_aligned(const uint8_t *at)
{
	return at != NULL && (uintptr_t)at % RCD_ATOMIC_LEN == 0 ? CHECK_OK : CHECK_REMOTE_ACCESS;
}

/* Spec: IBTA 9.7.4.1 R_Key, range, rights and protection domain */
static enum check
resp_check_remote(const struct rcd_qp *qp, const struct rcd_roce *roce, uint32_t len, uint8_t **at)
{
	struct rcd_mr_use use = { .pd = qp->init.pd, .qpn = qp->init.qpn.val, .remote = true };
	struct rcd_mr_table *mrs = qp->hot.mrs;

	*at = NULL;
	switch (resp_op_of(roce)) {
	case RCD_OP_RDMA_WRITE:
		use.access = RCD_ACCESS_REMOTE_WRITE;
		if (rcd_opcode_begins(roce->bth.opcode)) {
			/* The whole range at once, so that nothing is written of what must fail. */
			*at = rcd_mr_translate(
				mrs, roce->reth.rkey, roce->reth.va, roce->reth.dma_len, &use);
		} else {
			*at = rcd_mr_translate(
				mrs, qp->write_key, qp->write_va + qp->hot.in_len, len, &use);
		}
		return *at != NULL ? CHECK_OK : CHECK_REMOTE_ACCESS;
	case RCD_OP_RDMA_READ:
		use.access = RCD_ACCESS_REMOTE_READ;
		*at = rcd_mr_translate(
			mrs, roce->reth.rkey, roce->reth.va, roce->reth.dma_len, &use);
		return *at != NULL ? CHECK_OK : CHECK_REMOTE_ACCESS;
	case RCD_OP_COMPARE_SWAP:
	case RCD_OP_FETCH_ADD:
		use.access = RCD_ACCESS_REMOTE_ATOMIC;
		*at = rcd_mr_translate(
			mrs, roce->atomiceth.rkey, roce->atomiceth.va, RCD_ATOMIC_LEN, &use);
		return resp_check_aligned(*at);
	case RCD_OP_FLUSH:
		use.access = resp_flush_rights(&roce->feth);
		/* A range of no bytes needs its rights as well. */
		use.whole =
			roce->feth.selectivity == RCD_SELECTIVITY_REGION || roce->reth.dma_len == 0;
		*at = rcd_mr_translate(
			mrs, roce->reth.rkey, roce->reth.va, roce->reth.dma_len, &use);
		return *at != NULL ? CHECK_OK : CHECK_REMOTE_ACCESS;
	case RCD_OP_ATOMIC_WRITE:
		use.access = RCD_ACCESS_REMOTE_WRITE;
		*at = rcd_mr_translate(mrs, roce->reth.rkey, roce->reth.va, RCD_ATOMIC_LEN, &use);
		return resp_check_aligned(*at);
	case RCD_OP_SEND:
	case RCD_OP_READ_RESPONSE:
	case RCD_OP_ACKNOWLEDGE:
	case RCD_OP_ATOMIC_RESPONSE:
	case RCD_OP_CNP:
		break;
	}
	return CHECK_OK;
}

/*
 * Room to answer a READ, or what is answered as one. The peer agreed not to have more outstanding.
 * Repeated answers don't count: a peer that asks for something new has what it asked for before.
 *
 * Requesters that don't count FLUSHes, as the kernel's rxe, are to send again what was one too many
 * because of those: nothing was done for it.
 */
static enum check
resp_check_resource(const struct rcd_qp *qp, enum rcd_op op)
{
	const struct rcd_resp_resource *oldest = &qp->resources[qp->resource_next];
	bool flush = op == RCD_OP_FLUSH;

	if (!oldest->pending || oldest->repeated)
		return CHECK_OK;
	for (uint32_t i = 0; i < qp->attr.max_dest_rd_atomic; i++)
		flush |= qp->resources[i].opcode == RCD_OPCODE_RC_FLUSH && qp->resources[i].pending;
	return flush ? CHECK_AGAIN : CHECK_INVALID_REQUEST;
}

/* Spec: IBTA 9.7.4.1, 9.7.5.2.8 a receive work request, or room for an answer */
static enum check
resp_check_resources(struct rcd_qp *qp, const struct rcd_roce *roce, uint32_t len)
{
	enum rcd_op op = resp_op_of(roce);
	bool send = op == RCD_OP_SEND;

	if (!send && op != RCD_OP_RDMA_WRITE)
		return resp_check_resource(qp, op);
	if (!send && !rcd_opcode_has(roce->bth.opcode, RCD_EXT_IMMDT))
		return CHECK_OK;
	if (rcd_qp_need_recv(qp) != 0)
		return CHECK_RNR;
	if (qp->recv.sge_count > qp->recv.sge_max)
		return CHECK_LOCAL;
	if (send) {
		uint32_t before = rcd_opcode_begins(roce->bth.opcode) ? 0 : qp->hot.in_len;

		if ((uint64_t)before + len > rcd_sg_len(qp->recv.sges, qp->recv.sge_count))
			return CHECK_TOO_LONG;
	}
	return CHECK_OK;
}

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
		.add = resp_op_of(roce) == RCD_OP_FETCH_ADD,
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
	if (resp_op_of(roce) == RCD_OP_FETCH_ADD) {
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
	switch (resp_op_of(roce)) {
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
	case RCD_OP_CNP:
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
	bool read = resp_op_of(roce) == RCD_OP_RDMA_READ;
	bool reth = rcd_opcode_has(roce->bth.opcode, RCD_EXT_RETH);
	uint64_t original = 0;

	if (resp_execute_at_once(qp, roce, payload, at, &original) != CHECK_OK)
		return CHECK_REMOTE_ACCESS;
	if (resource->pending)
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
		resource->end = resource->count;
		resource->stop = resource->len;
	} else {
		resource->original = original;
	}
	rcd_qp_note_message(&qp->hot);
	rcd_reply_add(qp, resource);
	*psns = resource->count;
	return CHECK_OK;
}

static void
resp_ask_for_missing(struct rcd_qp *qp, struct rcd_psn seen)
{
	struct rcd_qp_hot *hot = &qp->hot;

	hot->nak_state = RCD_NAK_STATE_SENT;
	hot->nak_pending = true;
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
		resp_ask_for_missing(qp, hot->epsn);
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

/*
 * The request for the expected PSN.
 *
 * Spec: IBTA 9.7.4 order of the checks
 */
static enum rcd_rx_verdict
resp_execute(struct rcd_qp *qp, const struct rcd_roce *roce, const uint8_t *payload, uint32_t len)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint32_t psns = 1;
	uint8_t *at = NULL;
	enum check check = resp_check_sequence(qp, roce);

	if (qp->init.xrc != NULL && !rcd_xrc_check(qp, roce))
		check = CHECK_INVALID_REQUEST;
	if (check == CHECK_OK)
		check = resp_check_offered(qp, roce);
	if (check == CHECK_OK)
		check = resp_check_length(qp, roce, len);
	if (check == CHECK_OK)
		check = resp_check_remote(qp, roce, len, &at);
	if (check == CHECK_OK)
		check = resp_check_resources(qp, roce, len);
	if (check != CHECK_OK)
		return resp_refuse(qp, check);
	/* Before anything completes: who is told of the completion may already ask again. */
	if (hot->nak_state == RCD_NAK_STATE_SENT) {
		/* What was missing came before the NAK could leave: it would ask for nothing. */
		hot->nak_pending = false;
	}
	hot->nak_state = RCD_NAK_STATE_NONE;
	if (resp_op_of(roce) == RCD_OP_SEND)
		check = resp_execute_send(qp, roce, payload, len);
	else if (resp_op_of(roce) == RCD_OP_RDMA_WRITE)
		check = resp_execute_write(qp, roce, payload, len, at);
	else
		check = resp_execute_read(qp, roce, payload, at, &psns);
	if (check != CHECK_OK)
		return resp_refuse(qp, check);
	if (psns == 1 && resp_op_of(roce) <= RCD_OP_RDMA_WRITE) {
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
	if (hot->nak_state == RCD_NAK_STATE_NONE || !rcd_psn_before(qp->nak_high, psn) ||
		++qp->nak_seen >= RCD_NAK_AGAIN_PACKETS)
		resp_ask_for_missing(qp, psn);
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

		/* Others have come again meanwhile and were executed. */
		if (rcd_psn_eq(qp->hot.epsn, kept->roce.bth.psn))
			resp_execute(qp, &kept->roce, kept->payload, kept->payload_len);
		rcd_reorder_put(qp->init.reorder, kept);
	}
	/* The next gap is known already. */
	if (qp->kept.first != NULL && qp->hot.nak_state == RCD_NAK_STATE_NONE)
		resp_ask_for_missing(qp, qp->kept.first->roce.bth.psn);
}

enum rcd_rx_verdict
rcd_resp_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	int32_t ahead = rcd_psn_diff(pkt->roce.bth.psn, qp->hot.epsn);
	enum rcd_rx_verdict verdict;

	if (ahead > 0)
		return resp_rx_ahead(qp, pkt);
	if (ahead < 0)
		return rcd_reply_duplicate(qp, &pkt->roce);
	verdict = resp_execute(qp, &pkt->roce, pkt->payload, pkt->payload_len);
	if (verdict == RCD_RX_EXECUTED && qp->kept.first != NULL)
		resp_drain_kept(qp);
	return verdict;
}
