/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Ethernet II header with at most one 802.1Q tag (IEEE 802.3 clause 3, 802.1Q clause 9).
 */
#ifndef RCD_ETH_H
#define RCD_ETH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_verdict.h"

#define RCD_MAC_LEN          6
#define RCD_ETH_LEN          14
#define RCD_ETH_MIN_LEN      60 /**< of a frame, without its check sequence (IEEE 802.3, 4.2.3.3) */
#define RCD_ETH_TWO_TAGS_LEN 22 /**< with a tag of a VLAN, and of one around it */
#define RCD_VLAN_TAG_LEN     4

/** EtherTypes told apart here. */
enum {
	RCD_ETHERTYPE_IPV4 = 0x0800,
	RCD_ETHERTYPE_ARP = 0x0806,
	RCD_ETHERTYPE_VLAN = 0x8100,
	RCD_ETHERTYPE_IPV6 = 0x86dd,
};

/** The identifier of 64 bits that is made of a MAC (RFC 4291, appendix A). */
static inline uint64_t
rcd_eui64(const uint8_t *mac)
{
	return (uint64_t)(mac[0] ^ 2) << 56 | (uint64_t)mac[1] << 48 | (uint64_t)mac[2] << 40 |
		UINT64_C(0xfffe) << 24 | (uint64_t)mac[3] << 16 | (uint64_t)mac[4] << 8 | mac[5];
}

/** An Ethernet header, integers in host order. */
struct rcd_eth {
	uint8_t dst[RCD_MAC_LEN];
	uint8_t src[RCD_MAC_LEN];
	bool tagged;        /**< an 802.1Q tag is present */
	uint16_t vlan_tci;  /**< priority, DEI and VLAN ID; 0 when not tagged */
	uint16_t ethertype; /**< of what follows, behind the tag if there is one */
};

/** Length in bytes of the header as it stands on the wire. */
static inline size_t
rcd_eth_len(const struct rcd_eth *eth)
{
	return eth->tagged ? RCD_ETH_LEN + RCD_VLAN_TAG_LEN : RCD_ETH_LEN;
}

/**
 * Parse the header at the start of a frame. A second tag is left as the EtherType.
 *
 * @param src  frame
 * @param len  readable bytes at @p src
 * @return RCD_VERDICT_OK or RCD_VERDICT_ETH_SHORT, when @p eth is not meaningful
 */
static inline enum rcd_verdict
rcd_eth_parse(const uint8_t *src, size_t len, struct rcd_eth *eth)
{
	if (len < RCD_ETH_LEN)
		return RCD_VERDICT_ETH_SHORT;
	memcpy(eth->dst, src, RCD_MAC_LEN);
	memcpy(eth->src, src + RCD_MAC_LEN, RCD_MAC_LEN);
	eth->tagged = false;
	eth->vlan_tci = 0;
	eth->ethertype = rcd_get_be16(src + 12);
	if (eth->ethertype != RCD_ETHERTYPE_VLAN)
		return RCD_VERDICT_OK;
	if (len < RCD_ETH_LEN + RCD_VLAN_TAG_LEN)
		return RCD_VERDICT_ETH_SHORT;
	eth->tagged = true;
	eth->vlan_tci = rcd_get_be16(src + 14);
	eth->ethertype = rcd_get_be16(src + 16);
	return RCD_VERDICT_OK;
}

/** Write the header. @param dst rcd_eth_len() writable bytes */
static inline void
rcd_eth_build(uint8_t *dst, const struct rcd_eth *eth)
{
	memcpy(dst, eth->dst, RCD_MAC_LEN);
	memcpy(dst + RCD_MAC_LEN, eth->src, RCD_MAC_LEN);
	dst += 2 * RCD_MAC_LEN;
	if (eth->tagged) {
		rcd_put_be16(dst, RCD_ETHERTYPE_VLAN);
		rcd_put_be16(dst + 2, eth->vlan_tci);
		dst += RCD_VLAN_TAG_LEN;
	}
	rcd_put_be16(dst, eth->ethertype);
}

#endif /* RCD_ETH_H */
