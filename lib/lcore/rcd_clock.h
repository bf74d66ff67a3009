/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The clock of lcores and of the control thread: CLOCK_MONOTONIC, by the time-stamp counter.
 *
 * Threads: any.
 */
#ifndef RCD_CLOCK_H
#define RCD_CLOCK_H

#include <stdint.h>

#include "rcd_api.h"

RCD_API_BEGIN

/** The time, ns. Never goes backwards. Any thread, once an engine was created. */
uint64_t
rcd_clock_ns(void);

/**
 * Let time pass at once: the clock is ahead by this much more from now on. For tests that poll an
 * engine themselves; no other thread may look at the clock meanwhile.
 */
void
rcd_clock_advance(uint64_t ns);

RCD_API_END

#endif /* RCD_CLOCK_H */
