/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: figures of the simulated network can be believed. Method: ports and switches by hand, where
 * what must come out can be counted; and each scenario, made short, for being the same when it is
 * repeated, for the bytes that arrive, and for a place of every frame at all times.
 */
#include "net_scenario.h"
#include "rcd_tap.h"

#define SEEDS 16 /**< of the incast that swift is to manage */

enum {
	FRAME_LEN = 976, /* with what a frame takes on the wire 1000 bytes, 80 ns at 100 Gb/s */
	FRAME_NS = 80,
	DELAY_NS = 1000,
};

/* A port under test, and who takes what it sends. */
static struct {
	struct net net;
	struct net_switch sw;
	struct net_port port;
	struct net_trace trace;
	uint64_t came, last_ns, marked, out_of_order;
	uint32_t last;
} lab;

/* Byte 0 and 1 tell frames apart; the TOS byte is that of IPv4. */
static struct net_frame *
lab_frame(uint32_t number, uint8_t ecn)
{
	struct net_frame *frame = net_frame_get(&lab.net);

	memset(frame->bytes, 0, FRAME_LEN);
	frame->len = FRAME_LEN;
	frame->bytes[0] = (uint8_t)number;
	frame->bytes[1] = (uint8_t)(number >> 8);
	frame->bytes[RCD_ETH_LEN + 1] = ecn;
	return frame;
}

static void
lab_take(void *to, struct net_frame *frame)
{
	uint32_t number = frame->bytes[0] + 256u * frame->bytes[1];

	(void)to;
	lab.out_of_order += number < lab.last;
	lab.last = number;
	lab.came++;
	lab.last_ns = lab.net.now_ns;
	lab.marked += (frame->bytes[RCD_ETH_LEN + 1] & 3) == 3;
	net_deliver(&lab.net, frame);
}

static void
lab_open(const struct net_link *link, struct net_buffer buffer, struct net_ecn ecn)
{
	memset(&lab, 0, sizeof(lab));
	net_init(&lab.net, 5);
	lab.sw = (struct net_switch){ .net = &lab.net, .buffer = buffer, .ecn = ecn };
	net_port_init(&lab.port, &lab.net, &lab.sw, link);
	lab.port.arrive = lab_take;
	net_port_trace(&lab.port, &lab.trace);
}

static void
lab_send(uint32_t count, uint8_t ecn)
{
	for (uint32_t i = 0; i < count; i++)
		net_port_send(&lab.port, lab_frame(i, ecn));
}

static void
lab_run(void)
{
	while (net_step(&lab.net, UINT64_MAX))
		;
}

static void
lab_close(void)
{
	CU_ASSERT(lab.sw.used_bytes == 0 && lab.port.queue.frames == 0 && lab.port.on_wire == 0);
	net_queue_clear(&lab.net, &lab.port.queue);
	net_fini(&lab.net);
	free(lab.trace.series.values);
}

static const struct net_link plain = { .gbps = 100, .delay_ns = DELAY_NS };
static const struct net_buffer large = { .port_bytes = 1 << 24 };

/* One after the other at the speed of the link, the delay once; and the queue as long as it was. */
static void
speed_and_delay(void)
{
	lab_open(&plain, large, (struct net_ecn){ 0 });
	lab_send(100, 0);
	CU_ASSERT_EQUAL(lab.port.queue.bytes, 100 * FRAME_LEN);
	lab_run();
	CU_ASSERT_EQUAL(lab.came, 100);
	CU_ASSERT_EQUAL(lab.out_of_order, 0);
	CU_ASSERT_EQUAL(lab.last_ns, 1 + 100 * FRAME_NS + DELAY_NS);
	CU_ASSERT_EQUAL(lab.trace.most_bytes, 100 * FRAME_LEN);
	/* The delay of the last one belongs to the time as well, with nothing in the queue. */
	CU_ASSERT_EQUAL(
		net_port_traced(&lab.port, 1.0), 100 * FRAME_LEN / NET_BIN_BYTES * NET_BIN_BYTES);
	lab_close();
}

/* Parts of a nanosecond add up: at 96 Gb/s three frames take 250 ns. */
static void
speed_in_parts(void)
{
	struct net_link link = plain;

	link.gbps = 96;
	lab_open(&link, large, (struct net_ecn){ 0 });
	lab_send(99, 0);
	lab_run();
	/* But for parts of a picosecond. */
	CU_ASSERT(lab.last_ns >= 33 * 250 + DELAY_NS && lab.last_ns <= 1 + 33 * 250 + DELAY_NS);
	lab_close();
}

/* A port without room drops what comes, says so, and has room again when it has sent. */
static void
full_port(void)
{
	lab_open(
		&plain, (struct net_buffer){ .port_bytes = 10 * FRAME_LEN }, (struct net_ecn){ 0 });
	lab.net.late_ns = 500;
	lab_send(25, 0);
	CU_ASSERT_EQUAL(lab.net.dropped[NET_FULL], 15);
	CU_ASSERT_EQUAL(lab.net.late, 0);
	lab_run();
	CU_ASSERT_EQUAL(lab.came, 10);
	lab_send(11, 0);
	CU_ASSERT_EQUAL(lab.net.dropped[NET_FULL], 16);
	CU_ASSERT_EQUAL(lab.net.late, 1);
	lab_run();
	CU_ASSERT_EQUAL(lab.came, 20);
	lab_close();
}

/* With alpha 1 one port alone has half of a shared buffer, beside another as long a third. */
static void
shared_buffer(void)
{
	struct net_buffer shared = { .shared_bytes = 60 * FRAME_LEN, .alpha = 1 };
	static struct net_port other;

	lab_open(&plain, shared, (struct net_ecn){ 0 });
	net_port_init(&other, &lab.net, &lab.sw, &plain);
	other.arrive = lab_take;
	lab_send(100, 0);
	CU_ASSERT(lab.port.queue.frames >= 30 && lab.port.queue.frames <= 31);
	for (uint32_t i = 0; i < 100; i++)
		net_port_send(&other, lab_frame(i, 0));
	CU_ASSERT(other.queue.frames >= 15 && other.queue.frames <= 16);
	CU_ASSERT_EQUAL(lab.sw.used_bytes, lab.port.queue.bytes + other.queue.bytes);
	lab_run();
	CU_ASSERT_EQUAL(lab.came + lab.net.dropped[NET_FULL], 200);
	lab_close();
}

/* A step marks all that finds more before it; only of who takes marks. */
static void
step_marks(void)
{
	struct net_ecn step = { 20 * FRAME_LEN, 20 * FRAME_LEN, 1 };

	lab_open(&plain, large, step);
	lab_send(50, 2);
	lab_run();
	CU_ASSERT_EQUAL(lab.came, 50);
	CU_ASSERT_EQUAL(lab.marked, 29);
	CU_ASSERT_EQUAL(lab.net.marked, 29);
	lab_send(50, 0);
	lab_run();
	CU_ASSERT_EQUAL(lab.marked, 29);
	lab_close();
}

/* A slope marks as many as its probabilities say, within five standard deviations. */
static void
slope_marks(void)
{
	struct net_ecn slope = { 1000 * FRAME_LEN, 3000 * FRAME_LEN, 0.5 };

	lab_open(&plain, large, slope);
	lab_send(3001, 1);
	/* On average a quarter of 2000. */
	CU_ASSERT(lab.net.marked > 400 && lab.net.marked < 600);
	lab_send(100, 1);
	CU_ASSERT(lab.net.marked > 500 && lab.net.marked < 700);
	lab_run();
	CU_ASSERT_EQUAL(lab.marked, lab.net.marked);
	lab_close();
}

/* Losses and late frames are as frequent as asked for; the late ones are overtaken. */
static void
loss_and_order(void)
{
	struct net_link link = plain;

	link.loss = 0.1;
	lab_open(&link, large, (struct net_ecn){ 0 });
	lab_send(5000, 0);
	lab_run();
	CU_ASSERT(lab.net.dropped[NET_LOST] > 390 && lab.net.dropped[NET_LOST] < 610);
	CU_ASSERT_EQUAL(lab.came + lab.net.dropped[NET_LOST], 5000);
	CU_ASSERT_EQUAL(lab.out_of_order, 0);
	lab_close();
	link.loss = 0;
	link.reorder = 0.1;
	link.reorder_ns = 100 * FRAME_NS;
	lab_open(&link, large, (struct net_ecn){ 0 });
	lab_send(5000, 0);
	lab_run();
	CU_ASSERT_EQUAL(lab.came, 5000);
	CU_ASSERT(lab.out_of_order > 100 && lab.out_of_order < 1000);
	lab_close();
}

/* A link that goes down loses what waits, what is on it and what comes; up again it carries. */
static void
down_and_up(void)
{
	lab_open(&plain, large, (struct net_ecn){ 0 });
	lab_send(20, 0);
	/* Five have left, the first of them is about to arrive. */
	while (net_step(&lab.net, 1 + 5 * FRAME_NS))
		;
	CU_ASSERT_EQUAL(lab.port.on_wire, 5);
	net_port_set_down(&lab.port, true);
	CU_ASSERT_EQUAL(lab.net.dropped[NET_DOWN], 15);
	CU_ASSERT_EQUAL(lab.sw.used_bytes, 0);
	net_port_send(&lab.port, lab_frame(0, 0));
	lab_run();
	CU_ASSERT_EQUAL(lab.net.dropped[NET_DOWN], 21);
	CU_ASSERT_EQUAL(lab.came, 0);
	net_port_set_down(&lab.port, false);
	lab_send(3, 0);
	lab_run();
	CU_ASSERT_EQUAL(lab.came, 3);
	lab_close();
}

/* A scenario, shorter: what it shows takes no more. */
static void
shorten(struct net_options *options)
{
	if (options->senders > 8)
		options->senders = 8;
	if (options->beside > 4)
		options->beside = 4;
	if (options->down_ns > 0) {
		options->down_ns = 200000;
		options->up_ns = 600000;
	}
	options->flow.messages = options->flow.size > 65536 ? 4
		: options->flow.size > 2048                 ? 200
							    : 40;
}

static void
check(const struct net_options *options, struct net_result *result)
{
	static struct net_run run;

	net_scenario_run(&run, options);
	*result = run.result;
	if (!result->ended || !result->counted || result->wrong > 0)
		printf("# %s: ended %d, counted %d, wrong %lu\n", options->name, result->ended,
			result->counted, (unsigned long)result->wrong);
	CU_ASSERT(result->ended);
	CU_ASSERT(result->counted);
	CU_ASSERT_EQUAL(result->wrong, 0);
	CU_ASSERT(result->gbps > 0 || result->failed > 0);
	net_scenario_fini(&run);
}

/* Each comes to its end, the same one again with the same seed, another with another. */
static void
scenarios(void)
{
	struct net_options options;
	struct net_result first, again, other;

	for (uint32_t i = 0; net_scenario_get(i, &options); i++) {
		shorten(&options);
		check(&options, &first);
		check(&options, &again);
		CU_ASSERT_EQUAL(first.digest, again.digest);
		CU_ASSERT_EQUAL(first.made, again.made);
		CU_ASSERT_EQUAL(first.queue_p99_bytes, again.queue_p99_bytes);
		options.seed++;
		check(&options, &other);
		CU_ASSERT(first.digest != other.digest);
	}
}

/* What each scenario is for does happen in it. */
static void
causes(void)
{
	struct net_options options;
	struct net_result result, alone;

	CU_ASSERT_FATAL(net_scenario_find("incast", &options));
	shorten(&options);
	check(&options, &result);
	CU_ASSERT(result.dropped[NET_FULL] > 0 && result.marked > 0);
	CU_ASSERT(result.queue_most_bytes > options.ecn.kmax_bytes);
	CU_ASSERT(result.queue_most_bytes <= options.buffer.port_bytes);
	CU_ASSERT_FATAL(net_scenario_find("lossy", &options));
	shorten(&options);
	options.middle.loss = 0.01;
	check(&options, &result);
	CU_ASSERT(result.dropped[NET_LOST] > 0 && result.again > 0);
	CU_ASSERT_FATAL(net_scenario_find("flap", &options));
	shorten(&options);
	check(&options, &result);
	CU_ASSERT(result.dropped[NET_DOWN] > 0 && result.again > 0);
	CU_ASSERT(result.ended_ns > options.up_ns);
	CU_ASSERT_FATAL(net_scenario_find("alone", &options));
	shorten(&options);
	check(&options, &alone);
	/* Two links of 5 us each way, and some packets' time. */
	CU_ASSERT(alone.p50_ns > 20000 && alone.p50_ns < 21000);
	options.receiver.run_ns = options.receiver.away_ns = 1000000;
	check(&options, &result);
	CU_ASSERT(result.ended_ns > alone.ended_ns + 500000);
	CU_ASSERT_FATAL(net_scenario_find("incast", &options));
	options.senders = 16;
	options.buffer.port_bytes = 1 << 26;
	options.flow.messages = 4;
	options.receiver.run_ns = 1000000;
	options.receiver.away_ns = 4000000;
	check(&options, &result);
	CU_ASSERT(result.dropped[NET_RING] > 0);
}

/* Who keeps nothing has all sent again behind a hole. */
static void
go_back_n(void)
{
	struct net_options options;
	struct net_result keeps, drops;

	CU_ASSERT_FATAL(net_scenario_find("lossy", &options));
	shorten(&options);
	options.middle.loss = 0.01;
	check(&options, &keeps);
	options.dropping = 1;
	check(&options, &drops);
	CU_ASSERT(drops.again > 5 * keeps.again);
	CU_ASSERT(drops.gbps < keeps.gbps);
	CU_ASSERT(drops.rxe_gbps > 0 && drops.own_gbps == 0);
	CU_ASSERT(keeps.rxe_gbps == 0 && keeps.own_gbps > 0);
}

/*
 * Holes are known, also by flows that never saw the network but through a full queue: they wait
 * less than those that are told of one hole after the other.
 */
static void
selective(void)
{
	struct net_options options;
	struct net_result off, on;

	CU_ASSERT_FATAL(net_scenario_find("trunk", &options));
	options.senders = 3;
	options.flow.messages = 8;
	check(&options, &off);
	options.host.sack = options.receiver.sack = true;
	check(&options, &on);
	CU_ASSERT(on.dropped[NET_FULL] > 0);
	CU_ASSERT(on.again < off.again);
	CU_ASSERT(on.gbps > off.gbps);
	CU_ASSERT(on.p99_ns < off.p99_ns);
	/* A host that keeps nothing does not take part. */
	options.dropping = options.senders;
	check(&options, &on);
	options.host.sack = options.receiver.sack = false;
	check(&options, &off);
	CU_ASSERT_EQUAL(on.digest, off.digest);
	/* Nothing is told of READs: what is missing of them is seen by who asked. */
	CU_ASSERT_FATAL(net_scenario_find("reads", &options));
	shorten(&options);
	check(&options, &off);
	CU_ASSERT(off.dropped[NET_FULL] > 0);
	options.host.sack = options.receiver.sack = true;
	check(&options, &on);
	CU_ASSERT_EQUAL(on.digest, off.digest);
}

/* Of links that lose one packet in a hundred, the holes that SACK tells are no flood. */
static void
holes_are_no_flood(void)
{
	struct net_options options;
	struct net_result result;

	CU_ASSERT_FATAL(net_scenario_find("lossy", &options));
	options.link.loss = 0.01;
	options.host.sack = options.receiver.sack = true;
	options.cc = &rcd_cc_dcqcn;
	check(&options, &result);
	CU_ASSERT(result.gbps > 89);
	options.cc = &rcd_cc_swift;
	check(&options, &result);
	CU_ASSERT(result.gbps > 89);
}

/* What is late and not lost costs no window: each cut is undone when both copies have come. */
static void
late_is_no_loss(void)
{
	struct net_options options;
	struct net_result free, result;

	CU_ASSERT_FATAL(net_scenario_find("reorder", &options));
	options.host.sack = options.receiver.sack = true;
	check(&options, &free);
	options.cc = &rcd_cc_swift;
	check(&options, &result);
	/* Some, for patience to grow; most of those that are late just come. */
	CU_ASSERT(result.again > 0 && result.again * 1000 < result.sent);
	CU_ASSERT(result.gbps >= 0.99 * free.gbps);
	CU_ASSERT(result.p99_ns <= free.p99_ns * 1.05);
	options.cc = &rcd_cc_dcqcn;
	check(&options, &result);
	CU_ASSERT(result.gbps >= 0.99 * free.gbps);
}

/* Who has no congestion control takes from those that have. */
static void
plain_senders(void)
{
	struct net_options options;
	struct net_result result;

	CU_ASSERT_FATAL(net_scenario_find("plain", &options));
	options.cc = rcd_cc_by_name("swift");
	CU_ASSERT_FATAL(options.cc != NULL);
	check(&options, &result);
	CU_ASSERT(result.own_gbps > 0);
	CU_ASSERT(result.rxe_gbps > result.own_gbps);
	options.plain = 0;
	check(&options, &result);
	CU_ASSERT(result.rxe_gbps == 0);
}

/* Without an algorithm no more is sent again than the port takes, and the rest gets through. */
static void
repairs_are_bounded(void)
{
	static const double least[] = { 50, 65 };
	struct net_options options;
	struct net_result result;

	CU_ASSERT_FATAL(net_scenario_find("beside", &options));
	options.flow.messages = 20;
	for (int sack = 0; sack < 2; sack++) {
		options.host.sack = options.receiver.sack = sack;
		check(&options, &result);
		CU_ASSERT(result.beside_gbps > least[sack]);
	}
}

/* What an incast of 32 and an idle network are to have of swift (doc/congestion.md). */
static void
swift_reaches(void)
{
	struct net_options options;
	struct net_result result, free;

	CU_ASSERT_FATAL(net_scenario_find("incast", &options));
	options.cc = &rcd_cc_swift;
	/* Who loses nothing of what all begin with is a matter of the seed; it is to win little. */
	for (uint32_t i = 0; i < 2 * SEEDS; i++) {
		options.host.sack = options.receiver.sack = i % 2;
		options.seed = 1 + i / 2;
		check(&options, &result);
		if (result.gbps < 90 || result.jain < 0.95)
			printf("# seed %u, SACK %u: %.1f Gb/s, fairness %.3f\n", 1 + i / 2, i % 2,
				result.gbps, result.jain);
		CU_ASSERT(result.gbps >= 90);
		CU_ASSERT(result.jain >= 0.95);
		CU_ASSERT_EQUAL(result.late, 0);
		CU_ASSERT(result.queue_p99_bytes < 2 * options.ecn.kmin_bytes);
	}
	CU_ASSERT_FATAL(net_scenario_find("pairs", &options));
	options.senders = 2;
	check(&options, &free);
	options.cc = &rcd_cc_swift;
	check(&options, &result);
	CU_ASSERT(result.gbps >= 0.98 * free.gbps);
	CU_ASSERT_EQUAL(result.again, 0);
}

/* A rate holds within two percent, for WRITEs and READs, and others have the rest of the link. */
static void
limited_senders(void)
{
	const double payload = 4096.0 / (4096 + 82);
	struct net_options options;
	struct net_result result;

	CU_ASSERT_FATAL(net_scenario_find("incast", &options));
	options.senders = 4;
	options.flow.rate_kbps = 10000000;
	for (uint32_t read = 0; read < 2; read++) {
		options.flow.read = read != 0;
		options.cc = rcd_cc_by_name("none");
		options.beside = 0;
		check(&options, &result);
		CU_ASSERT_DOUBLE_EQUAL(result.gbps, 40 * payload, 0.8);
		CU_ASSERT(result.jain > 0.999);
		CU_ASSERT_EQUAL(result.dropped[NET_FULL] + result.marked, 0);
	}
	options.flow.read = false;
	options.beside = 1;
	options.cc = rcd_cc_by_name("swift");
	check(&options, &result);
	CU_ASSERT_DOUBLE_EQUAL(result.own_gbps, 10 * payload, 0.2);
	CU_ASSERT(result.jain > 0.999);
	CU_ASSERT(result.beside_gbps > 40);
}

/* What can't be run is said to be so. */
static void
out_of_range(void)
{
	struct net_options options;

	CU_ASSERT_FALSE(net_scenario_find("nothing", &options));
	CU_ASSERT_FATAL(net_scenario_find("incast", &options));
	CU_ASSERT(net_options_valid(&options));
	options.senders = NET_HOSTS_MAX;
	CU_ASSERT_FALSE(net_options_valid(&options));
	options.senders = 1;
	options.beside = UINT32_MAX;
	CU_ASSERT_FALSE(net_options_valid(&options));
	options.beside = 0;
	options.flow.mtu = 4095;
	CU_ASSERT_FALSE(net_options_valid(&options));
	options.flow.mtu = 256;
	CU_ASSERT(net_options_valid(&options));
	options.flow.size = NET_SIZE_MAX + 1;
	CU_ASSERT_FALSE(net_options_valid(&options));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(speed_and_delay),
		RCD_TEST(speed_in_parts),
		RCD_TEST(full_port),
		RCD_TEST(shared_buffer),
		RCD_TEST(step_marks),
		RCD_TEST(slope_marks),
		RCD_TEST(loss_and_order),
		RCD_TEST(down_and_up),
		RCD_TEST(scenarios),
		RCD_TEST(causes),
		RCD_TEST(go_back_n),
		RCD_TEST(selective),
		RCD_TEST(holes_are_no_flood),
		RCD_TEST(late_is_no_loss),
		RCD_TEST(plain_senders),
		RCD_TEST(repairs_are_bounded),
		RCD_TEST(swift_reaches),
		RCD_TEST(limited_senders),
		RCD_TEST(out_of_range),
	};

	return rcd_tap_run("net", tests, RCD_ARRAY_COUNT(tests));
}
