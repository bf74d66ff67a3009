/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the parts of net_impair that know no port: what chance decides and for how long, the time
 * and the room of a bottleneck, packets in the order of their times, ECN marks, arguments. Method:
 * each by itself, with seeds and times of the test's own, so that it comes out the same each time.
 */
#include <errno.h>
#include <math.h>
#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impair_args.h"
#include "impair_chance.h"
#include "impair_held.h"
#include "impair_mark.h"
#include "impair_neck.h"
#include "rcd_tap.h"

#define DRAWS 1000000
#define HZ    UINT64_C(1000000000)

static struct impair_neck neck;
static struct impair_held held;

static struct impair_args
args_of(const char *text)
{
	struct impair_args args;
	char error[256] = "";

	impair_args_init(&args);
	if (impair_args_parse(&args, text, error, sizeof(error)) != 0) {
		printf("# %s: %s\n", text, error);
		CU_FAIL("arguments");
	}
	return args;
}

/* Within five standard deviations of a mean over so many values; more is no chance. */
static bool
about(double got, double mean, double deviation, double count)
{
	return fabs(got - mean) <= 5 * deviation / sqrt(count);
}

/* Packets that bursts take, of DRAWS; how many bursts, and how many losses follow a loss. */
static uint64_t
lose(const char *text, uint64_t *began, uint64_t *runs)
{
	struct impair_args args = args_of(text);
	struct rcd_sequence sequence = { .state = args.seed };
	struct impair_burst burst = { .bad = false };
	uint64_t lost = 0;
	bool before = false;

	*began = *runs = 0;
	for (int i = 0; i < DRAWS; i++) {
		bool now = impair_chance_burst(&args, &burst, &sequence, began);

		lost += now;
		*runs += now && before;
		before = now;
	}
	return lost;
}

static void
bursts_are_as_long_and_as_often(void)
{
	uint64_t began, runs, lost = lose("ge_p=1%,ge_r=25%,seed=3", &began, &runs);
	double share;

	/* Of a chain with two states: a burst begins each 1/p + 1/r packets, and is 1/r long. */
	CU_ASSERT(about((double)DRAWS / (double)began, 104, 100, (double)began));
	CU_ASSERT(about((double)lost / (double)began, 4, sqrt(0.75) / 0.25, (double)began));
	CU_ASSERT(about((double)runs / (double)lost, 0.75, sqrt(0.75 * 0.25), (double)lost));
	/* Half of what comes in a burst, and a little of what comes between two. */
	lost = lose("ge_p=1%,ge_r=25%,ge_bad=50%,ge_good=1%", &began, &runs);
	share = (double)lost / DRAWS;
	CU_ASSERT(fabs(share - (0.5 / 26 + 0.01 * 25 / 26)) < 0.001);
	/* All that is lost between bursts alone. */
	lost = lose("ge_p=1%,ge_r=100%,ge_bad=0,ge_good=10%", &began, &runs);
	CU_ASSERT(fabs((double)lost / DRAWS - 0.1 * 100 / 101) < 0.002);
	/* Three packets at most: 1 + 0.75 + 0.75^2 in the mean, and a gap behind each burst. */
	lost = lose("ge_p=1%,ge_r=25%,ge_max=3", &began, &runs);
	CU_ASSERT(fabs((double)lost / (double)began - 2.3125) < 0.05);
	lost = lose("ge_p=100%,ge_r=1%,ge_max=3,ge_good=0", &began, &runs);
	CU_ASSERT(runs <= 2 * began && lost <= 3 * began && lost > 2 * began);
	CU_ASSERT_EQUAL(lose("drop=50%", &began, &runs), 0);
	CU_ASSERT_EQUAL(began, 0);
}

static void
bursts_follow_from_the_seed(void)
{
	uint64_t began[3], runs[3], lost[3];

	lost[0] = lose("ge_p=1%,ge_r=25%,seed=3", &began[0], &runs[0]);
	lost[1] = lose("ge_p=1%,ge_r=25%,seed=3", &began[1], &runs[1]);
	lost[2] = lose("ge_p=1%,ge_r=25%,seed=4", &began[2], &runs[2]);
	CU_ASSERT(lost[0] == lost[1] && began[0] == began[1] && runs[0] == runs[1]);
	CU_ASSERT(lost[0] != lost[2] || began[0] != began[2] || runs[0] != runs[2]);
}

/* The share of delays that are longer than so many microseconds, as it should be. */
static void
longer(const char *text, uint32_t than_us, double share)
{
	struct impair_args args = args_of(text);
	struct rcd_sequence sequence = { .state = 5 };
	uint32_t over = 0, out = 0;

	for (int i = 0; i < DRAWS / 10; i++) {
		uint32_t us = impair_chance_delay_us(&args, &sequence);

		over += us >= than_us;
		out += us < args.delay_min_us || us > args.delay_max_us;
	}
	if (!about(over / (DRAWS / 10.0), share, sqrt(share * (1 - share)), DRAWS / 10.0)) {
		printf("# %s: %u, expected %g\n", text, over, share * (DRAWS / 10.0));
		CU_FAIL("distribution");
	}
	CU_ASSERT_EQUAL(out, 0);
}

static void
delays_are_distributed(void)
{
	static const char uniform[] = "delay_us=100000,delay_dist=uniform,jitter_us=100000";
	static const char normal[] = "delay_us=500000,delay_dist=normal,jitter_us=100000";
	static const char pareto[] = "delay_us=1000,delay_dist=pareto,jitter_us=10000";

	longer("delay_us=70", 70, 1);
	longer("delay_us=70", 71, 0);
	longer(uniform, 200001, 0);
	longer(uniform, 150000, 0.25);
	longer(uniform, 50000, 0.75);
	longer(normal, 500000, 0.5);
	longer(normal, 600000, 0.1587);
	longer(normal, 700000, 0.0228);
	longer(normal, 400000, 0.8413);
	longer(pareto, 1000, 1);
	longer(pareto, 11000, 0.25);
	longer(pareto, 1000 + 90000, 0.01);
	/* Beyond the bounds nothing is; what would be is at them. */
	longer("delay_us=100,delay_dist=normal,jitter_us=100000", 1, 0.5);
	longer("delay_us=100,delay_dist=normal,jitter_us=100000,delay_min_us=80,delay_max_us=120",
		80, 1);
	longer("delay_us=1000,delay_dist=pareto,jitter_us=10000,delay_max_us=11000", 11000, 0.25);
}

/* One packet to the bottleneck. @return when it has left; 0: dropped */
static uint64_t
come(uint32_t len, uint64_t now, bool *mark)
{
	uint64_t leaves = 0;
	enum impair_neck_verdict verdict = impair_neck_take(&neck, len, now, &leaves);

	*mark = verdict == IMPAIR_NECK_MARK;
	return verdict == IMPAIR_NECK_DROP ? 0 : leaves;
}

static void
set_neck(const char *text)
{
	struct impair_args args = args_of(text);
	struct impair_neck_counts counts;

	impair_neck_set(&neck, &args, true, HZ);
	impair_neck_read(&neck, &counts, true);
}

static void
bottleneck_takes_its_time(void)
{
	struct impair_neck_counts counts;
	bool mark;

	set_neck("rate=1000000");
	for (uint64_t i = 1; i <= 10; i++)
		CU_ASSERT_EQUAL(come(1000, 1, &mark), 1 + i * 1000000);
	/* One that comes when nothing is there any more. */
	CU_ASSERT_EQUAL(come(500, 20000000, &mark), 20500000);
	impair_neck_read(&neck, &counts, false);
	CU_ASSERT_EQUAL(counts.packets, 11);
	CU_ASSERT_EQUAL(counts.drops, 0);
	CU_ASSERT_EQUAL(counts.peak_bytes, 10000);
	CU_ASSERT_EQUAL(counts.wait_us, 55 * 1000 + 500);
	/* Less than a cycle each: none of it is lost. */
	set_neck("rate=3000000000");
	for (uint64_t i = 1; i <= 900; i++)
		CU_ASSERT_EQUAL(come(1, 7, &mark), 7 + i / 3);
	/* The highest rate and the lowest one. */
	set_neck("rate=1099511627776");
	CU_ASSERT_EQUAL(come(9000, 5, &mark), 13);
	set_neck("rate=1000");
	for (uint64_t i = 1; i <= IMPAIR_QUEUE_PACKETS; i++)
		CU_ASSERT_EQUAL(come(9000, 5, &mark), 5 + i * 9 * HZ);
	CU_ASSERT_EQUAL(come(9000, 5, &mark), 0);
}

static void
bottleneck_has_a_queue(void)
{
	struct impair_neck_counts counts;
	bool mark;

	set_neck("rate=1000000,queue=10000");
	for (int i = 0; i < 10; i++)
		CU_ASSERT(come(1000, 1, &mark) != 0);
	CU_ASSERT_EQUAL(come(1, 1, &mark), 0);
	/* The first has left; there is room for its bytes, no more. */
	CU_ASSERT_EQUAL(come(1001, 1000001, &mark), 0);
	CU_ASSERT_EQUAL(come(1000, 1000001, &mark), 11000001);
	CU_ASSERT_EQUAL(come(1, 1000001, &mark), 0);
	impair_neck_read(&neck, &counts, true);
	CU_ASSERT_EQUAL(counts.packets, 11);
	CU_ASSERT_EQUAL(counts.drops, 3);
	impair_neck_read(&neck, &counts, false);
	CU_ASSERT_EQUAL(counts.drops + counts.packets + counts.peak_bytes + counts.wait_us, 0);
	/* None is so long that it never passes. */
	CU_ASSERT(come(20000, 12000000, &mark) != 0);
	CU_ASSERT_EQUAL(come(1, 12000000, &mark), 0);
	/* New settings begin with an empty one. */
	set_neck("rate=1000000,queue_packets=3");
	for (int i = 0; i < 3; i++)
		CU_ASSERT(come(60000, 1, &mark) != 0);
	CU_ASSERT_EQUAL(come(1, 1, &mark), 0);
	/* It goes round its places many times. */
	set_neck("rate=1000000,queue_packets=2");
	for (uint64_t i = 0; i < 5000; i++)
		CU_ASSERT_EQUAL(come(1000, i * 1000000, &mark), (i + 1) * 1000000);
}

static void
bottleneck_marks_when_it_is_long(void)
{
	bool mark;

	set_neck("rate=1000000,queue=10000,mark=3000");
	for (int i = 0; i < 10; i++) {
		CU_ASSERT(come(1000, 1, &mark) != 0);
		CU_ASSERT_EQUAL(mark, i >= 3);
	}
	CU_ASSERT(come(1000, 8 * 1000000 + 1, &mark) != 0);
	CU_ASSERT_FALSE(mark);
	CU_ASSERT(come(1000, 8 * 1000000 + 1, &mark) != 0);
	CU_ASSERT(mark);
	/* Without a threshold, however long it is. */
	set_neck("rate=1000000");
	for (int i = 0; i < IMPAIR_QUEUE_PACKETS; i++) {
		CU_ASSERT(come(1000, 1, &mark) != 0);
		CU_ASSERT_FALSE(mark);
	}
}

static void
no_bottleneck(void)
{
	struct impair_args args = args_of("rate=1000");
	bool mark;

	set_neck("");
	for (int i = 0; i < 2 * IMPAIR_QUEUE_PACKETS; i++)
		CU_ASSERT_EQUAL(come(9000, 5, &mark), 5);
	/* The other direction's. */
	impair_neck_set(&neck, &args, false, HZ);
	for (int i = 0; i < 2 * IMPAIR_QUEUE_PACKETS; i++)
		CU_ASSERT_EQUAL(come(9000, 5, &mark), 5);
}

static void
packets_go_in_the_order_of_their_times(void)
{
	static struct rte_mbuf mbufs[IMPAIR_HELD];
	struct rcd_sequence sequence = { .state = 9 };
	struct rte_mbuf *mbuf, *last = NULL;
	uint32_t count = 0;
	uint64_t before = 0;

	memset(&held, 0, sizeof(held));
	for (uint32_t i = 0; i < IMPAIR_HELD; i++) {
		/* Few times, so that many packets share one. */
		mbufs[i].dynfield1[0] = (uint32_t)(rcd_sequence_next(&sequence) % 100 + 10);
		impair_held_add(&held, &mbufs[i], mbufs[i].dynfield1[0]);
	}
	CU_ASSERT_PTR_NULL(impair_held_next(&held, 9));
	for (uint64_t now = 10; now < 110; now++) {
		while ((mbuf = impair_held_next(&held, now)) != NULL) {
			CU_ASSERT_EQUAL(mbuf->dynfield1[0], now);
			CU_ASSERT(now > before || mbuf > last);
			before = now;
			last = mbuf;
			count++;
		}
	}
	CU_ASSERT_EQUAL(count, IMPAIR_HELD);
	/* All at once, and those that are due already before the others. */
	for (uint32_t i = 0; i < 200; i++)
		impair_held_add(&held, &mbufs[i], i % 2 ? 5 : 1000000 - i);
	impair_held_hurry(&held, 50);
	for (uint32_t i = 0; i < 200; i++)
		CU_ASSERT_PTR_EQUAL(
			impair_held_next(&held, 50), &mbufs[i < 100 ? 2 * i + 1 : 2 * (i - 100)]);
	CU_ASSERT_PTR_NULL(impair_held_next(&held, UINT64_MAX));
}

/* A frame: Ethernet, perhaps a tag, IPv4 with an option or IPv6. @return its length */
static uint32_t
make_frame(uint8_t *frame, bool v6, bool tagged, uint8_t ecn)
{
	uint32_t at = 14;
	uint16_t sum;

	memset(frame, 0xa5, 100);
	if (tagged) {
		memcpy(frame + 12, "\x81\x00\x00\x05", 4);
		at = 18;
	}
	memcpy(frame + at - 2, v6 ? "\x86\xdd" : "\x08\x00", 2);
	if (v6) {
		frame[at] = 0x6a;
		frame[at + 1] = (uint8_t)(0x83 | ecn << 4);
		return at + 40;
	}
	frame[at] = 0x46;
	frame[at + 1] = (uint8_t)(0xa8 | ecn);
	memset(frame + at + 10, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(frame + at, 24);
	memcpy(frame + at + 10, &sum, 2);
	return at + 24;
}

static struct rte_mbuf
mbuf_of(uint8_t *frame, uint32_t len)
{
	return (struct rte_mbuf){
		.buf_addr = frame, .data_len = (uint16_t)len, .pkt_len = len, .nb_segs = 1
	};
}

static void
marks_are_where_they_belong(void)
{
	uint8_t frame[100], before[100];

	for (uint32_t i = 0; i < 16; i++) {
		bool v6 = i & 1, tagged = i & 2;
		uint8_t ecn = (uint8_t)(i >> 2);
		uint32_t len = make_frame(frame, v6, tagged, ecn), at = tagged ? 18 : 14;
		struct rte_mbuf mbuf = mbuf_of(frame, len);

		memcpy(before, frame, sizeof(frame));
		CU_ASSERT_EQUAL(impair_mark_can(&mbuf), ecn != 0);
		if (ecn == 0)
			continue;
		impair_mark(&mbuf);
		CU_ASSERT_EQUAL(frame[at + 1], v6 ? 0xb3 : 0xab);
		if (!v6)
			CU_ASSERT_EQUAL(rte_raw_cksum(frame + at, 24), UINT16_MAX);
		/* The rest is as it was. */
		frame[at + 1] = before[at + 1];
		if (!v6)
			memcpy(frame + at + 10, before + at + 10, 2);
		CU_ASSERT(memcmp(frame, before, sizeof(frame)) == 0);
	}
}

/* Each sum that there is, made by another field; and one that is wrong is wrong still. */
static void
marks_keep_every_checksum(void)
{
	uint8_t frame[100];
	uint32_t bad = 0;

	for (uint32_t id = 0; id <= UINT16_MAX; id++) {
		uint32_t len = make_frame(frame, false, false, 1 + id % 2);
		struct rte_mbuf mbuf = mbuf_of(frame, len);
		uint16_t sum;

		frame[18] = (uint8_t)(id >> 8);
		frame[19] = (uint8_t)id;
		memset(frame + 24, 0, 2);
		sum = (uint16_t)~rte_raw_cksum(frame + 14, 24);
		memcpy(frame + 24, &sum, 2);
		impair_mark(&mbuf);
		bad += rte_raw_cksum(frame + 14, 24) != UINT16_MAX;
		make_frame(frame, false, false, 2);
		frame[19] ^= 1;
		impair_mark(&mbuf);
		bad += rte_raw_cksum(frame + 14, 24) == UINT16_MAX;
	}
	CU_ASSERT_EQUAL(bad, 0);
}

static void
nothing_is_marked_that_is_cut_short(void)
{
	for (uint32_t i = 0; i < 4; i++) {
		uint8_t frame[100];
		uint32_t whole = make_frame(frame, i & 1, i & 2, 1);

		for (uint32_t len = 0; len < whole; len++) {
			/* Of that size, so that a sanitizer sees who reads on. */
			uint8_t *cut = malloc(len + 1);
			struct rte_mbuf mbuf = mbuf_of(cut + 1, len);
			bool head = !(i & 1) && len >= whole - 4;

			memcpy(cut + 1, frame, len);
			/* Options are not looked at. */
			CU_ASSERT_EQUAL(impair_mark_can(&mbuf), head);
			impair_mark(&mbuf);
			CU_ASSERT(head || memcmp(cut + 1, frame, len) == 0);
			free(cut);
		}
	}
	{
		uint8_t arp[60] = { [12] = 8, [13] = 6, [15] = 0xff };
		struct rte_mbuf mbuf = mbuf_of(arp, sizeof(arp));

		CU_ASSERT_FALSE(impair_mark_can(&mbuf));
	}
}

static void
arguments_that_do_not_go_together(void)
{
	static const char *const wrong[] = { "ge_p=1%", "ge_p=1%,ge_r=0", "ge_max=3",
		"ge_p=1%,ge_r=1,ge_max=0", "ge_r=1%", "ge_bad=50%", "ge_good=1%", "ge_p=2,ge_r=1",
		"ge_p=x,ge_r=1", "ge_p=1%,ge_r=1%,ge_bad=101%", "ge_p=1%,ge_r=1%,ge_good=-1",
		"delay_dist=gauss", "delay_dist=", "jitter_us=5", "delay_dist=constant,jitter_us=5",
		"delay_dist=normal,jitter_us=1000001", "delay_us=10,delay_min_us=11",
		"delay_us=10,delay_max_us=9", "delay_min_us=200,delay_max_us=100", "rate=999",
		"rate=0", "rate=-1", "rate=x", "rate=1099511627777", "queue=1000", "mark=1000",
		"queue_packets=5", "rate=1000000,queue=0", "rate=1000000,queue=4294967296",
		"rate=1000000,queue_packets=0", "rate=1000000,queue_packets=1025",
		"rate=1000000,mark=0", "rate=1000000,queue=5000,mark=5000" };
	struct impair_args args = args_of("drop=3%,seed=4"), before = args;
	char error[256];

	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		error[0] = '\0';
		if (impair_args_parse(&args, wrong[i], error, sizeof(error)) != -EINVAL) {
			printf("# taken: %s\n", wrong[i]);
			CU_FAIL("taken");
		}
		CU_ASSERT(error[0] != '\0');
	}
	CU_ASSERT(memcmp(&args, &before, sizeof(args)) == 0);
	args_of("ge_p=0.1%,ge_r=30%,ge_bad=80%,ge_good=0.01%,delay=1,delay_us=50,jitter_us=9,"
		"delay_dist=normal,delay_min_us=20,delay_max_us=500,rate=125000000,queue=256000,"
		"queue_packets=500,mark=64000,side=both");
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(bursts_are_as_long_and_as_often),
		RCD_TEST(bursts_follow_from_the_seed),
		RCD_TEST(delays_are_distributed),
		RCD_TEST(bottleneck_takes_its_time),
		RCD_TEST(bottleneck_has_a_queue),
		RCD_TEST(bottleneck_marks_when_it_is_long),
		RCD_TEST(no_bottleneck),
		RCD_TEST(packets_go_in_the_order_of_their_times),
		RCD_TEST(marks_are_where_they_belong),
		RCD_TEST(marks_keep_every_checksum),
		RCD_TEST(nothing_is_marked_that_is_cut_short),
		RCD_TEST(arguments_that_do_not_go_together),
	};

	return rcd_tap_run("impair_parts", tests, RTE_DIM(tests));
}
