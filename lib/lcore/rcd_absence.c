/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Absences of an lcore: what an epoch leaves of them.
 */
#include "rcd_absence.h"

/*
 * Absences that make up less of an epoch than one in so many are rare: of three round trips in a
 * row they delay one, and those who measure take the shortest.
 */
#define RARE_PART 16

/* It falls by one in so many at the end of an epoch, which makes a half of it in so many epochs. */
#define FALL_PART   8
#define HALF_EPOCHS 5

/* @return what is left of away_ns after so many epochs: about, if they are several */
static uint32_t
absence_fall(uint32_t away_ns, uint64_t epochs)
{
	uint32_t left = epochs % HALF_EPOCHS;

	if (epochs >= 32 * HALF_EPOCHS)
		return 0;
	away_ns >>= epochs / HALF_EPOCHS;
	/* Rounded up, or the last few would stay. */
	return away_ns - (away_ns * left + FALL_PART - 1) / FALL_PART;
}

/* The epoch of the last look is over. @param gap_ns  what it is away for in epochs slept through */
static void
absence_end_epoch(struct rcd_absence *absence, uint64_t epochs, uint32_t gap_ns)
{
	bool rare = absence->sum_ns < (UINT64_C(1) << RCD_ABSENCE_EPOCH_LOG2) / RARE_PART;
	uint32_t away_ns = absence_fall(absence->away_ns, 1);

	if (!rare && absence->longest_ns > away_ns)
		away_ns = absence->longest_ns;
	if (epochs > 1) {
		away_ns = absence_fall(away_ns, epochs - 1);
		if (gap_ns > away_ns)
			away_ns = gap_ns;
	}
	__atomic_store_n(&absence->away_ns, away_ns, __ATOMIC_RELAXED);
	absence->sum_ns = 0;
	absence->longest_ns = 0;
}

void
rcd_absence_note(struct rcd_absence *absence, uint64_t now_ns, bool slept)
{
	uint64_t gap_ns = now_ns - absence->looked_ns;
	uint64_t epochs =
		(now_ns >> RCD_ABSENCE_EPOCH_LOG2) - (absence->looked_ns >> RCD_ABSENCE_EPOCH_LOG2);
	uint64_t counts_ns = slept ? RCD_ABSENCE_WAKE_NS : RCD_ABSENCE_MOST_NS;

	if (absence->looked_ns == 0 || now_ns <= absence->looked_ns)
		return;
	if (gap_ns < RCD_ABSENCE_LEAST_NS)
		counts_ns = gap_ns = 0;
	if (gap_ns < counts_ns)
		counts_ns = gap_ns;
	absence->sum_ns += gap_ns;
	if (counts_ns > absence->longest_ns)
		absence->longest_ns = (uint32_t)counts_ns;
	if (epochs > 0)
		absence_end_epoch(absence, epochs, (uint32_t)counts_ns);
}
