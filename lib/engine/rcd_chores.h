/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the control thread does again and again: each as an alarm, when it is due.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CHORES_H
#define RCD_CHORES_H

struct rcd_engine;

/** Begin, with alarms that there are already. */
void
rcd_chores_open(struct rcd_engine *engine);

/** Set the alarm of each: before each wait. */
void
rcd_chores_plan(struct rcd_engine *engine);

#endif /* RCD_CHORES_H */
