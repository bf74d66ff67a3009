/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester: the requests of RC that have an answer of their own. READs and atomics bring data
 * back; FLUSH and ATOMIC WRITE are answered by READ responses of no bytes, and count as READs in
 * all else: how many may be outstanding, fences, what is done about a missing answer.
 */
#include "rcd_req_read.h"

#include "rcd_qp_priv.h"

/* What is asked for that there is not, or more of it than a RETH may name. */
static enum rcd_wc_status
req_read_check_flush(const struct rcd_send_wr *wr)
{
	if (wr->flush.placement == 0 || (wr->flush.placement & ~RCD_PLACEMENT_ALL) ||
		wr->flush.selectivity > RCD_SELECTIVITY_REGION)
		return RCD_WC_LOC_QP_OP_ERR;
	return wr->flush.selectivity == RCD_SELECTIVITY_RANGE && wr->flush.len > RCD_MSG_MAX_BYTES
		? RCD_WC_LOC_LEN_ERR
		: RCD_WC_SUCCESS;
}

enum rcd_wc_status
rcd_req_check_read(const struct rcd_qp *qp, const struct rcd_wr_slot *slot)
{
	const struct rcd_send_wr *wr = &slot->wr;

	if (rcd_wr_is_atomic((enum rcd_wr_opcode)wr->opcode)) {
		if (slot->len != RCD_ATOMIC_LEN)
			return RCD_WC_LOC_LEN_ERR;
		if (wr->remote.va % RCD_ATOMIC_LEN != 0)
			return RCD_WC_LOC_QP_OP_ERR;
	}
	if (wr->opcode == RCD_WR_ATOMIC_WRITE && wr->atomic_write.va % RCD_ATOMIC_LEN != 0)
		return RCD_WC_LOC_QP_OP_ERR;
	if (qp->attr.max_rd_atomic == 0)
		return RCD_WC_LOC_QP_OP_ERR;
	return wr->opcode == RCD_WR_FLUSH ? req_read_check_flush(wr) : RCD_WC_SUCCESS;
}

bool
rcd_req_read_waits(const struct rcd_qp *qp, uint32_t packets)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	uint32_t outstanding = rcd_psn_span(hot->psn_una, hot->psn_next);
	uint32_t counted = packets < RCD_READ_WINDOW_PKTS / 2 ? packets : RCD_READ_WINDOW_PKTS / 2;

	return hot->reads_out > 0 &&
		(hot->reads_out >= qp->attr.max_rd_atomic ||
			outstanding + counted > RCD_READ_WINDOW_PKTS);
}

bool
rcd_req_read_pauses(struct rcd_qp *qp)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	const struct rcd_sq_rec *rec = rcd_sq_rec(qp, hot->sq_tx);
	uint32_t asked = (uint32_t)rcd_psn_diff(hot->psn_tx, rcd_rec_psn(rec));

	if (rcd_rec_opcode(rec) != RCD_WR_RDMA_READ || !rcd_psn_eq(hot->psn_tx, hot->psn_next))
		return false;
	return rcd_gate_is_full(qp) ||
		(asked > 0 && rcd_req_read_waits(qp, rcd_packets(qp, rec->len) - asked));
}

/* Whether so little is missing that it is asked for hole by hole, one in a round trip. */
static bool
req_read_is_sparse(const struct rcd_qp *qp)
{
	const struct rcd_kept_list *answers = &qp->answers;
	uint32_t span, missing;

	/* What is kept may be about to be taken. */
	if (answers->first == NULL || !rcd_psn_before(qp->hot.psn_tx, answers->first->roce.bth.psn))
		return false;
	span = (uint32_t)rcd_psn_diff(answers->last->roce.bth.psn, qp->hot.psn_tx) + 1;
	missing = span - answers->count;
	return missing <= 3 + span / RCD_READ_SPARSE;
}

/* Nothing has answered since a timeout: one packet, and the rest when that has come. */
static bool
req_read_is_tried(const struct rcd_qp *qp)
{
	return qp->hot.window == 1 && rcd_psn_before(qp->hot.psn_tx, qp->hot.psn_next);
}

/*
 * How much of a READ is asked for, of what is left of it: all; alone and out of turn, what is
 * missing before the first response that was kept; by a probe, one packet.
 */
static uint32_t
req_read_len(const struct rcd_qp *qp, uint32_t left)
{
	uint32_t packets;

	if (req_read_is_tried(qp))
		return left < qp->hot.mtu ? left : qp->hot.mtu;
	if (!qp->repairing || (!qp->repair_probe && !req_read_is_sparse(qp)))
		return left;
	packets = qp->repair_probe
		? 1
		: (uint32_t)rcd_psn_diff(qp->answers.first->roce.bth.psn, qp->hot.psn_tx);
	return packets < rcd_packets(qp, left) ? packets << qp->hot.mtu_shift : left;
}

/* Each of these answers may come when its READ is complete, ahead of what waits behind it. */
static void
req_read_note_again(struct rcd_qp *qp, uint32_t packets)
{
	uint32_t due = RCD_LATE_MAX - qp->late_due;

	qp->late_due += (uint16_t)(packets < due ? packets : due);
}

/* READ: from the first response that is missing. Atomics. @return PSNs that are behind it then */
static uint32_t
req_read_fill(struct rcd_qp *qp, const struct rcd_wr_slot *slot, struct rcd_roce *roce)
{
	struct rcd_psn start = rcd_rec_psn(rcd_sq_rec(qp, qp->hot.sq_tx));
	uint32_t offset = (uint32_t)rcd_psn_diff(qp->hot.psn_tx, start) << qp->hot.mtu_shift;
	const struct rcd_send_wr *wr = &slot->wr;
	uint32_t left = slot->len - offset;

	if (qp->hot.limited && wr->opcode == RCD_WR_RDMA_READ)
		left = rcd_gate_part(qp, left);
	roce->reth = (struct rcd_reth){
		.va = wr->remote.va + offset,
		.rkey = wr->remote.rkey,
		.dma_len = req_read_len(qp, left),
	};
	if (!rcd_psn_eq(qp->hot.psn_tx, qp->hot.psn_next) && wr->opcode == RCD_WR_RDMA_READ)
		req_read_note_again(qp, rcd_packets(qp, roce->reth.dma_len));
	roce->atomiceth = (struct rcd_atomiceth){
		.va = wr->remote.va,
		.rkey = wr->remote.rkey,
		.swap_or_add = wr->opcode == RCD_WR_COMPARE_SWAP ? wr->remote.swap
								 : wr->remote.compare_or_add,
		.compare = wr->opcode == RCD_WR_COMPARE_SWAP ? wr->remote.compare_or_add : 0,
	};
	return wr->opcode == RCD_WR_RDMA_READ && !req_read_is_tried(qp) ? rcd_packets(qp, left) : 1;
}

/* A region has its length by itself, and may be longer than a RETH can say. */
static void
req_read_fill_flush(const struct rcd_send_wr *wr, struct rcd_roce *roce)
{
	roce->feth = (struct rcd_feth){
		.placement = wr->flush.placement,
		.selectivity = wr->flush.selectivity,
	};
	roce->reth = (struct rcd_reth){
		.va = wr->flush.va,
		.rkey = wr->flush.rkey,
		.dma_len = wr->flush.selectivity == RCD_SELECTIVITY_RANGE ? (uint32_t)wr->flush.len
									  : 0,
	};
}

/* Its bytes lie in the slot, as inline data does. */
static void
req_read_fill_atomic_write(struct rcd_qp *qp, struct rcd_wr_slot *slot, struct rcd_tx_pkt *pkt)
{
	struct rcd_send_wr *wr = &slot->wr;

	pkt->roce.reth = (struct rcd_reth){
		.va = wr->atomic_write.va,
		.rkey = wr->atomic_write.rkey,
		.dma_len = RCD_ATOMIC_LEN,
	};
	qp->hot.tx_built = slot == &qp->tx[1];
	pkt->pieces[0] = (struct rcd_piece){ wr->atomic_write.bytes, RCD_ATOMIC_LEN };
	pkt->piece_count = 1;
	pkt->payload_len = RCD_ATOMIC_LEN;
}

uint32_t
rcd_req_build_read(
	struct rcd_qp *qp, struct rcd_wr_slot *slot, uint8_t opcode, struct rcd_tx_pkt *pkt)
{
	rcd_qp_start_pkt(qp, pkt, opcode, qp->hot.psn_tx);
	pkt->roce.bth.ack_req = true;
	pkt->roce.xrceth.srqn = slot->wr.remote.srqn;
	if (slot->wr.opcode == RCD_WR_FLUSH)
		req_read_fill_flush(&slot->wr, &pkt->roce);
	else if (slot->wr.opcode == RCD_WR_ATOMIC_WRITE)
		req_read_fill_atomic_write(qp, slot, pkt);
	else
		return req_read_fill(qp, slot, &pkt->roce);
	return 1;
}
