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

	rcd_capacity_measure(1, &user, &total);
	CU_ASSERT(total.shared_bytes > 0 && total.queue_bytes > 0);
	CU_ASSERT(total.shared_bytes + total.queue_bytes <= ram() - ram() / 16);
}

/* Who knows better has its way. */
static void
more_memory(void)
{
	const struct rcd_quota user = { .shared_bytes = ram() };
	struct rcd_quota total;

	rcd_capacity_measure(1, &user, &total);
	CU_ASSERT_EQUAL(total.shared_bytes, 2 * ram());
}

static void
descriptors_are_kept(void)
{
	const struct rlimit limit = { LIMIT, LIMIT };
	const struct rcd_quota user = { .shared_bytes = 0 };
	struct rcd_quota total;

	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
	rcd_capacity_measure(1, &user, &total);
	CU_ASSERT(total.descriptors > 1);
	CU_ASSERT(total.descriptors + RCD_CLOSER_OVER + RCD_CLOSER_MESSAGE + OWN < LIMIT);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "H5 shared memory and queues leave some to the machine", memory_is_kept },
		{ "H5 a user may be given more", more_memory },
		{ "S15 what is to be closed leaves some descriptors", descriptors_are_kept },
	};

	return rcd_tap_run("capacity", tests, sizeof(tests) / sizeof(tests[0]));
}
