/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Alarms: timers of a wheel, each with a function.
 */
#include "rcd_alarm.h"

#include <limits.h>

#include "rcd_bits.h"

#define TICK_LOG2 20 /**< 1 ms: nothing that waits for a client or the link needs less */

void
rcd_alarms_init(struct rcd_alarms *alarms, uint64_t now_ns)
{
	rcd_wheel_init(&alarms->wheel, TICK_LOG2, now_ns);
	alarms->next_ns = UINT64_MAX;
}

void
rcd_alarm_set(struct rcd_alarms *alarms, struct rcd_alarm *alarm, uint64_t at_ns)
{
	/* With the first tick behind it. */
	uint64_t off_ns = ((at_ns >> TICK_LOG2) + 1) << TICK_LOG2;

	rcd_wheel_set(&alarms->wheel, &alarm->timer, at_ns);
	if (off_ns < alarms->next_ns)
		alarms->next_ns = off_ns;
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
	if (now_ns < alarms->next_ns)
		return;
	rcd_wheel_advance(&alarms->wheel, now_ns, most, alarm_expired, &now_ns);
	/* A look at all ticks: not for each event, and not for each alarm. */
	alarms->next_ns = rcd_wheel_next(&alarms->wheel);
}

uint64_t
rcd_alarms_next(const struct rcd_alarms *alarms)
{
	return alarms->wheel.count > 0 ? alarms->next_ns : UINT64_MAX;
}

int
rcd_alarms_wait_ms(const struct rcd_alarms *alarms, uint64_t now_ns, int most_ms)
{
	uint64_t next_ns = rcd_alarms_next(alarms);
	uint64_t wait_ms;

	if (next_ns == UINT64_MAX)
		return most_ms;
	if (next_ns <= now_ns)
		return 0;
	wait_ms = (next_ns - now_ns + 999999) / 1000000;
	if (most_ms >= 0 && (uint64_t)most_ms < wait_ms)
		return most_ms;
	return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}
