/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * ICMP and ICMPv6 echo: the two differ in the type numbers and in the pseudo-header that the
 * ICMPv6 checksum covers (RFC 8200, 8.1).
 */
#include "rcd_icmp.h"

enum {
	ICMP_ECHO_REPLY = 0,
	ICMP_ECHO_REQUEST = 8,
	ICMPV6_ECHO_REQUEST = 128,
	ICMPV6_ECHO_REPLY = 129,
};

static uint64_t
icmp_pseudo_csum(enum rcd_l3 l3, const struct rcd_gid *sgid, const struct rcd_gid *dgid, size_t len)
{
	if (l3 == RCD_L3_IPV4)
		return 0;
	return rcd_csum_add(rcd_csum_add(0, sgid->raw, RCD_GID_LEN), dgid->raw, RCD_GID_LEN) + len +
		RCD_IP_PROTO_ICMPV6;
}

enum rcd_verdict
rcd_icmp_echo_parse(enum rcd_l3 l3, const struct rcd_gid *sgid, const struct rcd_gid *dgid,
	const uint8_t *src, size_t len, struct rcd_icmp_echo *echo)
{
	bool v4 = l3 == RCD_L3_IPV4;

	if (len < RCD_ICMP_ECHO_LEN)
		return RCD_VERDICT_ICMP_SHORT;
	if (rcd_csum_fold(rcd_csum_add(icmp_pseudo_csum(l3, sgid, dgid, len), src, len)) != 0)
		return RCD_VERDICT_ICMP_CHECKSUM;

	uint8_t request = v4 ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST;
	uint8_t reply = v4 ? ICMP_ECHO_REPLY : ICMPV6_ECHO_REPLY;

	if ((src[0] != request && src[0] != reply) || src[1] != 0)
		return v4 ? RCD_VERDICT_ICMP : RCD_VERDICT_ICMPV6;
	echo->reply = src[0] == reply;
	echo->id = rcd_get_be16(src + 4);
	echo->seq = rcd_get_be16(src + 6);
	echo->data = src + RCD_ICMP_ECHO_LEN;
	echo->data_len = len - RCD_ICMP_ECHO_LEN;
	return RCD_VERDICT_OK;
}

void
rcd_icmp_echo_build(enum rcd_l3 l3, const struct rcd_gid *sgid, const struct rcd_gid *dgid,
	uint8_t *dst, const struct rcd_icmp_echo *echo)
{
	size_t len = RCD_ICMP_ECHO_LEN + echo->data_len;

	if (l3 == RCD_L3_IPV4)
		dst[0] = echo->reply ? ICMP_ECHO_REPLY : ICMP_ECHO_REQUEST;
	else
		dst[0] = echo->reply ? ICMPV6_ECHO_REPLY : ICMPV6_ECHO_REQUEST;
	dst[1] = 0;
	rcd_put_be16(dst + 2, 0);
	rcd_put_be16(dst + 4, echo->id);
	rcd_put_be16(dst + 6, echo->seq);
	if (echo->data_len > 0)
		memmove(dst + RCD_ICMP_ECHO_LEN, echo->data, echo->data_len);
	rcd_put_be16(dst + 2,
		rcd_csum_fold(rcd_csum_add(icmp_pseudo_csum(l3, sgid, dgid, len), dst, len)));
}
