/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Multicast groups that sockets of the engine are in, on a netdev: so that the kernel hears them
 * and delivers what comes to them, where it is the kernel that receives for a device. How many
 * memberships each is of is counted, as a socket is in a group once.
 *
 * Threads: the control thread.
 */
#ifndef RCD_MEMBERSHIPS_H
#define RCD_MEMBERSHIPS_H

#include <stdint.h>

#include "rcd_gid.h"

struct rcd_membership {
	struct rcd_gid group;
	uint32_t members;
};

/** Those of a device. All zero, none. */
struct rcd_memberships {
	uint32_t count, room;
	struct rcd_membership *groups; /**< in no order: the kernel lets a socket be in few */
};

/** No more of it is needed; the sockets are the caller's to close. */
void
rcd_memberships_fini(struct rcd_memberships *memberships);

/**
 * A queue pair is in a group now.
 *
 * @param sockets  one for IPv4, one for IPv6; -1: not there yet, and made when it is needed
 * @param ifindex  of the netdev
 * @return 0; -ENOMEM; the kernel's -errno, as -ENOBUFS for more groups than a socket may be in:
 *         nothing is counted
 */
int
rcd_memberships_add(struct rcd_memberships *memberships, int sockets[2], uint32_t ifindex,
	const struct rcd_gid *group);

/** One that was counted is not any more. */
void
rcd_memberships_del(struct rcd_memberships *memberships, const int sockets[2], uint32_t ifindex,
	const struct rcd_gid *group);

#endif /* RCD_MEMBERSHIPS_H */
