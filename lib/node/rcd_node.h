/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine in graphs of rte_graph: nodes that take what is its, run it, and bring out what it
 * sends. Devices are those of rcd_inline.h. For each that is added there are nodes with the number
 * of its port behind their names, as ethdev_rx and ethdev_tx have it:
 *
 *     ethdev_rx-0-0 ── rocade_classify-0 ─┬─ pkt_cls ── ip4_lookup ── ...
 *                                         └─ rocade_rx-0
 *     rocade_poll ──── rocade_tx-0 ───────── ethdev_tx-0
 *
 * - rocade_classify-PORT: RoCE, ARP, neighbour discovery and echo requests for the device go to
 *   rocade_rx, all else goes on, in order; of what everybody is to hear the engine has a copy.
 * - rocade_rx-PORT: hands over to the engine.
 * - rocade_poll: a source; rounds of the engine's lcore, with its timers and the doorbells of
 *   clients, and what they made goes out. One for all devices.
 * - rocade_tx-PORT: what the engine sends by the device.
 *
 * A graph for each lcore of the engine, walked by its thread:
 *
 *     rte_node_eth_config(ports, 2, 1);
 *     rcd_node_add(&(struct rcd_node_conf){ .dev = dev, .port_id = 0 });
 *     rcd_node_insert(0);
 *     rcd_node_bind("worker-0", lcore);
 *     patterns[] = { "ethdev_rx-0-0", "ethdev_rx-1-0", "rocade_poll" };
 *     rte_graph_create("worker-0", &param);
 *
 *     while (!rcd_lcore_stopping(lcore))       as rcd_engine_launch() wants it
 *             rte_graph_walk(graph);
 *
 * A node of the program's own that receives, or takes headers of a tunnel off, names
 * rocade_classify-PORT as one of its next ones, in place of rcd_node_insert(). A packet's `port`
 * is not looked at: ports of rings, bonded ones and wrapped ones don't set it to theirs.
 *
 * Threads: one at a time, while no graph is walked that has nodes of what is changed.
 */
#ifndef RCD_NODE_H
#define RCD_NODE_H

#include <stdint.h>

#include "rcd_api.h"

RCD_API_BEGIN

struct rcd_inline;
struct rcd_lcore;

/** Graphs that are bound at once, at most. */
#define RCD_NODE_GRAPHS 64

/** A device in graphs. */
struct rcd_node_conf {
	struct rcd_inline *dev; /**< the program's, as long as it is in nodes */
	uint16_t port_id;       /**< the number in the names of nodes */
	const char *others;     /**< node for what is not the engine's; NULL: pkt_cls */
	const char *sent;       /**< node for what the engine sends; NULL: ethdev_tx-PORT */
};

/**
 * Make the nodes of a device, or give them a device again. Behind rte_node_eth_config(), before
 * rte_graph_create(): all graphs have the edges that there are when they are created.
 *
 * @return 0; -EINVAL: no device, or a name too long; -EEXIST: the port has a device; -ENODEV: no
 *         node of the name of `others` or `sent`; -ENOSPC: too many; -ENOMEM
 */
int
rcd_node_add(const struct rcd_node_conf *conf);

/**
 * Take the device from its nodes, which stay, and let all packets pass. Behind rte_graph_destroy()
 * of all graphs with it, before rcd_inline_destroy().
 *
 * @return 0 or -ENOENT
 */
int
rcd_node_del(uint16_t port_id);

/**
 * Put rocade_classify-PORT in the place of pkt_cls behind all queues of a port: behind each
 * ethdev_rx-PORT-QUEUE. Before rte_graph_create().
 *
 * @return 0; -ENOENT: the port was not added; -ENODEV: it has no such queue
 */
int
rcd_node_insert(uint16_t port_id);

/**
 * Tell whose a graph will be, before it is created: without that rte_graph_create() fails for one
 * that has these nodes.
 *
 * @param graph  its name, or to be the one of several with it
 * @param lcore  whose thread walks it
 * @return 0; -EINVAL: no lcore, or a name too long; -EEXIST: it is bound; -ENOSPC: too many
 */
int
rcd_node_bind(const char *graph, struct rcd_lcore *lcore);

/** Behind rte_graph_destroy(). @return 0 or -ENOENT */
int
rcd_node_unbind(const char *graph);

RCD_API_END

#endif /* RCD_NODE_H */
