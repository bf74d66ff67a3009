/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queue pairs and shared receive queues: making, changing, asking, removing.
 */
#include "rcd_vb.h"

#include <stdlib.h>
#include <string.h>

static struct rcd_vb_qp *
vb_qp_make(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr, uint32_t flags)
{
	struct rcd_vb_context *vb = rcd_vb_context(pd->context);
	struct rcd_vb_qp *qp = rcd_vb_new(pd->context, sizeof(*qp));
	bool initiator = attr->qp_type == IBV_QPT_XRC_SEND;
	struct rcd_ctrl_qp_req req = { .pd = pd->handle, .flags = flags, .cookie = (uintptr_t)qp };
	int err = 0;

	if (qp == NULL)
		return NULL;
	if (attr->qp_type == IBV_QPT_RAW_PACKET)
		req.type = RCD_QP_RAW;
	else
		err = rcd_ctrl_qp_type_of_verbs(attr->qp_type, &req.type);
	if (err == 0 &&
		(attr->send_cq == NULL || (initiator ? attr->srq != NULL : attr->recv_cq == NULL)))
		err = EINVAL;
	if (err == 0 &&
		(attr->cap.max_send_wr > vb->rep.max_qp_wr ||
			attr->cap.max_recv_wr > vb->rep.max_qp_wr ||
			attr->cap.max_send_sge > vb->rep.max_sge ||
			attr->cap.max_recv_sge > vb->rep.max_sge ||
			attr->cap.max_inline_data > vb->rep.max_inline))
		err = EINVAL;
	if (err == 0) {
		req.send_cq = attr->send_cq->handle;
		req.recv_cq = (initiator ? attr->send_cq : attr->recv_cq)->handle;
		req.srq = attr->srq != NULL ? attr->srq->handle : RCD_CTRL_NO_HANDLE;
		req.sq_depth = attr->cap.max_send_wr;
		req.rq_depth = initiator ? 0 : attr->cap.max_recv_wr;
		req.max_send_sge = attr->cap.max_send_sge;
		req.max_recv_sge = attr->cap.max_recv_sge;
		req.max_inline = attr->cap.max_inline_data;
		req.signal_all = attr->sq_sig_all != 0;
		err = rcd_vb_ret(rcd_cl_qp_create(&vb->client, &req, &qp->cl));
	}
	if (err != 0) {
		rcd_vb_free(pd->context, qp);
		errno = err;
		return NULL;
	}
	qp->sq_lock.off = qp->rq_lock.off = rcd_vb_single_threaded(pd);
	qp->sig_all = attr->sq_sig_all != 0;
	qp->cap = (struct ibv_qp_cap){ .max_send_wr = qp->cl.sq.mask + 1,
		.max_recv_wr = qp->cl.has_rq ? qp->cl.rq.mask + 1 : 0,
		.max_send_sge = qp->cl.max_send_sge,
		.max_recv_sge = attr->srq != NULL || initiator ? 0 : qp->cl.max_recv_sge,
		.max_inline_data = qp->cl.max_inline };
	qp->qp.qp_base = (struct ibv_qp){ .context = pd->context,
		.qp_context = attr->qp_context,
		.pd = pd,
		.send_cq = attr->send_cq,
		.recv_cq = initiator ? NULL : attr->recv_cq,
		.srq = attr->srq,
		.handle = qp->cl.handle,
		.qp_num = qp->cl.qpn,
		.state = IBV_QPS_RESET,
		.qp_type = attr->qp_type };
	rcd_vb_qp_enter(qp);
	return qp;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct rcd_vb_qp *qp = vb_qp_make(pd, attr, 0);

	if (qp == NULL)
		return NULL;
	attr->cap = qp->cap;
	return &qp->qp.qp_base;
}

/* Operations that a queue pair of this type has, as IBV_QP_EX_WITH_*. */
static uint64_t
vb_qp_operations(enum ibv_qp_type type)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type == IBV_QPT_RAW_PACKET)
		return IBV_QP_EX_WITH_SEND;
	if (type == IBV_QPT_UD)
		return ops;
	ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV |
			IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
	return ops;
}

struct ibv_qp *
rcd_vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr plain = { .qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all };
	bool ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint32_t create = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
	uint32_t flags = create & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ? RCD_CTRL_QP_BLOCK_LOOP : 0;
	struct rcd_vb_qp *qp;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return rcd_vb_create_target(context, attr);
	if ((attr->comp_mask &
		    ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			    IBV_QP_INIT_ATTR_CREATE_FLAGS)) ||
		!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) ||
		(create & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) ||
		(ops && (attr->send_ops_flags & ~vb_qp_operations(attr->qp_type)))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = vb_qp_make(attr->pd, &plain, flags);
	if (qp == NULL)
		return NULL;
	attr->cap = qp->cap;
	if (ops)
		rcd_vb_wr_functions(qp);
	return &qp->qp.qp_base;
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct rcd_vb_qp *qp = rcd_vb_qp(ibv);

	return qp->qp.wr_start != NULL ? &qp->qp : NULL;
}

/* What was completed before RESET is not to be taken for what comes after it. */
static void
vb_qp_clean(struct ibv_cq *ibv, uint32_t qpn)
{
	struct rcd_vb_cq *cq = rcd_vb_cq(ibv);

	rcd_vb_lock(&cq->lock);
	rcd_cl_cq_clean(&cq->cl, qpn);
	rcd_vb_unlock(&cq->lock);
}

/* What programs set at both ends of XRC, and one does not have: the kernel looks over it too. */
static int
vb_qp_not_had(enum ibv_qp_type type)
{
	if (type == IBV_QPT_XRC_SEND)
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (type == IBV_QPT_XRC_RECV)
		return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	return 0;
}

/* @param burst_bytes  with a rate */
static int
vb_qp_modify(struct ibv_qp *ibv, const struct ibv_qp_attr *attr, int mask, uint32_t burst_bytes)
{
	struct rcd_vb_qp *qp = rcd_vb_qp(ibv);
	struct rcd_ctrl_qp_attr to;
	int err;

	mask &= ~vb_qp_not_had(ibv->qp_type);
	err = rcd_ctrl_qp_attr_of_verbs(attr, (uint32_t)mask, &to);
	if (err != 0)
		return err;
	to.burst_bytes = burst_bytes;
	/* Requests are being posted, or they are not: the indices begin anew with RESET. */
	rcd_vb_lock(&qp->sq_lock);
	rcd_vb_lock(&qp->rq_lock);
	err = rcd_cl_qp_modify(&qp->cl, &to, (uint32_t)mask);
	if (err == 0 && (mask & IBV_QP_STATE))
		ibv->state = attr->qp_state;
	rcd_vb_unlock(&qp->rq_lock);
	rcd_vb_unlock(&qp->sq_lock);
	if (err == 0 && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
		if (ibv->send_cq != NULL)
			vb_qp_clean(ibv->send_cq, ibv->qp_num);
		if (ibv->recv_cq != NULL && ibv->recv_cq != ibv->send_cq)
			vb_qp_clean(ibv->recv_cq, ibv->qp_num);
	}
	return rcd_vb_ret(err);
}

int
ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	return vb_qp_modify(ibv, attr, mask, 0);
}

int
rcd_vb_modify_qp_rate_limit(struct ibv_qp *ibv, struct ibv_qp_rate_limit_attr *attr)
{
	struct ibv_qp_attr to = { .rate_limit = attr->rate_limit };

	if (attr->comp_mask != 0 ||
		(attr->rate_limit == 0 && (attr->max_burst_sz != 0 || attr->typical_pkt_sz != 0)))
		return EINVAL;
	/* Each packet is charged with what it has, whatever is typical. */
	return vb_qp_modify(ibv, &to, IBV_QP_RATE_LIMIT, attr->max_burst_sz);
}

int
ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct rcd_vb_qp *qp = rcd_vb_qp(ibv);
	struct rcd_ctrl_handle req = { .handle = qp->cl.handle };
	struct rcd_ctrl_qp_attr from;
	uint32_t asked = RCD_QP_ATTR_ALL;
	int err = rcd_client_call(rcd_vb_client(ibv->context),
		qp->cl.target ? RCD_CTRL_XQP_QUERY : RCD_CTRL_QP_QUERY, &req, &from, NULL, NULL);

	if (err != 0)
		return -err;
	/* Programs of before 2016 have no rate. */
	memset(attr, 0, offsetof(struct ibv_qp_attr, rate_limit));
	if (!(mask & IBV_QP_RATE_LIMIT))
		asked &= ~(uint32_t)RCD_QP_ATTR_RATE;
	rcd_ctrl_qp_attr_to_verbs(&from, asked, attr);
	attr->cap = qp->cap;
	attr->sq_draining = from.sq_draining;
	ibv->state = attr->qp_state;
	*init = (struct ibv_qp_init_attr){ .qp_context = ibv->qp_context,
		.send_cq = ibv->send_cq,
		.recv_cq = ibv->recv_cq,
		.srq = ibv->srq,
		.cap = qp->cap,
		.qp_type = ibv->qp_type,
		.sq_sig_all = qp->sig_all };
	return 0;
}

int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	/* Packets out of order are kept until it is their turn, but copies have no order. */
	return 0;
}

int
ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct rcd_vb_qp *qp = rcd_vb_qp(ibv);
	struct rcd_vb_context *vb = rcd_vb_context(ibv->context);
	int err = rcd_cl_destroy(&vb->client,
		qp->cl.target ? RCD_CTRL_XQP_CLOSE : RCD_CTRL_QP_DESTROY, qp->cl.handle);

	if (err != 0 && err != -EIO)
		return -err;
	pthread_mutex_lock(&vb->lock);
	LIST_REMOVE(qp, link);
	pthread_mutex_unlock(&vb->lock);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != qp->delivered)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	rcd_vb_free(ibv->context, qp);
	return 0;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct rcd_vb_context *vb = rcd_vb_context(pd->context);
	struct rcd_vb_srq *srq = rcd_vb_new(pd->context, sizeof(*srq));
	struct rcd_ctrl_srq_req req = { .pd = pd->handle,
		.depth = attr->attr.max_wr,
		.max_sge = attr->attr.max_sge,
		.cookie = (uintptr_t)srq };
	int err;

	if (srq == NULL)
		return NULL;
	err = rcd_cl_srq_create(&vb->client, &req, &srq->cl);
	if (err != 0) {
		rcd_vb_free(pd->context, srq);
		errno = -err;
		return NULL;
	}
	rcd_vb_srq_enter(srq, pd, attr->srq_context);
	attr->attr.max_wr = srq->depth;
	attr->attr.max_sge = srq->max_sge;
	return &srq->srq;
}

struct ibv_srq *
rcd_vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr plain = { .srq_context = attr->srq_context, .attr = attr->attr };
	struct ibv_srq *srq;

	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_XRC)
		return rcd_vb_create_xrc_srq(context, attr);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) ||
		((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC) ||
		(attr->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	srq = ibv_create_srq(attr->pd, &plain);
	attr->attr = plain.attr;
	return srq;
}

/* Who posts meanwhile waits. @param limit  NULL: it stays */
static int
vb_qp_resize_srq(struct rcd_vb_srq *srq, uint32_t depth, const uint32_t *limit)
{
	int err;

	rcd_vb_lock(&srq->lock);
	err = rcd_cl_srq_resize(&srq->cl, depth, limit);
	srq->depth = srq->cl.wq.mask + 1;
	rcd_vb_unlock(&srq->lock);
	return rcd_vb_ret(err);
}

int
ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct rcd_ctrl_srq_modify_req req = { .handle = rcd_vb_srq(ibv)->cl.handle,
		.limit = attr->srq_limit };

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR)
		return vb_qp_resize_srq(
			rcd_vb_srq(ibv), attr->max_wr, mask & IBV_SRQ_LIMIT ? &req.limit : NULL);
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	return rcd_vb_ret(rcd_client_call(
		rcd_vb_client(ibv->context), RCD_CTRL_SRQ_MODIFY, &req, NULL, NULL, NULL));
}

int
ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct rcd_vb_srq *srq = rcd_vb_srq(ibv);
	struct rcd_ctrl_handle req = { .handle = srq->cl.handle };
	struct rcd_ctrl_srq_query_rep rep;
	int err = rcd_client_call(
		rcd_vb_client(ibv->context), RCD_CTRL_SRQ_QUERY, &req, &rep, NULL, NULL);

	if (err != 0)
		return -err;
	*attr = (struct ibv_srq_attr){
		.max_wr = srq->depth, .max_sge = srq->max_sge, .srq_limit = rep.limit
	};
	return 0;
}

int
ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct rcd_vb_srq *srq = rcd_vb_srq(ibv);
	struct rcd_vb_context *vb = rcd_vb_context(ibv->context);
	int err = rcd_cl_destroy(&vb->client, RCD_CTRL_SRQ_DESTROY, srq->cl.handle);

	if (err != 0 && err != -EIO)
		return -err;
	pthread_mutex_lock(&vb->lock);
	LIST_REMOVE(srq, link);
	pthread_mutex_unlock(&vb->lock);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->events_completed != srq->delivered)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	rcd_vb_free(ibv->context, srq);
	return 0;
}

int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return EOPNOTSUPP;
}

int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	return ece->vendor_id == 0 ? 0 : EOPNOTSUPP;
}
