/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a port needs besides RoCE when the engine owns its addresses: ARP and neighbour discovery
 * answered and learned from, echo requests answered. Runs on lcores; the table of neighbours is
 * the control thread's.
 */
#include "rcd_link.h"

#include "rcd_arp.h"
#include "rcd_counter.h"
#include "rcd_eth.h"
#include "rcd_gid.h"
#include "rcd_gid_table.h"
#include "rcd_icmp.h"
#include "rcd_igmp.h"
#include "rcd_ip.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_nd.h"
#include "rcd_note.h"
#include "rcd_pkt.h"
#include "rcd_thread.h"
#include "rcd_tx.h"
#include "rcd_verdict.h"

#include <rte_mbuf.h>

/* The control thread is to know of this, unless too many want to tell it things. */
static void
link_tell(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rcd_note *note)
{
	rcd_counter_add(rcd_lcore_counters(lcore, lport),
		rcd_note_send_link(lcore, note) ? RCD_COUNTER_RX_LINK_TOLD
						: RCD_COUNTER_RX_DROP_LINK_RATE,
		1);
}

static void
link_learn(struct rcd_lcore *lcore, const struct rcd_lport *lport, uint16_t vlan_id,
	const struct rcd_gid *gid, const uint8_t *mac)
{
	struct rcd_note note = {
		.kind = RCD_NOTE_NEIGH, .whom = lport->index, .gid = *gid, .vlan_id = vlan_id
	};

	/* Of whom nobody asked for the control thread need not hear. */
	if (!lcore->lcores->ops->wants_neighbour(lcore->lcores->arg, lport, vlan_id, gid))
		return;
	memcpy(note.mac, mac, RCD_MAC_LEN);
	link_tell(lcore, lport, &note);
}

/* The place of an address that is ours in this VLAN. One of another VLAN is not, and is counted. */
static int
link_find_ours(struct rcd_lcore *lcore, const struct rcd_lport *lport, uint16_t vlan_id,
	const struct rcd_gid *gid)
{
	const struct rcd_gid_table *table = &rcd_lport_view(lport)->gids;
	int at = rcd_gid_table_find(table, gid);

	if (at < 0 || table->entries[at].vlan_id == vlan_id)
		return at;
	rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_VLAN, 1);
	return -1;
}

static void
link_transmit(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf,
	size_t len, enum rcd_counter counter)
{
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	rcd_counter_add(rcd_lcore_counters(lcore, lport), counter, 1);
	rcd_tx_frame(lcore, lport, mbuf);
}

/* Ethernet header back to where the frame came from. @return its bytes */
static size_t
link_reply_eth(
	const struct rcd_lport *lport, const struct rcd_eth *in, const uint8_t *dst, uint8_t *frame)
{
	struct rcd_eth eth = *in;

	memcpy(eth.dst, dst, RCD_MAC_LEN);
	memcpy(eth.src, rcd_lport_view(lport)->mac, RCD_MAC_LEN);
	rcd_eth_build(frame, &eth);
	return rcd_eth_len(&eth);
}

/* A tag that the port took off is on the answer all the same. */
static void
link_put_tag_back(struct rcd_eth *eth, uint16_t stripped)
{
	if (stripped == 0)
		return;
	eth->tagged = true;
	eth->vlan_tci = stripped;
}

static void
link_rx_arp(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_frame *frame,
	uint16_t stripped)
{
	struct rcd_eth eth;
	uint16_t vlan_id;
	struct rcd_arp arp;
	struct rcd_gid sender, target;
	struct rte_mbuf *mbuf;
	size_t at;

	if (rcd_eth_parse(frame->data, frame->len, &eth) != RCD_VERDICT_OK)
		return;
	at = rcd_eth_len(&eth);
	if (rcd_arp_parse(frame->data + at, frame->len - at, &arp) != RCD_VERDICT_OK)
		return;
	vlan_id = rcd_link_vlan(&eth, stripped);
	sender = rcd_gid_from_ipv4(arp.sender_ip);
	target = rcd_gid_from_ipv4(arp.target_ip);
	if (rcd_lport_gid_find(lport, &sender) >= 0)
		return;
	/* Who tells all that it has another MAC (RFC 5227, 3) asks for itself. */
	if (rcd_gid_eq(&sender, &target)) {
		link_learn(lcore, lport, vlan_id, &sender, arp.sender_mac);
		return;
	}
	if (link_find_ours(lcore, lport, vlan_id, &target) < 0)
		return;
	/* RFC 826: who asks for us, or answers us, is worth knowing. */
	link_learn(lcore, lport, vlan_id, &sender, arp.sender_mac);
	if (arp.op != RCD_ARP_REQUEST)
		return;
	link_put_tag_back(&eth, stripped);
	mbuf = rcd_tx_mbuf(lcore);
	if (mbuf == NULL)
		return;
	at = link_reply_eth(lport, &eth, arp.sender_mac, rte_pktmbuf_mtod(mbuf, uint8_t *));
	arp.op = RCD_ARP_REPLY;
	memcpy(arp.target_mac, arp.sender_mac, RCD_MAC_LEN);
	memcpy(arp.target_ip, arp.sender_ip, 4);
	memcpy(arp.sender_mac, rcd_lport_view(lport)->mac, RCD_MAC_LEN);
	memcpy(arp.sender_ip, target.raw + 12, 4);
	rcd_arp_build(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, at), &arp);
	link_transmit(lcore, lport, mbuf, at + RCD_ARP_LEN, RCD_COUNTER_TX_ARP_ND);
}

/* An ICMPv6 message in a frame of its own. */
static void
link_send_nd(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_eth *eth,
	const struct rcd_gid *src, const struct rcd_gid *dst, const struct rcd_nd *nd)
{
	struct rcd_ipv6 ip = {
		.hop_limit = RCD_ND_HOP_LIMIT,
		.next_header = RCD_IP_PROTO_ICMPV6,
		.payload_len = RCD_ND_LEN,
		.src = *src,
		.dst = *dst,
	};
	struct rte_mbuf *mbuf = rcd_tx_mbuf(lcore);
	uint8_t *frame;
	size_t at;

	if (mbuf == NULL)
		return;
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	rcd_eth_build(frame, eth);
	at = rcd_eth_len(eth);
	rcd_ipv6_build(frame + at, &ip);
	rcd_nd_build(frame + at + RCD_IPV6_LEN, src, dst, nd);
	link_transmit(lcore, lport, mbuf, at + RCD_IPV6_LEN + RCD_ND_LEN, RCD_COUNTER_TX_ARP_ND);
}

static void
link_rx_nd(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_eth *eth,
	uint16_t vlan_id, const struct rcd_ipv6 *ip, const struct rcd_nd *nd)
{
	static const struct rcd_gid unspecified;
	struct rcd_gid all_nodes = { { 0xff, 0x02, [15] = 1 } };
	struct rcd_eth back = *eth;
	struct rcd_nd answer = {
		.advertisement = true, .override = true, .has_mac = true, .target = nd->target
	};
	bool probe = rcd_gid_eq(&ip->src, &unspecified);

	if (nd->advertisement) {
		if (nd->has_mac && rcd_lport_gid_find(lport, &nd->target) < 0)
			link_learn(lcore, lport, vlan_id, &nd->target, nd->mac);
		return;
	}
	if (link_find_ours(lcore, lport, vlan_id, &nd->target) < 0)
		return;
	if (nd->has_mac && !probe)
		link_learn(lcore, lport, vlan_id, &ip->src, nd->mac);
	answer.solicited = !probe;
	memcpy(answer.mac, rcd_lport_view(lport)->mac, RCD_MAC_LEN);
	memcpy(back.src, rcd_lport_view(lport)->mac, RCD_MAC_LEN);
	memcpy(back.dst, eth->src, RCD_MAC_LEN);
	link_send_nd(lcore, lport, &back, &nd->target, probe ? &all_nodes : &ip->src, &answer);
}

static void
link_answer_echo(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_eth *eth,
	const struct rcd_pkt *pkt, struct rcd_icmp_echo *echo)
{
	struct rte_mbuf *mbuf = rcd_tx_mbuf(lcore);
	size_t icmp_len = RCD_ICMP_ECHO_LEN + echo->data_len;
	uint8_t *frame;
	size_t at;

	if (mbuf == NULL)
		return;
	if (RCD_ETH_LEN + RCD_VLAN_TAG_LEN + RCD_IPV6_LEN + icmp_len > rte_pktmbuf_tailroom(mbuf)) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	at = link_reply_eth(lport, eth, eth->src, frame);
	if (pkt->l3 == RCD_L3_IPV4) {
		struct rcd_ipv4 ip = {
			.ttl = 64,
			.protocol = RCD_IP_PROTO_ICMP,
			.total_len = (uint16_t)(RCD_IPV4_LEN + icmp_len),
			.id = lcore->ipv4_id++,
		};

		memcpy(ip.src, pkt->dgid.raw + 12, 4);
		memcpy(ip.dst, pkt->sgid.raw + 12, 4);
		rcd_ipv4_build(frame + at, &ip);
		at += RCD_IPV4_LEN;
	} else {
		struct rcd_ipv6 ip = {
			.hop_limit = RCD_HOP_LIMIT,
			.next_header = RCD_IP_PROTO_ICMPV6,
			.payload_len = (uint16_t)icmp_len,
			.src = pkt->dgid,
			.dst = pkt->sgid,
		};

		rcd_ipv6_build(frame + at, &ip);
		at += RCD_IPV6_LEN;
	}
	echo->reply = true;
	rcd_icmp_echo_build((enum rcd_l3)pkt->l3, &pkt->dgid, &pkt->sgid, frame + at, echo);
	link_transmit(lcore, lport, mbuf, at + icmp_len, RCD_COUNTER_TX_ECHO);
}

static void
link_rx_icmp(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_pkt *pkt,
	uint16_t vlan_id, const uint8_t *message, size_t len)
{
	struct rcd_icmp_echo echo;

	if (link_find_ours(lcore, lport, vlan_id, &pkt->dgid) < 0)
		return;
	if (rcd_icmp_echo_parse((enum rcd_l3)pkt->l3, &pkt->sgid, &pkt->dgid, message, len,
		    &echo) != RCD_VERDICT_OK ||
		echo.reply)
		return;
	link_answer_echo(lcore, lport, &pkt->eth, pkt, &echo);
}

/* The control thread knows what groups there are. */
static void
link_rx_membership(struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_pkt *pkt, size_t len)
{
	struct rcd_note note = { .kind = RCD_NOTE_QUERY, .whom = lport->index };

	if (rcd_membership_is_query((enum rcd_l3)pkt->l3, pkt->ip, len))
		link_tell(lcore, lport, &note);
}

void
rcd_link_rx(struct rcd_lcore *lcore, const struct rcd_lport *lport, enum rcd_verdict verdict,
	const struct rcd_frame *frame, uint16_t stripped)
{
	struct rcd_pkt pkt;
	uint16_t vlan_id;
	const uint8_t *end = frame->data + frame->len;

	RCD_ON_LCORE(lcore);
	if (verdict == RCD_VERDICT_ARP) {
		link_rx_arp(lcore, lport, frame, stripped);
		return;
	}
	if (verdict != RCD_VERDICT_ICMP && verdict != RCD_VERDICT_ICMPV6 &&
		verdict != RCD_VERDICT_OTHER_IP_PROTOCOL)
		return;
	/* The parser has found the IP header to be in order, and the addresses. */
	rcd_pkt_parse(frame->data, frame->len, &pkt);
	vlan_id = rcd_link_vlan(&pkt.eth, stripped);
	link_put_tag_back(&pkt.eth, stripped);
	if (verdict == RCD_VERDICT_OTHER_IP_PROTOCOL) {
		link_rx_membership(lcore, lport, &pkt, (size_t)(end - pkt.ip));
		return;
	}
	if (verdict == RCD_VERDICT_ICMP) {
		struct rcd_ipv4 ip;

		if (rcd_ipv4_parse(pkt.ip, (size_t)(end - pkt.ip), &ip) != RCD_VERDICT_OK ||
			ip.total_len < ip.hdr_len || ip.total_len > end - pkt.ip)
			return;
		link_rx_icmp(lcore, lport, &pkt, vlan_id, pkt.ip + ip.hdr_len,
			ip.total_len - (size_t)ip.hdr_len);
	} else {
		const uint8_t *message = pkt.ip + RCD_IPV6_LEN;
		struct rcd_ipv6 ip;
		struct rcd_nd nd;

		if (rcd_ipv6_parse(pkt.ip, (size_t)(end - pkt.ip), &ip) != RCD_VERDICT_OK ||
			ip.next_header != RCD_IP_PROTO_ICMPV6 || ip.payload_len > end - message)
			return;
		if (rcd_nd_parse(&ip.src, &ip.dst, ip.hop_limit, message, ip.payload_len, &nd) ==
			RCD_VERDICT_OK)
			link_rx_nd(lcore, lport, &pkt.eth, vlan_id, &ip, &nd);
		else
			link_rx_icmp(lcore, lport, &pkt, vlan_id, message, ip.payload_len);
	}
}

void
rcd_link_solicit(struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_gid *source, const struct rcd_gid *target, uint16_t vlan_id)
{
	struct rcd_eth eth = { .tagged = vlan_id != 0, .vlan_tci = vlan_id };

	RCD_ON_LCORE(lcore);
	if (lcore->txq_of[lport->index] == NULL)
		return;
	memcpy(eth.src, rcd_lport_view(lport)->mac, RCD_MAC_LEN);
	if (rcd_gid_is_ipv4(target)) {
		struct rcd_arp arp = { .op = RCD_ARP_REQUEST };
		struct rte_mbuf *mbuf = rcd_tx_mbuf(lcore);
		uint8_t *frame;

		if (mbuf == NULL)
			return;
		frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
		memset(eth.dst, 0xff, RCD_MAC_LEN);
		eth.ethertype = RCD_ETHERTYPE_ARP;
		rcd_eth_build(frame, &eth);
		memcpy(arp.sender_mac, rcd_lport_view(lport)->mac, RCD_MAC_LEN);
		memcpy(arp.sender_ip, source->raw + 12, 4);
		memcpy(arp.target_ip, target->raw + 12, 4);
		rcd_arp_build(frame + rcd_eth_len(&eth), &arp);
		link_transmit(
			lcore, lport, mbuf, rcd_eth_len(&eth) + RCD_ARP_LEN, RCD_COUNTER_TX_ARP_ND);
	} else {
		struct rcd_gid group = rcd_nd_solicited_node(target);
		struct rcd_nd nd = { .has_mac = true, .target = *target };

		eth.ethertype = RCD_ETHERTYPE_IPV6;
		rcd_gid_multicast_mac(&group, eth.dst);
		memcpy(nd.mac, rcd_lport_view(lport)->mac, RCD_MAC_LEN);
		link_send_nd(lcore, lport, &eth, source, &group, &nd);
	}
}

void
rcd_link_membership(struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_gid *source, const struct rcd_gid *group, uint16_t vlan_id, bool leave)
{
	struct rcd_eth eth = { .tagged = vlan_id != 0, .vlan_tci = vlan_id };
	struct rte_mbuf *mbuf;
	struct rcd_gid to;
	uint8_t *frame;
	size_t len;

	RCD_ON_LCORE(lcore);
	lcore->work++;
	mbuf = lcore->txq_of[lport->index] != NULL ? rcd_tx_mbuf(lcore) : NULL;
	if (mbuf == NULL)
		return;
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	eth.ethertype = rcd_gid_is_ipv4(group) ? RCD_ETHERTYPE_IPV4 : RCD_ETHERTYPE_IPV6;
	len = rcd_membership_build(frame + rcd_eth_len(&eth), source, group, leave, &to);
	memcpy(eth.src, rcd_lport_view(lport)->mac, RCD_MAC_LEN);
	rcd_gid_multicast_mac(&to, eth.dst);
	rcd_eth_build(frame, &eth);
	link_transmit(lcore, lport, mbuf, rcd_eth_len(&eth) + len, RCD_COUNTER_TX_MEMBERSHIP);
}
