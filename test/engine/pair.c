/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: two engines talk to each other. A program for the tests that set up links between engines:
 * one node on each, all operations both ways with data compared.
 *
 *   pair SOCKET_A DEVICE_A SOCKET_B DEVICE_B 4|6 [ROUNDS [COMMAND]]
 *
 * With a command, which the shell carries out, datagrams have to arrive before it and some time
 * after it, and then the rounds are gone once more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_mr.h"
#include "rig.h"

#define MEMORY (4u << 20)

static void
one_way(struct node *a, struct node *b, uint32_t len, uint32_t seed)
{
	struct rcd_cq_slot slot;

	fill(a->memory, len, seed);
	memset(b->memory, 0, len);
	MUST(node_recv(b, 0, MEMORY, seed) == 0);
	MUST(node_write(a, NULL, RCD_WR_SEND, 0, len, seed) == 0);
	MUST(node_wait(b, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
	MUST(slot.byte_len == len && filled(b->memory, len, seed));
	MUST(node_wait(a, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
	fill(a->memory, len, seed + 1);
	MUST(node_write(a, b, RCD_WR_RDMA_WRITE, 0, len, seed) == 0);
	MUST(node_wait(a, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
	MUST(filled(b->memory, len, seed + 1));
	fill(b->memory, len, seed + 2);
	MUST(node_write(a, b, RCD_WR_RDMA_READ, 0, len, seed) == 0);
	MUST(node_wait(a, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
	MUST(filled(a->memory, len, seed + 2));
}

static void
all_sizes(struct node *a, struct node *b, int rounds)
{
	static const uint32_t sizes[] = { 1, 1000, 4096, 70000, 1000003 };

	for (int round = 0; round < rounds; round++) {
		for (uint32_t i = 0; i < RCD_ARRAY_COUNT(sizes); i++) {
			one_way(a, b, sizes[i], (uint32_t)round * 100 + i * 10);
			one_way(b, a, sizes[i], (uint32_t)round * 100 + i * 10 + 5);
		}
	}
	printf("%d rounds of %zu sizes, both ways\n", rounds, RCD_ARRAY_COUNT(sizes));
}

/* Datagrams by an address handle that was made once, until one arrives. */
static void
datagrams_around(const char *command, char *const *devs, int v4)
{
	uint64_t deadline;
	struct rcd_cq_slot slot;
	struct node a, b;
	uint32_t ah;
	int got;

	node_open(&a, devs[0], devs[1], RCD_QP_UD);
	node_open(&b, devs[2], devs[3], RCD_QP_UD);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_QP_UD, v4);
	ah = node_ah(&a, &b, v4);
	for (int round = 0; round < 2; round++) {
		deadline = now_ms() + FOREVER_MS;
		MUST(node_recv(&b, 0, MEMORY, 1) == 0);
		do {
			MUST(now_ms() < deadline && node_datagram(&a, &b, ah, 1000) == 0);
			MUST(node_wait(&a, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
			got = node_wait(&b, &slot, 100);
		} while (got == -ETIMEDOUT);
		MUST(got == RCD_WC_SUCCESS);
		if (round == 0)
			MUST(system(command) == 0);
	}
	node_close(&a);
	node_close(&b);
}

int
main(int argc, char **argv)
{
	struct node a, b;
	int rounds = argc > 6 ? (int)strtol(argv[6], NULL, 10) : 1;
	int v4;

	MUST(argc >= 6);
	v4 = argv[5][0] == '4';
	node_open(&a, argv[1], argv[2], RCD_QP_RC);
	node_open(&b, argv[3], argv[4], RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_QP_RC, v4);
	all_sizes(&a, &b, rounds);
	if (argc > 7) {
		datagrams_around(argv[7], argv + 1, v4);
		all_sizes(&a, &b, rounds);
	}
	node_close(&a);
	node_close(&b);
	return 0;
}
