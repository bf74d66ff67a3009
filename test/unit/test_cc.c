/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the algorithms of congestion control take the steps of their papers, and nothing that a
 * peer or a network says brings them below their floor or beyond their numbers. Method: each step
 * against one worked out by hand; floods of every kind of notice.
 */
#include "rcd_cc.h"

#include "rcd_bytes.h"

#include "rcd_tap.h"

#define KBYTE  1000
#define NS(us) (UINT64_C(1000) * (us))

static const struct rcd_cc_ops *ops;
static struct rcd_cc cc;
static uint32_t away_ns; /* of this end, as round trips tell it */

/* An algorithm with parameters from text; begins at 1 ns. */
static void
begin(const char *text, uint32_t packet_bytes)
{
	struct rcd_cc_params params;

	memset(&cc, 0, sizeof(cc));
	away_ns = 0;
	CU_ASSERT_PTR_NULL_FATAL(rcd_cc_parse(text, &ops, &params));
	ops->init(&cc, &params, packet_bytes, 1);
}

static void
ack(uint32_t bytes, uint32_t flight, uint64_t rtt_ns, uint64_t now_ns)
{
	struct rcd_cc_ack told = { .bytes = bytes,
		.flight = flight,
		.rtt_ns = (uint32_t)rtt_ns,
		.now_ns = now_ns,
		.away_ns = rtt_ns != 0 ? away_ns : 0 };

	ops->on_ack(&cc, &told);
	CU_ASSERT_TRUE(ops->window(&cc) > 0);
}

/* Three round trips of a length, in a tenth of one: what is less counts for none. */
static void
measure(uint64_t rtt_ns, uint64_t now_ns)
{
	for (uint64_t i = 0; i < 3; i++)
		ack(0, 0, rtt_ns, now_ns + i);
}

/* Nanoseconds that a packet of 1000 bytes takes. */
static uint64_t
gap(uint64_t now_ns)
{
	uint64_t first = ops->send_at(&cc, 0, now_ns);

	return ops->send_at(&cc, KBYTE, now_ns) - first;
}

static void
names_and_parameters(void)
{
	static const char *const wrong[] = { "", "reno", "none,", "none,target=1", "swift,",
		"swift,,", "swift,target", "swift,target=", "swift,=1", "swift,target=0",
		"swift,target=100001", "swift,target=-1", "swift,target=4294967297",
		"swift,target=1,floor=5", "swift,targets=5", "swift,targe=5", "dcqcn,line=9",
		"swift target=1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	struct rcd_cc_params params, untouched;

	memset(&params, 0x5a, sizeof(params));
	untouched = params;
	for (size_t i = 0; i < RCD_ARRAY_COUNT(wrong); i++) {
		ops = NULL;
		CU_ASSERT_PTR_NOT_NULL(rcd_cc_parse(wrong[i], &ops, &params));
		CU_ASSERT_PTR_NULL(ops);
	}
	CU_ASSERT_EQUAL(memcmp(&params, &untouched, sizeof(params)), 0);
	CU_ASSERT_PTR_NULL(rcd_cc_parse("none", &ops, &params));
	CU_ASSERT_PTR_EQUAL(ops, &rcd_cc_none);
	CU_ASSERT_PTR_NULL(rcd_cc_parse("swift,gain=3,target=7", &ops, &params));
	CU_ASSERT_PTR_EQUAL(ops, rcd_cc_by_name("swift"));
	CU_ASSERT_EQUAL(params.swift_gain, 3);
	CU_ASSERT_EQUAL(params.swift_target_us, 7);
	CU_ASSERT_EQUAL(params.swift_cut_pct, 50);
	CU_ASSERT_PTR_NULL(rcd_cc_by_name("swif"));
}

static void
swift_grows_and_shrinks(void)
{
	begin("swift,range=0,start=64", KBYTE);
	CU_ASSERT_EQUAL(ops->window(&cc), 65536);
	/* Nothing waits: it doubles in a round trip, if it is used. */
	ack(65536, 65536, NS(10), NS(10));
	CU_ASSERT_EQUAL(ops->window(&cc), 131072);
	ack(KBYTE, KBYTE, 0, NS(11));
	CU_ASSERT_EQUAL(ops->window(&cc), 131072);
	/* Twice is the scheduler, three times the network: 80 % of 40 in 100 us too long. */
	ack(0, 0, NS(100), NS(1000));
	ack(0, 0, NS(100), NS(1001));
	CU_ASSERT_EQUAL(ops->window(&cc), 131072);
	ack(0, 0, NS(100), NS(1002));
	CU_ASSERT_EQUAL(ops->window(&cc), 131072 - 41943);
	ack(0, 0, NS(100), NS(1101));
	CU_ASSERT_EQUAL(ops->window(&cc), 89129);
	ack(0, 0, NS(100), NS(1102));
	CU_ASSERT_EQUAL(ops->window(&cc), 89129 - 28521);
	/* Nothing grows while packets wait too long; when they don't wait, by one in 24. */
	ack(60608, 60608, 0, NS(1200));
	CU_ASSERT_EQUAL(ops->window(&cc), 60608);
	ack(30304, 60608, NS(10), NS(1300));
	CU_ASSERT_EQUAL(ops->window(&cc), 60608);
	ack(30304, 60608, 0, NS(1301));
	CU_ASSERT_EQUAL(ops->window(&cc), 60608 + 2525);
	/* They wait for more than an eighth of the target: by one in 64. */
	measure(NS(20), NS(1302));
	ack(65536, 65536, 0, NS(1306));
	CU_ASSERT_EQUAL(ops->window(&cc), 63133 + 986);
	/* A mark halves it, once in a round trip of 20 us. */
	ops->on_cnp(&cc, NS(2000));
	ops->on_cnp(&cc, NS(2019));
	CU_ASSERT_EQUAL(ops->window(&cc), 32060);
	ops->on_cnp(&cc, NS(2020));
	CU_ASSERT_EQUAL(ops->window(&cc), 16030);
	ack(65536, 65536, 0, NS(2021));
	CU_ASSERT_EQUAL(ops->window(&cc), 16030 + 250);
	ops->on_cnp(&cc, NS(3000));
	ops->on_cnp(&cc, NS(4000));
	ops->on_cnp(&cc, NS(5000));
	/* Of a small one a part of a packet: a sixteenth, where packets wait. */
	ack(65536, 65536, 0, NS(5001));
	CU_ASSERT_EQUAL(ops->window(&cc), 2035 + KBYTE / 16);
	CU_ASSERT_EQUAL(ops->send_at(&cc, KBYTE, NS(2011)), NS(2011));
}

/* Those of a queue, by how long packets wait in it; those of the path; and those of a flood. */
static void
swift_tells_losses_apart(void)
{
	begin("swift,range=0,start=64", KBYTE);
	measure(NS(100), NS(1));
	/* Too fast to begin with: one packet, then twice as many each time up to the half. */
	ops->on_loss(&cc, false, NS(100));
	CU_ASSERT_EQUAL(ops->window(&cc), KBYTE);
	for (uint32_t window = KBYTE; window < 32768; window *= 2) {
		CU_ASSERT_EQUAL(ops->window(&cc), window);
		ack(window, window, 0, NS(101));
	}
	ack(32000, 32000, 0, NS(102));
	CU_ASSERT_EQUAL(ops->window(&cc), 64000);
	ack(32000, 32000, 0, NS(103));
	CU_ASSERT_EQUAL(ops->window(&cc), 64000 + 2666);
	/* No more than half of the target, and 5 us of 130. */
	measure(NS(125), NS(1000));
	ops->on_loss(&cc, false, NS(1100));
	CU_ASSERT_EQUAL(ops->window(&cc), 66666);
	measure(NS(130), NS(2000));
	ops->on_loss(&cc, false, NS(2100));
	CU_ASSERT_EQUAL(ops->window(&cc), 66666 - 66666 * 38 / 1000);
	/* As long as they may: 23 us of 148. A flood empties the queue. */
	measure(NS(148), NS(3000));
	ops->on_loss(&cc, false, NS(3100));
	CU_ASSERT_EQUAL(ops->window(&cc), 64133 - 64133 * 155 / 1000);
	ops->on_loss(&cc, true, NS(4000));
	ops->on_loss(&cc, true, NS(4050));
	CU_ASSERT_EQUAL(ops->window(&cc), KBYTE);
	ack(KBYTE, KBYTE, 0, NS(4200));
	CU_ASSERT_EQUAL(ops->window(&cc), 2 * KBYTE);
	/* It has grown by steps before: doubled up to the half of 54193. */
	for (uint32_t window = 2 * KBYTE; window < 27096; window *= 2)
		ack(window, window, 0, NS(4201));
	CU_ASSERT_EQUAL(ops->window(&cc), 32 * KBYTE);
	/* What waits for ever so long takes a half, and a loss a round trip later another. */
	measure(NS(1000), NS(6000));
	CU_ASSERT_EQUAL(ops->window(&cc), 16 * KBYTE);
	ops->on_loss(&cc, false, NS(9000));
	CU_ASSERT_EQUAL(ops->window(&cc), 8 * KBYTE);
}

/* A loss that was none: the window is what it was, unless packets waited too long since. */
static void
swift_undoes(void)
{
	struct rcd_cc before, older;

	begin("swift,range=0,start=64", KBYTE);
	measure(NS(100), NS(1));
	older = before = cc;
	ops->on_loss(&cc, false, NS(100));
	ops->on_loss(&cc, true, NS(250));
	CU_ASSERT_EQUAL(ops->window(&cc), KBYTE / 2);
	ops->undo(&cc, &before);
	CU_ASSERT_EQUAL(ops->window(&cc), 65536);
	/* It is doubled as before, and what it has come to since stays. */
	ack(65536, 65536, 0, NS(300));
	CU_ASSERT_EQUAL(ops->window(&cc), 131072);
	ops->undo(&cc, &older);
	CU_ASSERT_EQUAL(ops->window(&cc), 131072);
	/* Nor was there a cut in this round trip, so that a mark makes one. */
	before = cc;
	ops->on_loss(&cc, true, NS(400));
	ops->undo(&cc, &before);
	ops->on_cnp(&cc, NS(401));
	CU_ASSERT_EQUAL(ops->window(&cc), KBYTE);
	/* What waits too long shrinks nothing twice in a round trip, but it was seen. */
	begin("swift,range=0,start=64", KBYTE);
	measure(NS(100), NS(1));
	before = cc;
	ops->on_loss(&cc, false, NS(100));
	measure(NS(1000), NS(101));
	ops->undo(&cc, &before);
	CU_ASSERT_EQUAL(ops->window(&cc), KBYTE);
}

/* The first mark, or losses before any round trip is known: from one packet to 6 KiB again. */
static void
swift_begins_too_fast(void)
{
	for (uint32_t heavy = 0; heavy < 2; heavy++) {
		begin("swift", KBYTE);
		CU_ASSERT_EQUAL(ops->window(&cc), 96 * 1024);
		if (heavy)
			ops->on_loss(&cc, true, NS(30));
		else
			ops->on_cnp(&cc, NS(30));
		CU_ASSERT_EQUAL(ops->window(&cc), KBYTE);
		/* What else is on its way says nothing new. */
		ops->on_cnp(&cc, NS(80));
		for (uint32_t window = KBYTE; window < 8 * KBYTE; window *= 2)
			ack(window, window, 0, NS(90));
		CU_ASSERT_EQUAL(ops->window(&cc), 8 * KBYTE);
		ack(8 * KBYTE, 8 * KBYTE, NS(20), NS(100));
		CU_ASSERT_EQUAL(ops->window(&cc), 8 * KBYTE + 333);
		ops->on_cnp(&cc, NS(130));
		CU_ASSERT_EQUAL(ops->window(&cc), 4167);
	}
}

/* Of one packet w is 1: (1 - 1/10) / (sqrt(10) - 1/10) of the range is 29.389 of 100 us. */
static void
swift_target_is_wider_for_few(void)
{
	begin("swift,target=1,range=100,start=1", 1024);
	measure(NS(10), NS(1));
	measure(40388, NS(1000));
	CU_ASSERT_EQUAL(ops->window(&cc), 1024);
	measure(40400, NS(2000));
	CU_ASSERT_EQUAL(ops->window(&cc), 1024);
	measure(41389, NS(3000));
	/* 1000 in 41389 too long, 80 % of it: 19 in 1000. */
	CU_ASSERT_EQUAL(ops->window(&cc), 1024 - 19);
}

/* Of an end that is away for 200 us, 250 beyond the shortest are none too many; and 50 again. */
static void
swift_target_is_wider_for_absences(void)
{
	begin("swift,range=0,start=64", KBYTE);
	measure(NS(10), NS(1));
	away_ns = NS(200);
	measure(NS(259), NS(1000));
	CU_ASSERT_EQUAL(ops->window(&cc), 65536);
	/* 80 % of 40 in 300. */
	measure(NS(300), NS(2000));
	CU_ASSERT_EQUAL(ops->window(&cc), 65536 - 6946);
	/* A loss: half of that is 125 us, whatever is acknowledged without a round trip. */
	measure(NS(135), NS(3000));
	ack(0, 0, 0, NS(3050));
	ops->on_loss(&cc, false, NS(3100));
	CU_ASSERT_EQUAL(ops->window(&cc), 58590);
	measure(NS(180), NS(4000));
	ops->on_loss(&cc, false, NS(4100));
	CU_ASSERT_EQUAL(ops->window(&cc), 58590 - 58590 * 250 / 1000);
	/* There is room below an eighth. */
	measure(NS(40), NS(5000));
	ack(43943, 43943, 0, NS(5010));
	CU_ASSERT_EQUAL(ops->window(&cc), 43943 + 43943 / 24);
	/* Nobody takes its core any more: 80 % of 1 in 61. */
	away_ns = 0;
	measure(NS(61), NS(6000));
	CU_ASSERT_EQUAL(ops->window(&cc), 45773 - 595);
	ops->on_loss(&cc, false, NS(6100));
	CU_ASSERT_EQUAL(ops->window(&cc), 45178 - 45178 * 426 / 1000);
}

/* What the longest way holds, and no more: a window that doubles on an idle network. */
static void
swift_window_has_an_end(void)
{
	begin("swift", KBYTE);
	measure(NS(10), NS(1));
	for (uint32_t i = 0; i < 20; i++)
		ack(ops->window(&cc), ops->window(&cc), 0, NS(100 + i));
	CU_ASSERT_EQUAL(ops->window(&cc), UINT32_C(1) << 26);
}

/* It is a pace then, and has an end. */
static void
swift_window_below_a_packet(void)
{
	begin("swift", KBYTE);
	measure(NS(10), NS(1));
	for (uint64_t i = 1; i < 1000; i++)
		ops->on_loss(&cc, true, NS(100 * i));
	CU_ASSERT_EQUAL(ops->window(&cc), KBYTE / 16);
	CU_ASSERT_EQUAL(ops->send_at(&cc, KBYTE, NS(200000)), NS(200000) + 161290);
	/* Small packets, of which it holds one or more, need none. */
	CU_ASSERT_EQUAL(ops->send_at(&cc, 62, NS(200000)), NS(200000));
	CU_ASSERT_EQUAL(ops->send_at(&cc, 63, NS(200000)), NS(200000) + 10161);
	measure(NS(500000), NS(300000));
	CU_ASSERT_EQUAL(ops->send_at(&cc, KBYTE, NS(300000)), NS(300500));
	/* The way has become longer: after two epochs that is the round trip. */
	measure(NS(500), NS(5400000));
	measure(NS(500), NS(10500000));
	ack(KBYTE, KBYTE, NS(500), NS(15600000));
	CU_ASSERT_EQUAL(ops->window(&cc), KBYTE / 16 + KBYTE / 8);
	/* 21 bytes in 4.3 seconds are less than a kilobit per second, and a rate. */
	begin("swift", 338);
	measure(NS(10), NS(1));
	for (uint64_t i = 1; i < 1000; i++)
		ops->on_loss(&cc, true, NS(100 * i));
	measure(UINT32_MAX, NS(300000));
	CU_ASSERT_EQUAL(ops->window(&cc), 338 / 16);
	CU_ASSERT_EQUAL(ops->rate(&cc), 1);
	CU_ASSERT_EQUAL(ops->send_at(&cc, 338, NS(300000)), NS(300500));
}

/*
 * Whatever it is told, in any order, a window is there and a packet goes in half a millisecond; and
 * who has no rate need not be asked when the next may leave.
 */
static void
swift_told_anything(void)
{
	uint64_t now_ns = 1, random = 1;

	begin("swift,range=100000,gain=64,start=2048", 4178);
	for (uint32_t i = 0; i < 200000; i++) {
		static const uint64_t rtts[] = { 0, 1, 4000, 500000000, UINT32_MAX };
		uint32_t bytes, window;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		bytes = (uint32_t)(random >> 33) & 0xffffff;
		now_ns += random >> 60 == 0 ? UINT64_C(1) << (random >> 50 & 0x1f) : 0;
		away_ns = (uint32_t)rtts[(random >> 45) % RCD_ARRAY_COUNT(rtts)];
		ack(bytes, bytes, rtts[(random >> 40) % RCD_ARRAY_COUNT(rtts)], now_ns);
		if (random >> 61 == 0)
			ops->on_loss(&cc, random >> 60 & 1, now_ns);
		if (random >> 61 == 1)
			ops->on_cnp(&cc, now_ns);
		window = ops->window(&cc);
		CU_ASSERT_TRUE(window >= 4178 / 16 && window <= UINT32_C(1) << 26);
		CU_ASSERT_EQUAL(ops->rate(&cc) == 0, ops->send_at(&cc, 4178, now_ns) == now_ns);
		CU_ASSERT_TRUE(ops->send_at(&cc, 4178, now_ns) - now_ns <= NS(500));
	}
}

static void
dcqcn_falls_and_rises(void)
{
	static const uint64_t gaps[] = { 213, 182, 170, 165, 162 };

	begin("dcqcn,timer=55,step=40,leap=400", KBYTE);
	CU_ASSERT_EQUAL(ops->send_at(&cc, KBYTE, NS(10)), NS(10));
	/* 100 Gb/s, halved as long as the estimate is 1: 50, 25. One soon after counts for none. */
	ops->on_cnp(&cc, NS(30));
	ops->on_cnp(&cc, NS(54));
	CU_ASSERT_EQUAL(gap(NS(55)), 160);
	ops->on_cnp(&cc, NS(60));
	CU_ASSERT_EQUAL(gap(NS(60)), 320);
	/* Half way to 50 each time: 37.5, 43.75, 46.875, 48.4375; then half way to 50.04. */
	for (uint64_t i = 0; i < RCD_ARRAY_COUNT(gaps); i++)
		CU_ASSERT_EQUAL(gap(NS(115 + 55 * i)), gaps[i]);
	/* The estimate fell by one in 256 five times: 49.23875 * (1 - 0.98062 / 2) is 25.0964. */
	ops->on_loss(&cc, false, NS(340));
	CU_ASSERT_EQUAL(gap(NS(340)), 318);
	/* Long after nothing holds it back. */
	ops->send_at(&cc, KBYTE, NS(30000));
	for (uint64_t i = 2; i < 40; i++)
		ops->send_at(&cc, KBYTE, NS(28160) * i);
	CU_ASSERT_EQUAL(ops->send_at(&cc, KBYTE, NS(2000000)), NS(2000000));
	/* Nor does a loss without a notification, but many do. */
	ops->on_loss(&cc, false, NS(2000001));
	CU_ASSERT_EQUAL(ops->send_at(&cc, KBYTE, NS(2000001)), NS(2000001));
	ops->on_loss(&cc, true, NS(2000002));
	CU_ASSERT_TRUE(gap(NS(2000002)) > 80);
}

/* A window first, doubled; then a quarter of its rate, of which the notification takes a half. */
static void
dcqcn_starts(void)
{
	begin("dcqcn,start=16,timer=55", KBYTE);
	CU_ASSERT_EQUAL(ops->window(&cc), 16384);
	ack(16384, 16384, NS(20), NS(20));
	CU_ASSERT_EQUAL(ops->window(&cc), 32768);
	ack(KBYTE, KBYTE, 0, NS(21));
	CU_ASSERT_EQUAL(ops->window(&cc), 32768);
	CU_ASSERT_EQUAL(ops->send_at(&cc, KBYTE, NS(22)), NS(22));
	/* 32 KiB in 20 us are 13.1072 Gb/s, of which 1.6384 are left. */
	ops->on_cnp(&cc, NS(30));
	CU_ASSERT_EQUAL(ops->window(&cc), RCD_CC_NO_WINDOW);
	CU_ASSERT_EQUAL(gap(NS(30)), 4882);
	/* Who lost all of it takes the way for 100 us: 16 KiB are 1.31072 Gb/s. */
	begin("dcqcn,start=16", KBYTE);
	ops->on_loss(&cc, true, NS(1000));
	CU_ASSERT_EQUAL(ops->window(&cc), RCD_CC_NO_WINDOW);
	CU_ASSERT_EQUAL(gap(NS(1000)), 48828);
	/* One that is lost is none of it, and a window of all there can be is none. */
	begin("dcqcn,start=2048", KBYTE);
	ops->on_loss(&cc, false, NS(1000));
	CU_ASSERT_EQUAL(ops->window(&cc), UINT32_C(1) << 21);
	ack(1 << 20, 1 << 20, NS(20), NS(20));
	CU_ASSERT_EQUAL(ops->window(&cc), RCD_CC_NO_WINDOW);
	/* However long it took: the floor. */
	begin("dcqcn,start=1", KBYTE);
	ack(0, 0, UINT32_MAX, NS(5000000));
	ops->on_loss(&cc, true, NS(5000001));
	CU_ASSERT_EQUAL(gap(NS(5000001)), 80000);
	/* Responses have the rate of the port to begin with. */
	begin("dcqcn", KBYTE);
	ops->on_cnp(&cc, NS(30));
	CU_ASSERT_EQUAL(gap(NS(30)), 160);
}

/* A loss that was none: the rate is what it was, and so is a window to begin with. */
static void
dcqcn_undoes(void)
{
	struct rcd_cc before, older;

	begin("dcqcn", KBYTE);
	older = cc;
	ops->on_cnp(&cc, NS(30));
	before = cc;
	ops->on_loss(&cc, true, NS(1000));
	ops->on_loss(&cc, true, NS(1100));
	CU_ASSERT_TRUE(gap(NS(1101)) > 48000);
	CU_ASSERT_EQUAL(ops->window(&cc), RCD_CC_NO_WINDOW);
	ops->undo(&cc, &before);
	CU_ASSERT_EQUAL(gap(NS(1102)), 160);
	CU_ASSERT_EQUAL(ops->window(&cc), 16384);
	/* Nor was there a cut just now; the estimate fell by one in 256 eight times. */
	ops->on_cnp(&cc, NS(1103));
	CU_ASSERT_EQUAL(gap(NS(1103)), 310);
	/* What it has come to since stays. */
	before = cc;
	cc = older;
	ops->undo(&cc, &before);
	CU_ASSERT_EQUAL(ops->send_at(&cc, KBYTE, NS(1104)), NS(1104));
}

/* So many steps by bytes. */
static void
step_bytes(uint32_t steps)
{
	for (uint32_t i = 0; i < steps; i++)
		ops->send_at(&cc, 4096, NS(61));
}

static void
dcqcn_counts_bytes(void)
{
	begin("dcqcn,timer=55,bytes=4,leap=1000,step=100", KBYTE);
	ops->on_cnp(&cc, NS(30));
	ops->on_cnp(&cc, NS(60));
	/* From 25 half way to 50 Gb/s four times, then to 50.1 and 50.2. */
	step_bytes(4);
	CU_ASSERT_EQUAL(gap(NS(61)), 165);
	step_bytes(2);
	CU_ASSERT_EQUAL(gap(NS(61)), 160);
	/* Time adds five to 50.7, which makes 50.58857, and with its sixth 1 at once: 51.14429. */
	CU_ASSERT_EQUAL(gap(NS(60 + 5 * 55)), 158);
	CU_ASSERT_EQUAL(gap(NS(60 + 6 * 55)), 156);
	/* Of a slow port the floor. */
	begin("dcqcn,line=1000", KBYTE);
	for (uint64_t i = 1; i < 40; i++)
		ops->on_cnp(&cc, NS(30 * i));
	CU_ASSERT_EQUAL(gap(NS(1200)), 80000);
}

/* Down to the floor and no further, and time moves it up again; a pace is no more than that. */
static void
dcqcn_told_anything(void)
{
	uint64_t now_ns = 1, random = 1;

	begin("dcqcn,floor=200,shift=1,timer=1", KBYTE);
	for (uint64_t i = 0; i < 100000; i++) {
		ops->on_cnp(&cc, now_ns);
		now_ns += 100;
	}
	CU_ASSERT_TRUE(gap(now_ns) <= 40000);
	for (uint32_t i = 0; i < 200000; i++) {
		uint64_t at;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		now_ns += random >> 60 == 0 ? UINT64_C(1) << (random >> 50 & 0x2f) : 0;
		if (random >> 61 == 0)
			ops->on_cnp(&cc, now_ns);
		ack((uint32_t)random, (uint32_t)random, (uint32_t)random, now_ns);
		at = ops->send_at(&cc, KBYTE, now_ns);
		if (at > now_ns)
			now_ns = at;
		CU_ASSERT_TRUE(at <= now_ns);
		CU_ASSERT_TRUE(gap(now_ns) <= 40000);
		now_ns += 80000;
	}
}

/* A timer that is late by a tick costs nothing of the rate; one that is later does. */
static void
pace_makes_up(void)
{
	uint64_t pace_ns = 0, now_ns = NS(1000), bytes = 0;

	/* Whenever it may, looked at every 16 us: 40 Gb/s for 10 ms are 50 MB. */
	for (; now_ns < NS(11000); now_ns += 16384)
		while (pace_ns <= now_ns) {
			rcd_cc_pace(&pace_ns, 1000, 40000000, now_ns);
			bytes += 1000;
		}
	CU_ASSERT_TRUE(bytes >= 49900000 && bytes <= 50300000);
	/* A second of silence is no reason to send for a second at once. */
	now_ns += UINT64_C(1000000000);
	bytes = 0;
	while (pace_ns <= now_ns) {
		rcd_cc_pace(&pace_ns, 1000, 40000000, now_ns);
		bytes += 1000;
	}
	CU_ASSERT_TRUE(bytes <= 165000);
}

static void
classes(void)
{
	static const char *const bad[] = { "64:swift", "4294967322:swift", "26:bbr",
		"26:", ":swift", "26", "26:swiftswiftswiftswift", "26:swift,line=5", "26:swift,",
		"26:swift,26:none", "-1:swift", "none", "," };
	const char *const good = "26:dcqcn, 46:none,0:swift,63:swift";
	const struct rcd_cc_ops *found;

	for (uint32_t dscp = 0; dscp < 64; dscp++) {
		found = NULL;
		CU_ASSERT_PTR_NULL(rcd_cc_of_class(good, (uint8_t)dscp, &found));
		CU_ASSERT_PTR_EQUAL(found,
			dscp == 26                        ? &rcd_cc_dcqcn
				: dscp == 46              ? &rcd_cc_none
				: dscp == 0 || dscp == 63 ? &rcd_cc_swift
							  : NULL);
	}
	CU_ASSERT_PTR_NULL(rcd_cc_of_class("", 0, NULL));
	for (size_t i = 0; i < RCD_ARRAY_COUNT(bad); i++)
		CU_ASSERT_PTR_NOT_NULL(rcd_cc_of_class(bad[i], 26, NULL));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "names and parameters", names_and_parameters },
		{ "algorithms of traffic classes", classes },
		{ "swift: the window grows and shrinks", swift_grows_and_shrinks },
		{ "swift: losses of a queue, and others", swift_tells_losses_apart },
		{ "swift: too fast to begin with", swift_begins_too_fast },
		{ "swift: a loss that was none", swift_undoes },
		{ "swift: the target is wider for a small window", swift_target_is_wider_for_few },
		{ "swift: the target is wider for absences", swift_target_is_wider_for_absences },
		{ "swift: a window has an end", swift_window_has_an_end },
		{ "swift: a window below a packet", swift_window_below_a_packet },
		{ "swift: told anything", swift_told_anything },
		{ "dcqcn: begins with a window", dcqcn_starts },
		{ "dcqcn: the rate falls and rises", dcqcn_falls_and_rises },
		{ "dcqcn: a loss that was none", dcqcn_undoes },
		{ "dcqcn: steps by bytes", dcqcn_counts_bytes },
		{ "dcqcn: told anything", dcqcn_told_anything },
		{ "a pace makes up for a late timer", pace_makes_up },
	};

	return rcd_tap_run("cc", tests, RCD_ARRAY_COUNT(tests));
}
