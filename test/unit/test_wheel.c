/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: timers fire once, never early, at most a tick late, whatever is set and unset meanwhile.
 * Method: a wheel beside a plain list of times, through random operations on virtual time.
 */
#include <stdlib.h>

#include "rcd_tap.h"
#include "rcd_wheel.h"

#define TIMERS 200
#define TICK   (UINT64_C(1) << RCD_WHEEL_TICK_LOG2)

struct entry {
	struct rcd_timer timer;
	uint64_t at_ns; /**< 0: not set */
};

struct world {
	struct rcd_wheel wheel;
	struct entry entries[TIMERS];
	uint64_t now_ns;
	uint32_t fired;
	bool set_again;
};

static void
expired(struct rcd_timer *timer, void *arg)
{
	struct world *world = arg;
	struct entry *entry = (struct entry *)(void *)timer;

	CU_ASSERT(entry->at_ns != 0 && entry->at_ns <= world->now_ns);
	entry->at_ns = 0;
	world->fired++;
	if (world->set_again && rand() % 2 == 0) {
		entry->at_ns = world->now_ns + 1 + (uint64_t)rand() % (200 * TICK);
		rcd_wheel_set(&world->wheel, &entry->timer, entry->at_ns);
	}
}

/* Nothing that is still set is more than a tick overdue, and the wheel knows of the earliest. */
static void
check(struct world *world)
{
	uint64_t first = UINT64_MAX;

	for (int i = 0; i < TIMERS; i++) {
		uint64_t at_ns = world->entries[i].at_ns;

		if (at_ns == 0)
			continue;
		CU_ASSERT(at_ns + 2 * TICK > world->now_ns);
		first = at_ns < first ? at_ns : first;
	}
	if (first == UINT64_MAX) {
		CU_ASSERT_EQUAL(rcd_wheel_next(&world->wheel), UINT64_MAX);
	} else {
		CU_ASSERT(rcd_wheel_next(&world->wheel) <= first + 2 * TICK);
	}
}

static void
random_operations(void)
{
	struct world *world = calloc(1, sizeof(*world));

	CU_ASSERT_PTR_NOT_NULL_FATAL(world);
	srand(1);
	world->now_ns = 123456789;
	world->set_again = true;
	rcd_wheel_init(&world->wheel, RCD_WHEEL_TICK_LOG2, world->now_ns);
	for (int round = 0; round < 100000; round++) {
		struct entry *entry = &world->entries[rand() % TIMERS];

		if (rand() % 4 == 0) {
			rcd_wheel_cancel(&world->wheel, &entry->timer);
			entry->at_ns = 0;
		} else {
			/* Now and then beyond the wheel's horizon. */
			uint64_t reach = rand() % 10 == 0 ? 3 * RCD_WHEEL_SLOTS * TICK : 100 * TICK;

			entry->at_ns = world->now_ns + 1 + (uint64_t)rand() % reach;
			rcd_wheel_set(&world->wheel, &entry->timer, entry->at_ns);
		}
		/* And now and then time jumps. */
		world->now_ns += (uint64_t)rand() %
			(rand() % 1000 == 0 ? 3 * RCD_WHEEL_SLOTS * TICK : 2 * TICK);
		if (rcd_wheel_due(&world->wheel, world->now_ns))
			rcd_wheel_advance(&world->wheel, world->now_ns, UINT32_MAX, expired, world);
		if (round % 100 == 0)
			check(world);
	}
	CU_ASSERT(world->fired > 1000);
	free(world);
}

/* As many as the budget allows, the earlier before the later, and none is forgotten. */
static void
budgets(void)
{
	static const uint32_t most[] = { 1, 3, TIMERS };
	struct world *world = calloc(1, sizeof(*world));

	CU_ASSERT_PTR_NOT_NULL_FATAL(world);
	for (size_t round = 0; round < sizeof(most) / sizeof(most[0]); round++) {
		uint32_t calls = 0;

		world->now_ns = 123456789;
		world->fired = 0;
		rcd_wheel_init(&world->wheel, RCD_WHEEL_TICK_LOG2, world->now_ns);
		for (uint32_t i = 0; i < TIMERS; i++) {
			/* Many at once, some later, one beyond the horizon. */
			uint64_t after = i == 7 ? 2 * RCD_WHEEL_SLOTS * TICK : i / 100 * 10 * TICK;

			world->entries[i].at_ns = world->now_ns + 1 + after;
			rcd_wheel_set(
				&world->wheel, &world->entries[i].timer, world->entries[i].at_ns);
		}
		world->now_ns += 20 * TICK;
		while (rcd_wheel_due(&world->wheel, world->now_ns)) {
			uint32_t before = world->fired;
			uint32_t done = rcd_wheel_advance(
				&world->wheel, world->now_ns, most[round], expired, world);

			CU_ASSERT(done <= most[round] && world->fired - before <= done);
			CU_ASSERT(calls++ < 2 * TIMERS);
			/* Of the second hundred only when the first is done. */
			for (uint32_t i = 0; i < 100 && world->fired < 99; i++)
				CU_ASSERT(world->entries[100 + i].at_ns != 0);
			if (calls % 5 == 0)
				world->now_ns += 3 * TICK;
		}
		CU_ASSERT_EQUAL(world->fired, TIMERS - 1);
		CU_ASSERT(calls >= (TIMERS - 1) / most[round]);
		world->now_ns += 3 * RCD_WHEEL_SLOTS * TICK;
		CU_ASSERT_EQUAL(
			rcd_wheel_advance(&world->wheel, world->now_ns, 5, expired, world), 1);
		CU_ASSERT_EQUAL(world->fired, TIMERS);
	}
	free(world);
}

/* What a budget leaves is due at once: the same tick has it all, by further calls. */
static void
budgets_in_one_tick(void)
{
	struct world *world = calloc(1, sizeof(*world));
	uint32_t calls = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(world);
	world->now_ns = 123456789;
	rcd_wheel_init(&world->wheel, RCD_WHEEL_TICK_LOG2, world->now_ns);
	for (uint32_t i = 0; i < TIMERS; i++) {
		world->entries[i].at_ns = world->now_ns + 1;
		rcd_wheel_set(&world->wheel, &world->entries[i].timer, world->entries[i].at_ns);
	}
	/* The last tick that is looked at is theirs. */
	world->now_ns += TICK;
	while (rcd_wheel_due(&world->wheel, world->now_ns) && calls < TIMERS) {
		CU_ASSERT(rcd_wheel_next(&world->wheel) <= world->now_ns);
		CU_ASSERT(rcd_wheel_advance(&world->wheel, world->now_ns, 64, expired, world) > 0);
		calls++;
	}
	CU_ASSERT_EQUAL(world->fired, TIMERS);
	CU_ASSERT_EQUAL(calls, (TIMERS + 63) / 64);
	/* And what is set now fires later, as ever. */
	world->entries[0].at_ns = world->now_ns + 1;
	rcd_wheel_set(&world->wheel, &world->entries[0].timer, world->entries[0].at_ns);
	CU_ASSERT_FALSE(rcd_wheel_due(&world->wheel, world->now_ns));
	world->now_ns += 2 * TICK;
	CU_ASSERT_EQUAL(rcd_wheel_advance(&world->wheel, world->now_ns, 64, expired, world), 1);
	free(world);
}

static void
empty_wheel(void)
{
	struct rcd_wheel *wheel = calloc(1, sizeof(*wheel));
	struct rcd_timer timer = { .at_ns = 0 };

	CU_ASSERT_PTR_NOT_NULL_FATAL(wheel);
	rcd_wheel_init(wheel, RCD_WHEEL_TICK_LOG2, 0);
	CU_ASSERT_FALSE(rcd_wheel_due(wheel, UINT64_MAX / 2));
	rcd_wheel_cancel(wheel, &timer);
	CU_ASSERT_EQUAL(rcd_wheel_next(wheel), UINT64_MAX);
	free(wheel);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(random_operations),
		{ "S8 timers expire within a budget", budgets },
		{ "S8 timers that a budget leaves expire in the same tick", budgets_in_one_tick },
		RCD_TEST(empty_wheel),
	};

	return rcd_tap_run("wheel", tests, sizeof(tests) / sizeof(tests[0]));
}
