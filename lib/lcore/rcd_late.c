/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an error of a queue pair leaves to do: requests are flushed by later polls, a share of each
 * for one client and for all, clients in turns and their queue pairs in turns. A completion queue
 * that moves has none come meanwhile, since nobody could keep up with them.
 */
#include "rcd_late.h"

#include "rcd_budget.h"
#include "rcd_counter.h"
#include "rcd_lclient.h"
#include "rcd_lcore.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_thread.h"

void
rcd_late_spent(struct rcd_lcore *lcore, struct rcd_lclient *client)
{
	RCD_ON_LCORE(lcore);
	lcore->rest.spent = true;
	if (client != NULL) {
		client->spent_poll = lcore->polls;
		rcd_counter_add(&client->counters, RCD_COUNTER_POLL_BUDGET_CLIENT, 1);
	} else {
		rcd_counter_add(&lcore->counters, RCD_COUNTER_POLL_BUDGET_ALL, 1);
	}
}

void
rcd_late_flush(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	struct rcd_lclient *client = hqp->client;

	RCD_ON_LCORE(lcore);
	if (hqp->flushing)
		return;
	hqp->flushing = true;
	TAILQ_INSERT_TAIL(&client->flushing, hqp, flush_link);
	if (client->in_flushing)
		return;
	client->in_flushing = true;
	TAILQ_INSERT_TAIL(&lcore->flushing, client, flush_link);
}

void
rcd_late_forget(struct rcd_hqp *hqp)
{
	RCD_ON_LCORE(hqp->lcore);
	if (hqp->flushing)
		TAILQ_REMOVE(&hqp->client->flushing, hqp, flush_link);
	hqp->flushing = false;
}

/* @return units of work done, at least 1 */
static uint32_t
late_flush_client(struct rcd_lcore *lcore, struct rcd_lclient *client, uint32_t budget)
{
	struct rcd_hqp *hqp = TAILQ_FIRST(&client->flushing);
	uint32_t done = 0;

	/* A look costs as much as a completion. */
	while (done < budget && hqp != NULL) {
		rcd_late_forget(hqp);
		done += 1 + rcd_qp_flush(hqp->qp, budget - done - 1);
		rcd_lcore_touch(lcore, hqp);
		if (rcd_qp_flushing(hqp->qp)) {
			hqp->flushing = true;
			TAILQ_INSERT_TAIL(&client->flushing, hqp, flush_link);
		}
		hqp = TAILQ_FIRST(&client->flushing);
	}
	return done;
}

uint32_t
rcd_late_poll(struct rcd_lcore *lcore)
{
	struct rcd_lclient *last = TAILQ_LAST(&lcore->flushing, rcd_lclient_queue);
	struct rcd_lclient *client = NULL;
	uint32_t done = 0;

	RCD_ON_LCORE(lcore);
	while (last != NULL && client != last && done < RCD_WORK_ALL) {
		uint32_t left = RCD_WORK_ALL - done;
		uint32_t share;

		client = TAILQ_FIRST(&lcore->flushing);
		share = rcd_late_share(lcore, client);
		TAILQ_REMOVE(&lcore->flushing, client, flush_link);
		if (client->flush_held) {
			TAILQ_INSERT_TAIL(&lcore->flushing, client, flush_link);
			done++;
			continue;
		}
		done += late_flush_client(lcore, client, left < share ? left : share);
		client->in_flushing = !TAILQ_EMPTY(&client->flushing);
		if (!client->in_flushing)
			continue;
		TAILQ_INSERT_TAIL(&lcore->flushing, client, flush_link);
		rcd_late_spent(lcore, client);
	}
	if (client != last)
		rcd_late_spent(lcore, NULL);
	lcore->work += done;
	return done;
}
