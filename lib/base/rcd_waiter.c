/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Waiters: rings with the list itself among its members, so that one leaves without knowing which
 * list it is in.
 */
#include "rcd_waiter.h"

#include <stddef.h>

void
rcd_waiters_init(struct rcd_waiters *list)
{
	list->ends.next = list->ends.prev = &list->ends;
}

void
rcd_waiter_wait(struct rcd_waiters *list, struct rcd_waiter *waiter)
{
	rcd_waiter_cancel(waiter);
	waiter->next = &list->ends;
	waiter->prev = list->ends.prev;
	waiter->prev->next = waiter;
	list->ends.prev = waiter;
}

void
rcd_waiter_cancel(struct rcd_waiter *waiter)
{
	if (!rcd_waiter_waits(waiter))
		return;
	waiter->prev->next = waiter->next;
	waiter->next->prev = waiter->prev;
	waiter->next = waiter->prev = NULL;
}

void
rcd_waiters_move(struct rcd_waiters *to, struct rcd_waiters *from)
{
	if (rcd_waiters_empty(from))
		return;
	from->ends.next->prev = to->ends.prev;
	to->ends.prev->next = from->ends.next;
	from->ends.prev->next = &to->ends;
	to->ends.prev = from->ends.prev;
	rcd_waiters_init(from);
}

uint32_t
rcd_waiters_call(struct rcd_waiters *list, uint32_t most)
{
	uint32_t count = 0;

	for (; count < most && !rcd_waiters_empty(list); count++) {
		struct rcd_waiter *waiter = list->ends.next;

		rcd_waiter_cancel(waiter);
		waiter->fn(waiter);
	}
	return count;
}
