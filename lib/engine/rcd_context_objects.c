/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All objects of a context at once: taken from the lcore, failed, freed.
 */
#include <stdlib.h>
#include <unistd.h>

#include "rcd_ah.h"
#include "rcd_budget.h"
#include "rcd_context_walk.h"
#include "rcd_contexts.h"
#include "rcd_cq_event.h"
#include "rcd_hop.h"
#include "rcd_host.h"
#include "rcd_hqp.h"
#include "rcd_lcore.h"
#include "rcd_ports.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_srq.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_ucopy.h"

static int
context_objects_hide_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	rcd_host_client_del(lcore, arg);
	rcd_ucopy_end(arg);
	return 0;
}

/* Targets of others may wait for its copies. @return whether more do */
static int
context_objects_release_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	(void)lcore;
	return rcd_ucopy_release(arg);
}

static int
context_objects_leave_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp;

	while ((hqp = rcd_context_walk_next(lcore, arg, RCD_WORK_LEAVE)) != NULL)
		rcd_hqp_leave(lcore, hqp);
	rcd_host_publish(lcore);
	return 0;
}

static int
context_objects_forget_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hcq *cq;

	while ((cq = rcd_context_walk_next(lcore, arg, RCD_WORK_ALL)) != NULL)
		rcd_cq_event_forget(lcore, cq);
	return 0;
}

/* And nobody else, where it is a part of the program. */
static int
context_objects_end_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_lclient *client = arg;

	context_objects_hide_on_lcore(lcore, client);
	if (client->ops != NULL)
		client->ops->gone(client->arg);
	return 0;
}

static void
context_objects_put_hop(const struct rcd_av *av, void *arg)
{
	rcd_hop_put(arg, av->hop);
}

void
rcd_context_objects_leave(struct rcd_context *context)
{
	struct rcd_lcore *lcore = context->client.lcore;

	RCD_ON_CONTROL();
	while (rcd_lcore_call(lcore, context_objects_release_on_lcore, &context->client)) {
	}
	/* No more doorbells; and at the end no more of what its queue pairs caused on their way. */
	rcd_lcore_call(lcore, context_objects_hide_on_lcore, &context->client);
	rcd_context_walk(lcore, &context->hqps, context_objects_leave_on_lcore);
	rcd_context_walk(lcore, &context->cqs, context_objects_forget_on_lcore);
	rcd_lcore_call(lcore, context_objects_end_on_lcore, &context->client);
}

static int
context_objects_fail_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp;

	while ((hqp = rcd_context_walk_next(lcore, arg, RCD_WORK_LEAVE)) != NULL) {
		hqp->faulty = true;
		rcd_lcore_touch(lcore, hqp);
	}
	return 0;
}

/* Of XRC: what is received into others fails with the queue pair. */
static int
context_objects_fail_srqs_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hsrq *srq;

	while ((srq = rcd_context_walk_next(lcore, arg, RCD_WORK_LEAVE)) != NULL)
		if (srq->cq != NULL)
			rcd_srq_fail(&srq->srq);
	return 0;
}

void
rcd_context_objects_fail(struct rcd_context *context)
{
	struct rcd_lcore *lcore = context->client.lcore;

	RCD_ON_CONTROL();
	rcd_context_walk(lcore, &context->hqps, context_objects_fail_on_lcore);
	rcd_context_walk(lcore, &context->srqs, context_objects_fail_srqs_on_lcore);
}

void
rcd_context_objects_free(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < context->hqps.fresh; i++)
		if (context->hqps.slots[i] != NULL)
			rcd_hqp_free(context, context->hqps.slots[i]);
	if (context->ah_count > 0)
		rcd_ah_each(context->client.ahs, context_objects_put_hop,
			context->all->conf.ports->hops);
	for (uint32_t i = 0; i < context->cqs.fresh; i++)
		free(context->cqs.slots[i]);
	for (uint32_t i = 0; i < context->srqs.fresh; i++)
		free(context->srqs.slots[i]);
	for (uint32_t i = 0; i < context->pds.fresh; i++)
		free(context->pds.slots[i]);
	for (uint32_t i = 0; i < context->dms.fresh; i++)
		free(context->dms.slots[i]);
	for (uint32_t i = 0; i < context->channels.fresh; i++) {
		struct rcd_channel *channel = context->channels.slots[i];

		if (channel != NULL)
			close(channel->sock);
		free(channel);
	}
}
