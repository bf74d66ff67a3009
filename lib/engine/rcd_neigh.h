/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbours: from an address to the MAC of the next hop. The table belongs to the control thread.
 */
#ifndef RCD_NEIGH_H
#define RCD_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid.h"

struct rcd_dev;
struct rcd_engine;
struct rcd_neigh_table;
struct rcd_next;
struct rcd_session;

#define RCD_NEIGHS_MAX 4096 /**< of all devices and clients */

struct rcd_neigh_table *
rcd_neigh_create(struct rcd_engine *engine);
void
rcd_neigh_destroy(struct rcd_neigh_table *table);

/** Neighbours that are known, or asked for. */
uint32_t
rcd_neigh_count(const struct rcd_engine *engine);

/**
 * The next hop towards an address, and its MAC.
 *
 * @param session  on whose account it is asked for; NULL: the engine's
 * @param next     set, but for the MAC unless 0 is returned
 * @return 0; -EAGAIN: asked for, come again; -ENETUNREACH; -ETIMEDOUT: nobody answers; -ENOMEM: it
 *         has asked for too many that don't answer
 */
int
rcd_neigh_resolve(struct rcd_session *session, struct rcd_dev *dev, int sgid_index,
	const struct rcd_gid *dgid, struct rcd_next *next);

/** The same for a neighbour that rcd_neigh_resolve() has found to be the next hop. */
int
rcd_neigh_look(
	struct rcd_session *session, struct rcd_dev *dev, int sgid_index, struct rcd_next *next);

/** The MAC of an address on the link, if it is known. Asks nobody. @return whether it is */
bool
rcd_neigh_known(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *gid, uint8_t *mac);

/**
 * A queue pair or address handle has this next hop: the neighbour is in use.
 *
 * @param next  its MAC is changed to the one that is known now
 * @return whether it has changed
 */
bool
rcd_neigh_moved(struct rcd_dev *dev, struct rcd_next *next, uint64_t now_ns);

/**
 * Whether somebody may have asked for an address: false when nobody did. For lcores, which need not
 * tell what nobody wants to hear.
 */
bool
rcd_neigh_wanted(const struct rcd_dev *dev, uint16_t vlan_id, const struct rcd_gid *gid);

/** A neighbour was heard of. @return whether somebody may have waited for that */
bool
rcd_neigh_learn(
	struct rcd_dev *dev, uint16_t vlan_id, const struct rcd_gid *gid, const uint8_t *mac);

/** The kernel has lost a neighbour. */
void
rcd_neigh_forget(struct rcd_dev *dev, const struct rcd_gid *gid);

/** Forget all neighbours of a device. */
void
rcd_neigh_flush(struct rcd_dev *dev);

/** A session ends: what it asked for is on nobody's account. */
void
rcd_neigh_disown(struct rcd_session *session);

/** Ask again for what is not answered, and see whether the others are there and needed. */
void
rcd_neigh_tick(struct rcd_engine *engine, uint64_t now_ns);

/* rcd_hop.c */

/** The address on the link that packets to another have to go to. @return 0 or -ENETUNREACH */
int
rcd_hop_find(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid, struct rcd_gid *hop);

/** A device of this engine that has an address, and is reached without a port. @return NULL */
struct rcd_dev *
rcd_hop_local(struct rcd_dev *dev, const struct rcd_gid *dgid);

/** Whether there is a way, as far as is known without asking anybody on the link. */
bool
rcd_neigh_reachable(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid);

/* rcd_follow.c */

/** The MAC of a neighbour has changed: go through all queue pairs and address handles soon. */
void
rcd_follow_all(struct rcd_engine *engine);

/** Go through some of them. */
void
rcd_follow(struct rcd_engine *engine, uint64_t now_ns);

#endif /* RCD_NEIGH_H */
