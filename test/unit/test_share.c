/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what rocade-bench says damage leaves of a rate is what it leaves, whatever the machine does
 * in a few of the turns. Method: rates of turns made up by hand.
 */
#include "rcd_tap.h"
#include "share.h"

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static struct share found;

static void
medians(void)
{
	double one[] = { 7 };
	double odd[] = { 9, 1, 5 };
	double even[] = { 8, 2, 4, 6 };

	CU_ASSERT_EQUAL(share_median(one, COUNT(one)), 7);
	CU_ASSERT_EQUAL(share_median(odd, COUNT(odd)), 5);
	CU_ASSERT_EQUAL(share_median(even, COUNT(even)), 5);
}

static void
compares_with_both_beside(void)
{
	static const double rates[] = { 100, 84, 110, 3, 110 };

	share_compare(rates, 3, &found);
	CU_ASSERT_TRUE(found.measured);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.8, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.rate, 105, 1e-9);
	/* What became of a last one that has none behind it is not known. */
	share_compare(rates, 4, &found);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.8, 1e-9);
}

/* A machine that slows down, and one that was away before or behind. */
static void
leaves_out_a_changed_machine(void)
{
	static const double rates[] = { 100, 90, 100, 5, 89, 5, 100, 5, 0, 5, 100, 90, 100 };

	share_compare(rates, COUNT(rates), &found);
	CU_ASSERT_TRUE(found.measured);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.9, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(found.rate, 100, 1e-9);
}

/* Which nobody can see from the turns beside. A mean would say 0.721. */
static void
few_bad_turns_say_little(void)
{
	static const double rates[] = { 100, 97, 100, 10, 100, 96, 100, 98, 100, 42, 100, 97, 100,
		40, 100, 97, 100 };

	share_compare(rates, COUNT(rates), &found);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.965, 1e-9);
}

static void
nothing_to_compare(void)
{
	static const double rates[] = { 100, 90, 80, 70, 60 };

	for (uint32_t count = 0; count <= COUNT(rates); count++) {
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

	for (uint32_t i = 0; i < COUNT(rates); i++)
		rates[i] = i % 2 ? 50 : 100;
	share_compare(rates, COUNT(rates), &found);
	CU_ASSERT_DOUBLE_EQUAL(found.share, 0.5, 1e-9);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(medians),
		RCD_TEST(compares_with_both_beside),
		RCD_TEST(leaves_out_a_changed_machine),
		RCD_TEST(few_bad_turns_say_little),
		RCD_TEST(nothing_to_compare),
		RCD_TEST(all_that_there_can_be),
	};

	return rcd_tap_run("share", tests, sizeof(tests) / sizeof(tests[0]));
}
