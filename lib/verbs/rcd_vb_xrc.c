/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * XRC: domains, their shared receive queues, and their targets, which have no queues here.
 * Initiators are made as other queue pairs are.
 */
#include "rcd_vb.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static uint32_t
vb_xrc_handle(const struct ibv_xrcd *xrcd)
{
	return ((const struct rcd_vb_xrcd *)(const void *)xrcd)->handle;
}

struct ibv_xrcd *
rcd_vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct rcd_ctrl_fds fds = { .fds = { attr->fd }, .count = 1 };
	struct rcd_ctrl_xrcd_req req = {
		.flags = ((attr->oflags & O_CREAT) ? RCD_CTRL_O_CREAT : 0) |
			((attr->oflags & O_EXCL) ? RCD_CTRL_O_EXCL : 0),
	};
	struct rcd_ctrl_handle rep;
	struct rcd_vb_xrcd *xrcd;
	int err;

	if (attr->comp_mask != needed || (attr->oflags & ~(O_CREAT | O_EXCL)) ||
		(attr->fd == -1 && !(attr->oflags & O_CREAT))) {
		errno = EINVAL;
		return NULL;
	}
	xrcd = rcd_vb_new(context, sizeof(*xrcd));
	if (xrcd == NULL)
		return NULL;
	if (attr->fd == -1)
		err = rcd_client_call(
			rcd_vb_client(context), RCD_CTRL_XRCD_CREATE, NULL, &rep, NULL, NULL);
	else if (fcntl(attr->fd, F_GETFD) < 0)
		err = -EBADF;
	else
		err = rcd_client_call(
			rcd_vb_client(context), RCD_CTRL_XRCD_OPEN, &req, &rep, &fds, NULL);
	if (err != 0) {
		rcd_vb_free(context, xrcd);
		errno = -err;
		return NULL;
	}
	xrcd->xrcd.context = context;
	xrcd->handle = rep.handle;
	return &xrcd->xrcd;
}

int
rcd_vb_close_xrcd(struct ibv_xrcd *xrcd)
{
	int err = rcd_cl_destroy(
		rcd_vb_client(xrcd->context), RCD_CTRL_XRCD_CLOSE, vb_xrc_handle(xrcd));

	if (err != 0 && err != -EIO)
		return -err;
	rcd_vb_free(xrcd->context, xrcd);
	return 0;
}

struct ibv_srq *
rcd_vb_create_xrc_srq(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t needed = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE |
		IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct rcd_ctrl_xsrq_req req;
	struct rcd_vb_srq *srq;
	int err;

	if (attr->comp_mask != needed) {
		errno = (attr->comp_mask & needed) == needed ? EOPNOTSUPP : EINVAL;
		return NULL;
	}
	srq = rcd_vb_new(context, sizeof(*srq));
	if (srq == NULL)
		return NULL;
	req = (struct rcd_ctrl_xsrq_req){
		.srq = { .pd = attr->pd->handle,
			.depth = attr->attr.max_wr,
			.max_sge = attr->attr.max_sge,
			.cookie = (uintptr_t)srq },
		.xrcd = vb_xrc_handle(attr->xrcd),
		.cq = attr->cq->handle,
	};
	err = rcd_cl_xsrq_create(rcd_vb_client(context), &req, &srq->cl, &srq->number);
	if (err != 0) {
		rcd_vb_free(context, srq);
		errno = -err;
		return NULL;
	}
	rcd_vb_srq_enter(srq, attr->pd, attr->srq_context);
	attr->attr.max_wr = srq->depth;
	attr->attr.max_sge = srq->max_sge;
	return &srq->srq;
}

int
rcd_vb_get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	const struct rcd_vb_srq *srq = rcd_vb_srq(ibv);

	if (srq->number == 0)
		return EOPNOTSUPP;
	*number = srq->number;
	return 0;
}

/* @param op  RCD_CTRL_XQP_CREATE or RCD_CTRL_XQP_OPEN, the latter of the target with this number */
static struct ibv_qp *
vb_xrc_target(struct ibv_context *context, enum rcd_ctrl_op op, const struct ibv_xrcd *xrcd,
	uint32_t qpn, void *qp_context)
{
	struct rcd_vb_qp *qp = rcd_vb_new(context, sizeof(*qp));
	struct rcd_ctrl_xqp_req req = {
		.xrcd = vb_xrc_handle(xrcd), .qpn = qpn, .cookie = (uintptr_t)qp
	};
	struct rcd_ctrl_xqp_rep rep;
	int err;

	if (qp == NULL)
		return NULL;
	err = rcd_client_call(rcd_vb_client(context), op, &req, &rep, NULL, NULL);
	if (err != 0) {
		rcd_vb_free(context, qp);
		errno = -err;
		return NULL;
	}
	qp->cl = (struct rcd_cl_qp){ .client = rcd_vb_client(context),
		.handle = rep.handle,
		.qpn = rep.qpn,
		.target = true };
	qp->qp.qp_base = (struct ibv_qp){ .context = context,
		.qp_context = qp_context,
		.handle = rep.handle,
		.qp_num = rep.qpn,
		.state = IBV_QPS_RESET,
		.qp_type = IBV_QPT_XRC_RECV };
	rcd_vb_qp_enter(qp);
	return &qp->qp.qp_base;
}

struct ibv_qp *
rcd_vb_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = vb_xrc_target(context, RCD_CTRL_XQP_CREATE, attr->xrcd, 0, attr->qp_context);
	if (qp != NULL)
		memset(&attr->cap, 0, sizeof(attr->cap));
	return qp;
}

struct ibv_qp *
rcd_vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	void *qp_context = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) ? attr->qp_context : NULL;

	if ((attr->comp_mask & ~(uint32_t)IBV_QP_OPEN_ATTR_CONTEXT) != needed ||
		attr->qp_type != IBV_QPT_XRC_RECV) {
		errno = EINVAL;
		return NULL;
	}
	return vb_xrc_target(context, RCD_CTRL_XQP_OPEN, attr->xrcd, attr->qp_num, qp_context);
}
