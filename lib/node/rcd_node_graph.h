/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What all nodes have in common: whose a graph is, which nodes graphs hold, clones and their edges.
 *
 * Threads: as rcd_node.h.
 */
#ifndef RCD_NODE_GRAPH_H
#define RCD_NODE_GRAPH_H

#include <rte_graph.h>
#include <stdbool.h>

struct rcd_lcore;

/** As rcd_node_bind(). */
int
rcd_node_graph_bind(const char *graph, struct rcd_lcore *lcore);

/** As rcd_node_unbind(). */
int
rcd_node_graph_unbind(const char *graph);

/** Whose a graph is that is being created. @return NULL: it is not bound */
struct rcd_lcore *
rcd_node_graph_lcore(const char *graph);

/** Whether any graph that is bound has a node. */
bool
rcd_node_graph_any_has(rte_node_t node);

/** The name of a node like another one. @return whether it is one: neither empty nor too long */
bool
rcd_node_graph_name(
	const struct rte_node_register *base, const char *name, char full[RTE_NODE_NAMESIZE]);

/**
 * A node like another one, with a name behind that one's. One that was made before is found again:
 * rte_graph has no end of nodes.
 *
 * @return RTE_NODE_ID_INVALID: the name is none (rcd_node_graph_name()), or there is no memory
 */
rte_node_t
rcd_node_graph_clone(const struct rte_node_register *base, const char *name);

/** @return 0; -EINVAL: the name is too long; -ENODEV: no node has it; -ENOMEM */
int
rcd_node_graph_set_edge(rte_node_t node, rte_edge_t edge, const char *next);

#endif /* RCD_NODE_GRAPH_H */
