/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What this machine and this process have to give to clients, behind what the engine keeps for
 * itself.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CAPACITY_H
#define RCD_CAPACITY_H

#include "rcd_quota.h"

/**
 * Measure. Raises the limit of descriptors to what the process may have. Called when the engine has
 * what it needs; what it takes later (devices, a mapping for a fault) comes from its reserve.
 *
 * @param clients  most connections, by configuration
 * @param lcores   how many there are: devices have descriptors for each
 * @param user     limits of a user, by configuration
 * @param total    set
 */
void
rcd_capacity_measure(
	uint32_t clients, uint32_t lcores, const struct rcd_quota *user, struct rcd_quota *total);

#endif /* RCD_CAPACITY_H */
