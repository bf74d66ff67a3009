/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: MACs of groups are counted, each for as long as a membership is of it, and listed in order.
 * Method: memberships come and go at random, beside a count of the test's own.
 */
#include "rcd_joined.h"

#include <stdlib.h>
#include <string.h>

#include "rcd_tap.h"

#define GROUPS 300u
#define STEPS  100000u

/* Two of them have a MAC: it has no room for all of an address. */
static struct rcd_gid
group_of(uint32_t number)
{
	struct rcd_gid gid = { { [10] = 0xff, 0xff, 224, 1, 2, 3 } };

	gid.raw[12] = (uint8_t)(224 + number % 2);
	gid.raw[14] = (uint8_t)(number / 2 % 7);
	gid.raw[15] = (uint8_t)(number / 2);
	return gid;
}

static uint32_t
members_of(const struct rcd_joined *joined, uint32_t number)
{
	struct rcd_gid gid = group_of(number);
	uint8_t mac[RCD_MAC_LEN];

	rcd_gid_multicast_mac(&gid, mac);
	for (uint32_t i = 0; i < joined->count; i++)
		if (memcmp(joined->macs[i].mac, mac, RCD_MAC_LEN) == 0)
			return joined->macs[i].members;
	return 0;
}

static void
comes_and_goes(void)
{
	static uint32_t members[GROUPS];
	struct rcd_joined joined = { 0 };
	uint32_t random = 1, macs = 0;

	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t number;
		struct rcd_gid gid;

		random = random * 1664525 + 1013904223;
		number = (random >> 8) % GROUPS;
		gid = group_of(number);
		if (members[number] > 0 && (random >> 30) > 1) {
			members[number]--;
			rcd_joined_del(&joined, &gid);
		} else {
			members[number]++;
			CU_ASSERT_EQUAL(rcd_joined_add(&joined, &gid), 0);
		}
	}
	for (uint32_t i = 0; i < GROUPS; i += 2) {
		CU_ASSERT_EQUAL(members_of(&joined, i), members[i] + members[i + 1]);
		macs += members[i] + members[i + 1] > 0;
	}
	CU_ASSERT_EQUAL(joined.count, macs);
	for (uint32_t i = 1; i < joined.count; i++)
		CU_ASSERT(memcmp(joined.macs[i - 1].mac, joined.macs[i].mac, RCD_MAC_LEN) < 0);
	for (uint32_t i = 0; i < GROUPS; i++) {
		struct rcd_gid gid = group_of(i);

		for (; members[i] > 0; members[i]--)
			rcd_joined_del(&joined, &gid);
	}
	CU_ASSERT_EQUAL(joined.count, 0);
	rcd_joined_fini(&joined);
	CU_ASSERT_PTR_NULL(joined.macs);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(comes_and_goes),
	};

	return rcd_tap_run("joined", tests, sizeof(tests) / sizeof(tests[0]));
}
