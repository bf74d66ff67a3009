/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What this machine does at best, on the same lcores, ports and memory as the traffic: forwarding
 * as testpmd's io and macswap do; a copy and a CRC for each side and nothing else; a word passed on
 * through shared memory.
 */
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "rcd_icrc.h"
#include "rcd_clock.h"

#define HDR_LEN       64 /**< the payload begins a cache line, as the engine has it */
#define IP_OFFSET     14
#define CIRCULATING   256
#define PHASE_SECONDS 0.25
#define DRAIN_ROUNDS  2000
#define POOL_MBUFS    8191
#define MBUF_ROOM     (RTE_PKTMBUF_HEADROOM + 4480)

/* Local experimental: the kernel and the engine leave it alone. */
#define ETHERTYPE 0x88b5

/* What nobody looks at, so that it is computed all the same. */
static volatile uint32_t sink;

static bool
ceiling_still(const struct bench_worker *worker, enum bench_phase phase)
{
	return __atomic_load_n(&worker->bench->phase, __ATOMIC_RELAXED) == (uint32_t)phase;
}

static void
ceiling_add_done(struct bench_worker *worker, uint64_t amount)
{
	__atomic_store_n(&worker->done, worker->done + amount, __ATOMIC_RELAXED);
}

static uint32_t
ceiling_packet_payload(const struct bench *bench)
{
	return RTE_MIN(bench->size, bench->path_mtu);
}

static void
ceiling_inject(const struct bench_worker *worker, uint16_t port, uint16_t peer)
{
	const struct bench *bench = worker->bench;
	uint16_t len = (uint16_t)RTE_MAX(HDR_LEN + ceiling_packet_payload(bench), 60u);

	for (uint32_t i = 0; i < CIRCULATING; i++) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(bench->pool);
		struct rte_ether_hdr *eth;

		if (mbuf == NULL)
			return;
		eth = (struct rte_ether_hdr *)(void *)rte_pktmbuf_append(mbuf, len);
		memset(eth, 0, len);
		rte_eth_macaddr_get(port, &eth->src_addr);
		rte_eth_macaddr_get(peer, &eth->dst_addr);
		eth->ether_type = rte_cpu_to_be_16(ETHERTYPE);
		if (rte_eth_tx_burst(port, (uint16_t)worker->index, &mbuf, 1) != 1)
			rte_pktmbuf_free(mbuf);
	}
}

static void
ceiling_swap_addresses(struct rte_mbuf **mbufs, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		struct rte_ether_hdr *eth = rte_pktmbuf_mtod(mbufs[i], struct rte_ether_hdr *);
		struct rte_ether_addr addr = eth->src_addr;

		eth->src_addr = eth->dst_addr;
		eth->dst_addr = addr;
	}
}

static uint16_t
ceiling_forward(struct bench_worker *worker, uint16_t port, bool swap)
{
	struct rte_mbuf *mbufs[RCD_BURST_MAX];
	uint16_t count = rte_eth_rx_burst(
		port, (uint16_t)worker->index, mbufs, (uint16_t)worker->bench->opts.burst);
	uint16_t sent;

	if (count == 0)
		return 0;
	if (swap)
		ceiling_swap_addresses(mbufs, count);
	sent = rte_eth_tx_burst(port, (uint16_t)worker->index, mbufs, count);
	if (sent < count)
		rte_pktmbuf_free_bulk(mbufs + sent, count - sent);
	return count;
}

static void
ceiling_drain(const struct bench_worker *worker)
{
	struct rte_mbuf *mbufs[RCD_BURST_MAX];

	for (uint32_t i = 0; i < DRAIN_ROUNDS; i++) {
		uint16_t count = rte_eth_rx_burst(worker->bench->port_ids[i % 2],
			(uint16_t)worker->index, mbufs, RCD_BURST_MAX);

		rte_pktmbuf_free_bulk(mbufs, count);
	}
}

static void
ceiling_run_forward(struct bench_worker *worker, enum bench_phase phase)
{
	const uint16_t *ports = worker->bench->port_ids;
	bool swap = phase == BENCH_MACSWAP;

	ceiling_inject(worker, ports[0], ports[1]);
	ceiling_inject(worker, ports[1], ports[0]);
	while (ceiling_still(worker, phase)) {
		uint64_t count = ceiling_forward(worker, ports[0], swap);

		count += ceiling_forward(worker, ports[1], swap);
		ceiling_add_done(worker, count);
	}
	ceiling_drain(worker);
}

/* Where a message of a queue pair is, and how far its packets are. */
struct walk {
	const struct bench_part *from;
	const struct bench_part *to;
	uint32_t qp;
	uint32_t offset;
};

static uint32_t
ceiling_step(struct walk *walk, const struct bench *bench, uint8_t **src, uint8_t **dst)
{
	uint32_t len = RTE_MIN(bench->size - walk->offset, bench->path_mtu);

	*src = (uint8_t *)(uintptr_t)walk->from->qps[walk->qp].tx_addr + walk->offset;
	*dst = (uint8_t *)(uintptr_t)walk->to->qps[walk->qp].rx_addr + walk->offset;
	walk->offset += len;
	if (walk->offset >= bench->size) {
		walk->offset = 0;
		walk->qp = (walk->qp + 1) % walk->from->qp_count;
	}
	return len;
}

/* A burst: into buffers with the CRC behind, then the CRC again and out of the buffers. */
static uint64_t
ceiling_copy_burst(const struct bench *bench, struct walk *walk, struct rte_mbuf **mbufs)
{
	uint32_t burst = bench->opts.burst;
	uint8_t *dst[RCD_BURST_MAX];
	uint32_t len[RCD_BURST_MAX];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < burst; i++) {
		uint8_t *frame = rte_pktmbuf_mtod(mbufs[i], uint8_t *);
		uint8_t *src;

		len[i] = ceiling_step(walk, bench, &src, &dst[i]);
		memcpy(frame + HDR_LEN, src, len[i]);
		sink += rcd_icrc_update(0, frame + IP_OFFSET, HDR_LEN - IP_OFFSET + len[i]);
	}
	for (uint32_t i = 0; i < burst; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);

		sink += rcd_icrc_update(0, frame + IP_OFFSET, HDR_LEN - IP_OFFSET + len[i]);
		memcpy(dst[i], frame + HDR_LEN, len[i]);
		bytes += len[i];
	}
	return bytes;
}

static void
ceiling_run_copy(struct bench_worker *worker)
{
	const struct bench *bench = worker->bench;
	struct rte_mbuf *mbufs[RCD_BURST_MAX];
	uint32_t part = worker->index % bench->part_count;
	struct walk walk = { .from = &bench->parts[0][part], .to = &bench->parts[1][part] };

	while (ceiling_still(worker, BENCH_COPY)) {
		if (rte_pktmbuf_alloc_bulk(bench->pool, mbufs, bench->opts.burst) != 0)
			return;
		ceiling_add_done(worker, ceiling_copy_burst(bench, &walk, mbufs));
		rte_pktmbuf_free_bulk(mbufs, bench->opts.burst);
	}
}

static void
ceiling_relay_wait(const struct bench_worker *worker, const uint64_t *word, uint64_t val)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != val && ceiling_still(worker, BENCH_RELAY))
		if (worker->bench->opts.yield)
			sched_yield();
}

/* The first worker passes on what the last one sends; alone, it does both. */
static void
ceiling_run_relay(struct bench_worker *worker)
{
	struct bench *bench = worker->bench;
	bool passes = worker->index == 0;
	bool sends = worker->index == bench->worker_count - 1;

	for (uint64_t val = 1; (passes || sends) && ceiling_still(worker, BENCH_RELAY); val++) {
		if (sends)
			__atomic_store_n(&bench->relay.there, val, __ATOMIC_RELEASE);
		if (passes) {
			ceiling_relay_wait(worker, &bench->relay.there, val);
			__atomic_store_n(&bench->relay.back, val, __ATOMIC_RELEASE);
		}
		if (sends) {
			ceiling_relay_wait(worker, &bench->relay.back, val);
			ceiling_add_done(worker, 1);
		}
	}
}

void
bench_ceiling_main(struct bench_worker *worker, enum bench_phase phase)
{
	bool polls = worker->lcore != NULL;

	switch (phase) {
	case BENCH_IO:
	case BENCH_MACSWAP:
		if (polls)
			ceiling_run_forward(worker, phase);
		break;
	case BENCH_COPY:
		if (polls)
			ceiling_run_copy(worker);
		break;
	case BENCH_RELAY:
		ceiling_run_relay(worker);
		break;
	case BENCH_OFF:
	case BENCH_PAUSE:
	case BENCH_LOAD:
	case BENCH_PINGPONG:
		break;
	}
	while (ceiling_still(worker, phase))
		usleep(100);
}

static uint64_t
ceiling_sum_done(const struct bench *bench)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < bench->worker_count; i++)
		sum += __atomic_load_n(&bench->workers[i].done, __ATOMIC_RELAXED);
	return sum;
}

/* @return per second */
static double
ceiling_measure(struct bench *bench, enum bench_phase phase)
{
	uint64_t begin_ns, begin;
	double rate;

	bench->relay.there = bench->relay.back = 0;
	bench_phase_set(bench, phase);
	usleep(20000);
	begin_ns = rcd_clock_ns();
	begin = ceiling_sum_done(bench);
	usleep((useconds_t)(PHASE_SECONDS * 1e6));
	rate = (double)(ceiling_sum_done(bench) - begin) * 1e9 /
		(double)(rcd_clock_ns() - begin_ns);
	bench_phase_set(bench, BENCH_PAUSE);
	return rate;
}

int
bench_ceilings_init(struct bench *bench)
{
	bench->pool = rte_pktmbuf_pool_create(
		"bench_ceilings", POOL_MBUFS, 256, 0, MBUF_ROOM, (int)rte_socket_id());
	return bench->pool != NULL ? 0 : -ENOMEM;
}

void
bench_ceilings_fini(struct bench *bench)
{
	rte_mempool_free(bench->pool);
}

void
bench_ceilings_run(struct bench *bench, struct bench_ceilings *ceilings)
{
	double relays;

	ceilings->io_pps = ceiling_measure(bench, BENCH_IO);
	ceilings->macswap_pps = ceiling_measure(bench, BENCH_MACSWAP);
	ceilings->copy_bps = bench->size > 0 ? ceiling_measure(bench, BENCH_COPY) : 0;
	relays = ceiling_measure(bench, BENCH_RELAY);
	ceilings->relay_ns = relays > 0 ? 1e9 / relays : 0;
}
