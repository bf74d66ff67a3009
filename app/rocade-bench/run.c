/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Timed runs: some rounds of a size, ceilings between them, medians of all; then a short time in
 * which the stages are measured, since that costs a little itself.
 */
#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "rcd_clock.h"

#define WARM_UP_US 200000
#define ROUNDS_MAX 1000

static const char *const status_names[] = { "success", "local length error",
	"local QP operation error", "local EEC operation error", "local protection error",
	"flushed", "memory window bind error", "bad response", "local access error",
	"remote invalid request", "remote access error", "remote operation error",
	"retry count exceeded", "RNR retry count exceeded" };

void
bench_mark(struct bench *bench, struct bench_mark *mark)
{
	*mark = (struct bench_mark){ .ns = rcd_clock_ns() };
	for (uint32_t i = 0; i < bench->worker_count; i++) {
		struct timespec had = { 0 };

		clock_gettime(bench->workers[i].clock, &had);
		mark->cores_ns += (uint64_t)had.tv_sec * 1000000000u + (uint64_t)had.tv_nsec;
	}
	for (uint32_t side = 0; side < 2; side++) {
		char name[16];

		snprintf(name, sizeof(name), "bench%u", side);
		mark->packets += rcd_engine_dev_count(bench->engine, name, RCD_COUNTER_TX_PACKETS) +
			rcd_engine_dev_count(bench->engine, name, RCD_COUNTER_TX_LOOPBACK);
		mark->again +=
			rcd_engine_dev_count(bench->engine, name, RCD_COUNTER_RETRANSMITTED_PKTS);
		for (uint32_t i = 0; i < bench->part_count; i++) {
			const struct bench_stats *stats = &bench->parts[side][i].stats;

			mark->completed += __atomic_load_n(&stats->completed, __ATOMIC_RELAXED);
			mark->received += __atomic_load_n(&stats->received, __ATOMIC_RELAXED);
		}
	}
}

void
bench_rates(const struct bench *bench, const struct bench_mark *from, const struct bench_mark *to,
	struct bench_rates *rates)
{
	double seconds = (double)(to->ns - from->ns) / 1e9;

	*rates = (struct bench_rates){ .seconds = seconds };
	if (seconds <= 0)
		return;
	rates->messages = (double)(to->completed - from->completed) / seconds;
	rates->received = (double)(to->received - from->received) / seconds;
	rates->bytes = rates->messages * bench->size;
	/* What an unreliable service sent may not have arrived. */
	if (bench->opts.service != RCD_QP_RC && bench->opts.op != BENCH_WRITE)
		rates->bytes = rates->received * bench->size;
	rates->packets = (double)(to->packets - from->packets) / seconds;
	rates->cores = (double)(to->cores_ns - from->cores_ns) / 1e9 / seconds;
}

bool
bench_check_failed(struct bench *bench)
{
	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < bench->part_count; i++) {
			const struct bench_stats *stats = &bench->parts[side][i].stats;
			uint32_t status = __atomic_load_n(&stats->failed, __ATOMIC_ACQUIRE);

			if (status == 0)
				continue;
			if (!bench->failed)
				fprintf(stderr, "rocade-bench: QP %u of side %c: %s\n",
					stats->failed_qp, 'a' + (int)side,
					status < RTE_DIM(status_names) ? status_names[status]
								       : "unknown status");
			bench->failed = true;
			return true;
		}
	}
	return false;
}

static void
run_live_line(double since, const struct bench_rates *rates, bool last)
{
	bool tty = isatty(STDOUT_FILENO);

	printf("%s%6.1f s %10.3f M msg/s %12.2f MB/s %10.3f M pkt/s%s", tty ? "\r" : "", since,
		rates->messages / 1e6, rates->bytes / 1e6, rates->packets / 1e6,
		tty && !last ? "" : "\n");
	fflush(stdout);
}

/* Let it run, with a line each second. @return rates of the whole time */
static struct bench_rates
run_watch(struct bench *bench, double seconds, bool live)
{
	struct bench_mark begin, last, now;
	struct bench_rates rates;
	double gone;

	bench_mark(bench, &begin);
	last = begin;
	do {
		usleep(20000);
		bench_mark(bench, &now);
		gone = (double)(now.ns - begin.ns) / 1e9;
		if (live && (now.ns - last.ns >= 1000000000u || gone >= seconds)) {
			bench_rates(bench, &last, &now, &rates);
			run_live_line(gone, &rates, gone >= seconds);
			last = now;
		}
	} while (gone < seconds && !bench_stop && !bench_check_failed(bench));
	bench_rates(bench, &begin, &now, &rates);
	return rates;
}

static int
run_prepare(struct bench *bench)
{
	int err = bench_drain(bench);

	for (uint32_t side = 0; err == 0 && side < 2; side++)
		for (uint32_t i = 0; err == 0 && i < bench->part_count; i++)
			err = bench_load_prepare(&bench->parts[side][i]);
	if (err == 0 && bench->opts.latency)
		bench_pingpong_prepare(bench);
	if (err != 0)
		fprintf(stderr, "rocade-bench: %s\n", strerror(-err));
	return err;
}

int
bench_start(struct bench *bench)
{
	int err = run_prepare(bench);

	if (err == 0)
		bench_phase_set(bench, bench->opts.latency ? BENCH_PINGPONG : BENCH_LOAD);
	return err;
}

static void
run_measure_on(struct rcd_engine *engine, void *arg)
{
	struct rcd_stages *stages = arg;

	for (uint32_t i = 0; i < rcd_engine_lcore_count(engine); i++)
		rcd_engine_measure(engine, i, stages != NULL ? &stages[i] : NULL);
}

/* Where the cycles of a message go. */
static int
run_stages(struct bench *bench, struct bench_result *result)
{
	static struct rcd_stages stages[BENCH_WORKERS_MAX];
	struct bench_rates rates;
	int err;

	memset(stages, 0, sizeof(stages));
	err = bench_start(bench);
	if (err != 0)
		return err;
	usleep(WARM_UP_US / 4);
	bench_control_call(bench, run_measure_on, stages);
	rates = run_watch(bench, BENCH_STAGE_SECONDS, false);
	bench_control_call(bench, run_measure_on, NULL);
	if (rates.messages <= 0)
		return 0;
	for (int k = 0; k < RCD_STAGE_COUNT; k++) {
		double cycles = 0;

		for (uint32_t i = 0; i < rcd_engine_lcore_count(bench->engine); i++)
			cycles += (double)stages[i].cycles[k] -
				(double)stages[i].marks[k] * bench->clock_cycles;
		result->stages[k] = cycles / (rates.messages * rates.seconds);
		result->stage_sum += result->stages[k];
	}
	result->has_stages = true;
	return 0;
}

/* The members of a result that rounds are medians of. */
enum {
	MESSAGES,
	RECEIVED,
	BYTES,
	PACKETS,
	SECONDS,
	CORES,
	IO,
	MACSWAP,
	COPY,
	RELAY,
	TURNS_SHARE,
	TURNS_RATE,
	TURNS_WHOLE,
	KINDS
};

static void
run_take_medians(struct bench *bench, double vals[KINDS][ROUNDS_MAX], uint32_t rounds,
	struct bench_result *result)
{
	double *const members[KINDS] = {
		&result->messages,
		&result->received,
		&result->bytes,
		&result->packets,
		&result->seconds,
		&result->cores,
		&result->ceilings.io_pps,
		&result->ceilings.macswap_pps,
		&result->ceilings.copy_bps,
		&result->ceilings.relay_ns,
		&result->turns.share,
		&result->turns.rate,
		&result->turns.whole,
	};

	for (int i = 0; i < TURNS_SHARE; i++)
		*members[i] = share_median(vals[i], rounds);
	for (int i = TURNS_SHARE; i < KINDS && result->turn_rounds > 0; i++)
		*members[i] = share_median(vals[i], result->turn_rounds);
	if (result->messages > 0)
		result->cycles = (double)rte_get_tsc_hz() * rcd_engine_lcore_count(bench->engine) /
			result->messages;
}

/* Adds what both devices counted, or takes it away: a pair of calls adds what lies between. */
static void
run_count(const struct bench *bench, bool add, uint64_t *counters)
{
	for (uint32_t side = 0; side < 2; side++) {
		char name[16];

		snprintf(name, sizeof(name), "bench%u", side);
		for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
			uint64_t count =
				rcd_engine_dev_count(bench->engine, name, (enum rcd_counter)i);

			counters[i] += add ? count : -count;
		}
	}
}

static int
run_round(struct bench *bench, struct bench_result *result, struct bench_rates *rates,
	struct share *turns)
{
	struct bench_mark before, after;
	int err = bench_start(bench);

	if (err != 0)
		return err;
	bench_mark(bench, &before);
	run_count(bench, false, result->counters);
	usleep(WARM_UP_US);
	if (bench->opts.turn_ms != 0)
		bench_turns(bench, rates, turns);
	else
		*rates = run_watch(bench, bench->opts.seconds, true);
	bench_mark(bench, &after);
	run_count(bench, true, result->counters);
	result->sent_again += after.again - before.again;
	if (bench->failed)
		return -EIO;
	err = bench_drain(bench);
	if (err != 0 && !bench_stop)
		fprintf(stderr, "rocade-bench: what is under way does not end\n");
	if (bench->opts.latency)
		hist_merge(&result->hist, &bench->parts[0][0].hist);
	return bench_stop ? 0 : err;
}

int
bench_run(struct bench *bench, struct bench_result *result)
{
	static double vals[KINDS][ROUNDS_MAX];
	uint32_t round = 0;
	int err = 0;

	memset(result, 0, sizeof(*result));
	result->size = bench->size;
	while (round < bench->opts.rounds && err == 0 && !bench_stop) {
		struct bench_ceilings ceilings = { 0 };
		struct bench_rates rates = { 0 };
		struct share turns = { 0 };

		if (bench->opts.ceilings)
			bench_ceilings_run(bench, &ceilings);
		err = run_round(bench, result, &rates, &turns);
		vals[MESSAGES][round] = rates.messages;
		vals[RECEIVED][round] = rates.received;
		vals[BYTES][round] = rates.bytes;
		vals[PACKETS][round] = rates.packets;
		vals[SECONDS][round] = rates.seconds;
		vals[CORES][round] = rates.cores;
		vals[IO][round] = ceilings.io_pps;
		vals[MACSWAP][round] = ceilings.macswap_pps;
		vals[COPY][round] = ceilings.copy_bps;
		vals[RELAY][round] = ceilings.relay_ns;
		if (turns.measured) {
			vals[TURNS_SHARE][result->turn_rounds] = turns.share;
			vals[TURNS_RATE][result->turn_rounds] = turns.rate;
			vals[TURNS_WHOLE][result->turn_rounds++] = turns.whole;
		}
		round++;
	}
	if (round == 0)
		return err;
	run_take_medians(bench, vals, round, result);
	result->has_ceilings = bench->opts.ceilings;
	result->has_latency = bench->opts.latency;
	if (err == 0 && !bench->opts.latency && !bench_stop)
		err = run_stages(bench, result);
	return err != 0 ? err : bench_stop ? 0 : bench_drain(bench);
}
