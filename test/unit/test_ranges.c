/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what is free is known exactly, whatever was taken and given back in whatever order. Method:
 * a table of steps with the list that must come of each, and random steps beside a map of single
 * numbers.
 */
#include "rcd_ranges.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_tap.h"

#define MAP 512

/* One step, and what is free behind it. */
struct step {
	char op; /**< 'g' give, 't' take */
	uint64_t start;
	uint64_t len;
	uint32_t count;
	struct rcd_range list[4];
};

static void
steps(void)
{
	static const struct step table[] = {
		{ 't', RCD_RANGES_NONE, 1, 0, { { 0, 0 } } },
		{ 'g', 100, 50, 1, { { 100, 50 } } },
		/* Neighbours on neither side, one side, the other, both. */
		{ 'g', 0, 10, 2, { { 0, 10 }, { 100, 50 } } },
		{ 'g', 10, 5, 2, { { 0, 15 }, { 100, 50 } } },
		{ 'g', 90, 10, 2, { { 0, 15 }, { 90, 60 } } },
		{ 'g', 200, 10, 3, { { 0, 15 }, { 90, 60 }, { 200, 10 } } },
		{ 'g', 150, 50, 2, { { 0, 15 }, { 90, 120 } } },
		/* The first that is long enough, from its start; all of one. */
		{ 't', 90, 16, 2, { { 0, 15 }, { 106, 104 } } },
		{ 't', 0, 15, 1, { { 106, 104 } } },
		{ 't', RCD_RANGES_NONE, 105, 1, { { 106, 104 } } },
		{ 't', 106, 104, 0, { { 0, 0 } } },
		{ 't', RCD_RANGES_NONE, 1, 0, { { 0, 0 } } },
		/* The last numbers that there are. */
		{ 'g', UINT64_MAX - 10, 10, 1, { { UINT64_MAX - 10, 10 } } },
		{ 'g', 0, 1, 2, { { 0, 1 }, { UINT64_MAX - 10, 10 } } },
		{ 't', UINT64_MAX - 10, 9, 2, { { 0, 1 }, { UINT64_MAX - 1, 1 } } },
	};
	struct rcd_ranges ranges = { .list = NULL };

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct step *step = &table[i];
		uint64_t sum = 0;

		if (step->op == 'g') {
			CU_ASSERT_EQUAL(rcd_ranges_give(&ranges, step->start, step->len), 0);
		} else {
			CU_ASSERT_EQUAL(rcd_ranges_take(&ranges, step->len), step->start);
		}
		CU_ASSERT_EQUAL_FATAL(ranges.count, step->count);
		for (uint32_t k = 0; k < step->count; k++) {
			CU_ASSERT_EQUAL(ranges.list[k].start, step->list[k].start);
			CU_ASSERT_EQUAL(ranges.list[k].len, step->list[k].len);
			sum += step->list[k].len;
		}
		CU_ASSERT_EQUAL(rcd_ranges_sum(&ranges), sum);
	}
	rcd_ranges_fini(&ranges);
	CU_ASSERT_EQUAL(ranges.count, 0);
}

/* The list is what the map says: sorted, and no two ranges touch. */
static bool
same(const struct rcd_ranges *ranges, const bool *is_free)
{
	bool listed[MAP] = { false };
	uint64_t behind = 0;

	for (uint32_t i = 0; i < ranges->count; i++) {
		const struct rcd_range *range = &ranges->list[i];

		if (range->len == 0 || (i > 0 && range->start <= behind) ||
			range->start + range->len > MAP)
			return false;
		behind = range->start + range->len;
		for (uint64_t k = range->start; k < behind; k++)
			listed[k] = true;
	}
	return memcmp(listed, is_free, sizeof(listed)) == 0;
}

/* Where the first run of so many begins. */
static uint64_t
first_of(const bool *is_free, uint64_t len)
{
	for (uint64_t start = 0, run = 0; start < MAP; start++) {
		run = is_free[start] ? run + 1 : 0;
		if (run == len)
			return start + 1 - len;
	}
	return RCD_RANGES_NONE;
}

static void
beside_a_map(void)
{
	struct {
		uint64_t start, len;
	} taken[MAP];
	bool is_free[MAP];
	struct rcd_ranges ranges;
	uint32_t count = 0;

	memset(is_free, 1, sizeof(is_free));
	CU_ASSERT_EQUAL_FATAL(rcd_ranges_init(&ranges, 1), 0);
	CU_ASSERT_EQUAL(rcd_ranges_give(&ranges, 0, MAP), 0);
	srand(11);
	for (int i = 0; i < 20000; i++) {
		if (rand() % 2 == 0) {
			uint64_t len = 1 + (uint64_t)rand() % 24;
			uint64_t start = rcd_ranges_take(&ranges, len);

			CU_ASSERT_EQUAL_FATAL(start, first_of(is_free, len));
			if (start == RCD_RANGES_NONE)
				continue;
			memset(&is_free[start], 0, len);
			taken[count].start = start;
			taken[count++].len = len;
		} else if (count > 0) {
			uint32_t which = (uint32_t)rand() % count;

			rcd_ranges_give(&ranges, taken[which].start, taken[which].len);
			memset(&is_free[taken[which].start], 1, taken[which].len);
			taken[which] = taken[--count];
		}
		CU_ASSERT_FATAL(same(&ranges, is_free));
	}
	rcd_ranges_fini(&ranges);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(steps),
		RCD_TEST(beside_a_map),
	};

	return rcd_tap_run("ranges", tests, sizeof(tests) / sizeof(tests[0]));
}
