/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion queues of a session: made, resized, moderated and freed by the control thread, shown
 * to and taken from the lcore by commands.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_hcq.h"
#include "rcd_event.h"
#include "rcd_host.h"
#include "rcd_tx.h"

#define CQE_MAX (1u << 22)

static int
cq_ring(struct rcd_session *session, struct rcd_hcq *cq, uint32_t depth)
{
	uint64_t bytes, offset;
	int err;

	if (depth == 0 || depth > CQE_MAX)
		return -EINVAL;
	depth = rcd_power_up(depth);
	bytes = sizeof(struct rcd_shm_cq) + (uint64_t)depth * sizeof(struct rcd_cq_slot);
	err = rcd_quota_charge(&session->quota, RCD_RESOURCE_CQ_SLOTS, depth);
	if (err != 0)
		return err;
	err = rcd_segment_alloc(&session->segment, session->via, bytes, &offset);
	if (err != 0) {
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_CQ_SLOTS, depth);
		return err;
	}
	cq->offset = offset;
	cq->bytes = bytes;
	cq->mask = depth - 1;
	cq->shm = (struct rcd_shm_cq *)(void *)((uint8_t *)session->shm + offset);
	cq->slots = (struct rcd_cq_slot *)(void *)(cq->shm + 1);
	return 0;
}

/* Give a ring back, that of a queue or one that was to be. */
static void
cq_ring_free(struct rcd_session *session, uint64_t offset, uint64_t bytes)
{
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_CQ_SLOTS,
		(bytes - sizeof(struct rcd_shm_cq)) / sizeof(struct rcd_cq_slot));
	rcd_segment_free(&session->segment, offset, bytes);
}

static void
cq_describe(const struct rcd_hcq *cq, struct rcd_ctrl_cq_rep *rep)
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
rcd_verbs_cq_create(
	struct rcd_session *session, const struct rcd_ctrl_cq_req *req, struct rcd_ctrl_cq_rep *rep)
{
	struct rcd_channel *channel = NULL;
	struct rcd_hcq *cq;
	int err;

	if (req->channel != RCD_CTRL_NO_HANDLE) {
		channel = rcd_table_get(&session->channels, req->channel);
		if (channel == NULL)
			return -ENOENT;
	}
	err = rcd_quota_charge(&session->quota, RCD_RESOURCE_CQS, 1);
	if (err != 0)
		return err;
	cq = rcd_session_zalloc(session, sizeof(*cq));
	if (cq == NULL) {
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_CQS, 1);
		return -ENOMEM;
	}
	cq->session = session;
	cq->cookie = req->cookie;
	cq->via = session->via;
	cq->channel = channel;
	err = cq_ring(session, cq, req->depth);
	if (err == 0) {
		err = rcd_table_add(&session->cqs, cq, &cq->handle);
		if (err != 0)
			cq_ring_free(session, cq->offset, cq->bytes);
	}
	if (err != 0) {
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_CQS, 1);
		free(cq);
		return err;
	}
	if (channel != NULL)
		channel->users++;
	cq_describe(cq, rep);
	return 0;
}

/** Attempts to come up with an lcore that goes on completing: each leaves it less to do. */
#define MOVE_TRIES 64

/** Completions on a page: a unit of a round. */
#define UNIT_SLOTS 64

struct rcd_cq_move {
	struct rcd_hcq *cq;
	struct rcd_hcq to; /**< new ring */
	uint32_t via;      /**< connection whose request it is */
	uint32_t tries;
	uint32_t next;     /**< completion to copy next */
	uint32_t producer; /**< as the client may see it */
	int err;           /**< -EAGAIN: there is more than the lcore copies at once */
};

/* @return whether what is not consumed fits both rings */
static bool
cq_move_fits(struct rcd_cq_move *move, uint32_t consumer)
{
	uint32_t count = move->cq->producer - consumer;
	/* The client's word, where it can be true: what was consumed does not come back. */
	uint32_t most = move->cq->producer - move->cq->consumer;

	move->producer = rcd_hcq_shown(move->cq);
	move->err = count > most || count > move->cq->mask + 1 || count > move->to.mask + 1
		? -EINVAL
		: 0;
	return move->err == 0;
}

static void
cq_begin_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_cq_move *move = arg;
	struct rcd_hcq *cq = move->cq;

	/*
	 * What was posted before the request comes before it, as far as one poll gets. Unreliable
	 * sends are complete when the queue pair is asked once more.
	 */
	rcd_host_answer(lcore, cq->session, RCD_WORK_SESSION);
	for (int i = 0; i < 2; i++)
		rcd_tx_poll(lcore, RCD_BURST_MAX);
	rcd_host_publish(lcore);
	move->next = rcd_shm_load(&cq->shm->consumer);
	/* Requests that are flushed would complete faster than the control thread copies. */
	cq->session->flush_held = cq_move_fits(move, move->next);
	if (move->err == 0)
		cq->consumer = move->next;
}

static void
cq_give_up_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_cq_move *move = arg;

	(void)lcore;
	move->cq->session->flush_held = false;
}

/*
 * Completions that the lcore has published do not change until they are consumed, and then nobody
 * asks for them: any thread may copy them. @return how many were, so many at most
 */
static uint32_t
cq_copy(struct rcd_cq_move *move, uint32_t most)
{
	const struct rcd_hcq *from = move->cq;
	uint32_t count = 0;

	/* A client that says it consumed what it was not shown is ahead. */
	for (; (int32_t)(move->producer - move->next) > 0 && count < most; move->next++, count++)
		move->to.slots[move->next & move->to.mask] = from->slots[move->next & from->mask];
	return count;
}

static void
cq_switch_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_cq_move *move = arg;
	struct rcd_hcq *cq = move->cq;
	uint32_t consumer;

	rcd_host_publish(lcore);
	consumer = rcd_shm_load(&cq->shm->consumer);
	if (!cq_move_fits(move, consumer)) {
		cq->session->flush_held = false;
		return;
	}
	/* What the client consumed meanwhile need not be there. */
	if ((int32_t)(consumer - move->next) > 0)
		move->next = consumer;
	if (cq->producer - move->next > RCD_WORK_COPY) {
		move->err = -EAGAIN;
		return;
	}
	lcore->work += cq->producer - move->next;
	/* What is not shown may still change, and so is copied here alone. */
	move->producer = cq->producer;
	cq_copy(move, RCD_WORK_COPY);
	move->to.shm->producer = rcd_hcq_shown(cq);
	move->to.shm->consumer = consumer;
	move->to.shm->arm = __atomic_load_n(&cq->shm->arm, __ATOMIC_SEQ_CST);
	cq->consumer = consumer;
	cq->shm = move->to.shm;
	cq->slots = move->to.slots;
	cq->mask = move->to.mask;
	cq->session->flush_held = false;
}

static int
move_begin(struct rcd_session *session, const struct rcd_ctrl_cq_resize_req *req)
{
	struct rcd_hcq *cq = rcd_table_get(&session->cqs, req->handle);
	struct rcd_cq_move *move;
	struct rcd_hcq to = { .offset = 0 };
	int err;

	if (cq == NULL)
		return -ENOENT;
	err = cq_ring(session, &to, req->depth);
	if (err != 0)
		return err;
	move = calloc(1, sizeof(*move));
	if (move == NULL) {
		cq_ring_free(session, to.offset, to.bytes);
		return -ENOMEM;
	}
	move->cq = cq;
	move->to = to;
	move->via = session->via;
	session->moving = move;
	rcd_lcore_call(session->lcore, cq_begin_on_lcore, move);
	return move->err;
}

/*
 * A part, and the lcore's when all others are there.
 *
 * @return 0; -EINPROGRESS: there is more; -EBUSY: more comes all the time; -errno
 */
static int
move_some(struct rcd_session *session, struct rcd_cq_move *move)
{
	uint32_t left = RCD_ROUND_SLICE * UNIT_SLOTS;

	do {
		left -= cq_copy(move, left);
		if ((int32_t)(move->producer - move->next) > 0)
			break;
		rcd_lcore_call(session->lcore, cq_switch_on_lcore, move);
		if (move->err == -EAGAIN && ++move->tries == MOVE_TRIES)
			move->err = -EBUSY;
	} while (move->err == -EAGAIN && left > 0);
	session->engine->work += (RCD_ROUND_SLICE * UNIT_SLOTS - left) / UNIT_SLOTS;
	if (move->err == -EAGAIN || (move->err == 0 && move->cq->slots != move->to.slots))
		return -EINPROGRESS;
	return move->err;
}

void
rcd_hcq_settle(struct rcd_session *session, uint32_t via)
{
	struct rcd_cq_move *move = session->moving;

	if (move == NULL || move->via != via)
		return;
	rcd_lcore_call(session->lcore, cq_give_up_on_lcore, move);
	cq_ring_free(session, move->to.offset, move->to.bytes);
	rcd_hcq_end(session);
}

void
rcd_hcq_end(struct rcd_session *session)
{
	free(session->moving);
	session->moving = NULL;
}

int
rcd_verbs_cq_resize(struct rcd_session *session, const struct rcd_ctrl_cq_resize_req *req,
	struct rcd_ctrl_cq_rep *rep)
{
	uint64_t old_offset, old_bytes;
	struct rcd_hcq *cq;
	int err = 0;

	/* One at a time: another connection's comes first. */
	if (session->moving != NULL && session->moving->via != session->via)
		return -EINPROGRESS;
	if (session->moving == NULL)
		err = move_begin(session, req);
	if (err == 0)
		err = move_some(session, session->moving);
	/* What it leaves behind when it failed goes when the request is over. */
	if (err != 0)
		return err;
	cq = session->moving->cq;
	old_offset = cq->offset;
	old_bytes = cq->bytes;
	cq->offset = session->moving->to.offset;
	cq->bytes = session->moving->to.bytes;
	cq_ring_free(session, old_offset, old_bytes);
	rcd_hcq_end(session);
	cq_describe(cq, rep);
	return 0;
}

static void
cq_forget_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hcq *cq = arg;

	rcd_ucopy_forget_cq(cq->session, cq);
	rcd_host_publish(lcore);
	rcd_event_forget(lcore, cq);
}

struct cq_change {
	struct rcd_hcq *cq;
	const struct rcd_ctrl_cq_modify_req *req;
};

static void
cq_modify_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct cq_change *change = arg;
	const struct rcd_ctrl_cq_modify_req *req = change->req;
	/* A number alone waits for the longest period: fewer may come, and nothing behind them. */
	uint32_t period_us = req->period_us > 0 ? req->period_us : RCD_CTRL_CQ_PERIOD_MAX;

	uint32_t count = req->count > 1 ? req->count : req->period_us > 0 ? UINT32_MAX : 0;

	rcd_event_moderate(lcore, change->cq, count, period_us * UINT64_C(1000));
}

int
rcd_verbs_cq_modify(struct rcd_session *session, const struct rcd_ctrl_cq_modify_req *req)
{
	struct cq_change change = { .cq = rcd_table_get(&session->cqs, req->handle), .req = req };

	if (change.cq == NULL)
		return -ENOENT;
	if (req->count > RCD_CTRL_CQ_COUNT_MAX || req->period_us > RCD_CTRL_CQ_PERIOD_MAX)
		return -EINVAL;
	rcd_lcore_call(session->lcore, cq_modify_on_lcore, &change);
	return 0;
}

int
rcd_verbs_cq_destroy(struct rcd_session *session, uint32_t handle)
{
	struct rcd_hcq *cq = rcd_table_get(&session->cqs, handle);

	if (cq == NULL)
		return -ENOENT;
	if (cq->users > 0 || (session->moving != NULL && session->moving->cq == cq))
		return -EBUSY;
	rcd_lcore_call(session->lcore, cq_forget_on_lcore, cq);
	if (cq->channel != NULL)
		cq->channel->users--;
	rcd_table_del(&session->cqs, handle);
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_CQS, 1);
	cq_ring_free(session, cq->offset, cq->bytes);
	free(cq);
	return 0;
}
