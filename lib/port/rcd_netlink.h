/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the kernel says of the netdevs that it keeps: link, MTU, addresses and neighbours, by
 * rtnetlink (rtnetlink(7)). One socket listens to changes; what is there already is asked for
 * (rcd_rtnl.h).
 *
 * Threads: the control thread.
 */
#ifndef RCD_NETLINK_H
#define RCD_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid.h"

struct rcd_dev;
struct rcd_netlink;
struct rcd_ports;

/**
 * Listen: of devices that have it, it tells (rcd_dev_netlink()).
 *
 * @param fd  as rcd_rtnl_open()
 * @return NULL: the kernel has no rtnetlink, or there is no memory; errno
 */
struct rcd_netlink *
rcd_netlink_open(struct rcd_ports *ports, int *fd);

/** NULL is allowed. */
void
rcd_netlink_close(struct rcd_netlink *netlink);

/**
 * The netdev that a device is to be on. Its configuration may say an address instead, where
 * rcd_dev_by_address(): then it says the netdev that has it from now on.
 *
 * @return its number; 0: there is none
 */
uint32_t
rcd_netlink_find(struct rcd_dev *dev);

/** Take what the kernel has told, and ask for all of it if something was lost; it never waits. */
void
rcd_netlink_ready(struct rcd_netlink *netlink);

/** Whether what was lost could not be asked for: rcd_netlink_ready() is to be called again. */
bool
rcd_netlink_unsure(const struct rcd_netlink *netlink);

/**
 * Read a netdev's link, and once lcores see its device addresses, which are the only ones then, and
 * neighbours.
 *
 * @return 0; -errno: rcd_netlink_unsure() knows, once lcores see it
 */
int
rcd_netlink_sync(struct rcd_dev *dev);

/**
 * Read a netdev's link alone: who wants to hear all groups does not have that told.
 *
 * @return 0 or -errno
 */
int
rcd_netlink_sync_link(struct rcd_dev *dev);

/** Make the kernel look for a neighbour; one that it knows is learned at once. */
void
rcd_netlink_probe(struct rcd_dev *dev, const struct rcd_gid *gid);

#endif /* RCD_NETLINK_H */
