/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what rocade-bench says an impaired network leaves of a rate is what it leaves, whatever the
 * machine does in a few of the turns. Method: rates of turns made up by hand.
 */
#include <math.h>

#include "rcd_bytes.h"
#include "rcd_tap.h"
#include "share.h"

static struct share found;

static void
medians(void)
{
	double one[] = { 7 };
	double odd[] = { 9, 1, 5 };
	double even[] = { 8, 2, 4, 6 };

	CU_ASSERT_EQUAL(share_median(one, RCD_ARRAY_COUNT(one)), 7);
	CU_ASSERT_EQUAL(share_median(odd, RCD_ARRAY_COUNT(odd)), 5);
	CU_ASSERT_EQUAL(share_median(even, RCD_ARRAY_COUNT(even)), 5);
}

static void
compares_with_both_beside(void)
{
	static const double rates[] = { 100, 84, 110, 3, 110 };

	share_compare(rates, 3, &found);
	CU_ASSERT_TRUE(found.measured);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.8, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.whole, 0.8, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.rate, 105, 1e-9);
	/* What became of a last one that has none behind it is not known. */
	share_compare(rates, 4, &found);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.8, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.whole, 0.8, 1e-9);
}

/* A machine that is slower or faster behind, or was away. */
static void
leaves_out_a_changed_machine(void)
{
	static const double changed[][3] = { { 100, 95, 89 }, { 89, 95, 100 }, { 100, 95, 0 },
		{ 0, 95, 100 }, { -100, 95, 100 }, { 100, 95, NAN }, { NAN, 95, 100 },
		{ INFINITY, 95, INFINITY } };
	static const double once[] = { 100, 90, 100, 5, 50, 5, 100, 90, 100 };

	for (uint32_t i = 0; i < RCD_ARRAY_COUNT(changed); i++) {
		found.measured = true;
		share_compare(changed[i], 3, &found);
		CU_ASSERT_FALSE(found.measured);
	}
	share_compare(once, RCD_ARRAY_COUNT(once), &found);
	CU_ASSERT_TRUE(found.measured);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.9, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.rate, 100, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.whole, 190.0 / 350, 1e-9);
}

/* Both medians are over the turns that are compared, and not of others. */
static void
rates_that_change_in_time(void)
{
	static const double rates[] = { 100, 90, 100, 120, 200, 160, 200, 150, 900, 630, 900 };

	share_compare(rates, RCD_ARRAY_COUNT(rates), &found);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.8, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.rate, 200, 1e-9);
}

/* Which nobody can see from the turns beside; by sums it shows. */
static void
few_bad_turns_say_little(void)
{
	static const double rates[] = { 100, 97, 100, 10, 100, 96, 100, 98, 100, 42, 100, 97, 100,
		40, 100, 97, 100 };

	share_compare(rates, RCD_ARRAY_COUNT(rates), &found);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.965, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.whole, 0.72125, 1e-9);
}

static void
nothing_to_compare(void)
{
	static const double rates[] = { 100, 90, 80, 70, 60 };

	for (uint32_t count = 0; count <= RCD_ARRAY_COUNT(rates); count++) {
		found = (struct share){ .measured = true };
		share_compare(rates, count, &found);
		CU_ASSERT_FALSE(found.measured);
	}
	share_compare((const double[]){ 0, 0, 0 }, 3, &found);
	CU_ASSERT_FALSE(found.measured);
}

/* As many as one run has at most. */
static void
all_that_there_can_be(void)
{
	static double rates[SHARE_TURNS_MAX];

	/* One turn less, and the median would be another. */
	for (uint32_t i = 0; i < RCD_ARRAY_COUNT(rates); i++)
		rates[i] = i % 2 == 0 ? 100 : i < RCD_ARRAY_COUNT(rates) / 2 ? 50 : 80;
	rates[1] = 60;
	share_compare(rates, RCD_ARRAY_COUNT(rates), &found);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.7, 1e-9);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(medians),
		RCD_TEST(compares_with_both_beside),
		RCD_TEST(leaves_out_a_changed_machine),
		RCD_TEST(rates_that_change_in_time),
		RCD_TEST(few_bad_turns_say_little),
		RCD_TEST(nothing_to_compare),
		RCD_TEST(all_that_there_can_be),
	};

	return rcd_tap_run("share", tests, sizeof(tests) / sizeof(tests[0]));
}
