/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: whole packets, both ways, and every verdict.
 *
 * Method: for every opcode, both IPs, with and without a tag, and payloads of several sizes, a
 * frame is built from random values and parsed back; then it is cut at every length, in a heap
 * block of exactly that size. A table damages a good frame in one way for each verdict, and the
 * test fails when a verdict is in no row.
 */
#include <stdlib.h>

#include "rcd_arp.h"
#include "rcd_icmp.h"
#include "rcd_mad.h"
#include "rcd_pkt.h"
#include "rcd_tap.h"

enum {
	PAYLOAD_MAX = 300,
	FRAME_ROOM = RCD_PKT_HDR_MAX_LEN + PAYLOAD_MAX + RCD_PKT_TAIL_MAX_LEN,
};

static uint32_t
random32(void)
{
	return (uint32_t)rand() << 16 ^ (uint32_t)rand();
}

static uint64_t
random64(void)
{
	return (uint64_t)random32() << 32 | random32();
}

static void
random_bytes(void *dst, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)dst)[i] = (uint8_t)rand();
}

static struct rcd_path
random_path(enum rcd_l3 l3, bool tagged)
{
	struct rcd_path path = {
		.tagged = tagged,
		.vlan_tci = tagged ? (uint16_t)rand() : 0,
		.l3 = (uint8_t)l3,
		.tclass = (uint8_t)rand(),
		.hop_limit = (uint8_t)rand(),
		.sport = (uint16_t)(0xc000 | rand()),
	};

	random_bytes(path.smac, sizeof(path.smac));
	random_bytes(path.dmac, sizeof(path.dmac));
	random_bytes(&path.sgid, sizeof(path.sgid));
	random_bytes(&path.dgid, sizeof(path.dgid));
	if (l3 == RCD_L3_IPV4) {
		path.ipv4_id = (uint16_t)rand();
		path.sgid = rcd_gid_from_ipv4(path.sgid.raw);
		path.dgid = rcd_gid_from_ipv4(path.dgid.raw);
	} else {
		path.flow_label = random32() & 0xfffff;
	}
	return path;
}

/* Every field of every header random, those that the opcode does not have included. */
static struct rcd_roce
random_roce(uint8_t opcode)
{
	struct rcd_roce roce = {
		.bth = { .opcode = opcode,
			.solicited = rand() & 1,
			.mig_req = rand() & 1,
			.ack_req = rand() & 1,
			.fecn = rand() & 1,
			.becn = rand() & 1,
			.mark = rand() & RCD_BTH_MARK_MASK,
			.pkey = { (uint16_t)rand() },
			.dest_qpn = { random32() & 0xffffff },
			.psn = rcd_psn(random32()) },
		.xrceth = { random32() & 0xffffff },
		.deth = { { random32() }, { random32() & 0xffffff } },
		.feth = { random32() & 0xf, random32() & 3 },
		.reth = { random64(), { random32() }, random32() },
		.atomiceth = { random64(), { random32() }, random64(), random64() },
		.aeth = { (uint8_t)rand(), rcd_psn(random32()) },
		.atomicacketh = { random64() },
		.immdt = { random32() },
		.ieth = { { random32() } },
		.sacketh = { rcd_psn(random32()), random32() },
		.helloeth = { (uint8_t)rand(), random64() },
	};

	random_bytes(&roce.cnp, sizeof(roce.cnp));
	return roce;
}

static void
check_bth(const struct rcd_bth *got, const struct rcd_bth *put, size_t payload_len)
{
	CU_ASSERT_EQUAL(got->opcode, put->opcode);
	CU_ASSERT_EQUAL(got->solicited, put->solicited);
	CU_ASSERT_EQUAL(got->mig_req, put->mig_req);
	CU_ASSERT_EQUAL(got->ack_req, put->ack_req);
	CU_ASSERT_EQUAL(got->fecn, put->fecn);
	CU_ASSERT_EQUAL(got->becn, put->becn);
	CU_ASSERT_EQUAL(got->mark, put->mark);
	CU_ASSERT_EQUAL(got->pad_count, (4 - payload_len % 4) % 4);
	CU_ASSERT_EQUAL(got->tver, 0);
	CU_ASSERT_EQUAL(got->pkey.val, put->pkey.val);
	CU_ASSERT_EQUAL(got->dest_qpn.val, put->dest_qpn.val);
	CU_ASSERT_EQUAL(got->psn.val, put->psn.val);
}

static void
check_exts(const struct rcd_roce *got, const struct rcd_roce *put)
{
	uint8_t opcode = put->bth.opcode;

	/* Compared as bytes of the wire: structs may have holes. */
#define RCD_EXT_HEADER(symbol, field, length)                                                      \
	if (rcd_opcode_has(opcode, RCD_EXT_##symbol)) {                                            \
		uint8_t a[length], b[length];                                                      \
                                                                                                   \
		rcd_##field##_build(a, &got->field);                                               \
		rcd_##field##_build(b, &put->field);                                               \
		CU_ASSERT_EQUAL(memcmp(a, b, length), 0);                                          \
	}
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
}

static void
check_path(const struct rcd_pkt *pkt, const struct rcd_path *path)
{
	CU_ASSERT_EQUAL(pkt->l3, path->l3);
	CU_ASSERT_EQUAL(memcmp(pkt->eth.dst, path->dmac, RCD_MAC_LEN), 0);
	CU_ASSERT_EQUAL(memcmp(pkt->eth.src, path->smac, RCD_MAC_LEN), 0);
	CU_ASSERT_EQUAL(pkt->eth.tagged, path->tagged);
	CU_ASSERT_EQUAL(pkt->eth.vlan_tci, path->vlan_tci);
	CU_ASSERT_TRUE(rcd_gid_eq(&pkt->sgid, &path->sgid));
	CU_ASSERT_TRUE(rcd_gid_eq(&pkt->dgid, &path->dgid));
	CU_ASSERT_EQUAL(pkt->tclass, path->tclass);
	CU_ASSERT_EQUAL(pkt->hop_limit, path->hop_limit);
	CU_ASSERT_EQUAL(pkt->ipv4_id, path->ipv4_id);
	CU_ASSERT_EQUAL(pkt->flow_label, path->flow_label);
	CU_ASSERT_EQUAL(pkt->dont_fragment, path->l3 == RCD_L3_IPV4);
	CU_ASSERT_EQUAL(pkt->sport, path->sport);
	CU_ASSERT_EQUAL(pkt->dport, RCD_UDP_PORT_ROCE);
	CU_ASSERT_EQUAL(pkt->udp_csum, 0);
}

/* Builds a frame with a random payload into a heap block of its exact size. */
static uint8_t *
make_frame(
	const struct rcd_path *path, const struct rcd_roce *roce, size_t payload_len, size_t *len)
{
	size_t expected_hdr_len = rcd_pkt_hdr_len(path, roce->bth.opcode);
	uint8_t *frame = malloc(expected_hdr_len + payload_len + (-payload_len & 3) + RCD_ICRC_LEN);
	size_t hdr_len = rcd_pkt_build(frame, path, roce, payload_len);

	CU_ASSERT_EQUAL(hdr_len, expected_hdr_len);
	random_bytes(frame + hdr_len, payload_len);
	*len = rcd_pkt_seal(frame, path, hdr_len, payload_len);
	CU_ASSERT_EQUAL(*len, hdr_len + payload_len + (-payload_len & 3) + RCD_ICRC_LEN);
	return frame;
}

static void
check_round_trip(const struct rcd_path *path, uint8_t opcode, size_t payload_len)
{
	struct rcd_roce roce = random_roce(opcode);
	size_t l2 = path->tagged ? 18 : 14;
	size_t len;
	uint8_t *frame = make_frame(path, &roce, payload_len, &len);
	struct rcd_pkt pkt;

	CU_ASSERT_EQUAL_FATAL(rcd_pkt_parse(frame, len, &pkt), RCD_VERDICT_OK);
	check_path(&pkt, path);
	check_bth(&pkt.roce.bth, &roce.bth, payload_len);
	check_exts(&pkt.roce, &roce);
	CU_ASSERT_EQUAL(pkt.payload_len, payload_len);
	CU_ASSERT_PTR_EQUAL(pkt.payload, frame + rcd_pkt_hdr_len(path, opcode));
	CU_ASSERT_PTR_EQUAL(pkt.ip, frame + l2);
	CU_ASSERT_EQUAL(pkt.ip_len, len - l2);
	CU_ASSERT_TRUE(rcd_pkt_icrc_ok(&pkt));
	frame[len - 1] ^= 0x10;
	CU_ASSERT_FALSE(rcd_pkt_icrc_ok(&pkt));
	frame[len - 1] ^= 0x10;

	/* The same from the IP header on. */
	CU_ASSERT_EQUAL(rcd_pkt_parse_ip((enum rcd_l3)path->l3, frame + l2, len - l2, &pkt),
		RCD_VERDICT_OK);
	CU_ASSERT_TRUE(rcd_pkt_icrc_ok(&pkt));
	free(frame);
}

/* The payload sizes that an opcode allows, at every pad count. */
static size_t
payload_sizes(uint8_t opcode, size_t *sizes)
{
	static const size_t any[] = { 0, 1, 2, 3, 4, 63, 256, PAYLOAD_MAX };

	switch ((enum rcd_payload)rcd_opcode_info(opcode)->payload) {
	case RCD_PAYLOAD_NONE:
		sizes[0] = 0;
		return 1;
	case RCD_PAYLOAD_ATOMIC:
		sizes[0] = 8;
		return 1;
	case RCD_PAYLOAD_BITMAP:
		sizes[0] = 4;
		sizes[1] = 36;
		sizes[2] = 64;
		return 3;
	case RCD_PAYLOAD_ANY:
		break;
	}
	memcpy(sizes, any, sizeof(any));
	return RCD_ARRAY_COUNT(any);
}

static void
every_opcode_both_ways(void)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		size_t sizes[8];
		size_t count = payload_sizes((uint8_t)opcode, sizes);

		if (!rcd_opcode_known((uint8_t)opcode))
			continue;
		for (size_t i = 0; i < count; i++) {
			for (unsigned int kind = 0; kind < 4; kind++) {
				struct rcd_path path =
					random_path(kind & 1 ? RCD_L3_IPV6 : RCD_L3_IPV4, kind & 2);

				check_round_trip(&path, (uint8_t)opcode, sizes[i]);
			}
		}
	}
}

static void
every_truncated_length(void)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		if (!rcd_opcode_known((uint8_t)opcode))
			continue;
		for (unsigned int kind = 0; kind < 4; kind++) {
			struct rcd_path path =
				random_path(kind & 1 ? RCD_L3_IPV6 : RCD_L3_IPV4, kind & 2);
			struct rcd_roce roce = random_roce((uint8_t)opcode);
			size_t l2 = path.tagged ? 18 : 14;
			size_t payload = rcd_opcode_info((uint8_t)opcode)->payload ? 8 : 0;
			size_t full;
			uint8_t *frame = make_frame(&path, &roce, payload, &full);

			for (size_t len = 0; len < full; len++) {
				uint8_t *cut = malloc(len);
				struct rcd_pkt pkt;
				enum rcd_verdict verdict;

				memcpy(cut, frame, len);
				verdict = rcd_pkt_parse(cut, len, &pkt);
				CU_ASSERT_EQUAL(
					rcd_verdict_class(verdict), RCD_VERDICT_CLASS_MALFORMED);
				CU_ASSERT_EQUAL(verdict == RCD_VERDICT_ETH_SHORT, len < l2);
				free(cut);
			}
			free(frame);
		}
	}
}

/*
 * The transport headers alone at every length, with the lengths in IP and UDP right: what a peer
 * with a defect sends, rather than a wire that cuts.
 */
static void
every_truncated_transport_header(void)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		struct rcd_roce roce = random_roce((uint8_t)opcode);
		uint8_t bytes[RCD_ROCE_HDR_MAX_LEN];
		size_t full = rcd_roce_build(bytes, &roce);

		if (!rcd_opcode_known((uint8_t)opcode))
			continue;
		for (size_t len = 0; len < full; len++) {
			uint8_t *cut = malloc(len);
			struct rcd_roce got;
			size_t payload_len;

			memcpy(cut, bytes, len);
			CU_ASSERT_EQUAL(rcd_roce_parse(cut, len, &got, &payload_len),
				len < RCD_BTH_LEN ? RCD_VERDICT_BTH_SHORT : RCD_VERDICT_EXT_SHORT);
			free(cut);
		}
	}
}

/* A frame to damage: RC SEND ONLY, 16 bytes of payload. */
struct victim {
	uint8_t frame[FRAME_ROOM];
	size_t len;
	uint8_t *ip, *udp, *bth;
};

static void
make_victim(struct victim *victim, enum rcd_l3 l3)
{
	struct rcd_path path = random_path(l3, false);
	struct rcd_roce roce = random_roce(RCD_OPCODE_RC_SEND_ONLY);
	uint8_t *frame = make_frame(&path, &roce, 16, &victim->len);

	memcpy(victim->frame, frame, victim->len);
	free(frame);
	victim->ip = victim->frame + RCD_ETH_LEN;
	victim->udp = victim->ip + (l3 == RCD_L3_IPV4 ? RCD_IPV4_LEN : RCD_IPV6_LEN);
	victim->bth = victim->udp + RCD_UDP_LEN;
}

static void
fix_ipv4_csum(struct victim *victim)
{
	size_t hdr_len = (victim->ip[0] & 0x0fu) * 4;

	rcd_put_be16(victim->ip + 10, 0);
	rcd_put_be16(victim->ip + 10, rcd_csum_fold(rcd_csum_add(0, victim->ip, hdr_len)));
}

/* Sets the IP and UDP lengths to what `l4_len` bytes behind the IP header need. */
static void
set_l4_len(struct victim *victim, uint16_t l4_len)
{
	if (victim->ip[0] >> 4 == 4) {
		rcd_put_be16(victim->ip + 2, (uint16_t)(RCD_IPV4_LEN + l4_len));
		fix_ipv4_csum(victim);
	} else {
		rcd_put_be16(victim->ip + 4, l4_len);
	}
	rcd_put_be16(victim->udp + 4, l4_len);
	victim->len = (size_t)(victim->udp - victim->frame) + l4_len;
}

static enum rcd_verdict
verdict_of(const struct victim *victim)
{
	uint8_t *exact = malloc(victim->len);
	struct rcd_pkt pkt;
	enum rcd_verdict verdict;

	memcpy(exact, victim->frame, victim->len);
	verdict = rcd_pkt_parse(exact, victim->len, &pkt);
	if (verdict == RCD_VERDICT_OK && !rcd_pkt_icrc_ok(&pkt))
		verdict = RCD_VERDICT_ICRC;
	free(exact);
	return verdict;
}

static void
set_ethertype(struct victim *victim, uint16_t ethertype)
{
	rcd_put_be16(victim->frame + 12, ethertype);
}

/* One way of damaging a frame for each verdict; those of two kinds of header in two rows. */
static void
damage(struct victim *victim, enum rcd_verdict verdict, enum rcd_l3 l3)
{
	uint8_t *ip = victim->ip;
	bool v4 = l3 == RCD_L3_IPV4;

	switch (verdict) {
	case RCD_VERDICT_OK:
		victim->len += 5; /* Ethernet padding */
		break;
	case RCD_VERDICT_ARP:
		set_ethertype(victim, RCD_ETHERTYPE_ARP);
		break;
	case RCD_VERDICT_ICMP:
		ip[9] = RCD_IP_PROTO_ICMP;
		break;
	case RCD_VERDICT_ICMPV6:
		ip[6] = RCD_IP_PROTO_ICMPV6;
		break;
	case RCD_VERDICT_OTHER_ETHERTYPE:
		set_ethertype(victim, 0x88cc);
		break;
	case RCD_VERDICT_OTHER_IP_PROTOCOL:
		ip[v4 ? 9 : 6] = 6;
		break;
	case RCD_VERDICT_OTHER_UDP_PORT:
		rcd_put_be16(victim->udp + 2, 4790);
		break;
	case RCD_VERDICT_IP_FRAGMENT:
		ip[6] = v4 ? 0x20 : RCD_IP_PROTO_FRAGMENT;
		break;
	case RCD_VERDICT_ETH_SHORT:
		victim->len = RCD_ETH_LEN - 1;
		break;
	case RCD_VERDICT_IP_VERSION:
		set_ethertype(victim, v4 ? RCD_ETHERTYPE_IPV6 : RCD_ETHERTYPE_IPV4);
		break;
	case RCD_VERDICT_IPV4_SHORT:
		victim->len = RCD_ETH_LEN + RCD_IPV4_LEN - 1;
		break;
	case RCD_VERDICT_IPV4_IHL:
		ip[0] = 0x44;
		break;
	case RCD_VERDICT_IPV4_OPTIONS:
		/* Four no-operation options between IP and UDP. */
		memmove(victim->udp + 4, victim->udp, 64);
		memset(victim->udp, 1, 4);
		ip[0] = 0x46;
		rcd_put_be16(ip + 2, (uint16_t)(rcd_get_be16(ip + 2) + 4));
		fix_ipv4_csum(victim);
		victim->len += 4;
		break;
	case RCD_VERDICT_IPV4_CHECKSUM:
		ip[10] ^= 0x80;
		break;
	case RCD_VERDICT_IPV4_LENGTH:
	case RCD_VERDICT_IPV6_LENGTH:
		victim->len -= 1;
		break;
	case RCD_VERDICT_IPV6_SHORT:
		victim->len = RCD_ETH_LEN + RCD_IPV6_LEN - 1;
		break;
	case RCD_VERDICT_UDP_SHORT:
		set_l4_len(victim, RCD_UDP_LEN - 1);
		break;
	case RCD_VERDICT_UDP_LENGTH:
		rcd_put_be16(victim->udp + 4, 1);
		break;
	case RCD_VERDICT_BTH_SHORT:
		set_l4_len(victim, RCD_UDP_LEN + RCD_BTH_LEN + RCD_ICRC_LEN - 1);
		break;
	case RCD_VERDICT_BTH_TVER:
		victim->bth[1] |= 0x01;
		break;
	case RCD_VERDICT_BTH_OPCODE:
		victim->bth[0] = 0x15;
		break;
	case RCD_VERDICT_EXT_SHORT:
		victim->bth[0] = RCD_OPCODE_RC_RDMA_READ_REQUEST;
		set_l4_len(victim, RCD_UDP_LEN + RCD_BTH_LEN + RCD_RETH_LEN + RCD_ICRC_LEN - 1);
		break;
	case RCD_VERDICT_ALIGN:
		set_l4_len(victim, RCD_UDP_LEN + RCD_BTH_LEN + 14 + RCD_ICRC_LEN);
		break;
	case RCD_VERDICT_PAD:
		victim->bth[1] |= 0x10;
		set_l4_len(victim, RCD_UDP_LEN + RCD_BTH_LEN + RCD_ICRC_LEN);
		break;
	case RCD_VERDICT_PAYLOAD:
		victim->bth[0] = RCD_OPCODE_RC_ACKNOWLEDGE;
		break;
	case RCD_VERDICT_ICRC:
		victim->bth[8] ^= 0x80;
		break;
	case RCD_VERDICT_ARP_SHORT:
	case RCD_VERDICT_ARP_FORMAT:
	case RCD_VERDICT_ICMP_SHORT:
	case RCD_VERDICT_ICMP_CHECKSUM:
	case RCD_VERDICT_MAD_SHORT:
	case RCD_VERDICT_MAD_VERSION:
	case RCD_VERDICT_COUNT:
		break;
	}
}

/* Whether the verdict can't be met on this IP, or is not the packet parser's (test_headers.c). */
static bool
not_here(enum rcd_verdict verdict, enum rcd_l3 l3)
{
	const char *name = rcd_verdict_name(verdict);

	if (strncmp(name, "ARP_", 4) == 0 || strncmp(name, "MAD_", 4) == 0 ||
		strncmp(name, "ICMP_", 5) == 0)
		return true;
	if (l3 == RCD_L3_IPV4)
		return strncmp(name, "IPV6_", 5) == 0 || verdict == RCD_VERDICT_ICMPV6;
	return strncmp(name, "IPV4_", 5) == 0 || verdict == RCD_VERDICT_ICMP;
}

static void
every_verdict(void)
{
	for (int verdict = 0; verdict < RCD_VERDICT_COUNT; verdict++) {
		for (enum rcd_l3 l3 = RCD_L3_IPV4; l3 <= RCD_L3_IPV6; l3++) {
			struct victim victim;

			if (not_here((enum rcd_verdict)verdict, l3))
				continue;
			memset(&victim, 0, sizeof(victim));
			make_victim(&victim, l3);
			CU_ASSERT_EQUAL(verdict_of(&victim), RCD_VERDICT_OK);
			damage(&victim, (enum rcd_verdict)verdict, l3);
			CU_ASSERT_EQUAL(verdict_of(&victim), (enum rcd_verdict)verdict);
		}
	}
}

static void
every_verdict_has_a_counter_of_its_own(void)
{
	bool used[RCD_COUNTER_COUNT] = { false };

	for (int verdict = 0; verdict < RCD_VERDICT_COUNT; verdict++) {
		enum rcd_counter counter = rcd_verdict_counter((enum rcd_verdict)verdict);
		struct rcd_counters set = { { 0 } };

		CU_ASSERT_FALSE(used[counter]);
		used[counter] = true;
		CU_ASSERT_TRUE(strlen(rcd_verdict_text((enum rcd_verdict)verdict)) > 2);
		rcd_verdict_count(&set, (enum rcd_verdict)verdict, 64);
		CU_ASSERT_EQUAL(rcd_counter_get(&set, RCD_COUNTER_RX_PACKETS), 1);
		CU_ASSERT_EQUAL(rcd_counter_get(&set, RCD_COUNTER_RX_BYTES), 64);
		CU_ASSERT_EQUAL(rcd_counter_get(&set, counter), 1);
	}
}

static bool
allows(enum rcd_payload payload, size_t len)
{
	switch (payload) {
	case RCD_PAYLOAD_NONE:
		return len == 0;
	case RCD_PAYLOAD_ATOMIC:
		return len == 8;
	case RCD_PAYLOAD_BITMAP:
		return len >= 4 && len <= 64 && len % 4 == 0;
	case RCD_PAYLOAD_ANY:
		break;
	}
	return true;
}

static void
payload_that_the_opcode_forbids(void)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		enum rcd_payload payload = rcd_opcode_info((uint8_t)opcode)->payload;
		struct rcd_path path = random_path(RCD_L3_IPV4, false);
		struct rcd_roce roce = random_roce((uint8_t)opcode);

		if (!rcd_opcode_known((uint8_t)opcode))
			continue;
		for (size_t payload_len = 0; payload_len <= 72; payload_len++) {
			bool allowed = allows(payload, payload_len);
			size_t len;
			uint8_t *frame = make_frame(&path, &roce, payload_len, &len);
			struct rcd_pkt pkt;

			CU_ASSERT_EQUAL(rcd_pkt_parse(frame, len, &pkt),
				allowed ? RCD_VERDICT_OK : RCD_VERDICT_PAYLOAD);
			free(frame);
		}
	}
}

static void
a_burst(void)
{
	struct rcd_frame frames[RCD_BURST_MAX];
	struct rcd_pkt pkts[RCD_BURST_MAX];
	enum rcd_verdict verdicts[RCD_BURST_MAX];
	static struct victim victims[RCD_BURST_MAX];

	for (unsigned int i = 0; i < RCD_BURST_MAX; i++) {
		make_victim(&victims[i], i % 2 ? RCD_L3_IPV4 : RCD_L3_IPV6);
		if (i % 5 == 3)
			damage(&victims[i], RCD_VERDICT_BTH_TVER, RCD_L3_IPV4);
		if (i % 7 == 6)
			victims[i].bth[7] ^= 1; /* the ICRC finds it */
		frames[i] = (struct rcd_frame){ victims[i].frame, (uint32_t)victims[i].len };
	}
	for (unsigned int count = 0; count <= RCD_BURST_MAX; count++) {
		unsigned int parsed = 0;
		unsigned int good = 0;

		for (unsigned int i = 0; i < count; i++) {
			parsed += i % 5 != 3;
			good += i % 5 != 3 && i % 7 != 6;
		}
		CU_ASSERT_EQUAL(rcd_pkt_parse_burst(frames, pkts, verdicts, count), parsed);
		for (unsigned int i = 0; i < count; i++)
			CU_ASSERT_EQUAL(
				verdicts[i], i % 5 == 3 ? RCD_VERDICT_BTH_TVER : RCD_VERDICT_OK);
		CU_ASSERT_EQUAL(rcd_pkt_icrc_check_burst(pkts, verdicts, count), good);
		for (unsigned int i = 0; i < count; i++) {
			enum rcd_verdict expected = i % 7 == 6 ? RCD_VERDICT_ICRC : RCD_VERDICT_OK;

			CU_ASSERT_EQUAL(verdicts[i], i % 5 == 3 ? RCD_VERDICT_BTH_TVER : expected);
		}
	}
}

/* What a tool may print of a packet that is not RoCEv2: only what was parsed. */
static void
fields_before_the_defect(void)
{
	struct victim victim;
	struct rcd_pkt pkt;

	memset(&pkt, 0xff, sizeof(pkt));
	CU_ASSERT_EQUAL(rcd_pkt_parse(NULL, 0, &pkt), RCD_VERDICT_ETH_SHORT);
	CU_ASSERT_PTR_NULL(pkt.ip);
	CU_ASSERT_EQUAL(pkt.dport, 0);

	make_victim(&victim, RCD_L3_IPV4);
	damage(&victim, RCD_VERDICT_OTHER_UDP_PORT, RCD_L3_IPV4);
	memset(&pkt, 0xff, sizeof(pkt));
	CU_ASSERT_EQUAL(rcd_pkt_parse(victim.frame, victim.len, &pkt), RCD_VERDICT_OTHER_UDP_PORT);
	CU_ASSERT_PTR_EQUAL(pkt.ip, victim.ip);
	CU_ASSERT_EQUAL(pkt.dport, 4790);

	make_victim(&victim, RCD_L3_IPV6);
	damage(&victim, RCD_VERDICT_UDP_SHORT, RCD_L3_IPV6);
	memset(&pkt, 0xff, sizeof(pkt));
	CU_ASSERT_EQUAL(rcd_pkt_parse_ip(RCD_L3_IPV6, victim.ip, victim.len - RCD_ETH_LEN, &pkt),
		RCD_VERDICT_UDP_SHORT);
	CU_ASSERT_PTR_EQUAL(pkt.ip, victim.ip);
	CU_ASSERT_EQUAL(pkt.dport, 0);
	CU_ASSERT_FALSE(pkt.eth.tagged);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(every_opcode_both_ways),
		RCD_TEST(every_truncated_length),
		RCD_TEST(every_truncated_transport_header),
		RCD_TEST(every_verdict),
		RCD_TEST(every_verdict_has_a_counter_of_its_own),
		RCD_TEST(payload_that_the_opcode_forbids),
		RCD_TEST(a_burst),
		RCD_TEST(fields_before_the_defect),
	};

	return rcd_tap_run("pkt", tests, RCD_ARRAY_COUNT(tests));
}
