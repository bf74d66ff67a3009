/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Nodes of completion queues. What they give away has to lie somewhere while the graph is walked:
 * rings of completion queues are written to when their consumer has moved on.
 */
#include "rcd_node_cq.h"

#include <assert.h>
#include <errno.h>
#include <rte_branch_prediction.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <rte_malloc.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "rcd_cq_slot.h"
#include "rcd_lcore_ctl.h"
#include "rcd_local_object.h"
#include "rcd_node_graph.h"

/** A completion queue, and what was taken from it in this walk. */
struct node_cq {
	struct rcd_cq_slot slots[RTE_GRAPH_BURST_SIZE];
	struct rcd_local_cq *cq;
	rte_node_t node;
	LIST_ENTRY(node_cq) link;
};

/** What is in rte_node's ctx. */
struct node_cq_ctx {
	struct node_cq *of; /**< NULL: none, when the graph was created */
};

static_assert(sizeof(struct node_cq_ctx) <= RTE_NODE_CTX_SZ, "a node has no more room");

static LIST_HEAD(, node_cq) node_cqs = LIST_HEAD_INITIALIZER(node_cqs);

static uint16_t
node_cq_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t count)
{
	struct node_cq *of = ((struct node_cq_ctx *)(void *)node->ctx)->of;
	int taken;

	(void)objs;
	(void)count;
	if (unlikely(of == NULL))
		return 0;
	taken = rcd_local_poll_cq(of->cq, of->slots, RTE_GRAPH_BURST_SIZE);
	if (taken <= 0)
		return 0;
	objs = rte_node_next_stream_get(graph, node, 0, (uint16_t)taken);
	for (int i = 0; i < taken; i++)
		objs[i] = &of->slots[i];
	rte_node_next_stream_put(graph, node, 0, (uint16_t)taken);
	return (uint16_t)taken;
}

static struct node_cq *
node_cq_find(rte_node_t node)
{
	struct node_cq *of;

	LIST_FOREACH(of, &node_cqs, link)
		if (of->node == node)
			return of;
	return NULL;
}

/* For rte_graph_create(). */
static int
node_cq_init(const struct rte_graph *graph, struct rte_node *node)
{
	const struct rcd_lcore *lcore = rcd_node_graph_lcore(graph->name);
	struct node_cq *of = node_cq_find(node->id);

	if (lcore == NULL)
		return -ENOENT;
	if (of != NULL && rcd_lcore_index(lcore) != rcd_local_cq_lcore(of->cq))
		return -EXDEV;
	((struct node_cq_ctx *)(void *)node->ctx)->of = of;
	return 0;
}

static struct rte_node_register node_cq_reg = {
	.name = "rocade_cq",
	.flags = RTE_NODE_SOURCE_F,
	.process = node_cq_process,
	.init = node_cq_init,
	.nb_edges = 1,
	/* Clones have another one, and this has nothing to give. */
	.next_nodes = { "rocade_rx" },
};

RTE_NODE_REGISTER(node_cq_reg)

static bool
node_cq_is_known(const struct rcd_local_cq *cq)
{
	const struct node_cq *of;

	LIST_FOREACH(of, &node_cqs, link)
		if (of->cq == cq)
			return true;
	return false;
}

static int
node_cq_check(const struct rcd_node_cq_conf *conf)
{
	char full[RTE_NODE_NAMESIZE];
	rte_node_t node;

	if (conf->cq == NULL || conf->name == NULL || conf->next == NULL ||
		!rcd_node_graph_name(&node_cq_reg, conf->name, full))
		return -EINVAL;
	node = rte_node_from_name(full);
	if (node_cq_is_known(conf->cq) || node_cq_find(node) != NULL)
		return -EEXIST;
	return node != RTE_NODE_ID_INVALID && rcd_node_graph_any_has(node) ? -EBUSY : 0;
}

int
rcd_node_cq_add(const struct rcd_node_cq_conf *conf)
{
	struct node_cq *of;
	int err = node_cq_check(conf);

	if (err != 0)
		return err;
	of = rte_zmalloc("rocade_cq", sizeof(*of), RTE_CACHE_LINE_SIZE);
	if (of == NULL)
		return -ENOMEM;
	of->cq = conf->cq;
	of->node = rcd_node_graph_clone(&node_cq_reg, conf->name);
	err = of->node != RTE_NODE_ID_INVALID ? rcd_node_graph_set_edge(of->node, 0, conf->next)
					      : -ENOMEM;
	if (err != 0) {
		rte_free(of);
		return err;
	}
	conf->cq->users++;
	LIST_INSERT_HEAD(&node_cqs, of, link);
	return 0;
}

int
rcd_node_cq_del(const char *name)
{
	char full[RTE_NODE_NAMESIZE];
	struct node_cq *of = rcd_node_graph_name(&node_cq_reg, name, full)
		? node_cq_find(rte_node_from_name(full))
		: NULL;

	if (of == NULL)
		return -ENOENT;
	if (rcd_node_graph_any_has(of->node))
		return -EBUSY;
	of->cq->users--;
	LIST_REMOVE(of, link);
	rte_free(of);
	return 0;
}
