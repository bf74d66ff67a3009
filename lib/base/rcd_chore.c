/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Chores: alarms that follow a deadline.
 */
#include "rcd_chore.h"

#include "rcd_bits.h"

static void
chore_due(struct rcd_alarm *alarm, uint64_t now_ns)
{
	struct rcd_chore *chore = RCD_OWNER(alarm, struct rcd_chore, alarm);

	chore->done_ns = now_ns;
	chore->ops->fn(chore->arg, now_ns);
}

void
rcd_chore_init(struct rcd_chore *chore, const struct rcd_chore_ops *ops, void *arg, uint64_t now_ns)
{
	*chore = (struct rcd_chore){
		.alarm.fn = chore_due, .ops = ops, .arg = arg, .done_ns = now_ns
	};
}

void
rcd_chore_plan(struct rcd_chore *chore, struct rcd_alarms *alarms)
{
	uint64_t due_ns = chore->ops->due(chore->arg, chore->done_ns);

	if (due_ns < chore->done_ns + chore->ops->every_ns)
		due_ns = chore->done_ns + chore->ops->every_ns;
	if (due_ns == RCD_NEVER)
		rcd_alarm_cancel(alarms, &chore->alarm);
	else if (due_ns != chore->alarm.timer.at_ns)
		rcd_alarm_set(alarms, &chore->alarm, due_ns);
}
