/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A network of queue pairs in one process and in virtual time.
 *
 * Nodes have memory, keys, queues and queue pairs; a link joins two nodes and loses, repeats,
 * reorders, damages and delays frames as its parameters and the seed say. Frames are real bytes:
 * built, sealed, parsed and checked by lib/wire. Everything follows from the seed.
 */
#ifndef SIM_H
#define SIM_H

#include <stdlib.h>

#include "rcd_ah.h"
#include "rcd_check.h"
#include "rcd_heap.h"
#include "rcd_mcast.h"
#include "rcd_qp.h"
#include "rcd_reorder.h"
#include "rcd_sequence.h"
#include "rcd_srq.h"
#include "rcd_xrc.h"

enum {
	SIM_QPS_MAX = 4,     /**< queue pairs of a node */
	SIM_QUEUE_MAX = 256, /**< work requests of a queue, over a whole run */
	SIM_CQES_MAX = 2048,
	SIM_EVENTS_MAX = 32,
	SIM_SGE_MAX = 8,
	SIM_INLINE_MAX = 64,
	SIM_XSRQS = 2, /**< shared receive queues of a node's XRC domain */
};

/** A number below @p limit. */
uint32_t
sim_below(struct rcd_sequence *rng, uint32_t limit);

/** Whether something with this probability happens. */
bool
sim_chance(struct rcd_sequence *rng, double probability);

/** What a link does to the marks of a BTH (doc/sack.md). */
enum sim_marks {
	SIM_MARKS_KEEP,
	SIM_MARKS_SCRAMBLE, /**< random bits */
	SIM_MARKS_ECHO,     /**< those that the peer sent last */
};

/** How a link treats frames, one way. */
struct sim_link {
	double loss, duplicate, reorder, corrupt, mark; /**< probabilities per frame */
	uint64_t delay_ns;
	uint64_t jitter_ns;
	double gbps;        /**< 0: no serialisation delay */
	uint64_t loss_mask; /**< bit i: lose frame i; looked at when loss_mask_frames > 0 */
	uint32_t loss_mask_frames;
	uint64_t cut_ns; /**< everything is lost from here on; 0: never */
	enum sim_marks marks;
};

struct sim_node;

/** A send queue, receive queue or shared receive queue: filled before or while the run goes. */
struct sim_send_queue {
	struct rcd_send_wr wrs[SIM_QUEUE_MAX];
	struct rcd_sge sges[SIM_QUEUE_MAX][SIM_SGE_MAX];
	uint8_t inlines[SIM_QUEUE_MAX][SIM_INLINE_MAX];
	uint32_t posted;
};

struct sim_recv_queue {
	struct rcd_recv_wr wrs[SIM_QUEUE_MAX];
	struct rcd_sge sges[SIM_QUEUE_MAX][SIM_SGE_MAX];
	uint32_t filled; /**< work requests that exist */
	uint32_t posted; /**< of them, those that the queue pair may see */
};

/** A queue pair of a node and what its host keeps for it. */
struct sim_qp {
	struct sim_node *node;
	struct rcd_qp *qp;
	struct rcd_qp_init init;
	struct sim_send_queue sq;
	struct sim_recv_queue rq;
	uint64_t timer_ns;   /**< deadline that an event is queued for */
	void *sack;          /**< its memory, when that was agreed on */
	uint32_t busy;       /**< times that its host does not hear of that */
	bool waits_for_port; /**< an event is queued for when the port has drained */
	bool waits_to_flush; /**< an event is queued for the next piece of a flush */
};

/** A shared receive queue of XRC; in the domain from sim_xsrq_add() on. */
struct sim_xsrq {
	struct sim_node *node;
	struct rcd_srq srq;
	struct sim_recv_queue queue;
};

/** A node. */
struct sim_node {
	struct sim *sim;
	struct sim_node *peer;
	uint32_t number;
	uint8_t *memory;
	size_t memory_len;
	struct rcd_mr_table *mrs;
	struct rcd_ah_table *ahs;
	struct rcd_reorder_pool *reorder;
	struct rcd_counters counters;
	struct rcd_srq srq;
	struct sim_recv_queue srq_queue;
	struct rcd_xrc_domain xrc; /**< that its XRC targets are of */
	struct sim_xsrq xsrqs[SIM_XSRQS];
	struct sim_qp qps[SIM_QPS_MAX];
	uint32_t qp_count;
	struct rcd_cqe cqes[SIM_CQES_MAX];
	uint32_t cqe_count;
	struct {
		enum rcd_event event;
		uint32_t qp; /**< its number in qps; UINT32_MAX for the shared receive queue */
	} events[SIM_EVENTS_MAX];
	uint32_t event_count;
	struct sim_link out;
	uint64_t out_free_ns; /**< when the link has sent what it was given */
	uint8_t out_mark;     /**< of the last frame, as it was sent */
	uint32_t out_frames;
	uint32_t *shared_frames; /**< a counter for both directions, or NULL */
	void (*on_cqe)(void *arg, struct sim_node *node, const struct rcd_cqe *cqe);
	void *on_cqe_arg;
};

struct sim_event;

/** The whole. */
struct sim {
	struct rcd_sequence rng;
	uint64_t now_ns;
	struct rcd_heap events; /**< struct sim_event */
	uint64_t delivered;     /**< frames that reached a parser */
	uint8_t **arriving;     /**< the one that a node is looking at; NULL there: it is held */
	uint64_t bad_icrc;
	uint64_t wrong_verdicts; /**< frames of ours that the parser refused, damage aside */
	struct sim_node nodes[2];
	void (*trace)(const struct sim *sim, const struct sim_node *from,
		const struct rcd_tx_pkt *pkt, bool lost);
};

/** Have every other frame that a node keeps out of order stay where it is (held.c). */
void
sim_hold_frames(struct sim_node *node);

/** Begin. @param memory_len bytes of each node's memory @param kept reorder pool, 0: none */
void
sim_init(struct sim *sim, uint64_t seed, size_t memory_len, uint32_t kept);

/** End and release. */
void
sim_fini(struct sim *sim);

/**
 * Add a shared receive queue to a node's XRC domain, with the node's keys.
 *
 * @return its number
 */
uint32_t
sim_xsrq_add(struct sim_node *node, uint32_t index, uint32_t pd);

/** Make a queue pair on a node in RESET; ops, tables and counters are filled in. */
struct sim_qp *
sim_qp_create(struct sim_node *node, const struct rcd_qp_init *init);

/** Attributes with which sim_connect() works; change some before. */
struct rcd_qp_attr
sim_attr(struct sim *sim);

/** Bring two connected queue pairs to RTS. @param ab attributes of a, @param ba of b */
void
sim_connect(struct sim_qp *a, struct sim_qp *b, const struct rcd_qp_attr *ab,
	const struct rcd_qp_attr *ba);

/** Have a queue pair take part in selective acknowledgement, as its peer has agreed. */
static inline void
sim_agree_sack(struct sim_qp *qp)
{
	qp->sack = malloc(rcd_qp_sack_size());
	RCD_CHECK(qp->sack != NULL && rcd_qp_set_sack(qp->qp, qp->sack) == 0);
}

/** Have it find out by itself whether its peer does; then it has what sim_agree_sack() gives. */
static inline void
sim_find_peer(struct sim_qp *qp)
{
	uint64_t nonce = 0x517e0001 + qp->node->number + ((uint64_t)qp->init.qpn.val << 32);

	RCD_CHECK(rcd_qp_find_peer(qp->qp, nonce) == 0);
}

/** Address vector from a node to its peer. */
struct rcd_av
sim_av(const struct sim_node *node);

/** Post what was put behind posted: see that it is sent. */
void
sim_kick(struct sim *sim);

/** Call back at a time. */
void
sim_at(struct sim *sim, uint64_t at_ns, void (*call)(void *arg), void *arg);

/**
 * Run until nothing is left to happen.
 *
 * @param limit_ns  virtual time at which it is taken for endless
 * @return whether it came to an end by itself
 */
bool
sim_run(struct sim *sim, uint64_t limit_ns);

#endif /* SIM_H */
