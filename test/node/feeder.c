/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A program with ports of its own and the engine in it, as a pipeline has: two fed devices, and
 * between them a link of the program's, on which other traffic of all kinds is mixed in and packets
 * get lost. Buffers are the program's, at any headroom, some in pieces. Whatever is not RoCE for a
 * device must be left to the program, unchanged and in order.
 *
 *   feeder SOCKET LOSS      of 10000 packets so many are lost; clients come by the socket
 *
 * Runs until SIGTERM, then says what it saw, and fails when something was wrong.
 */
#include <inttypes.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_clock.h"
#include "rcd_dev_conf.h"
#include "rcd_engine.h"
#include "rcd_eth.h"
#include "rcd_inline.h"
#include "rcd_ip.h"
#include "rcd_poll.h"

#define BUFFERS    8191
#define BURST      32
#define OTHERS     2 /**< packets of others before each, at most */
#define OTHER_MOST 1400
#define STEPS      16 /**< rounds between two looks at what clients ask for */

struct feeder {
	struct rcd_engine *engine;
	struct rcd_lcore *lcore;
	struct rcd_inline *devs[2];
	struct rte_mempool *pool;
	uint32_t loss;
	uint64_t random;
	uint64_t carried, lost, others, wrong;
};

static volatile sig_atomic_t stop;

static void
on_signal(int signo)
{
	(void)signo;
	stop = 1;
}

static uint32_t
draw(struct feeder *feeder, uint32_t below)
{
	feeder->random = feeder->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(feeder->random >> 33) % below;
}

/* Bytes of another's packet, told by its number: what it is, and what it holds. @return length */
static uint32_t
other_bytes(uint64_t number, uint8_t *frame)
{
	static const uint16_t types[] = { RCD_ETHERTYPE_IPV4, RCD_ETHERTYPE_IPV6,
		RCD_ETHERTYPE_IPV4, RCD_ETHERTYPE_ARP, 0x88cc, RCD_ETHERTYPE_IPV4 };
	static const uint8_t protocols[] = { RCD_IP_PROTO_UDP, 6, RCD_IP_PROTO_ICMP, 47 };
	struct rcd_eth eth = { .dst = { 2, 0, 0, 0, 0, (uint8_t)(number % 3) },
		.src = { 2, 0, 0, 0, 1, 0 },
		.tagged = number % 5 == 0,
		.vlan_tci = number % 5 == 0 ? 9 : 0,
		.ethertype = types[number % RTE_DIM(types)] };
	uint32_t len = 60 + (uint32_t)(number * 2654435761u % (OTHER_MOST - 60));
	uint8_t *at = frame;

	for (uint32_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(number + i * 7);
	rcd_eth_build(frame, &eth);
	at += rcd_eth_len(&eth);
	if (eth.ethertype == RCD_ETHERTYPE_IPV4) {
		at[0] = 0x45;
		at[6] = at[7] = 0;
		at[9] = protocols[number / 7 % RTE_DIM(protocols)];
		/* RoCE for an address that is nobody's here. */
		memcpy(at + 16, (uint8_t[]){ 10, 8, 0, 3 }, 4);
		rcd_put_be16(at + 22, number % 2 ? 4791 : 4790);
	} else if (eth.ethertype == RCD_ETHERTYPE_IPV6) {
		at[0] = 0x60;
		at[6] = protocols[number / 7 % RTE_DIM(protocols)];
	}
	return len;
}

static struct rte_mbuf *
make_piece(struct feeder *feeder, const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(feeder->pool);

	if (mbuf == NULL)
		return NULL;
	mbuf->data_off = (uint16_t)draw(feeder, RTE_PKTMBUF_HEADROOM);
	memcpy(rte_pktmbuf_mtod(mbuf, void *), data, len);
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = len;
	return mbuf;
}

/* Bytes in buffers of the program's: one in eight is in two pieces. @return NULL: none is free */
static struct rte_mbuf *
make(struct feeder *feeder, const uint8_t *data, uint32_t len)
{
	uint32_t first = draw(feeder, 8) == 0 && len > 1 ? 1 + draw(feeder, len - 1) : len;
	struct rte_mbuf *mbuf = make_piece(feeder, data, first);
	struct rte_mbuf *tail = first < len ? make_piece(feeder, data + first, len - first) : NULL;

	if (mbuf == NULL || (first < len && tail == NULL)) {
		rte_pktmbuf_free(mbuf);
		rte_pktmbuf_free(tail);
		return NULL;
	}
	if (tail != NULL)
		rte_pktmbuf_chain(mbuf, tail);
	return mbuf;
}

static struct rte_mbuf *
make_other(struct feeder *feeder)
{
	uint8_t frame[OTHER_MOST];
	uint32_t len = other_bytes(feeder->others, frame);
	struct rte_mbuf *mbuf = make(feeder, frame, len);

	feeder->others += mbuf != NULL;
	return mbuf;
}

/* Whether the packets of others that are left are those from this number on. */
static void
judge(struct feeder *feeder, struct rte_mbuf **mbufs, uint32_t left, uint64_t number)
{
	uint8_t expected[OTHER_MOST], copy[OTHER_MOST];

	feeder->wrong += feeder->others - number != left;
	for (uint32_t i = 0; i < left; i++) {
		uint32_t len = other_bytes(number + i, expected);
		const void *data = rte_pktmbuf_pkt_len(mbufs[i]) == len
			? rte_pktmbuf_read(mbufs[i], 0, len, copy)
			: NULL;

		feeder->wrong += data == NULL || memcmp(data, expected, len) != 0;
	}
}

/* What one device sends goes to the other, through the program. */
static uint32_t
carry(struct feeder *feeder, int from)
{
	struct rte_mbuf *sent[BURST], *burst[BURST * (OTHERS + 1) + OTHERS];
	uint16_t count = rcd_inline_tx(feeder->devs[from], feeder->lcore, sent, BURST);
	uint64_t number = feeder->others;
	uint32_t total = 0, left;

	for (uint32_t i = 0; i <= count; i++) {
		for (uint32_t k = draw(feeder, OTHERS + 1); k > 0; k--)
			if ((burst[total] = make_other(feeder)) != NULL)
				total++;
		if (i == count || draw(feeder, 10000) < feeder->loss) {
			feeder->lost += i < count;
			continue;
		}
		burst[total] = make(feeder, rte_pktmbuf_mtod(sent[i], const uint8_t *),
			rte_pktmbuf_data_len(sent[i]));
		if (burst[total] != NULL)
			total++;
	}
	rte_pktmbuf_free_bulk(sent, count);
	feeder->carried += count;
	left = rcd_inline_rx(feeder->devs[!from], feeder->lcore, burst, (uint16_t)total);
	judge(feeder, burst, left, number);
	rte_pktmbuf_free_bulk(burst, left);
	return count;
}

static int
feeder_add(struct feeder *feeder, int index)
{
	struct rcd_dev_conf conf = { .mtu = 1500, .no_shortcut = true };
	char error[256] = "", text[64];

	snprintf(conf.name, sizeof(conf.name), "fed%d", index);
	snprintf(text, sizeof(text), "10.8.0.%d/24, fd08::%d/64", index + 1, index + 1);
	if (rcd_dev_conf_set(&conf, "address", text, error, sizeof(error)) == 0)
		snprintf(text, sizeof(text), "02:00:00:00:00:0%d", index + 1);
	if (rcd_dev_conf_set(&conf, "mac", text, error, sizeof(error)) == 0)
		feeder->devs[index] =
			rcd_inline_create(feeder->engine, &conf, error, sizeof(error));
	if (feeder->devs[index] != NULL)
		return 0;
	fprintf(stderr, "feeder: %s\n", error);
	return -1;
}

static int
feeder_begin(struct feeder *feeder, const char *socket)
{
	struct rcd_engine_conf conf;
	char error[256] = "";

	feeder->pool = rte_pktmbuf_pool_create(
		"programs", BUFFERS, 0, 0, RTE_PKTMBUF_HEADROOM + 4400, SOCKET_ID_ANY);
	rcd_engine_conf_init(&conf);
	snprintf(conf.socket, sizeof(conf.socket), "%s", socket);
	conf.mbufs = BUFFERS;
	feeder->engine =
		feeder->pool != NULL ? rcd_engine_create(&conf, error, sizeof(error)) : NULL;
	if (feeder->engine == NULL) {
		fprintf(stderr, "feeder: %s\n", error);
		return -1;
	}
	feeder->lcore = rcd_engine_lcore(feeder->engine, 0);
	return feeder_add(feeder, 0) == 0 ? feeder_add(feeder, 1) : -1;
}

static void
feeder_run(struct feeder *feeder)
{
	uint32_t idle = 0;

	for (uint64_t round = 0; !stop; round++) {
		uint32_t done = carry(feeder, 0) + carry(feeder, 1);

		done += rcd_lcore_poll(feeder->lcore, rcd_clock_ns(), BURST);
		idle = done > 0 ? 0 : idle + 1;
		if (round % STEPS == 0)
			rcd_engine_step(feeder->engine, idle > 1000);
		if (idle > 0)
			sched_yield();
	}
}

int
main(int argc, char **argv)
{
	static char args[][24] = { "feeder", "--no-huge", "-m", "512", "--no-shconf", "--no-pci",
		"--no-telemetry", "--log-level=1", "-l", "0" };
	char *eal[RTE_DIM(args)];
	struct sigaction action = { .sa_handler = on_signal };
	struct feeder feeder = { .random = 1 };
	int status = 1;

	if (argc != 3)
		return 2;
	for (size_t i = 0; i < RTE_DIM(args); i++)
		eal[i] = args[i];
	sigaction(SIGTERM, &action, NULL);
	feeder.loss = (uint32_t)strtoul(argv[2], NULL, 10);
	if (rte_eal_init((int)RTE_DIM(args), eal) >= 0 && feeder_begin(&feeder, argv[1]) == 0) {
		feeder_run(&feeder);
		status = feeder.wrong != 0;
	}
	for (int i = 0; i < 2; i++)
		rcd_inline_destroy(feeder.devs[i]);
	if (feeder.engine != NULL)
		rcd_engine_destroy(feeder.engine);
	status |= feeder.pool == NULL || !rte_mempool_full(feeder.pool);
	printf("{\"carried\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"others\": %" PRIu64
	       ", \"wrong\": %" PRIu64 ", \"back\": %d}\n",
		feeder.carried, feeder.lost, feeder.others, feeder.wrong,
		feeder.pool != NULL && rte_mempool_full(feeder.pool));
	return status;
}
