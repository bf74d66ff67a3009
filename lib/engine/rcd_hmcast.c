/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who is in which multicast group.
 */
#include "rcd_hmcast.h"

#include <errno.h>
#include <string.h>

#include "rcd_context.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_gid.h"
#include "rcd_groups.h"
#include "rcd_lcore.h"
#include "rcd_limits.h"
#include "rcd_mcast.h"
#include "rcd_quota.h"
#include "rcd_table.h"
#include "rcd_thread.h"

struct mcast {
	struct rcd_hqp *hqp;
	struct rcd_gid group;
	bool attach;
	bool had; /**< it was attached before */
};

static int
hmcast_change_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct mcast *mcast = arg;
	struct rcd_mcast_table *table = lcore->mcast[mcast->hqp->lport->index];
	int err;

	mcast->had = rcd_mcast_has(table, &mcast->group, mcast->hqp->qp);
	if (mcast->attach)
		err = rcd_mcast_attach(table, &mcast->group, mcast->hqp->qp);
	else
		err = rcd_mcast_detach(table, &mcast->group, mcast->hqp->qp);
	if (err == 0 && mcast->had != mcast->attach)
		mcast->hqp->groups += mcast->attach ? 1 : -1u;
	return err;
}

int
rcd_hmcast_change(struct rcd_context *context, const struct rcd_ctrl_mcast_req *req, bool attach)
{
	struct mcast mcast = { .hqp = rcd_table_get(&context->hqps, req->qp), .attach = attach };
	struct rcd_lcore *lcore = context->client.lcore;
	uint32_t index = context->dev->lport.index;
	int err;

	RCD_ON_CONTROL();
	if (mcast.hqp == NULL)
		return -ENOENT;
	memcpy(mcast.group.raw, req->group, RCD_GID_LEN);
	if (lcore->mcast[index] == NULL) {
		struct rcd_mcast_table *table = rcd_mcast_table_create(RCD_MCAST_GROUPS);

		if (table == NULL)
			return -ENOMEM;
		__atomic_store_n(&lcore->mcast[index], table, __ATOMIC_RELEASE);
	}
	if (attach) {
		err = rcd_quota_charge(&context->quota, RCD_RESOURCE_GROUPS, 1);
		if (err != 0)
			return err;
	}
	err = rcd_lcore_call(lcore, hmcast_change_on_lcore, &mcast);
	/* Given back: what was left, and what was not entered, or had been before. */
	if (attach ? err != 0 || mcast.had : err == 0)
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_GROUPS, 1);
	/* It asks all lcores: not for requests that changed nothing. */
	if (err == 0 && mcast.had != attach)
		rcd_groups_follow(context->dev);
	return err;
}
