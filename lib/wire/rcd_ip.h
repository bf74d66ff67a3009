/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * IPv4 (RFC 791) and IPv6 (RFC 8200) headers, and the Internet checksum (RFC 1071).
 *
 * IPv4 options are recognised, never interpreted; IPv6 extension headers are left as the next
 * header: RoCEv2 uses neither.
 */
#ifndef RCD_IP_H
#define RCD_IP_H

#include "rcd_bytes.h"
#include "rcd_gid.h"
#include "rcd_verdict.h"

#define RCD_IPV4_LEN 20
#define RCD_IPV6_LEN 40

/** Which IP carries a packet. */
enum rcd_l3 {
	RCD_L3_IPV4,
	RCD_L3_IPV6,
};

/** Protocol and next-header numbers told apart here. */
enum {
	RCD_IP_PROTO_ICMP = 1,
	RCD_IP_PROTO_TCP = 6,
	RCD_IP_PROTO_UDP = 17,
	RCD_IP_PROTO_FRAGMENT = 44,
	RCD_IP_PROTO_ICMPV6 = 58,
};

/** Where the DSCP begins in a traffic class; below it is ECN (RFC 2474, 3; RFC 3168, 5). */
#define RCD_DSCP_SHIFT 2
#define RCD_DSCP_MAX   63

/** An IPv4 header, integers in host order. */
struct rcd_ipv4 {
	uint8_t hdr_len; /**< bytes, options included: 20..60. rcd_ipv4_build() writes 20 */
	uint8_t tclass;  /**< the TOS byte: DSCP and ECN */
	uint8_t ttl;
	uint8_t protocol;
	uint16_t total_len; /**< bytes, header included */
	uint16_t id;
	bool dont_fragment;
	bool fragment; /**< part of a fragmented datagram; build writes none */
	uint8_t src[4];
	uint8_t dst[4];
};

/** An IPv6 header, integers in host order. */
struct rcd_ipv6 {
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t next_header;
	uint16_t payload_len; /**< bytes behind this header */
	uint32_t flow_label;  /**< 20 bits */
	struct rcd_gid src;
	struct rcd_gid dst;
};

/**
 * Add bytes to an Internet checksum.
 *
 * @param sum  0, or what an earlier call returned for an even number of bytes
 * @return partial sum for rcd_csum_fold() or for the next call
 */
static inline uint64_t
rcd_csum_add(uint64_t sum, const uint8_t *src, size_t len)
{
	for (; len >= 4; src += 4, len -= 4)
		sum += rcd_get_be32(src);
	if (len >= 2)
		sum += rcd_get_be16(src);
	if (len & 1)
		sum += (uint64_t)src[len - 1] << 8;
	return sum;
}

/** Fold a partial sum to the checksum field's value; 0 over bytes that hold a right checksum. */
static inline uint16_t
rcd_csum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/**
 * Whether the checksum of an IPv4 header is right.
 *
 * @param src  header that rcd_ipv4_parse() accepted
 * @param len  its length in bytes, 20..60, a multiple of 4
 */
static inline bool
rcd_ipv4_csum_ok(const uint8_t *src, size_t len)
{
	uint64_t sum = 0;

	/* Whether a sum is all ones does not depend on the byte order (RFC 1071, 2 B). */
	for (size_t i = 0; i < len; i += 4) {
		uint32_t word;

		memcpy(&word, src + i, sizeof(word));
		sum += word;
	}
	return rcd_csum_fold(sum) == 0;
}

/**
 * Parse an IPv4 header. The checksum and the total length are not judged: see rcd_ipv4_csum_ok();
 * the caller knows how long the frame is.
 *
 * @return RCD_VERDICT_OK, RCD_VERDICT_IPV4_SHORT, RCD_VERDICT_IP_VERSION or RCD_VERDICT_IPV4_IHL
 */
static inline enum rcd_verdict
rcd_ipv4_parse(const uint8_t *src, size_t len, struct rcd_ipv4 *ip)
{
	if (len < RCD_IPV4_LEN)
		return RCD_VERDICT_IPV4_SHORT;
	if (src[0] >> 4 != 4)
		return RCD_VERDICT_IP_VERSION;
	ip->hdr_len = (uint8_t)((src[0] & 0x0f) * 4);
	if (ip->hdr_len < RCD_IPV4_LEN)
		return RCD_VERDICT_IPV4_IHL;
	if (len < ip->hdr_len)
		return RCD_VERDICT_IPV4_SHORT;

	uint16_t frag = rcd_get_be16(src + 6);

	ip->tclass = src[1];
	ip->total_len = rcd_get_be16(src + 2);
	ip->id = rcd_get_be16(src + 4);
	ip->dont_fragment = frag & 0x4000;
	ip->fragment = frag & 0x3fff; /* more fragments, or an offset */
	ip->ttl = src[8];
	ip->protocol = src[9];
	memcpy(ip->src, src + 12, 4);
	memcpy(ip->dst, src + 16, 4);
	return RCD_VERDICT_OK;
}

/** Write a header without options and its checksum. @param dst RCD_IPV4_LEN writable bytes */
static inline void
rcd_ipv4_build(uint8_t *dst, const struct rcd_ipv4 *ip)
{
	dst[0] = 4 << 4 | RCD_IPV4_LEN / 4;
	dst[1] = ip->tclass;
	rcd_put_be16(dst + 2, ip->total_len);
	rcd_put_be16(dst + 4, ip->id);
	rcd_put_be16(dst + 6, ip->dont_fragment ? 0x4000 : 0);
	dst[8] = ip->ttl;
	dst[9] = ip->protocol;
	rcd_put_be16(dst + 10, 0);
	memcpy(dst + 12, ip->src, 4);
	memcpy(dst + 16, ip->dst, 4);
	rcd_put_be16(dst + 10, rcd_csum_fold(rcd_csum_add(0, dst, RCD_IPV4_LEN)));
}

/**
 * Parse an IPv6 header. The payload length is not judged: the caller knows how long the frame is.
 *
 * @return RCD_VERDICT_OK, RCD_VERDICT_IPV6_SHORT or RCD_VERDICT_IP_VERSION
 */
static inline enum rcd_verdict
rcd_ipv6_parse(const uint8_t *src, size_t len, struct rcd_ipv6 *ip)
{
	if (len < RCD_IPV6_LEN)
		return RCD_VERDICT_IPV6_SHORT;

	uint32_t first = rcd_get_be32(src);

	if (first >> 28 != 6)
		return RCD_VERDICT_IP_VERSION;
	ip->tclass = (uint8_t)(first >> 20);
	ip->flow_label = first & 0xfffff;
	ip->payload_len = rcd_get_be16(src + 4);
	ip->next_header = src[6];
	ip->hop_limit = src[7];
	ip->src = rcd_gid_from_ipv6(src + 8);
	ip->dst = rcd_gid_from_ipv6(src + 24);
	return RCD_VERDICT_OK;
}

/** Write the header. @param dst RCD_IPV6_LEN writable bytes */
static inline void
rcd_ipv6_build(uint8_t *dst, const struct rcd_ipv6 *ip)
{
	rcd_put_be32(dst, 6u << 28 | (uint32_t)ip->tclass << 20 | (ip->flow_label & 0xfffff));
	rcd_put_be16(dst + 4, ip->payload_len);
	dst[6] = ip->next_header;
	dst[7] = ip->hop_limit;
	memcpy(dst + 8, ip->src.raw, RCD_GID_LEN);
	memcpy(dst + 24, ip->dst.raw, RCD_GID_LEN);
}

#endif /* RCD_IP_H */
