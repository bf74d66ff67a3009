/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Shared receive queues.
 */
#include "rcd_srq.h"

#include <errno.h>

void
rcd_srq_init(struct rcd_srq *srq, uint32_t depth, uint8_t max_sge, const struct rcd_srq_ops *ops,
	void *arg)
{
	*srq = (struct rcd_srq){ .ops = ops, .arg = arg, .depth = depth, .max_sge = max_sge };
}

int
rcd_srq_fetch(struct rcd_srq *srq, struct rcd_recv_wr *wr)
{
	int err;

	if (srq->failed)
		return -EAGAIN;
	err = srq->ops->fetch(srq->arg, srq->next, wr);
	if (err != 0)
		return err;
	srq->next++;
	if (srq->limit != 0 && srq->ops->available(srq->arg, srq->next) < srq->limit) {
		/* Spec: IBTA 11.5.2 the event is raised once; the limit has to be armed again */
		srq->limit = 0;
		srq->ops->event(srq->arg, RCD_EVENT_SRQ_LIMIT_REACHED);
	}
	return 0;
}

int
rcd_srq_set_limit(struct rcd_srq *srq, uint32_t limit)
{
	if (limit > srq->depth)
		return -EINVAL;
	srq->limit = limit;
	return 0;
}

int
rcd_srq_set_depth(struct rcd_srq *srq, uint32_t depth, uint32_t limit)
{
	if (limit > depth)
		return -EINVAL;
	srq->depth = depth;
	srq->limit = limit;
	return 0;
}

void
rcd_srq_fail(struct rcd_srq *srq)
{
	if (srq->failed)
		return;
	srq->failed = true;
	srq->ops->event(srq->arg, RCD_EVENT_SRQ_ERR);
}
