/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Multicast groups of datagrams: which queue pairs get a copy (IBTA Vol. 1, 10.5.2). Joining on
 * the network is not here. A table belongs to one thread at a time.
 */
#ifndef RCD_MCAST_H
#define RCD_MCAST_H

#include "rcd_qp.h"

/** Most queue pairs of a group: what rxe offers. */
#define RCD_MCAST_QPS_MAX 56

struct rcd_mcast_table;

/** A group that a queue pair is attached to, in a list that the caller keeps for it. */
struct rcd_mcast_membership {
	struct rcd_mcast_membership *next;
	struct rcd_gid group;
};

/** Create a table. @param groups most groups, 1..8192 @return NULL when out of memory or range */
struct rcd_mcast_table *
rcd_mcast_table_create(uint32_t groups);

/** Destroy a table. NULL is allowed. */
void
rcd_mcast_table_destroy(struct rcd_mcast_table *table);

/**
 * Attach a queue pair to a group.
 *
 * @return 0, also when it is attached already; -EINVAL when it is not UD or the address is not
 *         multicast; -ENOMEM when the group or the table is full
 */
int
rcd_mcast_attach(struct rcd_mcast_table *table, const struct rcd_gid *group, struct rcd_qp *qp);

/** Whether a queue pair is attached to a group. */
bool
rcd_mcast_has(struct rcd_mcast_table *table, const struct rcd_gid *group, const struct rcd_qp *qp);

/** How many queue pairs are attached to a group. */
uint32_t
rcd_mcast_members(struct rcd_mcast_table *table, const struct rcd_gid *group);

/** Detach a queue pair. @return 0, or -EINVAL when it is not attached */
int
rcd_mcast_detach(struct rcd_mcast_table *table, const struct rcd_gid *group, struct rcd_qp *qp);

/**
 * The groups that there are, one after the other, while the table stays as it is.
 *
 * @param at  0 at first, set for the next call
 * @return false: that were all, and gid is not set
 */
bool
rcd_mcast_next(const struct rcd_mcast_table *table, uint32_t *at, struct rcd_gid *gid);

/**
 * Detach a queue pair from all its groups, before it is destroyed.
 *
 * @param first  the list of those; NULL: there are none, and the table may be NULL as well
 */
void
rcd_mcast_detach_all(
	struct rcd_mcast_table *table, const struct rcd_mcast_membership *first, struct rcd_qp *qp);

/**
 * Feed a packet to every queue pair of its destination group.
 *
 * @param pkt     RCD_QPN_MULTICAST is its destination QP
 * @param admits  whether a queue pair, named by the arg of its struct rcd_qp_init, takes the
 *                packet now; NULL: all do
 * @return how many queue pairs there are
 */
uint32_t
rcd_mcast_rx(struct rcd_mcast_table *table, const struct rcd_pkt *pkt, uint64_t now_ns,
	bool (*admits)(void *arg, const struct rcd_pkt *pkt));

/** Whether the address is multicast: IPv6, or IPv4 in its mapped form. */
bool
rcd_gid_is_multicast(const struct rcd_gid *gid);

#endif /* RCD_MCAST_H */
