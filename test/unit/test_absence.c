/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what an lcore says of its absences is the longest of late, and nothing of those that are
 * rare or sleep. Method: looks on a clock of the test's, from the beginning of an epoch.
 */
#include <string.h>

#include "rcd_absence.h"
#include "rcd_tap.h"

#define EPOCH_NS (UINT64_C(1) << RCD_ABSENCE_EPOCH_LOG2)
#define US       UINT64_C(1000)
#define MS       UINT64_C(1000000)

static struct rcd_absence absence;
static uint64_t now_ns;

static void
begin(void)
{
	memset(&absence, 0, sizeof(absence));
	now_ns = 1000 * EPOCH_NS;
	rcd_absence_looked(&absence, now_ns);
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 0);
}

/* The next look is so much later. */
static void
look(uint64_t later_ns)
{
	now_ns += later_ns;
	rcd_absence_looked(&absence, now_ns);
}

/* Looks without a gap, up to the first of the next epoch. */
static void
stay(void)
{
	uint64_t epoch = now_ns / EPOCH_NS;

	while (now_ns / EPOCH_NS == epoch)
		look(RCD_ABSENCE_LEAST_NS - 1);
}

static void
rises_at_once(void)
{
	begin();
	look(3 * MS);
	look(2 * MS);
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 0);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 3 * MS);
	look(4 * MS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 4 * MS);
	/* One that begins in an epoch and ends in the next is of the first. */
	begin();
	while (now_ns % EPOCH_NS < EPOCH_NS - MS)
		look(RCD_ABSENCE_LEAST_NS - 1);
	look(5 * MS);
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 5 * MS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 5 * MS - 5 * MS / 8);
}

/* By an eighth in each epoch: a half in 0.17 s, an eighth is left after half a second. */
static void
falls_to_nothing(void)
{
	uint32_t last = 4 * MS;
	uint32_t epochs = 0;

	begin();
	look(last);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), last);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 3500 * US);
	while (rcd_absence_away(&absence) > 0 && ++epochs < 1000) {
		last = rcd_absence_away(&absence);
		stay();
		CU_ASSERT_TRUE(rcd_absence_away(&absence) < last);
		if (epochs == 14)
			CU_ASSERT_TRUE(last > 500 * US && last < 700 * US);
	}
	CU_ASSERT_TRUE(epochs < 200);
	/* A shorter absence holds it up, and does not have it rise. */
	begin();
	look(4 * MS);
	stay();
	look(3 * MS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 3500 * US);
	look(3400 * US);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 3400 * US);
}

/* A sixteenth of an epoch is 2097152 ns. */
static void
rare_ones_count_for_nothing(void)
{
	begin();
	for (uint32_t i = 0; i < 104; i++) {
		look(20000);
		look(1);
	}
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 0);
	for (uint32_t i = 0; i < 105; i++) {
		look(20000);
		look(1);
	}
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 20000);
	begin();
	look(2097151);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 0);
	look(2097152);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 2097152);
	/* What was rare before is no part of another epoch's. */
	begin();
	look(2 * MS);
	stay();
	look(MS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 0);
}

static void
long_ones_have_an_end(void)
{
	begin();
	look(30 * MS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), RCD_ABSENCE_MOST_NS);
	begin();
	look(UINT64_C(1) << 62);
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), RCD_ABSENCE_MOST_NS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), RCD_ABSENCE_MOST_NS * 7 / 8);
}

/* Of what was before them, epochs that nobody looked in leave as much as others. */
static void
epochs_slept_through(void)
{
	begin();
	look(8 * MS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 8 * MS);
	/* The one that it was in, and five more, which are a half. */
	now_ns += 6 * EPOCH_NS;
	rcd_absence_slept(&absence, now_ns);
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 3500 * US);
	/* Two more are two eighths. */
	now_ns += 3 * EPOCH_NS;
	rcd_absence_slept(&absence, now_ns);
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 2296875);
	/* However many they are: these would be as many halves as a number has bits. */
	now_ns += 161 * EPOCH_NS;
	rcd_absence_slept(&absence, now_ns);
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), RCD_ABSENCE_WAKE_NS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), RCD_ABSENCE_WAKE_NS * 7 / 8);
}

/* As long as waking takes, but all of it makes them frequent. */
static void
naps_are_short(void)
{
	begin();
	now_ns += 3 * MS;
	rcd_absence_slept(&absence, now_ns);
	look(0);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), RCD_ABSENCE_WAKE_NS);
	begin();
	for (uint32_t i = 0; i < 100; i++) {
		now_ns += 50 * US;
		rcd_absence_slept(&absence, now_ns);
	}
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 50 * US);
	/* One that ends at once, and few of them. */
	begin();
	for (uint32_t i = 0; i < 1000; i++) {
		now_ns += RCD_ABSENCE_LEAST_NS - 1;
		rcd_absence_slept(&absence, now_ns);
	}
	now_ns += 2 * MS;
	rcd_absence_slept(&absence, now_ns);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 0);
	/* Beside them an absence counts as long as it was. */
	now_ns += 2 * MS;
	rcd_absence_slept(&absence, now_ns);
	look(MS);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), MS);
}

/* The first look ends no absence, nor does one at the same time or, which is not to be, before. */
static void
time_stands_still(void)
{
	memset(&absence, 0, sizeof(absence));
	now_ns = 0;
	look(1000 * EPOCH_NS);
	for (uint32_t i = 0; i < 1000; i++) {
		look(0);
		rcd_absence_slept(&absence, now_ns);
	}
	rcd_absence_looked(&absence, now_ns - 1);
	rcd_absence_slept(&absence, now_ns - 2);
	look(0);
	stay();
	CU_ASSERT_EQUAL(rcd_absence_away(&absence), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(rises_at_once),
		RCD_TEST(falls_to_nothing),
		RCD_TEST(rare_ones_count_for_nothing),
		RCD_TEST(long_ones_have_an_end),
		RCD_TEST(epochs_slept_through),
		RCD_TEST(naps_are_short),
		RCD_TEST(time_stands_still),
	};

	return rcd_tap_run("absence", tests, sizeof(tests) / sizeof(tests[0]));
}
