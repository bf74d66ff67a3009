/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Multicast groups of identifiers: there is no subnet manager on RoCE to ask, so that a join is
 * the group's address and a word to the routers, by the kernel for its netdevs, by IGMP and MLD of
 * our own for addresses that the engine owns.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_cma_client.h"
#include "rcd_cma_event.h"
#include "rcd_cma_route.h"
#include "rcd_mcast.h"
#include "rcd_thread.h"

#define MULTICAST_QPN   0xffffffu
#define HOP_LIMIT       64
#define ANSWER_EVERY_NS 1000000000u

/* MLD comes from link-local addresses, whatever else there is (RFC 2710, 3). */
static struct rcd_gid
cma_mcast_speaker(const struct rcd_gid_table *gids, int sgid_index, const struct rcd_gid *group)
{
	int at = rcd_gid_is_ipv4(group) ? -1 : rcd_cma_any_gid(gids, 6, true);

	return gids->entries[at >= 0 ? at : sgid_index].gid;
}

static void
cma_mcast_say(const struct rcd_cmid *id, const struct rcd_cma_group *group, bool leave)
{
	const struct rcd_cma *cma = id->client->cma;
	struct rcd_cma_dev dev;
	struct rcd_gid source;

	if (group->send_only || !rcd_cma_dev(cma, id->dev, &dev) || !dev.answers)
		return;
	source = cma_mcast_speaker(dev.gids, id->sgid_index, &group->gid);
	cma->ops->membership(cma->arg, dev.serial, &source, &group->gid,
		dev.gids->entries[id->sgid_index].vlan_id, leave);
}

/*
 * The kernel tells the routers, as long as the socket is there.
 *
 * @param sock  set; -1: there is no need
 * @return 0 or -errno
 */
static int
cma_mcast_join_by_kernel(const struct rcd_cma_dev *dev, const struct rcd_gid *gid, int *sock)
{
	bool v4 = rcd_gid_is_ipv4(gid);
	struct ip_mreqn mreq = { .imr_ifindex = (int)dev->ifindex };
	struct ipv6_mreq mreq6 = { .ipv6mr_interface = dev->ifindex };
	int err;

	*sock = -1;
	if (dev->answers || dev->ifindex == 0)
		return 0;
	*sock = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (*sock < 0)
		return -errno;
	memcpy(&mreq.imr_multiaddr, gid->raw + 12, 4);
	memcpy(&mreq6.ipv6mr_multiaddr, gid->raw, RCD_GID_LEN);
	err = v4 ? setsockopt(*sock, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq, sizeof(mreq))
		 : setsockopt(*sock, IPPROTO_IPV6, IPV6_JOIN_GROUP, &mreq6, sizeof(mreq6));
	if (err == 0)
		return 0;
	err = -errno;
	close(*sock);
	return err;
}

/* Whether somebody else needs the group on this device. */
static bool
cma_mcast_wanted(const struct rcd_cma *cma, uint32_t dev, const struct rcd_cma_group *but)
{
	const struct rcd_cmid *id;
	const struct rcd_cma_group *group;

	LIST_FOREACH(id, &cma->ids, all_link)
		LIST_FOREACH(group, &id->groups, link)
			if (id->dev == dev && group != but && !group->send_only &&
				rcd_gid_eq(&group->gid, &but->gid))
				return true;
	return false;
}

/* A membership, and the socket that has the kernel join, where there is one. */
static int
cma_mcast_charge_group(struct rcd_quota_entry *quota)
{
	int err = rcd_quota_charge(quota, RCD_RESOURCE_GROUPS, 1);

	if (err != 0)
		return err;
	err = rcd_quota_charge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
	if (err != 0)
		rcd_quota_uncharge(quota, RCD_RESOURCE_GROUPS, 1);
	return err;
}

static void
cma_mcast_uncharge_group(struct rcd_quota_entry *quota)
{
	rcd_quota_uncharge(quota, RCD_RESOURCE_GROUPS, 1);
	rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
}

int
rcd_cmid_join(struct rcd_cmid *id, const struct rcd_ctrl_cm_join_req *req, uint32_t *handle)
{
	struct rcd_gid gid = rcd_cma_gid(&req->addr);
	struct rcd_cma_client *client = id->client;
	struct rcd_cma_dev dev;
	struct rcd_cma_group *group;
	struct rcd_cma_event *event;
	int err;

	RCD_ON_CONTROL();
	if (!rcd_cma_dev(client->cma, id->dev, &dev) || id->qp_type != RCD_CTRL_QP_UD ||
		(id->state != RCD_CMA_BOUND && id->state != RCD_CMA_ADDR_RESOLVED &&
			id->state != RCD_CMA_ROUTE_RESOLVED))
		return -EINVAL;
	if (!rcd_gid_is_multicast(&gid) ||
		rcd_gid_is_ipv4(&gid) != rcd_gid_is_ipv4(&dev.gids->entries[id->sgid_index].gid))
		return -EINVAL;
	if (client->group_count == RCD_CMA_GROUPS_MAX)
		return -ENOMEM;
	err = cma_mcast_charge_group(client->quota);
	if (err != 0)
		return err;
	group = calloc(1, sizeof(*group));
	event = group != NULL ? rcd_cma_event(id, RCD_CMA_EVENT_MULTICAST_JOIN, 0) : NULL;
	if (event == NULL) {
		cma_mcast_uncharge_group(client->quota);
		free(group);
		return -ENOMEM;
	}
	group->handle = id->next_group++;
	group->gid = gid;
	group->send_only = req->send_only != 0;
	group->sock = -1;
	err = group->send_only ? 0 : cma_mcast_join_by_kernel(&dev, &gid, &group->sock);
	if (err != 0) {
		cma_mcast_uncharge_group(client->quota);
		free(event);
		free(group);
		return err;
	}
	client->group_count++;
	LIST_INSERT_HEAD(&id->groups, group, link);
	cma_mcast_say(id, group, false);
	event->rep.group = group->handle;
	event->rep.qpn = MULTICAST_QPN;
	event->rep.qkey = id->qkey != 0 ? id->qkey : RCD_CMA_UDP_QKEY;
	event->rep.av = (struct rcd_ctrl_av){
		.sgid_index = (uint8_t)id->sgid_index,
		.tclass = id->tos,
		.hop_limit = HOP_LIMIT,
	};
	memcpy(event->rep.av.dgid, gid.raw, RCD_GID_LEN);
	rcd_cma_event_post(event);
	*handle = group->handle;
	return 0;
}

static void
cma_mcast_leave(struct rcd_cmid *id, struct rcd_cma_group *group)
{
	if (id->dev != RCD_CMA_NO_DEV && !cma_mcast_wanted(id->client->cma, id->dev, group))
		cma_mcast_say(id, group, true);
	if (group->sock >= 0)
		close(group->sock);
	LIST_REMOVE(group, link);
	id->client->group_count--;
	cma_mcast_uncharge_group(id->client->quota);
	free(group);
}

int
rcd_cmid_leave(struct rcd_cmid *id, uint32_t handle, uint32_t *purged)
{
	struct rcd_cma_group *group;

	RCD_ON_CONTROL();
	LIST_FOREACH(group, &id->groups, link)
		if (group->handle == handle)
			break;
	if (group == NULL)
		return -ENOENT;
	*purged = rcd_cma_event_purge(id, group);
	cma_mcast_leave(id, group);
	return 0;
}

void
rcd_cmid_leave_all(struct rcd_cmid *id)
{
	struct rcd_cma_group *group;

	RCD_ON_CONTROL();
	while ((group = LIST_FIRST(&id->groups)) != NULL)
		cma_mcast_leave(id, group);
}

void
rcd_cma_queried(struct rcd_cma *cma, uint32_t serial)
{
	const struct rcd_cmid *id;
	const struct rcd_cma_group *group;
	uint64_t now_ns = rcd_cma_now_ns(cma);

	RCD_ON_CONTROL();
	/* Who asks faster than that is no router. */
	if (now_ns - cma->reported_ns < ANSWER_EVERY_NS)
		return;
	cma->reported_ns = now_ns;
	LIST_FOREACH(id, &cma->ids, all_link)
		LIST_FOREACH(group, &id->groups, link)
			if (id->dev == serial)
				cma_mcast_say(id, group, false);
}
