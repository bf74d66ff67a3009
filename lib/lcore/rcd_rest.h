/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Received packets that one poll of an lcore leaves for the next: a packet is cheap, but what it
 * causes may not be. One may complete a thousand requests, or go to all members of a group.
 */
#ifndef RCD_REST_H
#define RCD_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_limits.h"

struct rte_mbuf;
struct rte_ring;

/** Of an lcore. */
struct rcd_rest {
	bool spent; /**< a budget of this poll was used up */

	/* The end of a burst, each with the number of its device: nothing is received before it. */
	uint32_t limit; /**< units of the poll at which the burst ends */
	uint32_t count;
	bool looped;
	bool handed;
	uint32_t source; /**< where the poll goes on behind it */
	struct rte_mbuf *mbufs[RCD_BURST_MAX];

	/* Packets for groups wait in a line of their own, and others overtake them. */
	struct rte_ring *groups;
	uint32_t groups_limit; /**< units of the poll at which they wait */
	bool groups_turn;      /**< those that waited are delivered */
};

#endif /* RCD_REST_H */
