/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who has a place in the table of neighbours.
 *
 * Clients choose whom to ask for, so the table has a fixed size, and each account and each user a
 * part of it: also of what an account that ended has left behind, until that is forgotten, so that
 * who comes and goes has no more than who stays. Who goes for another one is first what nobody has
 * asked for who is there yet, then who did not answer, then who is not used; one that is used goes
 * for its own user alone, or when it is nobody's.
 */
#include "rcd_neigh_table.h"

#include <stdlib.h>

#include "rcd_thread.h"

#define FEW 64 /**< neighbours of a user, for which others that don't answer have to go */

struct rcd_neigh *
rcd_neigh_find(const struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	RCD_ON_CONTROL();
	return rcd_hop_entry(neighs->hops, rcd_hop_find(neighs->hops, key));
}

static uint32_t
neigh_table_cell(const struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	return rcd_hop_hash(key, neighs->seed) % RCD_NEIGH_CELLS;
}

bool
rcd_neigh_wanted(const struct rcd_neighs *neighs, const struct rcd_hop_key *key)
{
	return __atomic_load_n(&neighs->wanted[neigh_table_cell(neighs, key)], __ATOMIC_RELAXED) !=
		0;
}

static void
neigh_table_want(struct rcd_neighs *neighs, const struct rcd_hop_key *key, int by)
{
	uint16_t *cell = &neighs->wanted[neigh_table_cell(neighs, key)];

	__atomic_store_n(cell, (uint16_t)(*cell + by), __ATOMIC_RELAXED);
}

/* What an account has asked for, and is not forgotten. */
static uint64_t
neigh_table_owned(const struct rcd_quota_entry *quota)
{
	return quota->used[RCD_RESOURCE_NEIGHBOURS];
}

/* Nobody is charged for it any more. */
static void
neigh_table_uncharge(struct rcd_neigh *neigh)
{
	struct rcd_neigh_rest *rest = neigh->rest;

	if (neigh->owner != NULL)
		rcd_quota_uncharge(neigh->owner, RCD_RESOURCE_NEIGHBOURS, 1);
	neigh->owner = NULL;
	neigh->rest = NULL;
	if (rest == NULL || neigh_table_owned(&rest->quota) > 0)
		return;
	rcd_quota_leave(&rest->quota);
	LIST_REMOVE(rest, link);
	free(rest);
}

void
rcd_neigh_drop(struct rcd_neighs *neighs, struct rcd_neigh *neigh)
{
	RCD_ON_CONTROL();
	rcd_waiters_move(&neighs->late, &neigh->waiters);
	neigh_table_want(neighs, &neigh->target.key, -1);
	neigh_table_uncharge(neigh);
	rcd_alarm_cancel(&neighs->alarms, &neigh->alarm);
	TAILQ_REMOVE(&neighs->lists[neigh->state], neigh, link);
	rcd_hop_disclaim(neighs->hops, neigh->hop);
	neighs->count--;
	free(neigh);
}

/* What is charged to an account is another one's from now on, of the same user. */
static void
neigh_table_hand(struct rcd_neighs *neighs, struct rcd_quota_entry *from,
	struct rcd_quota_entry *to, struct rcd_neigh_rest *rest)
{
	uint64_t left = neigh_table_owned(from);
	struct rcd_neigh *neigh;

	for (int i = 0; i < RCD_NEIGH_COUNT && left > 0; i++)
		TAILQ_FOREACH(neigh, &neighs->lists[i], link)
			if (neigh->owner == from) {
				neigh->owner = to;
				neigh->rest = rest;
				left--;
			}
	rcd_quota_hand(from, to, RCD_RESOURCE_NEIGHBOURS, neigh_table_owned(from));
}

void
rcd_neigh_hand(struct rcd_neighs *neighs, struct rcd_quota_entry *from, struct rcd_quota_entry *to)
{
	RCD_ON_CONTROL();
	if (neigh_table_owned(from) > 0)
		neigh_table_hand(neighs, from, to, NULL);
}

/* What accounts of this user have left. @return NULL: no memory */
static struct rcd_neigh_rest *
neigh_table_rest_of(struct rcd_neighs *neighs, const struct rcd_quota_entry *quota)
{
	struct rcd_neigh_rest *rest;

	LIST_FOREACH(rest, &neighs->rests, link)
		if (rest->quota.user == quota->user)
			return rest;
	rest = calloc(1, sizeof(*rest));
	if (rest == NULL)
		return NULL;
	rcd_quota_join_beside(&rest->quota, quota);
	LIST_INSERT_HEAD(&neighs->rests, rest, link);
	return rest;
}

void
rcd_neigh_leave(struct rcd_neighs *neighs, struct rcd_quota_entry *quota)
{
	struct rcd_neigh_rest *rest;
	struct rcd_neigh *neigh;

	RCD_ON_CONTROL();
	if (neigh_table_owned(quota) == 0)
		return;
	rest = neigh_table_rest_of(neighs, quota);
	if (rest != NULL) {
		neigh_table_hand(neighs, quota, &rest->quota, rest);
		return;
	}
	for (int i = 0; i < RCD_NEIGH_COUNT && neigh_table_owned(quota) > 0; i++)
		TAILQ_FOREACH(neigh, &neighs->lists[i], link)
			if (neigh->owner == quota)
				neigh_table_uncharge(neigh);
}

uint64_t
rcd_neigh_left(const struct rcd_neighs *neighs)
{
	const struct rcd_neigh_rest *rest;
	uint64_t sum = 0;

	RCD_ON_CONTROL();
	LIST_FOREACH(rest, &neighs->rests, link)
		sum += neigh_table_owned(&rest->quota);
	return sum;
}

/* Of whom one has to go for another. */
enum scope {
	OF_ENTRY, /**< of the account that asks */
	OF_USER,  /**< of all accounts of its user */
	OF_ALL,
};

/* Which ones go first, and which after them. */
enum kind {
	KIND_REST,   /**< neither used nor waited for, of nobody who is there */
	KIND_UNUSED, /**< not used */
	KIND_USED,   /**< used or not: of the same user, or of nobody */
};

/* Who asks. */
struct asker {
	const struct rcd_quota_entry *quota; /**< NULL: nobody */
	enum scope scope;
	bool few; /**< of its user's are there: those that are being asked have to go for it */
};

static bool
neigh_table_is_of(
	const struct rcd_neigh *neigh, const struct rcd_quota_entry *quota, enum scope scope)
{
	const struct rcd_quota_entry *owner = neigh->owner;

	switch (scope) {
	case OF_ENTRY:
		return owner == quota;
	case OF_USER:
		return owner != NULL && quota != NULL && owner->user == quota->user;
	case OF_ALL:
		break;
	}
	return true;
}

static bool
neigh_table_is_kind(const struct rcd_neighs *neighs, const struct rcd_neigh *neigh,
	const struct rcd_quota_entry *quota, enum kind kind)
{
	bool of_nobody = neigh->owner == NULL || neigh->rest != NULL;

	switch (kind) {
	case KIND_REST:
		return of_nobody && !rcd_neigh_used(neighs, neigh) &&
			rcd_waiters_empty(&neigh->waiters);
	case KIND_UNUSED:
		return !rcd_neigh_used(neighs, neigh);
	case KIND_USED:
		break;
	}
	return neigh->owner == NULL || neigh_table_is_of(neigh, quota, OF_USER);
}

/* Who goes first for another one. @return NULL: they are being asked, or others use them */
static struct rcd_neigh *
neigh_table_first_to_go(const struct rcd_neighs *neighs, const struct asker *asker)
{
	static const struct {
		enum kind kind;
		enum rcd_neigh_state state;
		bool few; /**< only then */
	} order[] = {
		{ KIND_REST, RCD_NEIGH_FAILED, false },
		{ KIND_REST, RCD_NEIGH_STALE, false },
		{ KIND_REST, RCD_NEIGH_KNOWN, false },
		{ KIND_REST, RCD_NEIGH_ASKING, false },
		{ KIND_UNUSED, RCD_NEIGH_FAILED, false },
		{ KIND_UNUSED, RCD_NEIGH_ASKING, true },
		{ KIND_UNUSED, RCD_NEIGH_STALE, false },
		{ KIND_UNUSED, RCD_NEIGH_KNOWN, false },
		{ KIND_USED, RCD_NEIGH_FAILED, false },
		{ KIND_USED, RCD_NEIGH_STALE, false },
		{ KIND_USED, RCD_NEIGH_KNOWN, false },
	};
	struct rcd_neigh *neigh;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (order[i].few && !asker->few)
			continue;
		TAILQ_FOREACH(neigh, &neighs->lists[order[i].state], link)
			if (neigh_table_is_of(neigh, asker->quota, asker->scope) &&
				neigh_table_is_kind(neighs, neigh, asker->quota, order[i].kind))
				return neigh;
	}
	return NULL;
}

/* Charge for one more, or for one instead of another of its own. @return whether */
static bool
neigh_table_charge(struct rcd_neighs *neighs, struct rcd_quota_entry *quota)
{
	struct asker asker = { .quota = quota };
	struct rcd_neigh *victim;

	if (quota == NULL)
		return true;
	/* Its own limit is in the way, or what others of its user have, or have left. */
	for (; asker.scope <= OF_USER; asker.scope++) {
		if (rcd_quota_fits(quota, RCD_RESOURCE_NEIGHBOURS, 1))
			break;
		if (asker.scope == OF_ENTRY &&
			neigh_table_owned(quota) < quota->book->client.neighbours)
			continue;
		/* Nobody else's goes where its own limit would be in the way still. */
		if (asker.scope > OF_ENTRY && quota->book->client.neighbours != 0 &&
			neigh_table_owned(quota) >= quota->book->client.neighbours)
			break;
		victim = neigh_table_first_to_go(neighs, &asker);
		if (victim != NULL)
			rcd_neigh_drop(neighs, victim);
	}
	return rcd_quota_charge(quota, RCD_RESOURCE_NEIGHBOURS, 1) == 0;
}

void
rcd_neigh_adopt(struct rcd_neigh *neigh, struct rcd_quota_entry *quota)
{
	RCD_ON_CONTROL();
	if ((neigh->owner != NULL && neigh->rest == NULL) || quota == NULL ||
		!rcd_quota_fits(quota, RCD_RESOURCE_NEIGHBOURS, 1))
		return;
	neigh_table_uncharge(neigh);
	rcd_quota_charge(quota, RCD_RESOURCE_NEIGHBOURS, 1);
	neigh->owner = quota;
}

/* A place for one more. @return whether there is one */
static bool
neigh_table_make_room(struct rcd_neighs *neighs, const struct rcd_quota_entry *quota)
{
	/* Who asks for few is not kept out by those who ask for many that don't answer. */
	struct asker asker = { .quota = quota,
		.scope = OF_ALL,
		.few = quota == NULL || quota->user->used[RCD_RESOURCE_NEIGHBOURS] <= FEW };
	struct rcd_neigh *victim;

	if (neighs->count < RCD_NEIGHS_MAX)
		return true;
	victim = neigh_table_first_to_go(neighs, &asker);
	if (victim != NULL)
		rcd_neigh_drop(neighs, victim);
	return victim != NULL;
}

struct rcd_neigh *
rcd_neigh_add(struct rcd_neighs *neighs, const struct rcd_neigh_target *target,
	struct rcd_quota_entry *quota)
{
	struct rcd_neigh *neigh;

	RCD_ON_CONTROL();
	if (!neigh_table_charge(neighs, quota))
		return NULL;
	neigh = neigh_table_make_room(neighs, quota) ? calloc(1, sizeof(*neigh)) : NULL;
	if (neigh != NULL)
		neigh->hop = rcd_hop_claim(neighs->hops, &target->key, neigh);
	if (neigh == NULL || neigh->hop == RCD_HOP_NONE) {
		if (quota != NULL)
			rcd_quota_uncharge(quota, RCD_RESOURCE_NEIGHBOURS, 1);
		free(neigh);
		return NULL;
	}
	neigh->neighs = neighs;
	neigh->target = *target;
	neigh->owner = quota;
	rcd_waiters_init(&neigh->waiters);
	neigh_table_want(neighs, &target->key, 1);
	TAILQ_INSERT_TAIL(&neighs->lists[RCD_NEIGH_ASKING], neigh, link);
	neighs->count++;
	return neigh;
}
