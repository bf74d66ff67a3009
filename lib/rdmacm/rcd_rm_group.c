/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Multicast groups that identifiers have joined.
 */
#include "rcd_rm.h"

#include <stdlib.h>

struct rcd_rm_group *
rcd_rm_group_find(struct rcd_rm_id *id, uint32_t handle)
{
	struct rcd_rm_group *group;

	LIST_FOREACH(group, &id->groups, link)
		if (group->handle == handle)
			break;
	return group;
}

int
rcd_rm_group_attach(struct rcd_rm_id *id, struct rcd_rm_group *group)
{
	int err;

	if (id->base.qp == NULL || group->send_only || group->attached)
		return 0;
	err = ibv_attach_mcast(id->base.qp, &group->gid, 0);
	group->attached = err == 0;
	return -err;
}

void
rcd_rm_groups_free(struct rcd_rm_id *id)
{
	struct rcd_rm_group *group;

	while ((group = LIST_FIRST(&id->groups)) != NULL) {
		/* The queue pair goes, or has gone, by itself. */
		LIST_REMOVE(group, link);
		free(group);
	}
}
