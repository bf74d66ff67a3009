/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Nodes of graphs, and which devices and lcores are theirs. One file: who calls any function of it
 * has the nodes registered, in a static library too.
 */
#include "rcd_node.h"

#include <assert.h>
#include <errno.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <string.h>

#include "rcd_clock.h"
#include "rcd_inline.h"
#include "rcd_poll.h"

#define NODE_BUDGET 64 /**< packets that an lcore receives in a round */
#define NODE_ROUNDS 4 /**< in a walk, at most: as many packets as a node of a port receives in it */

static_assert(NODE_BUDGET * NODE_ROUNDS >= RTE_GRAPH_BURST_SIZE, "or packets pile up");

/** Edges of rocade_classify. */
enum node_classify_next {
	NODE_CLASSIFY_OTHERS,
	NODE_CLASSIFY_OURS,
	NODE_CLASSIFY_NEXTS,
};

/** A device's nodes. */
struct node_port {
	struct rcd_inline *dev; /**< NULL: none now */
	uint16_t port_id;
	rte_node_t classify, rx, tx;
};

struct node_graph {
	char name[RTE_GRAPH_NAMESIZE];
	struct rcd_lcore *lcore; /**< NULL: this place is free */
};

/** What is in rte_node's ctx. */
struct node_ctx {
	struct rcd_inline *dev; /**< NULL: of none, or rocade_poll's */
	struct rcd_lcore *lcore;
};

static_assert(sizeof(struct node_ctx) <= RTE_NODE_CTX_SZ, "a node has no more room");

/*
 * To rocade_tx of the port in place i rocade_poll has the edge NODE_POLL_FIRST + i. The one before
 * is for graphs without devices: a source needs one.
 */
#define NODE_POLL_FIRST 1
static struct node_port node_ports[RTE_MAX_ETHPORTS];
static uint16_t node_port_count;
static struct node_graph node_graphs[RCD_NODE_GRAPHS];

static __rte_always_inline struct node_ctx *
node_ctx(struct rte_node *node)
{
	return (struct node_ctx *)(void *)node->ctx;
}

/* All go one way, without being copied. */
static __rte_always_inline void
node_move(struct rte_graph *graph, struct rte_node *node, rte_edge_t next, uint16_t count)
{
	node->idx = count;
	rte_node_next_stream_move(graph, node, next);
}

static uint16_t
node_classify(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t count)
{
	const struct node_ctx *ctx = node_ctx(node);
	uint16_t left = count;

	if (likely(ctx->dev != NULL)) {
		void **ours = rte_node_next_stream_get(graph, node, NODE_CLASSIFY_OURS, count);

		left = rcd_inline_split(ctx->dev, ctx->lcore, (struct rte_mbuf **)objs, count,
			(struct rte_mbuf **)ours);
		rte_node_next_stream_put(graph, node, NODE_CLASSIFY_OURS, count - left);
	}
	if (likely(left > 0))
		node_move(graph, node, NODE_CLASSIFY_OTHERS, left);
	return count;
}

static uint16_t
node_rx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t count)
{
	const struct node_ctx *ctx = node_ctx(node);

	(void)graph;
	if (likely(ctx->dev != NULL))
		rcd_inline_give(ctx->dev, ctx->lcore, (struct rte_mbuf **)objs, count);
	else
		rte_pktmbuf_free_bulk((struct rte_mbuf **)objs, count);
	return count;
}

static uint16_t
node_tx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t count)
{
	(void)objs;
	node_move(graph, node, 0, count);
	return count;
}

static void
node_bring_out(struct rte_graph *graph, struct rte_node *node, rte_edge_t edge)
{
	struct rcd_inline *dev = node_ports[edge - NODE_POLL_FIRST].dev;
	void **objs;

	if (unlikely(dev == NULL))
		return;
	objs = rte_node_next_stream_get(graph, node, edge, RTE_GRAPH_BURST_SIZE);
	rte_node_next_stream_put(graph, node, edge,
		rcd_inline_tx(dev, node_ctx(node)->lcore, (struct rte_mbuf **)objs,
			RTE_GRAPH_BURST_SIZE));
}

/* Packets, doorbells, timers and commands are its objects. */
static uint16_t
node_poll(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t count)
{
	struct rcd_lcore *lcore = node_ctx(node)->lcore;
	uint32_t done, sum = 0;

	(void)objs;
	(void)count;
	for (int i = 0; i < NODE_ROUNDS; i++) {
		done = rcd_lcore_poll(lcore, rcd_clock_ns(), NODE_BUDGET);
		sum += done;
		if (done == 0)
			break;
	}
	for (rte_edge_t edge = NODE_POLL_FIRST; edge < node->nb_edges; edge++)
		node_bring_out(graph, node, edge);
	return (uint16_t)RTE_MIN(sum, UINT16_MAX);
}

static struct node_graph *
node_find_graph(const char *name)
{
	for (uint32_t i = 0; i < RCD_NODE_GRAPHS; i++)
		if (node_graphs[i].lcore != NULL && strcmp(node_graphs[i].name, name) == 0)
			return &node_graphs[i];
	return NULL;
}

/* For rte_graph_create(). One that has no port by its number has no device. */
static int
node_init(const struct rte_graph *graph, struct rte_node *node)
{
	const struct node_graph *bound = node_find_graph(graph->name);
	struct node_ctx *ctx = node_ctx(node);

	if (bound == NULL)
		return -ENOENT;
	ctx->lcore = bound->lcore;
	ctx->dev = NULL;
	for (uint16_t i = 0; i < node_port_count; i++)
		if (node_ports[i].classify == node->id || node_ports[i].rx == node->id)
			ctx->dev = node_ports[i].dev;
	return 0;
}

static struct rte_node_register node_reg_classify = {
	.name = "rocade_classify",
	.process = node_classify,
	.init = node_init,
	.nb_edges = NODE_CLASSIFY_NEXTS,
	.next_nodes = {
		[NODE_CLASSIFY_OTHERS] = "pkt_cls",
		[NODE_CLASSIFY_OURS] = "rocade_rx",
	},
};

static struct rte_node_register node_reg_rx = {
	.name = "rocade_rx",
	.process = node_rx,
	.init = node_init,
};

static struct rte_node_register node_reg_tx = {
	.name = "rocade_tx",
	.process = node_tx,
	.nb_edges = 1,
	.next_nodes = { "pkt_drop" },
};

static struct rte_node_register node_reg_poll = {
	.name = "rocade_poll",
	.flags = RTE_NODE_SOURCE_F,
	.process = node_poll,
	.init = node_init,
	.nb_edges = NODE_POLL_FIRST,
	.next_nodes = { "pkt_drop" },
};

RTE_NODE_REGISTER(node_reg_classify)
RTE_NODE_REGISTER(node_reg_rx)
RTE_NODE_REGISTER(node_reg_tx)
RTE_NODE_REGISTER(node_reg_poll)

static struct node_port *
node_find_port(uint16_t port_id)
{
	for (uint16_t i = 0; i < node_port_count; i++)
		if (node_ports[i].port_id == port_id)
			return &node_ports[i];
	return NULL;
}

static bool
node_is_in(const char *graph, rte_node_t node)
{
	const char *name = rte_node_id_to_name(node);

	return name != NULL && rte_graph_node_get_by_name(graph, name) != NULL;
}

/* Whether a graph has what a device's nodes are looked up for, when it is created. */
static bool
node_has_port(const char *graph, const struct node_port *port)
{
	return node_is_in(graph, port->classify) || node_is_in(graph, port->rx);
}

/* Graphs are asked by their names: numbers are given twice. */
static bool
node_is_held(const char *graph)
{
	if (node_is_in(graph, node_reg_poll.id) || node_is_in(graph, node_reg_classify.id) ||
		node_is_in(graph, node_reg_rx.id))
		return true;
	for (uint16_t i = 0; i < node_port_count; i++)
		if (node_has_port(graph, &node_ports[i]))
			return true;
	return false;
}

/* Whether any graph would see a device come or go. @param port  NULL: it has no nodes yet */
static bool
node_port_is_held(const struct node_port *port)
{
	for (uint32_t i = 0; i < RCD_NODE_GRAPHS; i++) {
		const char *graph = node_graphs[i].name;

		if (node_graphs[i].lcore == NULL)
			continue;
		if (node_is_in(graph, node_reg_poll.id) ||
			(port != NULL && node_has_port(graph, port)))
			return true;
	}
	return false;
}

/* @return 0 or -errno */
static int
node_set_edge(rte_node_t node, rte_edge_t edge, const char *next)
{
	if (strlen(next) >= RTE_NODE_NAMESIZE)
		return -EINVAL;
	if (rte_node_from_name(next) == RTE_NODE_ID_INVALID)
		return -ENODEV;
	return rte_node_edge_update(node, edge, &next, 1) == 1 ? 0 : -ENOMEM;
}

/* One that a port had before is found again. */
static rte_node_t
node_clone(const struct rte_node_register *base, uint16_t port_id)
{
	char name[RTE_NODE_NAMESIZE + 8], number[8];
	rte_node_t node;

	snprintf(number, sizeof(number), "%u", port_id);
	snprintf(name, sizeof(name), "%s-%s", base->name, number);
	node = rte_node_from_name(name);
	return node != RTE_NODE_ID_INVALID ? node : rte_node_clone(base->id, number);
}

static int
node_make(struct node_port *port)
{
	char name[RTE_NODE_NAMESIZE];
	int err;

	port->classify = node_clone(&node_reg_classify, port->port_id);
	port->rx = node_clone(&node_reg_rx, port->port_id);
	port->tx = node_clone(&node_reg_tx, port->port_id);
	if (port->classify == RTE_NODE_ID_INVALID || port->rx == RTE_NODE_ID_INVALID ||
		port->tx == RTE_NODE_ID_INVALID)
		return -ENOMEM;
	snprintf(name, sizeof(name), "rocade_rx-%u", port->port_id);
	err = node_set_edge(port->classify, NODE_CLASSIFY_OURS, name);
	if (err != 0)
		return err;
	snprintf(name, sizeof(name), "rocade_tx-%u", port->port_id);
	return node_set_edge(node_reg_poll.id, NODE_POLL_FIRST + node_port_count, name);
}

/* The place of a port, with its nodes. */
static int
node_find_or_make(uint16_t port_id, struct node_port **port)
{
	int err;

	*port = node_find_port(port_id);
	if (*port != NULL && (*port)->dev != NULL)
		return -EEXIST;
	if (node_port_is_held(*port))
		return -EBUSY;
	if (*port != NULL)
		return 0;
	if (node_port_count == RTE_DIM(node_ports))
		return -ENOSPC;
	*port = &node_ports[node_port_count];
	(*port)->port_id = port_id;
	err = node_make(*port);
	if (err == 0)
		node_port_count++;
	return err;
}

int
rcd_node_add(const struct rcd_node_conf *conf)
{
	const char *sent = conf->sent;
	char name[RTE_NODE_NAMESIZE];
	struct node_port *port;
	int err;

	if (conf->dev == NULL)
		return -EINVAL;
	if (sent == NULL) {
		snprintf(name, sizeof(name), "ethdev_tx-%u", conf->port_id);
		sent = name;
	}
	err = node_find_or_make(conf->port_id, &port);
	if (err != 0)
		return err;
	err = node_set_edge(port->classify, NODE_CLASSIFY_OTHERS,
		conf->others != NULL ? conf->others : "pkt_cls");
	if (err == 0)
		err = node_set_edge(port->tx, 0, sent);
	if (err == 0)
		port->dev = conf->dev;
	return err;
}

int
rcd_node_del(uint16_t port_id)
{
	struct node_port *port = node_find_port(port_id);

	if (port == NULL || port->dev == NULL)
		return -ENOENT;
	if (node_port_is_held(port))
		return -EBUSY;
	port->dev = NULL;
	return 0;
}

/* In the place of pkt_cls, if it is among the next ones. */
static int
node_replace(rte_node_t node, const char *by)
{
	char *nexts[UINT8_MAX];
	rte_edge_t count = rte_node_edge_count(node);

	if (count > RTE_DIM(nexts) || rte_node_edge_get(node, nexts) != count)
		return -ENODEV;
	for (rte_edge_t edge = 0; edge < count; edge++)
		if (strcmp(nexts[edge], "pkt_cls") == 0)
			return node_set_edge(node, edge, by);
	return 0;
}

int
rcd_node_insert(uint16_t port_id)
{
	char name[RTE_NODE_NAMESIZE], by[RTE_NODE_NAMESIZE];
	const struct node_port *port = node_find_port(port_id);
	int err = port != NULL && port->dev != NULL ? -ENODEV : -ENOENT;

	if (err == -ENOENT)
		return err;
	snprintf(by, sizeof(by), "rocade_classify-%u", port_id);
	for (uint32_t queue = 0;; queue++) {
		rte_node_t node;

		snprintf(name, sizeof(name), "ethdev_rx-%u-%u", port_id, queue);
		node = rte_node_from_name(name);
		if (node == RTE_NODE_ID_INVALID)
			return err;
		err = node_replace(node, by);
		if (err != 0)
			return err;
	}
}

int
rcd_node_bind(const char *graph, struct rcd_lcore *lcore)
{
	if (lcore == NULL || strlen(graph) >= RTE_GRAPH_NAMESIZE)
		return -EINVAL;
	if (node_find_graph(graph) != NULL)
		return -EEXIST;
	for (uint32_t i = 0; i < RCD_NODE_GRAPHS; i++) {
		if (node_graphs[i].lcore != NULL)
			continue;
		snprintf(node_graphs[i].name, sizeof(node_graphs[i].name), "%s", graph);
		node_graphs[i].lcore = lcore;
		return 0;
	}
	return -ENOSPC;
}

int
rcd_node_unbind(const char *graph)
{
	struct node_graph *bound = node_find_graph(graph);

	if (bound == NULL)
		return -ENOENT;
	if (node_is_held(graph))
		return -EBUSY;
	bound->lcore = NULL;
	return 0;
}
