/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what all clients together may have leaves something to the engine and to the machine.
 * Method: the totals that the engine measures, beside what the machine and the process have.
 */
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rcd_capacity.h"
#include "rcd_closer.h"
#include "rcd_tap.h"

#define LIMIT 1024
#define OWN   100 /**< descriptors of the engine, at least */

static uint64_t
ram(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
memory_is_kept(void)
{
	const struct rcd_quota user = { .shared_bytes = 0 };
	struct rcd_quota total;

	rcd_capacity_measure(1, 1, &user, &total);
	CU_ASSERT(total.shared_bytes > 0 && total.queue_bytes > 0);
	CU_ASSERT(total.shared_bytes + total.queue_bytes <= ram() - ram() / 16);
}

/* Who knows better has its way. */
static void
more_memory(void)
{
	const struct rcd_quota user = { .shared_bytes = ram() };
	struct rcd_quota total;

	rcd_capacity_measure(1, 1, &user, &total);
	CU_ASSERT_EQUAL(total.shared_bytes, 2 * ram());
}

static void
descriptors_are_kept(void)
{
	const struct rlimit limit = { LIMIT, LIMIT };
	const struct rcd_quota user = { .shared_bytes = 0 };
	struct rcd_quota total;

	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
	rcd_capacity_measure(1, 1, &user, &total);
	CU_ASSERT(total.descriptors > 1);
	CU_ASSERT(total.descriptors + RCD_CLOSER_OVER + RCD_CLOSER_MESSAGE + OWN < LIMIT);
}

/* Whatever is added, it has what it takes; a small limit leaves some to clients all the same. */
static void
devices_have_descriptors(void)
{
	static const struct {
		uint64_t limit;
		uint32_t lcores;
		uint64_t kept; /* 4 and 5 of each lcore, 32 times; or a quarter */
	} of[] = { { 4096, 1, 288 }, { 4096, 5, 928 }, { 4096, 16, 1024 }, { LIMIT, 2, 256 } };
	const struct rcd_quota user = { .shared_bytes = 0 };
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct rcd_quota none, total;

		CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
		limit.rlim_cur = limit.rlim_max = of[i].limit;
		CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
		rcd_capacity_measure(1, 0, &user, &none);
		rcd_capacity_measure(1, of[i].lcores, &user, &total);
		/* Without an lcore they have 4 each. */
		CU_ASSERT_EQUAL(none.descriptors - total.descriptors, of[i].kept - 4 * 32);
		CU_ASSERT(total.descriptors > 1);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "H5 shared memory and queues leave some to the machine", memory_is_kept },
		{ "H5 a user may be given more", more_memory },
		{ "S15 devices leave clients descriptors, and have some",
			devices_have_descriptors },
		{ "S15 what is to be closed leaves some descriptors", descriptors_are_kept },
	};

	return rcd_tap_run("capacity", tests, sizeof(tests) / sizeof(tests[0]));
}
