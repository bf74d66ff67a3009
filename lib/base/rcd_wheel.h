/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Timer wheel: one list of timers per tick. A timer knows its own time, so one beyond the wheel's
 * horizon lies in the list of its tick modulo the size and is passed over until its round comes.
 * How long a tick is says who makes the wheel. Nothing is allocated. Threads: one at a time.
 */
#ifndef RCD_WHEEL_H
#define RCD_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/** Ticks of a queue pair's timers: 16.4 us, half the shortest RNR wait worth telling apart. */
#define RCD_WHEEL_TICK_LOG2 14
#define RCD_WHEEL_SLOTS     4096 /**< of that tick 67 ms: the usual retransmission timeout */

/** A timer. Zeroed: not set. */
struct rcd_timer {
	LIST_ENTRY(rcd_timer) link;
	uint64_t at_ns; /**< 0: not set */
	uint32_t kind;  /**< the owner's: what it is part of */
};

LIST_HEAD(rcd_timer_list, rcd_timer);

/** A wheel. Zeroed by rcd_wheel_init(); members are private. */
struct rcd_wheel {
	uint32_t tick_log2; /**< length of a tick, nanoseconds */
	uint32_t count;
	uint64_t tick;  /**< next tick to look at */
	uint64_t floor; /**< first tick that a timer may be set to: behind those looked at */
	struct rcd_timer_list late; /**< of the ticks before, for whom a budget was not enough */
	struct rcd_timer_list slots[RCD_WHEEL_SLOTS];
};

/** Begin an empty wheel. @param tick_log2  length of a tick, nanoseconds, 1..40 */
void
rcd_wheel_init(struct rcd_wheel *wheel, uint32_t tick_log2, uint64_t now_ns);

/** Set a timer, set or not. @param at_ns not 0 */
void
rcd_wheel_set(struct rcd_wheel *wheel, struct rcd_timer *timer, uint64_t at_ns);

/** Unset a timer, set or not. */
void
rcd_wheel_cancel(struct rcd_wheel *wheel, struct rcd_timer *timer);

/** Whether a poll has anything to do: cheap enough for every poll. */
static inline bool
rcd_wheel_due(const struct rcd_wheel *wheel, uint64_t now_ns)
{
	return wheel->count > 0 &&
		(now_ns >> wheel->tick_log2 >= wheel->tick || !LIST_EMPTY(&wheel->late));
}

/**
 * Unset timers that are due and hand each to @p expired, which may set it or others again. A timer
 * fires up to one tick late; one for which the budget is not enough, at the next call, before those
 * that are due later.
 *
 * @param budget  most timers to look at
 * @return timers looked at
 */
uint32_t
rcd_wheel_advance(struct rcd_wheel *wheel, uint64_t now_ns, uint32_t budget,
	void (*expired)(struct rcd_timer *timer, void *arg), void *arg);

/**
 * A time before which nothing is due.
 *
 * @return engine clock; 0 when a budget was not enough; UINT64_MAX when no timer is set
 */
uint64_t
rcd_wheel_next(const struct rcd_wheel *wheel);

#endif /* RCD_WHEEL_H */
