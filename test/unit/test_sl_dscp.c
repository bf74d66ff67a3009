/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a table of service levels says what its text says, and any other text is refused.
 * Method: every level of good tables, and tables of what is wrong.
 */
#include "rcd_bytes.h"
#include "rcd_sl_dscp.h"
#include "rcd_tap.h"

#define UNTOUCHED 99

static const struct {
	const char *text;
	uint8_t sl[4], dscp[4]; /* pairs, until both are 0 */
} good[] = {
	{ "" },
	{ "3:26", { 3 }, { 26 } },
	{ "0:1,15:63", { 0, 15 }, { 1, 63 } },
	{ "3:26, 5:46 7:8", { 3, 5, 7 }, { 26, 46, 8 } },
};

static void
what_it_says(void)
{
	for (size_t i = 0; i < RCD_ARRAY_COUNT(good); i++)
		for (int sl = 0; sl <= UINT8_MAX; sl++) {
			uint8_t dscp = UNTOUCHED, wanted = UNTOUCHED;

			for (size_t k = 0; k < 4 && good[i].dscp[k] != 0; k++)
				if (good[i].sl[k] == sl)
					wanted = good[i].dscp[k];
			CU_ASSERT_PTR_NULL(rcd_dscp_of_sl(good[i].text, (uint8_t)sl, &dscp));
			CU_ASSERT_EQUAL(dscp, wanted);
		}
}

static void
all_levels(void)
{
	static const char text[] = "0:48,1:49,2:50,3:51,4:52,5:53,6:54,7:55,8:56,9:57,10:58,11:59,"
				   "12:60,13:61,14:62,15:63";

	for (uint8_t sl = 0; sl <= 15; sl++) {
		uint8_t dscp = UNTOUCHED;

		CU_ASSERT_PTR_NULL(rcd_dscp_of_sl(text, sl, &dscp));
		CU_ASSERT_EQUAL(dscp, 48 + sl);
	}
}

static void
what_is_wrong(void)
{
	static const char *const bad[] = { "16:1", "3:64", "4294967299:1", "3:4294967322", "-1:1",
		"3:-1", "3", "3:", ":26", "3:26,", "3:26 ", ",", " ", " 3:26", "3:26,,",
		"3:26;5:46", "3:af31", "3 :26", "3: 26", "3:26,3:26", "3:26,5:46,3:0", "none",
		"3=26", "3:00000000000000000000000000000001", "\xff:1", "3:26\n" };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(bad); i++)
		CU_ASSERT_PTR_NOT_NULL(rcd_dscp_of_sl(bad[i], 3, NULL));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_it_says),
		RCD_TEST(all_levels),
		RCD_TEST(what_is_wrong),
	};

	return rcd_tap_run("sl_dscp", tests, RCD_ARRAY_COUNT(tests));
}
