/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the lcore does for the program: requests into the rings that clients have too, without a
 * doorbell, as who rings is the one who would look; completions out of them; and the end of mbufs.
 */
#include <errno.h>
#include <limits.h>
#include <rte_mbuf.h>

#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_lcore.h"
#include "rcd_local_object.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_wqe.h"

#define FREE_AT_ONCE 64

/* Free the mbufs of all requests before this number. */
static void
local_io_free(struct rcd_local_qp *qp, uint32_t number)
{
	struct rte_mbuf *batch[FREE_AT_ONCE];
	uint32_t count = 0;

	for (; qp->sq_done != number && qp->mbuf_count > 0; qp->sq_done++) {
		struct rte_mbuf **mbuf = &qp->mbufs[qp->sq_done & qp->sq.mask];

		if (*mbuf == NULL)
			continue;
		batch[count++] = *mbuf;
		*mbuf = NULL;
		qp->mbuf_count--;
		if (count == FREE_AT_ONCE) {
			rte_pktmbuf_free_bulk(batch, count);
			count = 0;
		}
	}
	rte_pktmbuf_free_bulk(batch, count);
	qp->sq_done = number;
}

static void
local_io_done(void *arg, uint32_t number)
{
	struct rcd_local_qp *qp = arg;

	local_io_free(qp, number);
}

static void
local_io_forgotten(void *arg, bool gone)
{
	struct rcd_local_qp *qp = arg;

	local_io_free(qp, qp->sq.producer);
	qp->sq_done = qp->sq.producer = qp->rq.producer = 0;
	if (gone)
		qp->hqp = NULL;
}

static void
local_io_gone(void *arg)
{
	struct rcd_local *local = arg;

	local->gone = true;
}

const struct rcd_lclient_ops rcd_local_io_ops = {
	.done = local_io_done,
	.forgotten = local_io_forgotten,
	.gone = local_io_gone,
};

int
rcd_local_io_bind(struct rcd_lcore *lcore, void *arg)
{
	const struct rcd_local_bind *bind = arg;
	struct rcd_local_qp *qp = bind->qp;
	struct rcd_hqp *hqp = bind->hqp;

	RCD_ON_LCORE(lcore);
	qp->hqp = hqp;
	qp->sq = (struct rcd_local_wq){
		.slots = hqp->sq_slots, .mask = hqp->sq_mask, .stride = hqp->sq_stride
	};
	qp->rq = (struct rcd_local_wq){
		.slots = hqp->rq_slots, .mask = hqp->rq_mask, .stride = hqp->rq_stride
	};
	hqp->local = qp;
	return 0;
}

/* The caller is on the lcore of a queue pair that is there. In release builds this is nothing. */
static inline void
local_io_check_thread(const struct rcd_hqp *hqp)
{
	rcd_thread_leave(rcd_lcore_enter(hqp->lcore));
}

static uint32_t
local_io_sends(const struct rcd_local_qp *qp)
{
	return qp->sq.producer - qp->sq_done;
}

static uint32_t
local_io_recvs(const struct rcd_local_qp *qp)
{
	return qp->rq.producer - qp->hqp->rq_published;
}

enum rcd_qp_state
rcd_local_qp_state(const struct rcd_local_qp *qp)
{
	if (qp->hqp == NULL)
		return RCD_QP_ERR;
	local_io_check_thread(qp->hqp);
	return rcd_qp_state(qp->hqp->qp);
}

uint32_t
rcd_local_qp_sends(const struct rcd_local_qp *qp)
{
	if (qp->hqp != NULL)
		local_io_check_thread(qp->hqp);
	return local_io_sends(qp);
}

uint32_t
rcd_local_qp_recvs(const struct rcd_local_qp *qp)
{
	if (qp->hqp == NULL)
		return 0;
	local_io_check_thread(qp->hqp);
	return local_io_recvs(qp);
}

static void *
local_io_slot(const struct rcd_local_wq *wq)
{
	return wq->slots + (size_t)(wq->producer & wq->mask) * wq->stride;
}

/* Whether a request fits its slot, and may be posted now. */
static int
local_io_check(const struct rcd_local_qp *qp, const struct rcd_send_wr *wr)
{
	if (wr->opcode >= RCD_WR_OPCODE_COUNT || wr->opcode == RCD_WR_BIND_MW ||
		wr->opcode == RCD_WR_LOCAL_INV || rcd_qp_state(qp->hqp->qp) < RCD_QP_RTS)
		return -EINVAL;
	if (wr->flags & RCD_SEND_INLINE)
		return wr->inline_len > qp->max_inline ||
				(wr->inline_len > 0 && wr->inline_data == NULL)
			? -EINVAL
			: 0;
	return wr->sge_count > qp->max_send_sge || (wr->sge_count > 0 && wr->sges == NULL) ? -EINVAL
											   : 0;
}

int
rcd_local_post_send(struct rcd_local_qp *qp, const struct rcd_send_wr *wr, struct rte_mbuf *mbuf)
{
	int err;

	if (qp->hqp == NULL)
		return -ENODEV;
	local_io_check_thread(qp->hqp);
	err = local_io_check(qp, wr);
	if (err != 0)
		return err;
	if (local_io_sends(qp) > qp->sq.mask)
		return -ENOMEM;
	rcd_sq_wqe_put(local_io_slot(&qp->sq), wr, rcd_wqe_form_of(qp->datagram, wr->opcode));
	qp->mbufs[qp->sq.producer & qp->sq.mask] = mbuf;
	qp->mbuf_count += mbuf != NULL;
	qp->sq.producer++;
	return 0;
}

void
rcd_local_ring(struct rcd_local_qp *qp)
{
	struct rcd_hqp *hqp = qp->hqp;
	struct rcd_thread_place place;

	if (hqp == NULL)
		return;
	place = rcd_lcore_enter(hqp->lcore);
	rcd_shm_store(&hqp->sq_shm->producer, qp->sq.producer);
	/* What the answer to a doorbell does. */
	rcd_qp_posted(hqp->qp);
	rcd_lcore_touch(hqp->lcore, hqp);
	rcd_turn_begin(&hqp->lcore->turns, &hqp->turn);
	rcd_thread_leave(place);
}

int
rcd_local_post_recv(struct rcd_local_qp *qp, const struct rcd_recv_wr *wr)
{
	struct rcd_hqp *hqp = qp->hqp;

	if (hqp == NULL)
		return -ENODEV;
	local_io_check_thread(hqp);
	if (qp->rq.slots == NULL || wr->sge_count > qp->max_recv_sge ||
		(wr->sge_count > 0 && wr->sges == NULL) || rcd_qp_state(hqp->qp) == RCD_QP_RESET)
		return -EINVAL;
	if (local_io_recvs(qp) > qp->rq.mask)
		return -ENOMEM;
	rcd_rq_wqe_put(local_io_slot(&qp->rq), wr);
	rcd_shm_store(&hqp->rq_shm->producer, ++qp->rq.producer);
	/* To be flushed: nothing else would have it looked at. */
	if (hqp->in_error)
		rcd_local_ring(qp);
	return 0;
}

int
rcd_local_poll_cq(struct rcd_local_cq *cq, struct rcd_cq_slot *slots, uint32_t count)
{
	uint32_t ready;
	int kept = 0;

	if (cq->local->gone)
		return -ENODEV;
	/* The connection is there for as long as the lcore was not told that it goes. */
	rcd_thread_leave(rcd_lcore_enter(cq->local->conn->context->client.lcore));
	ready = rcd_shm_load(&cq->shm->producer) - cq->consumer;
	if (ready > count)
		ready = count;
	if (ready == 0)
		return 0;
	for (uint32_t i = 0; i < ready; i++) {
		const struct rcd_cq_slot *slot = &cq->slots[(cq->consumer + i) & cq->mask];

		slots[kept] = *slot;
		kept += slot->status != RCD_CQ_VOID;
	}
	cq->consumer += ready;
	rcd_shm_store(&cq->shm->consumer, cq->consumer);
	return kept;
}
