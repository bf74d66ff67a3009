/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A context goes to the lcore that its packets come to, while it is still easy: none of its queue
 * pairs has been connected yet, so there is nothing on the wire, and nothing of a protocol that an
 * lcore keeps elsewhere. It leaves the one lcore before the other knows it; what its client rings
 * meanwhile is found by the latter. Its memory stays where it is.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "rcd_budget.h"
#include "rcd_context.h"
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
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_wheel.h"

/** Places of queue pairs, and of completion queues, of a context that moves at most. One with more
 * has connections that come to all lcores anyway. */
#define MOVE_PLACES 256

/** Places that are a unit of a round. */
#define UNIT_PLACES 16

/** A walk over its objects by several commands, each of them short. */
struct move_walk {
	const struct rcd_table *table;
	uint32_t next; /**< place to go on at */
};

static void
context_move_walk(struct rcd_lcore *lcore, const struct rcd_table *table,
	int (*fn)(struct rcd_lcore *lcore, void *arg))
{
	struct move_walk walk = { .table = table };

	while (walk.next < table->fresh)
		rcd_lcore_call(lcore, fn, &walk);
}

/* The next object that is there. @return NULL: that was all, or enough for a command */
static void *
context_move_next(struct rcd_lcore *lcore, struct move_walk *walk, uint32_t *done)
{
	while (walk->next < walk->table->fresh && *done < RCD_WORK_LEAVE) {
		void *object = walk->table->slots[walk->next++];

		if (object == NULL)
			continue;
		++*done;
		lcore->work++;
		return object;
	}
	return NULL;
}

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
	uint32_t done = 0;

	/* What a command before this one touched is in the lcore's hands still. */
	rcd_host_publish(lcore);
	while ((hqp = context_move_next(lcore, arg, &done)) != NULL) {
		rcd_turn_end(&hqp->turn);
		rcd_wheel_cancel(&lcore->wheel, &hqp->timer);
		lcore->qps[hqp->qpn % RCD_QP_SLOTS] = NULL;
	}
	return 0;
}

static int
context_move_join_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp;
	uint32_t done = 0;

	while ((hqp = context_move_next(lcore, arg, &done)) != NULL) {
		lcore->qps[hqp->qpn % RCD_QP_SLOTS] = hqp;
		rcd_lcore_touch(lcore, hqp);
	}
	return 0;
}

static int
context_move_stop_cqs_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hcq *cq;
	uint32_t done = 0;

	while ((cq = context_move_next(lcore, arg, &done)) != NULL)
		rcd_wheel_cancel(&lcore->wheel, &cq->timer);
	return 0;
}

/* An event that waits for its time goes on waiting. */
static int
context_move_resume_cqs_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hcq *cq;
	uint32_t done = 0;

	while ((cq = context_move_next(lcore, arg, &done)) != NULL)
		rcd_cq_event_due(lcore, cq);
	return 0;
}

static int
context_move_show_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	rcd_host_client_add(lcore, arg);
	return 0;
}

/* Queue pairs get beyond INIT, and into ERR from there, by commands of this thread alone. */
static bool
context_move_is_easy(const struct rcd_context *context)
{
	if (context->client.ucopy != NULL || context->moving != NULL ||
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

	for (uint32_t i = 0; i < context->hqps.fresh; i++) {
		struct rcd_hqp *hqp = context->hqps.slots[i];

		if (hqp == NULL)
			continue;
		hqp->lcore = to;
		rcd_qp_move(hqp->qp, rcd_lcore_counters(to, hqp->lport), to->reorder);
		rcd_qpns_move(context->all->conf.qpns, hqp->qpn, to->index);
	}
	client->lcore->context_count--;
	to->context_count++;
	client->lcore = to;
	client->spent_poll = 0;
}

static int
context_move_watch(const struct rcd_context *context, const struct rcd_lcore *lcore)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	return epoll_ctl(lcore->sleep_fd, EPOLL_CTL_ADD, context->wake_fd, &event) == 0 ? 0
											: -errno;
}

/* Away from its lcore, and to another. Without memory for that it stays. */
static void
context_move_go(struct rcd_context *context, struct rcd_lcore *to)
{
	struct rcd_lclient *client = &context->client;
	struct rcd_lcore *from = client->lcore;

	if (context_move_watch(context, to) != 0)
		return;
	rcd_lcore_call(from, context_move_hide_on_lcore, client);
	context_move_walk(from, &context->hqps, context_move_leave_on_lcore);
	context_move_walk(from, &context->cqs, context_move_stop_cqs_on_lcore);
	rcd_lcore_call(from, context_move_hide_on_lcore, client);
	context_move_hand(context, to);
	context_move_walk(to, &context->cqs, context_move_resume_cqs_on_lcore);
	context_move_walk(to, &context->hqps, context_move_join_on_lcore);
	rcd_lcore_call(to, context_move_show_on_lcore, client);
	epoll_ctl(from->sleep_fd, EPOLL_CTL_DEL, context->wake_fd, NULL);
	*context->all->conf.work += (context->hqps.fresh + context->cqs.fresh) / UNIT_PLACES;
}

void
rcd_context_follow(
	struct rcd_context *context, const struct rcd_av *av, uint32_t qpn, uint32_t dest_qpn)
{
	const struct rcd_lcores *lcores = context->all->conf.lcores;
	int queue;

	RCD_ON_CONTROL();
	if (context->settled)
		return;
	/* Once, however it ends: who asks again and again moves nothing. */
	context->settled = true;
	queue = rcd_steer_queue(context->dev, av, qpn, dest_qpn);
	if (queue == RCD_RSS_UNKNOWN || lcores->lcore[queue] == context->client.lcore ||
		!context_move_is_easy(context))
		return;
	context_move_go(context, lcores->lcore[queue]);
}
