/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion queues of a context: made, resized, moderated and freed by the control thread, shown
 * to and taken from the lcore by commands.
 */
#include "rcd_hcq.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_bells.h"
#include "rcd_bits.h"
#include "rcd_budget.h"
#include "rcd_contexts.h"
#include "rcd_ctrl.h"
#include "rcd_cq_event.h"
#include "rcd_host.h"
#include "rcd_lcore.h"
#include "rcd_lcore_ctl.h"
#include "rcd_limits.h"
#include "rcd_near.h"
#include "rcd_queue.h"
#include "rcd_quota.h"
#include "rcd_segment.h"
#include "rcd_shm.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_tx.h"
#include "rcd_ucopy.h"
#include "rcd_wqe.h"

static int
hcq_ring(struct rcd_context *context, const struct rcd_conn *conn, struct rcd_hcq *cq,
	uint32_t depth)
{
	uint64_t bytes, offset;
	int err;

	if (depth == 0 || depth > RCD_CQ_DEPTH_MAX)
		return -EINVAL;
	depth = rcd_power_up(depth);
	bytes = sizeof(struct rcd_shm_cq) + (uint64_t)depth * sizeof(struct rcd_cq_slot);
	err = rcd_quota_charge(&context->quota, RCD_RESOURCE_CQ_SLOTS, depth);
	if (err != 0)
		return err;
	err = rcd_segment_alloc(&context->segment, conn->serial, bytes, &offset);
	if (err != 0) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_CQ_SLOTS, depth);
		return err;
	}
	cq->offset = offset;
	cq->bytes = bytes;
	cq->mask = depth - 1;
	cq->shm = (struct rcd_shm_cq *)(void *)((uint8_t *)context->client.shm + offset);
	cq->slots = (struct rcd_cq_slot *)(void *)(cq->shm + 1);
	return 0;
}

/* Give a ring back, that of a queue or one that was to be. */
static void
hcq_ring_free(struct rcd_context *context, uint64_t offset, uint64_t bytes)
{
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_CQ_SLOTS,
		(bytes - sizeof(struct rcd_shm_cq)) / sizeof(struct rcd_cq_slot));
	rcd_segment_free(&context->segment, offset, bytes);
}

static void
hcq_describe(const struct rcd_hcq *cq, struct rcd_ctrl_cq_rep *rep)
{
	*rep = (struct rcd_ctrl_cq_rep){
		.handle = cq->handle,
		.depth = cq->mask + 1,
		.indices = cq->offset,
		.slots = cq->offset + sizeof(struct rcd_shm_cq),
		.consumer = cq->consumer,
		.producer = rcd_hcq_shown(cq),
	};
}

int
rcd_hcq_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_cq_req *req, struct rcd_ctrl_cq_rep *rep)
{
	struct rcd_channel *channel = NULL;
	struct rcd_hcq *cq;
	int err;

	RCD_ON_CONTROL();
	if (req->channel != RCD_CTRL_NO_HANDLE) {
		channel = rcd_table_get(&context->channels, req->channel);
		if (channel == NULL)
			return -ENOENT;
	}
	err = rcd_quota_charge(&context->quota, RCD_RESOURCE_CQS, 1);
	if (err != 0)
		return err;
	cq = rcd_near_zalloc(rcd_lcore_socket_id(context->client.lcore), sizeof(*cq));
	if (cq == NULL) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_CQS, 1);
		return -ENOMEM;
	}
	cq->client = &context->client;
	cq->cookie = req->cookie;
	cq->conn_serial = conn->serial;
	cq->channel = channel;
	err = hcq_ring(context, conn, cq, req->depth);
	if (err == 0) {
		err = rcd_table_add(&context->cqs, cq, &cq->handle);
		if (err != 0)
			hcq_ring_free(context, cq->offset, cq->bytes);
	}
	if (err != 0) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_CQS, 1);
		free(cq);
		return err;
	}
	if (channel != NULL)
		channel->users++;
	hcq_describe(cq, rep);
	return 0;
}

/** Attempts to come up with an lcore that goes on completing: each leaves it less to do. */
#define MOVE_TRIES 64

/** Completions on a page: a unit of a round. */
#define UNIT_SLOTS 64

struct rcd_cq_move {
	struct rcd_hcq *cq;
	struct rcd_hcq to;    /**< new ring */
	uint32_t conn_serial; /**< connection whose request it is */
	uint32_t tries;
	uint32_t next;     /**< completion to copy next */
	uint32_t producer; /**< as the client may see it */
};

/* @return 0: what is not consumed fits both rings; or -EINVAL */
static int
hcq_move_fits(struct rcd_cq_move *move, uint32_t consumer)
{
	uint32_t count = move->cq->producer - consumer;
	/* The client's word, where it can be true: what was consumed does not come back. */
	uint32_t most = move->cq->producer - move->cq->consumer;

	move->producer = rcd_hcq_shown(move->cq);
	return count > most || count > move->cq->mask + 1 || count > move->to.mask + 1 ? -EINVAL
										       : 0;
}

static int
hcq_begin_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_cq_move *move = arg;
	struct rcd_hcq *cq = move->cq;
	int err;

	/*
	 * What was posted before the request comes before it, as far as one poll gets. Unreliable
	 * sends are complete when the queue pair is asked once more.
	 */
	rcd_bells_answer(lcore, cq->client, RCD_WORK_CLIENT);
	for (int i = 0; i < 2; i++)
		rcd_tx_poll(lcore, RCD_BURST_MAX);
	rcd_host_publish(lcore);
	move->next = rcd_shm_load(&cq->shm->consumer);
	/* Requests that are flushed would complete faster than the control thread copies. */
	err = hcq_move_fits(move, move->next);
	cq->client->flush_held = err == 0;
	if (err == 0)
		cq->consumer = move->next;
	return err;
}

static int
hcq_give_up_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_cq_move *move = arg;

	(void)lcore;
	move->cq->client->flush_held = false;
	return 0;
}

/*
 * Completions that the lcore has published do not change until they are consumed, and then nobody
 * asks for them: any thread may copy them. @return how many were, so many at most
 */
static uint32_t
hcq_copy(struct rcd_cq_move *move, uint32_t most)
{
	const struct rcd_hcq *from = move->cq;
	uint32_t count = 0;

	/* A client that says it consumed what it was not shown is ahead. */
	for (; (int32_t)(move->producer - move->next) > 0 && count < most; move->next++, count++)
		move->to.slots[move->next & move->to.mask] = from->slots[move->next & from->mask];
	return count;
}

/* @return 0; -EAGAIN: there is more than the lcore copies at once; -EINVAL */
static int
hcq_switch_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_cq_move *move = arg;
	struct rcd_hcq *cq = move->cq;
	uint32_t consumer;
	int err;

	rcd_host_publish(lcore);
	consumer = rcd_shm_load(&cq->shm->consumer);
	err = hcq_move_fits(move, consumer);
	if (err != 0) {
		cq->client->flush_held = false;
		return err;
	}
	/* What the client consumed meanwhile need not be there. */
	if ((int32_t)(consumer - move->next) > 0)
		move->next = consumer;
	if (cq->producer - move->next > RCD_WORK_COPY)
		return -EAGAIN;
	lcore->work += cq->producer - move->next;
	/* What is not shown may still change, and so is copied here alone. */
	move->producer = cq->producer;
	hcq_copy(move, RCD_WORK_COPY);
	move->to.shm->producer = rcd_hcq_shown(cq);
	move->to.shm->consumer = consumer;
	move->to.shm->arm = __atomic_load_n(&cq->shm->arm, __ATOMIC_SEQ_CST);
	cq->consumer = consumer;
	cq->shm = move->to.shm;
	cq->slots = move->to.slots;
	cq->mask = move->to.mask;
	cq->client->flush_held = false;
	return 0;
}

static int
hcq_move_begin(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_cq_resize_req *req)
{
	struct rcd_hcq *cq = rcd_table_get(&context->cqs, req->handle);
	struct rcd_cq_move *move;
	struct rcd_hcq to = { .offset = 0 };
	int err;

	if (cq == NULL)
		return -ENOENT;
	err = hcq_ring(context, conn, &to, req->depth);
	if (err != 0)
		return err;
	move = calloc(1, sizeof(*move));
	if (move == NULL) {
		hcq_ring_free(context, to.offset, to.bytes);
		return -ENOMEM;
	}
	move->cq = cq;
	move->to = to;
	move->conn_serial = conn->serial;
	context->resizing = move;
	return rcd_lcore_call(context->client.lcore, hcq_begin_on_lcore, move);
}

/*
 * A part, and the lcore's when all others are there.
 *
 * @return 0; -EINPROGRESS: there is more; -EBUSY: more comes all the time; -errno
 */
static int
hcq_move_some(struct rcd_context *context, struct rcd_cq_move *move)
{
	uint32_t left = RCD_ROUND_SLICE * UNIT_SLOTS;
	int err = -EAGAIN;

	do {
		left -= hcq_copy(move, left);
		if ((int32_t)(move->producer - move->next) > 0)
			break;
		err = rcd_lcore_call(context->client.lcore, hcq_switch_on_lcore, move);
		if (err == -EAGAIN && ++move->tries == MOVE_TRIES)
			err = -EBUSY;
	} while (err == -EAGAIN && left > 0);
	*context->all->conf.work += (RCD_ROUND_SLICE * UNIT_SLOTS - left) / UNIT_SLOTS;
	return err == -EAGAIN ? -EINPROGRESS : err;
}

void
rcd_hcq_settle(struct rcd_context *context, uint32_t conn_serial)
{
	struct rcd_cq_move *move = context->resizing;

	RCD_ON_CONTROL();
	if (move == NULL || move->conn_serial != conn_serial)
		return;
	rcd_lcore_call(context->client.lcore, hcq_give_up_on_lcore, move);
	hcq_ring_free(context, move->to.offset, move->to.bytes);
	rcd_hcq_end(context);
}

void
rcd_hcq_end(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	free(context->resizing);
	context->resizing = NULL;
}

int
rcd_hcq_resize(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_cq_resize_req *req, struct rcd_ctrl_cq_rep *rep)
{
	uint64_t old_offset, old_bytes;
	struct rcd_hcq *cq;
	int err = 0;

	RCD_ON_CONTROL();
	/* One at a time: another connection's comes first. */
	if (context->resizing != NULL && context->resizing->conn_serial != conn->serial)
		return -EINPROGRESS;
	if (context->resizing == NULL)
		err = hcq_move_begin(context, conn, req);
	if (err == 0)
		err = hcq_move_some(context, context->resizing);
	/* What it leaves behind when it failed goes when the request is over. */
	if (err != 0)
		return err;
	cq = context->resizing->cq;
	old_offset = cq->offset;
	old_bytes = cq->bytes;
	cq->offset = context->resizing->to.offset;
	cq->bytes = context->resizing->to.bytes;
	hcq_ring_free(context, old_offset, old_bytes);
	rcd_hcq_end(context);
	hcq_describe(cq, rep);
	return 0;
}

static int
hcq_forget_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hcq *cq = arg;

	rcd_ucopy_forget_cq(cq->client, cq);
	rcd_host_publish(lcore);
	rcd_cq_event_forget(lcore, cq);
	return 0;
}

struct cq_change {
	struct rcd_hcq *cq;
	const struct rcd_ctrl_cq_modify_req *req;
};

static int
hcq_modify_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct cq_change *change = arg;
	const struct rcd_ctrl_cq_modify_req *req = change->req;
	/* A number alone waits for the longest period: fewer may come, and nothing behind them. */
	uint32_t period_us = req->period_us > 0 ? req->period_us : RCD_CTRL_CQ_PERIOD_MAX;

	uint32_t count = req->count > 1 ? req->count : req->period_us > 0 ? UINT32_MAX : 0;

	rcd_cq_event_moderate(lcore, change->cq, count, period_us * UINT64_C(1000));
	return 0;
}

int
rcd_hcq_modify(struct rcd_context *context, const struct rcd_ctrl_cq_modify_req *req)
{
	struct cq_change change = { .cq = rcd_table_get(&context->cqs, req->handle), .req = req };

	RCD_ON_CONTROL();
	if (change.cq == NULL)
		return -ENOENT;
	if (req->count > RCD_CTRL_CQ_COUNT_MAX || req->period_us > RCD_CTRL_CQ_PERIOD_MAX)
		return -EINVAL;
	rcd_lcore_call(context->client.lcore, hcq_modify_on_lcore, &change);
	return 0;
}

int
rcd_hcq_destroy(struct rcd_context *context, uint32_t handle)
{
	struct rcd_hcq *cq = rcd_table_get(&context->cqs, handle);

	RCD_ON_CONTROL();
	if (cq == NULL)
		return -ENOENT;
	if (cq->users > 0 || (context->resizing != NULL && context->resizing->cq == cq))
		return -EBUSY;
	rcd_lcore_call(context->client.lcore, hcq_forget_on_lcore, cq);
	if (cq->channel != NULL)
		cq->channel->users--;
	rcd_table_del(&context->cqs, handle);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_CQS, 1);
	hcq_ring_free(context, cq->offset, cq->bytes);
	free(cq);
	return 0;
}
