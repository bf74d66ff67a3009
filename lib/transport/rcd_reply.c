/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Responder of RC, the sending half: acknowledges, NAKs, and responses to READs and atomics, in the
 * order of the requests. FLUSH and ATOMIC WRITE are answered as READs of no bytes are.
 *
 * Responses are made when they are sent, from the resource that keeps the request; nothing is
 * copied in between. An acknowledge waits until the responses before it are out, since it would
 * tell the requester that they are lost. One acknowledge covers all requests that asked for one
 * since the last.
 */
#include "rcd_qp_priv.h"

/* @param opcode  as RC has it */
static void
reply_start(struct rcd_qp *qp, struct rcd_tx_pkt *pkt, uint8_t opcode, struct rcd_psn psn)
{
	rcd_qp_start_pkt(qp, pkt, rcd_qp_opcode(qp, opcode), psn);
	pkt->roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	pkt->roce.aeth.msn = rcd_psn(qp->hot.messages);
	rcd_qp_count(qp, RCD_COUNTER_SENT_PKTS, 1);
}

void
rcd_reply_add(struct rcd_qp *qp, struct rcd_resp_resource *resource)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint8_t room = qp->init.max_rd_atomic;
	uint8_t at = hot->reply_count;

	if (resource->pending)
		return;
	RCD_CHECK(hot->reply_count < room);
	/*
	 * In the order of the PSNs: what a peer asks for again goes before what is still to be
	 * answered of later requests. Behind them it might never have its turn, since the peer
	 * asks for those again as well, as long as this one is missing.
	 */
	for (; at > 0; at--) {
		uint8_t before = qp->replies[(qp->reply_first + at - 1) % room];

		if (!rcd_psn_before(rcd_psn(resource->psn), rcd_psn(qp->resources[before].psn)))
			break;
		qp->replies[(qp->reply_first + at) % room] = before;
	}
	qp->replies[(qp->reply_first + at) % room] = (uint8_t)(resource - qp->resources);
	hot->reply_count++;
	resource->pending = true;
}

static void
reply_remove_first(struct rcd_qp *qp)
{
	qp->resources[qp->replies[qp->reply_first]].pending = false;
	qp->reply_first = (uint8_t)((qp->reply_first + 1) % qp->init.max_rd_atomic);
	qp->hot.reply_count--;
}

void
rcd_reply_cancel(struct rcd_qp *qp, struct rcd_resp_resource *resource)
{
	uint8_t room = qp->init.max_rd_atomic;
	uint8_t number = (uint8_t)(resource - qp->resources);
	uint8_t kept = 0;

	if (qp->again_resource == number)
		qp->again.next = qp->again.end;
	if (!resource->pending)
		return;
	for (uint8_t i = 0; i < qp->hot.reply_count; i++) {
		uint8_t reply = qp->replies[(qp->reply_first + i) % room];

		if (reply != number)
			qp->replies[(qp->reply_first + kept++) % room] = reply;
	}
	qp->hot.reply_count = kept;
	resource->pending = false;
}

/*
 * @param stop  bytes of the READ at which the last of the run ends
 * @return false when the memory may not be read any more
 */
static bool
reply_build_read_response(struct rcd_qp *qp, const struct rcd_resp_resource *resource,
	struct rcd_reply_run *run, uint32_t stop, bool first, struct rcd_tx_pkt *pkt)
{
	struct rcd_mr_use use = { .pd = qp->init.pd,
		.qpn = qp->init.qpn.val,
		.access = RCD_ACCESS_REMOTE_READ,
		.remote = true };
	uint32_t offset = run->next << qp->hot.mtu_shift;
	uint32_t rest = stop - offset;
	uint32_t len = rest > qp->hot.mtu ? qp->hot.mtu : rest;
	bool last = run->next + 1 == run->end;
	struct rcd_key rkey = { resource->rkey };
	uint8_t *base;
	uint8_t opcode;

	if (qp->init.xrc != NULL) {
		if (rcd_xrc_enter(qp, resource->srqn) == NULL)
			return false;
		use.pd = qp->init.pd;
	}
	base = rcd_mr_translate(qp->hot.mrs, rkey, resource->va + offset, len, &use);
	if (base == NULL)
		return false;
	if (first)
		opcode = last ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY
			      : RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST;
	else
		opcode = last ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST
			      : RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE;
	reply_start(qp, pkt, opcode, rcd_psn(resource->psn + run->next));
	pkt->payload_len = len;
	pkt->pieces[0] = (struct rcd_piece){ base, len };
	pkt->piece_count = len > 0;
	rcd_qp_count(qp, RCD_COUNTER_SENT_BYTES, len);
	run->next++;
	return true;
}

/* Of a READ, in the order of the requests. @return as above */
static bool
reply_build_read_run(struct rcd_qp *qp, struct rcd_resp_resource *resource, struct rcd_tx_pkt *pkt)
{
	if (!reply_build_read_response(
		    qp, resource, &resource->run, resource->stop, resource->first, pkt))
		return false;
	resource->first = false;
	if (resource->run.next == resource->run.end)
		reply_remove_first(qp);
	return true;
}

/* Bytes of a READ at which a response ends if it is as long as it may be. */
static uint32_t
reply_stop(const struct rcd_qp *qp, const struct rcd_resp_resource *resource, uint32_t packets)
{
	return packets < resource->count ? packets << qp->hot.mtu_shift : resource->len;
}

/*
 * What the peer asked for again, ahead of the rest, which goes on behind it as if nothing had come
 * between: who has asked for nothing again, and gets this of a late duplicate, drops it and waits
 * for the next of the rest, a FIRST of which would be an error. A duplicate that can't be answered
 * any more is dropped.
 */
static bool
reply_build_again(struct rcd_qp *qp, struct rcd_tx_pkt *pkt)
{
	const struct rcd_resp_resource *resource = &qp->resources[qp->again_resource];
	uint32_t stop = reply_stop(qp, resource, qp->again.end);
	bool built =
		reply_build_read_response(qp, resource, &qp->again, stop, qp->again_first, pkt);

	qp->again_first = false;
	if (!built)
		qp->again.next = qp->again.end;
	return built;
}

static bool
reply_build_response(struct rcd_qp *qp, struct rcd_tx_pkt *pkt)
{
	struct rcd_resp_resource *resource = &qp->resources[qp->replies[qp->reply_first]];

	if (rcd_opcode_info(resource->opcode)->op == RCD_OP_RDMA_READ)
		return reply_build_read_run(qp, resource, pkt);
	if (resource->opcode == RCD_OPCODE_RC_FLUSH ||
		resource->opcode == RCD_OPCODE_RC_ATOMIC_WRITE) {
		reply_start(qp, pkt, RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY, rcd_psn(resource->psn));
	} else {
		reply_start(qp, pkt, RCD_OPCODE_RC_ATOMIC_ACKNOWLEDGE, rcd_psn(resource->psn));
		pkt->roce.atomicacketh.original = resource->original;
	}
	reply_remove_first(qp);
	return true;
}

void
rcd_reply_refuse(struct rcd_qp *qp, struct rcd_psn psn, enum rcd_nak code)
{
	/* What is still to be answered is void; the NAK acknowledges what came before. */
	qp->hot.epsn = psn;
	qp->again.next = qp->again.end;
	while (qp->hot.reply_count > 0)
		reply_remove_first(qp);
	qp->hot.nak_pending = true;
	qp->hot.hole_untold = false;
	qp->hot.nak_syndrome = rcd_aeth_syndrome(RCD_AETH_NAK, (uint8_t)code);
}

/*
 * The memory of a READ went away before it was answered.
 *
 * Spec: IBTA 9.7.5.1 a duplicate that can't be executed any more is dropped in silence
 *
 * The duplicate may be a late one: a peer that has its data may tell whoever owns the memory that
 * it can go, and nobody has done anything wrong.
 */
static void
reply_refuse_response(struct rcd_qp *qp)
{
	struct rcd_resp_resource *resource = &qp->resources[qp->replies[qp->reply_first]];

	if (resource->repeated) {
		reply_remove_first(qp);
		return;
	}
	rcd_reply_refuse(qp, rcd_psn(resource->psn + resource->run.next), RCD_NAK_REMOTE_ACCESS);
	rcd_qp_error(qp, RCD_EVENT_QP_ACCESS_ERR);
}

bool
rcd_reply_next(struct rcd_qp *qp, struct rcd_tx_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;

	if (qp->again.next != qp->again.end && reply_build_again(qp, pkt))
		return true;
	while (hot->reply_count > 0) {
		if (reply_build_response(qp, pkt))
			return true;
		reply_refuse_response(qp);
	}
	if (hot->nak_pending) {
		/* It acknowledges all before it. */
		hot->nak_pending = hot->ack_pending = hot->hole_untold = false;
		if (hot->nak_state == RCD_NAK_STATE_SENT && qp->nak_beside > 0)
			qp->nak_beside--;
		reply_start(qp, pkt, RCD_OPCODE_RC_ACKNOWLEDGE, hot->epsn);
		pkt->roce.aeth.syndrome = hot->nak_syndrome;
		return true;
	}
	if (hot->ack_pending) {
		hot->ack_pending = false;
		reply_start(qp, pkt, RCD_OPCODE_RC_ACKNOWLEDGE, hot->ack_psn);
		return true;
	}
	return false;
}

/* The saved request that a duplicate repeats, or NULL. */
static struct rcd_resp_resource *
reply_find_resource(struct rcd_qp *qp, struct rcd_psn psn)
{
	/* The newest first: PSNs come round again. */
	for (uint32_t i = 1; i <= qp->attr.max_dest_rd_atomic; i++) {
		struct rcd_resp_resource *resource =
			&qp->resources[(qp->resource_next + qp->attr.max_dest_rd_atomic - i) %
				qp->attr.max_dest_rd_atomic];

		if (resource->opcode != 0 &&
			rcd_psn_in(psn, rcd_psn(resource->psn), resource->count))
			return resource;
	}
	return NULL;
}

/*
 * Spec: IBTA 9.7.5.1 a duplicate READ may ask for a part of the first, never for more
 *
 * It adds to what is still to be sent and takes nothing away: who repeated it need not be the peer,
 * and may know nothing of what the peer is waiting for.
 */
static enum rcd_rx_verdict
reply_repeat_read(
	struct rcd_qp *qp, struct rcd_resp_resource *resource, const struct rcd_roce *roce)
{
	uint32_t packet = (uint32_t)rcd_psn_diff(roce->bth.psn, rcd_psn(resource->psn));
	uint32_t offset = packet << qp->hot.mtu_shift;
	uint32_t len = roce->reth.dma_len;
	struct rcd_reply_run run;
	uint32_t stop;

	if (rcd_opcode_info(resource->opcode)->op != RCD_OP_RDMA_READ ||
		roce->reth.va != resource->va + offset || roce->reth.rkey.val != resource->rkey ||
		len > resource->len - offset)
		return RCD_RX_STALE;
	run = (struct rcd_reply_run){ packet, packet + rcd_packets(qp, len) };
	stop = offset + len;
	/* All of it went before: ahead of what is still to be answered, which goes on after it. */
	if (qp->again.next == qp->again.end && stop == reply_stop(qp, resource, run.end) &&
		(resource->pending ? run.end <= resource->run.next : qp->hot.reply_count > 0)) {
		qp->again = run;
		qp->again_resource = (uint8_t)(resource - qp->resources);
		qp->again_first = true;
		return RCD_RX_DUPLICATE;
	}
	if (!resource->pending) {
		resource->repeated = true;
		resource->run.end = resource->stop = 0;
	}
	if (!resource->pending || packet <= resource->run.next) {
		resource->run.next = packet;
		resource->first = true;
	}
	if (run.end > resource->run.end)
		resource->run.end = run.end;
	if (stop > resource->stop)
		resource->stop = stop;
	rcd_reply_add(qp, resource);
	return RCD_RX_DUPLICATE;
}

enum rcd_rx_verdict
rcd_reply_duplicate(struct rcd_qp *qp, const struct rcd_roce *roce)
{
	struct rcd_qp_hot *hot = &qp->hot;
	enum rcd_op op = (enum rcd_op)rcd_opcode_info(roce->bth.opcode)->op;
	struct rcd_resp_resource *resource;
	bool reth;

	if (op == RCD_OP_SEND || op == RCD_OP_RDMA_WRITE) {
		/* Spec: IBTA 9.7.5.1 acknowledged with the newest PSN, not executed */
		if (roce->bth.ack_req && !hot->nak_pending) {
			hot->ack_pending = true;
			hot->ack_psn = rcd_psn_sub(hot->epsn, 1);
		}
		return RCD_RX_DUPLICATE;
	}
	resource = reply_find_resource(qp, roce->bth.psn);
	if (resource == NULL)
		return RCD_RX_STALE;
	if (op == RCD_OP_RDMA_READ)
		return reply_repeat_read(qp, resource, roce);
	/*
	 * Spec: IBTA 9.4.5 the result was saved; executing it twice is what must never happen
	 * Spec: Annex A19 a duplicate FLUSH or ATOMIC WRITE is answered again, not executed
	 */
	reth = rcd_opcode_has(roce->bth.opcode, RCD_EXT_RETH);
	if (resource->opcode != roce->bth.opcode ||
		resource->va != (reth ? roce->reth.va : roce->atomiceth.va) ||
		resource->rkey != (reth ? roce->reth.rkey.val : roce->atomiceth.rkey.val))
		return RCD_RX_STALE;
	/* Nothing was looked at of what asks for something else. */
	if (reth && resource->len != roce->reth.dma_len)
		return RCD_RX_STALE;
	if (op == RCD_OP_FLUSH &&
		(resource->feth.placement != roce->feth.placement ||
			resource->feth.selectivity != roce->feth.selectivity))
		return RCD_RX_STALE;
	resource->repeated |= !resource->pending;
	rcd_reply_add(qp, resource);
	return RCD_RX_DUPLICATE;
}
