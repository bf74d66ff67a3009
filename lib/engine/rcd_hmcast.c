/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who is in which multicast group: lcores know it for packets, and queue pairs have a list for the
 * control thread, which counts for their device what its port is to hear.
 */
#include "rcd_hmcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_check.h"
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

/* @param begun  set to NULL, unless it returns 0 */
static int
hmcast_begin(struct rcd_dev *dev, const struct rcd_gid *group, struct rcd_mcast_membership **begun)
{
	struct rcd_mcast_membership *membership = malloc(sizeof(*membership));
	int err = membership != NULL ? rcd_groups_join(dev, group) : -ENOMEM;

	*begun = NULL;
	if (err != 0) {
		free(membership);
		return err;
	}
	membership->group = *group;
	*begun = membership;
	return 0;
}

static void
hmcast_end(struct rcd_dev *dev, struct rcd_mcast_membership *membership)
{
	rcd_groups_leave(dev, &membership->group);
	free(membership);
}

static void
hmcast_forget(struct rcd_dev *dev, struct rcd_hqp *hqp, const struct rcd_gid *group)
{
	struct rcd_mcast_membership **at = &hqp->memberships;
	struct rcd_mcast_membership *gone;

	while (*at != NULL && !rcd_gid_eq(&(*at)->group, group))
		at = &(*at)->next;
	RCD_CHECK(*at != NULL);
	gone = *at;
	*at = gone->next;
	hmcast_end(dev, gone);
}

void
rcd_hmcast_end(struct rcd_context *context, struct rcd_hqp *hqp)
{
	struct rcd_mcast_membership *membership;

	RCD_ON_CONTROL();
	while ((membership = hqp->memberships) != NULL) {
		hqp->memberships = membership->next;
		hmcast_end(context->dev, membership);
	}
}

static int
hmcast_attach(struct rcd_context *context, struct mcast *mcast)
{
	struct rcd_mcast_membership *membership;
	int err = rcd_quota_charge(&context->quota, RCD_RESOURCE_GROUPS, 1);

	if (err != 0)
		return err;
	err = hmcast_begin(context->dev, &mcast->group, &membership);
	if (err == 0)
		err = rcd_lcore_call(context->client.lcore, hmcast_change_on_lcore, mcast);
	if (err == 0 && !mcast->had) {
		membership->next = mcast->hqp->memberships;
		mcast->hqp->memberships = membership;
		return 0;
	}
	if (membership != NULL)
		hmcast_end(context->dev, membership);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_GROUPS, 1);
	return err;
}

static int
hmcast_detach(struct rcd_context *context, struct mcast *mcast)
{
	int err = rcd_lcore_call(context->client.lcore, hmcast_change_on_lcore, mcast);

	if (err != 0)
		return err;
	hmcast_forget(context->dev, mcast->hqp, &mcast->group);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_GROUPS, 1);
	return 0;
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
	err = attach ? hmcast_attach(context, &mcast) : hmcast_detach(context, &mcast);
	if (err == 0 && mcast.had != attach)
		rcd_groups_follow(context->dev);
	return err;
}
