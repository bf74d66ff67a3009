/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Chores: work that a thread does again and again, each when it is due and not before. One that
 * has a deadline of its own is an alarm (rcd_alarm.h); a chore stands for a table of those, or for
 * a look at something that tells nobody. Whoever waits for alarms then waits for all of it.
 *
 * What is due is asked for before each wait, so nobody has to tell when it changes. However near
 * the deadlines are that others set, a chore is done once in its time at most.
 *
 * Threads: one at a time.
 */
#ifndef RCD_CHORE_H
#define RCD_CHORE_H

#include <stdint.h>

#include "rcd_alarm.h"

/** No time. */
#define RCD_NEVER UINT64_MAX

/** What a chore is. */
struct rcd_chore_ops {
	/** When to do it, having done it then: 0: at once; RCD_NEVER: not for now. */
	uint64_t (*due)(void *arg, uint64_t done_ns);
	void (*fn)(void *arg, uint64_t now_ns);
	uint64_t every_ns; /**< between two times at least */
};

/** A chore. Members are private. */
struct rcd_chore {
	struct rcd_alarm alarm;
	const struct rcd_chore_ops *ops;
	void *arg;
	uint64_t done_ns;
};

/** A chore that was done now. @param arg  of its functions; both outlive it */
void
rcd_chore_init(
	struct rcd_chore *chore, const struct rcd_chore_ops *ops, void *arg, uint64_t now_ns);

/** Set its alarm to when it is due now. */
void
rcd_chore_plan(struct rcd_chore *chore, struct rcd_alarms *alarms);

#endif /* RCD_CHORE_H */
