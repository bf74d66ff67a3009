/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no bytes make the parser read too far, contradict itself or stop.
 *
 * Method: a libFuzzer target; without libFuzzer, replay.c feeds it the kept corpus. What the parser
 * calls good must lie within the frame, and the builder must turn it into the same bytes again,
 * reserved bits and fields that RoCEv2 fixes aside.
 */
#include <stdlib.h>

#include "rcd_aeth.h"
#include "rcd_arp.h"
#include "rcd_check.h"
#include "rcd_icmp.h"
#include "rcd_mad.h"
#include "rcd_pkt.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_view(const uint8_t *data, size_t size, const struct rcd_pkt *pkt)
{
	const uint8_t *end = pkt->ip + pkt->ip_len;

	RCD_CHECK(pkt->ip >= data && end <= data + size);
	RCD_CHECK(pkt->payload > pkt->ip);
	RCD_CHECK(pkt->payload + pkt->payload_len + pkt->roce.bth.pad_count + RCD_ICRC_LEN == end);
	RCD_CHECK(pkt->dport == RCD_UDP_PORT_ROCE);
	RCD_CHECK(rcd_opcode_known(pkt->roce.bth.opcode));
}

/* Transport headers written again and read again are the same. */
static void
check_rebuilt(const struct rcd_pkt *pkt)
{
	uint8_t first[RCD_ROCE_HDR_MAX_LEN];
	uint8_t second[RCD_ROCE_HDR_MAX_LEN];
	size_t len = rcd_roce_build(first, &pkt->roce);
	struct rcd_roce again;
	uint8_t *bytes = malloc(len + pkt->payload_len + pkt->roce.bth.pad_count);
	size_t payload_len;

	memcpy(bytes, first, len);
	memcpy(bytes + len, pkt->payload, pkt->payload_len + (size_t)pkt->roce.bth.pad_count);
	RCD_CHECK(rcd_roce_parse(bytes, len + pkt->payload_len + pkt->roce.bth.pad_count, &again,
			  &payload_len) == RCD_VERDICT_OK);
	RCD_CHECK(payload_len == pkt->payload_len);
	RCD_CHECK(rcd_roce_build(second, &again) == len);
	RCD_CHECK(memcmp(first, second, len) == 0);
	free(bytes);
}

static void
look_into(const struct rcd_pkt *pkt)
{
	char words[RCD_AETH_TEXT_SIZE];
	struct rcd_mad mad;

	rcd_aeth_text(pkt->roce.aeth.syndrome, words, sizeof(words));
	if (rcd_mad_parse(pkt->payload, pkt->payload_len, &mad) == RCD_VERDICT_OK)
		(void)rcd_cm_attr_name(mad.attr_id);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rcd_pkt pkt = { .ip = NULL };
	enum rcd_verdict verdict = rcd_pkt_parse(data, size, &pkt);
	struct rcd_icmp_echo echo;
	struct rcd_arp arp;

	RCD_CHECK(verdict != RCD_VERDICT_ICRC);
	if (verdict == RCD_VERDICT_OK) {
		check_view(data, size, &pkt);
		(void)rcd_pkt_icrc_ok(&pkt);
		check_rebuilt(&pkt);
		look_into(&pkt);
	}

	/* The other entries, on the same bytes. */
	for (enum rcd_l3 l3 = RCD_L3_IPV4; l3 <= RCD_L3_IPV6; l3++) {
		verdict = rcd_pkt_parse_ip(l3, data, size, &pkt);
		if (verdict == RCD_VERDICT_OK)
			check_view(data, size, &pkt);
		(void)rcd_icmp_echo_parse(l3, &pkt.sgid, &pkt.dgid, data, size, &echo);
	}
	(void)rcd_arp_parse(data, size, &arp);
	return 0;
}
