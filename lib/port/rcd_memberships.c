/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A socket for each family, which receives nothing: it is bound to no port.
 */
#include "rcd_memberships.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "rcd_check.h"
#include "rcd_thread.h"

#define ROOM_FIRST 8

void
rcd_memberships_fini(struct rcd_memberships *memberships)
{
	RCD_ON_CONTROL();
	free(memberships->groups);
	*memberships = (struct rcd_memberships){ 0 };
}

static struct rcd_membership *
memberships_find(const struct rcd_memberships *memberships, const struct rcd_gid *group)
{
	for (uint32_t i = 0; i < memberships->count; i++)
		if (rcd_gid_eq(&memberships->groups[i].group, group))
			return &memberships->groups[i];
	return NULL;
}

static int
memberships_make_room(struct rcd_memberships *memberships)
{
	uint32_t room = memberships->room > 0 ? 2 * memberships->room : ROOM_FIRST;
	struct rcd_membership *groups;

	if (memberships->count < memberships->room)
		return 0;
	groups = realloc(memberships->groups, room * sizeof(*groups));
	if (groups == NULL)
		return -ENOMEM;
	memberships->groups = groups;
	memberships->room = room;
	return 0;
}

static int
memberships_set(int fd, uint32_t ifindex, const struct rcd_gid *group, bool in)
{
	struct ip_mreqn v4 = { .imr_ifindex = (int)ifindex };
	struct ipv6_mreq v6 = { .ipv6mr_interface = ifindex };
	int err;

	if (rcd_gid_is_ipv4(group)) {
		memcpy(&v4.imr_multiaddr, group->raw + 12, sizeof(v4.imr_multiaddr));
		err = setsockopt(fd, IPPROTO_IP, in ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &v4,
			sizeof(v4));
	} else {
		memcpy(&v6.ipv6mr_multiaddr, group->raw, sizeof(v6.ipv6mr_multiaddr));
		err = setsockopt(
			fd, IPPROTO_IPV6, in ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &v6, sizeof(v6));
	}
	return err == 0 ? 0 : -errno;
}

int
rcd_memberships_add(struct rcd_memberships *memberships, int sockets[2], uint32_t ifindex,
	const struct rcd_gid *group)
{
	struct rcd_membership *membership = memberships_find(memberships, group);
	bool v4 = rcd_gid_is_ipv4(group);
	int *fd = &sockets[v4 ? 0 : 1];
	int err;

	RCD_ON_CONTROL();
	if (membership != NULL) {
		membership->members++;
		return 0;
	}
	if (memberships_make_room(memberships) != 0)
		return -ENOMEM;
	if (*fd < 0)
		*fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return -errno;
	err = memberships_set(*fd, ifindex, group, true);
	if (err != 0)
		return err;
	memberships->groups[memberships->count++] =
		(struct rcd_membership){ .group = *group, .members = 1 };
	return 0;
}

void
rcd_memberships_del(struct rcd_memberships *memberships, const int sockets[2], uint32_t ifindex,
	const struct rcd_gid *group)
{
	struct rcd_membership *membership = memberships_find(memberships, group);

	RCD_ON_CONTROL();
	RCD_CHECK(membership != NULL);
	if (--membership->members > 0)
		return;
	/* One of a netdev that went is no more. */
	memberships_set(sockets[rcd_gid_is_ipv4(group) ? 0 : 1], ifindex, group, false);
	*membership = memberships->groups[--memberships->count];
}
