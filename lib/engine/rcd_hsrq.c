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
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_ctrl.h"
#include "rcd_host.h"
#include "rcd_lcore_ctl.h"
#include "rcd_limits.h"
#include "rcd_near.h"
#include "rcd_quota.h"
#include "rcd_segment.h"
#include "rcd_shm.h"
#include "rcd_srq.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_wqe.h"

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
	srq->bytes = sizeof(*srq->shm) + (uint64_t)depth * srq->stride;
	err = rcd_segment_alloc(&context->segment, conn->serial, srq->bytes, &srq->offset);
	if (err != 0) {
		hsrq_free(context, srq);
		return err;
	}
	srq->shm = (struct rcd_shm_wq *)(void *)((uint8_t *)context->client.shm + srq->offset);
	srq->slots = (uint8_t *)(srq->shm + 1);
	rcd_srq_init(&srq->srq, depth, (uint8_t)srq->max_sge, &rcd_host_srq_ops, srq);
	rcd_srq_set_limit(&srq->srq, req->limit);
	if (rcd_table_add(&context->srqs, srq, &srq->handle) != 0) {
		rcd_segment_free(&context->segment, srq->offset, srq->bytes);
		hsrq_free(context, srq);
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

static int
hsrq_publish_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	(void)arg;
	rcd_host_publish(lcore);
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
	rcd_lcore_call(context->client.lcore, hsrq_publish_on_lcore, NULL);
	pd = rcd_table_get(&context->pds, srq->pd);
	pd->users--;
	rcd_table_del(&context->srqs, handle);
	rcd_segment_free(&context->segment, srq->offset, srq->bytes);
	hsrq_free(context, srq);
	return 0;
}
