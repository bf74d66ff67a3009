/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: who waits is called once, in order, whatever others do meanwhile; and an alarm goes off
 * once, not before its time, unless it is unset. Method: small lists with functions that wait
 * again, cancel others and free themselves; a clock of the test's own.
 */
#include <stdlib.h>

#include "rcd_alarm.h"
#include "rcd_bits.h"
#include "rcd_tap.h"
#include "rcd_waiter.h"

#define MS UINT64_C(1000000)

struct thing {
	struct rcd_waiter waiter;
	struct rcd_alarm alarm;
	uint32_t calls;
	struct thing *cancels; /**< NULL: none */
	bool again, frees;
};

static struct rcd_waiters list, other;
static struct rcd_alarms alarms;
static struct thing things[4];
static struct thing *called[16];
static uint32_t call_count;

static void
told(struct rcd_waiter *waiter)
{
	struct thing *thing = RCD_OWNER(waiter, struct thing, waiter);

	CU_ASSERT_FALSE(rcd_waiter_waits(waiter));
	called[call_count++ % 16] = thing;
	thing->calls++;
	if (thing->cancels != NULL)
		rcd_waiter_cancel(&thing->cancels->waiter);
	if (thing->again)
		rcd_waiter_wait(&other, waiter);
	if (thing->frees)
		free(thing);
}

static void
rang(struct rcd_alarm *alarm, uint64_t now_ns)
{
	struct thing *thing = RCD_OWNER(alarm, struct thing, alarm);

	thing->calls++;
	if (thing->cancels != NULL)
		rcd_alarm_cancel(&alarms, &thing->cancels->alarm);
	if (thing->again)
		rcd_alarm_set(&alarms, alarm, now_ns + MS);
}

static void
setup(void)
{
	rcd_waiters_init(&list);
	rcd_waiters_init(&other);
	rcd_alarms_init(&alarms, 5 * MS);
	call_count = 0;
	for (int i = 0; i < 4; i++) {
		things[i] = (struct thing){ .waiter.fn = told, .alarm.fn = rang };
		CU_ASSERT_FALSE(rcd_waiter_waits(&things[i].waiter));
	}
}

static void
in_order_and_once(void)
{
	setup();
	for (int i = 0; i < 4; i++)
		rcd_waiter_wait(&list, &things[i].waiter);
	/* Whatever it waited for before, it waits as the last. */
	rcd_waiter_wait(&list, &things[1].waiter);
	rcd_waiter_cancel(&things[2].waiter);
	rcd_waiter_cancel(&things[2].waiter);
	CU_ASSERT_EQUAL(rcd_waiters_call(&list, 2), 2);
	CU_ASSERT_PTR_EQUAL(called[0], &things[0]);
	CU_ASSERT_PTR_EQUAL(called[1], &things[3]);
	CU_ASSERT_FALSE(rcd_waiters_empty(&list));
	CU_ASSERT_EQUAL(rcd_waiters_call(&list, 5), 1);
	CU_ASSERT_PTR_EQUAL(called[2], &things[1]);
	CU_ASSERT(rcd_waiters_empty(&list));
	CU_ASSERT_EQUAL(things[2].calls, 0);
}

static void
lists_move_as_a_whole(void)
{
	setup();
	rcd_waiters_move(&other, &list);
	CU_ASSERT(rcd_waiters_empty(&other));
	for (int i = 0; i < 4; i++)
		rcd_waiter_wait(i < 2 ? &list : &other, &things[i].waiter);
	rcd_waiters_move(&other, &list);
	CU_ASSERT(rcd_waiters_empty(&list));
	rcd_waiter_cancel(&things[0].waiter);
	CU_ASSERT_EQUAL(rcd_waiters_call(&other, 9), 3);
	CU_ASSERT_PTR_EQUAL(called[0], &things[2]);
	CU_ASSERT_PTR_EQUAL(called[1], &things[3]);
	CU_ASSERT_PTR_EQUAL(called[2], &things[1]);
}

static void
what_is_called_may_do_anything(void)
{
	struct thing *gone = calloc(1, sizeof(*gone));

	CU_ASSERT_PTR_NOT_NULL_FATAL(gone);
	setup();
	gone->waiter.fn = told;
	gone->frees = true;
	things[0].cancels = &things[1];
	things[2].again = true;
	rcd_waiter_wait(&list, &gone->waiter);
	for (int i = 0; i < 3; i++)
		rcd_waiter_wait(&list, &things[i].waiter);
	CU_ASSERT_EQUAL(rcd_waiters_call(&list, 9), 3);
	CU_ASSERT_EQUAL(things[1].calls, 0);
	CU_ASSERT(rcd_waiter_waits(&things[2].waiter));
	CU_ASSERT_FALSE(rcd_waiters_empty(&other));
	rcd_waiter_cancel(&things[2].waiter);
	CU_ASSERT(rcd_waiters_empty(&other));
}

static void
alarms_go_off(void)
{
	setup();
	CU_ASSERT_EQUAL(rcd_alarms_next(&alarms), UINT64_MAX);
	for (int i = 0; i < 4; i++)
		rcd_alarm_set(&alarms, &things[i].alarm, (10 + 10 * (uint64_t)i) * MS);
	CU_ASSERT(rcd_alarms_next(&alarms) >= 10 * MS && rcd_alarms_next(&alarms) <= 12 * MS);
	rcd_alarms_run(&alarms, 10 * MS - 1, 9);
	CU_ASSERT_EQUAL(things[0].calls, 0);
	things[0].cancels = &things[1];
	things[2].again = true;
	rcd_alarms_run(&alarms, 32 * MS, 9);
	CU_ASSERT_EQUAL(things[0].calls, 1);
	CU_ASSERT_EQUAL(things[1].calls, 0);
	CU_ASSERT_EQUAL(things[2].calls, 1);
	CU_ASSERT_EQUAL(things[3].calls, 0);
	things[2].again = false;
	rcd_alarms_run(&alarms, 36 * MS, 9);
	CU_ASSERT_EQUAL(things[2].calls, 2);
	rcd_alarm_cancel(&alarms, &things[3].alarm);
	rcd_alarms_run(&alarms, 99 * MS, 9);
	CU_ASSERT_EQUAL(things[3].calls, 0);
	CU_ASSERT_EQUAL(rcd_alarms_next(&alarms), UINT64_MAX);
}

/* More than a budget for one moment: who runs them is to come back, and then all had theirs. */
static void
what_is_left_is_told(void)
{
	setup();
	CU_ASSERT_NOT_EQUAL(rcd_alarms_wait_ms(&alarms, 10 * MS, -1), 0);
	for (int i = 0; i < 4; i++)
		rcd_alarm_set(&alarms, &things[i].alarm, 10 * MS);
	rcd_alarms_run(&alarms, 5 * MS, 9);
	CU_ASSERT_NOT_EQUAL(rcd_alarms_wait_ms(&alarms, 5 * MS, -1), 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(rcd_alarms_wait_ms(&alarms, 12 * MS, -1), 0);
		rcd_alarms_run(&alarms, 12 * MS, 2);
	}
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(things[i].calls, 1);
	CU_ASSERT_NOT_EQUAL(rcd_alarms_wait_ms(&alarms, 12 * MS, -1), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(in_order_and_once),
		RCD_TEST(lists_move_as_a_whole),
		RCD_TEST(what_is_called_may_do_anything),
		RCD_TEST(alarms_go_off),
		RCD_TEST(what_is_left_is_told),
	};

	return rcd_tap_run("waiter", tests, sizeof(tests) / sizeof(tests[0]));
}
