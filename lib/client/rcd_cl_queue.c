/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queues of a session: making them, posting, polling. No system call on these paths, but to wake
 * an engine that sleeps, and now and then in an empty poll to see whether it lives.
 */
#include "rcd_client.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "rcd_bits.h"

/** Empty polls between two looks at the engine: some milliseconds at most. */
#define CHECK_EVERY 16384

static void *
cl_queue_at(const struct rcd_client *client, uint64_t offset)
{
	return (uint8_t *)client->shm + offset;
}

static void
cl_queue_take_cq(struct rcd_client *client, const struct rcd_ctrl_cq_rep *rep, struct rcd_cl_cq *cq)
{
	cq->client = client;
	cq->handle = rep->handle;
	cq->shm = cl_queue_at(client, rep->indices);
	cq->slots = cl_queue_at(client, rep->slots);
	cq->mask = rep->depth - 1;
	cq->consumer = rep->consumer;
}

int
rcd_cl_cq_create(struct rcd_client *client, const struct rcd_ctrl_cq_req *req, struct rcd_cl_cq *cq)
{
	struct rcd_ctrl_cq_rep rep;
	int err = rcd_client_call(client, RCD_CTRL_CQ_CREATE, req, &rep, NULL, NULL);

	if (err != 0)
		return err;
	cl_queue_take_cq(client, &rep, cq);
	cq->arm = 0;
	return 0;
}

int
rcd_cl_cq_resize(struct rcd_cl_cq *cq, uint32_t depth)
{
	struct rcd_ctrl_cq_resize_req req = { .handle = cq->handle, .depth = depth };
	struct rcd_ctrl_cq_rep rep;
	int err;

	rcd_shm_store(&cq->shm->consumer, cq->consumer);
	err = rcd_client_call(cq->client, RCD_CTRL_CQ_RESIZE, &req, &rep, NULL, NULL);
	if (err == 0)
		cl_queue_take_cq(cq->client, &rep, cq);
	return err;
}

static struct rcd_cl_wq
cl_queue_srq_ring(const struct rcd_client *client, const struct rcd_ctrl_srq_rep *rep)
{
	return (struct rcd_cl_wq){
		.shm = cl_queue_at(client, rep->indices),
		.slots = cl_queue_at(client, rep->slots),
		.mask = rep->depth - 1,
		.stride = rep->stride,
	};
}

static void
cl_queue_take_srq(
	struct rcd_client *client, const struct rcd_ctrl_srq_rep *rep, struct rcd_cl_srq *srq)
{
	*srq = (struct rcd_cl_srq){
		.client = client,
		.handle = rep->handle,
		.max_sge = rep->max_sge,
		.wq = cl_queue_srq_ring(client, rep),
	};
}

int
rcd_cl_srq_create(
	struct rcd_client *client, const struct rcd_ctrl_srq_req *req, struct rcd_cl_srq *srq)
{
	struct rcd_ctrl_srq_rep rep;
	int err = rcd_client_call(client, RCD_CTRL_SRQ_CREATE, req, &rep, NULL, NULL);

	if (err == 0)
		cl_queue_take_srq(client, &rep, srq);
	return err;
}

int
rcd_cl_xsrq_create(struct rcd_client *client, const struct rcd_ctrl_xsrq_req *req,
	struct rcd_cl_srq *srq, uint32_t *number)
{
	struct rcd_ctrl_xsrq_rep rep;
	int err = rcd_client_call(client, RCD_CTRL_XSRQ_CREATE, req, &rep, NULL, NULL);

	if (err != 0)
		return err;
	cl_queue_take_srq(client, &rep.srq, srq);
	*number = rep.number;
	return 0;
}

int
rcd_cl_srq_resize(struct rcd_cl_srq *srq, uint32_t depth, const uint32_t *limit)
{
	struct rcd_ctrl_srq_resize_req req = { .handle = srq->handle, .depth = depth };
	struct rcd_ctrl_srq_switch_req taken = { .handle = srq->handle,
		.set_limit = limit != NULL,
		.limit = limit != NULL ? *limit : 0 };
	struct rcd_ctrl_srq_rep rep;
	struct rcd_cl_wq to;
	uint32_t at = rcd_shm_load(&srq->wq.shm->consumer);
	int err;

	if (depth < srq->wq.producer - at && rcd_power_up(depth) < srq->wq.producer - at)
		return -EINVAL;
	err = rcd_client_call(srq->client, RCD_CTRL_SRQ_RESIZE, &req, &rep, NULL, NULL);
	if (err != 0)
		return err;
	to = cl_queue_srq_ring(srq->client, &rep);
	to.producer = srq->wq.producer;
	/* The engine takes some of them meanwhile: those are copied for nothing. */
	for (; at != to.producer; at++)
		memcpy(to.slots + (size_t)(at & to.mask) * to.stride,
			srq->wq.slots + (size_t)(at & srq->wq.mask) * to.stride, to.stride);
	rcd_shm_store(&to.shm->producer, to.producer);
	err = rcd_client_call(srq->client, RCD_CTRL_SRQ_SWITCH, &taken, NULL, NULL, NULL);
	if (err == 0)
		srq->wq = to;
	return err;
}

int
rcd_cl_qp_create(struct rcd_client *client, const struct rcd_ctrl_qp_req *req, struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_qp_rep rep;
	int err = rcd_client_call(client, RCD_CTRL_QP_CREATE, req, &rep, NULL, NULL);

	if (err != 0)
		return err;
	*qp = (struct rcd_cl_qp){
		.client = client,
		.handle = rep.handle,
		.qpn = rep.qpn,
		.max_send_sge = rep.max_send_sge,
		.max_recv_sge = rep.max_recv_sge,
		.max_inline = rep.max_inline,
		.datagram = req->type == RCD_QP_UD || req->type == RCD_QP_RAW,
		.has_rq = rep.rq_depth > 0,
		.sq = { .shm = cl_queue_at(client, rep.sq_indices),
			.slots = cl_queue_at(client, rep.sq_slots),
			.mask = rep.sq_depth - 1,
			.stride = rep.sq_stride },
		.rq = { .shm = cl_queue_at(client, rep.rq_indices),
			.slots = cl_queue_at(client, rep.rq_slots),
			.mask = rep.rq_depth - 1,
			.stride = rep.rq_stride },
	};
	return 0;
}

int
rcd_cl_qp_modify(struct rcd_cl_qp *qp, const struct rcd_ctrl_qp_attr *attr, uint32_t mask)
{
	struct rcd_ctrl_qp_modify_req req = { .handle = qp->handle, .mask = mask, .attr = *attr };
	int err = rcd_client_call(qp->client, qp->target ? RCD_CTRL_XQP_MODIFY : RCD_CTRL_QP_MODIFY,
		&req, NULL, NULL, NULL);

	/* The engine has set all indices to 0. */
	if (err == 0 && (mask & RCD_QP_ATTR_STATE) && attr->state == RCD_QP_RESET)
		qp->sq.producer = qp->rq.producer = 0;
	return err;
}

int
rcd_cl_destroy(struct rcd_client *client, enum rcd_ctrl_op op, uint32_t handle)
{
	struct rcd_ctrl_handle req = { .handle = handle };

	return rcd_client_call(client, op, &req, NULL, NULL, NULL);
}

int
rcd_cl_post_send(struct rcd_cl_qp *qp, const struct rcd_send_wr *wr)
{
	struct rcd_cl_wq *sq = &qp->sq;

	if (rcd_client_dead(qp->client))
		return -EIO;
	if (wr->flags & RCD_SEND_INLINE ? wr->inline_len > qp->max_inline
					: wr->sge_count > qp->max_send_sge)
		return -EINVAL;
	if (rcd_cl_room(sq) == 0)
		return -ENOMEM;
	rcd_sq_wqe_put(sq->slots + (size_t)(sq->producer & sq->mask) * sq->stride, wr,
		rcd_wqe_form_of(qp->datagram, wr->opcode));
	sq->producer++;
	return 0;
}

static void
cl_queue_ring(struct rcd_client *client, uint32_t handle)
{
	uint64_t one = 1;

	if (rcd_db_ring(client->shm, handle) && write(client->wake_fd, &one, sizeof(one)) < 0) {
		/* Full: it is going to wake up anyway. */
	}
}

void
rcd_cl_ring(struct rcd_cl_qp *qp)
{
	if (rcd_client_dead(qp->client))
		return;
	rcd_shm_store(&qp->sq.shm->producer, qp->sq.producer);
	cl_queue_ring(qp->client, qp->handle);
}

static int
cl_queue_post_recv(struct rcd_client *client, struct rcd_cl_wq *wq, uint32_t max_sge,
	const struct rcd_recv_wr *wr)
{
	if (rcd_client_dead(client))
		return -EIO;
	if (wr->sge_count > max_sge)
		return -EINVAL;
	if (rcd_cl_room(wq) == 0)
		return -ENOMEM;
	rcd_rq_wqe_put(wq->slots + (size_t)(wq->producer & wq->mask) * wq->stride, wr);
	rcd_shm_store(&wq->shm->producer, ++wq->producer);
	return 0;
}

int
rcd_cl_post_recv(struct rcd_cl_qp *qp, const struct rcd_recv_wr *wr, bool in_error)
{
	int err = qp->has_rq ? cl_queue_post_recv(qp->client, &qp->rq, qp->max_recv_sge, wr)
			     : -EINVAL;

	if (err == 0 &&
		(in_error || __atomic_load_n(&qp->rq.shm->attention, __ATOMIC_RELAXED) != 0))
		cl_queue_ring(qp->client, qp->handle);
	return err;
}

int
rcd_cl_post_srq_recv(struct rcd_cl_srq *srq, const struct rcd_recv_wr *wr)
{
	return cl_queue_post_recv(srq->client, &srq->wq, srq->max_sge, wr);
}

uint32_t
rcd_cl_poll(struct rcd_cl_cq *cq, struct rcd_cq_slot *slots, uint32_t count)
{
	struct rcd_client *client = cq->client;
	uint32_t ready, taken;
	uint32_t kept = 0;

	if (client->shm == NULL)
		return 0;
	ready = rcd_shm_load(&cq->shm->producer) - cq->consumer;
	taken = ready < count ? ready : count;
	if (taken == 0) {
		uint32_t empty = __atomic_add_fetch(&client->empty_polls, 1, __ATOMIC_RELAXED);

		if (empty % CHECK_EVERY == 0)
			rcd_client_check(client);
		if (client->yield)
			sched_yield();
		return 0;
	}
	for (uint32_t i = 0; i < taken; i++) {
		const struct rcd_cq_slot *slot = &cq->slots[(cq->consumer + i) & cq->mask];

		/* Asked of the source: of the copy, each turn would wait for the one before it. */
		slots[kept] = *slot;
		kept += slot->status != RCD_CQ_VOID;
	}
	cq->consumer += taken;
	rcd_shm_store(&cq->shm->consumer, cq->consumer);
	return kept;
}

bool
rcd_cl_flush(struct rcd_cl_qp *qp, const struct rcd_cl_cq *cq, bool recv, struct rcd_cq_slot *slot)
{
	struct rcd_cl_wq *wq = recv ? &qp->rq : &qp->sq;
	uint32_t reported;
	const uint8_t *wqe;

	if (!rcd_client_dead(qp->client) || qp->client->shm == NULL || (recv && !qp->has_rq))
		return false;
	reported = rcd_shm_wq_reported(wq->shm, rcd_shm_load(&cq->shm->producer), cq->mask);
	if ((int32_t)(reported - wq->flushed) > 0)
		wq->flushed = reported;
	if (wq->flushed == wq->producer)
		return false;
	wqe = wq->slots + (size_t)(wq->flushed++ & wq->mask) * wq->stride;
	*slot = (struct rcd_cq_slot){
		.status = RCD_WC_WR_FLUSH_ERR,
		.opcode = recv ? RCD_WC_RECV : RCD_WC_SEND,
		.qpn = qp->qpn,
	};
	/* Both kinds of slot begin with it. */
	memcpy(&slot->wr_id, wqe, sizeof(slot->wr_id));
	return true;
}

void
rcd_cl_cq_clean(struct rcd_cl_cq *cq, uint32_t qpn)
{
	uint32_t dropped = 0;

	if (cq->client->shm == NULL)
		return;
	/* Slots between the indices are ours: what stays moves towards the producer. */
	for (uint32_t i = rcd_shm_load(&cq->shm->producer); i != cq->consumer; i--) {
		struct rcd_cq_slot *slot = &cq->slots[(i - 1) & cq->mask];

		if (slot->qpn == qpn)
			dropped++;
		else if (dropped > 0)
			cq->slots[(i - 1 + dropped) & cq->mask] = *slot;
	}
	cq->consumer += dropped;
	rcd_shm_store(&cq->shm->consumer, cq->consumer);
}

void
rcd_cl_arm(struct rcd_cl_cq *cq, bool solicited_only)
{
	if (cq->client->shm == NULL)
		return;
	cq->arm = ((cq->arm | RCD_SHM_ARM_MASK) + 1) |
		(solicited_only ? RCD_SHM_ARM_SOLICITED : RCD_SHM_ARM_NEXT);
	__atomic_store_n(&cq->shm->arm, cq->arm, __ATOMIC_SEQ_CST);
}
