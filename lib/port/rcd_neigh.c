/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbours: from an address to the place of its MAC. A device that owns its addresses asks the
 * link itself; for a kernel's netdev the kernel is asked.
 *
 * The network answers what it likes: what is told of an address that nobody asked for is not
 * listened to. One that goes while it is used leaves its MAC where it is (rcd_hop.h).
 *
 * Each neighbour has an alarm: for the next question, or the next look at whether it is needed.
 */
#include "rcd_neigh.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "rcd_alarm.h"
#include "rcd_bits.h"
#include "rcd_neigh_table.h"
#include "rcd_thread.h"

#define ASK_EVERY_NS     100000000u  /**< while nobody answers */
#define ASK_TIMES        25          /**< then nobody is there */
#define LOOKS_AT_ONCE    64          /**< of a tick: so many questions at most */
#define FAILED_NS        1000000000u /**< before it is asked again */
#define CONFIRM_TIMES    3
#define CONFIRM_EVERY_NS UINT64_C(1000000000)
#define CONFIRM_NS       UINT64_C(30000000000)  /**< then it is asked whether it is still there */
#define STALE_EVERY_NS   UINT64_C(10000000000)  /**< between questions for one that was lost */
#define UNUSED_NS        UINT64_C(120000000000) /**< then it is forgotten */

struct rcd_neighs *
rcd_neighs_create(const struct rcd_neigh_conf *conf)
{
	struct rcd_neighs *neighs = calloc(1, sizeof(*neighs));

	RCD_ON_CONTROL();
	if (neighs == NULL)
		return NULL;
	neighs->ops = conf->ops;
	neighs->arg = conf->arg;
	neighs->hops = conf->hops;
	memcpy(neighs->seed, conf->seed, sizeof(neighs->seed));
	for (int i = 0; i < RCD_NEIGH_COUNT; i++)
		TAILQ_INIT(&neighs->lists[i]);
	rcd_waiters_init(&neighs->ready);
	rcd_waiters_init(&neighs->late);
	rcd_alarms_init(&neighs->alarms, conf->ops->now_ns());
	return neighs;
}

static void
neigh_arm(struct rcd_neighs *neighs, struct rcd_neigh *neigh, uint64_t at_ns)
{
	rcd_alarm_set(&neighs->alarms, &neigh->alarm, at_ns);
}

/* To another state, as the last of those that are in it. */
static void
neigh_enter(struct rcd_neighs *neighs, struct rcd_neigh *neigh, enum rcd_neigh_state state)
{
	TAILQ_REMOVE(&neighs->lists[neigh->state], neigh, link);
	neigh->state = (uint8_t)state;
	TAILQ_INSERT_TAIL(&neighs->lists[state], neigh, link);
}

void
rcd_neighs_destroy(struct rcd_neighs *neighs)
{
	struct rcd_neigh *neigh;

	RCD_ON_CONTROL();
	if (neighs == NULL)
		return;
	for (int i = 0; i < RCD_NEIGH_COUNT; i++)
		while ((neigh = TAILQ_FIRST(&neighs->lists[i])) != NULL)
			rcd_neigh_drop(neighs, neigh);
	free(neighs);
}

uint32_t
rcd_neigh_count(const struct rcd_neighs *neighs)
{
	RCD_ON_CONTROL();
	return neighs->count;
}

/* Ask, and come back then. The answer may be here when this returns. */
static void
neigh_ask(struct rcd_neighs *neighs, struct rcd_neigh *neigh, uint64_t due_ns)
{
	neigh->asked++;
	neigh_arm(neighs, neigh, due_ns);
	neighs->ops->ask(neighs->arg, &neigh->target);
}

/* Begin to ask, or again. A kernel that knows it tells at once. */
static void
neigh_begin(struct rcd_neighs *neighs, struct rcd_neigh *neigh, uint64_t now_ns)
{
	neigh_enter(neighs, neigh, RCD_NEIGH_ASKING);
	neigh->asked = 0;
	neigh_ask(neighs, neigh, now_ns + ASK_EVERY_NS);
}

/* When one that is known is to be looked at: whether it is needed, and whether it is there. */
static uint64_t
neigh_known_due(const struct rcd_neighs *neighs, const struct rcd_neigh *neigh, uint64_t now_ns)
{
	uint64_t due_ns = neigh->asked_for_ns + UNUSED_NS;

	/* Used all the while: until it is not. */
	if (due_ns <= now_ns && rcd_neigh_used(neighs, neigh))
		due_ns = now_ns + CONFIRM_NS;
	if (neigh->target.ours && neigh->confirmed_ns + CONFIRM_NS < due_ns)
		due_ns = neigh->confirmed_ns + CONFIRM_NS;
	return due_ns;
}

static void
neigh_fail(struct rcd_neighs *neighs, struct rcd_neigh *neigh, uint64_t now_ns)
{
	neigh_enter(neighs, neigh, RCD_NEIGH_FAILED);
	neigh_arm(neighs, neigh, now_ns + FAILED_NS);
	rcd_waiters_move(&neighs->ready, &neigh->waiters);
}

/* One that is known: is it needed, and still there? */
static void
neigh_look_after(struct rcd_neighs *neighs, struct rcd_neigh *neigh, uint64_t now_ns)
{
	if (now_ns - neigh->asked_for_ns >= UNUSED_NS && !rcd_neigh_used(neighs, neigh))
		rcd_neigh_drop(neighs, neigh);
	else if (!neigh->target.ours || now_ns - neigh->confirmed_ns < CONFIRM_NS)
		neigh_arm(neighs, neigh, neigh_known_due(neighs, neigh, now_ns));
	else if (neigh->asked < CONFIRM_TIMES)
		neigh_ask(neighs, neigh, now_ns + CONFIRM_EVERY_NS);
	else
		neigh_fail(neighs, neigh, now_ns);
}

/* One that was known: its vectors may have gone, or it comes back. */
static void
neigh_look_back(struct rcd_neighs *neighs, struct rcd_neigh *neigh, uint64_t now_ns)
{
	if (!rcd_neigh_used(neighs, neigh) && rcd_waiters_empty(&neigh->waiters))
		rcd_neigh_drop(neighs, neigh);
	else
		neigh_ask(neighs, neigh, now_ns + STALE_EVERY_NS);
}

static void
neigh_due(struct rcd_alarm *alarm, uint64_t now_ns)
{
	struct rcd_neigh *neigh = RCD_OWNER(alarm, struct rcd_neigh, alarm);
	struct rcd_neighs *neighs = neigh->neighs;

	switch ((enum rcd_neigh_state)neigh->state) {
	case RCD_NEIGH_ASKING:
		if (neigh->asked < ASK_TIMES)
			neigh_ask(neighs, neigh, now_ns + ASK_EVERY_NS);
		else
			neigh_fail(neighs, neigh, now_ns);
		break;
	case RCD_NEIGH_KNOWN:
		neigh_look_after(neighs, neigh, now_ns);
		break;
	case RCD_NEIGH_FAILED:
		if (rcd_neigh_used(neighs, neigh)) {
			neigh_enter(neighs, neigh, RCD_NEIGH_STALE);
			neigh_arm(neighs, neigh, now_ns + STALE_EVERY_NS);
		} else {
			rcd_neigh_drop(neighs, neigh);
		}
		break;
	case RCD_NEIGH_STALE:
		neigh_look_back(neighs, neigh, now_ns);
		break;
	case RCD_NEIGH_COUNT:
		break;
	}
}

int
rcd_neigh_resolve(struct rcd_neighs *neighs, const struct rcd_neigh_target *target,
	struct rcd_quota_entry *quota, struct rcd_waiter *waiter, uint32_t *hop)
{
	struct rcd_neigh *neigh = rcd_neigh_find(neighs, &target->key);
	uint64_t now_ns = neighs->ops->now_ns();
	bool fresh = neigh == NULL;

	RCD_ON_CONTROL();
	if (fresh)
		neigh = rcd_neigh_add(neighs, target, quota);
	else
		rcd_neigh_adopt(neigh, quota);
	if (neigh == NULL)
		return -ENOMEM;
	neigh->alarm.fn = neigh_due;
	neigh->asked_for_ns = now_ns;
	if (fresh || neigh->state == RCD_NEIGH_STALE)
		neigh_begin(neighs, neigh, now_ns);
	switch ((enum rcd_neigh_state)neigh->state) {
	case RCD_NEIGH_ASKING:
	case RCD_NEIGH_STALE:
	case RCD_NEIGH_COUNT:
		if (waiter != NULL)
			rcd_waiter_wait(&neigh->waiters, waiter);
		return -EAGAIN;
	case RCD_NEIGH_FAILED:
		return -ETIMEDOUT;
	case RCD_NEIGH_KNOWN:
		break;
	}
	neigh_enter(neighs, neigh, RCD_NEIGH_KNOWN);
	*hop = neigh->hop;
	return 0;
}

uint32_t
rcd_neigh_known(const struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	const struct rcd_neigh *neigh = rcd_neigh_find(neighs, key);

	RCD_ON_CONTROL();
	return neigh != NULL && neigh->state == RCD_NEIGH_KNOWN ? neigh->hop : RCD_HOP_NONE;
}

void
rcd_neigh_learn(struct rcd_neighs *neighs, const struct rcd_hop_key *key, const uint8_t *mac)
{
	static const uint8_t none[RCD_MAC_LEN];
	struct rcd_neigh *neigh = rcd_neigh_find(neighs, key);

	RCD_ON_CONTROL();
	/* Only who was asked for is remembered: strangers can't fill the table. */
	if (neigh == NULL || (mac[0] & 1) || memcmp(mac, none, RCD_MAC_LEN) == 0)
		return;
	rcd_hop_set(neighs->hops, neigh->hop, mac);
	neigh_enter(neighs, neigh, RCD_NEIGH_KNOWN);
	neigh->asked = 0;
	neigh->confirmed_ns = neighs->ops->now_ns();
	neigh_arm(neighs, neigh, neigh_known_due(neighs, neigh, neigh->confirmed_ns));
	rcd_waiters_move(&neighs->ready, &neigh->waiters);
}

void
rcd_neigh_forget(struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	struct rcd_neigh *neigh = rcd_neigh_find(neighs, key);

	RCD_ON_CONTROL();
	if (neigh == NULL || neigh->state != RCD_NEIGH_KNOWN)
		return;
	/* Its old MAC is kept by those that have it. */
	neigh_enter(neighs, neigh, RCD_NEIGH_STALE);
	neigh_arm(neighs, neigh, neighs->ops->now_ns() + 1);
}

void
rcd_neigh_flush(struct rcd_neighs *neighs, uint32_t dev)
{
	struct rcd_neigh *neigh, *next;

	RCD_ON_CONTROL();
	for (int i = 0; i < RCD_NEIGH_COUNT; i++) {
		for (neigh = TAILQ_FIRST(&neighs->lists[i]); neigh != NULL; neigh = next) {
			next = TAILQ_NEXT(neigh, link);
			if (neigh->target.key.dev == dev)
				rcd_neigh_drop(neighs, neigh);
		}
	}
}

void
rcd_neigh_tick(struct rcd_neighs *neighs, uint64_t now_ns)
{
	RCD_ON_CONTROL();
	neighs->ticked_ns = now_ns;
	rcd_waiters_move(&neighs->ready, &neighs->late);
	rcd_alarms_run(&neighs->alarms, now_ns, LOOKS_AT_ONCE);
}

uint64_t
rcd_neigh_next(const struct rcd_neighs *neighs)
{
	uint64_t next_ns = rcd_alarms_next(&neighs->alarms);

	RCD_ON_CONTROL();
	if (!rcd_waiters_empty(&neighs->late))
		next_ns = 0;
	return next_ns > neighs->ticked_ns + RCD_NEIGH_TICK_NS
		? next_ns
		: neighs->ticked_ns + RCD_NEIGH_TICK_NS;
}

bool
rcd_neigh_call(struct rcd_neighs *neighs, uint32_t most)
{
	RCD_ON_CONTROL();
	rcd_waiters_call(&neighs->ready, most);
	return !rcd_waiters_empty(&neighs->ready);
}
