/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A bottleneck: a port of a switch that sends at some rate, with a queue before it. It works out
 * when each packet will have left; who asks keeps the packet until then. So it needs neither a
 * thread nor a timer, and what nobody looked after for a while leaves as if somebody had.
 *
 * One is shared by the queues of a device, for one direction. Time is a parameter.
 *
 * Threads: any, by its lock.
 */
#ifndef IMPAIR_NECK_H
#define IMPAIR_NECK_H

#include <rte_spinlock.h>
#include <stdbool.h>
#include <stdint.h>

#include "impair_args.h"

/** A packet in the queue. */
struct impair_neck_packet {
	uint64_t leaves_tsc;
	uint32_t len_bytes;
};

/** What happened; impair_ops.c has a name for each. */
struct impair_neck_counts {
	uint64_t packets;    /**< that were taken */
	uint64_t drops;      /**< that found the queue full */
	uint64_t marks;      /**< counted by who marks */
	uint64_t peak_bytes; /**< the longest queue */
	uint64_t wait_us;    /**< time of all in the queue, and on the way out of it, in sum */
};

/** A bottleneck. */
struct impair_neck {
	rte_spinlock_t lock;
	uint64_t rate;         /**< bytes of frames in a second; 0: there is no bottleneck */
	uint64_t room_bytes;   /**< of the queue; UINT64_MAX: any */
	uint32_t room_packets; /**< likewise, up to IMPAIR_QUEUE_PACKETS */
	uint64_t mark_bytes;   /**< queue that a packet is marked behind; UINT64_MAX: none */
	uint64_t tsc_hz;
	uint64_t free_tsc; /**< when the last packet has left */
	uint64_t rest;     /**< of that time, not yet a cycle: cycles / rate */
	uint64_t bytes;    /**< in the queue, with the packet that is on its way out */
	uint32_t first;    /**< oldest of packets, that go round */
	uint32_t count;
	struct impair_neck_counts counts;
	struct impair_neck_packet packets[IMPAIR_QUEUE_PACKETS];
};

/** What becomes of a packet. */
enum impair_neck_verdict {
	IMPAIR_NECK_PASS,
	IMPAIR_NECK_MARK, /**< it passes, and is to be marked if it is ECN-capable */
	IMPAIR_NECK_DROP, /**< the queue is full */
};

/**
 * New settings. The queue is empty then. Counters stay.
 *
 * @param active  this direction is impaired
 */
void
impair_neck_set(
	struct impair_neck *neck, const struct impair_args *args, bool active, uint64_t tsc_hz);

/**
 * A packet comes. An empty queue takes any; another drops what it has no room for (tail drop), and
 * marks by its length before the packet (as Alizadeh et al., SIGCOMM 2010, have it done).
 *
 * @param leaves_tsc  set to when its last byte has left, but for one that is dropped
 */
enum impair_neck_verdict
impair_neck_take(
	struct impair_neck *neck, uint32_t len_bytes, uint64_t now_tsc, uint64_t *leaves_tsc);

/** A packet was marked. */
void
impair_neck_marked(struct impair_neck *neck);

/** What happened until now, or since it was last asked to forget that. */
void
impair_neck_read(struct impair_neck *neck, struct impair_neck_counts *counts, bool forget);

#endif /* IMPAIR_NECK_H */
