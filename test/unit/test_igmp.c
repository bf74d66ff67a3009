/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: routers hear of memberships, and are understood. Method: a report of IGMPv2 and one of
 * MLDv1, made by other code from the layouts of RFC 2236 and RFC 2710; leaves by their types and
 * destinations; queries of all versions, cut at each length.
 */
#include <string.h>

#include "rcd_igmp.h"
#include "rcd_tap.h"

static const uint8_t igmp_report[] = { 0x46, 0xc0, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02,
	0x28, 0xc6, 0x0a, 0x4d, 0x00, 0x01, 0xef, 0x01, 0x02, 0x03, 0x94, 0x04, 0x00, 0x00, 0x16,
	0x00, 0xf8, 0xfa, 0xef, 0x01, 0x02, 0x03 };

static const uint8_t mld_report[] = { 0x60, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x01, 0xfe, 0x80,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xff,
	0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x77,
	0x3a, 0x00, 0x05, 0x02, 0x00, 0x00, 0x01, 0x00, 0x83, 0x00, 0x7f, 0x1f, 0x00, 0x00, 0x00,
	0x00, 0xff, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x77 };

static const uint8_t src4[4] = { 10, 77, 0, 1 };
static const uint8_t group4[4] = { 239, 1, 2, 3 };
static const struct rcd_gid src6 = { { 0xfe, 0x80, [15] = 1 } };
static const struct rcd_gid group6 = { { 0xff, 0x0e, [15] = 0x77 } };

static void
reports(void)
{
	struct rcd_gid src = rcd_gid_from_ipv4(src4);
	struct rcd_gid group = rcd_gid_from_ipv4(group4);
	uint8_t built[RCD_MEMBERSHIP_MAX_LEN];
	struct rcd_gid to;

	CU_ASSERT_EQUAL(rcd_membership_build(built, &src, &group, false, &to), sizeof(igmp_report));
	CU_ASSERT_EQUAL(memcmp(built, igmp_report, sizeof(igmp_report)), 0);
	CU_ASSERT(rcd_gid_eq(&to, &group));
	CU_ASSERT_EQUAL(
		rcd_membership_build(built, &src6, &group6, false, &to), sizeof(mld_report));
	CU_ASSERT_EQUAL(memcmp(built, mld_report, sizeof(mld_report)), 0);
	CU_ASSERT(rcd_gid_eq(&to, &group6));
}

static void
leaves(void)
{
	static const uint8_t all_routers4[4] = { 224, 0, 0, 2 };
	static const struct rcd_gid all_routers6 = { { 0xff, 0x02, [15] = 2 } };
	struct rcd_gid src = rcd_gid_from_ipv4(src4);
	struct rcd_gid group = rcd_gid_from_ipv4(group4);
	struct rcd_gid routers = rcd_gid_from_ipv4(all_routers4);
	uint8_t built[RCD_MEMBERSHIP_MAX_LEN];
	struct rcd_gid to;

	rcd_membership_build(built, &src, &group, true, &to);
	CU_ASSERT(rcd_gid_eq(&to, &routers));
	CU_ASSERT_EQUAL(memcmp(built + 16, all_routers4, 4), 0);
	CU_ASSERT_EQUAL(built[24], 0x17);
	CU_ASSERT_EQUAL(memcmp(built + 28, group4, 4), 0);
	CU_ASSERT_EQUAL(rcd_csum_fold(rcd_csum_add(0, built, 24)), 0);
	rcd_membership_build(built, &src6, &group6, true, &to);
	CU_ASSERT(rcd_gid_eq(&to, &all_routers6));
	CU_ASSERT_EQUAL(built[48], 132);
}

static void
queries(void)
{
	uint8_t igmp[sizeof(igmp_report) + 4]; /* version 3 has more behind it */
	uint8_t mld[sizeof(mld_report)];

	memset(igmp, 0, sizeof(igmp));
	memcpy(igmp, igmp_report, sizeof(igmp_report));
	memcpy(mld, mld_report, sizeof(mld_report));
	CU_ASSERT_FALSE(rcd_membership_is_query(RCD_L3_IPV4, igmp, sizeof(igmp)));
	CU_ASSERT_FALSE(rcd_membership_is_query(RCD_L3_IPV6, mld, sizeof(mld)));
	igmp[24] = 0x11;
	mld[48] = 130;
	CU_ASSERT(rcd_membership_is_query(RCD_L3_IPV4, igmp, sizeof(igmp)));
	CU_ASSERT(rcd_membership_is_query(RCD_L3_IPV6, mld, sizeof(mld)));
	for (size_t len = 0; len < sizeof(igmp_report); len++)
		CU_ASSERT_FALSE(rcd_membership_is_query(RCD_L3_IPV4, igmp, len));
	for (size_t len = 0; len < sizeof(mld_report); len++)
		CU_ASSERT_FALSE(rcd_membership_is_query(RCD_L3_IPV6, mld, len));
	/* A header length of nothing, and another protocol. */
	igmp[0] = 0x40;
	CU_ASSERT_FALSE(rcd_membership_is_query(RCD_L3_IPV4, igmp, sizeof(igmp)));
	igmp[0] = 0x46;
	igmp[9] = 6;
	CU_ASSERT_FALSE(rcd_membership_is_query(RCD_L3_IPV4, igmp, sizeof(igmp)));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(reports),
		RCD_TEST(leaves),
		RCD_TEST(queries),
	};

	return rcd_tap_run("igmp", tests, sizeof(tests) / sizeof(tests[0]));
}
