/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The pace of a thread that shares its core: of the time that passes it may compute for one part in
 * RCD_PACE_PART, and for RCD_PACE_BURST_NS at once when it had less to do before (a token bucket).
 * What clients ask for is done all the same, at half the speed once a burst is over, and whoever
 * waits for that core has it in between. No allocation; no clock of its own.
 *
 * Threads: one.
 */
#ifndef RCD_PACE_H
#define RCD_PACE_H

#include <stdint.h>

#define RCD_PACE_PART     2
#define RCD_PACE_BURST_NS 2000000 /**< hundreds of commands */
#define RCD_PACE_REST_NS  200000  /**< shortest rest: many round trips of those that wait */
#define RCD_PACE_LONG_NS  4000000 /**< longest rest: what is asked for meanwhile waits */

/** Zeroed: nothing was done yet. Members are private. */
struct rcd_pace {
	int64_t credit_ns; /**< negative: a debt */
	uint64_t at_ns;
};

/**
 * Time that was computed for, at the end of it.
 *
 * @param now_ns  of a clock that never goes back; any, but the same one each time
 * @param used_ns since the call before
 * @return for how long to rest now, ns; 0: not
 */
uint64_t
rcd_pace_spend(struct rcd_pace *pace, uint64_t now_ns, uint64_t used_ns);

#endif /* RCD_PACE_H */
