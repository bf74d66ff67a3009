/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an error leaves in the queues of a queue pair: flushed piece by piece, as the host calls. It
 * does not decide when a queue pair fails.
 */
#include "rcd_qp_priv.h"

/* Send work requests that were begun, then those that were only posted. @return whether one was */
static bool
flush_send(struct rcd_qp *qp)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_send_wr *wr = &qp->tx[0].wr;

	if (hot->sq_head != hot->sq_next) {
		const struct rcd_sq_rec *rec = rcd_sq_rec(qp, hot->sq_head);

		rcd_qp_set_sq_head(hot, hot->sq_head + 1);
		rcd_qp_complete_send(qp, rec->wr_id, rcd_rec_opcode(rec), 0, RCD_WC_WR_FLUSH_ERR);
		return true;
	}
	if (hot->ops->fetch_send(hot->arg, hot->sq_next, wr) != 0)
		return false;
	hot->sq_tx = ++hot->sq_next;
	rcd_qp_set_sq_head(hot, hot->sq_next);
	rcd_qp_complete_send(qp, wr->wr_id, wr->opcode, 0, RCD_WC_WR_FLUSH_ERR);
	return true;
}

static bool
flush_recv(struct rcd_qp *qp)
{
	struct rcd_cqe cqe = { .status = RCD_WC_WR_FLUSH_ERR };

	if (!qp->recv_valid && (qp->init.srq != NULL || qp->init.xrc != NULL)) {
		/* Spec: IBTA 11.6.3 nothing more will be taken from the shared queue */
		if (!qp->gone)
			rcd_qp_raise(qp, RCD_EVENT_QP_LAST_WQE_REACHED);
		qp->gone = true;
		return false;
	}
	if (rcd_qp_need_recv(qp) != 0)
		return false;
	rcd_qp_complete_recv(qp, &cqe);
	return true;
}

void
rcd_qp_posted(struct rcd_qp *qp)
{
	if (qp->hot.state == RCD_QP_ERR || qp->hot.state == RCD_QP_SQE)
		qp->hot.flushing = true;
}

bool
rcd_qp_flushing(const struct rcd_qp *qp)
{
	return qp->hot.flushing;
}

/* Spec: IBTA 10.3.1, 11.4.2 each work request completes once, in the order of its queue */
uint32_t
rcd_qp_flush(struct rcd_qp *qp, uint32_t budget)
{
	uint32_t done = 0;

	while (qp->hot.flushing && done < budget) {
		if (flush_send(qp) || (qp->hot.state == RCD_QP_ERR && flush_recv(qp)))
			done++;
		else
			qp->hot.flushing = false;
	}
	return done;
}
