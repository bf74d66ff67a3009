/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A link of a test's own.
 */
#include "link.h"

#include <net/if.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_veth.h"
#include "rig.h"

#define ETH_P_EVERYTHING 0x0300 /* ETH_P_ALL in the network's order */

const uint8_t link_stranger_mac[RCD_MAC_LEN] = { 2, 0x57, 0x72, 0x61, 0x6e, 0x67 };

const char *
link_make(void)
{
	if (getuid() != 0)
		return "needs root, for a network namespace";
	if (unshare(CLONE_NEWNET) != 0)
		return "no network namespace to be had here";
	if (system("ip link set lo up && ip link add v0 type veth peer name v1 && "
		   "ip link set v0 up && ip link set v1 up") != 0 ||
		rcd_veth_wait("v0") != 0 || rcd_veth_wait("v1") != 0)
		return "no veth to be had here";
	return NULL;
}

struct rcd_gid
link_gid(uint8_t net, uint8_t high, uint8_t low)
{
	uint8_t ip[4] = { 10, net, high, low };

	return rcd_gid_from_ipv4(ip);
}

void
link_send(struct link *link, const void *frame, size_t len)
{
	/* A queue that is full is full for a moment. */
	for (int i = 0; i < 1000 && send(link->sock, frame, len, 0) < 0; i++)
		usleep(1000);
}

static void
put_arp(struct link *link, const struct rcd_arp *arp, const uint8_t *dst, uint16_t vlan_id)
{
	uint8_t frame[64] = "";
	struct rcd_eth eth = {
		.ethertype = RCD_ETHERTYPE_ARP, .tagged = vlan_id != 0, .vlan_tci = vlan_id
	};

	memcpy(eth.dst, dst, RCD_MAC_LEN);
	memcpy(eth.src, arp->sender_mac, RCD_MAC_LEN);
	rcd_eth_build(frame, &eth);
	rcd_arp_build(frame + rcd_eth_len(&eth), arp);
	link_send(link, frame, sizeof(frame));
}

void
link_arp(struct link *link, const struct rcd_gid *sender, const uint8_t *mac,
	const struct rcd_gid *target, uint16_t vlan_id)
{
	static const uint8_t all[RCD_MAC_LEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct rcd_arp arp = { .op = RCD_ARP_REQUEST };

	memcpy(arp.sender_mac, mac, RCD_MAC_LEN);
	memcpy(arp.sender_ip, sender->raw + 12, 4);
	memcpy(arp.target_ip, target->raw + 12, 4);
	put_arp(link, &arp, all, vlan_id);
}

/* MACs that two threads share: byte by byte, and a frame meanwhile may have some of each. */
static void
put_mac(uint8_t *to, const uint8_t *from)
{
	for (uint32_t i = 0; i < RCD_MAC_LEN; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

static void
get_mac(uint8_t *to, const uint8_t *from)
{
	for (uint32_t i = 0; i < RCD_MAC_LEN; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void
link_be(struct link *link, const uint8_t *mac)
{
	put_mac(link->peer_mac, mac);
}

bool
link_went_to(const struct link *link, const uint8_t *mac)
{
	uint8_t last[RCD_MAC_LEN];

	get_mac(last, link->to_mac);
	return memcmp(last, mac, RCD_MAC_LEN) == 0;
}

/* ARP of the engine: counted, and answered when it asks for a peer. */
static void
take_arp(struct link *link, const uint8_t *frame, size_t len, const struct rcd_eth *eth)
{
	static const uint8_t peers[3] = { 10, 78, 0 };
	struct rcd_arp arp, answer = { .op = RCD_ARP_REPLY };
	size_t at = rcd_eth_len(eth);

	if (rcd_arp_parse(frame + at, len - at, &arp) != RCD_VERDICT_OK)
		return;
	__atomic_fetch_add(
		arp.op == RCD_ARP_REQUEST ? &link->asked : &link->answers, 1, __ATOMIC_SEQ_CST);
	if (arp.op != RCD_ARP_REQUEST || memcmp(arp.target_ip, peers, sizeof(peers)) != 0)
		return;
	get_mac(answer.sender_mac, link->peer_mac);
	memcpy(answer.sender_ip, arp.target_ip, 4);
	memcpy(answer.target_mac, arp.sender_mac, RCD_MAC_LEN);
	memcpy(answer.target_ip, arp.sender_ip, 4);
	put_arp(link, &answer, eth->src, 0);
}

struct rcd_gid
link_gid6(uint8_t net, uint8_t high, uint8_t low)
{
	return (struct rcd_gid){ { 0xfd, net, [14] = high, [15] = low } };
}

void
link_nd(struct link *link, const struct rcd_gid *sender, const struct rcd_gid *to,
	const struct rcd_nd *nd, uint16_t vlan_id)
{
	uint8_t frame[128];
	struct rcd_eth eth = { .dst = { 0x33, 0x33 },
		.ethertype = RCD_ETHERTYPE_IPV6,
		.tagged = vlan_id != 0,
		.vlan_tci = vlan_id };
	struct rcd_ipv6 ip = { .hop_limit = RCD_ND_HOP_LIMIT,
		.next_header = RCD_IP_PROTO_ICMPV6,
		.payload_len = RCD_ND_LEN,
		.src = *sender,
		.dst = *to };
	size_t at = rcd_eth_len(&eth);

	memcpy(eth.dst + 2, to->raw + 12, 4);
	memcpy(eth.src, nd->mac, RCD_MAC_LEN);
	rcd_eth_build(frame, &eth);
	rcd_ipv6_build(frame + at, &ip);
	rcd_nd_build(frame + at + RCD_IPV6_LEN, sender, to, nd);
	link_send(link, frame, at + RCD_IPV6_LEN + RCD_ND_LEN);
}

void
link_nd_ask(struct link *link, const struct rcd_gid *sender, const uint8_t *mac,
	const struct rcd_gid *target, uint16_t vlan_id)
{
	struct rcd_gid group = rcd_nd_solicited_node(target);
	struct rcd_nd nd = { .has_mac = true, .target = *target };

	memcpy(nd.mac, mac, RCD_MAC_LEN);
	link_nd(link, sender, &group, &nd, vlan_id);
}

void
link_nd_tell(struct link *link, const struct rcd_gid *sender, const uint8_t *mac,
	const struct rcd_gid *to, uint16_t vlan_id)
{
	struct rcd_nd nd = {
		.advertisement = true, .override = true, .has_mac = true, .target = *sender
	};

	memcpy(nd.mac, mac, RCD_MAC_LEN);
	link_nd(link, sender, to, &nd, vlan_id);
}

/* ND of the engine: counted, and answered when it asks for a peer. */
static void
take_nd(struct link *link, const uint8_t *frame, size_t len, const struct rcd_eth *eth)
{
	struct rcd_gid peers = link_gid6(0x78, 0, 0);
	size_t at = rcd_eth_len(eth);
	struct rcd_ipv6 ip;
	struct rcd_nd nd;
	uint8_t mac[RCD_MAC_LEN];

	if (rcd_ipv6_parse(frame + at, len - at, &ip) != RCD_VERDICT_OK ||
		ip.next_header != RCD_IP_PROTO_ICMPV6 || len < at + RCD_IPV6_LEN + ip.payload_len ||
		rcd_nd_parse(&ip.src, &ip.dst, ip.hop_limit, frame + at + RCD_IPV6_LEN,
			ip.payload_len, &nd) != RCD_VERDICT_OK ||
		ip.src.raw[0] != peers.raw[0])
		return; /* the kernel has addresses of its own there */
	__atomic_fetch_add(nd.advertisement ? &link->answers : &link->asked, 1, __ATOMIC_SEQ_CST);
	get_mac(mac, link->peer_mac);
	if (!nd.advertisement && memcmp(nd.target.raw, peers.raw, 15) == 0)
		link_nd_tell(link, &nd.target, mac, &ip.src, 0);
}

static void
take_roce(struct link *link, const struct rcd_pkt *pkt)
{
	struct rcd_cm msg;
	uint16_t attr;

	if (pkt->roce.bth.dest_qpn.val != RCD_QPN_GSI) {
		put_mac(link->to_mac, pkt->eth.dst);
		__atomic_store_n(&link->to_qpn, pkt->roce.bth.dest_qpn.val, __ATOMIC_SEQ_CST);
		return;
	}
	if (pkt->payload_len != RCD_MAD_LEN)
		return;
	attr = rcd_get_be16(pkt->payload + 16);
	if (attr == RCD_CM_REP && rcd_cm_parse(pkt->payload + RCD_MAD_HDR_LEN, attr, &msg))
		__atomic_store_n(&link->rep_id, (uint32_t)msg.rep.local_comm_id, __ATOMIC_SEQ_CST);
	if (attr != RCD_CM_DREP)
		return;
	__atomic_fetch_add(&link->dreps, 1, __ATOMIC_SEQ_CST);
	if (memcmp(pkt->eth.dst, link_stranger_mac, RCD_MAC_LEN) != 0)
		__atomic_fetch_add(&link->dreps_astray, 1, __ATOMIC_SEQ_CST);
}

static void *
watch(void *arg)
{
	struct link *link = arg;
	uint8_t frame[8192];

	for (;;) {
		struct sockaddr_ll from;
		socklen_t from_len = sizeof(from);
		ssize_t len = recvfrom(
			link->sock, frame, sizeof(frame), 0, (struct sockaddr *)&from, &from_len);
		struct rcd_eth eth;
		struct rcd_pkt pkt;

		if (len < 0)
			return NULL;
		if (from.sll_pkttype == PACKET_OUTGOING ||
			rcd_eth_parse(frame, (size_t)len, &eth) != RCD_VERDICT_OK)
			continue;
		if (eth.ethertype == RCD_ETHERTYPE_ARP)
			take_arp(link, frame, (size_t)len, &eth);
		else if (rcd_pkt_parse(frame, (uint32_t)len, &pkt) == RCD_VERDICT_OK)
			take_roce(link, &pkt);
		else if (eth.ethertype == RCD_ETHERTYPE_IPV6)
			take_nd(link, frame, (size_t)len, &eth);
	}
}

void
link_open(struct link *link)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET,
		.sll_protocol = ETH_P_EVERYTHING,
		.sll_ifindex = (int)if_nametoindex("v1") };
	int room = 8 << 20;
	pthread_t thread;

	memset(link, 0, sizeof(*link));
	memcpy(link->peer_mac, "\2peer1", RCD_MAC_LEN);
	link->sock = socket(AF_PACKET, SOCK_RAW, ETH_P_EVERYTHING);
	MUST(link->sock >= 0);
	setsockopt(link->sock, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	MUST(bind(link->sock, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	MUST(pthread_create(&thread, NULL, watch, link) == 0);
	pthread_detach(thread);
}

struct rcd_path
link_path(const struct rcd_gid *sgid, const struct rcd_gid *dgid, const uint8_t *smac,
	const uint8_t *dmac, uint16_t vlan_id)
{
	struct rcd_path path = {
		.tagged = vlan_id != 0,
		.vlan_tci = vlan_id,
		.l3 = RCD_L3_IPV4,
		.hop_limit = 64,
		.sport = 0xc000,
		.sgid = *sgid,
		.dgid = *dgid,
	};

	memcpy(path.smac, smac, RCD_MAC_LEN);
	memcpy(path.dmac, dmac, RCD_MAC_LEN);
	return path;
}

void
link_roce(struct link *link, const struct rcd_path *path, const struct rcd_roce *roce,
	const void *payload, uint32_t len)
{
	uint8_t frame[1024];
	size_t at = rcd_pkt_build(frame, path, roce, len);

	MUST(len <= RCD_MAD_LEN);
	memcpy(frame + at, payload, len);
	link_send(link, frame, rcd_pkt_seal(frame, path, at, len));
}

void
link_cm(struct link *link, const struct rcd_path *path, const struct rcd_cm *msg)
{
	struct rcd_mad hdr = {
		.base_version = RCD_MAD_BASE_VERSION,
		.mgmt_class = RCD_MAD_CLASS_CM,
		.class_version = RCD_CM_CLASS_VERSION,
		.method = RCD_CM_METHOD_SEND,
		.attr_id = (uint16_t)msg->attr,
	};
	struct rcd_roce roce = {
		.bth = { .opcode = RCD_OPCODE_UD_SEND_ONLY,
			.pkey = { RCD_PKEY_DEFAULT },
			.dest_qpn = { RCD_QPN_GSI } },
		.deth = { .qkey = { RCD_QKEY_GSI }, .src_qpn = { RCD_QPN_GSI } },
	};
	uint8_t mad[RCD_MAD_LEN];

	rcd_mad_build(mad, &hdr);
	rcd_cm_build(mad + RCD_MAD_HDR_LEN, msg);
	link_roce(link, path, &roce, mad, sizeof(mad));
}
