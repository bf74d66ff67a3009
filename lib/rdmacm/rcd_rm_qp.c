/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queue pairs and shared receive queues that belong to an identifier, with the completion queues
 * that the application did not bring.
 */
#include "rcd_rm.h"

#include <string.h>

static void
rm_qp_destroy_cqs(struct rdma_cm_id *id)
{
	/* A target has no queue of its own: they are for the shared one. */
	if (id->qp_type == IBV_QPT_XRC_RECV && id->srq != NULL)
		return;
	if (id->recv_cq != NULL) {
		ibv_destroy_cq(id->recv_cq);
		if (id->send_cq == id->recv_cq)
			id->send_cq = NULL;
		id->recv_cq = NULL;
	}
	if (id->send_cq != NULL)
		ibv_destroy_cq(id->send_cq);
	id->send_cq = NULL;
	if (id->recv_cq_channel != NULL)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq_channel != NULL && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

/* Queues for what the attributes ask, and channels for their events. @return 0 or -errno */
static int
rm_qp_create_cqs(struct rdma_cm_id *id, uint32_t send_size, uint32_t recv_size)
{
	if (recv_size > 0) {
		id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
		if (id->recv_cq_channel == NULL)
			return -errno;
		id->recv_cq = ibv_create_cq(id->verbs, (int)recv_size, id, id->recv_cq_channel, 0);
		if (id->recv_cq == NULL)
			return -errno;
	}
	if (send_size > 0) {
		id->send_cq_channel = ibv_create_comp_channel(id->verbs);
		if (id->send_cq_channel == NULL)
			return -errno;
		id->send_cq = ibv_create_cq(id->verbs, (int)send_size, id, id->send_cq_channel, 0);
		if (id->send_cq == NULL)
			return -errno;
	}
	return 0;
}

/* To the state that a queue pair has before anybody is connected. */
static int
rm_qp_prepare(struct rcd_rm_id *id)
{
	int err = rcd_rm_qp_to(id, IBV_QPS_INIT);

	if (err != 0 || id->base.qp_type != IBV_QPT_UD)
		return err;
	err = rcd_rm_qp_to(id, IBV_QPS_RTR);
	return err != 0 ? err : rcd_rm_qp_to(id, IBV_QPS_RTS);
}

/* A target without a domain of its own is in the device's. @return 0 or -errno */
static int
rm_qp_set_xrcd(struct rcd_rm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (id->base.qp_type != IBV_QPT_XRC_RECV ||
		((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) && attr->xrcd != NULL))
		return 0;
	attr->xrcd = rcd_rm_device_xrcd(id->session, id->device);
	attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return attr->xrcd == NULL ? -errno : 0;
}

static int
rm_qp_create(struct rcd_rm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *base = &id->base;
	bool own_send = attr->send_cq == NULL;
	bool own_recv = attr->recv_cq == NULL;
	int err;

	rcd_rm_look(id);
	if (base->qp != NULL || base->verbs == NULL)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = base->pd;
	} else if (attr->pd->context != base->verbs) {
		return -EINVAL;
	}
	err = rm_qp_set_xrcd(id, attr);
	if (err != 0)
		return err;
	if (attr->srq == NULL && base->srq != NULL)
		attr->srq = base->srq;
	err = rm_qp_create_cqs(base, own_send ? attr->cap.max_send_wr : 0,
		own_recv && (attr->srq == NULL || attr->cap.max_recv_wr > 0) ? attr->cap.max_recv_wr
									     : 0);
	if (err != 0) {
		rm_qp_destroy_cqs(base);
		return err;
	}
	/* A side that has nothing to do takes part in the other's queue. */
	if (own_send)
		attr->send_cq = base->send_cq != NULL ? base->send_cq
			: !own_recv                   ? attr->recv_cq
						      : base->recv_cq;
	if (own_recv)
		attr->recv_cq = base->recv_cq != NULL ? base->recv_cq : attr->send_cq;
	base->qp = ibv_create_qp_ex(base->verbs, attr);
	err = base->qp == NULL ? -errno : rm_qp_prepare(id);
	if (err != 0) {
		if (base->qp != NULL)
			ibv_destroy_qp(base->qp);
		base->qp = NULL;
		rm_qp_destroy_cqs(base);
		return err;
	}
	base->pd = attr->pd;
	return 0;
}

int
rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	return rcd_rm_ret(rm_qp_create(rcd_rm_id(id), attr));
}

int
rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex full;
	int err;

	memset(&full, 0, sizeof(full));
	memcpy(&full, attr, sizeof(*attr));
	if (pd != NULL || id->pd != NULL) {
		full.comp_mask = IBV_QP_INIT_ATTR_PD;
		full.pd = pd != NULL ? pd : id->pd;
	}
	err = rdma_create_qp_ex(id, &full);
	/* What it has become. */
	memcpy(attr, &full, sizeof(*attr));
	return err;
}

void
rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (id->qp != NULL)
		ibv_destroy_qp(id->qp);
	id->qp = NULL;
	rm_qp_destroy_cqs(id);
}

/* What an XRC queue needs and was not given. @return 0 or -errno */
static int
rm_qp_complete_xsrq(struct rcd_rm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct rdma_cm_id *base = &id->base;
	int err = 0;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || attr->xrcd == NULL) {
		attr->xrcd = rcd_rm_device_xrcd(id->session, id->device);
		if (attr->xrcd == NULL)
			return -errno;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || attr->cq == NULL) {
		/* It may be there already: asked for with a target, which does not use it. */
		if (base->recv_cq == NULL)
			err = rm_qp_create_cqs(base, 0, attr->attr.max_wr);
		else if ((uint32_t)base->recv_cq->cqe < attr->attr.max_wr)
			err = -ibv_resize_cq(base->recv_cq, (int)attr->attr.max_wr);
		attr->cq = base->recv_cq;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return err;
}

/* What was made for a shared queue alone has no other user. */
static void
rm_qp_release_cqs(struct rdma_cm_id *id)
{
	if (id->qp == NULL)
		rm_qp_destroy_cqs(id);
}

int
rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int err = 0;

	if (id->verbs == NULL || id->srq != NULL)
		return rcd_rm_ret(-EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->pd->context != id->verbs)
		return rcd_rm_ret(-EINVAL);
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_XRC)
		err = rm_qp_complete_xsrq(rcd_rm_id(id), attr);
	if (err == 0) {
		id->srq = ibv_create_srq_ex(id->verbs, attr);
		err = id->srq == NULL ? -errno : 0;
	}
	if (err != 0) {
		rm_qp_release_cqs(id);
		return rcd_rm_ret(err);
	}
	id->pd = attr->pd;
	return 0;
}

int
rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex full = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
	};
	int err;

	if (pd != NULL) {
		full.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		full.pd = pd;
	}
	err = rdma_create_srq_ex(id, &full);
	attr->attr = full.attr;
	return err;
}

void
rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq != NULL)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
	rm_qp_release_cqs(id);
}
