/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets of a foreign stack are understood to the last bit.
 *
 * Method: for every packet of every capture under the folders given as arguments: it is well-formed
 * and its ICRC is right; from what the parser understood the builder makes the same bytes again;
 * the ICRC stays right when any masked field changes. For the first packet of each opcode in a
 * file, every bit is flipped once: the ICRC or the parser finds it unless the field is masked.
 * The captures hold RoCEv2 only, none damaged on purpose.
 */
#include <pcap/pcap.h>
#include <stdlib.h>

#include "rcd_captures.h"
#include "rcd_pkt.h"

enum {
	FRAME_MAX = 10000
};

static void
check_rebuilt(const uint8_t *frame, size_t len, const struct rcd_pkt *pkt)
{
	static uint8_t out[FRAME_MAX];
	struct rcd_path path = {
		.tagged = pkt->eth.tagged,
		.vlan_tci = pkt->eth.vlan_tci,
		.l3 = pkt->l3,
		.tclass = pkt->tclass,
		.hop_limit = pkt->hop_limit,
		.sport = pkt->sport,
		.ipv4_id = pkt->ipv4_id,
		.flow_label = pkt->flow_label,
		.sgid = pkt->sgid,
		.dgid = pkt->dgid,
	};
	size_t hdr_len;

	memcpy(path.smac, pkt->eth.src, RCD_MAC_LEN);
	memcpy(path.dmac, pkt->eth.dst, RCD_MAC_LEN);
	hdr_len = rcd_pkt_build(out, &path, &pkt->roce, pkt->payload_len);
	CU_ASSERT_PTR_EQUAL_FATAL(frame + hdr_len, pkt->payload);
	memcpy(out + hdr_len, pkt->payload, pkt->payload_len);
	CU_ASSERT_EQUAL(rcd_pkt_seal(out, &path, hdr_len, pkt->payload_len), len);
	CU_ASSERT_EQUAL(memcmp(out, frame, len), 0);
}

/* Whether the ICRC or the parser judges the frame as it did before. */
static bool
still_good(const uint8_t *frame, size_t len)
{
	struct rcd_pkt pkt;

	return rcd_pkt_parse(frame, len, &pkt) == RCD_VERDICT_OK && rcd_pkt_icrc_ok(&pkt);
}

/* A field that the ICRC masks and nothing else judges, by byte and bits from the IP header on. */
struct masked {
	size_t offset;
	uint8_t bits;
};

static const struct masked masked_ipv4[] = {
	{ 26, 0xff }, { 27, 0xff }, { 32, 0xff }, /* TOS and TTL count in the header checksum */
};

static const struct masked masked_ipv6[] = {
	{ 0, 0x0f },
	{ 1, 0xff },
	{ 2, 0xff },
	{ 3, 0xff },
	{ 7, 0xff },
	{ 46, 0xff },
	{ 47, 0xff },
	{ 52, 0xff },
};

static uint8_t
masked_bits(enum rcd_l3 l3, size_t offset)
{
	const struct masked *rows = l3 == RCD_L3_IPV4 ? masked_ipv4 : masked_ipv6;
	size_t count =
		l3 == RCD_L3_IPV4 ? RCD_ARRAY_COUNT(masked_ipv4) : RCD_ARRAY_COUNT(masked_ipv6);

	for (size_t i = 0; i < count; i++) {
		if (rows[i].offset == offset)
			return rows[i].bits;
	}
	return 0;
}

static void
check_flips(uint8_t *frame, size_t len, const struct rcd_pkt *pkt)
{
	size_t ip = (size_t)(pkt->ip - frame);

	for (size_t i = 8 * ip; i < 8 * len; i++) {
		uint8_t bit = (uint8_t)(1 << i % 8);
		bool masked = masked_bits((enum rcd_l3)pkt->l3, i / 8 - ip) & bit;
		bool good;

		frame[i / 8] ^= bit;
		good = still_good(frame, len);
		frame[i / 8] ^= bit;
		CU_ASSERT_EQUAL(good, masked);
	}
}

/* A router may rewrite TOS, TTL and the checksum that follows from them. */
static void
check_routed_ipv4(uint8_t *frame, size_t len, const struct rcd_pkt *pkt)
{
	uint8_t *ip = frame + (pkt->ip - frame);
	uint8_t saved[RCD_IPV4_LEN];

	memcpy(saved, ip, sizeof(saved));
	for (unsigned int i = 0; i < 256; i += 5) {
		ip[1] = (uint8_t)i;
		ip[8] = (uint8_t)~i;
		rcd_put_be16(ip + 10, 0);
		rcd_put_be16(ip + 10, rcd_csum_fold(rcd_csum_add(0, ip, RCD_IPV4_LEN)));
		CU_ASSERT_TRUE(still_good(frame, len));
	}
	memcpy(ip, saved, sizeof(saved));
}

static void
check_capture(void)
{
	char reason[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = pcap_open_offline(rcd_captures_path(), reason);
	bool flipped[256] = { false };
	struct pcap_pkthdr *hdr;
	const uint8_t *data;
	unsigned int count = 0;
	int got;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pcap);
	while ((got = pcap_next_ex(pcap, &hdr, &data)) == 1) {
		/* Of its exact size, so that a sanitizer sees one byte too many. */
		uint8_t *frame = malloc(hdr->caplen);
		struct rcd_pkt pkt;

		count++;
		memcpy(frame, data, hdr->caplen);
		CU_ASSERT_EQUAL(hdr->caplen, hdr->len);
		CU_ASSERT_EQUAL_FATAL(rcd_pkt_parse(frame, hdr->caplen, &pkt), RCD_VERDICT_OK);
		CU_ASSERT_TRUE(rcd_pkt_icrc_ok(&pkt));
		check_rebuilt(frame, hdr->caplen, &pkt);
		if (!flipped[pkt.roce.bth.opcode]) {
			flipped[pkt.roce.bth.opcode] = true;
			check_flips(frame, hdr->caplen, &pkt);
			if (pkt.l3 == RCD_L3_IPV4)
				check_routed_ipv4(frame, hdr->caplen, &pkt);
		}
		free(frame);
	}
	CU_ASSERT_EQUAL(got, PCAP_ERROR_BREAK); /* the end of the file */
	CU_ASSERT_TRUE(count > 0);
	pcap_close(pcap);
}

int
main(int argc, char **argv)
{
	(void)argc;
	return rcd_captures_run("vectors", argv + 1, check_capture);
}
