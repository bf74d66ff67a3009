/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What comes later than its packet: the end of copies of foreign memory, which the host makes
 * when it can. When it fails, the queue pair does then what it would have done with the packet.
 */
#include "rcd_qp_priv.h"

void
rcd_qp_keep_nothing(struct rcd_qp *qp)
{
	rcd_qp_drop_kept(qp);
	rcd_reorder_drop(qp->init.reorder, &qp->answers);
	qp->init.reorder = NULL;
}

/* Of a peer, or our answer to it: it is told, and so is who posted the receive that was in use. */
static void
qp_copy_refuse_request(struct rcd_qp *qp, const struct rcd_qp_copy *late)
{
	struct rcd_cqe cqe = { .status = RCD_WC_LOC_PROT_ERR };

	if (rcd_qp_is_reliable(qp)) {
		rcd_reply_refuse(qp, late->psn,
			late->send ? RCD_NAK_REMOTE_OPERATION : RCD_NAK_REMOTE_ACCESS);
		rcd_qp_count(qp, RCD_COUNTER_SEND_ERR, 1);
	}
	if (late->send && !late->told && qp->recv_valid)
		rcd_qp_complete_recv(qp, &cqe);
	rcd_qp_error(qp, late->send ? 0 : RCD_EVENT_QP_ACCESS_ERR);
}

/* The request of our own that a packet is of. */
static void
qp_copy_fail_request(struct rcd_qp *qp, struct rcd_psn psn)
{
	const struct rcd_qp_hot *hot = &qp->hot;

	/* Sent again, and acknowledged meanwhile; or an earlier one fails anyway. */
	if (hot->sq_head == hot->sq_next || rcd_psn_before(psn, hot->psn_una) ||
		hot->sq_failed != 0)
		return;
	rcd_req_fail_at(qp, rcd_req_find(qp, psn), RCD_WC_LOC_PROT_ERR);
}

void
rcd_qp_copy_failed(struct rcd_qp *qp, const struct rcd_qp_copy *late)
{
	if (qp->hot.state < RCD_QP_RTR || qp->hot.state == RCD_QP_ERR)
		return;
	if (late->own && !late->response)
		qp_copy_fail_request(qp, late->psn);
	else if (late->own || !late->response)
		qp_copy_refuse_request(qp, late);
	else if (!late->told && qp->hot.sq_head != qp->hot.sq_next)
		rcd_qp_complete_head(qp, RCD_WC_LOC_PROT_ERR);
	else
		rcd_qp_error(qp, 0);
}

void
rcd_qp_atomic_done(struct rcd_qp *qp, struct rcd_psn psn, uint64_t original)
{
	for (uint32_t i = 0; i < qp->init.max_rd_atomic; i++) {
		struct rcd_resp_resource *resource = &qp->resources[i];

		if (resource->opcode != 0 &&
			rcd_opcode_info(resource->opcode)->op != RCD_OP_RDMA_READ &&
			rcd_psn_eq(rcd_psn(resource->psn), psn))
			resource->original = original;
	}
}
