/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sockets that somebody else made, looked at before they are used.
 */
#include "rcd_away.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_dev.h"
#include "rcd_netlink.h"
#include "rcd_ports.h"
#include "rcd_rtnl.h"
#include "rcd_thread.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

uint64_t
rcd_away_netns(int sock)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(sock, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

static int
away_option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int val = -1;

	return getsockopt(fd, SOL_SOCKET, name, &val, &len) == 0 ? val : -1;
}

/* Whether a socket has no address yet: of UDP no port, of netlink no number. */
static bool
away_is_fresh(int fd, int domain)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_nl netlink;
	} own = { .v6 = { 0 } }, peer = { .v6 = { 0 } };
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
	bool connected = getpeername(fd, &peer.any, &peer_len) == 0;

	if (getsockname(fd, &own.any, &own_len) != 0)
		return false;
	if (domain == AF_NETLINK)
		return own.netlink.nl_pid == 0 && own.netlink.nl_groups == 0;
	return !connected && (domain == AF_INET ? own.v4.sin_port : own.v6.sin6_port) == 0;
}

static bool
away_is_udp(int fd)
{
	int domain = away_option(fd, SO_DOMAIN);

	return (domain == AF_INET || domain == AF_INET6) &&
		away_option(fd, SO_TYPE) == SOCK_DGRAM &&
		away_option(fd, SO_PROTOCOL) == IPPROTO_UDP && away_is_fresh(fd, domain);
}

static bool
away_is_rtnl(int fd)
{
	return away_option(fd, SO_DOMAIN) == AF_NETLINK &&
		away_option(fd, SO_PROTOCOL) == NETLINK_ROUTE && away_is_fresh(fd, AF_NETLINK);
}

/* Whether they are what belongs there, and have the namespace in common. */
static int
away_check(const struct rcd_away *away, const int fds[RCD_AWAY_FDS])
{
	uint64_t netns = away != NULL ? away->netns : rcd_away_netns(fds[0]);

	for (int i = 0; i < RCD_AWAY_FDS; i++)
		if (!(away == NULL && i < 2 ? away_is_rtnl(fds[i]) : away_is_udp(fds[i])))
			return -EINVAL;
	if (netns == 0)
		return -EOPNOTSUPP;
	for (int i = 0; i < RCD_AWAY_FDS; i++)
		if (rcd_away_netns(fds[i]) != netns)
			return -EINVAL;
	return 0;
}

/* The thread that asks the kernel never waits. Drivers say so with each call. */
static int
away_take_first(struct rcd_away **away, const int fds[RCD_AWAY_FDS])
{
	struct rcd_away *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return -ENOMEM;
	for (int i = 0; i < 2; i++) {
		int flags = fcntl(fds[i], F_GETFL);

		if (flags < 0 || fcntl(fds[i], F_SETFL, flags | O_NONBLOCK) != 0) {
			free(made);
			return -EINVAL;
		}
		made->rtnl_fds[i] = fds[i];
		made->groups[i] = fds[2 + i];
	}
	made->netns = rcd_away_netns(fds[0]);
	*away = made;
	return 0;
}

int
rcd_away_take(struct rcd_away **away, int fds[RCD_AWAY_FDS])
{
	int err;

	RCD_ON_CONTROL();
	err = away_check(*away, fds);
	if (err != 0)
		return err;
	if (*away == NULL)
		err = away_take_first(away, fds);
	else if ((*away)->queue_count == RCD_LCORES_MAX)
		err = -ENOSPC;
	else
		memcpy((*away)->queues[(*away)->queue_count++], fds, sizeof((*away)->queues[0]));
	for (int i = 0; err == 0 && i < RCD_AWAY_FDS; i++)
		fds[i] = -1;
	return err;
}

static void
away_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
rcd_away_queued(struct rcd_away *away)
{
	RCD_ON_CONTROL();
	for (; away->queue_count > 0; away->queue_count--)
		for (int i = 0; i < RCD_AWAY_FDS; i++)
			away_close(&away->queues[away->queue_count - 1][i]);
}

void
rcd_away_free(struct rcd_away *away)
{
	RCD_ON_CONTROL();
	if (away == NULL)
		return;
	rcd_netlink_close(away->netlink);
	rcd_rtnl_close(away->rtnl);
	rcd_away_queued(away);
	for (int i = 0; i < 2; i++) {
		away_close(&away->rtnl_fds[i]);
		away_close(&away->groups[i]);
	}
	free(away);
}

int
rcd_away_begin(struct rcd_dev *dev)
{
	struct rcd_away *away = dev->away;

	RCD_ON_CONTROL();
	away->rtnl = rcd_rtnl_open(&away->rtnl_fds[0]);
	if (away->rtnl != NULL)
		away->netlink = rcd_netlink_open(dev->ports, &away->rtnl_fds[1]);
	return away->netlink != NULL ? 0 : -errno;
}

int
rcd_away_args(const struct rcd_away *away, uint32_t queues, char *text, size_t len)
{
	size_t at = 0;

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < queues; i++)
		for (int k = 0; k < RCD_AWAY_FDS; k++) {
			int added = snprintf(text + at, len - at, "%s%d",
				i == 0 && k == 0 ? "" : "+", away->queues[i][k]);

			if (added < 0 || (size_t)added >= len - at)
				return -ENOSPC;
			at += (size_t)added;
		}
	return 0;
}
