/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: it is known which queue a NIC puts a packet into, or known that it is not. Method: the
 * published cases of Toeplitz (Microsoft, "Verifying the RSS Hash Calculation"), and tables and
 * types of ports that say more or less.
 */
#include "rcd_rss.h"

#include <rte_ethdev.h>
#include <stdio.h>
#include <string.h>

#include "gid_text.h"
#include "rcd_tap.h"
#include "rcd_udp.h"

static const uint8_t key[] = { 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25,
	0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb,
	0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa };

/* As published: addresses alone, and with the ports. */
static const struct {
	const char *dst, *src;
	uint16_t dport, sport;
	uint32_t addresses, ports;
} published[] = {
	{ "161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178 },
	{ "65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea },
	{ "12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a },
	{ "209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f },
	{ "202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2 },
	{ "3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d },
	{ "ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf },
	{ "fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
		0x4b61e985, 0x02d1feef },
};

static struct rcd_rss
port_of(uint64_t types)
{
	struct rcd_rss rss = { .types = types, .reta_size = 128, .key_len = sizeof(key) };

	memcpy(rss.key, key, sizeof(key));
	for (uint16_t i = 0; i < rss.reta_size; i++)
		rss.reta[i] = i % 3;
	return rss;
}

static struct rcd_rss_tuple
tuple_of(size_t i)
{
	return (struct rcd_rss_tuple){ .src = gid_text(published[i].src),
		.dst = gid_text(published[i].dst),
		.sport = published[i].sport,
		.dport = published[i].dport };
}

static void
hashes_as_published(void)
{
	const struct rcd_rss ports =
		port_of(RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
	const struct rcd_rss both = port_of(RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
	const struct rcd_rss addresses = port_of(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6);

	for (size_t i = 0; i < RTE_DIM(published); i++) {
		struct rcd_rss_tuple tuple = tuple_of(i);
		uint32_t hash = 0;

		CU_ASSERT(rcd_rss_hash(&ports, &tuple, &hash));
		CU_ASSERT_EQUAL(hash, published[i].ports);
		CU_ASSERT_EQUAL(rcd_rss_queue(&ports, &tuple), (int)(hash % 128 % 3));
		CU_ASSERT(rcd_rss_hash(&both, &tuple, &hash));
		CU_ASSERT_EQUAL(hash, published[i].ports);
		/* A NIC that does not know UDP hashes addresses alone. */
		CU_ASSERT(rcd_rss_hash(&addresses, &tuple, &hash));
		CU_ASSERT_EQUAL(hash, published[i].addresses);
		CU_ASSERT_EQUAL(rcd_rss_queue(&addresses, &tuple), (int)(hash % 128 % 3));
	}
}

/* Of the version of IP that is not hashed, with a key that is too short, of parts, of no table. */
static void
what_is_not_known(void)
{
	static const struct {
		uint64_t types;
		uint8_t key_len;
		uint16_t reta_size;
		bool v4, v6;
	} rows[] = {
		{ RTE_ETH_RSS_UDP, 40, 128, true, true },
		{ 0, 40, 128, false, false },
		{ RTE_ETH_RSS_TCP, 40, 128, false, false },
		{ RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_FRAG_IPV6, 40, 128, false, false },
		{ RTE_ETH_RSS_NONFRAG_IPV4_UDP, 40, 128, true, false },
		{ RTE_ETH_RSS_IPV6, 40, 128, false, true },
		{ RTE_ETH_RSS_UDP, 0, 128, false, false },
		{ RTE_ETH_RSS_UDP, 16, 128, true, false },
		{ RTE_ETH_RSS_UDP, 15, 128, false, false },
		{ RTE_ETH_RSS_IPV6, 36, 128, false, true },
		{ RTE_ETH_RSS_UDP, 39, 128, true, false },
		{ RTE_ETH_RSS_UDP, 40, 0, false, false },
		{ RTE_ETH_RSS_UDP | RTE_ETH_RSS_L4_SRC_ONLY, 40, 128, false, false },
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct rcd_rss rss = port_of(rows[i].types);
		struct rcd_rss_tuple v4 = tuple_of(0), v6 = tuple_of(5);

		rss.key_len = rows[i].key_len;
		rss.reta_size = rows[i].reta_size;
		if ((rcd_rss_queue(&rss, &v4) != RCD_RSS_UNKNOWN) != rows[i].v4 ||
			(rcd_rss_queue(&rss, &v6) != RCD_RSS_UNKNOWN) != rows[i].v6)
			printf("# row %zu\n", i);
		CU_ASSERT_EQUAL(rcd_rss_queue(&rss, &v4) != RCD_RSS_UNKNOWN, rows[i].v4);
		CU_ASSERT_EQUAL(rcd_rss_queue(&rss, &v6) != RCD_RSS_UNKNOWN, rows[i].v6);
	}
}

/* As Linux computes it: of the label, or of both numbers in any order; always above 0xc000. */
static void
source_ports(void)
{
	static const struct {
		uint32_t label, qpn, dest_qpn;
		uint16_t port;
	} rows[] = {
		{ 0, 0x11, 0x12, 0xc132 },
		{ 0, 0x12, 0x11, 0xc132 },
		{ 1, 0x11, 0x12, 0xc001 },
		{ 0xfffff, 0, 0, 0xffc0 },
		{ 0x04000, 5, 6, 0xc001 },
		{ 0, 0xfffffe, 0xfffffd, 0xff76 },
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		uint16_t port = rcd_udp_roce_sport(rows[i].label, rows[i].qpn, rows[i].dest_qpn);

		if (port != rows[i].port)
			printf("# row %zu: %#x\n", i, port);
		CU_ASSERT_EQUAL(port, rows[i].port);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(hashes_as_published),
		RCD_TEST(what_is_not_known),
		RCD_TEST(source_ports),
	};

	return rcd_tap_run("rss", tests, RTE_DIM(tests));
}
