/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine's end of the rings that clients share: work requests in, completions and
 * events out. Nothing that a client writes is believed: indices are bounded, slots are copied once,
 * and what does not fit costs the client its queue pair.
 */
#include "rcd_host.h"

#include <errno.h>
#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "rcd_bells.h"
#include "rcd_counter.h"
#include "rcd_ctrl.h"
#include "rcd_cq_event.h"
#include "rcd_late.h"
#include "rcd_lcore.h"
#include "rcd_note.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_srq.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_ucopy.h"
#include "rcd_wheel.h"
#include "rcd_wqe.h"

#define SLOTS_AHEAD 4 /**< slot that is fetched ahead of the one that is taken */

/* A client wrote what can't be: its queue pair fails at the end of this poll. */
static int
host_offend(struct rcd_hqp *hqp)
{
	rcd_counter_add(&hqp->client->counters, RCD_COUNTER_CLIENT_BAD_INDEX, 1);
	hqp->faulty = true;
	rcd_lcore_touch(hqp->lcore, hqp);
	return -EAGAIN;
}

/*
 * Whether the request with this number is posted. `limit` is the producer as it was last read.
 *
 * @return 0, -EAGAIN, or -EINVAL for an index that leaves the ring
 */
static int
host_posted(const struct rcd_shm_wq *shm, uint32_t mask, uint32_t done, uint32_t number,
	uint32_t *limit)
{
	if ((int32_t)(*limit - number) > 0)
		return 0;
	*limit = rcd_shm_load(&shm->producer);
	if (*limit - done > mask + 1) {
		*limit = number;
		return -EINVAL;
	}
	return (int32_t)(*limit - number) > 0 ? 0 : -EAGAIN;
}

/*
 * With thousands of queue pairs the slots of one are in nobody's cache when its turn comes, and
 * many of them are taken in a row.
 */
static inline const uint8_t *
host_slot_of(const uint8_t *slots, uint32_t number, uint32_t mask, uint32_t stride)
{
	return slots + (size_t)(number & mask) * stride;
}

static int
host_fetch_send(void *arg, uint32_t number, struct rcd_send_wr *wr)
{
	struct rcd_hqp *hqp = arg;
	uint32_t done = rcd_qp_sq_done(hqp->qp);
	int err = host_posted(hqp->sq_shm, hqp->sq_mask, done, number, &hqp->sq_limit);

	if (err == -EINVAL)
		return host_offend(hqp);
	if (err != 0)
		return err;
	rte_prefetch0(
		host_slot_of(hqp->sq_slots, number + SLOTS_AHEAD, hqp->sq_mask, hqp->sq_stride));
	rcd_sq_wqe_get(host_slot_of(hqp->sq_slots, number, hqp->sq_mask, hqp->sq_stride),
		hqp->datagram, wr);
	return 0;
}

static int
host_fetch_recv(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	struct rcd_hqp *hqp = arg;
	int err;

	if (hqp->rq_slots == NULL)
		return -EAGAIN;
	err = host_posted(hqp->rq_shm, hqp->rq_mask, number, number, &hqp->rq_limit);
	if (err == -EINVAL)
		return host_offend(hqp);
	if (err != 0)
		return err;
	rte_prefetch0(
		host_slot_of(hqp->rq_slots, number + SLOTS_AHEAD, hqp->rq_mask, hqp->rq_stride));
	rcd_rq_wqe_get(host_slot_of(hqp->rq_slots, number, hqp->rq_mask, hqp->rq_stride), wr);
	rcd_lcore_touch(hqp->lcore, hqp);
	return 0;
}

static void
host_note(struct rcd_lclient *client, uint32_t conn_serial, uint32_t type,
	enum rcd_ctrl_event_of of, uint64_t cookie)
{
	struct rcd_note what = {
		.kind = RCD_NOTE_EVENT,
		.whom = conn_serial,
		.cookie = cookie,
		.type = type,
		.of = of,
	};

	rcd_note_send(client->lcore, &what);
}

/* Room for one completion more. @return the slot, or NULL: there is none, and the queue failed */
static struct rcd_cq_slot *
host_cq_slot(struct rcd_hcq *cq)
{
	if (likely(cq->producer - cq->consumer <= cq->mask))
		return &cq->slots[cq->producer++ & cq->mask];
	/* Full, or the consumer was not looked at for long. */
	cq->consumer = rcd_shm_load(&cq->shm->consumer);
	if (cq->producer - cq->consumer <= cq->mask)
		return &cq->slots[cq->producer++ & cq->mask];
	if (cq->producer - cq->consumer > cq->mask + 1)
		rcd_counter_add(&cq->client->counters, RCD_COUNTER_CLIENT_BAD_INDEX, 1);
	rcd_counter_add(&cq->client->counters, RCD_COUNTER_CQ_OVERRUN, 1);
	cq->failed = true;
	host_note(cq->client, cq->conn_serial, RCD_EVENT_CQ_ERR, RCD_CTRL_EVENT_CQ, cq->cookie);
	return NULL;
}

static inline void
host_fill_slot(const struct rcd_lcore *lcore, struct rcd_cq_slot *slot, const struct rcd_cqe *cqe)
{
	*slot = (struct rcd_cq_slot){
		.wr_id = cqe->wr_id,
		.timestamp_ns = lcore->now_ns,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.flags = cqe->flags,
		.byte_len = cqe->byte_len,
		.imm = cqe->imm,
		.qpn = cqe->qpn.val,
		.src_qpn = cqe->src_qpn.val,
		.sl = cqe->sl,
	};
}

/* One more is in its queue. */
static inline void
host_filled(struct rcd_lcore *lcore, struct rcd_hcq *cq, bool solicited)
{
	if (unlikely(cq->gated))
		cq->held_solicited |= solicited;
	else
		cq->solicited |= solicited;
	rcd_host_dirty(lcore, cq);
}

static void
host_complete(void *arg, const struct rcd_cqe *cqe)
{
	struct rcd_hqp *hqp = arg;
	struct rcd_hcq *cq = cqe->recv ? hqp->recv_cq : hqp->send_cq;
	struct rcd_lcore *lcore = hqp->lcore;
	struct rcd_cq_slot *slot;

	lcore->work++;
	rcd_lcore_touch(lcore, hqp);
	if (cq->failed) {
		hqp->faulty |= rcd_qp_state(hqp->qp) != RCD_QP_ERR;
		return;
	}
	slot = host_cq_slot(cq);
	if (slot == NULL) {
		hqp->faulty = true;
		return;
	}
	host_fill_slot(lcore, slot, cqe);
	if (unlikely(hqp->copies > 0))
		rcd_ucopy_hold(hqp, cq, cqe);
	host_filled(lcore, cq, cqe->solicited);
}

static void
host_qp_event(void *arg, enum rcd_event event)
{
	struct rcd_hqp *hqp = arg;

	host_note(hqp->client, hqp->conn_serial, (uint32_t)event, RCD_CTRL_EVENT_QP, hqp->cookie);
}

const struct rcd_qp_ops rcd_host_qp_ops = {
	.fetch_send = host_fetch_send,
	.fetch_recv = host_fetch_recv,
	.complete = host_complete,
	.event = host_qp_event,
	.agreed = rcd_note_agreed,
};

static uint32_t
host_srq_available(void *arg, uint32_t number)
{
	struct rcd_hsrq *srq = arg;
	uint32_t available = rcd_shm_load(&srq->shm->producer) - number;

	return available > srq->mask + 1 ? 0 : available;
}

static int
host_srq_fetch(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	struct rcd_hsrq *srq = arg;
	uint32_t available = rcd_shm_load(&srq->shm->producer) - number;
	struct rcd_lcore *lcore = srq->client->lcore;

	if (available == 0)
		return -EAGAIN;
	if (available > srq->mask + 1) {
		rcd_counter_add(&srq->client->counters, RCD_COUNTER_CLIENT_BAD_INDEX, 1);
		if (!srq->srq.failed)
			rcd_srq_fail(&srq->srq);
		return -EAGAIN;
	}
	rcd_rq_wqe_get(srq->slots + (size_t)(number & srq->mask) * srq->stride, wr);
	if (!srq->dirty) {
		srq->dirty = true;
		srq->next_dirty = lcore->dirty_srqs;
		lcore->dirty_srqs = srq;
	}
	return 0;
}

static void
host_srq_event(void *arg, enum rcd_event event)
{
	struct rcd_hsrq *srq = arg;

	host_note(srq->client, srq->conn_serial, (uint32_t)event, RCD_CTRL_EVENT_SRQ, srq->cookie);
}

/*
 * Of XRC. When the completion queue is full, its owner's queue fails, and no target: others have
 * them as well.
 */
static void
host_srq_complete(void *arg, const struct rcd_cqe *cqe)
{
	struct rcd_hsrq *srq = arg;
	struct rcd_lcore *lcore = srq->client->lcore;
	struct rcd_cq_slot *slot = NULL;

	lcore->work++;
	if (!srq->cq->failed)
		slot = host_cq_slot(srq->cq);
	if (slot == NULL) {
		rcd_srq_fail(&srq->srq);
		return;
	}
	host_fill_slot(lcore, slot, cqe);
	if (unlikely(srq->client->ucopy != NULL))
		rcd_ucopy_hold_shared(srq, cqe);
	host_filled(lcore, srq->cq, cqe->solicited);
}

const struct rcd_srq_ops rcd_host_srq_ops = {
	.fetch = host_srq_fetch,
	.available = host_srq_available,
	.event = host_srq_event,
	.complete = host_srq_complete,
};

/* Keep the timer at or before the deadline; a later deadline is found when it fires. */
static void
host_set_timer(struct rcd_lcore *lcore, struct rcd_hqp *hqp, uint64_t deadline)
{
	if (deadline != 0 && (hqp->timer.at_ns == 0 || deadline < hqp->timer.at_ns))
		rcd_wheel_set(&lcore->wheel, &hqp->timer, deadline);
}

/** How long after ERR posts are looked for once more: longer than a store takes to be seen. */
#define LAST_LOOK_NS 1000000

/* In ERR there is nothing to wait for but posts, and receives do not ring by themselves. */
static void
host_tell_error(struct rcd_lcore *lcore, struct rcd_hqp *hqp, bool in_error)
{
	hqp->in_error = in_error;
	__atomic_store_n(&hqp->rq_shm->attention, in_error, __ATOMIC_RELAXED);
	if (in_error)
		rcd_wheel_set(&lcore->wheel, &hqp->timer, lcore->now_ns + LAST_LOOK_NS);
}

/*
 * Show how far a queue was worked off, ahead of the completions: who sees one has room for what it
 * posts then. Of a completion queue that is gated a killed engine's client may be told of one as
 * flushed that it has seen.
 */
static void
host_publish_ring(
	struct rcd_shm_wq *ring, uint32_t *published, uint32_t done, const struct rcd_hcq *cq)
{
	if (cq != NULL)
		rcd_shm_wq_done(ring, *published, done,
			&(struct rcd_shm_reach){ cq->published, cq->producer, cq->mask });
	else
		rcd_shm_store(&ring->consumer, done);
	*published = done;
}

static void
host_publish_qp(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	struct rcd_qp_progress progress;

	if (hqp->faulty) {
		hqp->faulty = false;
		rcd_qp_fail(hqp->qp);
		rcd_turn_begin(&lcore->turns, &hqp->turn);
		hqp->faulty = false;
	}
	rcd_qp_progress(hqp->qp, &progress);
	if (unlikely(progress.flushing)) {
		rcd_late_flush(lcore, hqp);
		rcd_qp_progress(hqp->qp, &progress);
	}
	if (progress.sq_done != hqp->sq_published) {
		host_publish_ring(hqp->sq_shm, &hqp->sq_published, progress.sq_done, hqp->send_cq);
		if (unlikely(hqp->local != NULL))
			hqp->client->ops->done(hqp->local, progress.sq_done);
	}
	if (progress.rq_done != hqp->rq_published && hqp->rq_shm != NULL)
		host_publish_ring(hqp->rq_shm, &hqp->rq_published, progress.rq_done, hqp->recv_cq);
	host_set_timer(lcore, hqp, progress.next_deadline);
	if (hqp->in_error != (progress.state == RCD_QP_ERR))
		host_tell_error(lcore, hqp, !hqp->in_error);
}

void
rcd_host_publish(struct rcd_lcore *lcore)
{
	struct rcd_hcq *cqs;
	struct rcd_hcq *fresh;

	RCD_ON_LCORE(lcore);
	while (lcore->touched != NULL) {
		struct rcd_hqp *hqp = lcore->touched;

		/* A fault may complete requests, and so touch it again. */
		lcore->touched = hqp->next_touched;
		host_publish_qp(lcore, hqp);
		hqp->touched = false;
	}
	while (lcore->dirty_srqs != NULL) {
		struct rcd_hsrq *srq = lcore->dirty_srqs;

		lcore->dirty_srqs = srq->next_dirty;
		srq->dirty = false;
		rcd_shm_store(&srq->shm->consumer, srq->srq.next);
	}
	if (lcore->dirty_cqs == NULL)
		return;
	cqs = lcore->dirty_cqs;
	for (fresh = cqs; fresh != NULL; fresh = fresh->next_dirty)
		rcd_shm_store(&fresh->shm->producer, rcd_hcq_shown(fresh));
	/* Who arms after this sees the completions; who armed before is seen here. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	lcore->dirty_cqs = NULL;
	for (; cqs != NULL; cqs = cqs->next_dirty) {
		cqs->dirty = false;
		/* All that is new of it may have to wait for its data. */
		if (cqs->published == rcd_hcq_shown(cqs))
			continue;
		rcd_cq_event_check(lcore, cqs);
		cqs->published = rcd_hcq_shown(cqs);
		cqs->solicited = false;
	}
}

void
rcd_host_client_init(struct rcd_lclient *client)
{
	RCD_ON_CONTROL();
	client->retry.kind = RCD_TIMER_CLIENT;
	client->event_round = 1;
	TAILQ_INIT(&client->flushing);
	TAILQ_INIT(&client->waiting);
}

int
rcd_host_client_add(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_lclient *client = arg;

	RCD_ON_LCORE(lcore);
	rcd_bells_add(lcore, client);
	rcd_stage_watch(lcore, client);
	/* What another lcore left of its work goes on here. */
	client->in_flushing = !TAILQ_EMPTY(&client->flushing);
	if (client->in_flushing)
		TAILQ_INSERT_TAIL(&lcore->flushing, client, flush_link);
	if (!TAILQ_EMPTY(&client->waiting))
		rcd_cq_event_retry(lcore, client);
	return 0;
}

void
rcd_host_client_del(struct rcd_lcore *lcore, struct rcd_lclient *client)
{
	RCD_ON_LCORE(lcore);
	rcd_bells_del(lcore, client);
	if (client->in_flushing)
		TAILQ_REMOVE(&lcore->flushing, client, flush_link);
	if (client->in_owing)
		TAILQ_REMOVE(&lcore->owing, client, owe_link);
	client->in_flushing = client->in_owing = false;
	rcd_wheel_cancel(&lcore->wheel, &client->retry);
}
