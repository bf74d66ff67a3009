/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a thread that shares its core computes for half of the time however much it is asked for,
 * and one that is asked for little never rests. Method: a clock that the test moves.
 */
#include "rcd_pace.h"
#include "rcd_tap.h"

struct world {
	struct rcd_pace pace;
	uint64_t now_ns;
	uint64_t worked_ns;
	uint64_t rested_ns;
	uint64_t longest_ns;
	uint32_t rests;
};

/* It computes and rests as it is told. */
static void
work(struct world *world, uint64_t ns)
{
	uint64_t rest_ns;

	world->now_ns += ns;
	world->worked_ns += ns;
	rest_ns = rcd_pace_spend(&world->pace, world->now_ns, ns);
	world->now_ns += rest_ns;
	world->rested_ns += rest_ns;
	world->rests += rest_ns > 0;
	if (rest_ns > world->longest_ns)
		world->longest_ns = rest_ns;
}

static void
half_of_the_time(void)
{
	static const uint64_t steps_ns[] = { 1000, 70000, 150000, 900000 };

	for (size_t i = 0; i < sizeof(steps_ns) / sizeof(steps_ns[0]); i++) {
		struct world world = { .now_ns = 77 };

		while (world.worked_ns < 1000000000)
			work(&world, steps_ns[i]);
		CU_ASSERT(world.worked_ns < world.rested_ns + 2 * RCD_PACE_BURST_NS);
		CU_ASSERT(world.rested_ns < world.worked_ns + RCD_PACE_LONG_NS);
		/* Each is long enough for others to do something. */
		CU_ASSERT(world.rested_ns / world.rests >= RCD_PACE_REST_NS);
	}
}

static void
little_work_never_rests(void)
{
	struct world world = { .now_ns = 0 };

	for (int i = 0; i < 100000; i++) {
		work(&world, 30000);
		world.now_ns += 31000;
	}
	CU_ASSERT_EQUAL(world.rests, 0);
}

static void
a_burst_is_done_at_once(void)
{
	struct world world = { .now_ns = 0 };

	for (int round = 0; round < 3; round++) {
		world.now_ns += 1000000000;
		world.rests = 0;
		for (uint64_t done = 0; done < RCD_PACE_BURST_NS; done += 25000)
			work(&world, 25000);
		CU_ASSERT_EQUAL(world.rests, 0);
	}
}

static void
no_rest_is_long(void)
{
	struct world world = { .now_ns = 0 };

	work(&world, 30000000000);
	CU_ASSERT_EQUAL(world.longest_ns, RCD_PACE_LONG_NS);
	work(&world, UINT64_MAX / 2);
	CU_ASSERT_EQUAL(world.longest_ns, RCD_PACE_LONG_NS);
	/* Nor does it follow from a clock that jumps. */
	(void)rcd_pace_spend(&world.pace, UINT64_MAX, UINT64_MAX);
	CU_ASSERT(rcd_pace_spend(&world.pace, 0, UINT64_MAX) <= RCD_PACE_LONG_NS);
	CU_ASSERT(rcd_pace_spend(&world.pace, UINT64_MAX, 0) <= RCD_PACE_LONG_NS);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(half_of_the_time),
		RCD_TEST(little_work_never_rests),
		RCD_TEST(a_burst_is_done_at_once),
		RCD_TEST(no_rest_is_long),
	};

	return rcd_tap_run("pace", tests, sizeof(tests) / sizeof(tests[0]));
}
