/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbours: from an address to the MAC of the next hop. The table belongs to the control thread.
 */
#ifndef RCD_NEIGH_H
#define RCD_NEIGH_H

#include "rcd_engine_priv.h"

struct rcd_neigh_table *
rcd_neigh_create(struct rcd_engine *engine);
void
rcd_neigh_destroy(struct rcd_neigh_table *table);

/**
 * The MAC to send to.
 *
 * @return 0; -EAGAIN: asked for, come again; -ENETUNREACH; -ETIMEDOUT: nobody answers
 */
int
rcd_neigh_resolve(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid, uint8_t *mac);

/** The device's address on the subnet of this one, the narrowest. @return its place; -1: none */
int
rcd_neigh_on_link(const struct rcd_dev *dev, const struct rcd_gid *gid);

/** Whether there is a way, as far as is known without asking anybody on the link. */
bool
rcd_neigh_reachable(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid);

/** A neighbour was heard of. */
void
rcd_neigh_learn(struct rcd_dev *dev, const struct rcd_gid *gid, const uint8_t *mac);

/** A neighbour is not there any more. */
void
rcd_neigh_forget(struct rcd_dev *dev, const struct rcd_gid *gid);

/** Forget all neighbours of a device. */
void
rcd_neigh_flush(struct rcd_dev *dev);

/** Ask again for what is not answered. */
void
rcd_neigh_tick(struct rcd_engine *engine, uint64_t now_ns);

/** The MAC that a multicast address has on Ethernet. */
void
rcd_neigh_multicast_mac(const struct rcd_gid *gid, uint8_t *mac);

#endif /* RCD_NEIGH_H */
