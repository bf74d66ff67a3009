/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who is which thread, in builds for debugging: one variable for all, and one of each thread.
 */
#include "rcd_thread.h"

#ifdef RCD_DEBUG

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* A thread is known by the address of its own. */
static _Thread_local struct rcd_thread_place thread_self;

static const void *thread_control; /* NULL: there is none; atomic */

void
rcd_thread_be_control(void)
{
	__atomic_store_n(&thread_control, &thread_self, __ATOMIC_RELAXED);
}

void
rcd_thread_end_control(void)
{
	__atomic_store_n(&thread_control, NULL, __ATOMIC_RELAXED);
}

struct rcd_thread_place
rcd_thread_enter(const void *lcore, uint32_t index)
{
	struct rcd_thread_place before = thread_self;

	thread_self = (struct rcd_thread_place){ .lcore = lcore, .index = index };
	return before;
}

void
rcd_thread_leave(struct rcd_thread_place before)
{
	thread_self = before;
}

static bool
thread_is_control(void)
{
	return __atomic_load_n(&thread_control, __ATOMIC_RELAXED) == &thread_self;
}

/* Nobody has said which threads there are. */
static bool
thread_is_free(void)
{
	return thread_self.lcore == NULL &&
		__atomic_load_n(&thread_control, __ATOMIC_RELAXED) == NULL;
}

__attribute__((noreturn, cold)) static void
thread_fail(const char *func, const char *whose)
{
	char name[32] = "";
	char where[64] = "in another one";

	if (thread_self.lcore != NULL)
		snprintf(where, sizeof(where), "on lcore %u", (unsigned int)thread_self.index);
	else if (thread_is_control())
		snprintf(where, sizeof(where), "in the control thread");
	else if (pthread_getname_np(pthread_self(), name, sizeof(name)) == 0)
		snprintf(where, sizeof(where), "in another one, %s", name);
	fprintf(stderr, "rocade: %s() belongs to %s, and is called %s\n", func, whose, where);
	abort();
}

void
rcd_thread_check_control(const char *func)
{
	if (!thread_is_free() && (thread_self.lcore != NULL || !thread_is_control()))
		thread_fail(func, "the control thread");
}

void
rcd_thread_check_lcores(const char *func)
{
	if (!thread_is_free() && thread_self.lcore == NULL)
		thread_fail(func, "lcores");
}

void
rcd_thread_check_lcore(const char *func, const void *lcore, uint32_t index)
{
	char whose[32];

	if (thread_is_free() || thread_self.lcore == lcore)
		return;
	snprintf(whose, sizeof(whose), "lcore %u", (unsigned int)index);
	thread_fail(func, whose);
}

#endif
