/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sends numbered packets by its first port, none of which gets lost where a port says what it did
 * not take. Packet n is a header, n, and a part of a table that begins at n: what receives them can
 * tell all bytes (test_sink.py).
 *
 *   generator [EAL OPTIONS] -- PACKETS
 */
#include <rte_byteorder.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "start_port.h"

#define BURST  32
#define TABLE  4096
#define HEADER "\2\0\0\0\0\1\2\0\0\0\0\2\x88\xb5"

static uint8_t table[TABLE];

/* At least what Ethernet wants. */
static uint32_t
tail_len(uint64_t number)
{
	return 38 + (uint32_t)(number * 2654435761u % 1009 % 331);
}

static struct rte_mbuf *
make(struct rte_mempool *pool, uint64_t number)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	uint64_t be = rte_cpu_to_be_64(number);
	uint8_t *frame;

	if (mbuf == NULL)
		return NULL;
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	memcpy(frame, HEADER, 14);
	memcpy(frame + 14, &be, sizeof(be));
	memcpy(frame + 22, table + number % 2048, tail_len(number));
	mbuf->data_len = (uint16_t)(22 + tail_len(number));
	mbuf->pkt_len = mbuf->data_len;
	return mbuf;
}

static void
send_all(struct rte_mempool *pool, uint64_t packets)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t count = 0;
	uint64_t number = 0;

	while (number < packets || count > 0) {
		uint16_t sent;

		while (count < BURST && number < packets &&
			(mbufs[count] = make(pool, number)) != NULL) {
			count++;
			number++;
		}
		sent = rte_eth_tx_burst(0, 0, mbufs, count);
		if (sent == 0)
			sched_yield();
		memmove(mbufs, mbufs + sent, (size_t)(count - sent) * sizeof(mbufs[0]));
		count = (uint16_t)(count - sent);
	}
}

/* A memif whose other side listens already and has not started hangs up, and does not try again. */
static int
wait_link(uint16_t port)
{
	struct rte_eth_link link;

	for (unsigned int patience = 100;; patience *= 2) {
		for (unsigned int i = 0; i < patience; i++) {
			if (rte_eth_link_get_nowait(port, &link) != 0)
				return -1;
			if (link.link_status != 0)
				return 0;
			usleep(1000);
		}
		if (rte_eth_dev_stop(port) != 0 || rte_eth_dev_start(port) != 0)
			return -1;
	}
}

int
main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);
	struct rte_mempool *pool;

	if (used < 0 || argc - used != 2)
		return 2;
	for (uint32_t i = 0; i < TABLE; i++)
		table[i] = (uint8_t)(i * 31 + i / 256 * 7);
	pool = rte_pktmbuf_pool_create("packets", 4095, 256, 0, 2304, SOCKET_ID_ANY);
	if (pool == NULL || start_port(0, 1, pool, true) != 0 || wait_link(0) != 0) {
		fprintf(stderr, "generator: its port does not start\n");
		return 1;
	}
	send_all(pool, strtoull(argv[used + 1], NULL, 10));
	/* What is in the ring is the other side's until it has taken it. */
	pause();
	return 0;
}
