/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queue pairs of a context: made and freed by the control thread, shown to and taken from the lcore
 * by commands.
 */
#include "rcd_hqp.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_bits.h"
#include "rcd_cc.h"
#include "rcd_conn.h"
#include "rcd_contexts.h"
#include "rcd_cred.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_drain.h"
#include "rcd_hflow.h"
#include "rcd_hmcast.h"
#include "rcd_hop.h"
#include "rcd_host.h"
#include "rcd_late.h"
#include "rcd_lcore.h"
#include "rcd_lcore_ctl.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_mcast.h"
#include "rcd_mr.h"
#include "rcd_near.h"
#include "rcd_ports.h"
#include "rcd_qp.h"
#include "rcd_qpns.h"
#include "rcd_quota.h"
#include "rcd_request.h"
#include "rcd_segment.h"
#include "rcd_shm.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_ucopy.h"
#include "rcd_wheel.h"
#include "rcd_wqe.h"
#include "rcd_xqp.h"

#define UNBIND_BUDGET 256 /**< windows in one poll */

/*
 * The place of elements takes data as well: adapters round up so, and rdma_xclient counts on it.
 *
 * @return bytes
 */
static uint32_t
hqp_inline(uint32_t asked, uint32_t max_sge)
{
	uint32_t least = max_sge * (uint32_t)sizeof(struct rcd_wqe_sge);

	if (least > RCD_INLINE_MAX)
		least = RCD_INLINE_MAX;
	return asked > least ? asked : least;
}

static int
hqp_check(const struct rcd_context *context, const struct rcd_ctrl_qp_req *req)
{
	const struct rcd_hsrq *srq =
		req->srq != RCD_CTRL_NO_HANDLE ? rcd_table_get(&context->srqs, req->srq) : NULL;
	bool xrc = req->type == RCD_QP_XRC_SEND;
	bool raw = req->type == RCD_QP_RAW;

	if ((req->type > RCD_QP_UD && !xrc && !raw) || req->sq_depth > RCD_WQ_DEPTH_MAX ||
		req->rq_depth > RCD_WQ_DEPTH_MAX || req->max_send_sge > RCD_SGE_MAX ||
		req->max_recv_sge > RCD_SGE_MAX || req->max_inline > RCD_INLINE_MAX)
		return -EINVAL;
	if (rcd_table_get(&context->pds, req->pd) == NULL ||
		rcd_table_get(&context->cqs, req->send_cq) == NULL ||
		rcd_table_get(&context->cqs, req->recv_cq) == NULL ||
		(req->srq != RCD_CTRL_NO_HANDLE && srq == NULL))
		return -ENOENT;
	/* What it receives is told by another completion queue. */
	if (srq != NULL && srq->member != NULL)
		return -EINVAL;
	if ((req->flags & ~RCD_CTRL_QP_BLOCK_LOOP) != 0 ||
		(req->flags != 0 && req->type != RCD_QP_UD))
		return -EINVAL;
	/* An initiator receives nothing. */
	return xrc && (req->srq != RCD_CTRL_NO_HANDLE || req->rq_depth > 0) ? -EINVAL : 0;
}

/* Its rings in the segment: indices of both, then the slots of both. */
static int
hqp_rings(struct rcd_context *context, const struct rcd_conn *conn, struct rcd_hqp *hqp)
{
	uint64_t sq_bytes, rq_bytes, bytes;
	uint8_t *base;
	int err;

	hqp->sq_stride = rcd_sq_stride(hqp->max_send_sge, hqp->max_inline);
	hqp->rq_stride = rcd_rq_stride(hqp->max_recv_sge);
	hqp->sq_mask = hqp->sq_depth - 1;
	hqp->rq_mask = hqp->rq_depth - 1;
	sq_bytes = (uint64_t)hqp->sq_depth * hqp->sq_stride;
	rq_bytes = (uint64_t)hqp->rq_depth * hqp->rq_stride;
	bytes = 2 * sizeof(struct rcd_shm_wq) + sq_bytes + rq_bytes;
	err = rcd_segment_alloc(&context->segment, conn->serial, bytes, &hqp->offset);
	if (err != 0)
		return err;
	hqp->bytes = bytes;
	base = (uint8_t *)context->client.shm + hqp->offset;
	hqp->sq_shm = (struct rcd_shm_wq *)(void *)base;
	hqp->rq_shm = hqp->sq_shm + 1;
	hqp->sq_slots = base + 2 * sizeof(struct rcd_shm_wq);
	hqp->rq_slots = hqp->rq_depth > 0 ? hqp->sq_slots + sq_bytes : NULL;
	return 0;
}

void
rcd_hqp_choose_cc(
	const struct rcd_dev *dev, const struct rcd_cc_ops **ops, struct rcd_cc_params *params)
{
	RCD_ON_CONTROL();
	*ops = &rcd_cc_swift;
	rcd_cc_params_init(params);
	/* It was looked at when the device got it. */
	if (dev->conf.cc[0] != '\0')
		rcd_cc_parse(dev->conf.cc, ops, params);
}

int
rcd_hqp_make(struct rcd_hqp *hqp, const struct rcd_dev *dev, struct rcd_qp_init *init)
{
	struct rcd_cc_params params;
	size_t bytes;
	void *mem;

	RCD_ON_CONTROL();
	/* A queue pair that it limits is larger. */
	rcd_hqp_choose_cc(dev, &init->cc, &params);
	init->cc_params = &params;
	bytes = rcd_qp_size(init);
	if (bytes == 0)
		return -EINVAL;
	mem = rcd_near_zalloc(rcd_lcore_socket_id(hqp->lcore), bytes);
	if (mem == NULL)
		return -ENOMEM;
	hqp->qp = rcd_qp_init(mem, init);
	hqp->resource_count = init->max_rd_atomic;
	return 0;
}

static int
hqp_make(struct rcd_context *context, const struct rcd_ctrl_qp_req *req, struct rcd_hqp *hqp)
{
	struct rcd_dev *dev = context->dev;
	struct rcd_qp_init init = {
		.type = (enum rcd_qp_type)req->type,
		.qpn = { hqp->qpn },
		.pd = req->pd,
		.sq_depth = hqp->sq_depth,
		.max_send_sge = (uint8_t)hqp->max_send_sge,
		.max_recv_sge = (uint8_t)hqp->max_recv_sge,
		.max_inline = (uint16_t)hqp->max_inline,
		.max_rd_atomic = RCD_QP_RD_ATOMIC_DEFAULT,
		.port_mtu_bytes = (uint16_t)dev->path_mtu,
		.frame_max = hqp->raw ? &dev->lport.frame_max : NULL,
		.signal_all = req->signal_all != 0,
		.srq = hqp->srq != NULL ? &hqp->srq->srq : NULL,
		.mrs = context->client.mrs,
		.windows = &hqp->windows,
		.ahs = context->client.ahs,
		.reorder = context->client.ucopy != NULL ? NULL : context->client.lcore->reorder,
		.away_ns = &context->client.lcore->absence.away_ns,
		.counters = rcd_lcore_counters(context->client.lcore, &dev->lport),
		.ops = &rcd_host_qp_ops,
		.arg = hqp,
	};

	return rcd_hqp_make(hqp, dev, &init);
}

static int
hqp_join(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp = arg;

	hqp->client->qps[hqp->index] = hqp;
	lcore->qps[hqp->qpn % RCD_QP_SLOTS] = hqp;
	return 0;
}

static void
hqp_refer(struct rcd_context *context, struct rcd_hqp *hqp, int by)
{
	struct rcd_pd *pd = rcd_table_get(&context->pds, hqp->pd);

	pd->users += (uint32_t)by;
	hqp->send_cq->users += (uint32_t)by;
	hqp->recv_cq->users += (uint32_t)by;
	if (hqp->srq != NULL)
		hqp->srq->users += (uint32_t)by;
}

void
rcd_hqp_free(struct rcd_context *context, struct rcd_hqp *hqp)
{
	RCD_ON_CONTROL();
	rcd_hflow_end(context, hqp);
	rcd_qpns_give(context->all->conf.qpns, hqp->qpn);
	rcd_hop_put(context->all->conf.ports->hops, hqp->hop_held);
	rcd_hmcast_end(context, hqp);
	free(hqp->resources);
	free(hqp->sack);
	free(hqp->gate);
	free(hqp->qp);
	free(hqp);
}

/* The same, and the client gets back what it had for it. */
static void
hqp_give_back(struct rcd_context *context, struct rcd_hqp *hqp)
{
	if (hqp->bytes != 0)
		rcd_segment_free(&context->segment, hqp->offset, hqp->bytes);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_QPS, 1);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_GROUPS, hqp->groups);
	rcd_hqp_free(context, hqp);
}

/* As it is asked for, of its context. */
static struct rcd_hqp *
hqp_begin(
	struct rcd_context *context, const struct rcd_conn *conn, const struct rcd_ctrl_qp_req *req)
{
	struct rcd_hqp *hqp =
		rcd_near_zalloc(rcd_lcore_socket_id(context->client.lcore), sizeof(*hqp));

	if (hqp == NULL)
		return NULL;
	hqp->client = &context->client;
	hqp->lcore = context->client.lcore;
	hqp->lport = &context->dev->lport;
	hqp->block_loop = req->flags & RCD_CTRL_QP_BLOCK_LOOP;
	hqp->raw = req->type == RCD_QP_RAW;
	hqp->datagram = req->type == RCD_QP_UD || hqp->raw;
	hqp->reliable = req->type == RCD_QP_RC || req->type == RCD_QP_XRC_SEND;
	hqp->cookie = req->cookie;
	hqp->conn_serial = conn->serial;
	hqp->pd = req->pd;
	hqp->ucopy = context->client.ucopy;
	hqp->may_copy = hqp->ucopy != NULL;
	hqp->send_cq = rcd_table_get(&context->cqs, req->send_cq);
	hqp->recv_cq = rcd_table_get(&context->cqs, req->recv_cq);
	hqp->srq = req->srq != RCD_CTRL_NO_HANDLE ? rcd_table_get(&context->srqs, req->srq) : NULL;
	hqp->sq_depth = rcd_power_up(req->sq_depth > 0 ? req->sq_depth : 1);
	hqp->rq_depth = hqp->srq != NULL || req->rq_depth == 0 ? 0 : rcd_power_up(req->rq_depth);
	hqp->max_send_sge = req->max_send_sge > 0 ? req->max_send_sge : 1;
	hqp->max_recv_sge = hqp->srq != NULL ? hqp->srq->max_sge
		: req->max_recv_sge > 0      ? req->max_recv_sge
					     : 1;
	hqp->max_inline = hqp_inline(req->max_inline, hqp->max_send_sge);
	return hqp;
}

int
rcd_hqp_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_qp_req *req, struct rcd_ctrl_qp_rep *rep)
{
	struct rcd_hqp *hqp;
	int err = hqp_check(context, req);

	RCD_ON_CONTROL();
	if (err == 0 && req->type == RCD_QP_RAW)
		err = rcd_hflow_may(context, conn);
	if (err == 0)
		err = rcd_quota_charge(&context->quota, RCD_RESOURCE_QPS, 1);
	if (err != 0)
		return err;
	hqp = hqp_begin(context, conn, req);
	if (hqp == NULL) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_QPS, 1);
		return -ENOMEM;
	}
	err = rcd_qpns_take(
		context->all->conf.qpns, rcd_lcore_index(context->client.lcore), &hqp->qpn);
	if (err == 0)
		err = hqp_rings(context, conn, hqp);
	if (err == 0)
		err = hqp_make(context, req, hqp);
	if (err == 0)
		err = rcd_table_add(&context->hqps, hqp, &hqp->index);
	if (err != 0) {
		hqp_give_back(context, hqp);
		return err;
	}
	hqp_refer(context, hqp, 1);
	context->raw_count += hqp->raw;
	rcd_lcore_call(context->client.lcore, hqp_join, hqp);
	*rep = (struct rcd_ctrl_qp_rep){
		.handle = hqp->index,
		.qpn = hqp->qpn,
		.sq_depth = hqp->sq_depth,
		.rq_depth = hqp->rq_depth,
		.sq_stride = hqp->sq_stride,
		.rq_stride = hqp->rq_stride,
		.sq_indices = hqp->offset,
		.rq_indices = hqp->offset + sizeof(struct rcd_shm_wq),
		.sq_slots = hqp->offset + 2 * sizeof(struct rcd_shm_wq),
		.rq_slots = hqp->offset + 2 * sizeof(struct rcd_shm_wq) +
			(uint64_t)hqp->sq_depth * hqp->sq_stride,
		.max_send_sge = hqp->max_send_sge,
		.max_recv_sge = hqp->max_recv_sge,
		.max_inline = hqp->max_inline,
	};
	return 0;
}

int
rcd_hqp_leave(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp = arg;
	struct rcd_shm_hdr *shm = hqp->client->shm;
	struct rcd_doorbells *bells = &hqp->client->doorbells;

	RCD_ON_LCORE(lcore);
	rcd_ucopy_forget(hqp);
	rcd_host_publish(lcore);
	rcd_mcast_detach_all(lcore->mcast[hqp->lport->index], hqp->memberships, hqp->qp);
	rcd_late_forget(hqp);
	rcd_lcore_drop(lcore, hqp);
	hqp->client->qps[hqp->index] = NULL;
	/* A doorbell that it left behind would look like an offence. */
	__atomic_fetch_and(&shm->db_words[hqp->index / 64], ~(UINT64_C(1) << (hqp->index % 64)),
		__ATOMIC_SEQ_CST);
	if (bells->word == hqp->index / 64)
		bells->bits &= ~(UINT64_C(1) << (hqp->index % 64));
	rcd_qp_fini(hqp->qp);
	if (hqp->local != NULL)
		hqp->client->ops->forgotten(hqp->local, true);
	return 0;
}

static int
hqp_unbind_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp = arg;

	(void)lcore;
	return rcd_mw_unbind_some(hqp->client->mrs, &hqp->windows, UNBIND_BUDGET);
}

void
rcd_hqp_unbind(struct rcd_hqp *hqp)
{
	RCD_ON_CONTROL();
	while (rcd_lcore_call(hqp->lcore, hqp_unbind_on_lcore, hqp)) {
	}
}

static int
hqp_try_leave(struct rcd_lcore *lcore, void *arg)
{
	return rcd_drain_waits(lcore, arg) ? -EAGAIN : rcd_hqp_leave(lcore, arg);
}

/* What its lcore does in a poll is seen at once, if that is enough. */
static int
hqp_leave(struct rcd_hqp *hqp)
{
	/* The program that the engine is a part of knows what has left, and may poll by itself. */
	if (hqp->client->ops != NULL)
		return rcd_lcore_call(hqp->lcore, rcd_hqp_leave, hqp);
	if (rcd_lcore_call(hqp->lcore, hqp_try_leave, hqp) == 0)
		return 0;
	return rcd_lcore_call(hqp->lcore, hqp_try_leave, hqp);
}

int
rcd_hqp_destroy(struct rcd_context *context, const struct rcd_conn *conn, uint32_t handle)
{
	struct rcd_hqp *hqp = rcd_table_get(&context->hqps, handle);

	RCD_ON_CONTROL();
	/* What was waited for is gone, and nobody has asked for the end of what has its handle. */
	if (hqp == NULL || (conn->again && !hqp->draining))
		return -ENOENT;
	if (hqp_leave(hqp) != 0)
		return RCD_REQUEST_WAITS;
	rcd_ucopy_void(hqp);
	rcd_hqp_unbind(hqp);
	hqp_refer(context, hqp, -1);
	context->raw_count -= hqp->raw;
	rcd_table_del(&context->hqps, handle);
	hqp_give_back(context, hqp);
	if (context->hqps.used == 0)
		context->followed = false;
	return 0;
}

struct rcd_hqp *
rcd_hqp_find(const struct rcd_lcores *lcores, uint32_t qpn)
{
	uint32_t slot = qpn % RCD_QP_SLOTS;
	uint8_t owner = lcores->qp_owner[slot];
	struct rcd_hqp *hqp = owner != 0 ? lcores->lcore[owner - 1]->qps[slot] : NULL;

	RCD_ON_CONTROL();
	return hqp != NULL && hqp->qpn == qpn ? hqp : NULL;
}

bool
rcd_hqp_is_of(const struct rcd_lcores *lcores, const struct rcd_conn *conn, uint32_t qpn)
{
	const struct rcd_hqp *hqp = rcd_hqp_find(lcores, qpn);
	const struct rcd_xopen *open;

	RCD_ON_CONTROL();
	if (hqp == NULL)
		return false;
	if (hqp->target == NULL)
		return rcd_cred_same_process(conn, rcd_context_of(hqp->client));
	/* Of a target's: whoever has it open. */
	LIST_FOREACH(open, &hqp->target->opens, link)
		if (rcd_cred_same_process(conn, open->context))
			return true;
	return false;
}
