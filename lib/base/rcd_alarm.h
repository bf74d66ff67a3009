/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Alarms: what a thread that waits for events has to do at a time, each with a function of its own.
 * They are timers of a wheel with ticks of a millisecond. An alarm is part of whoever sets it;
 * nothing is allocated, and no clock is read.
 *
 * Threads: one at a time.
 */
#ifndef RCD_ALARM_H
#define RCD_ALARM_H

#include <stdint.h>

#include "rcd_wheel.h"

/** An alarm. Zeroed, but for its function: not set. */
struct rcd_alarm {
	struct rcd_timer timer;
	/** It is not set any more when this is called, which may set it or free it. */
	void (*fn)(struct rcd_alarm *alarm, uint64_t now_ns);
};

/** All alarms of a thread. */
struct rcd_alarms {
	struct rcd_wheel wheel;
	uint64_t next_ns; /**< none goes off before */
};

/** Begin without any. */
void
rcd_alarms_init(struct rcd_alarms *alarms, uint64_t now_ns);

/** Set an alarm, set or not. It goes off then, or up to a tick later. @param at_ns  not 0 */
void
rcd_alarm_set(struct rcd_alarms *alarms, struct rcd_alarm *alarm, uint64_t at_ns);

/** Unset an alarm, set or not. */
void
rcd_alarm_cancel(struct rcd_alarms *alarms, struct rcd_alarm *alarm);

/** Let those go off that are due. @param most  alarms to look at; the others' turn comes then */
void
rcd_alarms_run(struct rcd_alarms *alarms, uint64_t now_ns, uint32_t most);

/** A time before which none is due. @return 0: some are; UINT64_MAX: none is set */
uint64_t
rcd_alarms_next(const struct rcd_alarms *alarms);

/**
 * How long a wait for events may be, which ends with the first alarm.
 *
 * @param most_ms  at most so long; below 0: without end
 * @return milliseconds, 0 when some are due; below 0: without end
 */
int
rcd_alarms_wait_ms(const struct rcd_alarms *alarms, uint64_t now_ns, int most_ms);

#endif /* RCD_ALARM_H */
