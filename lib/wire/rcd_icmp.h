/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * ICMP echo over IPv4 (RFC 792) and IPv6 (RFC 4443): what `ping` needs, and nothing else of ICMP.
 */
#ifndef RCD_ICMP_H
#define RCD_ICMP_H

#include "rcd_ip.h"

#define RCD_ICMP_ECHO_LEN 8

/** An echo request or reply, host order. */
struct rcd_icmp_echo {
	bool reply;
	uint16_t id;
	uint16_t seq;
	const uint8_t *data; /**< borrowed from the packet, or from the caller of build */
	size_t data_len;     /**< bytes */
};

/**
 * Parse an ICMP message, checksum included.
 *
 * @param l3    ICMP for RCD_L3_IPV4, ICMPv6 for RCD_L3_IPV6
 * @param sgid  source address of the packet; it counts in the ICMPv6 checksum only
 * @param dgid  destination address, likewise
 * @param src   first byte behind the IP header
 * @param len   bytes of the IP payload
 * @param echo  filled on RCD_VERDICT_OK; its data points into @p src
 * @return RCD_VERDICT_OK, RCD_VERDICT_ICMP_SHORT, RCD_VERDICT_ICMP_CHECKSUM, or
 *         RCD_VERDICT_ICMP or RCD_VERDICT_ICMPV6 for a right message that is no echo
 */
enum rcd_verdict
rcd_icmp_echo_parse(enum rcd_l3 l3, const struct rcd_gid *sgid, const struct rcd_gid *dgid,
	const uint8_t *src, size_t len, struct rcd_icmp_echo *echo);

/**
 * Write an echo message with its checksum.
 *
 * @param dst  RCD_ICMP_ECHO_LEN + echo->data_len writable bytes; may hold echo->data already in
 *             its place
 */
void
rcd_icmp_echo_build(enum rcd_l3 l3, const struct rcd_gid *sgid, const struct rcd_gid *dgid,
	uint8_t *dst, const struct rcd_icmp_echo *echo);

#endif /* RCD_ICMP_H */
