/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The clock: what CLOCK_MONOTONIC was when it was first asked for, and the ticks since.
 */
#include "rcd_clock.h"

#include <rte_cycles.h>
#include <time.h>

static uint64_t clock_ahead_ns;

void
rcd_clock_advance(uint64_t ns)
{
	clock_ahead_ns += ns;
}

uint64_t
rcd_clock_ns(void)
{
	static uint64_t base_ns;
	static uint64_t base_tsc;
	static double ns_per_tick;
	uint64_t tsc;

	/* Set once, by the thread that creates the engine. */
	if (base_ns == 0) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		base_tsc = rte_rdtsc();
		ns_per_tick = 1e9 / (double)rte_get_tsc_hz();
		base_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	tsc = rte_rdtsc();
	return base_ns + clock_ahead_ns + (uint64_t)((double)(tsc - base_tsc) * ns_per_tick);
}
