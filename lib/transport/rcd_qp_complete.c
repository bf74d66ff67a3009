/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What ends a work request: completions of both queues, and the error of a queue pair, with which
 * flushing begins. When either is due the other files decide.
 */
#include <errno.h>

#include "rcd_qp_priv.h"

static const uint8_t wc_opcodes[RCD_WR_OPCODE_COUNT] = {
	[RCD_WR_RDMA_WRITE] = RCD_WC_RDMA_WRITE,
	[RCD_WR_RDMA_WRITE_WITH_IMM] = RCD_WC_RDMA_WRITE,
	[RCD_WR_SEND] = RCD_WC_SEND,
	[RCD_WR_SEND_WITH_IMM] = RCD_WC_SEND,
	[RCD_WR_RDMA_READ] = RCD_WC_RDMA_READ,
	[RCD_WR_COMPARE_SWAP] = RCD_WC_COMP_SWAP,
	[RCD_WR_FETCH_ADD] = RCD_WC_FETCH_ADD,
	[RCD_WR_LOCAL_INV] = RCD_WC_LOCAL_INV,
	[RCD_WR_BIND_MW] = RCD_WC_BIND_MW,
	[RCD_WR_SEND_WITH_INV] = RCD_WC_SEND,
	[RCD_WR_FLUSH] = RCD_WC_FLUSH,
	[RCD_WR_ATOMIC_WRITE] = RCD_WC_ATOMIC_WRITE,
};

void
rcd_qp_flush_begin(struct rcd_qp *qp)
{
	struct rcd_qp_hot *hot = &qp->hot;

	qp->hot.flushing = true;
	qp->tx[0].loaded = qp->tx[1].loaded = qp->read.loaded = false;
	hot->sq_tx = hot->sq_next;
	hot->psn_una = hot->psn_tx = hot->psn_next;
	hot->reads_out = 0;
	hot->sq_failed = 0;
	hot->rto_deadline = hot->wait_until = 0;
	rcd_gate_flush(qp);
	rcd_recover_reset(qp);
	hot->repair = hot->sack_holes = false;
	qp->repaired = false;
	qp->sent_unreliable = false;
}

void
rcd_qp_check_drained(struct rcd_qp *qp)
{
	if (qp->hot.state != RCD_QP_SQD || qp->drained || qp->hot.sq_head != qp->hot.sq_next)
		return;
	qp->drained = true;
	if (qp->attr.sqd_notify)
		rcd_qp_raise(qp, RCD_EVENT_SQ_DRAINED);
}

void
rcd_qp_complete_send(
	struct rcd_qp *qp, uint64_t wr_id, uint8_t opcode, uint32_t len, enum rcd_wc_status status)
{
	struct rcd_cqe cqe = {
		.wr_id = wr_id,
		.status = (uint8_t)status,
		.opcode = opcode < RCD_WR_OPCODE_COUNT ? wc_opcodes[opcode] : RCD_WC_SEND,
		/* Spec: IBTA 11.4.2 an error wakes those who wait for solicited completions */
		.solicited = status != RCD_WC_SUCCESS,
		.byte_len = len,
		.qpn = qp->init.qpn,
	};

	qp->hot.ops->complete(qp->hot.arg, &cqe);
}

void
rcd_qp_drop_kept(struct rcd_qp *qp)
{
	rcd_reorder_drop(qp->init.reorder, &qp->kept);
	if (qp->sack != NULL)
		rcd_sack_drop_kept(qp);
}

void
rcd_qp_error(struct rcd_qp *qp, enum rcd_event event)
{
	if (qp->hot.state == RCD_QP_ERR)
		return;
	rcd_qp_set_state(&qp->hot, RCD_QP_ERR);
	if (event != 0)
		rcd_qp_raise(qp, event);
	rcd_qp_drop_kept(qp);
	rcd_reorder_drop(qp->init.reorder, &qp->answers);
	rcd_qp_flush_begin(qp);
}

void
rcd_qp_complete_head(struct rcd_qp *qp, enum rcd_wc_status status)
{
	struct rcd_qp_hot *hot = &qp->hot;
	const struct rcd_sq_rec *rec = rcd_sq_rec(qp, hot->sq_head);

	if (status != RCD_WC_SUCCESS || (rec->psn_flags & RCD_REC_SIGNALED))
		rcd_qp_complete_send(qp, rec->wr_id, rcd_rec_opcode(rec), rec->len, status);
	rcd_qp_set_sq_head(hot, hot->sq_head + 1);
	if (status == RCD_WC_SUCCESS) {
		rcd_qp_check_drained(qp);
		return;
	}
	/* Spec: IBTA 10.3.1 unreliable services go on receiving after an error of the send queue */
	if (rcd_qp_is_reliable(qp)) {
		rcd_qp_error(qp, 0);
	} else {
		rcd_qp_set_state(hot, RCD_QP_SQE);
		rcd_qp_flush_begin(qp);
	}
}

/* From the queue that the message is for. */
static int
qp_complete_fetch_xrc(struct rcd_qp *qp)
{
	struct rcd_srq *srq = rcd_xrc_find(qp->init.xrc, qp->srqn);

	if (srq == NULL)
		return -EAGAIN;
	/* Its slots have no more, and what lies behind them is others'. */
	qp->recv.sge_max =
		srq->max_sge < qp->init.max_recv_sge ? srq->max_sge : qp->init.max_recv_sge;
	qp->srq_serial = srq->serial;
	return rcd_srq_fetch(srq, &qp->recv);
}

int
rcd_qp_need_recv(struct rcd_qp *qp)
{
	int err;

	if (qp->recv_valid)
		return 0;
	if (qp->init.srq != NULL) {
		err = rcd_srq_fetch(qp->init.srq, &qp->recv);
	} else if (qp->init.xrc != NULL) {
		err = qp_complete_fetch_xrc(qp);
	} else {
		err = qp->hot.ops->fetch_recv(qp->hot.arg, qp->rq_next, &qp->recv);
		if (err == 0)
			qp->rq_next++;
	}
	qp->recv_valid = err == 0;
	return err;
}

void
rcd_qp_complete_recv(struct rcd_qp *qp, struct rcd_cqe *cqe)
{
	const struct rcd_srq *srq;

	cqe->wr_id = qp->recv.wr_id;
	cqe->recv = true;
	cqe->qpn = qp->init.qpn;
	if (cqe->opcode == 0)
		cqe->opcode = RCD_WC_RECV;
	if (cqe->status != RCD_WC_SUCCESS)
		cqe->solicited = true;
	qp->recv_valid = false;
	if (cqe->status == RCD_WC_SUCCESS)
		rcd_qp_count(qp, RCD_COUNTER_RDMA_RECVS, 1);
	if (qp->init.xrc == NULL) {
		qp->hot.ops->complete(qp->hot.arg, cqe);
		return;
	}
	srq = rcd_xrc_find(qp->init.xrc, qp->srqn);
	if (srq != NULL && srq->serial == qp->srq_serial)
		srq->ops->complete(srq->arg, cqe);
}

void
rcd_qp_complete_message(struct rcd_qp *qp, const struct rcd_roce *roce, enum rcd_wc_opcode opcode)
{
	struct rcd_cqe cqe = {
		.opcode = (uint8_t)opcode,
		.solicited = roce->bth.solicited,
		.byte_len = qp->hot.in_len,
	};

	if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_IMMDT)) {
		cqe.flags = RCD_WC_WITH_IMM;
		cqe.imm = roce->immdt.data;
	} else if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_IETH)) {
		cqe.flags = RCD_WC_WITH_INV;
		cqe.imm = roce->ieth.rkey.val;
	}
	rcd_qp_complete_recv(qp, &cqe);
}
