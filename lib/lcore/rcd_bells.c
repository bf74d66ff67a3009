/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Doorbells: the clients of an lcore, and which of them it looks at. A bell says no more than that
 * something may have been posted.
 */
#include "rcd_bells.h"

#include <rte_branch_prediction.h>

#include "rcd_budget.h"
#include "rcd_counter.h"
#include "rcd_late.h"
#include "rcd_lcore.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_turn.h"

#define COLD_PER_POLL 4     /**< idle clients that a poll looks at */
#define COLD_AFTER    20000 /**< polls without a doorbell after which a client is idle */

/* @return units of work done: doorbells, those of no queue pair included */
static uint32_t
bells_answer_word(struct rcd_lcore *lcore, struct rcd_lclient *client, uint32_t budget)
{
	struct rcd_doorbells *bells = &client->doorbells;
	uint32_t done = 0;

	for (; bells->bits != 0 && done < budget; bells->bits &= bells->bits - 1) {
		uint32_t index = bells->word * 64 + (uint32_t)__builtin_ctzll(bells->bits);
		struct rcd_hqp *hqp = index < client->qp_places ? client->qps[index] : NULL;

		done++;
		if (hqp == NULL) {
			rcd_counter_add(&client->counters, RCD_COUNTER_CLIENT_BAD_DOORBELL, 1);
			continue;
		}
		rcd_qp_posted(hqp->qp);
		rcd_lcore_touch(lcore, hqp);
		rcd_turn_begin(&lcore->turns, &hqp->turn);
	}
	return done;
}

static bool
bells_any(const struct rcd_lclient *client)
{
	const struct rcd_doorbells *bells = &client->doorbells;

	return (bells->groups | bells->bits | bells->words_left) != 0 || rcd_db_any(client->shm);
}

uint32_t
rcd_bells_answer(struct rcd_lcore *lcore, struct rcd_lclient *client, uint32_t budget)
{
	struct rcd_doorbells *bells = &client->doorbells;
	bool taken = false;
	uint32_t done = 0;

	RCD_ON_LCORE(lcore);
	for (;;) {
		done += bells_answer_word(lcore, client, budget - done);
		if (done >= budget)
			break;
		if (bells->words_left > 0) {
			bells->words_left--;
			bells->word++;
		} else {
			/* All that rang before come before one that rings again. */
			if (bells->groups == 0 && !taken) {
				bells->groups = rcd_db_take_summary(client->shm);
				taken = true;
			}
			if (bells->groups == 0)
				break;
			bells->word = (uint32_t)__builtin_ctzll(bells->groups) * RCD_DB_PER_BIT;
			bells->words_left = RCD_DB_PER_BIT - 1;
			bells->groups &= bells->groups - 1;
			done++;
		}
		bells->bits = rcd_db_take_word(client->shm, bells->word);
	}
	lcore->work += done;
	return done;
}

static void
bells_make_cold(struct rcd_lcore *lcore, uint32_t place)
{
	struct rcd_lclient *client = lcore->hot[place];

	client->hot = false;
	lcore->hot[place] = lcore->hot[--lcore->hot_count];
	lcore->cold[lcore->cold_count++] = client;
}

static void
bells_make_hot(struct rcd_lcore *lcore, uint32_t place)
{
	struct rcd_lclient *client = lcore->cold[place];

	client->hot = true;
	client->idle_polls = 0;
	lcore->cold[place] = lcore->cold[--lcore->cold_count];
	lcore->hot[lcore->hot_count++] = client;
}

/* @return units of work done */
static uint32_t
bells_answer_share(struct rcd_lcore *lcore, struct rcd_lclient *client, uint32_t left)
{
	uint32_t share = rcd_late_share(lcore, client);
	uint32_t budget = left < share ? left : share;
	uint32_t done = rcd_bells_answer(lcore, client, budget);

	if (unlikely(done >= budget))
		rcd_late_spent(lcore, client);
	return done;
}

/* Begins where the budget of the poll before was used up. */
static uint32_t
bells_look_at_hot(struct rcd_lcore *lcore)
{
	uint32_t i = lcore->hot_next;
	uint32_t done = 0;

	for (uint32_t left = lcore->hot_count; left > 0; left--) {
		struct rcd_lclient *client;

		if (i == 0 || i > lcore->hot_count)
			i = lcore->hot_count;
		client = lcore->hot[--i];
		if (bells_any(client)) {
			client->idle_polls = 0;
			if (unlikely(done >= RCD_WORK_ALL)) {
				rcd_late_spent(lcore, NULL);
				lcore->hot_next = i + 1;
				break;
			}
			done += bells_answer_share(lcore, client, RCD_WORK_ALL - done);
		} else if (++client->idle_polls > COLD_AFTER) {
			bells_make_cold(lcore, i);
		}
	}
	return done;
}

/*
 * Clients that rang lately are looked at by every poll, the others in turn, a few by each: so the
 * cost of a poll does not grow with clients that have nothing to do. One of the others has its
 * share even when those before used up the budget of all: it must not wait for ever.
 */
uint32_t
rcd_bells_look(struct rcd_lcore *lcore)
{
	uint32_t done, most, look;

	RCD_ON_LCORE(lcore);
	done = bells_look_at_hot(lcore);
	most = done < RCD_WORK_ALL - RCD_WORK_CLIENT ? RCD_WORK_ALL : done + RCD_WORK_CLIENT;
	look = lcore->cold_count < COLD_PER_POLL ? lcore->cold_count : COLD_PER_POLL;
	for (uint32_t i = 0; i < look; i++) {
		uint32_t place = lcore->cold_next++;

		if (place >= lcore->cold_count) {
			place = 0;
			lcore->cold_next = 1;
		}
		if (!bells_any(lcore->cold[place]))
			continue;
		if (unlikely(done >= most)) {
			rcd_late_spent(lcore, NULL);
			lcore->cold_next = place;
			break;
		}
		done += bells_answer_share(lcore, lcore->cold[place], most - done);
		if (lcore->hot_count < RCD_HOT_CLIENTS)
			bells_make_hot(lcore, place);
		if (lcore->cold_count == 0)
			break;
	}
	return done;
}

bool
rcd_bells_any(struct rcd_lcore *lcore)
{
	bool any = false;

	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < lcore->hot_count; i++)
		any |= bells_any(lcore->hot[i]);
	for (uint32_t i = 0; i < lcore->cold_count; i++)
		any |= bells_any(lcore->cold[i]);
	return any;
}

void
rcd_bells_add(struct rcd_lcore *lcore, struct rcd_lclient *client)
{
	RCD_ON_LCORE(lcore);
	client->hot = false;
	lcore->cold[lcore->cold_count++] = client;
}

void
rcd_bells_del(struct rcd_lcore *lcore, const struct rcd_lclient *client)
{
	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < lcore->hot_count; i++)
		if (lcore->hot[i] == client)
			bells_make_cold(lcore, i--);
	for (uint32_t i = 0; i < lcore->cold_count; i++)
		if (lcore->cold[i] == client)
			lcore->cold[i--] = lcore->cold[--lcore->cold_count];
}
