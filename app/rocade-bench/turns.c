/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an impaired network leaves of the rate: in one run the network is impaired and not by turns.
 * Two processes differ by more than most impairments cost, in the memory that they are given and in
 * what the machine does meanwhile; turns of one have both in common.
 */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"

/* It decides for each packet, as the others do, and loses one of 2^32: the least there is. */
#define NEXT_TO_NOTHING "drop=0.00000003%%"

#define SETTLE_US 2000 /**< what was repaired or held back in the turn before has gone then */
#define LOOK_US   20000

/* Each turn has a seed of its own, or all would lose the same packets. */
static void
turns_impair(struct bench *bench, uint32_t turn)
{
	char args[sizeof(bench->opts.impair) + BENCH_SEED_LEN];

	if (turn % 2 == 0)
		snprintf(args, sizeof(args), NEXT_TO_NOTHING ",seed=%u", turn);
	else
		snprintf(args, sizeof(args), "%s,seed=%u", bench->opts.impair, turn);
	bench_rig_impair(bench, args);
	usleep(SETTLE_US);
}

/* @return false: the run has ended */
static bool
turns_wait(struct bench *bench, const struct bench_mark *from, struct bench_mark *to)
{
	uint64_t ns = (uint64_t)bench->opts.turn_ms * 1000000u;

	do {
		uint64_t left_us;

		bench_mark(bench, to);
		if (bench_stop || bench_check_failed(bench))
			return false;
		if (to->ns - from->ns >= ns)
			return true;
		left_us = (ns - (to->ns - from->ns)) / 1000 + 1;
		usleep((useconds_t)RTE_MIN(left_us, (uint64_t)LOOK_US));
	} while (true);
}

void
bench_turns(struct bench *bench, struct bench_rates *rates, struct bench_turns *turns)
{
	double bytes[2] = { 0 }, cores[2] = { 0 };
	struct bench_mark begin, from, to;
	uint32_t turn = 0;

	bench_mark(bench, &begin);
	/* The first and the last are without: what changes slowly is in both alike. */
	do {
		struct bench_rates now;

		turns_impair(bench, turn);
		bench_mark(bench, &from);
		if (!turns_wait(bench, &from, &to))
			break;
		bench_rates(bench, &from, &to, &now);
		bytes[turn % 2] += now.bytes * now.seconds;
		cores[turn % 2] += now.cores * now.seconds;
		turn++;
	} while (turn < 3 || turn % 2 == 0 ||
		(double)(to.ns - begin.ns) < bench->opts.seconds * 1e9);
	bench_rig_impair(bench, bench->opts.impair);
	bench_rates(bench, &begin, &to, rates);
	*turns = (struct bench_turns){ 0 };
	if (bytes[0] > 0 && cores[0] > 0 && cores[1] > 0) {
		turns->without = bytes[0] / cores[0];
		turns->share = bytes[1] / cores[1] / turns->without;
	}
}
