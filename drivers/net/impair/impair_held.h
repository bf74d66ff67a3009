/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets that wait for a time, the next one first: a binary heap. Of two for the same time the
 * one that came first goes first.
 *
 * Threads: one at a time.
 */
#ifndef IMPAIR_HELD_H
#define IMPAIR_HELD_H

#include <rte_mbuf.h>
#include <stdint.h>

#include "impair_args.h"

/** Twice what the queue of a bottleneck may have: as many are on the way behind it. */
#define IMPAIR_HELD (2 * IMPAIR_QUEUE_PACKETS)

/** A packet that waits. */
struct impair_held_packet {
	struct rte_mbuf *mbuf;
	uint64_t due_tsc;
	uint64_t order;
};

/** All that wait. All zero: none. */
struct impair_held {
	uint32_t count; /**< up to IMPAIR_HELD */
	uint64_t order; /**< of the next one that comes */
	struct impair_held_packet packets[IMPAIR_HELD];
};

/** A packet that waits; there must be room. */
void
impair_held_add(struct impair_held *held, struct rte_mbuf *mbuf, uint64_t due_tsc);

/** The next one whose time has come; NULL: none. It is the caller's. */
struct rte_mbuf *
impair_held_next(struct impair_held *held, uint64_t now_tsc);

/** The time of all of them has come, at the latest. */
void
impair_held_hurry(struct impair_held *held, uint64_t now_tsc);

#endif /* IMPAIR_HELD_H */
