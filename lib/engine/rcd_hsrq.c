/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Shared receive queues of a context: made and freed by the control thread, known to the lcore by
 * the queue pairs that use them.
 */
#include "rcd_hsrq.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_bits.h"
#include "rcd_budget.h"
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_context_walk.h"
#include "rcd_contexts.h"
#include "rcd_ctrl.h"
#include "rcd_host.h"
#include "rcd_lcore_ctl.h"
#include "rcd_limits.h"
#include "rcd_near.h"
#include "rcd_qpns.h"
#include "rcd_queue.h"
#include "rcd_quota.h"
#include "rcd_random.h"
#include "rcd_segment.h"
#include "rcd_shm.h"
#include "rcd_srq.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_wqe.h"
#include "rcd_xrcd.h"

#define NUMBER_TRIES 64 /**< for a number that no queue of the device has */

/* A ring in the segment. @return 0 or as rcd_segment_alloc() */
static int
hsrq_ring_alloc(struct rcd_context *context, const struct rcd_conn *conn, uint32_t depth,
	uint32_t stride, uint64_t *offset, uint64_t *bytes)
{
	*bytes = sizeof(struct rcd_shm_wq) + (uint64_t)depth * stride;
	return rcd_segment_alloc(&context->segment, conn->serial, *bytes, offset);
}

static struct rcd_shm_wq *
hsrq_shm_at(const struct rcd_context *context, uint64_t offset)
{
	return (struct rcd_shm_wq *)(void *)((uint8_t *)context->client.shm + offset);
}

static void
hsrq_describe(
	const struct rcd_hsrq *srq, uint64_t offset, uint32_t depth, struct rcd_ctrl_srq_rep *rep)
{
	*rep = (struct rcd_ctrl_srq_rep){
		.handle = srq->handle,
		.depth = depth,
		.max_sge = srq->max_sge,
		.stride = srq->stride,
		.indices = offset,
		.slots = offset + sizeof(struct rcd_shm_wq),
	};
}

/* The one that it was to have. */
static void
hsrq_next_free(struct rcd_context *context, struct rcd_hsrq *srq)
{
	if (srq->next_bytes > 0)
		rcd_segment_free(&context->segment, srq->next_offset, srq->next_bytes);
	srq->next_bytes = 0;
}

static void
hsrq_free(struct rcd_context *context, struct rcd_hsrq *srq)
{
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_SRQS, 1);
	free(srq);
}

int
rcd_hsrq_create(struct rcd_context *context, const struct rcd_conn *conn,
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
	srq = rcd_near_zalloc(rcd_lcore_socket_id(context->client.lcore), sizeof(*srq));
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
	err = hsrq_ring_alloc(context, conn, depth, srq->stride, &srq->offset, &srq->bytes);
	if (err != 0) {
		hsrq_free(context, srq);
		return err;
	}
	srq->shm = hsrq_shm_at(context, srq->offset);
	srq->slots = (uint8_t *)(srq->shm + 1);
	rcd_srq_init(&srq->srq, depth, (uint8_t)srq->max_sge, &rcd_host_srq_ops, srq);
	rcd_srq_set_limit(&srq->srq, req->limit);
	if (rcd_table_add(&context->srqs, srq, &srq->handle) != 0) {
		rcd_segment_free(&context->segment, srq->offset, srq->bytes);
		hsrq_free(context, srq);
		return -ENOMEM;
	}
	pd->users++;
	hsrq_describe(srq, srq->offset, depth, rep);
	return 0;
}

int
rcd_hsrq_resize(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_srq_resize_req *req, struct rcd_ctrl_srq_rep *rep)
{
	struct rcd_hsrq *srq = rcd_table_get(&context->srqs, req->handle);
	uint64_t offset, bytes;
	uint32_t depth;
	int err;

	RCD_ON_CONTROL();
	if (srq == NULL)
		return -ENOENT;
	/* Which limit it is to have is known when it is taken. */
	if (req->depth == 0 || req->depth > RCD_WQ_DEPTH_MAX)
		return -EINVAL;
	hsrq_next_free(context, srq);
	depth = rcd_power_up(req->depth);
	err = hsrq_ring_alloc(context, conn, depth, srq->stride, &offset, &bytes);
	if (err != 0)
		return err;
	srq->next_offset = offset;
	srq->next_bytes = bytes;
	srq->next_depth = depth;
	hsrq_describe(srq, offset, depth, rep);
	return 0;
}

/* A queue, what it gets, and whether its limit is part of that: for the lcore. */
struct srq_ring {
	struct rcd_hsrq *srq;
	struct rcd_shm_wq *shm;
	uint32_t depth;
	uint32_t limit;
	bool set_limit;
};

static int
hsrq_switch_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct srq_ring *ring = arg;
	struct rcd_hsrq *srq = ring->srq;
	/* The event disarms it at any time: only here is it known. */
	uint32_t limit = ring->set_limit ? ring->limit : srq->srq.limit;

	rcd_host_publish(lcore);
	if (rcd_shm_load(&ring->shm->producer) - srq->srq.next > ring->depth ||
		rcd_srq_set_depth(&srq->srq, ring->depth, limit) != 0)
		return -EINVAL;
	srq->shm = ring->shm;
	srq->slots = (uint8_t *)(srq->shm + 1);
	srq->mask = ring->depth - 1;
	rcd_shm_store(&srq->shm->consumer, srq->srq.next);
	return 0;
}

int
rcd_hsrq_switch(struct rcd_context *context, const struct rcd_ctrl_srq_switch_req *req)
{
	struct srq_ring ring = { .srq = rcd_table_get(&context->srqs, req->handle),
		.limit = req->limit,
		.set_limit = req->set_limit != 0 };
	struct rcd_hsrq *srq = ring.srq;
	int err;

	RCD_ON_CONTROL();
	if (srq == NULL)
		return -ENOENT;
	if (srq->next_bytes == 0)
		return -EINVAL;
	ring.shm = hsrq_shm_at(context, srq->next_offset);
	ring.depth = srq->next_depth;
	err = req->set_limit > 1 || req->reserved != 0
		? -EINVAL
		: rcd_lcore_call(context->client.lcore, hsrq_switch_on_lcore, &ring);
	if (err != 0) {
		hsrq_next_free(context, srq);
		return err;
	}
	rcd_segment_free(&context->segment, srq->offset, srq->bytes);
	srq->offset = srq->next_offset;
	srq->bytes = srq->next_bytes;
	srq->next_bytes = 0;
	return 0;
}

struct srq_place {
	struct rcd_xrcd *xrcd;
	struct rcd_hsrq *srq;
	uint32_t number;
};

static int
hsrq_show_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct srq_place *place = arg;

	(void)lcore;
	rcd_xrc_add(&place->xrcd->srqs, &place->srq->srq, place->number, place->srq->client->mrs,
		place->srq->pd);
	return 0;
}

static void
hsrq_hide(struct rcd_hsrq *srq)
{
	if (srq->member != NULL)
		rcd_xrc_remove(&srq->member->xrcd->srqs, &srq->srq);
}

static int
hsrq_hide_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	hsrq_hide(arg);
	rcd_host_publish(lcore);
	return 0;
}

static int
hsrq_leave_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hsrq *srq;

	while ((srq = rcd_context_walk_next(lcore, arg, RCD_WORK_LEAVE)) != NULL)
		hsrq_hide(srq);
	rcd_host_publish(lcore);
	return 0;
}

/* Peers name a queue by its number alone: no other one of the device has it. */
static bool
hsrq_number_is_new(const struct rcd_context *context, const struct rcd_xrcd *own, uint32_t number)
{
	const struct rcd_xrcd *xrcd;

	LIST_FOREACH(xrcd, &context->all->xrcds, link)
		if (xrcd != own && xrcd->dev == own->dev &&
			rcd_xrc_find(&xrcd->srqs, number) != NULL)
			return false;
	return true;
}

static uint32_t
hsrq_number(const struct rcd_context *context, const struct rcd_xrcd *xrcd)
{
	/* The chance of one in 16 million each, with few queues. */
	for (int i = 0; i < NUMBER_TRIES; i++) {
		uint32_t random = rcd_random_u32(context->all->conf.qpns->random);
		uint32_t number = rcd_xrc_number(&xrcd->srqs, random);

		if (number == 0 || hsrq_number_is_new(context, xrcd, number))
			return number;
	}
	return 0;
}

int
rcd_hsrq_create_xrc(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_xsrq_req *req, struct rcd_ctrl_xsrq_rep *rep)
{
	struct rcd_xmember *member = rcd_table_get(&context->xrcds, req->xrcd);
	struct rcd_hcq *cq = rcd_table_get(&context->cqs, req->cq);
	struct srq_place place;
	int err;

	RCD_ON_CONTROL();
	if (member == NULL || cq == NULL)
		return -ENOENT;
	place.xrcd = member->xrcd;
	place.number = hsrq_number(context, member->xrcd);
	if (place.number == 0)
		return -ENOMEM;
	err = rcd_hsrq_create(context, conn, &req->srq, &rep->srq);
	if (err != 0)
		return err;
	place.srq = rcd_table_get(&context->srqs, rep->srq.handle);
	place.srq->member = member;
	place.srq->cq = cq;
	member->users++;
	cq->users++;
	rcd_lcore_call(context->client.lcore, hsrq_show_on_lcore, &place);
	rep->number = place.number;
	return 0;
}

static void
hsrq_part(struct rcd_hsrq *srq)
{
	srq->member->users--;
	srq->cq->users--;
	srq->member = NULL;
}

void
rcd_hsrq_leave(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	rcd_context_walk(context->client.lcore, &context->srqs, hsrq_leave_on_lcore);
	for (uint32_t i = 0; i < context->srqs.fresh; i++) {
		struct rcd_hsrq *srq = context->srqs.slots[i];

		if (srq != NULL && srq->member != NULL)
			hsrq_part(srq);
	}
	*context->all->conf.work += context->srqs.fresh / RCD_WORK_LEAVE;
}

struct srq_limit {
	struct rcd_hsrq *srq;
	uint32_t limit;
};

static int
hsrq_limit_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct srq_limit *what = arg;

	(void)lcore;
	return rcd_srq_set_limit(&what->srq->srq, what->limit);
}

int
rcd_hsrq_modify(struct rcd_context *context, const struct rcd_ctrl_srq_modify_req *req)
{
	struct srq_limit what = { .srq = rcd_table_get(&context->srqs, req->handle),
		.limit = req->limit };

	RCD_ON_CONTROL();
	if (what.srq == NULL)
		return -ENOENT;
	return rcd_lcore_call(context->client.lcore, hsrq_limit_on_lcore, &what);
}

int
rcd_hsrq_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_srq_query_rep *rep)
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

int
rcd_hsrq_destroy(struct rcd_context *context, uint32_t handle)
{
	struct rcd_hsrq *srq = rcd_table_get(&context->srqs, handle);
	struct rcd_pd *pd;

	RCD_ON_CONTROL();
	if (srq == NULL)
		return -ENOENT;
	if (srq->users > 0)
		return -EBUSY;
	rcd_lcore_call(context->client.lcore, hsrq_hide_on_lcore, srq);
	if (srq->member != NULL)
		hsrq_part(srq);
	pd = rcd_table_get(&context->pds, srq->pd);
	pd->users--;
	rcd_table_del(&context->srqs, handle);
	hsrq_next_free(context, srq);
	rcd_segment_free(&context->segment, srq->offset, srq->bytes);
	hsrq_free(context, srq);
	return 0;
}
