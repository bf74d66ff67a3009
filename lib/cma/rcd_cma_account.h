/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who is charged for connections: a client, and its user when it has ended before them.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CMA_ACCOUNT_H
#define RCD_CMA_ACCOUNT_H

#include <sys/queue.h>

#include "rcd_quota.h"

/** An account. It lasts as long as a connection is charged to it. */
struct rcd_cma_account {
	LIST_ENTRY(rcd_cma_account) link;
	struct rcd_quota_entry *entry; /**< the client's, or rest */
	struct rcd_quota_entry rest;
};

LIST_HEAD(rcd_cma_accounts, rcd_cma_account);

/** The account of a client. @param entry  the client's, not owned. @return NULL: no memory */
struct rcd_cma_account *
rcd_cma_account_open(struct rcd_quota_entry *entry);

/**
 * The client ends; what its user still has is kept until the connections are gone.
 *
 * @param rests  those that are kept
 */
void
rcd_cma_account_close(struct rcd_cma_accounts *rests, struct rcd_cma_account *account);

/** Charge for a connection. @return 0 or -ENOMEM */
int
rcd_cma_account_charge(struct rcd_cma_account *account);

/** A connection is no more. */
void
rcd_cma_account_uncharge(struct rcd_cma_account *account);

/** Forget what clients have left behind. */
void
rcd_cma_accounts_end(struct rcd_cma_accounts *rests);

#endif /* RCD_CMA_ACCOUNT_H */
