/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * ARP for IPv4 over Ethernet (RFC 826). The table of neighbours is not here.
 */
#ifndef RCD_ARP_H
#define RCD_ARP_H

#include "rcd_eth.h"

#define RCD_ARP_LEN 28

/** ARP operations. */
enum {
	RCD_ARP_REQUEST = 1,
	RCD_ARP_REPLY = 2,
};

/** An ARP packet; addresses in network order. */
struct rcd_arp {
	uint16_t op; /**< RCD_ARP_REQUEST, RCD_ARP_REPLY or another that the sender chose */
	uint8_t sender_mac[RCD_MAC_LEN];
	uint8_t sender_ip[4];
	uint8_t target_mac[RCD_MAC_LEN];
	uint8_t target_ip[4];
};

/**
 * Parse what follows the Ethernet header.
 *
 * @return RCD_VERDICT_OK, RCD_VERDICT_ARP_SHORT, or RCD_VERDICT_ARP_FORMAT when hardware or
 *         protocol is not Ethernet and IPv4
 */
static inline enum rcd_verdict
rcd_arp_parse(const uint8_t *src, size_t len, struct rcd_arp *arp)
{
	if (len < RCD_ARP_LEN)
		return RCD_VERDICT_ARP_SHORT;
	/* Hardware type 1, protocol type IPv4, address lengths 6 and 4. */
	if (rcd_get_be32(src) != (1u << 16 | RCD_ETHERTYPE_IPV4) || rcd_get_be16(src + 4) != 0x0604)
		return RCD_VERDICT_ARP_FORMAT;
	arp->op = rcd_get_be16(src + 6);
	memcpy(arp->sender_mac, src + 8, RCD_MAC_LEN);
	memcpy(arp->sender_ip, src + 14, 4);
	memcpy(arp->target_mac, src + 18, RCD_MAC_LEN);
	memcpy(arp->target_ip, src + 24, 4);
	return RCD_VERDICT_OK;
}

/** Write the packet. @param dst RCD_ARP_LEN writable bytes */
static inline void
rcd_arp_build(uint8_t *dst, const struct rcd_arp *arp)
{
	rcd_put_be32(dst, 1u << 16 | RCD_ETHERTYPE_IPV4);
	rcd_put_be16(dst + 4, 0x0604);
	rcd_put_be16(dst + 6, arp->op);
	memcpy(dst + 8, arp->sender_mac, RCD_MAC_LEN);
	memcpy(dst + 14, arp->sender_ip, 4);
	memcpy(dst + 18, arp->target_mac, RCD_MAC_LEN);
	memcpy(dst + 24, arp->target_ip, 4);
}

#endif /* RCD_ARP_H */
