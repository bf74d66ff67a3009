/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets of IGMP and MLD.
 */
#include "rcd_igmp.h"

#define IGMP_LEN          8
#define MLD_LEN           24
#define OPTION_LEN        4 /**< of IPv4 */
#define HOP_BY_HOP_LEN    8
#define NEXT_HOP_BY_HOP   0
#define IGMP_QUERY        0x11
#define IGMP_REPORT_V2    0x16
#define IGMP_LEAVE        0x17
#define MLD_QUERY         130
#define MLD_REPORT        131
#define MLD_DONE          132
#define TOS_NET_CONTROL   0xc0
#define IPV4_LEN_WITH_OPT (RCD_IPV4_LEN + OPTION_LEN)

static size_t
igmp_build(uint8_t *dst, const struct rcd_gid *src, const struct rcd_gid *group,
	const struct rcd_gid *to, bool leave)
{
	static const uint8_t router_alert[OPTION_LEN] = { 0x94, 0x04, 0, 0 };
	struct rcd_ipv4 ip = {
		.tclass = TOS_NET_CONTROL,
		.ttl = 1,
		.protocol = RCD_IP_PROTO_IGMP,
		.total_len = IPV4_LEN_WITH_OPT + IGMP_LEN,
	};
	uint8_t *igmp = dst + IPV4_LEN_WITH_OPT;

	memcpy(ip.src, src->raw + 12, 4);
	memcpy(ip.dst, to->raw + 12, 4);
	rcd_ipv4_build(dst, &ip);
	dst[0] = 4 << 4 | IPV4_LEN_WITH_OPT / 4;
	memcpy(dst + RCD_IPV4_LEN, router_alert, OPTION_LEN);
	rcd_put_be16(dst + 10, 0);
	rcd_put_be16(dst + 10, rcd_csum_fold(rcd_csum_add(0, dst, IPV4_LEN_WITH_OPT)));
	memset(igmp, 0, IGMP_LEN);
	igmp[0] = leave ? IGMP_LEAVE : IGMP_REPORT_V2;
	memcpy(igmp + 4, group->raw + 12, 4);
	rcd_put_be16(igmp + 2, rcd_csum_fold(rcd_csum_add(0, igmp, IGMP_LEN)));
	return ip.total_len;
}

static size_t
igmp_build_mld(uint8_t *dst, const struct rcd_gid *src, const struct rcd_gid *group,
	const struct rcd_gid *to, bool leave)
{
	static const uint8_t router_alert[HOP_BY_HOP_LEN] = { RCD_IP_PROTO_ICMPV6, 0, 5, 2, 0, 0, 1,
		0 };
	struct rcd_ipv6 ip = {
		.hop_limit = 1,
		.next_header = NEXT_HOP_BY_HOP,
		.payload_len = HOP_BY_HOP_LEN + MLD_LEN,
		.src = *src,
		.dst = *to,
	};
	uint8_t *mld = dst + RCD_IPV6_LEN + HOP_BY_HOP_LEN;
	uint8_t pseudo[8] = { [3] = MLD_LEN, [7] = RCD_IP_PROTO_ICMPV6 };
	uint64_t sum;

	rcd_ipv6_build(dst, &ip);
	memcpy(dst + RCD_IPV6_LEN, router_alert, HOP_BY_HOP_LEN);
	memset(mld, 0, MLD_LEN);
	mld[0] = leave ? MLD_DONE : MLD_REPORT;
	memcpy(mld + 8, group->raw, RCD_GID_LEN);
	sum = rcd_csum_add(0, src->raw, RCD_GID_LEN);
	sum = rcd_csum_add(sum, to->raw, RCD_GID_LEN);
	sum = rcd_csum_add(sum, pseudo, sizeof(pseudo));
	rcd_put_be16(mld + 2, rcd_csum_fold(rcd_csum_add(sum, mld, MLD_LEN)));
	return RCD_IPV6_LEN + HOP_BY_HOP_LEN + MLD_LEN;
}

size_t
rcd_membership_build(uint8_t *dst, const struct rcd_gid *src, const struct rcd_gid *group,
	bool leave, struct rcd_gid *to)
{
	static const uint8_t all_routers4[4] = { 224, 0, 0, 2 };
	static const struct rcd_gid all_routers6 = { { 0xff, 0x02, [15] = 2 } };

	if (rcd_gid_is_ipv4(group)) {
		*to = leave ? rcd_gid_from_ipv4(all_routers4) : *group;
		return igmp_build(dst, src, group, to, leave);
	}
	*to = leave ? all_routers6 : *group;
	return igmp_build_mld(dst, src, group, to, leave);
}

bool
rcd_membership_is_query(enum rcd_l3 l3, const uint8_t *ip, size_t len)
{
	size_t at;

	if (l3 == RCD_L3_IPV4) {
		at = len > 0 ? (ip[0] & 0x0fu) * 4 : 0;
		return at >= RCD_IPV4_LEN && len >= at + IGMP_LEN && ip[9] == RCD_IP_PROTO_IGMP &&
			ip[at] == IGMP_QUERY;
	}
	at = RCD_IPV6_LEN + HOP_BY_HOP_LEN;
	return len >= at + MLD_LEN && ip[6] == NEXT_HOP_BY_HOP &&
		ip[RCD_IPV6_LEN] == RCD_IP_PROTO_ICMPV6 && ip[RCD_IPV6_LEN + 1] == 0 &&
		ip[at] == MLD_QUERY;
}
