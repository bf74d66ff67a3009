/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Questions and answers of one device, with the addresses that test_inline.c gives it.
 */
#include "ask.h"

#include <rte_mbuf.h>
#include <string.h>

#include "rcd_arp.h"
#include "rcd_eth.h"
#include "rcd_icmp.h"
#include "rcd_ip.h"
#include "rcd_nd.h"

static const uint8_t our_mac[] = { 2, 0, 0, 0, 0, 1 }, other_mac[] = { 2, 0, 0, 0, 0, 9 };
static const uint8_t all_macs[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
static const uint8_t ip_ours[] = { 10, 9, 0, 1 }, ip_other[] = { 10, 9, 0, 2 };
static const uint8_t ip_vlan[] = { 10, 9, 5, 1 };
static const uint8_t ip6_ours[16] = { 0xfd, 9, [15] = 1 }, ip6_other[16] = { 0xfd, 9, [15] = 2 };

#define ECHO_ID  0x4321
#define ECHO_SEQ 7

static const uint8_t echo_data[] = "seen again as it was sent";

static void
ask_arp(uint8_t *at, const uint8_t *target)
{
	struct rcd_arp arp = { .op = RCD_ARP_REQUEST };

	memcpy(arp.sender_mac, other_mac, RCD_MAC_LEN);
	memcpy(arp.sender_ip, ip_other, 4);
	memcpy(arp.target_ip, target, 4);
	rcd_arp_build(at, &arp);
}

/* @return bytes */
static size_t
ask_nd(uint8_t *at)
{
	const struct rcd_gid target = rcd_gid_from_ipv6(ip6_ours);
	struct rcd_ipv6 ip = { .hop_limit = RCD_ND_HOP_LIMIT,
		.next_header = RCD_IP_PROTO_ICMPV6,
		.payload_len = RCD_ND_LEN,
		.src = rcd_gid_from_ipv6(ip6_other),
		.dst = rcd_nd_solicited_node(&target) };
	struct rcd_nd nd = { .has_mac = true, .target = target };

	memcpy(nd.mac, other_mac, RCD_MAC_LEN);
	rcd_ipv6_build(at, &ip);
	rcd_nd_build(at + RCD_IPV6_LEN, &ip.src, &ip.dst, &nd);
	return RCD_IPV6_LEN + RCD_ND_LEN;
}

/* @return bytes */
static size_t
ask_echo(uint8_t *at, enum rcd_l3 l3)
{
	const struct rcd_icmp_echo echo = {
		.id = ECHO_ID, .seq = ECHO_SEQ, .data = echo_data, .data_len = sizeof(echo_data)
	};
	struct rcd_ipv4 ip4 = { .ttl = 64, .protocol = RCD_IP_PROTO_ICMP };
	struct rcd_ipv6 ip6 = { .hop_limit = 64,
		.next_header = RCD_IP_PROTO_ICMPV6,
		.payload_len = RCD_ICMP_ECHO_LEN + sizeof(echo_data),
		.src = rcd_gid_from_ipv6(ip6_other),
		.dst = rcd_gid_from_ipv6(ip6_ours) };
	size_t hdr_len = l3 == RCD_L3_IPV4 ? RCD_IPV4_LEN : RCD_IPV6_LEN;

	memcpy(ip4.src, ip_other, 4);
	memcpy(ip4.dst, ip_ours, 4);
	ip4.total_len = (uint16_t)(RCD_IPV4_LEN + RCD_ICMP_ECHO_LEN + sizeof(echo_data));
	if (l3 == RCD_L3_IPV4)
		rcd_ipv4_build(at, &ip4);
	else
		rcd_ipv6_build(at, &ip6);
	rcd_icmp_echo_build(l3, &ip6.src, &ip6.dst, at + hdr_len, &echo);
	return hdr_len + RCD_ICMP_ECHO_LEN + sizeof(echo_data);
}

struct rte_mbuf *
ask(struct rte_mempool *pool, enum question question)
{
	static const uint8_t nodes_mac[] = { 0x33, 0x33, 0xff, 0, 0, 1 };
	static const struct {
		const uint8_t *mac;
		uint16_t vlan, type;
	} frames[] = {
		[ASK_ARP] = { all_macs, 0, RCD_ETHERTYPE_ARP },
		[ASK_ARP_VLAN] = { all_macs, 5, RCD_ETHERTYPE_ARP },
		[ASK_ND] = { nodes_mac, 0, RCD_ETHERTYPE_IPV6 },
		[ASK_ECHO] = { our_mac, 0, RCD_ETHERTYPE_IPV4 },
		[ASK_ECHO6] = { our_mac, 0, RCD_ETHERTYPE_IPV6 },
	};
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	struct rcd_eth eth = { .tagged = frames[question].vlan != 0,
		.vlan_tci = frames[question].vlan,
		.ethertype = frames[question].type };
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	size_t len = rcd_eth_len(&eth);

	memcpy(eth.dst, frames[question].mac, RCD_MAC_LEN);
	memcpy(eth.src, other_mac, RCD_MAC_LEN);
	rcd_eth_build(frame, &eth);
	switch (question) {
	case ASK_ARP:
	case ASK_ARP_VLAN:
		ask_arp(frame + len, question == ASK_ARP ? ip_ours : ip_vlan);
		len += RCD_ARP_LEN;
		break;
	case ASK_ND:
		len += ask_nd(frame + len);
		break;
	case ASK_ECHO:
	case ASK_ECHO6:
		len += ask_echo(frame + len, question == ASK_ECHO ? RCD_L3_IPV4 : RCD_L3_IPV6);
		break;
	case ASK_COUNT:
		break;
	}
	rte_pktmbuf_append(mbuf, (uint16_t)len);
	return mbuf;
}

static bool
answers_arp(const uint8_t *at, size_t len, const uint8_t *target)
{
	struct rcd_arp arp;

	return rcd_arp_parse(at, len, &arp) == RCD_VERDICT_OK && arp.op == RCD_ARP_REPLY &&
		memcmp(arp.sender_mac, our_mac, RCD_MAC_LEN) == 0 &&
		memcmp(arp.sender_ip, target, 4) == 0 &&
		memcmp(arp.target_mac, other_mac, RCD_MAC_LEN) == 0 &&
		memcmp(arp.target_ip, ip_other, 4) == 0;
}

/* Whether it goes back, by IP, from the device to who asked. */
static bool
goes_back6(const uint8_t *at, size_t len, struct rcd_ipv6 *ip)
{
	return rcd_ipv6_parse(at, len, ip) == RCD_VERDICT_OK &&
		ip->next_header == RCD_IP_PROTO_ICMPV6 && ip->payload_len == len - RCD_IPV6_LEN &&
		memcmp(ip->src.raw, ip6_ours, RCD_GID_LEN) == 0 &&
		memcmp(ip->dst.raw, ip6_other, RCD_GID_LEN) == 0;
}

static bool
answers_nd(const uint8_t *at, size_t len)
{
	struct rcd_ipv6 ip;
	struct rcd_nd nd;

	return goes_back6(at, len, &ip) &&
		rcd_nd_parse(&ip.src, &ip.dst, ip.hop_limit, at + RCD_IPV6_LEN, len - RCD_IPV6_LEN,
			&nd) == RCD_VERDICT_OK &&
		nd.advertisement && nd.solicited && nd.has_mac &&
		memcmp(nd.target.raw, ip6_ours, RCD_GID_LEN) == 0 &&
		memcmp(nd.mac, our_mac, RCD_MAC_LEN) == 0;
}

static bool
is_echo(enum rcd_l3 l3, const struct rcd_ipv6 *ip, const uint8_t *at, size_t len)
{
	struct rcd_icmp_echo echo;

	return rcd_icmp_echo_parse(l3, &ip->src, &ip->dst, at, len, &echo) == RCD_VERDICT_OK &&
		echo.reply && echo.id == ECHO_ID && echo.seq == ECHO_SEQ &&
		echo.data_len == sizeof(echo_data) &&
		memcmp(echo.data, echo_data, sizeof(echo_data)) == 0;
}

static bool
answers_echo(const uint8_t *at, size_t len)
{
	struct rcd_ipv4 ip;

	return rcd_ipv4_parse(at, len, &ip) == RCD_VERDICT_OK && ip.hdr_len == RCD_IPV4_LEN &&
		rcd_ipv4_csum_ok(at, RCD_IPV4_LEN) && ip.protocol == RCD_IP_PROTO_ICMP &&
		ip.total_len == len && memcmp(ip.src, ip_ours, 4) == 0 &&
		memcmp(ip.dst, ip_other, 4) == 0 &&
		is_echo(RCD_L3_IPV4, &(struct rcd_ipv6){ .hop_limit = 0 }, at + RCD_IPV4_LEN,
			len - RCD_IPV4_LEN);
}

static bool
answers_echo6(const uint8_t *at, size_t len)
{
	struct rcd_ipv6 ip;

	return goes_back6(at, len, &ip) &&
		is_echo(RCD_L3_IPV6, &ip, at + RCD_IPV6_LEN, len - RCD_IPV6_LEN);
}

bool
answered_by(const struct rte_mbuf *mbuf, enum question question)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *), *at;
	size_t len = rte_pktmbuf_data_len(mbuf);
	struct rcd_eth eth;

	if (rcd_eth_parse(frame, len, &eth) != RCD_VERDICT_OK ||
		memcmp(eth.dst, other_mac, RCD_MAC_LEN) != 0 ||
		memcmp(eth.src, our_mac, RCD_MAC_LEN) != 0 ||
		eth.vlan_tci != (question == ASK_ARP_VLAN ? 5 : 0))
		return false;
	at = frame + rcd_eth_len(&eth);
	len -= rcd_eth_len(&eth);
	switch (question) {
	case ASK_ARP:
		return eth.ethertype == RCD_ETHERTYPE_ARP && answers_arp(at, len, ip_ours);
	case ASK_ARP_VLAN:
		return eth.ethertype == RCD_ETHERTYPE_ARP && answers_arp(at, len, ip_vlan);
	case ASK_ND:
		return eth.ethertype == RCD_ETHERTYPE_IPV6 && answers_nd(at, len);
	case ASK_ECHO:
		return eth.ethertype == RCD_ETHERTYPE_IPV4 && answers_echo(at, len);
	case ASK_ECHO6:
		return eth.ethertype == RCD_ETHERTYPE_IPV6 && answers_echo6(at, len);
	case ASK_COUNT:
		break;
	}
	return false;
}
