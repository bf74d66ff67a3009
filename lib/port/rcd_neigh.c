/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbours: from an address to the place of its MAC. A device that owns its addresses asks the
 * link itself; for a kernel's netdev the kernel is asked.
 *
 * Clients choose whom to ask for, and the network answers what it likes, so the table has a fixed
 * size, each account a part of it, and there is room for the next one always: who goes is first who
 * did not answer, then who is not used. What is told of an address that nobody asked for is not
 * listened to. One that goes while it is used leaves its MAC where it is (rcd_hop.h).
 *
 * Each neighbour has a timer: for the next question, or the next look at whether it is needed.
 */
#include "rcd_neigh.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "rcd_bits.h"
#include "rcd_thread.h"
#include "rcd_wheel.h"

#define NEIGHS_FEW       64          /**< for which others that don't answer have to go */
#define ASK_EVERY_NS     100000000u  /**< while nobody answers */
#define ASK_TIMES        25          /**< then nobody is there */
#define LOOKS_AT_ONCE    64          /**< of a tick: so many questions at most */
#define FAILED_NS        1000000000u /**< before it is asked again */
#define CONFIRM_TIMES    3
#define CONFIRM_EVERY_NS UINT64_C(1000000000)
#define CONFIRM_NS       UINT64_C(30000000000)  /**< then it is asked whether it is still there */
#define STALE_EVERY_NS   UINT64_C(10000000000)  /**< between questions for one that was lost */
#define UNUSED_NS        UINT64_C(120000000000) /**< then it is forgotten */
#define WHEEL_TICK_LOG2  20                     /**< 1 ms */
#define WANTED_CELLS     16384u

enum state {
	STATE_ASKING,
	STATE_KNOWN,
	STATE_FAILED, /**< does not answer: so for a while */
	STATE_STALE,  /**< was known, and there are vectors that have its MAC */
	STATE_COUNT,
};

struct neigh {
	struct rcd_timer timer;
	TAILQ_ENTRY(neigh) link; /**< of its state, the longest in it or unused first */
	struct rcd_waiters waiters;
	struct rcd_neigh_target target;
	struct rcd_quota_entry *owner; /**< who asked first; NULL: nobody, or who has gone */
	uint32_t hop;
	uint8_t state;         /**< enum state */
	uint8_t asked;         /**< times, without an answer */
	uint64_t asked_for_ns; /**< by a client, last */
	uint64_t confirmed_ns;
};

TAILQ_HEAD(neigh_list, neigh);

struct rcd_neighs {
	const struct rcd_neigh_ops *ops;
	void *arg;
	struct rcd_hops *hops;
	uint64_t seed[2];
	uint32_t count;
	uint64_t ticked_ns;
	struct neigh_list lists[STATE_COUNT];
	struct rcd_waiters ready;
	struct rcd_waiters late; /**< of those that had to go: with the next tick */
	struct rcd_wheel wheel;
	uint16_t wanted[WANTED_CELLS]; /**< entries by hash; lcores look, atomic */
};

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
	for (int i = 0; i < STATE_COUNT; i++)
		TAILQ_INIT(&neighs->lists[i]);
	rcd_waiters_init(&neighs->ready);
	rcd_waiters_init(&neighs->late);
	rcd_wheel_init(&neighs->wheel, WHEEL_TICK_LOG2, conf->ops->now_ns());
	return neighs;
}

static uint32_t
neigh_cell(const struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	return rcd_hop_hash(key, neighs->seed) % WANTED_CELLS;
}

bool
rcd_neigh_wanted(const struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	return __atomic_load_n(&neighs->wanted[neigh_cell(neighs, key)], __ATOMIC_RELAXED) != 0;
}

static void
neigh_want(struct rcd_neighs *neighs, const struct rcd_hop_key *key, int by)
{
	uint16_t *cell = &neighs->wanted[neigh_cell(neighs, key)];

	__atomic_store_n(cell, (uint16_t)(*cell + by), __ATOMIC_RELAXED);
}

static void
neigh_arm(struct rcd_neighs *neighs, struct neigh *neigh, uint64_t at_ns)
{
	rcd_wheel_set(&neighs->wheel, &neigh->timer, at_ns);
}

/* To another state, as the last of those that are in it. */
static void
neigh_enter(struct rcd_neighs *neighs, struct neigh *neigh, enum state state)
{
	TAILQ_REMOVE(&neighs->lists[neigh->state], neigh, link);
	neigh->state = (uint8_t)state;
	TAILQ_INSERT_TAIL(&neighs->lists[state], neigh, link);
}

static void
neigh_uncharge(struct rcd_quota_entry *quota)
{
	if (quota != NULL)
		rcd_quota_uncharge(quota, RCD_RESOURCE_NEIGHBOURS, 1);
}

/*
 * Who waits for one that goes asks again with the next tick, and not at once: those who have each
 * other's go, in a table that is full, would do nothing else.
 */
static void
neigh_drop(struct rcd_neighs *neighs, struct neigh *neigh)
{
	rcd_waiters_move(&neighs->late, &neigh->waiters);
	neigh_want(neighs, &neigh->target.key, -1);
	neigh_uncharge(neigh->owner);
	rcd_wheel_cancel(&neighs->wheel, &neigh->timer);
	TAILQ_REMOVE(&neighs->lists[neigh->state], neigh, link);
	rcd_hop_disclaim(neighs->hops, neigh->hop);
	neighs->count--;
	free(neigh);
}

void
rcd_neighs_destroy(struct rcd_neighs *neighs)
{
	struct neigh *neigh;

	RCD_ON_CONTROL();
	if (neighs == NULL)
		return;
	for (int i = 0; i < STATE_COUNT; i++)
		while ((neigh = TAILQ_FIRST(&neighs->lists[i])) != NULL)
			neigh_drop(neighs, neigh);
	free(neighs);
}

/* What an account has asked for, and is not forgotten. */
static uint64_t
neigh_owned(const struct rcd_quota_entry *quota)
{
	return quota->used[RCD_RESOURCE_NEIGHBOURS];
}

void
rcd_neigh_disown(struct rcd_neighs *neighs, struct rcd_quota_entry *quota)
{
	struct neigh *neigh;

	RCD_ON_CONTROL();
	for (int i = 0; i < STATE_COUNT && neigh_owned(quota) > 0; i++)
		TAILQ_FOREACH(neigh, &neighs->lists[i], link)
			if (neigh->owner == quota) {
				neigh->owner = NULL;
				neigh_uncharge(quota);
			}
}

uint32_t
rcd_neigh_count(const struct rcd_neighs *neighs)
{
	RCD_ON_CONTROL();
	return neighs->count;
}

static struct neigh *
neigh_find(const struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	return rcd_hop_entry(neighs->hops, rcd_hop_find(neighs->hops, key));
}

static bool
neigh_used(const struct rcd_neighs *neighs, const struct neigh *neigh)
{
	return rcd_hop_users(neighs->hops, neigh->hop) > 0;
}

/* The first of a state, of an owner; NULL: of anybody. @param used  else one that is not */
static struct neigh *
neigh_oldest(const struct rcd_neighs *neighs, enum state state, const struct rcd_quota_entry *owner,
	bool used)
{
	struct neigh *neigh;

	TAILQ_FOREACH(neigh, &neighs->lists[state], link)
		if ((owner == NULL || neigh->owner == owner) &&
			(used || !neigh_used(neighs, neigh)))
			return neigh;
	return NULL;
}

/* Who goes first for another one: of an owner, or of all. @return NULL: they are all being asked */
static struct neigh *
neigh_first_to_go(const struct rcd_neighs *neighs, const struct rcd_quota_entry *owner)
{
	static const struct {
		enum state state;
		bool used;
	} order[] = {
		{ STATE_FAILED, true },
		{ STATE_KNOWN, false },
		{ STATE_STALE, true },
		{ STATE_KNOWN, true },
	};
	struct neigh *victim = NULL;

	for (size_t i = 0; victim == NULL && i < sizeof(order) / sizeof(order[0]); i++)
		victim = neigh_oldest(neighs, order[i].state, owner, order[i].used);
	return victim;
}

/* Charge for one more, or for one instead of another of its own. @return whether */
static bool
neigh_charge(struct rcd_neighs *neighs, struct rcd_quota_entry *quota)
{
	struct neigh *victim;

	if (quota == NULL)
		return true;
	if (!rcd_quota_fits(quota, RCD_RESOURCE_NEIGHBOURS, 1)) {
		victim = neigh_first_to_go(neighs, quota);
		if (victim != NULL)
			neigh_drop(neighs, victim);
	}
	return rcd_quota_charge(quota, RCD_RESOURCE_NEIGHBOURS, 1) == 0;
}

/* A place for one more. @return false: all are being asked, and the account has many of them */
static bool
neigh_make_room(struct rcd_neighs *neighs, const struct rcd_quota_entry *quota)
{
	struct neigh *victim = NULL;

	if (neighs->count < RCD_NEIGHS_MAX)
		return true;
	/* Who asks for few is not kept out by those who ask for many that don't answer. */
	if (quota == NULL || neigh_owned(quota) <= NEIGHS_FEW)
		victim = TAILQ_FIRST(&neighs->lists[STATE_ASKING]);
	if (victim == NULL || !TAILQ_EMPTY(&neighs->lists[STATE_FAILED]))
		victim = neigh_first_to_go(neighs, NULL);
	if (victim == NULL)
		return false;
	neigh_drop(neighs, victim);
	return true;
}

static struct neigh *
neigh_add(struct rcd_neighs *neighs, const struct rcd_neigh_target *target,
	struct rcd_quota_entry *quota)
{
	struct neigh *neigh;

	if (!neigh_charge(neighs, quota))
		return NULL;
	neigh = neigh_make_room(neighs, quota) ? calloc(1, sizeof(*neigh)) : NULL;
	if (neigh != NULL)
		neigh->hop = rcd_hop_claim(neighs->hops, &target->key, neigh);
	if (neigh == NULL || neigh->hop == RCD_HOP_NONE) {
		neigh_uncharge(quota);
		free(neigh);
		return NULL;
	}
	neigh->target = *target;
	neigh->owner = quota;
	rcd_waiters_init(&neigh->waiters);
	neigh_want(neighs, &target->key, 1);
	TAILQ_INSERT_TAIL(&neighs->lists[STATE_ASKING], neigh, link);
	neighs->count++;
	return neigh;
}

/* Ask, and come back then. The answer may be here when this returns. */
static void
neigh_ask(struct rcd_neighs *neighs, struct neigh *neigh, uint64_t due_ns)
{
	neigh->asked++;
	neigh_arm(neighs, neigh, due_ns);
	neighs->ops->ask(neighs->arg, &neigh->target);
}

/* Begin to ask, or again. A kernel that knows it tells at once. */
static void
neigh_begin(struct rcd_neighs *neighs, struct neigh *neigh, uint64_t now_ns)
{
	neigh_enter(neighs, neigh, STATE_ASKING);
	neigh->asked = 0;
	neigh_ask(neighs, neigh, now_ns + ASK_EVERY_NS);
}

int
rcd_neigh_resolve(struct rcd_neighs *neighs, const struct rcd_neigh_target *target,
	struct rcd_quota_entry *quota, struct rcd_waiter *waiter, uint32_t *hop)
{
	struct neigh *neigh = neigh_find(neighs, &target->key);
	uint64_t now_ns = neighs->ops->now_ns();
	bool fresh = neigh == NULL;

	RCD_ON_CONTROL();
	if (fresh)
		neigh = neigh_add(neighs, target, quota);
	if (neigh == NULL)
		return -ENOMEM;
	neigh->asked_for_ns = now_ns;
	if (fresh || neigh->state == STATE_STALE)
		neigh_begin(neighs, neigh, now_ns);
	switch ((enum state)neigh->state) {
	case STATE_ASKING:
	case STATE_STALE:
	case STATE_COUNT:
		if (waiter != NULL)
			rcd_waiter_wait(&neigh->waiters, waiter);
		return -EAGAIN;
	case STATE_FAILED:
		return -ETIMEDOUT;
	case STATE_KNOWN:
		break;
	}
	neigh_enter(neighs, neigh, STATE_KNOWN);
	*hop = neigh->hop;
	return 0;
}

uint32_t
rcd_neigh_known(const struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	const struct neigh *neigh = neigh_find(neighs, key);

	RCD_ON_CONTROL();
	return neigh != NULL && neigh->state == STATE_KNOWN ? neigh->hop : RCD_HOP_NONE;
}

/* When one that is known is to be looked at: whether it is needed, and whether it is there. */
static uint64_t
neigh_known_due(const struct rcd_neighs *neighs, const struct neigh *neigh, uint64_t now_ns)
{
	uint64_t due_ns = neigh->asked_for_ns + UNUSED_NS;

	/* Used all the while: until it is not. */
	if (due_ns <= now_ns && neigh_used(neighs, neigh))
		due_ns = now_ns + CONFIRM_NS;
	if (neigh->target.ours && neigh->confirmed_ns + CONFIRM_NS < due_ns)
		due_ns = neigh->confirmed_ns + CONFIRM_NS;
	return due_ns;
}

void
rcd_neigh_learn(struct rcd_neighs *neighs, const struct rcd_hop_key *key, const uint8_t *mac)
{
	static const uint8_t none[RCD_MAC_LEN];
	struct neigh *neigh = neigh_find(neighs, key);

	RCD_ON_CONTROL();
	/* Only who was asked for is remembered: strangers can't fill the table. */
	if (neigh == NULL || (mac[0] & 1) || memcmp(mac, none, RCD_MAC_LEN) == 0)
		return;
	rcd_hop_set(neighs->hops, neigh->hop, mac);
	neigh_enter(neighs, neigh, STATE_KNOWN);
	neigh->asked = 0;
	neigh->confirmed_ns = neighs->ops->now_ns();
	neigh_arm(neighs, neigh, neigh_known_due(neighs, neigh, neigh->confirmed_ns));
	rcd_waiters_move(&neighs->ready, &neigh->waiters);
}

void
rcd_neigh_forget(struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	struct neigh *neigh = neigh_find(neighs, key);

	RCD_ON_CONTROL();
	if (neigh == NULL || neigh->state != STATE_KNOWN)
		return;
	/* Its old MAC is kept by those that have it. */
	neigh_enter(neighs, neigh, STATE_STALE);
	neigh_arm(neighs, neigh, neighs->ops->now_ns() + 1);
}

void
rcd_neigh_flush(struct rcd_neighs *neighs, uint32_t dev)
{
	struct neigh *neigh, *next;

	RCD_ON_CONTROL();
	for (int i = 0; i < STATE_COUNT; i++) {
		for (neigh = TAILQ_FIRST(&neighs->lists[i]); neigh != NULL; neigh = next) {
			next = TAILQ_NEXT(neigh, link);
			if (neigh->target.key.dev == dev)
				neigh_drop(neighs, neigh);
		}
	}
}

static void
neigh_fail(struct rcd_neighs *neighs, struct neigh *neigh, uint64_t now_ns)
{
	neigh_enter(neighs, neigh, STATE_FAILED);
	neigh_arm(neighs, neigh, now_ns + FAILED_NS);
	rcd_waiters_move(&neighs->ready, &neigh->waiters);
}

/* One that is known: is it needed, and still there? */
static void
neigh_look_after(struct rcd_neighs *neighs, struct neigh *neigh, uint64_t now_ns)
{
	if (now_ns - neigh->asked_for_ns >= UNUSED_NS && !neigh_used(neighs, neigh))
		neigh_drop(neighs, neigh);
	else if (!neigh->target.ours || now_ns - neigh->confirmed_ns < CONFIRM_NS)
		neigh_arm(neighs, neigh, neigh_known_due(neighs, neigh, now_ns));
	else if (neigh->asked < CONFIRM_TIMES)
		neigh_ask(neighs, neigh, now_ns + CONFIRM_EVERY_NS);
	else
		neigh_fail(neighs, neigh, now_ns);
}

/* One that was known: its vectors may have gone, or it comes back. */
static void
neigh_look_back(struct rcd_neighs *neighs, struct neigh *neigh, uint64_t now_ns)
{
	if (!neigh_used(neighs, neigh) && rcd_waiters_empty(&neigh->waiters))
		neigh_drop(neighs, neigh);
	else if (neigh->target.ours)
		neigh_ask(neighs, neigh, now_ns + STALE_EVERY_NS);
	else
		neigh_arm(neighs, neigh, now_ns + STALE_EVERY_NS);
}

struct tick {
	struct rcd_neighs *neighs;
	uint64_t now_ns;
};

static void
neigh_expired(struct rcd_timer *timer, void *arg)
{
	struct neigh *neigh = RCD_OWNER(timer, struct neigh, timer);
	struct rcd_neighs *neighs = ((struct tick *)arg)->neighs;
	uint64_t now_ns = ((struct tick *)arg)->now_ns;

	switch ((enum state)neigh->state) {
	case STATE_ASKING:
		if (neigh->asked < ASK_TIMES)
			neigh_ask(neighs, neigh, now_ns + ASK_EVERY_NS);
		else
			neigh_fail(neighs, neigh, now_ns);
		break;
	case STATE_KNOWN:
		neigh_look_after(neighs, neigh, now_ns);
		break;
	case STATE_FAILED:
		if (neigh_used(neighs, neigh)) {
			neigh_enter(neighs, neigh, STATE_STALE);
			neigh_arm(neighs, neigh, now_ns + STALE_EVERY_NS);
		} else {
			neigh_drop(neighs, neigh);
		}
		break;
	case STATE_STALE:
		neigh_look_back(neighs, neigh, now_ns);
		break;
	case STATE_COUNT:
		break;
	}
}

void
rcd_neigh_tick(struct rcd_neighs *neighs, uint64_t now_ns)
{
	struct tick tick = { .neighs = neighs, .now_ns = now_ns };
	/* Those of the wheel's tick at hand too: a ms early and not, by rounds, much later. */
	uint64_t due_ns = now_ns + (UINT64_C(1) << WHEEL_TICK_LOG2);

	RCD_ON_CONTROL();
	neighs->ticked_ns = now_ns;
	rcd_waiters_move(&neighs->ready, &neighs->late);
	if (rcd_wheel_due(&neighs->wheel, due_ns))
		rcd_wheel_advance(&neighs->wheel, due_ns, LOOKS_AT_ONCE, neigh_expired, &tick);
}

uint64_t
rcd_neigh_next(const struct rcd_neighs *neighs)
{
	uint64_t next_ns = rcd_waiters_empty(&neighs->late) ? rcd_wheel_next(&neighs->wheel) : 0;

	RCD_ON_CONTROL();
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
