/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: neighbour discovery messages are built and parsed as RFC 4861 has them. Method: a
 * solicitation typed from the RFC's layout with a checksum computed by hand, round trips, and each
 * thing that section 7.1 says to ignore.
 */
#include <string.h>

#include "rcd_nd.h"
#include "rcd_tap.h"

static const struct rcd_gid src = { { 0xfe, 0x80, [15] = 1 } };
static const struct rcd_gid target = { { 0xfe, 0x80, [13] = 0xaa, 0xbb, 0xcc } };
static const uint8_t mac[RCD_MAC_LEN] = { 2, 3, 4, 5, 6, 7 };

static void
solicitation_by_hand(void)
{
	struct rcd_gid group = rcd_nd_solicited_node(&target);
	/* Sum of fe80, 1, ff02, 1, ffaa, bbcc, length 20, next header 3a, 8700, fe80, aa, bbcc,
	 * 0101, 0203, 0405, 0607. */
	uint8_t wire[RCD_ND_LEN] = { 135, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0x80, [21] = 0xaa, 0xbb, 0xcc,
		1, 1, 2, 3, 4, 5, 6, 7 };
	uint32_t sum = 0xfe80 + 1 + 0xff02 + 1 + 0xffaa + 0xbbcc + 0x20 + 0x3a + 0x8700 + 0xfe80 +
		0xaa + 0xbbcc + 0x0101 + 0x0203 + 0x0405 + 0x0607;
	struct rcd_nd nd = { .target = target };
	uint8_t built[RCD_ND_LEN];

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	wire[2] = (uint8_t)(~sum >> 8);
	wire[3] = (uint8_t)~sum;
	memcpy(nd.mac, mac, sizeof(mac));
	CU_ASSERT_EQUAL(group.raw[0], 0xff);
	CU_ASSERT_EQUAL(group.raw[13], 0xaa);
	rcd_nd_build(built, &src, &group, &nd);
	CU_ASSERT_EQUAL(memcmp(built, wire, sizeof(wire)), 0);
}

static void
advertisement_round_trip(void)
{
	struct rcd_nd nd = {
		.advertisement = true, .solicited = true, .override = true, .target = target
	};
	struct rcd_nd out;
	uint8_t built[RCD_ND_LEN];

	memcpy(nd.mac, mac, sizeof(mac));
	rcd_nd_build(built, &target, &src, &nd);
	CU_ASSERT_EQUAL(
		rcd_nd_parse(&target, &src, 255, built, sizeof(built), &out), RCD_VERDICT_OK);
	CU_ASSERT(out.advertisement && out.solicited && out.override && !out.router);
	CU_ASSERT(out.has_mac && memcmp(out.mac, mac, sizeof(mac)) == 0);
	CU_ASSERT(rcd_gid_eq(&out.target, &target));
}

static void
what_is_ignored(void)
{
	struct rcd_nd nd = { .target = target };
	uint8_t built[RCD_ND_LEN];
	struct rcd_nd out;

	rcd_nd_build(built, &src, &target, &nd);
	/* From another link; damaged; cut anywhere. */
	CU_ASSERT_EQUAL(
		rcd_nd_parse(&src, &target, 64, built, sizeof(built), &out), RCD_VERDICT_ICMPV6);
	built[30] ^= 1;
	CU_ASSERT_EQUAL(rcd_nd_parse(&src, &target, 255, built, sizeof(built), &out),
		RCD_VERDICT_ICMP_CHECKSUM);
	built[30] ^= 1;
	for (size_t len = 0; len < sizeof(built); len++)
		CU_ASSERT_NOT_EQUAL(
			rcd_nd_parse(&src, &target, 255, built, len, &out), RCD_VERDICT_OK);
	/* An option of no length would never end. */
	nd.advertisement = false;
	rcd_nd_build(built, &src, &target, &nd);
	built[2] += 1; /* the checksum makes up for it */
	built[25] = 0;
	CU_ASSERT_NOT_EQUAL(
		rcd_nd_parse(&src, &target, 255, built, sizeof(built), &out), RCD_VERDICT_OK);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(solicitation_by_hand),
		RCD_TEST(advertisement_round_trip),
		RCD_TEST(what_is_ignored),
	};

	return rcd_tap_run("nd", tests, sizeof(tests) / sizeof(tests[0]));
}
