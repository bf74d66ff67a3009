/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Turns of users, and pauses between them.
 */
#include "rcd_pauses.h"

#include "rcd_thread.h"

#define PAUSE_TIMES 9 /**< of what a turn took */

/* @return the place of a user; -1: those of others are all in use */
static int
pauses_find(const struct rcd_pauses *pauses, uid_t uid, uint64_t now_ns)
{
	int found = -1;

	for (int i = 0; i < RCD_PAUSES; i++) {
		if (pauses->turns[i].due_ns <= now_ns)
			found = i;
		else if (pauses->turns[i].uid == uid)
			return i;
	}
	return found;
}

bool
rcd_pauses_over(const struct rcd_pauses *pauses, uid_t uid, uint64_t now_ns)
{
	int at = pauses_find(pauses, uid, now_ns);

	RCD_ON_CONTROL();
	return at >= 0 && pauses->turns[at].due_ns <= now_ns;
}

void
rcd_pauses_begin(struct rcd_pauses *pauses, uid_t uid, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t spent_ns = now_ns - began_ns;
	int at = pauses_find(pauses, uid, now_ns);

	RCD_ON_CONTROL();
	if (at < 0)
		return;
	pauses->turns[at].uid = uid;
	pauses->turns[at].due_ns = now_ns +
		(spent_ns < RCD_PAUSE_MAX_NS / PAUSE_TIMES ? PAUSE_TIMES * spent_ns
							   : RCD_PAUSE_MAX_NS);
}
