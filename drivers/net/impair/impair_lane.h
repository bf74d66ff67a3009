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
#include "impair_chance.h"
#include "impair_held.h"
#include "impair_neck.h"

#define IMPAIR_READY 512
#define IMPAIR_LATE  128

/** What is counted: how often each kind of enum impair_kind happened, and behind these: */
enum impair_count {
	IMPAIR_COUNT_BURST = IMPAIR_KINDS, /**< bursts that began */
	IMPAIR_COUNT_BURST_DROP,           /**< packets that they took, or were lost between them */
	IMPAIR_COUNT_DELAY_US,             /**< microseconds of all that were delayed, in sum */
	IMPAIR_COUNTS,
};

/** A packet that others are to pass. */
struct impair_late {
	struct rte_mbuf *mbuf;
	uint64_t due_tsc;
	uint64_t due_count; /**< goes when so many packets were taken, or at its time */
};

/**
 * A lane. The lock is held around everything: a queue's other direction looks in for packets whose
 * time has come, and settings change from elsewhere. What it keeps is bounded: who gives it packets
 * waits, as for a NIC's queue that is full, and only a bottleneck drops what it has no room for.
 */
struct impair_lane {
	rte_spinlock_t lock;
	bool active; /**< this direction is impaired */
	struct impair_args args;
	struct rcd_sequence sequence;
	struct impair_burst burst;
	struct impair_neck *neck; /**< of the device, in this direction */
	uint64_t taken;
	uint64_t counts[IMPAIR_COUNTS];
	uint32_t ready_count;
	uint32_t late_count;
	struct rte_mbuf *ready[IMPAIR_READY];
	struct impair_late late[IMPAIR_LATE];
	struct impair_held held; /**< delayed, or in the bottleneck */
};

/**
 * A lane with settings; NULL when there is no memory. Free by impair_lane_destroy().
 *
 * @param neck  stays the caller's, and outlives the lane
 */
struct impair_lane *
impair_lane_create(const struct impair_args *args, bool active, uint32_t queue,
	struct impair_neck *neck, int socket_id);

/** Packets in it are freed. @param lane  may be NULL */
void
impair_lane_destroy(struct impair_lane *lane);

/** Free the packets in it. */
void
impair_lane_clear(struct impair_lane *lane);

/**
 * New settings. Begins the random numbers again; what waits for a time need not any longer. Takes
 * the lock.
 */
void
impair_lane_set(
	struct impair_lane *lane, const struct impair_args *args, bool active, uint32_t queue);

/** Packets that may be taken now. */
uint32_t
impair_lane_room(const struct impair_lane *lane);

/** Whether packets wait for a time, or for others. A hint without the lock. */
bool
impair_lane_waits(const struct impair_lane *lane);

/** Take a packet, of which there must be room for. It is the lane's. */
void
impair_lane_take(struct impair_lane *lane, struct rte_mbuf *mbuf, uint64_t now_tsc);

/**
 * Make those ready whose time has come, as far as there is room.
 *
 * @param room  packets that are still to be taken, whatever is released: theirs is left to them
 */
void
impair_lane_release(struct impair_lane *lane, uint64_t now_tsc, uint32_t room);

/** The packets that are ready. @return how many */
uint32_t
impair_lane_ready(struct impair_lane *lane, struct rte_mbuf ***mbufs);

/** The first so many of them are somebody else's now. */
void
impair_lane_done(struct impair_lane *lane, uint32_t count);

#endif /* IMPAIR_LANE_H */
