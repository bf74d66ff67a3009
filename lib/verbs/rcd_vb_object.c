/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How long a context lives: as long as it is open, and as its objects do; and those that it knows.
 */
#include "rcd_vb.h"

#include <stdlib.h>

void
rcd_vb_leave(struct rcd_vb_context *context)
{
	if (__atomic_sub_fetch(&context->users, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pthread_mutex_destroy(&context->lock);
	pthread_mutex_destroy(&context->flow_lock);
	pthread_mutex_destroy(&context->base.context.mutex);
	free(context);
}

void *
rcd_vb_new(struct ibv_context *context, size_t bytes)
{
	void *object = calloc(1, bytes);

	if (object != NULL)
		__atomic_add_fetch(&rcd_vb_context(context)->users, 1, __ATOMIC_RELAXED);
	return object;
}

void
rcd_vb_free(struct ibv_context *context, void *object)
{
	free(object);
	rcd_vb_leave(rcd_vb_context(context));
}

bool
rcd_vb_single_threaded(const struct ibv_pd *pd)
{
	return ((const struct rcd_vb_pd *)(const void *)pd)->td != NULL ||
		rcd_vb_context(pd->context)->single;
}

void
rcd_vb_qp_enter(struct rcd_vb_qp *qp)
{
	struct rcd_vb_context *vb = rcd_vb_context(qp->qp.qp_base.context);

	pthread_mutex_init(&qp->qp.qp_base.mutex, NULL);
	pthread_cond_init(&qp->qp.qp_base.cond, NULL);
	pthread_mutex_lock(&vb->lock);
	LIST_INSERT_HEAD(&vb->qps, qp, link);
	pthread_mutex_unlock(&vb->lock);
}

void
rcd_vb_srq_enter(struct rcd_vb_srq *srq, struct ibv_pd *pd, void *srq_context)
{
	struct rcd_vb_context *vb = rcd_vb_context(pd->context);

	srq->lock.off = rcd_vb_single_threaded(pd);
	srq->depth = srq->cl.wq.mask + 1;
	srq->max_sge = srq->cl.max_sge;
	srq->srq = (struct ibv_srq){ .context = pd->context,
		.srq_context = srq_context,
		.pd = pd,
		.handle = srq->cl.handle };
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	pthread_mutex_lock(&vb->lock);
	LIST_INSERT_HEAD(&vb->srqs, srq, link);
	pthread_mutex_unlock(&vb->lock);
}
