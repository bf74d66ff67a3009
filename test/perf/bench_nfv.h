/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the parts of bench_nfv share: the pipeline, medians, lines of the table.
 */
#ifndef BENCH_NFV_H
#define BENCH_NFV_H

#include <rte_ether.h>
#include <stdint.h>

#define BURST   32
#define ROUNDS  301
#define REPEATS 64
#define NEXTS   16

/** MAC of the device that is fed. */
#define BENCH_NFV_MAC "02:00:00:00:00:01"
#define BENCH_NFV_BYTES                                                                            \
	{                                                                                          \
		0x02, 0, 0, 0, 0, 1                                                                \
	}

struct rcd_engine;
struct rcd_inline;
struct rcd_lcore;
struct rte_lpm;
struct rte_mempool;

/** A program's port of rings, around which packets go, and its engine at 10.1.0.1. */
struct pipeline {
	struct rcd_engine *engine;
	struct rcd_lcore *lcore;
	struct rcd_inline *dev;
	struct rte_mempool *pool;
	struct rte_lpm *lpm;
	struct rte_ether_addr nexts[NEXTS];
	uint16_t port;
};

/* bench_nfv.c */

/** They are sorted. */
double
bench_nfv_median(uint64_t cycles[ROUNDS]);

void
bench_nfv_print(const char *name, double each, double own);

/* bench_nfv_graph.c */

/** Routing in a graph, without our nodes and with them. @return 0; -1: there is no such graph */
int
bench_nfv_graph(struct pipeline *pipeline);

/* bench_nfv_roce.c */

/** Packets of RoCE to the engine in the program, or to a daemon's memif and as many from it. */
int
bench_nfv_roce(struct pipeline *pipeline);

#endif /* BENCH_NFV_H */
