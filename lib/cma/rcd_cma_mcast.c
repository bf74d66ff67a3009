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
#include "rcd_limits.h"
#include "rcd_mcast.h"
#include "rcd_thread.h"

#define MULTICAST_QPN   0xffffffu
#define ANSWER_EVERY_NS 1000000000u
#define HASH_PRIME      UINT64_C(0x9e3779b97f4a7c15)

/*
 * Whose address the routers are told from: that of the first who joined, if it is still there. MLD
 * comes from link-local addresses, whatever else there is (RFC 2710, 3).
 *
 * @return its place; -1: the device has none for such a group
 */
static int
cma_mcast_speaker(const struct rcd_gid_table *gids, const struct rcd_cma_member *member)
{
	bool v4 = rcd_gid_is_ipv4(&member->gid);
	int found = v4 ? -1 : rcd_cma_any_gid(gids, 6, true);

	for (int i = 0; found < 0 && i < (int)gids->count; i++) {
		/* From there on and around. */
		int at = (member->sgid_index + i) % (int)gids->count;

		if (gids->entries[at].used && gids->entries[at].vlan_id == member->vlan_id &&
			rcd_gid_is_ipv4(&gids->entries[at].gid) == v4)
			found = at;
	}
	return found;
}

static void
cma_mcast_say(const struct rcd_cma *cma, const struct rcd_cma_member *member, bool leave)
{
	struct rcd_cma_dev dev;
	int speaker;

	if (!rcd_cma_dev(cma, member->dev, &dev) || !dev.answers)
		return;
	speaker = cma_mcast_speaker(dev.gids, member);
	if (speaker >= 0)
		cma->ops->membership(cma->arg, dev.serial, &dev.gids->entries[speaker].gid,
			&member->gid, member->vlan_id, leave);
}

/* Whoever joins groups does not know which are found together. */
static uint32_t
cma_mcast_bucket(
	const struct rcd_cma *cma, uint32_t dev, uint16_t vlan_id, const struct rcd_gid *gid)
{
	uint64_t hash = cma->secret;

	for (int i = 0; i < RCD_GID_LEN; i++)
		hash = (hash ^ gid->raw[i]) * HASH_PRIME;
	hash = (hash ^ dev) * HASH_PRIME;
	hash = (hash ^ vlan_id) * HASH_PRIME;
	return (uint32_t)((hash ^ hash >> 32) % RCD_CMA_MEMBER_BUCKETS);
}

/* One more that has joined. @return NULL: no memory */
static struct rcd_cma_member *
cma_mcast_member_get(struct rcd_cma *cma, const struct rcd_cma_dev *dev, int sgid_index,
	const struct rcd_gid *gid)
{
	uint16_t vlan_id = dev->gids->entries[sgid_index].vlan_id;
	uint32_t bucket = cma_mcast_bucket(cma, dev->serial, vlan_id, gid);
	struct rcd_cma_member *member;

	LIST_FOREACH(member, &cma->members[bucket], link)
		if (member->dev == dev->serial && member->vlan_id == vlan_id &&
			rcd_gid_eq(&member->gid, gid))
			break;
	if (member == NULL) {
		member = calloc(1, sizeof(*member));
		if (member == NULL)
			return NULL;
		member->gid = *gid;
		member->dev = dev->serial;
		member->vlan_id = vlan_id;
		member->sgid_index = sgid_index;
		LIST_INSERT_HEAD(&cma->members[bucket], member, link);
	}
	member->users++;
	return member;
}

/* One that leaves: the last tells the routers. NULL: it was none. */
static void
cma_mcast_member_put(const struct rcd_cma *cma, struct rcd_cma_member *member)
{
	if (member == NULL || --member->users > 0)
		return;
	cma_mcast_say(cma, member, true);
	LIST_REMOVE(member, link);
	free(member);
}

/*
 * The kernel tells the routers, as long as the socket is there. Of another network namespace there
 * are no sockets to be had: those of the device join when a queue pair is attached (rcd_groups.h).
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
	if (dev->answers || dev->ifindex == 0 || dev->netns != 0)
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
	*sock = -1;
	return err;
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

/* @return 0 or -errno */
static int
cma_mcast_group_create(struct rcd_cmid *id, const struct rcd_cma_dev *dev,
	const struct rcd_gid *gid, bool send_only, struct rcd_cma_group **made)
{
	struct rcd_cma_group *group = calloc(1, sizeof(*group));
	int err = 0;

	if (group == NULL)
		return -ENOMEM;
	group->sock = -1;
	if (!send_only)
		err = cma_mcast_join_by_kernel(dev, gid, &group->sock);
	if (err == 0 && !send_only) {
		group->member = cma_mcast_member_get(id->client->cma, dev, id->sgid_index, gid);
		err = group->member != NULL ? 0 : -ENOMEM;
	}
	if (err != 0) {
		if (group->sock >= 0)
			close(group->sock);
		free(group);
		return err;
	}
	group->handle = id->next_group++;
	LIST_INSERT_HEAD(&id->groups, group, link);
	id->client->group_count++;
	*made = group;
	return 0;
}

static void
cma_mcast_leave(struct rcd_cmid *id, struct rcd_cma_group *group)
{
	cma_mcast_member_put(id->client->cma, group->member);
	if (group->sock >= 0)
		close(group->sock);
	LIST_REMOVE(group, link);
	id->client->group_count--;
	cma_mcast_uncharge_group(id->client->quota);
	free(group);
}

int
rcd_cmid_join(struct rcd_cmid *id, const struct rcd_ctrl_cm_join_req *req, uint32_t *handle)
{
	struct rcd_gid gid = rcd_cma_gid(&req->addr);
	struct rcd_cma_client *client = id->client;
	struct rcd_cma_dev dev;
	struct rcd_cma_group *group = NULL;
	struct rcd_cma_event *event;
	int err;

	RCD_ON_CONTROL();
	if (!rcd_cma_dev(client->cma, id->dev, &dev) || id->qp_type != RCD_QP_UD ||
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
	event = rcd_cma_event(id, RCD_CMA_EVENT_MULTICAST_JOIN, 0);
	err = event != NULL ? cma_mcast_group_create(id, &dev, &gid, req->send_only != 0, &group)
			    : -ENOMEM;
	if (err != 0) {
		cma_mcast_uncharge_group(client->quota);
		if (event != NULL)
			rcd_cma_event_free(event);
		return err;
	}
	if (group->member != NULL)
		cma_mcast_say(client->cma, group->member, false);
	event->rep.group = group->handle;
	event->rep.qpn = MULTICAST_QPN;
	event->rep.qkey = id->qkey != 0 ? id->qkey : RCD_CMA_UDP_QKEY;
	event->rep.av = (struct rcd_ctrl_av){
		.sgid_index = (uint8_t)id->sgid_index,
		.tclass = rcd_cmid_tclass(id, &dev),
		.hop_limit = RCD_HOP_LIMIT,
	};
	memcpy(event->rep.av.dgid, gid.raw, RCD_GID_LEN);
	rcd_cma_event_post(event);
	*handle = group->handle;
	return 0;
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
	struct rcd_cma_member *member;
	uint64_t now_ns = rcd_cma_now_ns(cma);
	uint32_t place = serial % RCD_CMA_QUERIES;

	RCD_ON_CONTROL();
	/* Who asks faster than that is no router. */
	if (cma->queries[place].serial == serial &&
		now_ns - cma->queries[place].at_ns < ANSWER_EVERY_NS)
		return;
	cma->queries[place].serial = serial;
	cma->queries[place].at_ns = now_ns;
	for (uint32_t i = 0; i < RCD_CMA_MEMBER_BUCKETS; i++) {
		LIST_FOREACH(member, &cma->members[i], link) {
			if (member->dev != serial || now_ns - member->reported_ns < ANSWER_EVERY_NS)
				continue;
			member->reported_ns = now_ns;
			cma_mcast_say(cma, member, false);
		}
	}
}
