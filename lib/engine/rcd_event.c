/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion events: when one is due, and how it gets to its channel. Each is a system call, so a
 * poll sends a share for one session and for all. A channel without room has a reader with plenty
 * to read: its events wait in order, and one of them tries again a millisecond later.
 */
#include "rcd_late.h"

#include "rcd_event.h"

/** How long a session waits whose channels are all full: a reader empties one in less. */
#define RETRY_NS 1000000

/* A session has events to send, and a channel that may have room. */
static void
enter(struct rcd_lcore *lcore, struct rcd_session *session)
{
	if (session->in_owing)
		return;
	session->in_owing = true;
	TAILQ_INSERT_TAIL(&lcore->owing, session, owe_link);
}

/* The event of a completion queue is to be sent. */
static void
owe(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	struct rcd_channel *channel = cq->channel;
	struct rcd_session *session = cq->session;

	cq->since_event = 0;
	cq->owed = true;
	TAILQ_INSERT_TAIL(&channel->owed, cq, owed_link);
	if (channel->waiting)
		return;
	channel->waiting = true;
	/* Before the full ones. */
	TAILQ_INSERT_HEAD(&session->waiting, channel, link);
	enter(lcore, session);
}

static void
pay(struct rcd_session *session, struct rcd_hcq *cq)
{
	struct rcd_channel *channel = cq->channel;

	cq->owed = false;
	TAILQ_REMOVE(&channel->owed, cq, owed_link);
	if (!TAILQ_EMPTY(&channel->owed))
		return;
	channel->waiting = false;
	TAILQ_REMOVE(&session->waiting, channel, link);
}

/* An event may go, or waits for more completions and for its time. */
static void
moderate(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	uint64_t end_ns;

	if (!cq->due)
		cq->due_ns = lcore->now_ns;
	end_ns = cq->due_ns + cq->event_ns;
	cq->due = cq->since_event < cq->event_count && lcore->now_ns < end_ns;
	if (!cq->due) {
		rcd_wheel_cancel(&lcore->wheel, &cq->timer);
		owe(lcore, cq);
		return;
	}
	cq->timer.kind = RCD_TIMER_CQ;
	if (cq->timer.at_ns != end_ns)
		rcd_wheel_set(&lcore->wheel, &cq->timer, end_ns);
}

void
rcd_event_check(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	uint32_t arm;

	cq->since_event += rcd_hcq_shown(cq) - cq->published;
	/* One that was not sent yet tells of these as well. */
	if (cq->channel == NULL || cq->owed)
		return;
	if (cq->due) {
		moderate(lcore, cq);
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
	moderate(lcore, cq);
}

void
rcd_event_due(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	if (cq->due)
		moderate(lcore, cq);
}

void
rcd_event_moderate(struct rcd_lcore *lcore, struct rcd_hcq *cq, uint32_t count, uint64_t wait_ns)
{
	cq->event_count = count;
	cq->event_ns = wait_ns;
	rcd_event_due(lcore, cq);
}

void
rcd_event_retry(struct rcd_lcore *lcore, struct rcd_session *session)
{
	session->event_round++;
	enter(lcore, session);
}

void
rcd_event_forget(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	rcd_wheel_cancel(&lcore->wheel, &cq->timer);
	cq->due = false;
	if (cq->owed)
		pay(cq->session, cq);
}

/* The first channel that may have room; the full ones of this round stand behind all others. */
static struct rcd_channel *
open_channel(const struct rcd_session *session)
{
	struct rcd_channel *channel = TAILQ_FIRST(&session->waiting);

	return channel != NULL && channel->full_round != session->event_round ? channel : NULL;
}

/* @return units of work done */
static uint32_t
serve(struct rcd_session *session, uint32_t budget)
{
	struct rcd_channel *channel;
	uint32_t done = 0;

	while (done < budget && (channel = open_channel(session)) != NULL) {
		struct rcd_hcq *cq = TAILQ_FIRST(&channel->owed);

		done += RCD_WORK_EVENT;
		if (rcd_ctrl_stream_send(channel->sock, &cq->cookie, sizeof(cq->cookie)) == 0) {
			pay(session, cq);
			continue;
		}
		channel->full_round = session->event_round;
		TAILQ_REMOVE(&session->waiting, channel, link);
		TAILQ_INSERT_TAIL(&session->waiting, channel, link);
	}
	return done;
}

/* A session leaves the list, or goes to its end. */
static void
put_back(struct rcd_lcore *lcore, struct rcd_session *session)
{
	session->in_owing = false;
	if (open_channel(session) != NULL) {
		enter(lcore, session);
		rcd_late_spent(lcore, session);
	} else if (!TAILQ_EMPTY(&session->waiting) && session->retry.at_ns == 0) {
		rcd_wheel_set(&lcore->wheel, &session->retry, lcore->now_ns + RETRY_NS);
	}
}

uint32_t
rcd_event_poll(struct rcd_lcore *lcore)
{
	struct rcd_session *last = TAILQ_LAST(&lcore->owing, rcd_session_queue);
	struct rcd_session *session = NULL;
	uint32_t done = 0;

	while (last != NULL && session != last && done < RCD_WORK_ALL) {
		session = TAILQ_FIRST(&lcore->owing);
		TAILQ_REMOVE(&lcore->owing, session, owe_link);
		done += serve(session, RCD_WORK_SESSION);
		put_back(lcore, session);
	}
	if (session != last)
		rcd_late_spent(lcore, NULL);
	lcore->work += done;
	return done;
}
