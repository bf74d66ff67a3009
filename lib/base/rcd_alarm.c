/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Alarms: timers of a wheel, each with a function.
 */
#include "rcd_alarm.h"

#include "rcd_bits.h"

#define TICK_LOG2 20 /**< 1 ms: nothing that waits for a client or the link needs less */

void
rcd_alarms_init(struct rcd_alarms *alarms, uint64_t now_ns)
{
	rcd_wheel_init(&alarms->wheel, TICK_LOG2, now_ns);
}

void
rcd_alarm_set(struct rcd_alarms *alarms, struct rcd_alarm *alarm, uint64_t at_ns)
{
	rcd_wheel_set(&alarms->wheel, &alarm->timer, at_ns);
}

void
rcd_alarm_cancel(struct rcd_alarms *alarms, struct rcd_alarm *alarm)
{
	rcd_wheel_cancel(&alarms->wheel, &alarm->timer);
}

static void
alarm_expired(struct rcd_timer *timer, void *arg)
{
	struct rcd_alarm *alarm = RCD_OWNER(timer, struct rcd_alarm, timer);
	const uint64_t *now_ns = arg;

	alarm->fn(alarm, *now_ns);
}

void
rcd_alarms_run(struct rcd_alarms *alarms, uint64_t now_ns, uint32_t most)
{
	if (rcd_wheel_due(&alarms->wheel, now_ns))
		rcd_wheel_advance(&alarms->wheel, now_ns, most, alarm_expired, &now_ns);
}

bool
rcd_alarms_left(const struct rcd_alarms *alarms, uint64_t now_ns)
{
	return rcd_wheel_due(&alarms->wheel, now_ns);
}

uint64_t
rcd_alarms_next(const struct rcd_alarms *alarms)
{
	return rcd_wheel_next(&alarms->wheel);
}
