/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Quotas: what each client and each user has of what the engine can run out of. A book keeps the
 * accounts of all users. A connection has an entry, and so has a context that connections share;
 * each counts for its user too.
 *
 * It only counts: who takes something charges for it first, and uncharges when it is given back.
 * What an entry still has at its end goes back as a whole.
 *
 * Threads: the control thread.
 */
#ifndef RCD_QUOTA_H
#define RCD_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "rcd_resource.h"

/** A user: all entries with this uid. */
struct rcd_quota_user {
	LIST_ENTRY(rcd_quota_user) link;
	uid_t uid;
	uint32_t clients; /**< entries of connections */
	uint32_t others;  /**< entries of contexts, and of what outlives a client */
	uint64_t used[RCD_RESOURCE_COUNT];
};

LIST_HEAD(rcd_quota_users, rcd_quota_user);

/** The accounts of an engine. */
struct rcd_quota_book {
	struct rcd_quota client; /**< limits of each entry */
	struct rcd_quota user;   /**< limits of each; 0: a share of the total */
	struct rcd_quota total;  /**< of all users together: the engine's own part is not in it */
	uint64_t used[RCD_RESOURCE_COUNT];
	uint64_t refusals; /**< charges that met a limit */
	struct rcd_quota_users users;
};

/** What somebody has. All zero: it has not joined. */
struct rcd_quota_entry {
	struct rcd_quota_book *book;
	struct rcd_quota_user *user;
	bool other; /**< of no connection: counted in the user's `others` */
	uint64_t used[RCD_RESOURCE_COUNT];
};

/** Open a book: limits of entries and users, and totals of which 0 is without end. */
void
rcd_quota_open(struct rcd_quota_book *book, const struct rcd_quota *client,
	const struct rcd_quota *user, const struct rcd_quota *total);

/** A connection of this user begins. @return 0 or -ENOMEM */
int
rcd_quota_join(struct rcd_quota_book *book, struct rcd_quota_entry *entry, uid_t uid);

/**
 * One more entry of a user that has one, with limits of its own: a context's, which may be another
 * user's later (rcd_quota_move()).
 *
 * @param entry  set
 */
void
rcd_quota_join_beside(struct rcd_quota_entry *entry, const struct rcd_quota_entry *of);

/** It ends, and gives back what it still has. An entry that never joined is left alone. */
void
rcd_quota_leave(struct rcd_quota_entry *entry);

/**
 * What an entry has of a resource outlives it: another one of its user has all of that from now on.
 * That one ends by rcd_quota_leave().
 *
 * @param heir  set
 */
void
rcd_quota_bequeath(
	struct rcd_quota_entry *entry, struct rcd_quota_entry *heir, enum rcd_resource resource);

/**
 * Give so much of what is charged to an entry to another of the same user. Limits do not matter:
 * nothing is taken.
 */
void
rcd_quota_hand(struct rcd_quota_entry *from, struct rcd_quota_entry *to, enum rcd_resource resource,
	uint64_t amount);

/**
 * Another user has the entry from now on, with all that it has. What the new user has may be above
 * the limit then; it gets no more.
 *
 * @return 0; -ENOMEM: it stays with the old one
 */
int
rcd_quota_move(struct rcd_quota_entry *entry, uid_t uid);

/**
 * A user has so much more, whatever its limit: it is there already. An entry of its own has it,
 * which ends by rcd_quota_leave().
 *
 * @param heir  set
 * @return 0; -ENOMEM: nobody has it
 */
int
rcd_quota_owe(struct rcd_quota_book *book, struct rcd_quota_entry *heir, uid_t uid,
	enum rcd_resource resource, uint64_t amount);

/** Whether there may be more debts than these: root's part is no part of them. */
bool
rcd_quota_may_owe(const struct rcd_quota_book *book, enum rcd_resource resource, uint64_t owed);

/** By how much all together have more than there is; 0: they have not. */
uint64_t
rcd_quota_over(const struct rcd_quota_book *book, enum rcd_resource resource);

/** Take so much. @return 0; the resource's -errno when a limit is in the way: nothing is taken */
int
rcd_quota_charge(struct rcd_quota_entry *entry, enum rcd_resource resource, uint64_t amount);

/** Whether rcd_quota_charge() would succeed: nobody is refused anything by this. */
bool
rcd_quota_fits(const struct rcd_quota_entry *entry, enum rcd_resource resource, uint64_t amount);

/** Give so much back, which was charged. */
void
rcd_quota_uncharge(struct rcd_quota_entry *entry, enum rcd_resource resource, uint64_t amount);

/** What a user may have at this moment; UINT64_MAX: there is no limit. */
uint64_t
rcd_quota_user_limit(
	const struct rcd_quota_book *book, const struct rcd_quota_user *user, enum rcd_resource of);

/** What an entry may have: the smaller of its own limit and its user's. */
uint64_t
rcd_quota_limit(const struct rcd_quota_entry *entry, enum rcd_resource resource);

#endif /* RCD_QUOTA_H */
