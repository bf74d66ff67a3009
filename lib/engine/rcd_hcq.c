/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion queues of a session: made, resized, moderated and freed by the control thread, shown
 * to and taken from the lcore by commands.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <stdlib.h>

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
	err = rcd_segment_alloc(session, bytes, &offset);
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
	rcd_segment_free(session, offset, bytes);
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
		.producer = cq->producer,
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
	cq->pipe = channel != NULL ? channel->pipe : -1;
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

struct cq_move {
	struct rcd_hcq *cq;
	struct rcd_hcq to; /**< new ring */
	int err;
};

static void
cq_move_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct cq_move *move = arg;
	struct rcd_hcq *cq = move->cq;
	uint32_t consumer;

	/*
	 * What was posted before the request comes before it. Unreliable sends are complete when
	 * the queue pair is asked once more.
	 */
	rcd_host_answer(lcore, cq->session);
	for (int i = 0; i < 2; i++)
		rcd_tx_poll(lcore, RCD_BURST_MAX);
	rcd_host_publish(lcore);
	consumer = rcd_shm_load(&cq->shm->consumer);
	if (cq->producer - consumer > cq->mask + 1 || cq->producer - consumer > move->to.mask + 1) {
		move->err = -EINVAL;
		return;
	}
	for (uint32_t i = consumer; i != cq->producer; i++)
		move->to.slots[i & move->to.mask] = cq->slots[i & cq->mask];
	move->to.shm->producer = cq->producer;
	move->to.shm->consumer = consumer;
	move->to.shm->arm = __atomic_load_n(&cq->shm->arm, __ATOMIC_SEQ_CST);
	cq->consumer = consumer;
	cq->shm = move->to.shm;
	cq->slots = move->to.slots;
	cq->mask = move->to.mask;
}

int
rcd_verbs_cq_resize(struct rcd_session *session, const struct rcd_ctrl_cq_resize_req *req,
	struct rcd_ctrl_cq_rep *rep)
{
	struct rcd_hcq *cq = rcd_table_get(&session->cqs, req->handle);
	struct cq_move move = { .cq = cq };
	uint64_t old_offset, old_bytes;
	int err;

	if (cq == NULL)
		return -ENOENT;
	err = cq_ring(session, &move.to, req->depth);
	if (err != 0)
		return err;
	rcd_lcore_call(session->lcore, cq_move_on_lcore, &move);
	if (move.err != 0) {
		cq_ring_free(session, move.to.offset, move.to.bytes);
		return move.err;
	}
	old_offset = cq->offset;
	old_bytes = cq->bytes;
	cq->offset = move.to.offset;
	cq->bytes = move.to.bytes;
	cq_ring_free(session, old_offset, old_bytes);
	cq_describe(cq, rep);
	return 0;
}

void
rcd_hcq_forget(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	struct rcd_hcq **at = &lcore->dirty_cqs;

	/* Published: it is in the list only for an event that waits, or did not fit its channel. */
	while (*at != NULL && *at != cq)
		at = &(*at)->next_dirty;
	if (*at != NULL)
		*at = cq->next_dirty;
}

static void
cq_forget_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	rcd_host_publish(lcore);
	rcd_hcq_forget(lcore, arg);
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

	(void)lcore;
	change->cq->event_ns = period_us * UINT64_C(1000);
	if (req->count > 1)
		change->cq->event_count = req->count;
	else
		change->cq->event_count = req->period_us > 0 ? UINT32_MAX : 0;
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
	if (cq->users > 0)
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

/* SRQs */
