/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: our nodes among DPDK's own in a graph take what is for the engine, and bring out what it
 * sends; every other packet goes on unchanged, in order, and all are counted; graphs on several
 * lcores do so side by side; what comes without a device, or without being bound, is told so.
 *
 * Method: a router of two ports of rings, each with two queues, and two graphs, of which each has
 * one queue of both; traffic of all kinds (mix.c) is put in, and what comes out is compared. The
 * test walks the graphs itself first, step by step, then two workers do.
 *
 *     ethdev_rx-P-Q ── rocade_classify-P ─┬─ pkt_cls ── ip4_lookup ── ip4_rewrite ── ethdev_tx-P
 *                                         └─ rocade_rx-P
 *     rocade_poll ──── rocade_tx-P ───────── ethdev_tx-P
 */
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_graph_worker.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_node_eth_api.h>
#include <rte_node_ip4_api.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "mix.h"
#include "rcd_counter.h"
#include "rcd_dev_conf.h"
#include "rcd_engine.h"
#include "rcd_inline.h"
#include "rcd_node.h"
#include "rcd_poll.h"
#include "rcd_tap.h"

#define BUFFERS 8191
#define BURST   256
#define SEED    20261125

struct walker {
	char name[16];
	struct rcd_lcore *lcore;
	struct rte_graph *graph;
};

static struct rte_mempool *pool;
static struct rcd_engine *engine;
static struct rcd_inline *devs[MIX_PORTS];
static struct walker walkers[MIX_QUEUES];
static struct mix mix;

/* rte_graph_cluster_stats by name: objects and cycles of one node. */
struct seen {
	const char *name;
	uint64_t objs, calls, cycles;
};

static int
see(bool first, bool last, void *cookie, const struct rte_graph_cluster_node_stats *stats)
{
	struct seen *seen = cookie;

	(void)first;
	(void)last;
	if (strcmp(stats->name, seen->name) == 0) {
		seen->objs = stats->objs;
		seen->calls = stats->calls;
		seen->cycles = stats->cycles;
	}
	return 0;
}

static struct seen
stats_of(const char *name)
{
	const char *pattern = "graph-*";
	struct seen seen = { .name = name };
	struct rte_graph_cluster_stats_param param = { .socket_id = SOCKET_ID_ANY,
		.fn = see,
		.cookie = &seen,
		.nb_graph_patterns = 1,
		.graph_patterns = &pattern };
	struct rte_graph_cluster_stats *stats = rte_graph_cluster_stats_create(&param);

	CU_ASSERT_PTR_NOT_NULL_FATAL(stats);
	rte_graph_cluster_stats_get(stats, false);
	rte_graph_cluster_stats_destroy(stats);
	return seen;
}

static uint64_t
objs_of(const char *name)
{
	return stats_of(name).objs;
}

static uint64_t
count_of(uint16_t port, enum rcd_counter counter)
{
	return rcd_engine_dev_count(engine, port == 0 ? "port0" : "port1", counter);
}

static struct rcd_inline *
create(uint16_t port)
{
	const uint8_t mac[] = MIX_MAC(port, false);
	struct rcd_dev_conf conf = { .mtu = 1500 };
	char error[256] = "", address[32];
	struct rcd_inline *dev;

	snprintf(conf.name, sizeof(conf.name), "port%u", port);
	snprintf(address, sizeof(address), "10.0.%u.1/24", port);
	memcpy(conf.mac, mac, sizeof(mac));
	CU_ASSERT_EQUAL_FATAL(rcd_dev_conf_set(&conf, "address", address, error, sizeof(error)), 0);
	dev = rcd_inline_create(engine, &conf, error, sizeof(error));
	if (dev == NULL)
		fprintf(stderr, "# %s\n", error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dev);
	return dev;
}

static rte_graph_t
create_graph(uint16_t index)
{
	const char *patterns[] = { index == 0 ? "ethdev_rx-?-0" : "ethdev_rx-?-1", "rocade_poll" };
	struct rte_graph_param param = { .socket_id = (int)rte_socket_id(),
		.nb_node_patterns = RTE_DIM(patterns),
		.node_patterns = patterns };

	return rte_graph_create(walkers[index].name, &param);
}

/* What a program is told that has it wrong. */
static void
refused(void)
{
	struct rcd_node_conf conf = { .dev = devs[0], .port_id = 0 };
	char name[RTE_GRAPH_NAMESIZE + 1];

	memset(name, 'x', sizeof(name));
	name[RTE_GRAPH_NAMESIZE] = '\0';
	CU_ASSERT_EQUAL(rcd_node_add(&(struct rcd_node_conf){ .port_id = 0 }), -EINVAL);
	CU_ASSERT_EQUAL(rcd_node_insert(0), -ENOENT);
	CU_ASSERT_EQUAL(rcd_node_del(0), -ENOENT);
	conf.others = "nowhere";
	CU_ASSERT_EQUAL(rcd_node_add(&conf), -ENODEV);
	conf.others = NULL;
	conf.sent = "nowhere";
	CU_ASSERT_EQUAL(rcd_node_add(&conf), -ENODEV);
	conf.sent = NULL;
	conf.port_id = 9;
	CU_ASSERT_EQUAL(rcd_node_add(&conf), -ENODEV);
	CU_ASSERT_EQUAL(rcd_node_insert(9), -ENOENT);
	CU_ASSERT_EQUAL(rcd_node_bind(name, walkers[0].lcore), -EINVAL);
	CU_ASSERT_EQUAL(rcd_node_bind("graph", NULL), -EINVAL);
	CU_ASSERT_EQUAL(rcd_node_unbind("graph"), -ENOENT);
}

/* A graph of nobody is not made: no node of ours would know its lcore. */
static void
bound(void)
{
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		struct rcd_node_conf conf = { .dev = devs[port], .port_id = port };

		CU_ASSERT_EQUAL_FATAL(rcd_node_add(&conf), 0);
		CU_ASSERT_EQUAL(rcd_node_add(&conf), -EEXIST);
		CU_ASSERT_EQUAL(rcd_node_insert(port), 0);
		CU_ASSERT_EQUAL(rcd_node_insert(port), 0);
	}
	CU_ASSERT_EQUAL(create_graph(0), RTE_GRAPH_ID_INVALID);
	for (uint16_t i = 0; i < MIX_QUEUES; i++) {
		CU_ASSERT_EQUAL(rcd_node_bind(walkers[i].name, walkers[i].lcore), 0);
		CU_ASSERT_EQUAL(rcd_node_bind(walkers[i].name, walkers[i].lcore), -EEXIST);
		CU_ASSERT_NOT_EQUAL_FATAL(create_graph(i), RTE_GRAPH_ID_INVALID);
		walkers[i].graph = rte_graph_lookup(walkers[i].name);
	}
}

/* The tables are there when a graph is. */
static void
routes(void)
{
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		struct rte_ether_hdr eth = { .dst_addr = { MIX_MAC(port, true) },
			.src_addr = { MIX_MAC(port, false) },
			.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4) };

		CU_ASSERT_EQUAL_FATAL(
			rte_node_ip4_rewrite_add(port, (uint8_t *)&eth, sizeof(eth), port), 0);
		CU_ASSERT_EQUAL_FATAL(rte_node_ip4_route_add(RTE_IPV4(10, 2, port, 0), 24, port,
					      RTE_NODE_IP4_LOOKUP_NEXT_REWRITE),
			0);
	}
}

/* What a graph holds is not taken from under it, nor given to it. */
static void
held(void)
{
	struct rcd_node_conf conf = { .dev = devs[0], .port_id = 9, .sent = "pkt_drop" };
	const char *pattern = "ethdev_rx-1-1";
	struct rte_graph_param param = {
		.socket_id = (int)rte_socket_id(), .nb_node_patterns = 1, .node_patterns = &pattern
	};

	for (uint16_t port = 0; port < MIX_PORTS; port++)
		CU_ASSERT_EQUAL(rcd_node_del(port), -EBUSY);
	CU_ASSERT_EQUAL(rcd_node_add(&conf), -EBUSY);
	for (uint16_t i = 0; i < MIX_QUEUES; i++)
		CU_ASSERT_EQUAL(rcd_node_unbind(walkers[i].name), -EBUSY);
	/* Without rocade_poll, too: of its own port alone. */
	for (uint16_t i = MIX_QUEUES; i-- > 0;)
		CU_ASSERT_EQUAL(rte_graph_destroy(rte_graph_from_name(walkers[i].name)), 0);
	CU_ASSERT_NOT_EQUAL(rte_graph_create(walkers[1].name, &param), RTE_GRAPH_ID_INVALID);
	CU_ASSERT_EQUAL(rcd_node_unbind(walkers[1].name), -EBUSY);
	CU_ASSERT_EQUAL(rcd_node_del(1), -EBUSY);
	CU_ASSERT_EQUAL(rcd_node_del(0), 0);
	conf = (struct rcd_node_conf){ .dev = devs[0], .port_id = 0 };
	CU_ASSERT_EQUAL(rcd_node_add(&conf), 0);
	CU_ASSERT_EQUAL(rte_graph_destroy(rte_graph_from_name(walkers[1].name)), 0);
	CU_ASSERT_EQUAL(rcd_node_del(1), 0);
	conf = (struct rcd_node_conf){ .dev = devs[1], .port_id = 1 };
	CU_ASSERT_EQUAL(rcd_node_add(&conf), 0);
	for (uint16_t i = 0; i < MIX_QUEUES; i++) {
		CU_ASSERT_EQUAL(rcd_node_unbind(walkers[i].name), 0);
		CU_ASSERT_EQUAL(rcd_node_bind(walkers[i].name, walkers[i].lcore), 0);
		CU_ASSERT_NOT_EQUAL_FATAL(create_graph(i), RTE_GRAPH_ID_INVALID);
		walkers[i].graph = rte_graph_lookup(walkers[i].name);
	}
}

/* So often that all that was put in is through, and answered. */
static void
walk(uint16_t queue)
{
	for (int i = 0; i < 40; i++)
		rte_graph_walk(walkers[queue].graph);
	rcd_engine_step(engine, 0);
	for (uint16_t port = 0; port < MIX_PORTS; port++)
		mix_get(&mix, port, queue);
}

/* All came out that had to, and nothing was lost or kept. */
static void
all_right(void)
{
	CU_ASSERT_EQUAL(mix_missing(&mix), 0);
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		const struct mix_count *put = &mix.put[port], *got = &mix.got[port];

		CU_ASSERT_EQUAL(put->wrong, 0);
		CU_ASSERT_EQUAL(got->wrong, 0);
		CU_ASSERT_EQUAL(got->arp, put->arp);
		CU_ASSERT_EQUAL(got->echo, put->echo);
		CU_ASSERT_EQUAL(count_of(port, RCD_COUNTER_RX_ROCE), put->roce);
		CU_ASSERT_EQUAL(count_of(port, RCD_COUNTER_RX_PACKETS),
			put->roce + put->arp + put->echo + put->groups);
		CU_ASSERT_EQUAL(count_of(port, RCD_COUNTER_RX_DROP_FED), 0);
	}
	CU_ASSERT_EQUAL(
		mix.got[0].routed + mix.got[1].routed, mix.put[0].routed + mix.put[1].routed);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

/* Bursts of one kind and of every length: a whole stream goes one way. */
static void
one_kind(void)
{
	static const enum mix_kind kinds[] = { MIX_OTHERS, MIX_ROCE };

	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		for (uint32_t count = 1; count <= BURST; count += count < 16 ? 1 : 48) {
			mix_put(&mix, (uint16_t)(count % 2), 0, kinds[i], count);
			walk(0);
		}
		all_right();
	}
	CU_ASSERT(mix.put[0].routed > 0 && mix.put[0].roce > 0);
}

/* Bursts of everything, by both ports. */
static void
every_kind(void)
{
	for (int round = 0; round < 150; round++) {
		mix_put(&mix, 0, 0, MIX_ANY, 1 + (uint32_t)round * 7 % BURST);
		mix_put(&mix, 1, 0, MIX_ANY, (uint32_t)round * 11 % 64);
		walk(0);
	}
	all_right();
}

/* Walk by walk more than an lcore takes in a round, and than it has room for in all. */
static void
bursts_of_roce(void)
{
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 8; i++) {
			mix_put(&mix, 0, 0, MIX_ROCE, BURST);
			rte_graph_walk(walkers[0].graph);
		}
		walk(0);
	}
	all_right();
}

/* The statistics of the cluster have our nodes, and what went through each. */
static void
counted(void)
{
	static const char *const classify[] = { "rocade_classify-0", "rocade_classify-1" };
	static const char *const rx[] = { "rocade_rx-0", "rocade_rx-1" };
	static const char *const tx[] = { "rocade_tx-0", "rocade_tx-1" };
	static const char *const sent[] = { "ethdev_tx-0", "ethdev_tx-1" };
	uint64_t others = 0, dropped = 0, all = 0, ours = 0;
	struct seen seen;

	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		const struct mix_count *put = &mix.put[port], *got = &mix.got[port];

		CU_ASSERT_EQUAL(objs_of(classify[port]), put->all);
		CU_ASSERT_EQUAL(objs_of(rx[port]), put->roce + put->arp + put->echo);
		CU_ASSERT_EQUAL(objs_of(tx[port]), put->arp + put->echo);
		CU_ASSERT_EQUAL(objs_of(sent[port]), got->arp + got->echo + got->routed);
		others += put->routed + put->dropped;
		dropped += put->dropped;
		all += put->all;
		ours += put->roce + put->arp + put->echo + put->groups;
	}
	CU_ASSERT_EQUAL(objs_of("pkt_cls"), others);
	CU_ASSERT_EQUAL(objs_of("pkt_drop"), dropped);
	CU_ASSERT_EQUAL(all, mix.number);
	seen = stats_of("rocade_poll");
	/* Received, and commands of the control thread. */
	CU_ASSERT(seen.objs >= ours && seen.objs < ours + 1000);
	CU_ASSERT(seen.calls > 1000);
	seen = stats_of("rocade_classify-0");
	printf("# classify: %.1f cycles a packet\n", (double)seen.cycles / (double)seen.objs);
}

static int
loop(void *arg)
{
	struct walker *walker = arg;

	while (!rcd_lcore_stopping(walker->lcore)) {
		rte_graph_walk(walker->graph);
		sched_yield();
	}
	return 0;
}

static void
note_lcore(void *arg)
{
	*(uint64_t *)arg |= UINT64_C(1) << rte_lcore_id();
}

static uint64_t
answers_missing(void)
{
	uint64_t missing = 0;

	for (uint16_t port = 0; port < MIX_PORTS; port++)
		missing += mix.put[port].arp + mix.put[port].echo - mix.got[port].arp -
			mix.got[port].echo;
	return missing;
}

/* Both graphs on lcores of their own, each fed by one queue of both ports. */
static void
side_by_side(void)
{
	uint64_t limit = rte_get_timer_cycles() + 20 * rte_get_timer_hz();
	struct seen before = stats_of("rocade_classify-1");
	uint64_t lcores = 0;

	for (uint16_t i = 0; i < MIX_QUEUES; i++)
		CU_ASSERT_EQUAL_FATAL(rcd_engine_launch(engine, i, loop, &walkers[i]), 0);
	for (int round = 0; round < 400; round++) {
		uint32_t moved = 0;

		for (uint32_t i = 0; i < MIX_PORTS * MIX_QUEUES; i++)
			mix_put(&mix, i % MIX_PORTS, i / MIX_PORTS, MIX_ANY, 32);
		do {
			for (uint32_t i = 0; i < MIX_PORTS * MIX_QUEUES; i++)
				moved += mix_get(&mix, i % MIX_PORTS, i / MIX_PORTS);
			rcd_engine_step(engine, 0);
			sched_yield();
		} while ((mix_missing(&mix) > 0 || answers_missing() > 0) &&
			mix.got[0].wrong + mix.got[1].wrong == 0 && rte_get_timer_cycles() < limit);
		CU_ASSERT(moved > 0);
	}
	rcd_engine_each_lcore(engine, note_lcore, &lcores);
	CU_ASSERT_EQUAL(lcores, 1 << 1 | 1 << 2);
	rcd_engine_end_loops(engine);
	for (uint16_t queue = 0; queue < MIX_QUEUES; queue++)
		walk(queue);
	all_right();
	CU_ASSERT(objs_of("rocade_classify-1") > before.objs + 10000);
	for (uint16_t i = 0; i < MIX_QUEUES; i++)
		CU_ASSERT(rte_graph_node_get_by_name(walkers[i].name, "rocade_rx-0")->total_objs >
			1000);
}

/* The engine's device goes, and the graph stays: all that comes is others'. */
static void
engine_has_no_device(void)
{
	uint64_t dropped = objs_of("pkt_drop");

	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "port0"), 0);
	mix_put(&mix, 0, 0, MIX_ROCE, 50);
	for (int i = 0; i < 10; i++)
		rte_graph_walk(walkers[0].graph);
	CU_ASSERT_EQUAL(objs_of("pkt_drop"), dropped + 50);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

/* Nodes may have another device in other graphs, or none. */
static void
again(void)
{
	uint64_t dropped;

	for (uint16_t i = 0; i < MIX_QUEUES; i++) {
		CU_ASSERT_EQUAL(rte_graph_destroy(rte_graph_from_name(walkers[i].name)), 0);
		CU_ASSERT_EQUAL(rcd_node_unbind(walkers[i].name), 0);
	}
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		CU_ASSERT_EQUAL(rcd_node_del(port), 0);
		rcd_inline_destroy(devs[port]);
		devs[port] = NULL;
	}
	devs[0] = create(0);
	CU_ASSERT_EQUAL(
		rcd_node_add(&(struct rcd_node_conf){ .dev = devs[0], .others = "pkt_drop" }), 0);
	CU_ASSERT_EQUAL(rcd_node_bind("graph-0", walkers[0].lcore), 0);
	CU_ASSERT_NOT_EQUAL_FATAL(create_graph(0), RTE_GRAPH_ID_INVALID);
	walkers[0].graph = rte_graph_lookup("graph-0");
	mix_put(&mix, 0, 0, MIX_ROCE, 50);
	mix_put(&mix, 0, 0, MIX_OTHERS, 60);
	mix_put(&mix, 1, 0, MIX_ROCE, 70);
	for (int i = 0; i < 10; i++)
		rte_graph_walk(walkers[0].graph);
	dropped = objs_of("pkt_drop");
	CU_ASSERT_EQUAL(count_of(0, RCD_COUNTER_RX_ROCE), 50);
	CU_ASSERT_EQUAL(objs_of("rocade_rx-0"), 50);
	CU_ASSERT_EQUAL(objs_of("rocade_rx-1"), 0);
	/* Of port 0 by its own edge; of port 1, which has no device, for want of a route. */
	CU_ASSERT_EQUAL(dropped, 60 + 70);
	CU_ASSERT_EQUAL(objs_of("pkt_cls"), 70);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static int
make_port(uint16_t port)
{
	struct rte_eth_conf conf = { .rxmode.mq_mode = RTE_ETH_MQ_RX_NONE };
	char name[16];
	int made;

	snprintf(name, sizeof(name), "mix%u", port);
	made = rte_eth_from_rings(
		name, mix.in[port], MIX_QUEUES, mix.out[port], MIX_QUEUES, SOCKET_ID_ANY);
	if (made != port || rte_eth_dev_configure(port, MIX_QUEUES, MIX_QUEUES, &conf) != 0)
		return -1;
	for (uint16_t i = 0; i < MIX_QUEUES; i++)
		if (rte_eth_rx_queue_setup(port, i, 512, SOCKET_ID_ANY, NULL, pool) != 0 ||
			rte_eth_tx_queue_setup(port, i, 512, SOCKET_ID_ANY, NULL) != 0)
			return -1;
	return rte_eth_dev_start(port);
}

static int
begin(void)
{
	static char args[][24] = { "test_graph", "--no-huge", "-m", "256", "--no-shconf",
		"--no-pci", "--no-telemetry", "--log-level=1", "--lcores", "(0-2)@(0-1)" };
	struct rte_node_ethdev_config ports[MIX_PORTS];
	char *argv[RTE_DIM(args)], error[256] = "";
	struct rcd_engine_conf conf;

	for (size_t i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	if (rte_eal_init((int)RTE_DIM(args), argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("packets", BUFFERS, 0, 0, 1024, SOCKET_ID_ANY);
	if (pool == NULL || mix_init(&mix, pool, SEED) != 0)
		return -1;
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		if (make_port(port) != 0)
			return -1;
		ports[port] = (struct rte_node_ethdev_config){
			.port_id = port, .num_rx_queues = MIX_QUEUES, .num_tx_queues = MIX_QUEUES
		};
	}
	if (rte_node_eth_config(ports, MIX_PORTS, MIX_QUEUES) != 0)
		return -1;
	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = 4095;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	if (engine == NULL || rcd_engine_lcore_count(engine) != MIX_QUEUES) {
		fprintf(stderr, "# %s\n", error);
		return -1;
	}
	for (uint16_t i = 0; i < MIX_QUEUES; i++) {
		snprintf(walkers[i].name, sizeof(walkers[i].name), "graph-%u", i);
		walkers[i].lcore = rcd_engine_lcore(engine, i);
	}
	return 0;
}

static void
made(void)
{
	for (uint16_t port = 0; port < MIX_PORTS; port++)
		devs[port] = create(port);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(made),
		RCD_TEST(refused),
		RCD_TEST(bound),
		RCD_TEST(held),
		RCD_TEST(routes),
		RCD_TEST(one_kind),
		RCD_TEST(every_kind),
		RCD_TEST(bursts_of_roce),
		RCD_TEST(counted),
		RCD_TEST(side_by_side),
		RCD_TEST(engine_has_no_device),
		RCD_TEST(again),
	};
	int status;

	if (begin() != 0)
		return 1;
	status = rcd_tap_run("graph", tests, RTE_DIM(tests));
	for (uint16_t i = 0; i < MIX_QUEUES; i++)
		rte_graph_destroy(rte_graph_from_name(walkers[i].name));
	for (uint16_t port = 0; port < MIX_PORTS; port++)
		rcd_inline_destroy(devs[port]);
	rcd_engine_destroy(engine);
	return status;
}
