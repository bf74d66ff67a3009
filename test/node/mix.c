/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Each packet is made of its number: what comes out is compared with one made again, as a router
 * would have changed it.
 */
#include "mix.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <stdio.h>
#include <string.h>

#include "rcd_arp.h"
#include "rcd_bytes.h"
#include "rcd_eth.h"
#include "rcd_icmp.h"
#include "rcd_ip.h"
#include "rcd_pkt.h"

#define BURST     64
#define TTL       64
#define PROTO_TCP 6

int
mix_init(struct mix *mix, struct rte_mempool *pool, uint64_t seed)
{
	char name[RTE_RING_NAMESIZE];

	mix->pool = pool;
	mix->random = seed;
	for (uint32_t i = 0; i < MIX_PORTS * MIX_QUEUES; i++) {
		struct rte_ring **in = &mix->in[i % MIX_PORTS][i / MIX_PORTS];
		struct rte_ring **out = &mix->out[i % MIX_PORTS][i / MIX_PORTS];

		snprintf(name, sizeof(name), "in%u", i);
		*in = rte_ring_create(name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		snprintf(name, sizeof(name), "out%u", i);
		*out = rte_ring_create(name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (*in == NULL || *out == NULL)
			return -1;
	}
	return 0;
}

static uint32_t
draw(struct mix *mix, uint32_t below)
{
	mix->random = mix->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(mix->random >> 33) % below;
}

/* Who sends: the host behind a port, to the port. */
static void
put_macs(struct rcd_eth *eth, uint16_t port)
{
	memcpy(eth->dst, (uint8_t[])MIX_MAC(port, false), RCD_MAC_LEN);
	memcpy(eth->src, (uint8_t[])MIX_MAC(port, true), RCD_MAC_LEN);
}

static void
put_ipv4(uint8_t *at, uint32_t len, uint8_t protocol, const uint8_t src[4], const uint8_t dst[4])
{
	memset(at, 0, RCD_IPV4_LEN);
	at[0] = 0x45;
	rcd_put_be16(at + 2, (uint16_t)len);
	at[8] = TTL;
	at[9] = protocol;
	memcpy(at + 12, src, 4);
	memcpy(at + 16, dst, 4);
	rcd_put_be16(at + 10, rcd_csum_fold(rcd_csum_add(0, at, RCD_IPV4_LEN)));
}

/* To an address behind port `to`, or behind none: UDP, RoCE for somebody else, or TCP. */
static uint32_t
make_routed(uint8_t *frame, uint32_t number, uint16_t from, uint16_t to)
{
	static const uint8_t protocols[] = { RCD_IP_PROTO_UDP, PROTO_TCP, RCD_IP_PROTO_UDP,
		RCD_IP_PROTO_ICMP, RCD_IP_PROTO_UDP, 47 };
	struct rcd_eth eth = { .ethertype = RCD_ETHERTYPE_IPV4 };
	uint32_t len = 60 + number * 2654435761u % (MIX_LEN - 60);
	uint8_t src[] = { 10, 2, (uint8_t)from, 9 };
	uint8_t dst[] = { 10, 2, (uint8_t)to, (uint8_t)number };

	for (uint32_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(number * 3 + i * 7);
	put_macs(&eth, from);
	rcd_eth_build(frame, &eth);
	put_ipv4(frame + RCD_ETH_LEN, len - RCD_ETH_LEN, protocols[number % RTE_DIM(protocols)],
		src, dst);
	rcd_put_be16(frame + RCD_ETH_LEN + RCD_IPV4_LEN + 2, number % 4 ? 4791 : 53);
	rcd_put_be32(frame + len - 4, number);
	return len;
}

/* What no route of the graph is for: a VLAN, IPv6, ARP for somebody else. */
static uint32_t
make_lost(uint8_t *frame, uint32_t number, uint16_t port)
{
	static const uint16_t types[] = { RCD_ETHERTYPE_IPV6, RCD_ETHERTYPE_ARP, 0x88cc };
	struct rcd_eth eth = { .ethertype = types[number % RTE_DIM(types)],
		.tagged = number % 2 == 0,
		.vlan_tci = 5 };

	memset(frame, (int)number, 100);
	put_macs(&eth, port);
	rcd_eth_build(frame, &eth);
	return 100;
}

static uint32_t
make_arp(uint8_t *frame, uint16_t port, bool of_all)
{
	struct rcd_eth eth = { .ethertype = RCD_ETHERTYPE_ARP };
	struct rcd_arp arp = { .op = RCD_ARP_REQUEST,
		.sender_ip = { 10, 0, (uint8_t)port, 9 },
		.target_ip = { 10, 0, (uint8_t)port, of_all ? 9 : 1 } };

	put_macs(&eth, port);
	memcpy(arp.sender_mac, eth.src, RCD_MAC_LEN);
	memset(eth.dst, 0xff, RCD_MAC_LEN);
	rcd_eth_build(frame, &eth);
	memset(frame + RCD_ETH_LEN, 0, 46);
	rcd_arp_build(frame + RCD_ETH_LEN, &arp);
	return 60;
}

static uint32_t
make_echo(uint8_t *frame, uint16_t port)
{
	uint8_t src[] = { 10, 0, (uint8_t)port, 9 }, dst[] = { 10, 0, (uint8_t)port, 1 };
	static const uint8_t data[56] = "who is there";
	struct rcd_icmp_echo echo = { .id = 7, .data = data, .data_len = sizeof(data) };
	struct rcd_eth eth = { .ethertype = RCD_ETHERTYPE_IPV4 };
	struct rcd_gid sgid = rcd_gid_from_ipv4(src), dgid = rcd_gid_from_ipv4(dst);
	uint32_t len = RCD_IPV4_LEN + RCD_ICMP_ECHO_LEN + sizeof(data);

	put_macs(&eth, port);
	rcd_eth_build(frame, &eth);
	put_ipv4(frame + RCD_ETH_LEN, len, RCD_IP_PROTO_ICMP, src, dst);
	rcd_icmp_echo_build(RCD_L3_IPV4, &sgid, &dgid, frame + RCD_ETH_LEN + RCD_IPV4_LEN, &echo);
	return RCD_ETH_LEN + len;
}

/* For a queue pair that is not there. */
static uint32_t
make_roce(uint8_t *frame, uint32_t number, uint16_t port)
{
	uint8_t src[] = { 10, 0, (uint8_t)port, 9 }, dst[] = { 10, 0, (uint8_t)port, 1 };
	struct rcd_path path = { .dmac = MIX_MAC(port, false),
		.smac = MIX_MAC(port, true),
		.l3 = RCD_L3_IPV4,
		.hop_limit = TTL,
		.sport = (uint16_t)(0xc000 | number),
		.sgid = rcd_gid_from_ipv4(src),
		.dgid = rcd_gid_from_ipv4(dst) };
	struct rcd_roce roce = { .bth = { .opcode = 4, /* RC SEND only */
					 .mig_req = true,
					 .pkey = { 0xffff },
					 .dest_qpn = { 0x123456 },
					 .psn = { number & 0xffffff } } };
	uint32_t payload_len = number % 5 * 64;
	size_t hdr_len = rcd_pkt_build(frame, &path, &roce, payload_len);

	memset(frame + hdr_len, (int)number, payload_len);
	return (uint32_t)rcd_pkt_seal(frame, &path, hdr_len, payload_len);
}

/* One of all kinds, as often as the numbers say. */
static uint32_t
make_any(struct mix *mix, uint8_t *frame, uint32_t number, uint16_t port, uint16_t queue)
{
	struct mix_count *put = &mix->put[port];
	uint32_t kind = draw(mix, 100);
	uint16_t to = (uint16_t)draw(mix, MIX_PORTS);
	struct mix_flow *flow = &mix->flow[port][to][queue];

	if (kind < 66) {
		flow->numbers[flow->tail++ % MIX_FLOW] = number;
		put->routed++;
		return make_routed(frame, number, port, to);
	}
	if (kind < 84) {
		put->roce++;
		return make_roce(frame, number, port);
	}
	if (kind < 90) {
		*(kind < 87 ? &put->arp : &put->echo) += 1;
		return kind < 87 ? make_arp(frame, port, false) : make_echo(frame, port);
	}
	put->dropped++;
	if (kind < 93) {
		put->groups++;
		return make_arp(frame, port, true);
	}
	return kind < 96 ? make_routed(frame, number, port, 7) : make_lost(frame, number, port);
}

static uint32_t
make(struct mix *mix, uint8_t *frame, uint16_t port, uint16_t queue, enum mix_kind kind)
{
	uint32_t number = mix->number++;
	struct mix_flow *flow = &mix->flow[port][1][queue];

	mix->put[port].all++;
	switch (kind) {
	case MIX_ANY:
		return make_any(mix, frame, number, port, queue);
	case MIX_OTHERS:
		flow->numbers[flow->tail++ % MIX_FLOW] = number;
		mix->put[port].routed++;
		return make_routed(frame, number, port, 1);
	case MIX_ROCE:
		mix->put[port].roce++;
		return make_roce(frame, number, port);
	}
	return 0;
}

void
mix_put(struct mix *mix, uint16_t port, uint16_t queue, enum mix_kind kind, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(mix->pool);

		if (mbuf == NULL) {
			mix->put[port].wrong++;
			return;
		}
		/* Ports of rings leave it as it is. */
		mbuf->port = (uint16_t)(77 + i);
		mbuf->pkt_len = make(mix, rte_pktmbuf_mtod(mbuf, uint8_t *), port, queue, kind);
		mbuf->data_len = (uint16_t)mbuf->pkt_len;
		if (rte_ring_enqueue(mix->in[port][queue], mbuf) != 0) {
			mix->put[port].wrong++;
			rte_pktmbuf_free(mbuf);
		}
	}
}

/* Whether it is the next one of its flow, changed as routers do. */
static bool
is_routed_well(struct mix *mix, const uint8_t *frame, uint32_t len, uint16_t to, uint16_t queue)
{
	uint16_t from = frame[RCD_ETH_LEN + 14];
	uint32_t number = rcd_get_be32(frame + len - 4);
	uint8_t wanted[MIX_LEN], *ip = wanted + RCD_ETH_LEN;
	struct rcd_eth eth = { .ethertype = RCD_ETHERTYPE_IPV4 };
	struct mix_flow *flow;

	if (from >= MIX_PORTS || make_routed(wanted, number, from, to) != len)
		return false;
	flow = &mix->flow[from][to][queue];
	if (flow->head == flow->tail || flow->numbers[flow->head++ % MIX_FLOW] != number)
		return false;
	memcpy(eth.dst, (uint8_t[])MIX_MAC(to, true), RCD_MAC_LEN);
	memcpy(eth.src, (uint8_t[])MIX_MAC(to, false), RCD_MAC_LEN);
	rcd_eth_build(wanted, &eth);
	ip[8] = TTL - 1;
	rcd_put_be16(ip + 10, 0);
	rcd_put_be16(ip + 10, rcd_csum_fold(rcd_csum_add(0, ip, RCD_IPV4_LEN)));
	return memcmp(wanted, frame, len) == 0;
}

static bool
is_arp_answer(const uint8_t *frame, uint32_t len, uint16_t port)
{
	static const uint8_t op[] = { 0, RCD_ARP_REPLY };
	const uint8_t mac[] = MIX_MAC(port, false), ip[] = { 10, 0, (uint8_t)port, 1 };

	return len >= RCD_ETH_LEN + RCD_ARP_LEN && rcd_get_be16(frame + 12) == RCD_ETHERTYPE_ARP &&
		memcmp(frame + RCD_ETH_LEN + 6, op, sizeof(op)) == 0 &&
		memcmp(frame + RCD_ETH_LEN + 8, mac, sizeof(mac)) == 0 &&
		memcmp(frame + RCD_ETH_LEN + 14, ip, sizeof(ip)) == 0;
}

static bool
is_echo_answer(const uint8_t *frame, uint32_t len, uint16_t port)
{
	struct rcd_icmp_echo echo;
	struct rcd_gid sgid, dgid;
	uint8_t asked[MIX_LEN];
	const uint8_t *ip = frame + RCD_ETH_LEN;
	uint32_t asked_len = make_echo(asked, port);

	if (len != asked_len || rcd_get_be16(frame + 12) != RCD_ETHERTYPE_IPV4 ||
		ip[9] != RCD_IP_PROTO_ICMP || memcmp(ip + 12, asked + RCD_ETH_LEN + 16, 4) != 0)
		return false;
	sgid = rcd_gid_from_ipv4(ip + 12);
	dgid = rcd_gid_from_ipv4(ip + 16);
	return rcd_icmp_echo_parse(RCD_L3_IPV4, &sgid, &dgid, ip + RCD_IPV4_LEN,
		       len - RCD_ETH_LEN - RCD_IPV4_LEN, &echo) == RCD_VERDICT_OK &&
		echo.reply && echo.id == 7 && strcmp((const char *)echo.data, "who is there") == 0;
}

uint32_t
mix_get(struct mix *mix, uint16_t port, uint16_t queue)
{
	struct mix_count *got = &mix->got[port];
	struct rte_mbuf *mbufs[BURST];
	uint32_t all = 0, count;

	while ((count = rte_ring_dequeue_burst(
			mix->out[port][queue], (void **)mbufs, BURST, NULL)) > 0) {
		for (uint32_t i = 0; i < count; i++) {
			const uint8_t *frame = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);
			uint32_t len = rte_pktmbuf_pkt_len(mbufs[i]);

			if (is_arp_answer(frame, len, port))
				got->arp++;
			else if (is_echo_answer(frame, len, port))
				got->echo++;
			else if (is_routed_well(mix, frame, len, port, queue))
				got->routed++;
			else
				got->wrong++;
		}
		rte_pktmbuf_free_bulk(mbufs, count);
		all += count;
	}
	return all;
}

uint64_t
mix_missing(const struct mix *mix)
{
	uint64_t missing = 0;

	for (uint16_t i = 0; i < MIX_PORTS * MIX_PORTS * MIX_QUEUES; i++) {
		const struct mix_flow *flow = &mix->flow[i % MIX_PORTS][i / MIX_PORTS % MIX_PORTS]
							[i / MIX_PORTS / MIX_PORTS];

		missing += flow->tail - flow->head;
	}
	return missing;
}
