/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Joining and leaving multicast groups.
 */
#include "rcd_rm.h"

#include <stdlib.h>
#include <string.h>

static void
rm_mcast_detach(struct rcd_rm_id *id, struct rcd_rm_group *group)
{
	if (group->attached && id->base.qp != NULL)
		ibv_detach_mcast(id->base.qp, &group->gid, 0);
	LIST_REMOVE(group, link);
	free(group);
}

static int
rm_mcast_join(struct rcd_rm_id *id, const struct sockaddr *addr, uint32_t flags, void *context)
{
	struct rcd_ctrl_cm_join_req req = { .id = id->handle,
		.send_only = flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER };
	int err = addr != NULL ? rcd_rm_addr(addr, &req.addr) : -EINVAL;
	struct rcd_rm_group *group = err == 0 ? calloc(1, sizeof(*group)) : NULL;
	struct rcd_ctrl_handle rep;

	if (err != 0)
		return err;
	if (group == NULL)
		return -ENOMEM;
	memcpy(group->gid.raw, req.addr.addr, sizeof(group->gid.raw));
	memcpy(&group->addr, addr,
		addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					   : sizeof(struct sockaddr_in6));
	group->context = context;
	group->send_only = req.send_only;
	/* The event may be taken by another thread before this one knows the handle. */
	pthread_mutex_lock(&id->lock);
	err = rcd_rm_call(id, RCD_CTRL_CM_JOIN, &req, &rep);
	if (err == 0) {
		group->handle = rep.handle;
		LIST_INSERT_HEAD(&id->groups, group, link);
	}
	pthread_mutex_unlock(&id->lock);
	if (err != 0)
		free(group);
	return err;
}

int
rdma_join_multicast_ex(struct rdma_cm_id *base, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	int err;

	if (attr == NULL || attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED ||
		!(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
		!(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) ||
		attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return rcd_rm_ret(-EINVAL);
	err = rm_mcast_join(rcd_rm_id(base), attr->addr, attr->join_flags, context);
	return err != 0 ? rcd_rm_ret(err) : rcd_rm_complete(rcd_rm_id(base));
}

int
rdma_join_multicast(struct rdma_cm_id *base, struct sockaddr *addr, void *context)
{
	int err = rm_mcast_join(rcd_rm_id(base), addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context);

	return err != 0 ? rcd_rm_ret(err) : rcd_rm_complete(rcd_rm_id(base));
}

static bool
rm_mcast_same_addr(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
			((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, 16) == 0;
}

int
rdma_leave_multicast(struct rdma_cm_id *base, struct sockaddr *addr)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_rm_channel *channel = rcd_rm_channel(base->channel);
	struct rcd_ctrl_cm_pair req = { .id = id->handle };
	struct rcd_ctrl_cm_count purged;
	struct rcd_rm_group *group;
	int err = -EADDRNOTAVAIL;

	if (addr == NULL)
		return rcd_rm_ret(-EINVAL);
	pthread_mutex_lock(&channel->lock);
	pthread_mutex_lock(&id->lock);
	LIST_FOREACH(group, &id->groups, link)
		if (rm_mcast_same_addr((const struct sockaddr *)(const void *)&group->addr, addr))
			break;
	if (group != NULL) {
		req.second = group->handle;
		err = rcd_rm_call(id, RCD_CTRL_CM_LEAVE, &req, &purged);
		if (err == 0)
			rcd_rm_channel_drain(channel, purged.count);
		rm_mcast_detach(id, group);
	}
	pthread_mutex_unlock(&id->lock);
	pthread_mutex_unlock(&channel->lock);
	return rcd_rm_ret(err);
}
