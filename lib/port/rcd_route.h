/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Routes: which address on the link packets to a destination have to go to, and its MAC. The
 * tables of neighbours and next hops are made and looked into here; how a neighbour is asked for is
 * the caller's.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ROUTE_H
#define RCD_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid.h"

struct rcd_dev;
struct rcd_neigh_ops;
struct rcd_ports;
struct rcd_quota_entry;
struct rcd_waiter;

/**
 * Make both tables.
 *
 * @param ops  how neighbours are asked for; their argument is ports
 * @return 0 or -ENOMEM: it is for rcd_route_close()
 */
int
rcd_route_open(struct rcd_ports *ports, const struct rcd_neigh_ops *ops);

/** Free them, when no lcore runs and nobody waits. */
void
rcd_route_close(struct rcd_ports *ports);

/** Which way is wanted, and who wants it. */
struct rcd_route_query {
	int sgid_index;                /**< address of the device that packets come from */
	const struct rcd_gid *dgid;    /**< where they go */
	struct rcd_quota_entry *quota; /**< on whose account it is asked for; NULL: nobody's */
	struct rcd_waiter *waiter;     /**< as rcd_neigh_resolve() */
};

/**
 * The MAC of the next hop towards an address.
 *
 * @param mac  set when 0 is returned
 * @param hop  likewise: whose MAC it is, for who has a user of it counted; RCD_HOP_NONE when it
 *             follows from the address
 * @return as rcd_neigh_resolve(), and -ENETUNREACH
 */
int
rcd_route_resolve(
	struct rcd_dev *dev, const struct rcd_route_query *query, uint8_t *mac, uint32_t *hop);

/** The MAC of an address on the link, if it is known. Asks nobody. @return whether it is */
bool
rcd_route_known(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *gid, uint8_t *mac);

/** Whether there is a way, as far as is known without asking anybody on the link. */
bool
rcd_route_reachable(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid);

#endif /* RCD_ROUTE_H */
