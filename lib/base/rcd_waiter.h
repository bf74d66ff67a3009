/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Waiters: who waits for something is in the list of what it waits for, and is called once when
 * that has come about. A waiter is part of whoever waits; nothing is allocated.
 *
 * What comes about moves its waiters to a list that is called later, a few at a time: so a function
 * that is called may wait again, change whatever it was called for, or free itself.
 *
 * Threads: one at a time.
 */
#ifndef RCD_WAITER_H
#define RCD_WAITER_H

#include <stdbool.h>
#include <stdint.h>

/** A waiter. Zeroed, but for its function: it waits for nothing. */
struct rcd_waiter {
	struct rcd_waiter *next; /**< NULL: it waits for nothing */
	struct rcd_waiter *prev;
	void (*fn)(struct rcd_waiter *waiter); /**< it does not wait any more when this is called */
};

/** Those that wait for the same, the longest waiting first. */
struct rcd_waiters {
	struct rcd_waiter ends;
};

/** Begin an empty list. It must not be moved in memory while somebody waits. */
void
rcd_waiters_init(struct rcd_waiters *list);

/** Wait, as the last; not for what it waited for before. */
void
rcd_waiter_wait(struct rcd_waiters *list, struct rcd_waiter *waiter);

/** Wait no more, if it waits. */
void
rcd_waiter_cancel(struct rcd_waiter *waiter);

/** All of a list wait in another one from now on, behind those that do. However many they are. */
void
rcd_waiters_move(struct rcd_waiters *to, struct rcd_waiters *from);

/** Call the first ones of a list. @param most  so many @return how many were called */
uint32_t
rcd_waiters_call(struct rcd_waiters *list, uint32_t most);

static inline bool
rcd_waiters_empty(const struct rcd_waiters *list)
{
	return list->ends.next == &list->ends;
}

/** Whether it waits: until it is called, or cancelled. */
static inline bool
rcd_waiter_waits(const struct rcd_waiter *waiter)
{
	return waiter->next != (const struct rcd_waiter *)0;
}

#endif /* RCD_WAITER_H */
