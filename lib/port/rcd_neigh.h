/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbours: who has which address on the links of all devices, asked for, kept confirmed as long
 * as they are used, and forgotten. Their MACs are places in the table of next hops (rcd_hop.h).
 *
 * What is not here: how to ask, on a link or a kernel, and which address is the next hop: the
 * host's. No clock is read but by its function, and nobody is called back but the waiters, from
 * rcd_neigh_call().
 *
 * Threads: the control thread.
 */
#ifndef RCD_NEIGH_H
#define RCD_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_hop.h"
#include "rcd_limits.h"
#include "rcd_quota.h"
#include "rcd_waiter.h"

/** Time between two calls of rcd_neigh_tick() at least, so that the link is not flooded. */
#define RCD_NEIGH_TICK_NS UINT64_C(20000000)

/** Whom to ask for, and how. */
struct rcd_neigh_target {
	struct rcd_hop_key key;
	int sgid_index; /**< address of the device that asks */
	bool ours; /**< the link is asked, and again now and then; else a kernel sees to that */
};

/** What the host does for the table. */
struct rcd_neigh_ops {
	/** The clock, nanoseconds, never goes backwards. */
	uint64_t (*now_ns)(void);

	/** Ask once. May call rcd_neigh_learn() and rcd_neigh_forget(). */
	void (*ask)(void *arg, const struct rcd_neigh_target *target);
};

struct rcd_neigh_conf {
	const struct rcd_neigh_ops *ops; /**< outlive the table */
	void *arg;                       /**< of the ops */
	struct rcd_hops *hops;           /**< likewise */
	const uint64_t *seed;            /**< two words that nobody can guess */
};

struct rcd_neighs;

/** Make the table. @return NULL: no memory */
struct rcd_neighs *
rcd_neighs_create(const struct rcd_neigh_conf *conf);

/** Free it. Who still waits is not called any more, and must not be cancelled. NULL is allowed. */
void
rcd_neighs_destroy(struct rcd_neighs *neighs);

/** Neighbours that are known, or asked for. */
uint32_t
rcd_neigh_count(const struct rcd_neighs *neighs);

/**
 * Find a neighbour, or ask for it.
 *
 * @param quota   on whose account it is asked for, until rcd_neigh_leave() is called; NULL: on
 *                nobody's
 * @param waiter  is called when it pays to call this again: the neighbour is known, does not
 *                answer, or had to go for another. Waits only if -EAGAIN is returned. NULL: nobody
 *                waits
 * @param hop     set when 0 is returned: its place, without a user more
 * @return 0; -EAGAIN: asked for; -ETIMEDOUT: nobody answers; -ENOMEM: this account or its user has
 *         asked for too many that don't answer, or others use them all
 */
int
rcd_neigh_resolve(struct rcd_neighs *neighs, const struct rcd_neigh_target *target,
	struct rcd_quota_entry *quota, struct rcd_waiter *waiter, uint32_t *hop);

/** The place of a neighbour that is known. Asks nobody. @return RCD_HOP_NONE: it is not */
uint32_t
rcd_neigh_known(const struct rcd_neighs *neighs, const struct rcd_hop_key *key);

/* rcd_neigh_table.c */

/**
 * Whether somebody may have asked for an address: false when nobody did. For lcores, which need not
 * tell what nobody wants to hear. Any thread.
 */
bool
rcd_neigh_wanted(const struct rcd_neighs *neighs, const struct rcd_hop_key *key);

/* rcd_neigh.c */

/** A neighbour was heard of. Nothing, unless it was asked for. */
void
rcd_neigh_learn(struct rcd_neighs *neighs, const struct rcd_hop_key *key, const uint8_t *mac);

/** The kernel has lost a neighbour. */
void
rcd_neigh_forget(struct rcd_neighs *neighs, const struct rcd_hop_key *key);

/** Forget all neighbours of a device, by its number. */
void
rcd_neigh_flush(struct rcd_neighs *neighs, uint32_t dev);

/* rcd_neigh_table.c */

/** What was asked for on an account is on another one of the same user from now on. */
void
rcd_neigh_hand(struct rcd_neighs *neighs, struct rcd_quota_entry *from, struct rcd_quota_entry *to);

/**
 * An account ends. What was asked for on it is charged to its user until it is forgotten, or
 * somebody else asks for it.
 */
void
rcd_neigh_leave(struct rcd_neighs *neighs, struct rcd_quota_entry *quota);

/** What users are charged for that accounts have left behind, for the audit. */
uint64_t
rcd_neigh_left(const struct rcd_neighs *neighs);

/* rcd_neigh.c */

/** Ask again for what is not answered, and see whether the others are there and needed. */
void
rcd_neigh_tick(struct rcd_neighs *neighs, uint64_t now_ns);

/** When that is to be called next. @return UINT64_MAX: there is nothing to do */
uint64_t
rcd_neigh_next(const struct rcd_neighs *neighs);

/** Call waiters whose time has come. @param most  so many @return whether there are more */
bool
rcd_neigh_call(struct rcd_neighs *neighs, uint32_t most);

#endif /* RCD_NEIGH_H */
