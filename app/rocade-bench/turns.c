/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an impaired network leaves of the rate: in one run the network is impaired and not by turns.
 * Two processes differ by more than most impairments cost, in the memory that they are given and in
 * what the machine does meanwhile; turns of one have both in common.
 *
 * They have the queue pairs in common as well: what those know of the way, and windows that a heavy
 * loss closed, go on into the next turn. So this is for what is lost or late now and then, and not
 * for a way that is another in each turn.
 */
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* It decides for each packet, as others do, and loses one of 2^32: the least there is. */
#define NEXT_TO_NOTHING "drop=0.00000003%"

/* What was repaired or held back in the turn before has gone then: so long, or a share of it. */
#define SETTLE_US_LEAST 2000
#define SETTLE_SHARE    10

#define LOOK_US 20000

/* What the user gave, or 1, in the upper half: each turn has a seed of its own, in all rounds. */
static uint64_t
turns_seed(const struct bench *bench)
{
	static uint32_t turns;
	const char *said = strstr(bench->opts.impair, "seed=");
	uint32_t base = said != NULL ? (uint32_t)strtoul(said + strlen("seed="), NULL, 0) : 1;

	return (uint64_t)base << 32 | ++turns;
}

static int
turns_impair(struct bench *bench, bool impaired)
{
	char args[sizeof(bench->opts.impair) + BENCH_SEED_LEN];
	int err;

	snprintf(args, sizeof(args), "%s,seed=%llu",
		impaired ? bench->opts.impair : NEXT_TO_NOTHING,
		(unsigned long long)turns_seed(bench));
	err = bench_rig_impair(bench, args);
	bench->failed |= err != 0;
	usleep(RTE_MAX(bench->opts.turn_ms * 1000 / SETTLE_SHARE, (uint32_t)SETTLE_US_LEAST));
	return err;
}

/* @return false: the run has ended */
static bool
turns_wait(struct bench *bench, const struct bench_mark *from, struct bench_mark *to)
{
	uint64_t ns = (uint64_t)bench->opts.turn_ms * 1000000u;

	for (;;) {
		uint64_t left_us;

		bench_mark(bench, to);
		if (bench_stop || bench_check_failed(bench))
			return false;
		if (to->ns - from->ns >= ns)
			return true;
		left_us = (ns - (to->ns - from->ns)) / 1000 + 1;
		usleep((useconds_t)RTE_MIN(left_us, (uint64_t)LOOK_US));
	}
}

void
bench_turns(struct bench *bench, struct bench_rates *rates, struct share *turns)
{
	static double turn_rates[SHARE_TURNS_MAX];
	struct bench_mark begin, from, to;
	uint32_t turn = 0;
	bool goes_on;

	bench_mark(bench, &begin);
	do {
		struct bench_rates now;

		goes_on = turns_impair(bench, turn % 2 == 1) == 0;
		bench_mark(bench, &from);
		goes_on = goes_on && turns_wait(bench, &from, &to);
		bench_mark(bench, &to);
		bench_rates(bench, &from, &to, &now);
		turn_rates[turn++] =
			now.cores > 0 ? now.bytes / now.cores * bench->worker_count : 0;
	} while (goes_on && turn < SHARE_TURNS_MAX &&
		(turn < 3 || turn % 2 == 0 ||
			(double)(to.ns - begin.ns) < bench->opts.seconds * 1e9));
	if (bench_rig_impair(bench, bench->opts.impair) != 0)
		goes_on = false;
	bench_rates(bench, &begin, &to, rates);
	turns->measured = false;
	if (goes_on)
		share_compare(turn_rates, turn, turns);
}
