/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the histogram of rocade-bench tells quantiles to within 0.8 %. Method: known values, at the
 * ends of what fits and of each octave.
 */
#include "hist.h"
#include "rcd_tap.h"

static struct hist hist, other;

static void
nothing_in_it(void)
{
	memset(&hist, 0, sizeof(hist));
	CU_ASSERT_EQUAL(hist_quantile(&hist, 0.5), 0);
	hist_merge(&hist, &other);
	CU_ASSERT_EQUAL(hist.count, 0);
}

/* One value alone is told exactly: it is smallest and largest. */
static void
each_octave(void)
{
	for (int bit = 0; bit < 63; bit++) {
		for (int delta = -1; delta <= 1; delta++) {
			uint64_t val = (UINT64_C(1) << bit) + (uint64_t)(int64_t)delta;

			memset(&hist, 0, sizeof(hist));
			hist_add(&hist, val);
			CU_ASSERT_EQUAL(hist_quantile(&hist, 0), val);
			CU_ASSERT_EQUAL(hist_quantile(&hist, 1), val);
		}
	}
	memset(&hist, 0, sizeof(hist));
	hist_add(&hist, UINT64_MAX);
	CU_ASSERT_EQUAL(hist_quantile(&hist, 1), INT64_MAX);
}

static void
quantiles_are_near(void)
{
	static const double shares[] = { 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999 };
	const uint64_t count = 100000, scale = 977;

	memset(&hist, 0, sizeof(hist));
	for (uint64_t i = 1; i <= count; i++)
		hist_add(&hist, i * scale);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		double exact = shares[i] * (double)count * (double)scale;
		double told = (double)hist_quantile(&hist, shares[i]);

		CU_ASSERT(told >= exact * 0.9999);
		CU_ASSERT(told <= exact * 1.0079);
	}
	CU_ASSERT_EQUAL(hist.min, scale);
	CU_ASSERT_EQUAL(hist_quantile(&hist, 1), count * scale);
}

static void
merged_is_as_added(void)
{
	static struct hist whole;

	memset(&hist, 0, sizeof(hist));
	memset(&other, 0, sizeof(other));
	memset(&whole, 0, sizeof(whole));
	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t val = i * i * 31 % 1000003;

		hist_add(i % 3 ? &hist : &other, val);
		hist_add(&whole, val);
	}
	hist_merge(&hist, &other);
	CU_ASSERT_EQUAL(memcmp(&hist, &whole, sizeof(hist)), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(nothing_in_it),
		RCD_TEST(each_octave),
		RCD_TEST(quantiles_are_near),
		RCD_TEST(merged_is_as_added),
	};

	return rcd_tap_run("hist", tests, sizeof(tests) / sizeof(tests[0]));
}
