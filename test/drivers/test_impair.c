/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: net_impair does what it is told, as often as it is told, counts it, repeats it for the same
 * seed, and loses no buffer. Method: it wraps a ring port that receives what it sends; packets are
 * numbered, so that each can be told what became of it.
 */
#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "begin.h"
#include "impair_args.h"
#include "rcd_pmd_impair.h"
#include "rcd_tap.h"

#define PACKETS 20000
#define BUFFERS 4095
#define BURST   16
#define QUEUES  2

/* Longer than anything here takes, on a machine that stalls. */
#define PATIENCE_S 60

static struct rte_mempool *pool;
static uint16_t port;

/* What came out: numbers in their order. */
static uint32_t out[2 * PACKETS];
static uint32_t out_count;
static uint32_t damaged; /* frames with a bit turned */
static uint32_t marked, bad_checksum;

static void
set(const char *args)
{
	char error[256] = "";

	if (rcd_pmd_impair_set(port, args, error, sizeof(error)) != 0)
		printf("# %s\n", error);
	rte_eth_xstats_reset(port);
	out_count = damaged = marked = bad_checksum = 0;
}

static uint64_t
counted(const char *name)
{
	uint64_t id, val = 0;

	CU_ASSERT_EQUAL(rte_eth_xstats_get_id_by_name(port, name, &id), 0);
	CU_ASSERT_EQUAL(rte_eth_xstats_get_by_id(port, &id, &val, 1), 1);
	return val;
}

/* A frame of IPv4 whose every byte follows from its number. */
static void
fill(uint8_t *frame, uint32_t number, uint8_t ecn)
{
	static const uint8_t head[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0 };
	struct rte_ipv4_hdr ip = { .version_ihl = 0x45,
		.type_of_service = ecn,
		.total_length = rte_cpu_to_be_16(86),
		.time_to_live = 64,
		.next_proto_id = 17,
		.src_addr = rte_cpu_to_be_32(0x0a000001),
		.dst_addr = rte_cpu_to_be_32(0x0a000002) };

	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(frame, head, sizeof(head));
	memcpy(frame + 14, &ip, sizeof(ip));
	for (int i = 34; i < 92; i++)
		frame[i] = (uint8_t)(number + (uint32_t)i);
	/* Twice: a bit of the one that is turned shows in the other. */
	memcpy(frame + 92, &number, 4);
	memcpy(frame + 96, &number, 4);
}

static void
look_at(struct rte_mbuf *mbuf, uint8_t ecn)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	uint8_t expected[100];
	uint32_t number, bits = 0;
	struct rte_ipv4_hdr ip;

	memcpy(&number, frame + 96, 4);
	memcpy(&ip, frame + 14, sizeof(ip));
	if (ecn != 0 && (ip.type_of_service & 3) == 3 && ecn != 3) {
		marked++;
		bad_checksum += rte_raw_cksum(&ip, sizeof(ip)) != 0xffff;
	} else {
		fill(expected, number, ecn);
		for (int i = 0; i < 100; i++)
			bits += (uint32_t)__builtin_popcount(frame[i] ^ expected[i]);
		damaged += bits != 0;
	}
	if (out_count < RTE_DIM(out))
		out[out_count++] = number;
	rte_pktmbuf_free(mbuf);
}

static void
receive(uint8_t ecn)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t got;

	for (uint16_t queue = 0; queue < QUEUES; queue++)
		while ((got = rte_eth_rx_burst(port, queue, mbufs, BURST)) > 0)
			for (uint16_t i = 0; i < got; i++)
				look_at(mbufs[i], ecn);
}

/* Send numbered packets and look at all that comes back. */
static void
pass(uint32_t count, uint8_t ecn)
{
	uint64_t end = rte_rdtsc() + PATIENCE_S * rte_get_tsc_hz();

	for (uint32_t number = 0; number < count;) {
		struct rte_mbuf *mbufs[BURST];
		uint16_t given = 0;

		for (int i = 0; i < BURST; i++) {
			mbufs[i] = rte_pktmbuf_alloc(pool);
			fill((uint8_t *)rte_pktmbuf_append(mbufs[i], 100), number++, ecn);
		}
		while (given < BURST) {
			given += rte_eth_tx_burst(port, 0, mbufs + given, BURST - given);
			receive(ecn);
		}
	}
	/* What was held back comes by its time. */
	while (rte_mempool_avail_count(pool) < BUFFERS && rte_rdtsc() < end)
		receive(ecn);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

/* Within five standard deviations of a binomial distribution; more is no chance. */
static bool
about(uint64_t hits, uint32_t count, double p)
{
	double mean = count * p, off = (double)hits - mean;

	return off * off <= 25 * mean * (1 - p) + 1;
}

static void
nothing_unless_told(void)
{
	set("");
	pass(PACKETS, 0);
	CU_ASSERT_EQUAL(out_count, PACKETS);
	for (uint32_t i = 0; i < out_count; i++)
		if (out[i] != i) {
			CU_FAIL("order");
			break;
		}
	CU_ASSERT_EQUAL(damaged, 0);
}

static void
drops(void)
{
	set("drop=1%,seed=5");
	pass(PACKETS, 0);
	CU_ASSERT(about(PACKETS - out_count, PACKETS, 0.01));
	CU_ASSERT_EQUAL(counted("tx_impair_drop"), PACKETS - out_count);
	CU_ASSERT_EQUAL(counted("rx_impair_drop"), 0);
	set("drop=1");
	pass(1600, 0);
	CU_ASSERT_EQUAL(out_count, 0);
}

static void
same_seed_same_fate(void)
{
	static uint32_t first[PACKETS];
	uint32_t count;

	set("drop=5%,seed=7");
	pass(PACKETS / 10, 0);
	count = out_count;
	memcpy(first, out, count * sizeof(out[0]));
	set("drop=5%,seed=7");
	pass(PACKETS / 10, 0);
	CU_ASSERT_EQUAL(out_count, count);
	CU_ASSERT(memcmp(first, out, count * sizeof(out[0])) == 0);
	set("drop=5%,seed=8");
	pass(PACKETS / 10, 0);
	CU_ASSERT(out_count != count || memcmp(first, out, count * sizeof(out[0])) != 0);
}

static void
duplicates(void)
{
	uint32_t twins = 0;

	set("duplicate=2%");
	pass(PACKETS, 0);
	for (uint32_t i = 1; i < out_count; i++)
		twins += out[i] == out[i - 1];
	CU_ASSERT_EQUAL(out_count, PACKETS + twins);
	CU_ASSERT_EQUAL(counted("tx_impair_duplicate"), twins);
	CU_ASSERT(about(twins, PACKETS, 0.02));
}

static void
reorders(void)
{
	uint32_t late = 0, highest = 0;

	set("reorder=1%,gap=4");
	pass(PACKETS, 0);
	CU_ASSERT_EQUAL(out_count, PACKETS);
	for (uint32_t i = 0; i < out_count; i++) {
		if (out[i] < highest) {
			late++;
			CU_ASSERT(highest - out[i] <= 4 + 4); /* others may be late too */
		} else {
			highest = out[i];
		}
	}
	CU_ASSERT(counted("tx_impair_reorder") - late <= 4);
	CU_ASSERT(about(late, PACKETS, 0.01));
}

static void
corrupts(void)
{
	set("corrupt=1%");
	pass(PACKETS, 0);
	CU_ASSERT_EQUAL(out_count, PACKETS);
	CU_ASSERT(about(damaged, PACKETS, 0.01));
	CU_ASSERT_EQUAL(counted("tx_impair_corrupt"), damaged);
}

static void
marks(void)
{
	set("ecn=10%");
	pass(PACKETS, 2); /* ECN-capable */
	CU_ASSERT(about(marked, PACKETS, 0.1));
	CU_ASSERT_EQUAL(counted("tx_impair_ecn"), marked);
	CU_ASSERT_EQUAL(bad_checksum, 0);
	CU_ASSERT_EQUAL(damaged, 0);
	set("ecn=1");
	pass(1600, 0); /* not: left alone */
	CU_ASSERT_EQUAL(counted("tx_impair_ecn"), 0);
	CU_ASSERT_EQUAL(damaged, 0);
}

static void
delays(void)
{
	uint64_t begin, took;

	set("delay=1,delay_us=5000");
	begin = rte_rdtsc();
	pass(16, 0);
	CU_ASSERT_EQUAL(out_count, 16);
	CU_ASSERT_EQUAL(counted("tx_impair_delay"), 16);
	set("delay=1,delay_us=5000");
	{
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

		fill((uint8_t *)rte_pktmbuf_append(mbuf, 100), 0, 0);
		begin = rte_rdtsc();
		CU_ASSERT_EQUAL(rte_eth_tx_burst(port, 0, &mbuf, 1), 1);
	}
	while (out_count == 0 && rte_rdtsc() - begin < PATIENCE_S * rte_get_tsc_hz())
		receive(0);
	took = (rte_rdtsc() - begin) * 1000000 / rte_get_tsc_hz();
	CU_ASSERT(took >= 5000);
	CU_ASSERT_EQUAL(out_count, 1);
}

static void
bursts_of_loss(void)
{
	uint32_t twins = 0;

	set("ge_p=2%,ge_r=25%,seed=3");
	pass(PACKETS, 0);
	CU_ASSERT_EQUAL(counted("tx_impair_burst_drop"), PACKETS - out_count);
	CU_ASSERT(counted("tx_impair_burst") > 0);
	CU_ASSERT_EQUAL(counted("tx_impair_drop"), 0);
	/* What was lost was lost together: far fewer gaps than packets. */
	for (uint32_t i = 1; i < out_count; i++)
		twins += out[i] != out[i - 1] + 1;
	CU_ASSERT(twins <= counted("tx_impair_burst"));
	CU_ASSERT(twins * 3 < PACKETS - out_count);
}

static void
delays_that_differ(void)
{
	uint32_t back = 0;
	uint64_t us;

	set("delay=1,delay_us=500,delay_dist=uniform,jitter_us=500,delay_min_us=100,seed=2");
	pass(PACKETS / 10, 0);
	CU_ASSERT_EQUAL(out_count, PACKETS / 10);
	CU_ASSERT_EQUAL(counted("tx_impair_delay"), PACKETS / 10);
	us = counted("tx_impair_delay_us") / (PACKETS / 10);
	CU_ASSERT(us > 450 && us < 550);
	/* Those with less pass those with more. */
	for (uint32_t i = 1; i < out_count; i++)
		back += out[i] < out[i - 1];
	CU_ASSERT(back > 0);
}

/* Of one burst, which comes in one moment whatever the machine does. */
static void
burst_of(uint16_t queue, uint16_t count, uint32_t len, uint8_t ecn)
{
	struct rte_mbuf *mbufs[BURST];

	for (uint16_t i = 0; i < count; i++) {
		mbufs[i] = rte_pktmbuf_alloc(pool);
		fill((uint8_t *)rte_pktmbuf_append(mbufs[i], (uint16_t)len), i, ecn);
	}
	CU_ASSERT_EQUAL(rte_eth_tx_burst(port, queue, mbufs, count), count);
}

/* What is sent comes back until there were so many. */
static void
receive_all(uint32_t count, uint8_t ecn)
{
	uint64_t end = rte_rdtsc() + PATIENCE_S * rte_get_tsc_hz();

	while (out_count < count && rte_rdtsc() < end)
		receive(ecn);
}

static void
bottleneck(void)
{
	uint64_t begin;

	set("rate=1000000,queue=1000,mark=500");
	begin = rte_rdtsc();
	burst_of(0, 16, 100, 2);
	receive_all(10, 2);
	/* Ten of a tenth of a millisecond each. */
	CU_ASSERT(rte_rdtsc() - begin >= rte_get_tsc_hz() / 1000);
	CU_ASSERT_EQUAL(out_count, 10);
	for (uint32_t i = 0; i < out_count; i++)
		CU_ASSERT_EQUAL(out[i], i);
	CU_ASSERT_EQUAL(marked, 5);
	CU_ASSERT_EQUAL(bad_checksum + damaged, 0);
	CU_ASSERT_EQUAL(counted("tx_impair_queue_packets"), 10);
	CU_ASSERT_EQUAL(counted("tx_impair_queue_drop"), 6);
	CU_ASSERT_EQUAL(counted("tx_impair_queue_mark"), 5);
	CU_ASSERT_EQUAL(counted("tx_impair_queue_peak_bytes"), 1000);
	CU_ASSERT(counted("tx_impair_queue_us") / 100 == 55);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
	/* What is not ECN-capable is not marked. */
	set("rate=1000000,queue=1000,mark=500");
	burst_of(0, 10, 100, 0);
	receive_all(10, 0);
	CU_ASSERT_EQUAL(out_count, 10);
	CU_ASSERT_EQUAL(counted("tx_impair_queue_mark") + damaged, 0);
}

static void
bottleneck_of_what_is_received(void)
{
	struct rte_eth_stats before, after;

	set("rate=1000000,queue=1000,side=rx");
	rte_eth_stats_get(port, &before);
	burst_of(0, 16, 100, 2);
	receive_all(10, 2);
	rte_eth_stats_get(port, &after);
	CU_ASSERT_EQUAL(out_count, 10);
	CU_ASSERT_EQUAL(counted("rx_impair_queue_drop"), 6);
	CU_ASSERT_EQUAL(counted("tx_impair_queue_packets"), 0);
	/* As if a NIC had lost them. */
	CU_ASSERT_EQUAL(after.imissed - before.imissed, 6);
}

/* A second and more for a packet: the second one finds the first still there, but for a stall. */
static void
queues_share_a_bottleneck(void)
{
	bool shared = false;

	for (int i = 0; i < 20 && !shared; i++) {
		set("rate=1000,queue_packets=1");
		burst_of(0, 1, 1400, 0);
		burst_of(1, 1, 1400, 0);
		shared = counted("tx_impair_queue_drop") == 1;
		CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS - (shared ? 1u : 2u));
		set("");
		receive_all(shared ? 1 : 2, 0);
	}
	CU_ASSERT(shared);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

/* It gives back what waits, when it is stopped and with new settings. */
static void
nothing_waits_for_ever(void)
{
	/* All of this takes longer than there is patience. */
	set("rate=1000,delay=1,delay_us=1000000");
	for (int i = 0; i < 4; i++)
		burst_of(0, 16, 1400, 0);
	set("");
	receive_all(64, 0);
	CU_ASSERT_EQUAL(out_count, 64);
	set("rate=1000,reorder=50%,gap=64,delay=1,delay_us=1000000");
	burst_of(0, 16, 1400, 0);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS - 16);
	CU_ASSERT_EQUAL(rte_eth_dev_stop(port), 0);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
	CU_ASSERT_EQUAL(rte_eth_dev_start(port), 0);
	/* And the bottleneck is empty then: there is room for all of these. */
	set("rate=1000,queue_packets=8");
	burst_of(0, 16, 100, 0);
	CU_ASSERT_EQUAL(counted("tx_impair_queue_drop"), 8);
	CU_ASSERT_EQUAL(rte_eth_dev_stop(port), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_start(port), 0);
	burst_of(0, 8, 100, 0);
	CU_ASSERT_EQUAL(counted("tx_impair_queue_drop"), 8);
	set("");
	receive_all(8, 0);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

/* What it keeps is bounded: who sends has to wait, and it all comes. */
static void
senders_wait(void)
{
	struct rte_mbuf *mbufs[BURST];
	uint32_t given = 0;
	uint16_t took;

	set("delay=1,delay_us=1000000");
	do {
		for (uint32_t i = 0; i < BURST; i++) {
			mbufs[i] = rte_pktmbuf_alloc(pool);
			fill((uint8_t *)rte_pktmbuf_append(mbufs[i], 100), given + i, 0);
		}
		took = rte_eth_tx_burst(port, 0, mbufs, BURST);
		rte_pktmbuf_free_bulk(mbufs + took, BURST - took);
		given += took;
	} while (took == BURST && given < BUFFERS - BURST);
	CU_ASSERT(given < BUFFERS - BURST);
	set("");
	receive_all(given, 0);
	CU_ASSERT_EQUAL(out_count, given);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

/* All that was held is due at once, when more comes in: neither takes the other's room. */
static void
what_is_due_leaves_room(void)
{
	uint64_t end;

	set("delay=1,delay_us=1000000,reorder=20%,gap=64,side=rx");
	for (uint16_t i = 0; i < 60; i++) {
		burst_of(0, BURST, 100, 0);
		receive(0);
	}
	for (uint16_t i = 0; i < 4; i++)
		burst_of(0, BURST, 100, 0);
	set("");
	end = rte_rdtsc() + PATIENCE_S * rte_get_tsc_hz();
	while (rte_mempool_avail_count(pool) < BUFFERS && rte_rdtsc() < end)
		receive(0);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static void
receiving_side(void)
{
	set("drop=10%,side=rx");
	pass(PACKETS, 0);
	CU_ASSERT(about(PACKETS - out_count, PACKETS, 0.1));
	CU_ASSERT_EQUAL(counted("rx_impair_drop"), PACKETS - out_count);
	CU_ASSERT_EQUAL(counted("tx_impair_drop"), 0);
	set("drop=10%,side=both");
	pass(PACKETS, 0);
	CU_ASSERT(about(PACKETS - out_count, PACKETS, 0.19));
}

static void
wrong_arguments(void)
{
	static const char *const wrong[] = { "drop", "drop=", "drop=x", "drop=1.01", "drop=-1",
		"drop=101%", "drop=nan", "gap=0", "gap=65", "gap=x", "delay_us=1000001",
		"side=left", "seed=-1", "ge_p=1%", "mark=5", "nothing=1", "=",
		",,=", "port=net_ring_other" };
	char error[256];

	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		error[0] = '\0';
		if (rcd_pmd_impair_set(port, wrong[i], error, sizeof(error)) != -EINVAL)
			printf("# taken: %s\n", wrong[i]);
		CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, wrong[i], error, sizeof(error)), -EINVAL);
		CU_ASSERT(error[0] != '\0');
	}
	CU_ASSERT_EQUAL(rcd_pmd_impair_set(77, "", error, sizeof(error)), -ENODEV);
	CU_ASSERT(rte_vdev_init("net_impair7", "") != 0);
	CU_ASSERT(rte_vdev_init("net_impair7", "port=nowhere") != 0);
	CU_ASSERT(rte_vdev_init("net_impair7", "port=net_ring_loop,drop=2") != 0);
	/* One owner only. */
	CU_ASSERT(rte_vdev_init("net_impair7", "port=net_ring_loop") != 0);
}

static void
comes_and_goes(void)
{
	uint16_t inner;

	CU_ASSERT_EQUAL(rte_eth_dev_stop(port), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_close(port), 0);
	CU_ASSERT_EQUAL(rte_vdev_uninit("net_impair0"), 0);
	/* The wrapped port went with it. */
	CU_ASSERT(rte_eth_dev_get_port_by_name("net_ring_loop", &inner) != 0);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static int
open_port(void)
{
	struct rte_ring *rings[QUEUES] = {
		rte_ring_create("loop0", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ),
		rte_ring_create("loop1", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ),
	};
	struct rte_eth_conf conf = { .rxmode.mtu = 1500 };

	pool = rte_pktmbuf_pool_create(
		"pool", BUFFERS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (rings[0] == NULL || rings[1] == NULL || pool == NULL ||
		rte_eth_from_rings(
			"loop", rings, QUEUES, rings, QUEUES, (unsigned int)SOCKET_ID_ANY) < 0 ||
		rte_vdev_init("net_impair0", "port=net_ring_loop,seed=1") != 0 ||
		rte_eth_dev_get_port_by_name("net_impair0", &port) != 0)
		return -1;
	if (rte_eth_dev_configure(port, QUEUES, QUEUES, &conf) != 0)
		return -1;
	for (uint16_t queue = 0; queue < QUEUES; queue++)
		if (rte_eth_rx_queue_setup(port, queue, 256, 0, NULL, pool) != 0 ||
			rte_eth_tx_queue_setup(port, queue, 256, 0, NULL) != 0)
			return -1;
	return rte_eth_dev_start(port);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(nothing_unless_told),
		RCD_TEST(drops),
		RCD_TEST(same_seed_same_fate),
		RCD_TEST(duplicates),
		RCD_TEST(reorders),
		RCD_TEST(corrupts),
		RCD_TEST(marks),
		RCD_TEST(delays),
		RCD_TEST(bursts_of_loss),
		RCD_TEST(delays_that_differ),
		RCD_TEST(bottleneck),
		RCD_TEST(bottleneck_of_what_is_received),
		RCD_TEST(queues_share_a_bottleneck),
		RCD_TEST(nothing_waits_for_ever),
		RCD_TEST(senders_wait),
		RCD_TEST(what_is_due_leaves_room),
		RCD_TEST(receiving_side),
		RCD_TEST(wrong_arguments),
		RCD_TEST(comes_and_goes),
	};

	if (begin_eal("impair") != 0 || open_port() != 0) {
		printf("Bail out! no port\n");
		return 1;
	}
	return rcd_tap_run("impair", tests, RTE_DIM(tests));
}
