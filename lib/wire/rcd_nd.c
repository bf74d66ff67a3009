/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbour discovery messages.
 */
#include "rcd_nd.h"

enum {
	ICMPV6_SOLICITATION = 135,
	ICMPV6_ADVERTISEMENT = 136,
};

enum {
	OPTION_SOURCE_MAC = 1,
	OPTION_TARGET_MAC = 2,
};

enum {
	FLAG_ROUTER = 0x80,
	FLAG_SOLICITED = 0x40,
	FLAG_OVERRIDE = 0x20,
};

#define FIXED_LEN 24 /**< up to the options */

static uint16_t
nd_checksum(
	const struct rcd_gid *sgid, const struct rcd_gid *dgid, const uint8_t *message, size_t len)
{
	uint64_t sum = rcd_csum_add(0, sgid->raw, RCD_GID_LEN);

	sum = rcd_csum_add(sum, dgid->raw, RCD_GID_LEN) + len + RCD_IP_PROTO_ICMPV6;
	return rcd_csum_fold(rcd_csum_add(sum, message, len));
}

enum rcd_verdict
rcd_nd_parse(const struct rcd_gid *sgid, const struct rcd_gid *dgid, uint8_t hop_limit,
	const uint8_t *src, size_t len, struct rcd_nd *nd)
{
	uint8_t wanted;

	if (len < FIXED_LEN)
		return RCD_VERDICT_ICMP_SHORT;
	if (src[0] != ICMPV6_SOLICITATION && src[0] != ICMPV6_ADVERTISEMENT)
		return RCD_VERDICT_ICMPV6;
	if (hop_limit != RCD_ND_HOP_LIMIT || src[1] != 0)
		return RCD_VERDICT_ICMPV6;
	if (nd_checksum(sgid, dgid, src, len) != 0)
		return RCD_VERDICT_ICMP_CHECKSUM;
	*nd = (struct rcd_nd){
		.advertisement = src[0] == ICMPV6_ADVERTISEMENT,
		.router = src[4] & FLAG_ROUTER,
		.solicited = src[4] & FLAG_SOLICITED,
		.override = src[4] & FLAG_OVERRIDE,
		.target = rcd_gid_from_ipv6(src + 8),
	};
	if (nd->target.raw[0] == 0xff)
		return RCD_VERDICT_ICMPV6;
	wanted = nd->advertisement ? OPTION_TARGET_MAC : OPTION_SOURCE_MAC;
	for (size_t at = FIXED_LEN; at < len;) {
		size_t option_len;

		if (len - at < 8)
			return RCD_VERDICT_ICMP_SHORT;
		option_len = src[at + 1] * 8u;
		if (option_len == 0 || option_len > len - at)
			return RCD_VERDICT_ICMPV6;
		if (src[at] == wanted) {
			memcpy(nd->mac, src + at + 2, RCD_MAC_LEN);
			nd->has_mac = true;
		}
		at += option_len;
	}
	return RCD_VERDICT_OK;
}

void
rcd_nd_build(uint8_t *dst, const struct rcd_gid *sgid, const struct rcd_gid *dgid,
	const struct rcd_nd *nd)
{
	memset(dst, 0, RCD_ND_LEN);
	dst[0] = nd->advertisement ? ICMPV6_ADVERTISEMENT : ICMPV6_SOLICITATION;
	if (nd->advertisement)
		dst[4] = (uint8_t)((nd->router ? FLAG_ROUTER : 0) |
			(nd->solicited ? FLAG_SOLICITED : 0) | (nd->override ? FLAG_OVERRIDE : 0));
	memcpy(dst + 8, nd->target.raw, RCD_GID_LEN);
	dst[24] = nd->advertisement ? OPTION_TARGET_MAC : OPTION_SOURCE_MAC;
	dst[25] = 1;
	memcpy(dst + 26, nd->mac, RCD_MAC_LEN);
	rcd_put_be16(dst + 2, nd_checksum(sgid, dgid, dst, RCD_ND_LEN));
}
