/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completions in graphs: a source node for a completion queue of the program (rcd_local.h), which
 * takes them in each walk and gives them to a node of the program's own.
 *
 *     rocade_cq-NAME ── `next`
 *
 * Objects of `next` are not packets but `const struct rcd_cq_slot *`, the oldest completion first,
 * up to RTE_GRAPH_BURST_SIZE in a walk; the others wait. They lie in the node, and are what they
 * are until the walk ends: who needs one for longer copies it. What a wr_id stands for, as an mbuf
 * that was received into, is the program's to know: `next` may well turn it into that, and hand it
 * on as a packet.
 *
 *     rcd_node_cq_add(&(struct rcd_node_cq_conf){ .cq = cq, .name = "sink", .next = "done" });
 *     rcd_node_bind("worker-0", lcore);       the one that the queue's device was opened on
 *     patterns[] = { "ethdev_rx-0-0", "rocade_poll", "rocade_cq-sink" };
 *     rte_graph_create("worker-0", &param);
 *
 * A queue of which a node takes completions is not polled elsewhere. When its device goes, nothing
 * comes any more: rcd_local_event() tells.
 *
 * Threads: as rcd_node.h.
 */
#ifndef RCD_NODE_CQ_H
#define RCD_NODE_CQ_H

#include "rcd_api.h"

RCD_API_BEGIN

struct rcd_local_cq;

/** A completion queue in graphs. */
struct rcd_node_cq_conf {
	struct rcd_local_cq *cq; /**< the program's, as long as it is in the node */
	const char *name;        /**< behind that of the node; copied */
	const char *next;        /**< the node that gets completions, which is there already */
};

/**
 * Make the node of a completion queue, or give it a queue again. Before rte_graph_create(), which
 * fails for a graph that is bound to another lcore than the queue's device was opened on, or to
 * none.
 *
 * @return 0; -EINVAL: no queue, name, or next node, or a name too long; -EEXIST: the name has a
 *         queue, or the queue a name; -ENODEV: no node of the name of `next`; -EBUSY: a bound graph
 *         has the node; -ENOMEM
 */
int
rcd_node_cq_add(const struct rcd_node_cq_conf *conf);

/**
 * Take the queue from its node, which stays, and has nothing to give. Behind rte_graph_destroy() of
 * the graph that has it, and before rcd_local_cq_destroy(), which says -EBUSY until then, or
 * rcd_local_close(), which does not look.
 *
 * @return 0; -ENOENT; -EBUSY: a bound graph has the node
 */
int
rcd_node_cq_del(const char *name);

RCD_API_END

#endif /* RCD_NODE_CQ_H */
