/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What it takes of a pipeline to have a packet of RoCE at the engine: within the program it is
 * given; to a daemon it goes by a memif, and another one comes back. The engine's own work with it
 * is in neither: that is the same, on this core or on the daemon's.
 */
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench_nfv.h"
#include "rcd_clock.h"
#include "rcd_inline.h"
#include "rcd_poll.h"

#define ROCE_PORT  4791
#define DESCS      256
#define ROOM       8192
#define WAIT_TIMES 2000 /**< of a millisecond, for the memif's two ends to meet */

static const uint16_t lens[] = { 64, 1024, 4096 };

static struct rte_mbuf *
roce_make(struct rte_mempool *pool, uint16_t len)
{
	static const struct rte_ether_addr mac = { BENCH_NFV_BYTES };
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	struct rte_ether_hdr *eth;
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp;

	if (mbuf == NULL)
		return NULL;
	eth = (struct rte_ether_hdr *)(void *)rte_pktmbuf_append(mbuf, len);
	memset(eth, 0, len);
	eth->dst_addr = mac;
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	ip = (struct rte_ipv4_hdr *)(eth + 1);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->next_proto_id = IPPROTO_UDP;
	ip->total_length = rte_cpu_to_be_16((uint16_t)(len - sizeof(*eth)));
	ip->dst_addr = RTE_BE32(RTE_IPV4(10, 1, 0, 1));
	udp = (struct rte_udp_hdr *)(ip + 1);
	udp->dst_port = RTE_BE16(ROCE_PORT);
	return mbuf;
}

/* @return cycles; 0: not all were taken */
static uint64_t
roce_give(struct pipeline *pipeline, struct rte_mbuf **mbufs)
{
	uint64_t begin = rte_rdtsc(), cycles;
	uint16_t left = rcd_inline_rx(pipeline->dev, pipeline->lcore, mbufs, BURST);

	cycles = rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(mbufs, left);
	/* They are for no queue pair. */
	while (rcd_lcore_poll(pipeline->lcore, rcd_clock_ns(), BURST) > 0)
		;
	return left == 0 ? cycles : 0;
}

/* A burst to the other end, which sends it back in its own time. */
static uint64_t
roce_exchange(const uint16_t ports[2], struct rte_mbuf **mbufs)
{
	struct rte_mbuf *back[BURST];
	uint64_t begin = rte_rdtsc(), cycles;
	uint16_t sent = rte_eth_tx_burst(ports[0], 0, mbufs, BURST), got;

	cycles = rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(mbufs + sent, (uint32_t)(BURST - sent));
	got = rte_eth_rx_burst(ports[1], 0, back, BURST);
	sent = rte_eth_tx_burst(ports[1], 0, back, got);
	rte_pktmbuf_free_bulk(back + sent, (uint32_t)(got - sent));
	begin = rte_rdtsc();
	got = rte_eth_rx_burst(ports[0], 0, back, BURST);
	cycles += rte_rdtsc() - begin;
	rte_pktmbuf_free_bulk(back, got);
	return got == BURST ? cycles : 0;
}

/* @return 0; -1: packets were not taken, or there was none */
static int
roce_measure(
	struct pipeline *pipeline, struct rte_mempool *pool, const uint16_t ports[2], uint16_t len)
{
	static uint64_t cycles[2][ROUNDS];
	double each[2];
	char name[40];

	for (int round = 0; round < ROUNDS; round++)
		for (int way = 0; way < 2; way++) {
			struct rte_mbuf *mbufs[BURST];

			for (int i = 0; i < BURST; i++) {
				mbufs[i] = roce_make(pool, len);
				if (mbufs[i] == NULL)
					return -1;
			}
			cycles[way][round] =
				way == 0 ? roce_give(pipeline, mbufs) : roce_exchange(ports, mbufs);
			if (cycles[way][round] == 0)
				return -1;
		}
	for (int way = 0; way < 2; way++)
		each[way] = bench_nfv_median(cycles[way]) / BURST;
	snprintf(name, sizeof(name), "RoCE, %u bytes, to the engine", len);
	bench_nfv_print(name, each[0], each[0]);
	snprintf(name, sizeof(name), "RoCE, %u bytes, by memif and back", len);
	bench_nfv_print(name, each[1], each[1]);
	return 0;
}

static int
roce_start(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { .rxmode.mq_mode = RTE_ETH_MQ_RX_NONE };

	if (rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(port, 0, DESCS, 0, NULL, pool) != 0 ||
		rte_eth_tx_queue_setup(port, 0, DESCS, 0, NULL) != 0)
		return -1;
	return rte_eth_dev_start(port);
}

static bool
roce_up(uint16_t port)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

int
bench_nfv_roce(struct pipeline *pipeline)
{
	/* Longer ones than those that go around: a burst of these is not in the cache anyway. */
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"roce", 2047, 0, 0, RTE_PKTMBUF_HEADROOM + ROOM, SOCKET_ID_ANY);
	uint16_t ports[2];
	int waited = 0;

	if (pool == NULL)
		return -1;

	for (int i = 0; i < 2; i++)
		if (rte_eth_dev_get_port_by_name(i == 0 ? "net_memif0" : "net_memif1", &ports[i]) !=
				0 ||
			roce_start(ports[i], pool) != 0)
			return -1;
	while (!roce_up(ports[0]) || !roce_up(ports[1])) {
		if (waited++ == WAIT_TIMES)
			return -1;
		usleep(1000);
	}
	/* Who receives brings the room, when it looks for the first time. */
	for (int i = 0; i < 2; i++) {
		struct rte_mbuf *none[BURST];

		rte_pktmbuf_free_bulk(none, rte_eth_rx_burst(ports[i], 0, none, BURST));
	}
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		if (roce_measure(pipeline, pool, ports, lens[i]) != 0)
			return -1;
	return 0;
}
