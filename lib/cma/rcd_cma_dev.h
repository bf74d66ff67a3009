/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A device as the CM service sees it: what it is at this moment, as the host says. The service
 * keeps numbers of devices and no pointers, and asks again.
 */
#ifndef RCD_CMA_DEV_H
#define RCD_CMA_DEV_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid_table.h"

/** No device: none has this number. */
#define RCD_CMA_NO_DEV 0u

/** A device. What it points to is the host's, and lasts until the service returns. */
struct rcd_cma_dev {
	uint32_t serial; /**< no other device of the host's life has it */
	const char *name;
	uint64_t netns; /**< network namespace of its addresses, as struct rcd_cma_ops has them */
	const struct rcd_gid_table *gids;
	const struct rcd_gid_table *peer_gids; /**< of a wire's other end; NULL: it is no wire */
	uint32_t ifindex;                      /**< of the netdev; 0: none */
	uint32_t path_mtu_bytes;               /**< largest of the five that fits */
	bool answers;                          /**< its addresses are ours, and no kernel's */
	bool up;
	bool sack;   /**< its queue pairs take part in selective acknowledgement */
	uint8_t tos; /**< traffic class of identifiers whose owner gave none */
};

#endif /* RCD_CMA_DEV_H */
