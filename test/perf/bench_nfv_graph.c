/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Two graphs of DPDK's nodes that route what goes around: one as it is, one with the engine's nodes
 * in it. Walks take turns; the port sends by a queue for each graph, into the same ring.
 */
#include <rte_cycles.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <rte_ip.h>
#include <rte_lcore.h>
#include <rte_node_eth_api.h>
#include <rte_node_ip4_api.h>
#include <stdio.h>

#include "bench_nfv.h"
#include "rcd_node.h"

#define GRAPHS 2

static struct rte_graph *
graph_make(const char *name, const char **patterns, uint16_t count)
{
	struct rte_graph_param param = { .socket_id = (int)rte_socket_id(),
		.nb_node_patterns = count,
		.node_patterns = patterns };

	return rte_graph_create(name, &param) != RTE_GRAPH_ID_INVALID ? rte_graph_lookup(name)
								      : NULL;
}

/* A graph keeps the edges that there were when it was made. */
static int
graph_make_all(struct pipeline *pipeline, struct rte_graph *graphs[GRAPHS])
{
	struct rte_node_ethdev_config port = {
		.port_id = pipeline->port, .num_rx_queues = 1, .num_tx_queues = GRAPHS
	};
	const struct rcd_node_conf conf = { .dev = pipeline->dev, .port_id = pipeline->port };
	char rx[RTE_NODE_NAMESIZE];
	const char *patterns[] = { rx, "rocade_poll" };

	snprintf(rx, sizeof(rx), "ethdev_rx-%u-0", pipeline->port);
	if (rte_node_eth_config(&port, 1, GRAPHS) != 0)
		return -1;
	graphs[0] = graph_make("without", patterns, 1);
	if (graphs[0] == NULL || rcd_node_add(&conf) != 0 || rcd_node_insert(pipeline->port) != 0 ||
		rcd_node_bind("with", pipeline->lcore) != 0)
		return -1;
	graphs[1] = graph_make("with", patterns, 2);
	return graphs[1] != NULL ? 0 : -1;
}

static int
graph_routes(const struct pipeline *pipeline)
{
	for (uint16_t i = 0; i < NEXTS; i++) {
		uint8_t head[RTE_ETHER_HDR_LEN] = { 2, [12] = 8 };

		if (rte_node_ip4_rewrite_add(i, head, sizeof(head), pipeline->port) != 0 ||
			rte_node_ip4_route_add(RTE_IPV4(10, 0, i, 0), 24, i,
				RTE_NODE_IP4_LOOKUP_NEXT_REWRITE) != 0)
			return -1;
	}
	return 0;
}

static uint64_t
graph_objs(const char *graph, const char *node)
{
	return rte_graph_node_get_by_name(graph, node)->total_objs;
}

/* @return cycles of so many walks, each of which takes as many packets as there are */
static uint64_t
graph_walk(struct rte_graph *graph)
{
	uint64_t begin = rte_rdtsc();

	for (int i = 0; i < REPEATS; i++)
		rte_graph_walk(graph);
	return rte_rdtsc() - begin;
}

int
bench_nfv_graph(struct pipeline *pipeline)
{
	static const char *const names[] = { "without", "with" };
	static uint64_t cycles[GRAPHS][ROUNDS];
	struct rte_graph *graphs[GRAPHS];
	double each[GRAPHS];

	if (graph_make_all(pipeline, graphs) != 0 || graph_routes(pipeline) != 0)
		return -1;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < GRAPHS; i++)
			cycles[i][round] = graph_walk(graphs[i]);
	for (int i = 0; i < GRAPHS; i++)
		each[i] = bench_nfv_median(cycles[i]) * ROUNDS /
			(double)graph_objs(names[i], "ip4_lookup");
	bench_nfv_print("routing in a graph", each[0], each[0]);
	bench_nfv_print("routing in a graph, our nodes", each[1], each[0]);
	return 0;
}
