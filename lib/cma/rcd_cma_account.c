/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who is charged for connections. One lives longer than its identifier, and than its client: the
 * peer is told of the end, as often as it takes, and then it waits for late packets. What a client
 * leaves behind is its user's until then: who comes and goes gets no more than who stays.
 */
#include "rcd_cma_account.h"

#include <stdlib.h>

#include "rcd_thread.h"

struct rcd_cma_account *
rcd_cma_account_open(struct rcd_quota_entry *entry)
{
	struct rcd_cma_account *account = calloc(1, sizeof(*account));

	RCD_ON_CONTROL();
	if (account != NULL)
		account->entry = entry;
	return account;
}

void
rcd_cma_account_close(struct rcd_cma_accounts *rests, struct rcd_cma_account *account)
{
	RCD_ON_CONTROL();
	if (account->entry->used[RCD_RESOURCE_CM_CONNECTIONS] == 0) {
		free(account);
		return;
	}
	rcd_quota_bequeath(account->entry, &account->rest, RCD_RESOURCE_CM_CONNECTIONS);
	account->entry = &account->rest;
	LIST_INSERT_HEAD(rests, account, link);
}

static void
cma_account_end(struct rcd_cma_account *account)
{
	rcd_quota_leave(&account->rest);
	LIST_REMOVE(account, link);
	free(account);
}

int
rcd_cma_account_charge(struct rcd_cma_account *account)
{
	RCD_ON_CONTROL();
	return rcd_quota_charge(account->entry, RCD_RESOURCE_CM_CONNECTIONS, 1);
}

void
rcd_cma_account_uncharge(struct rcd_cma_account *account)
{
	RCD_ON_CONTROL();
	rcd_quota_uncharge(account->entry, RCD_RESOURCE_CM_CONNECTIONS, 1);
	if (account->entry == &account->rest &&
		account->rest.used[RCD_RESOURCE_CM_CONNECTIONS] == 0)
		cma_account_end(account);
}

void
rcd_cma_accounts_end(struct rcd_cma_accounts *rests)
{
	RCD_ON_CONTROL();
	while (!LIST_EMPTY(rests))
		cma_account_end(LIST_FIRST(rests));
}
