/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * One direction of one queue: packets come in as they are and go out as the settings say.
 */
#ifndef IMPAIR_LANE_H
#define IMPAIR_LANE_H

#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "impair_args.h"

#define IMPAIR_READY 512
#define IMPAIR_HELD  128

/** A packet that waits. */
struct impair_held {
	struct rte_mbuf *mbuf;
	uint64_t due_tsc;
	uint64_t due_count; /**< goes when so many packets were taken, or at its time */
};

/**
 * A lane. The lock is held around everything: a queue's other direction looks in for packets whose
 * time has come, and settings change from elsewhere.
 */
struct impair_lane {
	rte_spinlock_t lock;
	bool active; /**< this direction is impaired */
	struct impair_args args;
	struct rcd_sequence sequence;
	uint64_t taken;
	uint64_t counts[IMPAIR_KINDS];
	uint32_t ready_count;
	uint32_t held_count;
	struct rte_mbuf *ready[IMPAIR_READY];
	struct impair_held held[IMPAIR_HELD];
};

/** A lane with settings; NULL when there is no memory. Free by impair_lane_destroy(). */
struct impair_lane *
impair_lane_create(const struct impair_args *args, bool active, uint32_t queue, int socket_id);

/** Packets in it are freed. @param lane  may be NULL */
void
impair_lane_destroy(struct impair_lane *lane);

/** Free the packets in it. */
void
impair_lane_clear(struct impair_lane *lane);

/** New settings. Begins the random numbers again; packets in it stay. Takes the lock. */
void
impair_lane_set(
	struct impair_lane *lane, const struct impair_args *args, bool active, uint32_t queue);

/** Packets that may be taken now. */
uint32_t
impair_lane_room(const struct impair_lane *lane);

/** Take a packet, of which there must be room for. It is the lane's. */
void
impair_lane_take(struct impair_lane *lane, struct rte_mbuf *mbuf, uint64_t now_tsc);

/** Make those ready whose time has come. */
void
impair_lane_release(struct impair_lane *lane, uint64_t now_tsc);

/** The packets that are ready. @return how many */
uint32_t
impair_lane_ready(struct impair_lane *lane, struct rte_mbuf ***mbufs);

/** The first so many of them are somebody else's now. */
void
impair_lane_done(struct impair_lane *lane, uint32_t count);

#endif /* IMPAIR_LANE_H */
