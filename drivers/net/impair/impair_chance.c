/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Probabilities and distributions of the impairment driver.
 */
#include "impair_chance.h"

#include <math.h>

/* So many numbers that are alike in [0, 1) have the variance 1 in sum. */
#define NORMAL_TERMS 12

static bool
impair_chance_hit(uint64_t threshold, struct rcd_sequence *sequence)
{
	return threshold != 0 && rcd_sequence_next(sequence) >> 32 < threshold;
}

uint32_t
impair_chance_decide(const struct impair_args *args, struct rcd_sequence *sequence)
{
	uint32_t set = 0;

	for (int kind = 0; kind < IMPAIR_KINDS; kind++) {
		if (!impair_chance_hit(args->threshold[kind], sequence))
			continue;
		set |= 1u << kind;
		/* Nothing more happens to it; and it waits for one thing only. */
		if (kind == IMPAIR_DROP || kind == IMPAIR_REORDER)
			break;
	}
	return set;
}

bool
impair_chance_burst(const struct impair_args *args, struct impair_burst *burst,
	struct rcd_sequence *sequence, uint64_t *began)
{
	bool lost, turn;

	if (args->ge_p == 0)
		return false;
	lost = impair_chance_hit(burst->bad ? args->ge_bad : args->ge_good, sequence);
	turn = impair_chance_hit(burst->bad ? args->ge_r : args->ge_p, sequence);
	if (turn || (burst->bad && ++burst->length == args->ge_max)) {
		burst->bad = !burst->bad;
		burst->length = 0;
		*began += burst->bad;
	}
	return lost;
}

/* In (0, 1]: a Pareto distribution divides by it. */
static double
impair_chance_uniform(struct rcd_sequence *sequence)
{
	return (double)((rcd_sequence_next(sequence) >> 11) + 1) * 0x1p-53;
}

uint32_t
impair_chance_delay_us(const struct impair_args *args, struct rcd_sequence *sequence)
{
	double us = args->delay_us, spread = 0;

	switch (args->delay_dist) {
	case IMPAIR_DIST_CONSTANT:
		return args->delay_us;
	case IMPAIR_DIST_UNIFORM:
		spread = 2 * impair_chance_uniform(sequence) - 1;
		break;
	case IMPAIR_DIST_NORMAL:
		for (int i = 0; i < NORMAL_TERMS; i++)
			spread += impair_chance_uniform(sequence);
		spread -= NORMAL_TERMS / 2.0;
		break;
	case IMPAIR_DIST_PARETO:
		spread = 1 / sqrt(impair_chance_uniform(sequence)) - 1;
		break;
	case IMPAIR_DISTS:
		break;
	}
	us += spread * args->jitter_us;
	if (us < args->delay_min_us)
		return args->delay_min_us;
	return us > args->delay_max_us ? args->delay_max_us : (uint32_t)us;
}
