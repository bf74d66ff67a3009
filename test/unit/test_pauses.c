/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a user has a tenth of the time, is never held up for longer than a second, and does not
 * hold up others.
 */
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_pauses.h"
#include "rcd_tap.h"

#define NOW UINT64_C(7000000000)

static struct rcd_pauses pauses;

/* The pause of who spent that long. */
static void
expect(uint64_t spent_ns, uint64_t pause_ns)
{
	memset(&pauses, 0, sizeof(pauses));
	CU_ASSERT(rcd_pauses_over(&pauses, 5, NOW));
	rcd_pauses_begin(&pauses, 5, NOW - spent_ns, NOW);
	CU_ASSERT(pause_ns == 0 || !rcd_pauses_over(&pauses, 5, NOW + pause_ns - 1));
	CU_ASSERT(rcd_pauses_over(&pauses, 5, NOW + pause_ns));
	CU_ASSERT(rcd_pauses_over(&pauses, 6, NOW));
}

static void
how_long(void)
{
	expect(0, 0);
	expect(1, 9);
	expect(100000000, 900000000);
	/* A machine that stood still is nobody's fault. */
	expect(112000000, RCD_PAUSE_MAX_NS);
	expect(NOW, RCD_PAUSE_MAX_NS);
}

/* Who is not there yet has a turn when a pause of somebody is over. */
static void
many_users(void)
{
	memset(&pauses, 0, sizeof(pauses));
	for (uid_t uid = 0; uid < RCD_PAUSES; uid++) {
		CU_ASSERT(rcd_pauses_over(&pauses, uid, NOW));
		rcd_pauses_begin(&pauses, uid, NOW - 10 - uid, NOW);
	}
	CU_ASSERT(!rcd_pauses_over(&pauses, RCD_PAUSES, NOW + 89));
	rcd_pauses_begin(&pauses, RCD_PAUSES, NOW, NOW + 89);
	CU_ASSERT(rcd_pauses_over(&pauses, RCD_PAUSES, NOW + 90));
	CU_ASSERT(!rcd_pauses_over(&pauses, 1, NOW + 90));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(how_long),
		RCD_TEST(many_users),
	};

	return rcd_tap_run("pauses", tests, RCD_ARRAY_COUNT(tests));
}
