/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: every header, both ways, and no byte read behind its end. Method: bytes written by hand
 * from the specifications against parse and build; then every truncated length in a heap block of
 * exactly that size, so that a sanitizer sees one byte too many.
 */
#include <stdlib.h>

#include "rcd_arp.h"
#include "rcd_bth.h"
#include "rcd_ext.h"
#include "rcd_icmp.h"
#include "rcd_mad.h"
#include "rcd_tap.h"
#include "rcd_udp.h"

/* A copy of the first len bytes with nothing readable behind them. */
static uint8_t *
exact_copy(const uint8_t *src, size_t len)
{
	uint8_t *copy = malloc(len);

	if (len > 0)
		memcpy(copy, src, len);
	return copy;
}

/* Runs `call` with `src` and `len` for every length below `full`, and expects `verdict`. */
#define EACH_TRUNCATION(bytes, full, call, expected)                                               \
	do {                                                                                       \
		for (size_t len = 0; len < (full); len++) {                                        \
			uint8_t *src = exact_copy(bytes, len);                                     \
                                                                                                   \
			CU_ASSERT_EQUAL(call, expected);                                           \
			free(src);                                                                 \
		}                                                                                  \
	} while (0)

static void
ethernet(void)
{
	static const uint8_t plain[] = { 0x52, 0x54, 0, 0x77, 0, 1, 0x52, 0x54, 0, 0x77, 0, 2, 0x86,
		0xdd };
	static const uint8_t tagged[] = { 0x52, 0x54, 0, 0x77, 0, 1, 0x52, 0x54, 0, 0x77, 0, 2,
		0x81, 0x00, 0x60, 0x2a, 0x08, 0x00 };
	uint8_t out[sizeof(tagged)];
	struct rcd_eth eth;

	CU_ASSERT_EQUAL(rcd_eth_parse(plain, sizeof(plain), &eth), RCD_VERDICT_OK);
	CU_ASSERT_FALSE(eth.tagged);
	CU_ASSERT_EQUAL(eth.ethertype, RCD_ETHERTYPE_IPV6);
	CU_ASSERT_EQUAL(memcmp(eth.dst, plain, 6), 0);
	CU_ASSERT_EQUAL(memcmp(eth.src, plain + 6, 6), 0);
	CU_ASSERT_EQUAL(rcd_eth_len(&eth), sizeof(plain));
	rcd_eth_build(out, &eth);
	CU_ASSERT_EQUAL(memcmp(out, plain, sizeof(plain)), 0);
	EACH_TRUNCATION(plain, sizeof(plain), rcd_eth_parse(src, len, &eth), RCD_VERDICT_ETH_SHORT);

	CU_ASSERT_EQUAL(rcd_eth_parse(tagged, sizeof(tagged), &eth), RCD_VERDICT_OK);
	CU_ASSERT_TRUE(eth.tagged);
	CU_ASSERT_EQUAL(eth.vlan_tci, 0x602a);
	CU_ASSERT_EQUAL(eth.ethertype, RCD_ETHERTYPE_IPV4);
	CU_ASSERT_EQUAL(rcd_eth_len(&eth), sizeof(tagged));
	rcd_eth_build(out, &eth);
	CU_ASSERT_EQUAL(memcmp(out, tagged, sizeof(tagged)), 0);
	EACH_TRUNCATION(
		tagged, sizeof(tagged), rcd_eth_parse(src, len, &eth), RCD_VERDICT_ETH_SHORT);
}

static void
arp(void)
{
	static const uint8_t bytes[] = { 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 77, 0, 1, 2,
		0, 0, 0, 0, 2, 10, 77, 0, 2 };
	uint8_t out[RCD_ARP_LEN];
	struct rcd_arp arp;

	CU_ASSERT_EQUAL(sizeof(bytes), RCD_ARP_LEN);
	CU_ASSERT_EQUAL(rcd_arp_parse(bytes, sizeof(bytes), &arp), RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(arp.op, RCD_ARP_REPLY);
	CU_ASSERT_EQUAL(memcmp(arp.sender_mac, bytes + 8, 6), 0);
	CU_ASSERT_EQUAL(memcmp(arp.sender_ip, bytes + 14, 4), 0);
	CU_ASSERT_EQUAL(memcmp(arp.target_mac, bytes + 18, 6), 0);
	CU_ASSERT_EQUAL(memcmp(arp.target_ip, bytes + 24, 4), 0);
	rcd_arp_build(out, &arp);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
	EACH_TRUNCATION(bytes, RCD_ARP_LEN, rcd_arp_parse(src, len, &arp), RCD_VERDICT_ARP_SHORT);
	/* Any other hardware, protocol or address length is not ours. */
	for (size_t i = 0; i < 6; i++) {
		memcpy(out, bytes, sizeof(bytes));
		out[i] ^= 1;
		CU_ASSERT_EQUAL(rcd_arp_parse(out, sizeof(out), &arp), RCD_VERDICT_ARP_FORMAT);
	}
}

static void
ipv4(void)
{
	/* The example of RFC 1071's checksum that is found everywhere, with UDP. */
	static const uint8_t bytes[] = { 0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
		0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7 };
	uint8_t out[60] = { 0 };
	struct rcd_ipv4 ip;

	CU_ASSERT_EQUAL(rcd_ipv4_parse(bytes, sizeof(bytes), &ip), RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(ip.hdr_len, 20);
	CU_ASSERT_EQUAL(ip.total_len, 0x73);
	CU_ASSERT_EQUAL(ip.ttl, 64);
	CU_ASSERT_EQUAL(ip.protocol, RCD_IP_PROTO_UDP);
	CU_ASSERT_TRUE(ip.dont_fragment);
	CU_ASSERT_FALSE(ip.fragment);
	CU_ASSERT_TRUE(rcd_ipv4_csum_ok(bytes, sizeof(bytes)));
	rcd_ipv4_build(out, &ip);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
	EACH_TRUNCATION(bytes, RCD_IPV4_LEN, rcd_ipv4_parse(src, len, &ip), RCD_VERDICT_IPV4_SHORT);

	memcpy(out, bytes, sizeof(bytes));
	out[0] = 0x4f; /* 40 bytes of options */
	CU_ASSERT_EQUAL(rcd_ipv4_parse(out, sizeof(out), &ip), RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(ip.hdr_len, 60);
	EACH_TRUNCATION(out, 60, rcd_ipv4_parse(src, len, &ip), RCD_VERDICT_IPV4_SHORT);
	out[0] = 0x44;
	CU_ASSERT_EQUAL(rcd_ipv4_parse(out, sizeof(out), &ip), RCD_VERDICT_IPV4_IHL);
	out[0] = 0x65;
	CU_ASSERT_EQUAL(rcd_ipv4_parse(out, sizeof(out), &ip), RCD_VERDICT_IP_VERSION);

	memcpy(out, bytes, sizeof(bytes));
	out[6] = 0x20; /* more fragments */
	CU_ASSERT_EQUAL(rcd_ipv4_parse(out, sizeof(out), &ip), RCD_VERDICT_OK);
	CU_ASSERT_TRUE(ip.fragment);
	out[6] = 0x00;
	out[7] = 0x01; /* an offset */
	CU_ASSERT_EQUAL(rcd_ipv4_parse(out, sizeof(out), &ip), RCD_VERDICT_OK);
	CU_ASSERT_TRUE(ip.fragment);
	for (size_t i = 0; i < 8 * sizeof(bytes); i++) {
		memcpy(out, bytes, sizeof(bytes));
		out[i / 8] ^= (uint8_t)(1 << i % 8);
		CU_ASSERT_FALSE(rcd_ipv4_csum_ok(out, sizeof(bytes)));
	}
}

static void
ipv6(void)
{
	static const uint8_t bytes[] = { 0x66, 0xa1, 0x23, 0x45, 0x00, 0x30, 0x11, 0x40, 0xfd, 0x77,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 2 };
	uint8_t out[RCD_IPV6_LEN];
	struct rcd_ipv6 ip;

	CU_ASSERT_EQUAL(rcd_ipv6_parse(bytes, sizeof(bytes), &ip), RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(ip.tclass, 0x6a);
	CU_ASSERT_EQUAL(ip.flow_label, 0x12345);
	CU_ASSERT_EQUAL(ip.payload_len, 0x30);
	CU_ASSERT_EQUAL(ip.next_header, RCD_IP_PROTO_UDP);
	CU_ASSERT_EQUAL(ip.hop_limit, 64);
	CU_ASSERT_EQUAL(memcmp(ip.src.raw, bytes + 8, 16), 0);
	CU_ASSERT_EQUAL(memcmp(ip.dst.raw, bytes + 24, 16), 0);
	rcd_ipv6_build(out, &ip);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
	EACH_TRUNCATION(bytes, RCD_IPV6_LEN, rcd_ipv6_parse(src, len, &ip), RCD_VERDICT_IPV6_SHORT);
	out[0] = 0x46;
	CU_ASSERT_EQUAL(rcd_ipv6_parse(out, sizeof(out), &ip), RCD_VERDICT_IP_VERSION);
}

static void
gids(void)
{
	static const uint8_t v4[] = { 10, 77, 0, 1 };
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1 };
	struct rcd_gid a = rcd_gid_from_ipv4(v4);
	struct rcd_gid b = rcd_gid_from_ipv6(mapped);

	CU_ASSERT_TRUE(rcd_gid_eq(&a, &b));
	CU_ASSERT_TRUE(rcd_gid_is_ipv4(&a));
	for (size_t i = 0; i < RCD_GID_LEN; i++) {
		b = a;
		b.raw[i] ^= 0x80;
		CU_ASSERT_FALSE(rcd_gid_eq(&a, &b));
		CU_ASSERT_EQUAL(rcd_gid_is_ipv4(&b), i >= 12);
	}
}

static void
udp(void)
{
	static const uint8_t bytes[] = { 0xd8, 0x72, 0x12, 0xb7, 0x01, 0x2c, 0xab, 0xcd };
	uint8_t out[RCD_UDP_LEN];
	struct rcd_udp udp;

	CU_ASSERT_EQUAL(rcd_udp_parse(bytes, sizeof(bytes), &udp), RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(udp.sport, 55410);
	CU_ASSERT_EQUAL(udp.dport, RCD_UDP_PORT_ROCE);
	CU_ASSERT_EQUAL(udp.len, 300);
	CU_ASSERT_EQUAL(udp.csum, 0xabcd);
	rcd_udp_build(out, &udp);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
	EACH_TRUNCATION(bytes, RCD_UDP_LEN, rcd_udp_parse(src, len, &udp), RCD_VERDICT_UDP_SHORT);
}

static void
icmp_echo(void)
{
	static const uint8_t ping4[] = { 8, 0, 0xf7, 0xfa, 0, 1, 0, 2, 0, 2 };
	/* RFC 8200's pseudo-header by hand: ::1 to ::2, 8 bytes, 58: sum 0x45, message 0x8003. */
	static const uint8_t ping6[] = { 128, 0, 0x7f, 0xb7, 0, 1, 0, 2 };
	struct rcd_gid a = { { [15] = 1 } };
	struct rcd_gid b = { { [15] = 2 } };
	struct rcd_icmp_echo echo;
	uint8_t out[sizeof(ping4)];

	CU_ASSERT_EQUAL(rcd_icmp_echo_parse(RCD_L3_IPV4, &a, &b, ping4, sizeof(ping4), &echo),
		RCD_VERDICT_OK);
	CU_ASSERT_FALSE(echo.reply);
	CU_ASSERT_EQUAL(echo.id, 1);
	CU_ASSERT_EQUAL(echo.seq, 2);
	CU_ASSERT_EQUAL(echo.data_len, 2);
	CU_ASSERT_PTR_EQUAL(echo.data, ping4 + 8);
	rcd_icmp_echo_build(RCD_L3_IPV4, &a, &b, out, &echo);
	CU_ASSERT_EQUAL(memcmp(out, ping4, sizeof(ping4)), 0);

	CU_ASSERT_EQUAL(rcd_icmp_echo_parse(RCD_L3_IPV6, &a, &b, ping6, sizeof(ping6), &echo),
		RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(echo.data_len, 0);
	rcd_icmp_echo_build(RCD_L3_IPV6, &a, &b, out, &echo);
	CU_ASSERT_EQUAL(memcmp(out, ping6, sizeof(ping6)), 0);

	/* The reply to each, then back. */
	for (enum rcd_l3 l3 = RCD_L3_IPV4; l3 <= RCD_L3_IPV6; l3++) {
		echo.reply = true;
		rcd_icmp_echo_build(l3, &b, &a, out, &echo);
		CU_ASSERT_EQUAL(out[0], l3 == RCD_L3_IPV4 ? 0 : 129);
		echo.reply = false;
		CU_ASSERT_EQUAL(rcd_icmp_echo_parse(l3, &b, &a, out, 8, &echo), RCD_VERDICT_OK);
		CU_ASSERT_TRUE(echo.reply);
		/* A right message of another type. */
		out[0] = l3 == RCD_L3_IPV4 ? 13 : 135;
		rcd_put_be16(out + 2, 0);
		rcd_put_be16(out + 2,
			rcd_csum_fold(rcd_csum_add(l3 == RCD_L3_IPV4 ? 0 : 3 + 8 + 58, out, 8)));
		CU_ASSERT_EQUAL(rcd_icmp_echo_parse(l3, &b, &a, out, 8, &echo),
			l3 == RCD_L3_IPV4 ? RCD_VERDICT_ICMP : RCD_VERDICT_ICMPV6);
		out[7] ^= 1;
		CU_ASSERT_EQUAL(
			rcd_icmp_echo_parse(l3, &b, &a, out, 8, &echo), RCD_VERDICT_ICMP_CHECKSUM);
	}
	EACH_TRUNCATION(ping4, RCD_ICMP_ECHO_LEN,
		rcd_icmp_echo_parse(RCD_L3_IPV4, &a, &b, src, len, &echo), RCD_VERDICT_ICMP_SHORT);
}

static void
bth(void)
{
	static const uint8_t bytes[] = { 0x0a, 0xe0, 0xff, 0xfe, 0xea, 0x12, 0x34, 0x56, 0x80, 0xfe,
		0xdc, 0xba };
	uint8_t out[RCD_BTH_LEN];
	struct rcd_bth bth;

	CU_ASSERT_EQUAL(rcd_bth_parse(bytes, sizeof(bytes), &bth), RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(bth.opcode, 0x0a);
	CU_ASSERT_TRUE(bth.solicited && bth.mig_req && bth.fecn && bth.becn && bth.ack_req);
	CU_ASSERT_EQUAL(bth.pad_count, 2);
	CU_ASSERT_EQUAL(bth.tver, 0);
	CU_ASSERT_EQUAL(bth.mark, 0x2a);
	CU_ASSERT_EQUAL(bth.pkey.val, 0xfffe);
	CU_ASSERT_EQUAL(bth.dest_qpn.val, 0x123456);
	CU_ASSERT_EQUAL(bth.psn.val, 0xfedcba);
	rcd_bth_build(out, &bth);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
	EACH_TRUNCATION(bytes, RCD_BTH_LEN, rcd_bth_parse(src, len, &bth), RCD_VERDICT_BTH_SHORT);

	/* Each flag alone. */
	static const struct {
		uint8_t offset, bit;
		size_t field;
	} flags[] = {
		{ 1, 0x80, offsetof(struct rcd_bth, solicited) },
		{ 1, 0x40, offsetof(struct rcd_bth, mig_req) },
		{ 4, 0x80, offsetof(struct rcd_bth, fecn) },
		{ 4, 0x40, offsetof(struct rcd_bth, becn) },
		{ 8, 0x80, offsetof(struct rcd_bth, ack_req) },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(flags); i++) {
		uint8_t one[RCD_BTH_LEN] = { 0 };

		one[flags[i].offset] = flags[i].bit;
		CU_ASSERT_EQUAL(rcd_bth_parse(one, sizeof(one), &bth), RCD_VERDICT_OK);
		for (size_t k = 0; k < RCD_ARRAY_COUNT(flags); k++)
			CU_ASSERT_EQUAL(
				*((const bool *)((const char *)&bth + flags[k].field)), k == i);
		rcd_bth_build(out, &bth);
		CU_ASSERT_EQUAL(memcmp(out, one, sizeof(one)), 0);
	}
	/* A mark is nothing else, and has no more bits. */
	memset(out, 0, sizeof(out));
	out[4] = 0x3f;
	CU_ASSERT_EQUAL(rcd_bth_parse(out, sizeof(out), &bth), RCD_VERDICT_OK);
	CU_ASSERT_FALSE(bth.fecn || bth.becn);
	CU_ASSERT_EQUAL(bth.mark, 0x3f);
	bth.mark = 0xff;
	rcd_bth_build(out, &bth);
	CU_ASSERT_EQUAL(out[4], 0x3f);
	/* Other reserved bits are ignored on receipt and sent as 0. */
	memset(out, 0, sizeof(out));
	out[8] = 0x7f;
	CU_ASSERT_EQUAL(rcd_bth_parse(out, sizeof(out), &bth), RCD_VERDICT_OK);
	CU_ASSERT_FALSE(bth.fecn || bth.becn || bth.ack_req);
	rcd_bth_build(out, &bth);
	CU_ASSERT_EQUAL(out[4] | out[8], 0);
}

/* Parses the bytes 0x81, 0x82, ... as a header, truncated first; leaves the value in `name`. */
#define PARSE_COUNTED(symbol, name)                                                                \
	uint8_t bytes[RCD_##symbol##_LEN];                                                         \
	uint8_t out[RCD_##symbol##_LEN];                                                           \
	struct rcd_##name name;                                                                    \
                                                                                                   \
	for (size_t i = 0; i < sizeof(bytes); i++)                                                 \
		bytes[i] = (uint8_t)(0x81 + i);                                                    \
	EACH_TRUNCATION(                                                                           \
		bytes, sizeof(bytes), rcd_##name##_parse(src, len, &name), RCD_VERDICT_EXT_SHORT); \
	CU_ASSERT_EQUAL(rcd_##name##_parse(bytes, sizeof(bytes), &name), RCD_VERDICT_OK);          \
	rcd_##name##_build(out, &name)

static void
xrceth(void)
{
	PARSE_COUNTED(XRCETH, xrceth);
	CU_ASSERT_EQUAL(xrceth.srqn, 0x828384);
	CU_ASSERT_EQUAL(memcmp(out, "\x00\x82\x83\x84", 4), 0);
}

static void
deth(void)
{
	PARSE_COUNTED(DETH, deth);
	CU_ASSERT_EQUAL(deth.qkey.val, 0x81828384);
	CU_ASSERT_EQUAL(deth.src_qpn.val, 0x868788);
	CU_ASSERT_EQUAL(memcmp(out, "\x81\x82\x83\x84\x00\x86\x87\x88", 8), 0);
}

static void
feth(void)
{
	PARSE_COUNTED(FETH, feth);
	CU_ASSERT_EQUAL(feth.placement, 4); /* 0x84 */
	CU_ASSERT_EQUAL(feth.selectivity, 0);
	CU_ASSERT_EQUAL(memcmp(out, "\x00\x00\x00\x04", 4), 0);
	CU_ASSERT_EQUAL(rcd_feth_parse((const uint8_t *)"\0\0\0\x13", 4, &feth), RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(feth.placement, 3);
	CU_ASSERT_EQUAL(feth.selectivity, 1);
	rcd_feth_build(out, &feth);
	CU_ASSERT_EQUAL(out[3], 0x13);
}

static void
reth(void)
{
	PARSE_COUNTED(RETH, reth);
	CU_ASSERT_EQUAL(reth.va, UINT64_C(0x8182838485868788));
	CU_ASSERT_EQUAL(reth.rkey.val, 0x898a8b8c);
	CU_ASSERT_EQUAL(reth.dma_len, 0x8d8e8f90);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
atomiceth(void)
{
	PARSE_COUNTED(ATOMICETH, atomiceth);
	CU_ASSERT_EQUAL(atomiceth.va, UINT64_C(0x8182838485868788));
	CU_ASSERT_EQUAL(atomiceth.rkey.val, 0x898a8b8c);
	CU_ASSERT_EQUAL(atomiceth.swap_or_add, UINT64_C(0x8d8e8f9091929394));
	CU_ASSERT_EQUAL(atomiceth.compare, UINT64_C(0x95969798999a9b9c));
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
aeth(void)
{
	PARSE_COUNTED(AETH, aeth);
	CU_ASSERT_EQUAL(aeth.syndrome, 0x81);
	CU_ASSERT_EQUAL(aeth.msn.val, 0x828384);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
atomicacketh(void)
{
	PARSE_COUNTED(ATOMICACKETH, atomicacketh);
	CU_ASSERT_EQUAL(atomicacketh.original, UINT64_C(0x8182838485868788));
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
immdt(void)
{
	PARSE_COUNTED(IMMDT, immdt);
	CU_ASSERT_EQUAL(immdt.data, 0x81828384);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
ieth(void)
{
	PARSE_COUNTED(IETH, ieth);
	CU_ASSERT_EQUAL(ieth.rkey.val, 0x81828384);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
cnp(void)
{
	PARSE_COUNTED(CNP, cnp);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
sacketh(void)
{
	PARSE_COUNTED(SACKETH, sacketh);
	CU_ASSERT_EQUAL(sacketh.seen.val, 0x828384);
	CU_ASSERT_EQUAL(sacketh.delay_ns, 0x85868788);
	/* The first byte is reserved. */
	bytes[0] = 0;
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
helloeth(void)
{
	PARSE_COUNTED(HELLOETH, helloeth);
	CU_ASSERT_EQUAL(helloeth.offers, 0x84);
	CU_ASSERT_EQUAL(helloeth.nonce, UINT64_C(0x85868788898a8b8c));
	/* The first three bytes are reserved. */
	memset(bytes, 0, 3);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(bytes)), 0);
}

static void
mad(void)
{
	uint8_t bytes[RCD_MAD_LEN] = { 1, 0x07, 2, 3, 0x12, 0x34, 0x56, 0x78, 1, 2, 3, 4, 5, 6, 7,
		8, 0x00, 0x13, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd };
	uint8_t out[RCD_MAD_HDR_LEN];
	struct rcd_mad mad;

	CU_ASSERT_EQUAL(rcd_mad_parse(bytes, sizeof(bytes), &mad), RCD_VERDICT_OK);
	CU_ASSERT_EQUAL(mad.mgmt_class, RCD_MAD_CLASS_CM);
	CU_ASSERT_EQUAL(mad.class_version, 2);
	CU_ASSERT_EQUAL(mad.method, 3);
	CU_ASSERT_EQUAL(mad.status, 0x1234);
	CU_ASSERT_EQUAL(mad.class_specific, 0x5678);
	CU_ASSERT_EQUAL(mad.tid, UINT64_C(0x0102030405060708));
	CU_ASSERT_EQUAL(mad.attr_id, 0x13);
	CU_ASSERT_EQUAL(mad.attr_mod, 0xaabbccdd);
	rcd_mad_build(out, &mad);
	CU_ASSERT_EQUAL(memcmp(out, bytes, sizeof(out)), 0);
	EACH_TRUNCATION(bytes, RCD_MAD_LEN, rcd_mad_parse(src, len, &mad), RCD_VERDICT_MAD_SHORT);
	bytes[0] = 2;
	CU_ASSERT_EQUAL(rcd_mad_parse(bytes, sizeof(bytes), &mad), RCD_VERDICT_MAD_VERSION);

	static const char *const names[] = { "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP",
		"SIDR_REQ", "SIDR_REP", "LAP", "APR" };

	for (uint16_t i = 0; i < RCD_ARRAY_COUNT(names); i++)
		CU_ASSERT_STRING_EQUAL(rcd_cm_attr_name((uint16_t)(0x10 + i)), names[i]);
	CU_ASSERT_PTR_NULL(rcd_cm_attr_name(0x0f));
	CU_ASSERT_PTR_NULL(rcd_cm_attr_name(0x1b));
	CU_ASSERT_PTR_NULL(rcd_cm_attr_name(0xffff));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(ethernet),
		RCD_TEST(arp),
		RCD_TEST(ipv4),
		RCD_TEST(ipv6),
		RCD_TEST(gids),
		RCD_TEST(udp),
		RCD_TEST(icmp_echo),
		RCD_TEST(bth),
		RCD_TEST(xrceth),
		RCD_TEST(deth),
		RCD_TEST(feth),
		RCD_TEST(reth),
		RCD_TEST(atomiceth),
		RCD_TEST(aeth),
		RCD_TEST(atomicacketh),
		RCD_TEST(immdt),
		RCD_TEST(ieth),
		RCD_TEST(cnp),
		RCD_TEST(sacketh),
		RCD_TEST(helloeth),
		RCD_TEST(mad),
	};

	return rcd_tap_run("headers", tests, RCD_ARRAY_COUNT(tests));
}
