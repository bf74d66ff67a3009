/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The table of neighbours, for rcd_neigh.c alone: its entries, who is charged for them, and which
 * of them go for others. What becomes of an entry as time goes by is rcd_neigh.c's.
 *
 * Threads: the control thread.
 */
#ifndef RCD_NEIGH_TABLE_H
#define RCD_NEIGH_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_alarm.h"
#include "rcd_hop.h"
#include "rcd_neigh.h"
#include "rcd_quota.h"
#include "rcd_thread.h"
#include "rcd_waiter.h"

#define RCD_NEIGH_CELLS 16384u

/** What is known of one. */
enum rcd_neigh_state {
	RCD_NEIGH_ASKING,
	RCD_NEIGH_KNOWN,
	RCD_NEIGH_FAILED, /**< does not answer: so for a while */
	RCD_NEIGH_STALE,  /**< was known, and there are vectors that have its MAC */
	RCD_NEIGH_COUNT,
};

/** An entry. */
struct rcd_neigh {
	struct rcd_neighs *neighs;
	struct rcd_alarm alarm;      /**< the next question, or look at whether it is needed */
	TAILQ_ENTRY(rcd_neigh) link; /**< of its state, the longest in it or unused first */
	struct rcd_waiters waiters;
	struct rcd_neigh_target target;
	struct rcd_quota_entry *owner; /**< who is charged; NULL: nobody */
	struct rcd_neigh_rest *rest;   /**< whose account that is; NULL: of somebody who is there */
	uint32_t hop;
	uint8_t state;         /**< enum rcd_neigh_state */
	uint8_t asked;         /**< times, without an answer */
	uint64_t asked_for_ns; /**< by a client, last */
	uint64_t confirmed_ns;
};

TAILQ_HEAD(rcd_neigh_list, rcd_neigh);

/** What accounts of a user have left behind. As long as there is something. */
struct rcd_neigh_rest {
	LIST_ENTRY(rcd_neigh_rest) link;
	struct rcd_quota_entry quota;
};

/** The table. */
struct rcd_neighs {
	const struct rcd_neigh_ops *ops;
	void *arg;
	struct rcd_hops *hops;
	uint64_t seed[2];
	uint32_t count;
	uint64_t ticked_ns;
	struct rcd_neigh_list lists[RCD_NEIGH_COUNT];
	LIST_HEAD(, rcd_neigh_rest) rests;
	struct rcd_waiters ready;
	struct rcd_waiters late;          /**< of those that had to go: with the next tick */
	struct rcd_alarms alarms;         /**< apart from others: a tick asks for so many at most */
	uint16_t wanted[RCD_NEIGH_CELLS]; /**< entries by hash; lcores look, atomic */
};

/** Whether vectors have its place. */
static inline bool
rcd_neigh_used(const struct rcd_neighs *neighs, const struct rcd_neigh *neigh)
{
	RCD_ON_CONTROL();
	return rcd_hop_users(neighs->hops, neigh->hop) > 0;
}

/** The entry of an address. @return NULL: there is none */
struct rcd_neigh *
rcd_neigh_find(const struct rcd_neighs *neighs, const struct rcd_hop_key *key);

/**
 * Make an entry that is to be asked for, in the place of another one when there is no room.
 *
 * @param quota  who is charged; NULL: nobody
 * @return NULL: a limit is in the way, or there is no memory
 */
struct rcd_neigh *
rcd_neigh_add(struct rcd_neighs *neighs, const struct rcd_neigh_target *target,
	struct rcd_quota_entry *quota);

/** This account asks for an entry too: it is charged for one that nobody else is. */
void
rcd_neigh_adopt(struct rcd_neigh *neigh, struct rcd_quota_entry *quota);

/**
 * Free an entry. Who waits for it asks again with the next tick, and not at once: those who have
 * each other's go, in a table that is full, would do nothing else.
 */
void
rcd_neigh_drop(struct rcd_neighs *neighs, struct rcd_neigh *neigh);

#endif /* RCD_NEIGH_TABLE_H */
