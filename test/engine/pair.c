/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: two engines talk to each other. A program for the tests that set up links between engines:
 * one node on each, all operations both ways with data compared.
 *
 *   pair SOCKET_A DEVICE_A SOCKET_B DEVICE_B 4|6 [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int
main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 1, 1000, 4096, 70000, 1000003 };
	struct node a, b;
	int rounds = argc > 6 ? (int)strtol(argv[6], NULL, 10) : 1;
	int v4;

	MUST(argc >= 6);
	v4 = argv[5][0] == '4';
	node_open(&a, argv[1], argv[2], RCD_CTRL_QP_RC);
	node_open(&b, argv[3], argv[4], RCD_CTRL_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_CTRL_QP_RC, v4);
	for (int round = 0; round < rounds; round++) {
		for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			one_way(&a, &b, sizes[i], (uint32_t)round * 100 + i * 10);
			one_way(&b, &a, sizes[i], (uint32_t)round * 100 + i * 10 + 5);
		}
	}
	printf("%d rounds of %zu sizes, both ways\n", rounds, sizeof(sizes) / sizeof(sizes[0]));
	node_close(&a);
	node_close(&b);
	return 0;
}
