/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Nodes of devices, and the lcore's. One file: who calls any function of it has the nodes
 * registered, in a static library too.
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
#include "rcd_node_graph.h"
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

/** What is in rte_node's ctx. */
struct node_ctx {
	struct rcd_inline *dev; /**< NULL: of none, or rocade_poll's */
	struct rcd_lcore *lcore;
};

static_assert(sizeof(struct node_ctx) <= RTE_NODE_CTX_SZ, "a node has no more room");

/*
 * To rocade_tx of the port in place i rocade_poll has the edge NODE_POLL_FIRST + i. The one before
 * is for graphs without devices: a source needs one, and DPDK's own nodes may not be there.
 */
#define NODE_POLL_FIRST 1
static struct node_port node_ports[RTE_MAX_ETHPORTS];
static uint16_t node_port_count;

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

/* For rte_graph_create(). One that has no port by its number has no device. */
static int
node_init(const struct rte_graph *graph, struct rte_node *node)
{
	struct node_ctx *ctx = node_ctx(node);

	ctx->lcore = rcd_node_graph_lcore(graph->name);
	if (ctx->lcore == NULL)
		return -ENOENT;
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
	.next_nodes = { "rocade_rx" },
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

/* Whether any graph would see a device come or go. @param port  NULL: it has no nodes yet */
static bool
node_port_is_held(const struct node_port *port)
{
	return rcd_node_graph_any_has(node_reg_poll.id) ||
		(port != NULL &&
			(rcd_node_graph_any_has(port->classify) ||
				rcd_node_graph_any_has(port->rx)));
}

static int
node_make(struct node_port *port)
{
	char name[RTE_NODE_NAMESIZE], number[8];
	int err;

	snprintf(number, sizeof(number), "%u", port->port_id);
	port->classify = rcd_node_graph_clone(&node_reg_classify, number);
	port->rx = rcd_node_graph_clone(&node_reg_rx, number);
	port->tx = rcd_node_graph_clone(&node_reg_tx, number);
	if (port->classify == RTE_NODE_ID_INVALID || port->rx == RTE_NODE_ID_INVALID ||
		port->tx == RTE_NODE_ID_INVALID)
		return -ENOMEM;
	snprintf(name, sizeof(name), "rocade_rx-%u", port->port_id);
	err = rcd_node_graph_set_edge(port->classify, NODE_CLASSIFY_OURS, name);
	if (err != 0)
		return err;
	snprintf(name, sizeof(name), "rocade_tx-%u", port->port_id);
	return rcd_node_graph_set_edge(node_reg_poll.id, NODE_POLL_FIRST + node_port_count, name);
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
	const char *others = conf->others != NULL ? conf->others : "pkt_cls";
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
	/* Or the nodes of a port would be left behind, with edges to what is not there. */
	if (rte_node_from_name(others) == RTE_NODE_ID_INVALID ||
		rte_node_from_name(sent) == RTE_NODE_ID_INVALID)
		return -ENODEV;
	err = node_find_or_make(conf->port_id, &port);
	if (err != 0)
		return err;
	err = rcd_node_graph_set_edge(port->classify, NODE_CLASSIFY_OTHERS, others);
	if (err == 0)
		err = rcd_node_graph_set_edge(port->tx, 0, sent);
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
			return rcd_node_graph_set_edge(node, edge, by);
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
	return rcd_node_graph_bind(graph, lcore);
}

int
rcd_node_unbind(const char *graph)
{
	return rcd_node_graph_unbind(graph);
}
