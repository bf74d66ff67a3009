/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: MACs of groups are counted, each for as long as a membership is of it, and listed in order;
 * without memory one more is not counted, and the others stay. Method: memberships come and go at
 * random, beside a count of the test's own; the test has memory to give, or has not.
 */
#include "rcd_joined.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_tap.h"

#define GROUPS 300u
#define STEPS  100000u

static bool no_memory;

void *
__wrap_realloc(void *old, size_t size);
void *
__real_realloc(void *old, size_t size);

void *
__wrap_realloc(void *old, size_t size)
{
	return no_memory ? NULL : __real_realloc(old, size);
}

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

/* As many as there was room for, whichever number that is. */
static void
without_memory(void)
{
	struct rcd_joined joined = { 0 };
	uint32_t taken = 0, all;
	struct rcd_gid gid;

	for (int way = 0; way < 2; way++) {
		no_memory = way == 0;
		gid = group_of(0);
		CU_ASSERT_EQUAL(rcd_joined_add(&joined, &gid), way == 0 ? -ENOMEM : 0);
		CU_ASSERT_EQUAL(joined.count, (uint32_t)way);
	}
	no_memory = true;
	do {
		gid = group_of(2 * ++taken);
	} while (taken < GROUPS / 2 && rcd_joined_add(&joined, &gid) == 0);
	CU_ASSERT(taken < GROUPS / 2);
	CU_ASSERT_EQUAL(rcd_joined_add(&joined, &gid), -ENOMEM);
	CU_ASSERT_EQUAL(joined.count, taken);
	CU_ASSERT_EQUAL(members_of(&joined, 2 * taken), 0);
	/* One that has its place needs no other. */
	gid = group_of(1);
	CU_ASSERT_EQUAL(rcd_joined_add(&joined, &gid), 0);
	no_memory = false;
	gid = group_of(2 * taken);
	CU_ASSERT_EQUAL(rcd_joined_add(&joined, &gid), 0);
	all = joined.count;
	CU_ASSERT_EQUAL(all, taken + 1);
	for (uint32_t i = 0; i < all; i++)
		CU_ASSERT_EQUAL(members_of(&joined, 2 * i), i == 0 ? 2 : 1);
	rcd_joined_fini(&joined);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(comes_and_goes),
		RCD_TEST(without_memory),
	};

	return rcd_tap_run("joined", tests, sizeof(tests) / sizeof(tests[0]));
}
