/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A router of IPv4 made of DPDK's graph nodes, in which RoCE for the addresses of its ports ends:
 * it is that of the programs that attach to the engine in here. The engine answers ARP and ping for
 * these addresses, so hosts may have them as gateways; all else is routed.
 *
 *   graph-router [EAL OPTIONS] -- [--address PORT,ADDRESS/LEN]... [--route PREFIX/LEN,PORT,MAC]...
 *           [--socket PATH]
 *
 *   graph-router -l 0,1 -a 17:00.0 -a 17:00.1 -- --address 0,10.1.0.1/24
 *           --route 10.1.0.5/32,0,02:00:00:00:00:05 --route 10.2.0.0/16,1,02:00:00:00:00:09
 *
 * Each worker lcore walks a graph, with some of the ports; without workers the main lcore does.
 * SIGUSR1, and the end, print what the nodes did.
 */
#include <getopt.h>
#include <rcd_dev_conf.h>
#include <rcd_engine.h>
#include <rcd_inline.h>
#include <rcd_node.h>
#include <rcd_poll.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_graph_worker.h>
#include <rte_node_eth_api.h>
#include <rte_node_ip4_api.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forward.h"
#include "start_port.h"

#define CACHE   256
#define PORTS   8
#define ROUTES  64
#define WORKERS 16

struct worker {
	char name[RTE_GRAPH_NAMESIZE];
	struct rcd_lcore *lcore;
	struct rte_graph *graph;
};

struct router {
	struct rcd_engine *engine;
	struct rcd_dev_conf conf[PORTS]; /* of ports where RoCE ends */
	struct rcd_inline *devs[PORTS];
	struct route routes[ROUTES];
	struct worker workers[WORKERS];
	struct rte_graph_cluster_stats *stats;
	uint16_t ports, route_count, worker_count;
};

static volatile sig_atomic_t stop, asked;

static void
on_signal(int signo)
{
	*(signo == SIGUSR1 ? &asked : &stop) = 1;
}

/* What the EAL options name; devices of the engine come later, and are ports too. */
static void
start_ports(struct router *router)
{
	uint32_t rings =
		rte_eth_dev_count_avail() * START_PORT_DESCRIPTORS * (1u + router->worker_count);
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("ports", rings + (1u + router->worker_count) * 4 * CACHE,
			CACHE, RTE_CACHE_LINE_SIZE, RTE_PKTMBUF_HEADROOM + 9216, SOCKET_ID_ANY);

	router->ports = RTE_MIN(rte_eth_dev_count_avail(), PORTS);
	if (router->ports == 0 || pool == NULL || router->worker_count > WORKERS)
		rte_exit(1, "no port, no memory, or too many lcores\n");
	for (uint16_t port = 0; port < router->ports; port++) {
		struct rte_node_ethdev_config nodes = {
			.port_id = port, .num_rx_queues = 1, .num_tx_queues = router->worker_count
		};

		if (start_port(port, router->worker_count, pool, false) != 0 ||
			rte_node_eth_config(&nodes, 1, router->worker_count) != 0)
			rte_exit(1, "port %u does not start\n", port);
	}
}

/* With its nodes, behind those that receive. */
static void
make_device(struct router *router, uint16_t port)
{
	struct rcd_dev_conf *conf = &router->conf[port];
	struct rcd_node_conf node = { .port_id = port, .others = FORWARD_NODE };
	char error[256] = "no such port";
	struct rte_ether_addr mac;
	uint16_t mtu;

	if (rte_eth_macaddr_get(port, &mac) == 0 && rte_eth_dev_get_mtu(port, &mtu) == 0) {
		snprintf(conf->name, sizeof(conf->name), "router%u", port);
		memcpy(conf->mac, &mac, sizeof(conf->mac));
		conf->mtu = mtu;
		node.dev = rcd_inline_create(router->engine, conf, error, sizeof(error));
	}
	if (node.dev == NULL || rcd_node_add(&node) != 0 || rcd_node_insert(port) != 0)
		rte_exit(1, "port %u: %s\n", port, error);
	router->devs[port] = node.dev;
}

static void
make_graph(struct router *router, uint16_t index)
{
	struct worker *worker = &router->workers[index];
	char names[PORTS][RTE_NODE_NAMESIZE];
	const char *patterns[PORTS + 1] = { "rocade_poll" };
	struct rte_graph_param param = {
		.socket_id = (int)rte_socket_id(), .nb_node_patterns = 1, .node_patterns = patterns
	};

	worker->lcore = rcd_engine_lcore(router->engine, index);
	snprintf(worker->name, sizeof(worker->name), "router-%u", index);
	for (uint16_t port = index; port < router->ports; port += router->worker_count) {
		snprintf(names[port], sizeof(names[port]), "ethdev_rx-%u-0", port);
		patterns[param.nb_node_patterns++] = names[port];
	}
	if (rcd_node_bind(worker->name, worker->lcore) != 0 ||
		rte_graph_create(worker->name, &param) == RTE_GRAPH_ID_INVALID)
		rte_exit(1, "no graph\n");
	worker->graph = rte_graph_lookup(worker->name);
}

/* The tables are there when the first graph is. What is for the router itself goes nowhere. */
static void
make_routes(struct router *router)
{
	for (uint32_t i = 0; i < PORTS * RCD_DEV_ADDRS_MAX; i++) {
		const struct rcd_dev_conf *conf = &router->conf[i / RCD_DEV_ADDRS_MAX];
		const struct rcd_gid *gid = &conf->addrs[i % RCD_DEV_ADDRS_MAX].gid;
		const uint8_t *ip = gid->raw + 12;

		if (i % RCD_DEV_ADDRS_MAX < conf->addr_count && rcd_gid_is_ipv4(gid))
			rte_node_ip4_route_add(RTE_IPV4(ip[0], ip[1], ip[2], ip[3]), 32, 0,
				RTE_NODE_IP4_LOOKUP_NEXT_PKT_DROP);
	}
	for (uint16_t i = 0; i < router->route_count; i++) {
		struct route *route = &router->routes[i];

		if (rte_eth_macaddr_get(route->port, &route->eth.src_addr) != 0 ||
			rte_node_ip4_rewrite_add(
				i, (uint8_t *)&route->eth, sizeof(route->eth), route->port) != 0 ||
			rte_node_ip4_route_add(route->prefix, route->len, i,
				RTE_NODE_IP4_LOOKUP_NEXT_REWRITE) != 0)
			rte_exit(1, "route %u: no such port or prefix\n", i);
	}
}

static void
make(struct router *router, const struct rcd_engine_conf *conf)
{
	const char *all = "router-*";
	struct rte_graph_cluster_stats_param param = { .socket_id = SOCKET_ID_ANY,
		.f = stdout,
		.nb_graph_patterns = 1,
		.graph_patterns = &all };
	char error[256];

	router->engine = rcd_engine_create(conf, error, sizeof(error));
	if (router->engine == NULL)
		rte_exit(1, "%s\n", error);
	for (uint16_t port = 0; port < PORTS; port++)
		if (router->conf[port].addr_count > 0)
			make_device(router, port);
	for (uint16_t i = 0; i < router->worker_count; i++)
		make_graph(router, i);
	make_routes(router);
	router->stats = rte_graph_cluster_stats_create(&param);
}

static int
walk(void *arg)
{
	struct worker *worker = arg;

	while (!rcd_lcore_stopping(worker->lcore))
		rte_graph_walk(worker->graph);
	return 0;
}

static void
run(struct router *router)
{
	struct rte_eth_link link;
	bool workers = rte_lcore_count() > 1;

	for (uint16_t i = 0; i < router->worker_count && workers; i++)
		if (rcd_engine_launch(router->engine, i, walk, &router->workers[i]) != 0)
			rte_exit(1, "worker %u does not start\n", i);
	while (!stop && !rcd_engine_stopping(router->engine)) {
		if (asked) {
			asked = 0;
			rte_graph_cluster_stats_get(router->stats, false);
			fflush(stdout);
		}
		for (int i = 0; i < 16 && !workers; i++)
			rte_graph_walk(router->workers[0].graph);
		for (uint16_t port = 0; port < router->ports; port++)
			if (router->devs[port] != NULL && rte_eth_link_get_nowait(port, &link) == 0)
				rcd_inline_set_link(router->devs[port], link.link_status != 0);
		rcd_engine_step(router->engine, workers ? 100 : 0);
	}
	rcd_engine_end_loops(router->engine);
	rte_graph_cluster_stats_get(router->stats, false);
}

static void
end(struct router *router)
{
	rte_graph_cluster_stats_destroy(router->stats);
	for (uint16_t i = 0; i < router->worker_count; i++) {
		rte_graph_destroy(rte_graph_from_name(router->workers[i].name));
		rcd_node_unbind(router->workers[i].name);
	}
	for (uint16_t port = 0; port < router->ports; port++) {
		rcd_node_del(port);
		rcd_inline_destroy(router->devs[port]);
	}
	start_port_stop(router->ports);
	rcd_engine_destroy(router->engine);
}

static void
parse(struct router *router, int argc, char **argv, struct rcd_engine_conf *conf)
{
	static const struct option options[] = { { "address", 1, NULL, 'a' },
		{ "route", 1, NULL, 'r' }, { "socket", 1, NULL, 's' }, { NULL, 0, NULL, 0 } };
	char error[256] = "see the comment that its source begins with", *behind;
	unsigned long port;
	int letter, err = 0;

	while (err == 0 && (letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (letter == 's')
			snprintf(conf->socket, sizeof(conf->socket), "%s", optarg);
		else if (letter == 'r')
			err = router->route_count < ROUTES
				? forward_route(&router->routes[router->route_count++], optarg)
				: -1;
		else if (letter == '?' || (port = strtoul(optarg, &behind, 10)) >= PORTS ||
			*behind != ',')
			err = -1;
		else
			err = rcd_dev_conf_set(
				&router->conf[port], "address", behind + 1, error, sizeof(error));
	}
	if (err != 0 || optind < argc)
		rte_exit(2, "%s\n", error);
}

int
main(int argc, char **argv)
{
	static struct router router;
	struct rcd_engine_conf conf;
	int used = rte_eal_init(argc, argv);

	if (used < 0)
		return 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGUSR1, on_signal);
	rcd_engine_conf_init(&conf);
	parse(&router, argc - used, argv + used, &conf);
	router.worker_count = (uint16_t)RTE_MAX(1u, rte_lcore_count() - 1);
	start_ports(&router);
	make(&router, &conf);
	run(&router);
	end(&router);
	return 0;
}
