/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbour solicitations and advertisements of IPv6 (RFC 4861, 4.3 and 4.4) as ICMPv6 messages.
 * The table of neighbours is not here.
 */
#ifndef RCD_ND_H
#define RCD_ND_H

#include "rcd_eth.h"
#include "rcd_ip.h"

/** Bytes of a message with its link-layer address option. */
#define RCD_ND_LEN 32

/** Every message has this hop limit, so that it can't come from another link. */
#define RCD_ND_HOP_LIMIT 255

/** A solicitation or advertisement. */
struct rcd_nd {
	bool advertisement;
	bool solicited; /**< advertisement: answers a solicitation */
	bool router;    /**< advertisement */
	bool override;  /**< advertisement: replaces what is known */
	bool has_mac;   /**< the option is there; always built */
	struct rcd_gid target;
	uint8_t mac[RCD_MAC_LEN]; /**< of the sender of a solicitation, or of the target */
};

/**
 * Parse an ICMPv6 message, checksum included.
 *
 * @param sgid, dgid  addresses of the packet
 * @param hop_limit   of the packet
 * @param src         first byte behind the IPv6 header
 * @return RCD_VERDICT_OK; RCD_VERDICT_ICMP_SHORT or _ICMP_CHECKSUM; RCD_VERDICT_ICMPV6 for
 *         another message, or one that RFC 4861, 7.1 says to ignore
 */
enum rcd_verdict
rcd_nd_parse(const struct rcd_gid *sgid, const struct rcd_gid *dgid, uint8_t hop_limit,
	const uint8_t *src, size_t len, struct rcd_nd *nd);

/** Write a message with its checksum. @param dst RCD_ND_LEN writable bytes */
void
rcd_nd_build(uint8_t *dst, const struct rcd_gid *sgid, const struct rcd_gid *dgid,
	const struct rcd_nd *nd);

/** The multicast address at which a neighbour is asked for (RFC 4291, 2.7.1). */
static inline struct rcd_gid
rcd_nd_solicited_node(const struct rcd_gid *target)
{
	struct rcd_gid gid = { { 0xff, 0x02, [11] = 0x01, [12] = 0xff } };

	memcpy(gid.raw + 13, target->raw + 13, 3);
	return gid;
}

#endif /* RCD_ND_H */
