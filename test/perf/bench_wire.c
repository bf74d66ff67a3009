/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what parse and ICRC cost per packet, beside the ceiling, ISA-L's CRC alone over the same
 * bytes, in the same run.
 *
 * Method: a burst of hot packets; the candidates take turns in short rounds, so that noise from
 * the machine meets all of them; medians over the rounds. Prints a table, judges nothing.
 */
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rcd_check.h"
#include "rcd_pkt.h"

enum {
	BURST = 32,
	ROUNDS = 101,
	REPEATS = 256,
	/* An odd number of cache lines: frames must not all fall into the same cache sets. */
	FRAME_ROOM = 67 * 64,
};

struct bench {
	struct rcd_frame frames[BURST];
	struct rcd_pkt pkts[BURST];
	enum rcd_verdict verdicts[BURST];
	size_t hdr_len; /* IP header to the last extended header */
	uint8_t room[BURST][FRAME_ROOM];
};

static volatile uint32_t sink;

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void
run_parse(struct bench *bench)
{
	sink += rcd_pkt_parse_burst(bench->frames, bench->pkts, bench->verdicts, BURST);
}

/* What a port's checksum offload would spare the receiver; IPv6 has none. */
static void
run_ipv4_csum(struct bench *bench)
{
	for (int i = 0; i < BURST; i++) {
		const struct rcd_pkt *pkt = &bench->pkts[i];

		if (pkt->l3 == RCD_L3_IPV4)
			sink += rcd_ipv4_csum_ok(pkt->ip, RCD_IPV4_LEN);
	}
}

/* And the sender, whose header has all but two fields summed up already. */
static void
run_ipv4_fold(struct bench *bench)
{
	for (int i = 0; i < BURST; i++) {
		const struct rcd_pkt *pkt = &bench->pkts[i];

		if (pkt->l3 == RCD_L3_IPV4)
			sink += rcd_csum_fold(UINT64_C(0x1234) + pkt->ip_len + pkt->ipv4_id);
	}
}

static void
run_icrc(struct bench *bench)
{
	sink += rcd_pkt_icrc_check_burst(bench->pkts, bench->verdicts, BURST);
}

static void
run_incremental(struct bench *bench)
{
	for (int i = 0; i < BURST; i++) {
		const struct rcd_pkt *pkt = &bench->pkts[i];
		uint32_t crc = rcd_icrc_start((enum rcd_l3)pkt->l3, pkt->ip);

		crc = rcd_icrc_update(crc, pkt->ip, bench->hdr_len);
		sink += rcd_icrc_update(
			crc, pkt->payload, pkt->ip_len - bench->hdr_len - RCD_ICRC_LEN);
	}
}

static void
run_raw(struct bench *bench)
{
	for (int i = 0; i < BURST; i++) {
		const struct rcd_pkt *pkt = &bench->pkts[i];

		sink += crc32_gzip_refl(0, pkt->ip, pkt->ip_len - (uint64_t)RCD_ICRC_LEN);
	}
}

static void (*const candidates[])(struct bench *) = {
	run_parse,
	run_icrc,
	run_incremental,
	run_raw,
	run_ipv4_csum,
	run_ipv4_fold,
};

static int
compare_double(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
prepare(struct bench *bench, enum rcd_l3 l3, size_t payload_len)
{
	struct rcd_path path = {
		.l3 = (uint8_t)l3,
		.hop_limit = 64,
		.sport = 0xc123,
		.sgid = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1 } },
		.dgid = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 2 } },
	};
	struct rcd_roce roce = {
		.bth = { .opcode = RCD_OPCODE_RC_RDMA_WRITE_ONLY,
			.mig_req = true,
			.pkey = { RCD_PKEY_DEFAULT },
			.dest_qpn = { 17 } },
		.reth = { .va = 0x7f0000001000, .rkey = { 0x1234 }, .dma_len = 4096 },
	};

	for (int i = 0; i < BURST; i++) {
		uint8_t *frame = bench->room[i];

		path.ipv4_id = (uint16_t)rand();
		roce.bth.psn = rcd_psn((uint32_t)i);

		size_t hdr_len = rcd_pkt_build(frame, &path, &roce, payload_len);

		for (size_t k = 0; k < payload_len; k++)
			frame[hdr_len + k] = (uint8_t)rand();
		bench->frames[i].data = frame;
		bench->frames[i].len = (uint32_t)rcd_pkt_seal(frame, &path, hdr_len, payload_len);
		bench->hdr_len = hdr_len - RCD_ETH_LEN;
	}
	RCD_CHECK(rcd_pkt_parse_burst(bench->frames, bench->pkts, bench->verdicts, BURST) == BURST);
	RCD_CHECK(rcd_pkt_icrc_check_burst(bench->pkts, bench->verdicts, BURST) == BURST);
}

static void
measure(enum rcd_l3 l3, size_t payload_len)
{
	static double ns[RCD_ARRAY_COUNT(candidates)][ROUNDS];
	double median[RCD_ARRAY_COUNT(candidates)];
	static struct bench bench;

	prepare(&bench, l3, payload_len);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t c = 0; c < RCD_ARRAY_COUNT(candidates); c++) {
			uint64_t begin = now_ns();

			for (int k = 0; k < REPEATS; k++)
				candidates[c](&bench);
			ns[c][round] = (double)(now_ns() - begin) / (REPEATS * BURST);
		}
	}
	for (size_t c = 0; c < RCD_ARRAY_COUNT(candidates); c++) {
		qsort(ns[c], ROUNDS, sizeof(ns[c][0]), compare_double);
		median[c] = ns[c][ROUNDS / 2];
	}
	printf("%-5s %8zu %9.1f %9.1f %9.2f %13.1f %11.1f %9.1f %9.1f\n",
		l3 == RCD_L3_IPV4 ? "IPv4" : "IPv6", payload_len, median[0], median[1],
		median[1] / median[3], median[2], median[3], median[4], median[5]);
}

int
main(void)
{
	static const size_t payloads[] = { 64, 256, 1024, 4096 };

	printf("ns per packet, median of %d rounds, bursts of %d hot RDMA WRITE packets\n", ROUNDS,
		BURST);
	printf("%-5s %8s %9s %9s %9s %13s %11s %9s %9s\n", "", "payload", "parse", "ICRC",
		"ICRC/raw", "header+rest", "raw ISA-L", "IPv4 sum", "fold");
	for (size_t i = 0; i < RCD_ARRAY_COUNT(payloads); i++)
		measure(RCD_L3_IPV4, payloads[i]);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(payloads); i++)
		measure(RCD_L3_IPV6, payloads[i]);
	return 0;
}
