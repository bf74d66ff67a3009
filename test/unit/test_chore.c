/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: who sleeps until the next alarm misses none, does not wake without need, and does not spin
 * however near the deadlines are that others set; chores are done when they are due. Method: a
 * thread that sleeps and runs alarms, in virtual time.
 */
#include "rcd_chore.h"

#include <stdlib.h>

#include "rcd_bits.h"
#include "rcd_bytes.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"

#define MS       UINT64_C(1000000)
#define SECOND   (1000 * MS)
#define EVERY_NS (20 * MS)
#define TICK_NS  (UINT64_C(1) << 20) /**< of alarms */

static struct rcd_alarms alarms;
static struct rcd_chore chore;
static uint64_t now_ns;
static uint64_t due_ns; /**< of the chore */
static uint32_t done;
static uint32_t wakes;
static int longest_ms;

static uint64_t
due(void *arg, uint64_t done_ns)
{
	CU_ASSERT_PTR_EQUAL(arg, &done);
	CU_ASSERT(done_ns <= now_ns);
	return due_ns;
}

static void
work(void *arg, uint64_t at_ns)
{
	CU_ASSERT_PTR_EQUAL(arg, &done);
	CU_ASSERT_EQUAL(at_ns, now_ns);
	CU_ASSERT(at_ns >= due_ns);
	done++;
}

static void
setup(void)
{
	static const struct rcd_chore_ops ops = { due, work, EVERY_NS };

	now_ns = SECOND;
	due_ns = RCD_NEVER;
	done = wakes = 0;
	longest_ms = 0;
	rcd_alarms_init(&alarms, now_ns);
	rcd_chore_init(&chore, &ops, &done, now_ns);
}

/* What the control thread does. @param most_ms  as that of rcd_alarms_wait_ms() */
static void
turn(int most_ms)
{
	int wait_ms;

	rcd_chore_plan(&chore, &alarms);
	wait_ms = rcd_alarms_wait_ms(&alarms, now_ns, most_ms);
	CU_ASSERT(wait_ms >= 0 && wait_ms <= most_ms);
	now_ns += (uint64_t)wait_ms * MS;
	wakes++;
	if (wait_ms > longest_ms)
		longest_ms = wait_ms;
	rcd_alarms_run(&alarms, now_ns, 256);
}

static void
pass(uint64_t ns)
{
	for (uint64_t end_ns = now_ns + ns; now_ns < end_ns && wakes < 1000000;)
		turn(1000);
}

/* A deadline that is nowhere, or far away, or past and stays there. */
static void
done_when_due(void)
{
	static const struct {
		uint64_t due_ns;
		uint32_t least, most;
		uint32_t wakes;
	} rows[] = {
		{ RCD_NEVER, 0, 0, 11 },
		{ 21 * SECOND, 0, 0, 14 },
		{ 6 * SECOND, 200, 250, 260 },
		/* However near: once in its time. */
		{ 0, 450, 500, 510 },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		setup();
		due_ns = rows[i].due_ns;
		pass(10 * SECOND);
		CU_ASSERT(done >= rows[i].least && done <= rows[i].most);
		CU_ASSERT(wakes <= rows[i].wakes);
		if (done < rows[i].least || done > rows[i].most || wakes > rows[i].wakes)
			printf("# row %zu: done %u times, woke %u times\n", i, done, wakes);
	}
}

/* What is due changes while nobody tells: the next wait is as long as it says then. */
static void
deadlines_move(void)
{
	setup();
	due_ns = now_ns + 10 * SECOND;
	turn(1000);
	due_ns = now_ns + 100 * MS;
	turn(1000);
	CU_ASSERT_EQUAL(done, 1);
	CU_ASSERT(now_ns >= due_ns && now_ns <= due_ns + TICK_NS + MS);
	due_ns = now_ns + 100 * MS;
	rcd_chore_plan(&chore, &alarms);
	CU_ASSERT(rcd_alarms_next(&alarms) < RCD_NEVER);
	due_ns = RCD_NEVER;
	rcd_chore_plan(&chore, &alarms);
	CU_ASSERT_EQUAL(rcd_alarms_next(&alarms), RCD_NEVER);
	CU_ASSERT_EQUAL(rcd_alarms_wait_ms(&alarms, now_ns, -1), -1);
	CU_ASSERT_EQUAL(rcd_alarms_wait_ms(&alarms, now_ns, 7), 7);
	turn(1000);
	CU_ASSERT_EQUAL(done, 1);
}

struct guest {
	struct rcd_alarm alarm;
	uint64_t at_ns;
};

static uint32_t rang;

static void
ring(struct rcd_alarm *alarm, uint64_t at_ns)
{
	struct guest *guest = RCD_OWNER(alarm, struct guest, alarm);

	CU_ASSERT(at_ns >= guest->at_ns);
	/* A tick of the alarms, and the millisecond that a wait is rounded up to. */
	CU_ASSERT(at_ns <= guest->at_ns + TICK_NS + MS);
	guest->at_ns = 0;
	rang++;
}

/* Alarms at random, near and far, some of them unset: each goes off in its time, and once. */
static void
none_is_missed(void)
{
	static struct guest guests[300];
	struct rcd_sequence random = { .state = 1 };
	uint32_t set = 0, unset = 0, most;

	setup();
	rang = 0;
	memset(guests, 0, sizeof(guests));
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t number = rcd_sequence_next(&random);
		struct guest *guest = &guests[number % RCD_ARRAY_COUNT(guests)];

		guest->alarm.fn = ring;
		if (guest->at_ns == 0) {
			guest->at_ns = now_ns + 1 + (number >> 32) % ((i % 50 ? 2 : 40) * SECOND);
			rcd_alarm_set(&alarms, &guest->alarm, guest->at_ns);
			set++;
		} else if (number >> 60 == 0) {
			rcd_alarm_cancel(&alarms, &guest->alarm);
			guest->at_ns = 0;
			unset++;
		}
		turn((number >> 20) % 16);
	}
	most = wakes + 2 * (set - unset - rang) + 60;
	pass(50 * SECOND);
	CU_ASSERT_EQUAL(rang + unset, set);
	CU_ASSERT(wakes <= most);
	CU_ASSERT_EQUAL(rcd_alarms_next(&alarms), RCD_NEVER);
	CU_ASSERT_EQUAL(longest_ms, 1000);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(done_when_due),
		RCD_TEST(deadlines_move),
		RCD_TEST(none_is_missed),
	};

	return rcd_tap_run("chore", tests, RCD_ARRAY_COUNT(tests));
}
