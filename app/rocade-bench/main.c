/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * rocade-bench: EAL options, then its own; a timed run, or a prompt.
 */
#include <errno.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "eal_start.h"

#define CLOCK_SAMPLES 10001

volatile sig_atomic_t bench_stop;

static void
bench_main_on_signal(int signo)
{
	/* The second time it is meant. */
	if (bench_stop)
		_exit(128 + signo);
	bench_stop = 1;
}

static int
bench_main_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What reading the time-stamp counter twice shows when nothing is between: the median. */
static double
bench_main_measure_clock(void)
{
	static uint64_t samples[CLOCK_SAMPLES];
	uint64_t sum = 0;

	for (int i = 0; i < CLOCK_SAMPLES; i++) {
		uint64_t begin = rte_rdtsc();

		samples[i] = rte_rdtsc() - begin;
	}
	qsort(samples, CLOCK_SAMPLES, sizeof(samples[0]), bench_main_compare);
	/* It counts in steps on some processors: the mean of the middle half is finer. */
	for (int i = CLOCK_SAMPLES / 4; i < 3 * CLOCK_SAMPLES / 4; i++)
		sum += samples[i];
	return (double)sum / (3 * CLOCK_SAMPLES / 4 - CLOCK_SAMPLES / 4);
}

static int
bench_main_run_all(struct bench *bench)
{
	static struct bench_result results[BENCH_SIZES_MAX];
	uint32_t count = 0;
	int err = 0;

	while (count < bench->opts.size_count && err == 0 && !bench_stop) {
		bench->size = bench->opts.sizes[count];
		err = bench_run(bench, &results[count]);
		bench_report(bench, &results[count++]);
	}
	if (bench->opts.json != NULL && bench_report_json(bench, results, count) != 0)
		err = -EIO;
	return err;
}

static int
bench_main_run(struct bench *bench)
{
	struct sigaction action = { .sa_handler = bench_main_on_signal };
	int err;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	bench->clock_cycles = bench_main_measure_clock();
	err = bench_rig_init(bench);
	if (err == 0)
		err = bench_ceilings_init(bench);
	if (err == 0)
		err = bench_rig_connect(bench);
	if (err == 0) {
		bench->size = bench->opts.sizes[0];
		if (bench->opts.interactive)
			bench_prompt(bench);
		else
			err = bench_main_run_all(bench);
	}
	if (bench->engine != NULL)
		bench_rig_fini(bench);
	bench_ceilings_fini(bench);
	return err;
}

int
main(int argc, char **argv)
{
	static struct bench bench;
	struct eal_wish wish = { .program = "rocade-bench", .memory_mb = 512 };
	int split = 1;
	int err;

	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	/* What is asked of the program itself needs no "--" before it. */
	if (split == argc && argc > 1 && bench_opts_is_about(argv[1]))
		split = 0;
	bench_opts_init(&bench.opts);
	if (split < argc) {
		/* getopt takes the first for the program's name. */
		char *dashes = argv[split];

		argv[split] = argv[0];
		err = bench_opts_parse(&bench.opts, argc - split, argv + split);
		argv[split] = dashes;
		if (err != 0)
			return err > 0 ? 0 : 2;
	}
	wish.workers = bench_opts_workers(&bench.opts);
	if (eal_start(split, argv, &wish) != 0)
		return 1;
	if (wish.cores_shared)
		bench.opts.yield = true;
	err = bench_main_run(&bench);
	eal_end(&wish);
	return err != 0;
}
