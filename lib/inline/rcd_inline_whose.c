/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Whose a packet is. Nothing is checked here but what tells that: what is damaged and ours is found
 * by the engine, and counted.
 */
#include "rcd_inline_whose.h"

#include <rte_mbuf.h>
#include <stdbool.h>
#include <string.h>

#include "rcd_arp.h"
#include "rcd_bytes.h"
#include "rcd_eth.h"
#include "rcd_gid.h"
#include "rcd_gid_table.h"
#include "rcd_ip.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_link.h"
#include "rcd_lport.h"
#include "rcd_mcast.h"
#include "rcd_rx.h"
#include "rcd_thread.h"
#include "rcd_udp.h"

#define HEADERS_MOST  96 /**< bytes that tell whose a packet is: two tags, IPv4 with all options */
#define IP_PROTO_IGMP 2
#define IP_PROTO_HOPS 0      /**< hop-by-hop options, as MLD has them */
#define FRAGMENT_MASK 0x3fff /**< more fragments, or an offset */
#define ND_SOLICITS   135
#define ND_ADVERTISES 136
#define ND_TARGET_END 24 /**< bytes of such a message up to the end of its target */

/* What is known of the packet at hand. */
struct sight {
	const struct rcd_lcore *lcore;
	const struct rcd_lport *lport;
	const struct rcd_lport_view *view;
	struct rcd_eth eth;
	uint16_t vlan_id;
	const uint8_t *data; /**< behind the Ethernet header */
	uint32_t len;        /**< of what can be seen of it */
};

/* Whether an address is the device's, in this VLAN. */
static bool
inline_whose_address(const struct sight *sight, const struct rcd_gid *gid)
{
	int at = rcd_gid_table_find(&sight->view->gids, gid);

	return at >= 0 && sight->view->gids.entries[at].vlan_id == sight->vlan_id;
}

static bool
inline_whose_mac(const struct sight *sight)
{
	return memcmp(sight->eth.dst, sight->view->mac, RCD_MAC_LEN) == 0;
}

/* Whether the group may have members here, or on another lcore, which alone knows its groups. */
static bool
inline_whose_group(const struct sight *sight)
{
	const struct rcd_lcores *lcores = sight->lcore->lcores;

	for (uint32_t i = 0; i < lcores->count; i++)
		if (__atomic_load_n(&lcores->lcore[i]->mcast[sight->lport->index],
			    __ATOMIC_RELAXED) != NULL)
			return true;
	return false;
}

static enum rcd_inline_whose
inline_whose_arp(const struct sight *sight)
{
	struct rcd_arp arp;
	struct rcd_gid sender, target;

	if (rcd_arp_parse(sight->data, sight->len, &arp) != RCD_VERDICT_OK)
		return RCD_INLINE_PROGRAMS;
	sender = rcd_gid_from_ipv4(arp.sender_ip);
	target = rcd_gid_from_ipv4(arp.target_ip);
	if (rcd_gid_eq(&sender, &target))
		return RCD_INLINE_BOTHS;
	return inline_whose_address(sight, &target) ? RCD_INLINE_OURS : RCD_INLINE_PROGRAMS;
}

/* UDP: the header of which this is the first byte, of a packet to this address. */
static enum rcd_inline_whose
inline_whose_udp(const struct sight *sight, const struct rcd_gid *dst, uint32_t at)
{
	if (sight->len < at + 4 || rcd_get_be16(sight->data + at + 2) != RCD_UDP_PORT_ROCE)
		return RCD_INLINE_PROGRAMS;
	if (rcd_gid_is_multicast(dst))
		return inline_whose_group(sight) ? RCD_INLINE_BOTHS : RCD_INLINE_PROGRAMS;
	return inline_whose_mac(sight) && inline_whose_address(sight, dst) ? RCD_INLINE_OURS
									   : RCD_INLINE_PROGRAMS;
}

static enum rcd_inline_whose
inline_whose_ipv4(const struct sight *sight)
{
	const uint8_t *ip = sight->data;
	struct rcd_gid dst;

	if (sight->len < RCD_IPV4_LEN || (rcd_get_be16(ip + 6) & FRAGMENT_MASK) != 0)
		return RCD_INLINE_PROGRAMS;
	dst = rcd_gid_from_ipv4(ip + 16);
	switch (ip[9]) {
	case RCD_IP_PROTO_UDP:
		return inline_whose_udp(sight, &dst, (ip[0] & 0xf) * 4u);
	case RCD_IP_PROTO_ICMP:
		return inline_whose_address(sight, &dst) ? RCD_INLINE_OURS : RCD_INLINE_PROGRAMS;
	case IP_PROTO_IGMP:
		return inline_whose_group(sight) ? RCD_INLINE_BOTHS : RCD_INLINE_PROGRAMS;
	}
	return RCD_INLINE_PROGRAMS;
}

static enum rcd_inline_whose
inline_whose_icmpv6(const struct sight *sight, const struct rcd_gid *dst)
{
	const uint8_t *message = sight->data + RCD_IPV6_LEN;
	uint32_t len = sight->len - RCD_IPV6_LEN;
	struct rcd_gid target;

	if (len >= ND_TARGET_END && message[0] == ND_SOLICITS) {
		target = rcd_gid_from_ipv6(message + 8);
		return inline_whose_address(sight, &target) ? RCD_INLINE_OURS : RCD_INLINE_PROGRAMS;
	}
	if (rcd_gid_is_multicast(dst))
		return len > 0 && message[0] == ND_ADVERTISES ? RCD_INLINE_BOTHS
							      : RCD_INLINE_PROGRAMS;
	return inline_whose_address(sight, dst) ? RCD_INLINE_OURS : RCD_INLINE_PROGRAMS;
}

static enum rcd_inline_whose
inline_whose_ipv6(const struct sight *sight)
{
	struct rcd_gid dst;

	if (sight->len < RCD_IPV6_LEN)
		return RCD_INLINE_PROGRAMS;
	dst = rcd_gid_from_ipv6(sight->data + 24);
	switch (sight->data[6]) {
	case RCD_IP_PROTO_UDP:
		return inline_whose_udp(sight, &dst, RCD_IPV6_LEN);
	case RCD_IP_PROTO_ICMPV6:
		return inline_whose_icmpv6(sight, &dst);
	case IP_PROTO_HOPS:
		return rcd_gid_is_multicast(&dst) && inline_whose_group(sight)
			? RCD_INLINE_BOTHS
			: RCD_INLINE_PROGRAMS;
	}
	return RCD_INLINE_PROGRAMS;
}

enum rcd_inline_whose
rcd_inline_whose(
	const struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rte_mbuf *mbuf)
{
	uint8_t copy[HEADERS_MOST];
	uint32_t len = RTE_MIN(rte_pktmbuf_pkt_len(mbuf), (uint32_t)HEADERS_MOST);
	const uint8_t *frame = rte_pktmbuf_read(mbuf, 0, len, copy);
	struct sight sight = { .lcore = lcore, .lport = lport, .view = rcd_lport_view(lport) };

	RCD_ON_LCORE(lcore);
	if (frame == NULL || rcd_eth_parse(frame, len, &sight.eth) != RCD_VERDICT_OK)
		return RCD_INLINE_PROGRAMS;
	sight.vlan_id = rcd_link_vlan(&sight.eth, rcd_rx_stripped_vlan(mbuf));
	sight.data = frame + rcd_eth_len(&sight.eth);
	sight.len = len - (uint32_t)rcd_eth_len(&sight.eth);
	switch (sight.eth.ethertype) {
	case RCD_ETHERTYPE_ARP:
		return inline_whose_arp(&sight);
	case RCD_ETHERTYPE_IPV4:
		return inline_whose_ipv4(&sight);
	case RCD_ETHERTYPE_IPV6:
		return inline_whose_ipv6(&sight);
	}
	return RCD_INLINE_PROGRAMS;
}
