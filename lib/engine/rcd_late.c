/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an error of a queue pair leaves to do: requests are flushed by later polls, a share of each
 * for one session and for all, sessions in turns and their queue pairs in turns. A completion queue
 * that moves has none come meanwhile, since nobody could keep up with them.
 */
#include "rcd_late.h"

void
rcd_late_spent(struct rcd_lcore *lcore, struct rcd_session *session)
{
	lcore->rest.spent = true;
	if (session != NULL) {
		session->spent_poll = lcore->polls;
		rcd_counter_add(&session->counters, RCD_COUNTER_POLL_BUDGET_SESSION, 1);
	} else {
		rcd_counter_add(&lcore->counters, RCD_COUNTER_POLL_BUDGET_ALL, 1);
	}
}

void
rcd_late_flush(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	struct rcd_session *session = hqp->session;

	if (hqp->flushing)
		return;
	hqp->flushing = true;
	TAILQ_INSERT_TAIL(&session->flushing, hqp, flush_link);
	if (session->in_flushing)
		return;
	session->in_flushing = true;
	TAILQ_INSERT_TAIL(&lcore->flushing, session, flush_link);
}

void
rcd_late_forget(struct rcd_hqp *hqp)
{
	if (hqp->flushing)
		TAILQ_REMOVE(&hqp->session->flushing, hqp, flush_link);
	hqp->flushing = false;
}

/* @return units of work done, at least 1 */
static uint32_t
flush_session(struct rcd_lcore *lcore, struct rcd_session *session, uint32_t budget)
{
	struct rcd_hqp *hqp = TAILQ_FIRST(&session->flushing);
	uint32_t done = 0;

	/* A look costs as much as a completion. */
	while (done < budget && hqp != NULL) {
		rcd_late_forget(hqp);
		done += 1 + rcd_qp_flush(hqp->qp, budget - done - 1);
		rcd_lcore_touch(lcore, hqp);
		if (rcd_qp_flushing(hqp->qp)) {
			hqp->flushing = true;
			TAILQ_INSERT_TAIL(&session->flushing, hqp, flush_link);
		}
		hqp = TAILQ_FIRST(&session->flushing);
	}
	return done;
}

uint32_t
rcd_late_poll(struct rcd_lcore *lcore)
{
	struct rcd_session *last = TAILQ_LAST(&lcore->flushing, rcd_session_queue);
	struct rcd_session *session = NULL;
	uint32_t done = 0;

	while (last != NULL && session != last && done < RCD_WORK_ALL) {
		uint32_t left = RCD_WORK_ALL - done;
		uint32_t share;

		session = TAILQ_FIRST(&lcore->flushing);
		share = rcd_late_share(lcore, session);
		TAILQ_REMOVE(&lcore->flushing, session, flush_link);
		if (session->flush_held) {
			TAILQ_INSERT_TAIL(&lcore->flushing, session, flush_link);
			done++;
			continue;
		}
		done += flush_session(lcore, session, left < share ? left : share);
		session->in_flushing = !TAILQ_EMPTY(&session->flushing);
		if (!session->in_flushing)
			continue;
		TAILQ_INSERT_TAIL(&lcore->flushing, session, flush_link);
		rcd_late_spent(lcore, session);
	}
	if (session != last)
		rcd_late_spent(lcore, NULL);
	lcore->work += done;
	return done;
}
