/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Turns of users: behind what cost time each has a pause of several times as long, but of no more
 * than a second, as a control thread that did not run for a while took no longer by its work. What
 * one user's cost is a tenth of the time, then, or a turn a second.
 *
 * Threads: the control thread.
 */
#ifndef RCD_PAUSES_H
#define RCD_PAUSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RCD_PAUSE_MAX_NS UINT64_C(1000000000) /**< longest */
#define RCD_PAUSES       32                   /**< users that have one at a time */

/** When users have their turns again. All zero: at once. */
struct rcd_pauses {
	struct {
		uid_t uid;
		uint64_t due_ns; /**< 0: at once */
	} turns[RCD_PAUSES];
};

/** Whether it is a user's turn: not in its pause, nor where RCD_PAUSES others have theirs. */
bool
rcd_pauses_over(const struct rcd_pauses *pauses, uid_t uid, uint64_t now_ns);

/** A user had its turn, which began then, and has a pause. */
void
rcd_pauses_begin(struct rcd_pauses *pauses, uid_t uid, uint64_t began_ns, uint64_t now_ns);

#endif /* RCD_PAUSES_H */
