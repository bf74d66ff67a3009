/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion events: when one is due, and how it gets to its channel. Each is a system call, so a
 * poll sends a share for one client and for all. A channel without room has a reader with plenty
 * to read: its events wait in order, and one of them tries again a millisecond later.
 */
#include "rcd_cq_event.h"

#include "rcd_budget.h"
#include "rcd_ctrl.h"
#include "rcd_late.h"
#include "rcd_lclient.h"
#include "rcd_lcore.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_wheel.h"

/** How long a client waits whose channels are all full: a reader empties one in less. */
#define RETRY_NS 1000000

/* A client has events to send, and a channel that may have room. */
static void
cq_event_enter(struct rcd_lcore *lcore, struct rcd_lclient *client)
{
	if (client->in_owing)
		return;
	client->in_owing = true;
	TAILQ_INSERT_TAIL(&lcore->owing, client, owe_link);
}

/* The event of a completion queue is to be sent. */
static void
cq_event_owe(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	struct rcd_channel *channel = cq->channel;
	struct rcd_lclient *client = cq->client;

	cq->since_event = 0;
	cq->owed = true;
	TAILQ_INSERT_TAIL(&channel->owed, cq, owed_link);
	if (channel->waiting)
		return;
	channel->waiting = true;
	/* Before the full ones. */
	TAILQ_INSERT_HEAD(&client->waiting, channel, link);
	cq_event_enter(lcore, client);
}

static void
cq_event_pay(struct rcd_lclient *client, struct rcd_hcq *cq)
{
	struct rcd_channel *channel = cq->channel;

	cq->owed = false;
	TAILQ_REMOVE(&channel->owed, cq, owed_link);
	if (!TAILQ_EMPTY(&channel->owed))
		return;
	channel->waiting = false;
	TAILQ_REMOVE(&client->waiting, channel, link);
}

/* An event may go, or waits for more completions and for its time. */
static void
cq_event_moderate(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	uint64_t end_ns;

	if (!cq->due)
		cq->due_ns = lcore->now_ns;
	end_ns = cq->due_ns + cq->event_ns;
	cq->due = cq->since_event < cq->event_count && lcore->now_ns < end_ns;
	if (!cq->due) {
		rcd_wheel_cancel(&lcore->wheel, &cq->timer);
		cq_event_owe(lcore, cq);
		return;
	}
	cq->timer.kind = RCD_TIMER_CQ;
	if (cq->timer.at_ns != end_ns)
		rcd_wheel_set(&lcore->wheel, &cq->timer, end_ns);
}

void
rcd_cq_event_check(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	uint32_t arm;

	RCD_ON_LCORE(lcore);
	cq->since_event += rcd_hcq_shown(cq) - cq->published;
	/* One that was not sent yet tells of these as well. */
	if (cq->channel == NULL || cq->owed)
		return;
	if (cq->due) {
		cq_event_moderate(lcore, cq);
		return;
	}
	arm = __atomic_load_n(&cq->shm->arm, __ATOMIC_SEQ_CST);
	if (arm == cq->arm_seen)
		return;
	if ((arm & RCD_SHM_ARM_MASK) == RCD_SHM_ARM_SOLICITED
			? !cq->solicited
			: (arm & RCD_SHM_ARM_MASK) != RCD_SHM_ARM_NEXT)
		return;
	cq->arm_seen = arm;
	cq_event_moderate(lcore, cq);
}

void
rcd_cq_event_due(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	RCD_ON_LCORE(lcore);
	if (cq->due)
		cq_event_moderate(lcore, cq);
}

void
rcd_cq_event_moderate(struct rcd_lcore *lcore, struct rcd_hcq *cq, uint32_t count, uint64_t wait_ns)
{
	RCD_ON_LCORE(lcore);
	cq->event_count = count;
	cq->event_ns = wait_ns;
	rcd_cq_event_due(lcore, cq);
}

void
rcd_cq_event_retry(struct rcd_lcore *lcore, struct rcd_lclient *client)
{
	RCD_ON_LCORE(lcore);
	client->event_round++;
	cq_event_enter(lcore, client);
}

void
rcd_cq_event_forget(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	RCD_ON_LCORE(lcore);
	rcd_wheel_cancel(&lcore->wheel, &cq->timer);
	cq->due = false;
	if (cq->owed)
		cq_event_pay(cq->client, cq);
}

/* The first channel that may have room; the full ones of this round stand behind all others. */
static struct rcd_channel *
cq_event_open_channel(const struct rcd_lclient *client)
{
	struct rcd_channel *channel = TAILQ_FIRST(&client->waiting);

	return channel != NULL && channel->full_round != client->event_round ? channel : NULL;
}

/* @return units of work done */
static uint32_t
cq_event_serve(struct rcd_lclient *client, uint32_t budget)
{
	struct rcd_channel *channel;
	uint32_t done = 0;

	while (done < budget && (channel = cq_event_open_channel(client)) != NULL) {
		struct rcd_hcq *cq = TAILQ_FIRST(&channel->owed);

		done += RCD_WORK_EVENT;
		if (rcd_ctrl_stream_send(channel->sock, &cq->cookie, sizeof(cq->cookie)) == 0) {
			cq_event_pay(client, cq);
			continue;
		}
		channel->full_round = client->event_round;
		TAILQ_REMOVE(&client->waiting, channel, link);
		TAILQ_INSERT_TAIL(&client->waiting, channel, link);
	}
	return done;
}

/* A client leaves the list, or goes to its end. */
static void
cq_event_put_back(struct rcd_lcore *lcore, struct rcd_lclient *client)
{
	client->in_owing = false;
	if (cq_event_open_channel(client) != NULL) {
		cq_event_enter(lcore, client);
		rcd_late_spent(lcore, client);
	} else if (!TAILQ_EMPTY(&client->waiting) && client->retry.at_ns == 0) {
		rcd_wheel_set(&lcore->wheel, &client->retry, lcore->now_ns + RETRY_NS);
	}
}

uint32_t
rcd_cq_event_poll(struct rcd_lcore *lcore)
{
	struct rcd_lclient *last = TAILQ_LAST(&lcore->owing, rcd_lclient_queue);
	struct rcd_lclient *client = NULL;
	uint32_t done = 0;

	RCD_ON_LCORE(lcore);
	while (last != NULL && client != last && done < RCD_WORK_ALL) {
		client = TAILQ_FIRST(&lcore->owing);
		TAILQ_REMOVE(&lcore->owing, client, owe_link);
		done += cq_event_serve(client, RCD_WORK_CLIENT);
		cq_event_put_back(lcore, client);
	}
	if (client != last)
		rcd_late_spent(lcore, NULL);
	lcore->work += done;
	return done;
}
