/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what a pipeline pays for an engine, by each of the three ways (doc/nfv.md): while nothing
 * that it carries is RoCE, cycles a packet above its own; and for a packet of RoCE, until the
 * engine has it.
 *
 * Method: packets of UDP, 64 bytes, go round by a port of rings: received in bursts of 32 and sent
 * again, as testpmd's io mode does, or routed in between (LPM, MACs, TTL, checksum), as l3fwd does.
 * Each loop without the engine, with rcd_inline_rx(), and with a whole round of it: poll, and a
 * look at what is to be sent. The candidates take turns in short rounds, so that noise from the
 * machine meets all of them; medians over the rounds. Then the same in graphs
 * (bench_nfv_graph.c), and RoCE handed over within the program or by a memif (bench_nfv_roce.c).
 * Prints a table, judges nothing.
 */
#include "bench_nfv.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_lpm.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_clock.h"
#include "rcd_dev_conf.h"
#include "rcd_engine.h"
#include "rcd_inline.h"
#include "rcd_poll.h"

#define PACKETS      512
#define MEMORY_WORDS 8

static void
route(struct pipeline *pipeline, struct rte_mbuf **mbufs, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		struct rte_ether_hdr *eth = rte_pktmbuf_mtod(mbufs[i], struct rte_ether_hdr *);
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
		uint32_t next = 0;

		if (i + 4 < count)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 4], void *));
		rte_lpm_lookup(pipeline->lpm, rte_be_to_cpu_32(ip->dst_addr), &next);
		eth->src_addr = eth->dst_addr;
		eth->dst_addr = pipeline->nexts[next % NEXTS];
		ip->time_to_live--;
		ip->hdr_checksum++;
	}
}

static uint64_t
run(struct pipeline *pipeline, bool routed, bool fed, bool polled)
{
	struct rte_mbuf *mbufs[BURST], *more[BURST];
	uint64_t begin = rte_rdtsc();

	for (int i = 0; i < REPEATS; i++) {
		uint16_t count = rte_eth_rx_burst(pipeline->port, 0, mbufs, BURST);

		if (fed)
			count = rcd_inline_rx(pipeline->dev, pipeline->lcore, mbufs, count);
		if (routed)
			route(pipeline, mbufs, count);
		if (polled) {
			rcd_lcore_poll(pipeline->lcore, rcd_clock_ns(), BURST);
			rte_pktmbuf_free_bulk(
				more, rcd_inline_tx(pipeline->dev, pipeline->lcore, more, BURST));
		}
		rte_eth_tx_burst(pipeline->port, 0, mbufs, count);
	}
	return rte_rdtsc() - begin;
}

static int
bench_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

double
bench_nfv_median(uint64_t cycles[ROUNDS])
{
	qsort(cycles, ROUNDS, sizeof(cycles[0]), bench_compare);
	return (double)cycles[ROUNDS / 2];
}

void
bench_nfv_print(const char *name, double each, double own)
{
	printf("%-34s %16.1f %16.1f\n", name, each, each - own);
}

static void
measure(struct pipeline *pipeline)
{
	static const struct {
		const char *name;
		bool routed, fed, polled;
	} loops[] = { { "io", false, false, false }, { "io, fed", false, true, false },
		{ "io, fed and polled", false, true, true }, { "routing", true, false, false },
		{ "routing, fed", true, true, false },
		{ "routing, fed and polled", true, true, true } };
	static uint64_t cycles[RTE_DIM(loops)][ROUNDS];
	double own = 0;

	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < RTE_DIM(loops); i++)
			cycles[i][round] =
				run(pipeline, loops[i].routed, loops[i].fed, loops[i].polled);
	printf("%-34s %16s %16s\n", "loop", "cycles a packet", "above its own");
	for (size_t i = 0; i < RTE_DIM(loops); i++) {
		double each = bench_nfv_median(cycles[i]) / (REPEATS * BURST);

		own = loops[i].fed ? own : each;
		bench_nfv_print(loops[i].name, each, own);
	}
}

static void
fill(struct pipeline *pipeline)
{
	struct rte_mbuf *mbuf;

	for (uint32_t i = 0; i < PACKETS; i++) {
		struct rte_ether_hdr *eth;
		struct rte_ipv4_hdr *ip;
		struct rte_udp_hdr *udp;

		mbuf = rte_pktmbuf_alloc(pipeline->pool);
		mbuf->data_len = 60;
		mbuf->pkt_len = 60;
		eth = rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *);
		memset(eth, 0, 60);
		eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
		ip = (struct rte_ipv4_hdr *)(eth + 1);
		ip->version_ihl = RTE_IPV4_VHL_DEF;
		ip->next_proto_id = IPPROTO_UDP;
		ip->dst_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, i % NEXTS, i));
		udp = (struct rte_udp_hdr *)(ip + 1);
		udp->dst_port = rte_cpu_to_be_16((uint16_t)(1024 + i));
		rte_eth_tx_burst(pipeline->port, 0, &mbuf, 1);
	}
}

static int
make_port(struct pipeline *pipeline)
{
	struct rte_eth_conf conf = { .rxmode.mq_mode = RTE_ETH_MQ_RX_NONE };
	struct rte_ring *ring = rte_ring_create(
		"pipeline", 2 * PACKETS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	/* A queue to send by for each graph, too. */
	struct rte_ring *const rings[] = { ring, ring };
	int port = ring != NULL ? rte_eth_from_rings("round", rings, 1, rings, 2, 0) : -1;

	if (port < 0)
		return -1;
	pipeline->port = (uint16_t)port;
	if (rte_eth_dev_configure(pipeline->port, 1, 2, &conf) != 0 ||
		rte_eth_rx_queue_setup(pipeline->port, 0, 512, 0, NULL, pipeline->pool) != 0 ||
		rte_eth_tx_queue_setup(pipeline->port, 0, 512, 0, NULL) != 0 ||
		rte_eth_tx_queue_setup(pipeline->port, 1, 512, 0, NULL) != 0)
		return -1;
	return rte_eth_dev_start(pipeline->port);
}

static int
make_routes(struct pipeline *pipeline)
{
	struct rte_lpm_config conf = { .max_rules = 64, .number_tbl8s = 64 };

	pipeline->lpm = rte_lpm_create("routes", SOCKET_ID_ANY, &conf);
	for (uint32_t i = 0; pipeline->lpm != NULL && i < NEXTS; i++) {
		pipeline->nexts[i].addr_bytes[5] = (uint8_t)i;
		if (rte_lpm_add(pipeline->lpm, RTE_IPV4(10, 0, i, 0), 24, i) != 0)
			return -1;
	}
	return pipeline->lpm != NULL ? 0 : -1;
}

static int
make_engine(struct pipeline *pipeline)
{
	struct rcd_dev_conf dev = { .name = "fed", .mtu = 1500 };
	struct rcd_engine_conf conf;
	char error[256] = "";

	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	pipeline->engine = rcd_engine_create(&conf, error, sizeof(error));
	if (pipeline->engine != NULL &&
		rcd_dev_conf_set(&dev, "address", "10.1.0.1/24", error, sizeof(error)) == 0 &&
		rcd_dev_conf_set(&dev, "mac", BENCH_NFV_MAC, error, sizeof(error)) == 0)
		pipeline->dev = rcd_inline_create(pipeline->engine, &dev, error, sizeof(error));
	if (pipeline->dev == NULL) {
		fprintf(stderr, "bench_nfv: %s\n", error);
		return -1;
	}
	pipeline->lcore = rcd_engine_lcore(pipeline->engine, 0);
	return 0;
}

/* @param memory  EAL's options for it, as --no-huge -m 512 */
static int
begin_eal(int count, char **memory)
{
	static char args[][80] = { "bench_nfv", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=1", "-l", "0", "--vdev",
		"net_memif0,role=server,bsize=8192,rsize=8,socket=rcdnfv", "--vdev",
		"net_memif1,role=client,bsize=8192,rsize=8,socket=rcdnfv" };
	char *argv[RTE_DIM(args) + MEMORY_WORDS];

	if (count > MEMORY_WORDS)
		return -1;
	for (size_t i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	memcpy(argv + RTE_DIM(args), memory, (size_t)count * sizeof(*argv));
	return rte_eal_init((int)RTE_DIM(args) + count, argv);
}

int
main(int argc, char **argv)
{
	struct pipeline pipeline = { .port = 0 };

	if (begin_eal(argc - 1, argv + 1) < 0)
		return 1;
	pipeline.pool = rte_pktmbuf_pool_create(
		"packets", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pipeline.pool == NULL || make_port(&pipeline) != 0 || make_routes(&pipeline) != 0 ||
		make_engine(&pipeline) != 0)
		return 1;
	fill(&pipeline);
	measure(&pipeline);
	if (bench_nfv_graph(&pipeline) != 0 || bench_nfv_roce(&pipeline) != 0)
		fprintf(stderr, "bench_nfv: not all of it could be made\n");
	rcd_inline_destroy(pipeline.dev);
	rcd_engine_destroy(pipeline.engine);
	return 0;
}
