/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A context goes to the lcore that its packets come to, while it is still easy: none of its queue
 * pairs has been connected yet, so there is nothing on the wire, and nothing of a protocol that an
 * lcore keeps elsewhere. It leaves the one lcore before the other knows it; what its client rings
 * meanwhile is found by the latter. Its memory stays where it is.
 */
#include "rcd_budget.h"
#include "rcd_check.h"
#include "rcd_context.h"
#include "rcd_context_walk.h"
#include "rcd_contexts.h"
#include "rcd_cq_event.h"
#include "rcd_dev.h"
#include "rcd_host.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_qp.h"
#include "rcd_qpns.h"
#include "rcd_queue.h"
#include "rcd_steer.h"
#include "rcd_thread.h"
#include "rcd_wheel.h"

/** Places of queue pairs, and of completion queues, of a context that moves at most. One with more
 * has queue pairs whose packets come to all lcores anyway. */
#define MOVE_PLACES 256

/** Places that are a unit of a round. */
#define UNIT_PLACES 16

/* No more doorbells; and at the end no more of what timers caused on their way. */
static int
context_move_hide_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	rcd_host_publish(lcore);
	rcd_host_client_del(lcore, arg);
	return 0;
}

static int
context_move_leave_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp;

	/* What a command before this one touched is in the lcore's hands still. */
	rcd_host_publish(lcore);
	while ((hqp = rcd_context_walk_next(lcore, arg, RCD_WORK_LEAVE)) != NULL)
		rcd_lcore_drop(lcore, hqp);
	return 0;
}

static int
context_move_join_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp;

	while ((hqp = rcd_context_walk_next(lcore, arg, RCD_WORK_LEAVE)) != NULL) {
		lcore->qps[hqp->qpn % RCD_QP_SLOTS] = hqp;
		rcd_lcore_touch(lcore, hqp);
	}
	return 0;
}

static int
context_move_stop_cqs_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hcq *cq;

	while ((cq = rcd_context_walk_next(lcore, arg, RCD_WORK_LEAVE)) != NULL)
		rcd_wheel_cancel(&lcore->wheel, &cq->timer);
	return 0;
}

/* An event that waits for its time goes on waiting. */
static int
context_move_resume_cqs_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hcq *cq;

	while ((cq = rcd_context_walk_next(lcore, arg, RCD_WORK_LEAVE)) != NULL)
		rcd_cq_event_due(lcore, cq);
	return 0;
}

/*
 * As far as it shows: that a queue pair is in ERR shows at the end of a poll, so while an lcore has
 * the context this may be true a moment too long.
 */
static bool
context_move_is_easy(const struct rcd_context *context)
{
	if (context->client.ucopy != NULL || context->resizing != NULL ||
		context->hqps.fresh > MOVE_PLACES || context->cqs.fresh > MOVE_PLACES)
		return false;
	for (uint32_t i = 0; i < context->hqps.fresh; i++) {
		const struct rcd_hqp *hqp = context->hqps.slots[i];

		if (hqp != NULL && (rcd_qp_state(hqp->qp) > RCD_QP_INIT || hqp->groups > 0))
			return false;
	}
	return true;
}

/* No lcore has it: it is the other's from now on. */
static void
context_move_hand(struct rcd_context *context, struct rcd_lcore *to)
{
	struct rcd_lclient *client = &context->client;

	RCD_CHECK(context->xrcds.used == 0);
	for (uint32_t i = 0; i < context->hqps.fresh; i++) {
		struct rcd_hqp *hqp = context->hqps.slots[i];
		int moved;

		if (hqp == NULL)
			continue;
		hqp->lcore = to;
		moved = rcd_qp_move(hqp->qp, rcd_lcore_counters(to, hqp->lport), to->reorder,
			&to->absence.away_ns);
		RCD_CHECK(moved == 0);
		rcd_qpns_move(context->all->conf.qpns, hqp->qpn, to->index);
	}
	rcd_lcore_context_del(client->lcore);
	rcd_lcore_context_add(to);
	client->lcore = to;
	client->spent_poll = 0;
}

/* Away from its lcore, and to another; back to it, when what was under way there made it hard. */
static void
context_move_go(struct rcd_context *context, struct rcd_lcore *to)
{
	struct rcd_lclient *client = &context->client;
	struct rcd_lcore *from = client->lcore;

	/* Without memory for that it stays. */
	if (rcd_lcore_watch(to, context->wake_fd) != 0)
		return;
	rcd_lcore_call(from, context_move_hide_on_lcore, client);
	rcd_context_walk(from, &context->hqps, context_move_leave_on_lcore);
	rcd_context_walk(from, &context->cqs, context_move_stop_cqs_on_lcore);
	rcd_lcore_call(from, context_move_hide_on_lcore, client);
	if (context_move_is_easy(context))
		context_move_hand(context, to);
	rcd_context_walk(client->lcore, &context->cqs, context_move_resume_cqs_on_lcore);
	rcd_context_walk(client->lcore, &context->hqps, context_move_join_on_lcore);
	rcd_lcore_call(client->lcore, rcd_host_client_add, client);
	rcd_lcore_unwatch(client->lcore == to ? from : to, context->wake_fd);
	*context->all->conf.work += (context->hqps.fresh + context->cqs.fresh) / UNIT_PLACES;
}

bool
rcd_context_bring(struct rcd_context *context, struct rcd_lcore *lcore)
{
	RCD_ON_CONTROL();
	if (context->client.lcore != lcore && context->client.ops == NULL &&
		context->xrcds.used == 0 && context_move_is_easy(context))
		context_move_go(context, lcore);
	return context->client.lcore == lcore;
}

void
rcd_context_follow(
	struct rcd_context *context, const struct rcd_av *av, uint32_t qpn, uint32_t dest_qpn)
{
	const struct rcd_lcores *lcores = context->all->conf.lcores;
	int queue;

	RCD_ON_CONTROL();
	/* Of the program's own it knows which lcore has them; a member is where its domain is. */
	if (context->followed || context->client.ops != NULL || context->xrcds.used > 0)
		return;
	/* Once, however it ends: who asks again and again moves nothing. */
	context->followed = true;
	queue = rcd_steer_queue(context->dev, av, qpn, dest_qpn);
	if (queue == RCD_RSS_UNKNOWN || lcores->lcore[queue] == context->client.lcore ||
		!context_move_is_easy(context))
		return;
	context_move_go(context, lcores->lcore[queue]);
}
