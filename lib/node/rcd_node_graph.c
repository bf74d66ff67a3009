/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Graphs that are bound to lcores, and what is asked of rte_graph for nodes of any kind.
 */
#include "rcd_node_graph.h"

#include <errno.h>
#include <rte_common.h>
#include <stdio.h>
#include <string.h>

#include "rcd_node.h"

#define GRAPH_OURS "rocade_" /**< with which names of our nodes begin, and of no others */

struct node_graph {
	char name[RTE_GRAPH_NAMESIZE];
	struct rcd_lcore *lcore; /**< NULL: this place is free */
};

static struct node_graph node_graphs[RCD_NODE_GRAPHS];

static struct node_graph *
node_graph_find(const char *name)
{
	for (uint32_t i = 0; i < RCD_NODE_GRAPHS; i++)
		if (node_graphs[i].lcore != NULL && strcmp(node_graphs[i].name, name) == 0)
			return &node_graphs[i];
	return NULL;
}

/* Graphs are asked by their names: numbers are given twice. */
static bool
node_graph_has(const char *graph, rte_node_t node)
{
	const char *name = rte_node_id_to_name(node);

	return name != NULL && rte_graph_node_get_by_name(graph, name) != NULL;
}

/* Whether a graph, which may be no more, has any node that was told its lcore. */
static bool
node_graph_has_ours(const char *graph)
{
	for (rte_node_t node = 0; node < rte_node_max_count(); node++) {
		const char *name = rte_node_id_to_name(node);

		if (name != NULL && strncmp(name, GRAPH_OURS, strlen(GRAPH_OURS)) == 0 &&
			node_graph_has(graph, node))
			return true;
	}
	return false;
}

struct rcd_lcore *
rcd_node_graph_lcore(const char *graph)
{
	const struct node_graph *bound = node_graph_find(graph);

	return bound != NULL ? bound->lcore : NULL;
}

bool
rcd_node_graph_any_has(rte_node_t node)
{
	for (uint32_t i = 0; i < RCD_NODE_GRAPHS; i++)
		if (node_graphs[i].lcore != NULL && node_graph_has(node_graphs[i].name, node))
			return true;
	return false;
}

bool
rcd_node_graph_name(
	const struct rte_node_register *base, const char *name, char full[RTE_NODE_NAMESIZE])
{
	int len = snprintf(full, RTE_NODE_NAMESIZE, "%s-%s", base->name, name);

	return name[0] != '\0' && len < RTE_NODE_NAMESIZE;
}

rte_node_t
rcd_node_graph_clone(const struct rte_node_register *base, const char *name)
{
	char full[RTE_NODE_NAMESIZE];
	rte_node_t node;

	if (!rcd_node_graph_name(base, name, full))
		return RTE_NODE_ID_INVALID;
	node = rte_node_from_name(full);
	return node != RTE_NODE_ID_INVALID ? node : rte_node_clone(base->id, name);
}

int
rcd_node_graph_set_edge(rte_node_t node, rte_edge_t edge, const char *next)
{
	if (strlen(next) >= RTE_NODE_NAMESIZE)
		return -EINVAL;
	if (rte_node_from_name(next) == RTE_NODE_ID_INVALID)
		return -ENODEV;
	return rte_node_edge_update(node, edge, &next, 1) == 1 ? 0 : -ENOMEM;
}

int
rcd_node_graph_bind(const char *graph, struct rcd_lcore *lcore)
{
	if (lcore == NULL || strlen(graph) >= RTE_GRAPH_NAMESIZE)
		return -EINVAL;
	if (node_graph_find(graph) != NULL)
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
rcd_node_graph_unbind(const char *graph)
{
	struct node_graph *bound = node_graph_find(graph);

	if (bound == NULL)
		return -ENOENT;
	if (node_graph_has_ours(graph))
		return -EBUSY;
	bound->lcore = NULL;
	return 0;
}
