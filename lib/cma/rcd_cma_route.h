/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which device, and which of its addresses, reaches a destination (doc/cm.md).
 *
 * Threads: the control thread.
 */
#ifndef RCD_CMA_ROUTE_H
#define RCD_CMA_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_cma_dev.h"
#include "rcd_ctrl.h"

struct rcd_cma;

/** Whether it is the wildcard of its family, or of none. */
bool
rcd_cma_addr_any(const struct rcd_ctrl_cm_addr *addr);

/** Whether it means this machine without being an address of a device: a wildcard or loopback. */
bool
rcd_cma_addr_itself(const struct rcd_ctrl_cm_addr *addr);

/** An address of a device, of this family and link-local or not. @return its place; -1: none */
int
rcd_cma_any_gid(const struct rcd_gid_table *gids, uint8_t family, bool link_local);

/**
 * The device and address for a destination.
 *
 * @param netns       network namespace that both are of
 * @param src         family 0 or the wildcard: any; else that address is wanted
 * @param dev         set
 * @param sgid_index  set
 * @return 0; -ENETUNREACH: the way there is no device of this engine; -EINVAL
 */
int
rcd_cma_route(const struct rcd_cma *cma, uint64_t netns, const struct rcd_ctrl_cm_addr *src,
	const struct rcd_ctrl_cm_addr *dst, struct rcd_cma_dev *dev, int *sgid_index);

/**
 * The first device of a namespace that is up, and an address of this family that it has.
 *
 * @return whether there is one
 */
bool
rcd_cma_first(const struct rcd_cma *cma, uint64_t netns, uint8_t family, struct rcd_cma_dev *dev,
	int *sgid_index);

/** The device of a namespace that has an address. @return whether there is one */
bool
rcd_cma_owner(const struct rcd_cma *cma, uint64_t netns, const struct rcd_ctrl_cm_addr *addr,
	struct rcd_cma_dev *dev, int *sgid_index);

#endif /* RCD_CMA_ROUTE_H */
