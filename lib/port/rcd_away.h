/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sockets of a device whose netdev is in another network namespace. A socket stays in the namespace
 * that it was made in, whoever has it: who may go there makes them, and hands them over; the engine
 * itself goes nowhere, and needs no right.
 *
 * They come in fours, in this order: first two of rtnetlink, and one of UDP over IPv4 and one over
 * IPv6, for groups; then, for each queue of the port, two of UDP over IPv4 and IPv6 to receive and
 * two more to send by (drivers/net/udp). Where the machine lacks a version of IP, one of the other
 * stands in its place.
 *
 * Whoever sent them may have kept them, and is believed nothing: each is looked at, and all have to
 * be of one namespace.
 *
 * Threads: the control thread, unless a function says otherwise.
 */
#ifndef RCD_AWAY_H
#define RCD_AWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rcd_lcores.h"

/** Descriptors that are handed over at once. */
#define RCD_AWAY_FDS 4

struct rcd_dev;
struct rcd_netlink;
struct rcd_rtnl;

/** All of a device. */
struct rcd_away {
	uint64_t netns;  /**< the kernel's cookie of their namespace: no other ever has it; not 0 */
	bool guest;      /**< a client there wants the device, and not who administers */
	uid_t uid;       /**< that client's user */
	int rtnl_fds[2]; /**< -1: taken, or not there */
	int groups[2];   /**< likewise; for dev->hold */
	uint32_t queue_count; /**< fours that follow */
	int queues[RCD_LCORES_MAX][RCD_AWAY_FDS];
	struct rcd_rtnl *rtnl;       /**< NULL: not yet */
	struct rcd_netlink *netlink; /**< likewise */
};

/**
 * The network namespace of a socket. Of one that was accepted it is that of who connected, which
 * the kernel says and nobody can claim. Any thread.
 *
 * @return its cookie (SO_NETNS_COOKIE); 0: it is no socket, or the kernel is older than Linux 5.14
 */
uint64_t
rcd_away_netns(int sock);

/**
 * Take the next four.
 *
 * @param away  NULL: they are the first, and it is made
 * @param fds   -1 in place of those that were taken, if 0 is returned; else still the caller's
 * @return 0; -EINVAL: one is not what belongs there, is bound or connected, or of another
 *         namespace; -EOPNOTSUPP: the kernel does not tell namespaces; -ENOSPC: there are enough of
 *         them; -ENOMEM
 */
int
rcd_away_take(struct rcd_away **away, int fds[RCD_AWAY_FDS]);

/** Close all, and forget it. NULL is allowed. */
void
rcd_away_free(struct rcd_away *away);

/**
 * Have the kernel tell of the device's netdev there, by its own sockets.
 *
 * @return 0 or -errno, as the kernel says
 */
int
rcd_away_begin(struct rcd_dev *dev);

/** Sockets of the queues, as net_udp's argument "sockets" has them. @return 0 or -ENOSPC */
int
rcd_away_args(const struct rcd_away *away, uint32_t queues, char *text, size_t len);

/** Those have been duplicated, or are not wanted: close them. */
void
rcd_away_queued(struct rcd_away *away);

#endif /* RCD_AWAY_H */
