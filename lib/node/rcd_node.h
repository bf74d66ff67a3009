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
 * - rocade_classify-PORT: RoCE, ARP, neighbour discovery and ICMP for the device go to
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
 * What a port does not take is dropped by ethdev_tx (pkt_drop counts it), as all that it is given;
 * peers are sent it again. A walk has an lcore take 256 packets of RoCE: of more, as from two
 * queues of a port in one graph, up to RCD_INLINE_RING wait, and the rest is counted as
 * rx_drop_fed.
 *
 * rte_graph of DPDK 22.11 is experimental: who includes its headers defines
 * ALLOW_EXPERIMENTAL_API. These functions don't need it.
 *
 * A node of the program's own that receives, or takes headers of a tunnel off, names
 * rocade_classify-PORT as one of its next ones, in place of rcd_node_insert(). A packet's `port`
 * is not looked at: ports of rings, bonded ones and wrapped ones don't set it to theirs.
 *
 * Threads: one at a time, while no graph is walked that has nodes of what is changed. Devices come
 * and go, and graphs are unbound, only when no graph is left that would go on with what was: with
 * -EBUSY nothing is changed, and the call may be repeated behind rte_graph_destroy().
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
 * Make the nodes of a device, or give them a device again. Behind rte_node_eth_config(), while
 * there is no graph with rocade_poll: each of them brings out what is sent by all devices that were
 * added before it was created, and of no other.
 *
 * @return 0; -EINVAL: no device; -ENODEV: no node of the name of `others` or `sent`; -EEXIST: the
 *         port has a device; -EBUSY: a bound graph has rocade_poll, or nodes
 *         of the port; -ENOSPC: too many; -ENOMEM
 */
int
rcd_node_add(const struct rcd_node_conf *conf);

/**
 * Take the device from its nodes, which stay, and let all packets pass. Behind rte_graph_destroy()
 * of all graphs with rocade_poll, wherever they receive, and before rcd_inline_destroy().
 *
 * @return 0; -ENOENT; -EBUSY: a bound graph has rocade_poll, or nodes of the port
 */
int
rcd_node_del(uint16_t port_id);

/**
 * Put rocade_classify-PORT in the place of pkt_cls behind all queues of a port: behind each
 * ethdev_rx-PORT-QUEUE. Before rte_graph_create().
 *
 * @return 0, also where no pkt_cls is; -ENOENT: the port has no device; -ENODEV: it has no queue
 */
int
rcd_node_insert(uint16_t port_id);

/**
 * Tell whose a graph will be, before it is created: without that rte_graph_create() fails for one
 * that has these nodes.
 *
 * rte_graph_destroy() gives the number of a graph away, which is that of its sending queues: of
 * several the one that was created last goes first, or all go.
 *
 * @param graph  the name that rte_graph_create() will get
 * @param lcore  whose thread walks it, and all others that it has
 * @return 0; -EINVAL: no lcore, or a name too long; -EEXIST: it is bound; -ENOSPC: too many
 */
int
rcd_node_bind(const char *graph, struct rcd_lcore *lcore);

/**
 * Forget whose a graph was. Behind rte_graph_destroy().
 *
 * @return 0; -ENOENT; -EBUSY: there is a graph of that name, with nodes that are bound
 */
int
rcd_node_unbind(const char *graph);

RCD_API_END

#endif /* RCD_NODE_H */
