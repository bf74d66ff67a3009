/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Shared receive queues and queue pairs of a context: made and freed by the control thread, shown
 * to and taken from the lcore by commands.
 */
#include "rcd_verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_ah.h"
#include "rcd_bits.h"
#include "rcd_budget.h"
#include "rcd_context.h"
#include "rcd_cred.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_cq_event.h"
#include "rcd_hop.h"
#include "rcd_hop_word.h"
#include "rcd_host.h"
#include "rcd_id.h"
#include "rcd_late.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_mcast.h"
#include "rcd_mr.h"
#include "rcd_near.h"
#include "rcd_number.h"
#include "rcd_qp.h"
#include "rcd_quota.h"
#include "rcd_random.h"
#include "rcd_segment.h"
#include "rcd_shm.h"
#include "rcd_srq.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_ucopy.h"
#include "rcd_wheel.h"
#include "rcd_wqe.h"
#include "rcd_wr.h"

#define UNBIND_BUDGET 256 /**< windows in one poll */

static void
verbs_srq_free(struct rcd_context *context, struct rcd_hsrq *srq)
{
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_SRQS, 1);
	free(srq);
}

int
rcd_verbs_srq_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_srq_req *req, struct rcd_ctrl_srq_rep *rep)
{
	struct rcd_pd *pd = rcd_table_get(&context->pds, req->pd);
	struct rcd_hsrq *srq;
	uint32_t depth;
	int err;

	RCD_ON_CONTROL();
	if (pd == NULL)
		return -ENOENT;
	if (req->depth == 0 || req->depth > RCD_WQ_DEPTH_MAX || req->max_sge > RCD_SGE_MAX ||
		req->limit > req->depth)
		return -EINVAL;
	depth = rcd_power_up(req->depth);
	err = rcd_quota_charge(&context->quota, RCD_RESOURCE_SRQS, 1);
	if (err != 0)
		return err;
	srq = rcd_near_zalloc(context->client.lcore->socket_id, sizeof(*srq));
	if (srq == NULL) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_SRQS, 1);
		return -ENOMEM;
	}
	srq->max_sge = req->max_sge > 0 ? req->max_sge : 1;
	srq->client = &context->client;
	srq->cookie = req->cookie;
	srq->conn_serial = conn->serial;
	srq->pd = req->pd;
	srq->mask = depth - 1;
	srq->stride = rcd_rq_stride(srq->max_sge);
	srq->bytes = sizeof(*srq->shm) + (uint64_t)depth * srq->stride;
	err = rcd_segment_alloc(&context->segment, conn->serial, srq->bytes, &srq->offset);
	if (err != 0) {
		verbs_srq_free(context, srq);
		return err;
	}
	srq->shm = (struct rcd_shm_wq *)(void *)((uint8_t *)context->client.shm + srq->offset);
	srq->slots = (uint8_t *)(srq->shm + 1);
	rcd_srq_init(&srq->srq, depth, (uint8_t)srq->max_sge, &rcd_host_srq_ops, srq);
	rcd_srq_set_limit(&srq->srq, req->limit);
	if (rcd_table_add(&context->srqs, srq, &srq->handle) != 0) {
		rcd_segment_free(&context->segment, srq->offset, srq->bytes);
		verbs_srq_free(context, srq);
		return -ENOMEM;
	}
	pd->users++;
	*rep = (struct rcd_ctrl_srq_rep){
		.handle = srq->handle,
		.depth = depth,
		.max_sge = srq->max_sge,
		.stride = srq->stride,
		.indices = srq->offset,
		.slots = srq->offset + sizeof(*srq->shm),
	};
	return 0;
}

struct srq_limit {
	struct rcd_hsrq *srq;
	uint32_t limit;
};

static int
verbs_srq_limit_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct srq_limit *what = arg;

	(void)lcore;
	return rcd_srq_set_limit(&what->srq->srq, what->limit);
}

int
rcd_verbs_srq_modify(struct rcd_context *context, const struct rcd_ctrl_srq_modify_req *req)
{
	struct srq_limit what = { .srq = rcd_table_get(&context->srqs, req->handle),
		.limit = req->limit };

	RCD_ON_CONTROL();
	if (what.srq == NULL)
		return -ENOENT;
	return rcd_lcore_call(context->client.lcore, verbs_srq_limit_on_lcore, &what);
}

int
rcd_verbs_srq_query(
	struct rcd_context *context, uint32_t handle, struct rcd_ctrl_srq_query_rep *rep)
{
	const struct rcd_hsrq *srq = rcd_table_get(&context->srqs, handle);

	RCD_ON_CONTROL();
	if (srq == NULL)
		return -ENOENT;
	*rep = (struct rcd_ctrl_srq_query_rep){
		.limit = __atomic_load_n(&srq->srq.limit, __ATOMIC_RELAXED), .depth = srq->mask + 1
	};
	return 0;
}

static int
verbs_publish_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	(void)arg;
	rcd_host_publish(lcore);
	return 0;
}

int
rcd_verbs_srq_destroy(struct rcd_context *context, uint32_t handle)
{
	struct rcd_hsrq *srq = rcd_table_get(&context->srqs, handle);
	struct rcd_pd *pd;

	RCD_ON_CONTROL();
	if (srq == NULL)
		return -ENOENT;
	if (srq->users > 0)
		return -EBUSY;
	rcd_lcore_call(context->client.lcore, verbs_publish_on_lcore, NULL);
	pd = rcd_table_get(&context->pds, srq->pd);
	pd->users--;
	rcd_table_del(&context->srqs, handle);
	rcd_segment_free(&context->segment, srq->offset, srq->bytes);
	verbs_srq_free(context, srq);
	return 0;
}

/* Queue pairs */

/*
 * A number whose low bits are a free slot, and whose high bits differ from the last use of it.
 * Nobody can know which one it will be: who names a queue pair has been told of it.
 */
static int
verbs_take_qpn(struct rcd_engine *engine, uint32_t lcore_index, uint32_t *qpn)
{
	uint32_t random = rcd_random_u32(&engine->random);

	for (uint32_t i = 0; i < RCD_QP_SLOTS; i++) {
		uint32_t slot = (random + i) % RCD_QP_SLOTS;
		uint8_t high = (uint8_t)(engine->qp_high[slot] + 1 + (random >> 16) % 255);
		uint32_t number = high * RCD_QP_SLOTS + slot;

		/* Numbers below 16 and the one of multicast have meanings of their own. */
		if (number < 16 || number == RCD_QPN_MULTICAST ||
			engine->lcores.qp_owner[slot] != 0)
			continue;
		__atomic_store_n(&engine->lcores.qp_owner[slot], (uint8_t)(lcore_index + 1),
			__ATOMIC_RELAXED);
		engine->qp_high[slot] = high;
		engine->qp_used++;
		*qpn = number;
		return 0;
	}
	return -ENOMEM;
}

bool
rcd_verbs_qpn_is_of(const struct rcd_conn *conn, uint32_t qpn)
{
	const struct rcd_engine *engine = conn->engine;
	uint8_t owner = engine->lcores.qp_owner[qpn % RCD_QP_SLOTS];
	const struct rcd_hqp *hqp =
		owner != 0 ? engine->lcores.lcore[owner - 1]->qps[qpn % RCD_QP_SLOTS] : NULL;

	RCD_ON_CONTROL();
	return hqp != NULL && hqp->qpn == qpn &&
		rcd_cred_same_process(conn, rcd_context_of(hqp->client));
}

static int
verbs_qp_check(struct rcd_context *context, const struct rcd_ctrl_qp_req *req)
{
	if (req->type > RCD_CTRL_QP_UD || req->sq_depth > RCD_WQ_DEPTH_MAX ||
		req->rq_depth > RCD_WQ_DEPTH_MAX || req->max_send_sge > RCD_SGE_MAX ||
		req->max_recv_sge > RCD_SGE_MAX || req->max_inline > RCD_INLINE_MAX)
		return -EINVAL;
	if (rcd_table_get(&context->pds, req->pd) == NULL ||
		rcd_table_get(&context->cqs, req->send_cq) == NULL ||
		rcd_table_get(&context->cqs, req->recv_cq) == NULL ||
		(req->srq != RCD_CTRL_NO_HANDLE && rcd_table_get(&context->srqs, req->srq) == NULL))
		return -ENOENT;
	return 0;
}

/* Its rings in the segment: indices of both, then the slots of both. */
static int
verbs_qp_rings(struct rcd_context *context, const struct rcd_conn *conn, struct rcd_hqp *hqp)
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

static int
verbs_qp_make(struct rcd_context *context, const struct rcd_ctrl_qp_req *req, struct rcd_hqp *hqp)
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
		.signal_all = req->signal_all != 0,
		.srq = hqp->srq != NULL ? &hqp->srq->srq : NULL,
		.mrs = context->client.mrs,
		.windows = &hqp->windows,
		.ahs = context->client.ahs,
		.reorder = context->client.ucopy != NULL ? NULL : context->client.lcore->reorder,
		.counters = rcd_lcore_counters(context->client.lcore, &dev->lport),
		.ops = &rcd_host_qp_ops,
		.arg = hqp,
	};
	size_t bytes = rcd_qp_size(&init);
	void *mem;

	if (bytes == 0)
		return -EINVAL;
	mem = rcd_near_zalloc(context->client.lcore->socket_id, bytes);
	if (mem == NULL)
		return -ENOMEM;
	hqp->qp = rcd_qp_init(mem, &init);
	hqp->resource_count = init.max_rd_atomic;
	return 0;
}

static int
verbs_qp_join(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp = arg;

	hqp->client->qps[hqp->index] = hqp;
	lcore->qps[hqp->qpn % RCD_QP_SLOTS] = hqp;
	return 0;
}

static void
verbs_qp_refer(struct rcd_context *context, struct rcd_hqp *hqp, int by)
{
	struct rcd_pd *pd = rcd_table_get(&context->pds, hqp->pd);

	pd->users += (uint32_t)by;
	hqp->send_cq->users += (uint32_t)by;
	hqp->recv_cq->users += (uint32_t)by;
	if (hqp->srq != NULL)
		hqp->srq->users += (uint32_t)by;
}

static void
verbs_qp_free(struct rcd_context *context, struct rcd_hqp *hqp)
{
	if (hqp->qpn != 0) {
		__atomic_store_n(&context->engine->lcores.qp_owner[hqp->qpn % RCD_QP_SLOTS], 0,
			__ATOMIC_RELAXED);
		context->engine->qp_used--;
	}
	if (hqp->bytes != 0)
		rcd_segment_free(&context->segment, hqp->offset, hqp->bytes);
	rcd_hop_put(context->engine->ports.hops, hqp->hop_held);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_QPS, 1);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_GROUPS, hqp->groups);
	free(hqp->resources);
	free(hqp->qp);
	free(hqp);
}

int
rcd_verbs_qp_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_qp_req *req, struct rcd_ctrl_qp_rep *rep)
{
	struct rcd_hqp *hqp;
	int err = verbs_qp_check(context, req);

	RCD_ON_CONTROL();
	if (err == 0)
		err = rcd_quota_charge(&context->quota, RCD_RESOURCE_QPS, 1);
	if (err != 0)
		return err;
	hqp = rcd_near_zalloc(context->client.lcore->socket_id, sizeof(*hqp));
	if (hqp == NULL) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_QPS, 1);
		return -ENOMEM;
	}
	hqp->client = &context->client;
	hqp->lcore = context->client.lcore;
	hqp->lport = &context->dev->lport;
	hqp->datagram = req->type == RCD_CTRL_QP_UD;
	hqp->reliable = req->type == RCD_CTRL_QP_RC;
	hqp->cookie = req->cookie;
	hqp->conn_serial = conn->serial;
	hqp->pd = req->pd;
	hqp->ucopy = context->client.ucopy;
	hqp->send_cq = rcd_table_get(&context->cqs, req->send_cq);
	hqp->recv_cq = rcd_table_get(&context->cqs, req->recv_cq);
	hqp->srq = req->srq != RCD_CTRL_NO_HANDLE ? rcd_table_get(&context->srqs, req->srq) : NULL;
	hqp->sq_depth = rcd_power_up(req->sq_depth > 0 ? req->sq_depth : 1);
	hqp->rq_depth = hqp->srq != NULL || req->rq_depth == 0 ? 0 : rcd_power_up(req->rq_depth);
	hqp->max_send_sge = req->max_send_sge > 0 ? req->max_send_sge : 1;
	hqp->max_recv_sge = hqp->srq != NULL ? hqp->srq->max_sge
		: req->max_recv_sge > 0      ? req->max_recv_sge
					     : 1;
	hqp->max_inline = req->max_inline;
	err = verbs_take_qpn(context->engine, context->client.lcore->index, &hqp->qpn);
	if (err == 0)
		err = verbs_qp_rings(context, conn, hqp);
	if (err == 0)
		err = verbs_qp_make(context, req, hqp);
	if (err == 0)
		err = rcd_table_add(&context->hqps, hqp, &hqp->index);
	if (err != 0) {
		verbs_qp_free(context, hqp);
		return err;
	}
	verbs_qp_refer(context, hqp, 1);
	rcd_lcore_call(context->client.lcore, verbs_qp_join, hqp);
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

/* Take a queue pair from its lcore. What it has completed is shown first. */
static int
verbs_qp_leave(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp = arg;
	struct rcd_shm_hdr *shm = hqp->client->shm;
	struct rcd_doorbells *bells = &hqp->client->doorbells;

	rcd_ucopy_forget(hqp);
	rcd_host_publish(lcore);
	if (hqp->groups > 0)
		rcd_mcast_detach_all(lcore->mcast[hqp->lport->index], hqp->qp);
	rcd_late_forget(hqp);
	rcd_turn_end(&hqp->turn);
	rcd_wheel_cancel(&lcore->wheel, &hqp->timer);
	lcore->qps[hqp->qpn % RCD_QP_SLOTS] = NULL;
	hqp->client->qps[hqp->index] = NULL;
	/* A doorbell that it left behind would look like an offence. */
	__atomic_fetch_and(&shm->db_words[hqp->index / 64], ~(UINT64_C(1) << (hqp->index % 64)),
		__ATOMIC_SEQ_CST);
	if (bells->word == hqp->index / 64)
		bells->bits &= ~(UINT64_C(1) << (hqp->index % 64));
	rcd_qp_fini(hqp->qp);
	return 0;
}

static int
verbs_unbind_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp = arg;

	(void)lcore;
	return rcd_mw_unbind_some(hqp->client->mrs, &hqp->windows, UNBIND_BUDGET);
}

void
rcd_verbs_unbind(struct rcd_hqp *hqp)
{
	RCD_ON_CONTROL();
	while (rcd_lcore_call(hqp->lcore, verbs_unbind_on_lcore, hqp)) {
	}
}

int
rcd_verbs_qp_destroy(struct rcd_context *context, uint32_t handle)
{
	struct rcd_hqp *hqp = rcd_table_get(&context->hqps, handle);

	RCD_ON_CONTROL();
	if (hqp == NULL)
		return -ENOENT;
	rcd_lcore_call(context->client.lcore, verbs_qp_leave, hqp);
	rcd_ucopy_void(hqp);
	rcd_verbs_unbind(hqp);
	verbs_qp_refer(context, hqp, -1);
	rcd_table_del(&context->hqps, handle);
	verbs_qp_free(context, hqp);
	return 0;
}

/* A walk over the objects of a context by several commands, each of them short. */
struct walk {
	struct rcd_context *context;
	uint32_t next; /**< place to go on at */
	uint32_t end;
};

static void
verbs_walk_all(struct rcd_context *context, uint32_t end, int (*fn)(struct rcd_lcore *, void *))
{
	struct walk walk = { .context = context, .end = end };

	while (walk.next < end)
		rcd_lcore_call(context->client.lcore, fn, &walk);
}

static int
verbs_hide_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	rcd_host_client_del(lcore, arg);
	rcd_ucopy_end(arg);
	return 0;
}

static int
verbs_leave_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct walk *walk = arg;
	uint32_t done = 0;

	for (; walk->next < walk->end && done < RCD_WORK_LEAVE; walk->next++) {
		if (walk->context->hqps.slots[walk->next] == NULL)
			continue;
		verbs_qp_leave(lcore, walk->context->hqps.slots[walk->next]);
		done++;
	}
	rcd_host_publish(lcore);
	lcore->work += done;
	return 0;
}

static int
verbs_forget_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct walk *walk = arg;
	uint32_t done = 0;

	for (; walk->next < walk->end && done < RCD_WORK_ALL; walk->next++) {
		if (walk->context->cqs.slots[walk->next] == NULL)
			continue;
		rcd_cq_event_forget(lcore, walk->context->cqs.slots[walk->next]);
		done++;
	}
	lcore->work += done;
	return 0;
}

static void
verbs_put_hop(const struct rcd_av *av, void *arg)
{
	rcd_hop_put(arg, av->hop);
}

/* No lcore looks at them any more. */
static void
verbs_put_hops(struct rcd_context *context)
{
	struct rcd_hops *hops = context->engine->ports.hops;

	for (uint32_t i = 0; i < context->hqps.fresh; i++) {
		struct rcd_hqp *hqp = context->hqps.slots[i];

		if (hqp == NULL)
			continue;
		rcd_hop_put(hops, hqp->hop_held);
		hqp->hop_held = RCD_HOP_NONE;
	}
	if (context->ah_count > 0)
		rcd_ah_each(context->client.ahs, verbs_put_hop, hops);
}

void
rcd_verbs_end(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	/* No more doorbells; and at the end no more of what its queue pairs caused on their way. */
	rcd_lcore_call(context->client.lcore, verbs_hide_on_lcore, &context->client);
	verbs_walk_all(context, context->hqps.fresh, verbs_leave_on_lcore);
	verbs_walk_all(context, context->cqs.fresh, verbs_forget_on_lcore);
	rcd_lcore_call(context->client.lcore, verbs_hide_on_lcore, &context->client);
	verbs_put_hops(context);
}

static int
verbs_fail_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct walk *walk = arg;
	uint32_t done = 0;

	for (; walk->next < walk->end && done < RCD_WORK_LEAVE; walk->next++) {
		struct rcd_hqp *hqp = walk->context->client.qps[walk->next];

		if (hqp == NULL)
			continue;
		hqp->faulty = true;
		rcd_lcore_touch(lcore, hqp);
		done++;
	}
	lcore->work += done;
	return 0;
}

void
rcd_verbs_fail_all(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	verbs_walk_all(context, context->hqps.fresh, verbs_fail_on_lcore);
}
