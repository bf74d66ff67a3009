/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The loop of an EAL worker: poll the engine, the application's parts, or a ceiling, as the phase
 * says.
 */
#include <errno.h>
#include <rte_cycles.h>
#include <rte_pause.h>
#include <sched.h>
#include <unistd.h>

#include "bench.h"
#include "rcd_clock.h"
#include "rcd_poll.h"

#define SPIN_ROUNDS    64    /**< without work, before others may run */
#define PAUSE_ROUNDS   20000 /**< likewise between runs, before a sleep */
#define DRAIN_LIMIT_NS 20000000000u

static uint32_t
worker_poll_part(struct bench_part *part, enum bench_phase phase)
{
	switch (phase) {
	case BENCH_LOAD:
		return bench_load_poll(part, true);
	case BENCH_PAUSE:
		return bench_load_poll(part, false);
	case BENCH_PINGPONG:
		return bench_pingpong_poll(part);
	case BENCH_OFF:
	case BENCH_IO:
	case BENCH_MACSWAP:
	case BENCH_COPY:
	case BENCH_RELAY:
		break;
	}
	return 0;
}

static bool
worker_is_ceiling(enum bench_phase phase)
{
	return phase >= BENCH_IO;
}

int
bench_worker_main(void *arg)
{
	struct bench_worker *worker = arg;
	struct bench *bench = worker->bench;
	uint32_t empty = 0;

	pthread_getcpuclockid(pthread_self(), &worker->clock);
	for (;;) {
		enum bench_phase phase = __atomic_load_n(&bench->phase, __ATOMIC_ACQUIRE);
		uint32_t done = 0;

		if (worker->lcore != NULL ? rcd_lcore_stopping(worker->lcore)
					  : __atomic_load_n(&bench->quit, __ATOMIC_RELAXED))
			return 0;
		__atomic_store_n(&worker->seen, (uint32_t)phase, __ATOMIC_RELEASE);
		if (worker_is_ceiling(phase)) {
			bench_ceiling_main(worker, phase);
			continue;
		}
		if (worker->lcore != NULL)
			done = rcd_lcore_poll(worker->lcore, rcd_clock_ns(), bench->opts.burst);
		for (uint32_t i = 0; i < worker->part_count; i++)
			done += worker_poll_part(worker->parts[i], phase);
		if (done > 0)
			empty = 0;
		else if (phase <= BENCH_PAUSE && ++empty > PAUSE_ROUNDS)
			usleep(100);
		else if (bench->opts.yield && ++empty > SPIN_ROUNDS)
			sched_yield();
		else
			rte_pause();
	}
}

void
bench_phase_set(struct bench *bench, enum bench_phase phase)
{
	__atomic_store_n(&bench->phase, (uint32_t)phase, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < bench->worker_count; i++)
		while (__atomic_load_n(&bench->workers[i].seen, __ATOMIC_ACQUIRE) != phase)
			sched_yield();
}

static bool
worker_is_drained(const struct bench_part *part)
{
	for (uint32_t i = 0; i < part->qp_count; i++)
		if (rcd_cl_room(&part->qps[i].cl.sq) != part->qps[i].cl.sq.mask + 1)
			return false;
	return true;
}

int
bench_drain(struct bench *bench)
{
	uint64_t limit_ns = rcd_clock_ns() + DRAIN_LIMIT_NS;
	bool drained = false;

	bench_phase_set(bench, BENCH_PAUSE);
	while (!drained && rcd_clock_ns() < limit_ns) {
		drained = true;
		for (uint32_t side = 0; side < 2; side++)
			for (uint32_t i = 0; i < bench->part_count; i++)
				drained &= worker_is_drained(&bench->parts[side][i]);
		if (!drained)
			usleep(1000);
	}
	/* The last completions are shown after the slots. */
	usleep(2000);
	return drained ? 0 : -ETIMEDOUT;
}
