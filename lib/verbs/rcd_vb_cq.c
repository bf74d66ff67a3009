/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion queues and channels.
 */
#include "rcd_vb.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE 16

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct rcd_vb_channel *channel = rcd_vb_new(context, sizeof(*channel));
	struct rcd_ctrl_handle rep;
	struct rcd_ctrl_fds fds;
	int err;

	if (channel == NULL)
		return NULL;
	err = rcd_client_call(
		rcd_vb_client(context), RCD_CTRL_CHANNEL_CREATE, NULL, &rep, NULL, &fds);
	if (err != 0 || fds.count != 1) {
		rcd_vb_free(context, channel);
		errno = err != 0 ? -err : EPROTO;
		return NULL;
	}
	channel->handle = rep.handle;
	channel->channel.context = context;
	channel->channel.fd = fds.fds[0];
	return &channel->channel;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct rcd_vb_channel *channel = (struct rcd_vb_channel *)(void *)ibv;
	struct ibv_context *context = ibv->context;
	int refs;

	pthread_mutex_lock(&context->mutex);
	refs = ibv->refcnt;
	pthread_mutex_unlock(&context->mutex);
	if (refs > 0)
		return EBUSY;
	rcd_cl_destroy(rcd_vb_client(context), RCD_CTRL_CHANNEL_DESTROY, channel->handle);
	close(ibv->fd);
	rcd_vb_free(context, channel);
	return 0;
}

struct rcd_vb_cq *
rcd_vb_cq_make(struct ibv_context *context, uint32_t cqe, void *cq_context,
	struct ibv_comp_channel *channel, bool single)
{
	struct rcd_vb_context *vb = rcd_vb_context(context);
	struct rcd_vb_cq *cq = rcd_vb_new(context, sizeof(*cq));
	struct rcd_ctrl_cq_req req = {
		.depth = cqe,
		.channel = channel != NULL ? ((struct rcd_vb_channel *)(void *)channel)->handle
					   : RCD_CTRL_NO_HANDLE,
		.cookie = (uintptr_t)cq,
	};
	int err;

	if (cq == NULL)
		return NULL;
	err = cqe == 0 || cqe > vb->rep.max_cqe ? -EINVAL
						: rcd_cl_cq_create(&vb->client, &req, &cq->cl);
	if (err != 0) {
		rcd_vb_free(context, cq);
		errno = -err;
		return NULL;
	}
	cq->lock.off = vb->single || single;
	cq->cq.context = context;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	cq->cq.handle = cq->cl.handle;
	cq->cq.cqe = (int)cq->cl.mask + 1;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	if (channel != NULL) {
		pthread_mutex_lock(&context->mutex);
		channel->refcnt++;
		pthread_mutex_unlock(&context->mutex);
	}
	pthread_mutex_lock(&vb->lock);
	LIST_INSERT_HEAD(&vb->cqs, cq, link);
	pthread_mutex_unlock(&vb->lock);
	return cq;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct rcd_vb_cq *cq;

	if (cqe < 1 || comp_vector < 0 || comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = rcd_vb_cq_make(context, (uint32_t)cqe, cq_context, channel, false);
	return cq != NULL ? ibv_cq_ex_to_cq(&cq->cq) : NULL;
}

int
ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct rcd_vb_cq *cq = rcd_vb_cq(ibv);
	int err;

	if (cqe < 1)
		return EINVAL;
	rcd_vb_lock(&cq->lock);
	err = rcd_cl_cq_resize(&cq->cl, (uint32_t)cqe);
	if (err == 0)
		ibv->cqe = (int)cq->cl.mask + 1;
	rcd_vb_unlock(&cq->lock);
	return rcd_vb_ret(err);
}

int
rcd_vb_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct rcd_ctrl_cq_modify_req req = { .handle = rcd_vb_cq(ibv)->cl.handle,
		.count = attr->moderate.cq_count,
		.period_us = attr->moderate.cq_period };

	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	return rcd_vb_ret(rcd_client_call(
		rcd_vb_client(ibv->context), RCD_CTRL_CQ_MODIFY, &req, NULL, NULL, NULL));
}

int
ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct rcd_vb_cq *cq = rcd_vb_cq(ibv);
	struct rcd_vb_context *vb = rcd_vb_context(ibv->context);
	int err = rcd_cl_destroy(&vb->client, RCD_CTRL_CQ_DESTROY, cq->cl.handle);

	if (err != 0 && err != -EIO)
		return -err;
	pthread_mutex_lock(&vb->lock);
	LIST_REMOVE(cq, link);
	pthread_mutex_unlock(&vb->lock);
	/* Events that were handed out are acknowledged first. */
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != cq->comp_delivered ||
		ibv->async_events_completed != cq->async_delivered)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	if (ibv->channel != NULL) {
		pthread_mutex_lock(&ibv->context->mutex);
		ibv->channel->refcnt--;
		pthread_mutex_unlock(&ibv->context->mutex);
	}
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	rcd_vb_free(ibv->context, cq);
	return 0;
}

/* The engine is gone: what is posted to queue pairs of this queue comes back as flushed. */
static uint32_t
vb_cq_take_flushed(struct rcd_vb_cq *cq, struct rcd_cq_slot *slots, uint32_t count)
{
	struct rcd_vb_context *vb = rcd_vb_context(cq->cq.context);
	struct ibv_cq *ibv = ibv_cq_ex_to_cq(&cq->cq);
	struct rcd_vb_qp *qp;
	uint32_t taken = 0;

	pthread_mutex_lock(&vb->lock);
	LIST_FOREACH(qp, &vb->qps, link) {
		while (taken < count && qp->qp.qp_base.send_cq == ibv &&
			rcd_cl_flush(&qp->cl, &cq->cl, false, &slots[taken]))
			taken++;
		while (taken < count && qp->qp.qp_base.recv_cq == ibv &&
			rcd_cl_flush(&qp->cl, &cq->cl, true, &slots[taken]))
			taken++;
	}
	pthread_mutex_unlock(&vb->lock);
	return taken;
}

uint32_t
rcd_vb_take(struct rcd_vb_cq *cq, struct rcd_cq_slot *slots, uint32_t count)
{
	uint32_t taken = rcd_cl_poll(&cq->cl, slots, count);

	if (taken > 0 || !rcd_client_dead(cq->cl.client))
		return taken;
	/* The engine may have written more before its end, which another thread was told of. */
	taken = rcd_cl_poll(&cq->cl, slots, count);
	return taken > 0 ? taken : vb_cq_take_flushed(cq, slots, count);
}

int
rcd_vb_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
	struct rcd_vb_cq *cq = rcd_vb_cq(ibv);
	struct rcd_cq_slot slots[AT_ONCE];
	int done = 0;

	rcd_vb_lock(&cq->lock);
	while (done < count) {
		uint32_t want = count - done < AT_ONCE ? (uint32_t)(count - done) : AT_ONCE;
		uint32_t got = rcd_vb_take(cq, slots, want);

		for (uint32_t i = 0; i < got; i++, done++) {
			const struct rcd_cq_slot *slot = &slots[i];
			struct ibv_wc *to = &wc[done];

			to->wr_id = slot->wr_id;
			to->status = (enum ibv_wc_status)slot->status;
			to->opcode = (enum ibv_wc_opcode)slot->opcode;
			to->vendor_err = 0;
			to->byte_len = slot->byte_len;
			if (slot->flags & IBV_WC_WITH_INV)
				to->invalidated_rkey = slot->imm;
			else
				to->imm_data = htobe32(slot->imm);
			to->qp_num = slot->qpn;
			to->src_qp = slot->src_qpn;
			to->wc_flags = slot->flags;
			to->pkey_index = 0;
			to->slid = 0;
			to->sl = slot->sl;
			to->dlid_path_bits = 0;
		}
		if (got < want)
			break;
	}
	rcd_vb_unlock(&cq->lock);
	return done;
}

int
rcd_vb_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct rcd_vb_cq *cq = rcd_vb_cq(ibv);

	rcd_vb_lock(&cq->lock);
	rcd_cl_arm(&cq->cl, solicited_only != 0);
	rcd_vb_unlock(&cq->lock);
	return 0;
}

/* A queue by the number that the engine gave back, if it is still there; any, after its end. */
static struct rcd_vb_cq *
vb_cq_find(struct rcd_vb_context *vb, const struct ibv_comp_channel *channel, uint64_t cookie,
	bool any)
{
	struct rcd_vb_cq *cq;

	LIST_FOREACH(cq, &vb->cqs, link)
		if (any ? cq->cq.channel == channel : (uintptr_t)cq == cookie)
			return cq;
	return NULL;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ibv, void **cq_context)
{
	struct rcd_vb_context *vb = rcd_vb_context(channel->context);

	for (;;) {
		uint64_t cookie = 0;
		ssize_t got = read(channel->fd, &cookie, sizeof(cookie));
		struct rcd_vb_cq *cq;

		/* A signal ends the wait: programs that are to end by one rely on it. */
		if (got < 0)
			return -1;
		if (got == 0)
			rcd_client_lost(&vb->client);
		pthread_mutex_lock(&vb->lock);
		cq = vb_cq_find(vb, channel, cookie, got == 0);
		if (cq != NULL) {
			pthread_mutex_lock(&cq->cq.mutex);
			cq->comp_delivered++;
			pthread_mutex_unlock(&cq->cq.mutex);
			*ibv = ibv_cq_ex_to_cq(&cq->cq);
			*cq_context = cq->cq.cq_context;
		}
		pthread_mutex_unlock(&vb->lock);
		if (cq != NULL)
			return 0;
		if (got == 0) {
			errno = EIO;
			return -1;
		}
		/* Of a queue that is gone: the next one. */
	}
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += count;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
