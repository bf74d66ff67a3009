/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the parts of net_udp that know no socket: who is known as what, what a change of a header
 * does to an ICRC, what is in a frame, arguments. Method: each by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_icrc.h"
#include "rcd_tap.h"
#include "udp_args.h"
#include "udp_frame.h"
#include "udp_icrc.h"
#include "udp_peers.h"

static struct udp_peers peers;

/* A flow from a peer, or to it: both addresses are the peer's. */
static struct udp_flow
flow_of(uint32_t ip, bool v6)
{
	struct udp_flow flow = { .v6 = v6, .dport = htons(4791) };
	uint32_t word = htonl(ip);

	memcpy(flow.src.s6_addr + (v6 ? 12 : 0), &word, sizeof(word));
	if (v6)
		flow.src.s6_addr[0] = 0xfd;
	flow.dst = flow.src;
	return flow;
}

static enum udp_peer
heard(struct udp_flow flow, uint16_t port, int times)
{
	for (int i = 0; i < times; i++)
		udp_peers_heard(&peers, &flow, htons(port));
	return udp_peers_find(&peers, &flow);
}

static void
peers_by_their_ports(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		struct udp_flow flow = flow_of(0x0a000001, v6);

		memset(&peers, 0, sizeof(peers));
		peers.seed = 12345;
		CU_ASSERT_EQUAL(udp_peers_find(&peers, &flow), UDP_PEER_STRANGER);
		CU_ASSERT_EQUAL(heard(flow, 50001, 1), UDP_PEER_HEARD);
		CU_ASSERT_EQUAL(heard(flow, 60000, 1), UDP_PEER_HEARD);
		/* At once. */
		CU_ASSERT_EQUAL(heard(flow, 4791, 1), UDP_PEER_SOCKET);
		/* A few from elsewhere are anybody's, and forgotten when it is heard again. */
		CU_ASSERT_EQUAL(heard(flow, 50001, 60), UDP_PEER_SOCKET);
		CU_ASSERT_EQUAL(heard(flow, 4791, 1), UDP_PEER_SOCKET);
		CU_ASSERT_EQUAL(heard(flow, 50001, 60), UDP_PEER_SOCKET);
		CU_ASSERT_EQUAL(heard(flow, 50002, 60), UDP_PEER_HEARD);
		/* Another port of the same peer. */
		flow.dport = htons(4792);
		CU_ASSERT_EQUAL(udp_peers_find(&peers, &flow), UDP_PEER_HEARD);
	}
}

/* Many of a subnet are known beside each other; what is in the way of one is single addresses. */
static void
peers_beside_each_other(void)
{
	uint32_t known = 0, strange = 0;

	memset(&peers, 0, sizeof(peers));
	peers.seed = 99;
	for (uint32_t i = 0; i < 400; i++)
		heard(flow_of(0x0a000000 + i, false), 4791, 1);
	for (uint32_t i = 0; i < 400; i++) {
		struct udp_flow flow = flow_of(0x0a000000 + i, false);
		struct udp_flow other = flow_of(0x0a010000 + i, false);

		known += udp_peers_find(&peers, &flow) == UDP_PEER_SOCKET;
		strange += udp_peers_find(&peers, &other) == UDP_PEER_STRANGER;
	}
	CU_ASSERT(known > 340);
	CU_ASSERT_EQUAL(strange, 400);
}

/* Of packets of all lengths that follow each other, as a table of few lengths has them. */
static void
icrc_of_all_lengths(void)
{
	static struct udp_icrc icrc;
	static uint8_t ip[4200];
	uint32_t wrong = 0;

	srand(7);
	for (int i = 0; i < 20000; i++) {
		bool v6 = rand() % 2 == 0;
		uint32_t l3_len = v6 ? 40 : 20;
		uint32_t len = l3_len + 8 + 12 + 4 * ((uint32_t)rand() % 1024);
		enum rcd_l3 l3 = v6 ? RCD_L3_IPV6 : RCD_L3_IPV4;
		uint16_t id = (uint16_t)rand(), sport = (uint16_t)rand();
		uint32_t before, change;

		for (uint32_t k = 0; k < 64; k++)
			ip[k] = (uint8_t)rand();
		ip[0] = v6 ? 0x60 : 0x45;
		ip[1] = 0;
		before = rcd_icrc(l3, ip, len);
		change = udp_icrc_change(&icrc, l3_len, len, id, sport);
		if (!v6) {
			ip[4] ^= (uint8_t)(id >> 8);
			ip[5] ^= (uint8_t)id;
		}
		ip[l3_len] ^= (uint8_t)(sport >> 8);
		ip[l3_len + 1] ^= (uint8_t)sport;
		wrong += rcd_icrc(l3, ip, len) != (before ^ change);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

/* What is built is what is parsed. */
static void
frames_there_and_back(void)
{
	static uint8_t data[RTE_PKTMBUF_HEADROOM + 2048];
	const struct rte_ether_addr mac = { { 2, 1, 2, 3, 4, 5 } };

	for (int v6 = 0; v6 < 2; v6++) {
		struct rte_mbuf mbuf = { .buf_addr = data, .buf_len = sizeof(data), .nb_segs = 1 };
		struct udp_flow flow = flow_of(0x0a000001, v6);
		size_t hdr_len = v6 ? UDP_FRAME_HDR_LEN6 : UDP_FRAME_HDR_LEN4;
		struct udp_frame frame;

		flow.tclass = 0xb9;
		flow.hop_limit = 17;
		flow.dst.s6_addr[3] ^= 3;
		udp_frame_build(data, &flow, &mac, htons(50000), 0x1234, 100);
		mbuf.data_len = (uint16_t)(hdr_len + 100);
		mbuf.pkt_len = mbuf.data_len;
		CU_ASSERT_TRUE(udp_frame_parse(&mbuf, &frame));
		CU_ASSERT_TRUE(udp_flow_same(&frame.flow, &flow));
		CU_ASSERT_EQUAL(frame.sport, 50000);
		CU_ASSERT_EQUAL(frame.id, v6 ? 0 : 0x1234);
		CU_ASSERT_EQUAL(frame.hdr_len, hdr_len);
		CU_ASSERT_EQUAL(frame.len, 100);
		/* Cut anywhere it is none. */
		for (uint16_t len = 0; len < hdr_len + 100; len++) {
			mbuf.data_len = len;
			mbuf.pkt_len = len;
			CU_ASSERT_FALSE(udp_frame_parse(&mbuf, &frame));
		}
	}
}

static void
arguments_one_by_one(void)
{
	struct udp_args args;
	char error[256] = "";

	CU_ASSERT_EQUAL(udp_args_parse(&args, NULL, error, sizeof(error)), 0);
	CU_ASSERT_TRUE(args.iface[0] == '\0' && args.port == 4791 && args.gro && args.icrc &&
		args.runs == UDP_RUNS_LEARN && args.buffer_bytes == 8u << 20);
	CU_ASSERT_EQUAL(
		udp_args_parse(&args, "iface=eth0,port=1,runs=none,gro=0,icrc=0,buffer=4096", error,
			sizeof(error)),
		0);
	CU_ASSERT_TRUE(strcmp(args.iface, "eth0") == 0 && args.port == 1 && !args.gro &&
		!args.icrc && args.runs == UDP_RUNS_NONE && args.buffer_bytes == 4096);
	CU_ASSERT_EQUAL(udp_args_parse(&args, "runs=few", error, sizeof(error)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(error, "runs=few: one of learn, all, none");
	CU_ASSERT_EQUAL(udp_args_parse(&args, "speed=9", error, sizeof(error)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(error, "arguments are " UDP_ARGS_TEXT);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(peers_by_their_ports),
		RCD_TEST(peers_beside_each_other),
		RCD_TEST(icrc_of_all_lengths),
		RCD_TEST(frames_there_and_back),
		RCD_TEST(arguments_one_by_one),
	};

	return rcd_tap_run("udp_parts", tests, sizeof(tests) / sizeof(tests[0]));
}
