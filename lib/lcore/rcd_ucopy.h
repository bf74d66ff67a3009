/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of clients that is not shared, and so reached by copies: the client makes them itself
 * (rcd_copyq.h), and the engine goes on with other things meanwhile.
 *
 * To a queue pair this is time that passes on the network. Packets with payload from such memory
 * are staged until it is there. What a received packet writes there is on its way while the queue
 * pair goes on; until it has arrived an RC queue pair sends nothing, so that no acknowledge is
 * ahead of the data, and its completions are not shown. A client that makes no copies so stalls its
 * own queue pairs, and nobody else.
 *
 * A target of XRC has memory of several clients: it has jobs for one at a time, whose `ucopy` it
 * points to meanwhile. Packets for another one's are dropped, and sent again.
 *
 * Threads: the lcore of the client.
 */
#ifndef RCD_UCOPY_H
#define RCD_UCOPY_H

#include <sys/queue.h>

#include "rcd_copyq.h"
#include "rcd_qp.h"
#include "rcd_turn.h"

struct rcd_lcore;
struct rcd_lclient;
struct rcd_hqp;
struct rcd_hcq;
struct rcd_hsrq;

#define RCD_UCOPY_STAGED 256 /**< packets that wait for their payload */
#define RCD_UCOPY_HELD   RCD_COPYQ_JOBS

/** A packet that waits for its payload. */
struct rcd_staged {
	struct rcd_roce roce;
	struct rcd_av av;
	uint32_t payload_len;
	uint8_t *payload; /**< in the arena */
};

/** A job, as the engine remembers it. */
struct rcd_ujob {
	struct rcd_hqp *hqp;       /**< NULL: nobody waits for it any more */
	struct rcd_staged *staged; /**< it is the last of this packet */
	const uint8_t *original;   /**< where the result of an atomic will be; NULL: it is none */
	struct rcd_qp_copy late;   /**< the packet whose payload it writes, or reads */
	bool writes;
	bool blocks;  /**< its queue pair sends nothing before it is done */
	uint32_t end; /**< place in the arena up to which all is free once it is taken */
};

/** A completion that is not shown yet, and becomes an error if its data does not arrive. */
struct rcd_uheld {
	struct rcd_hqp *hqp; /**< NULL: it stays as it is */
	struct rcd_hcq *cq;
	uint32_t index;  /**< place in the queue */
	uint32_t after;  /**< jobs of the queue pair that it waits for: all before this one */
	uint32_t posted; /**< all jobs of that time: when they are done it is forgotten */
};

TAILQ_HEAD(rcd_hcq_list, rcd_hcq);
TAILQ_HEAD(rcd_ucopy_queue, rcd_ucopy);

/** The copies of a client. */
struct rcd_ucopy {
	struct rcd_lclient *client;
	struct rcd_copyq *queue;
	uint32_t posted;
	uint32_t taken;
	uint32_t head; /**< in the arena: where the next bytes go */
	uint32_t tail; /**< and the oldest in use */
	bool active;   /**< jobs are out, or somebody waits: in the lcore's list of those */
	bool ringing;  /**< the client was not told of all jobs: in the list of those */
	bool voiding;  /**< what is hidden stays as it is: no gate opens */
	bool more;     /**< gates are left to open */
	bool broken;   /**< nothing is copied any more: the client is gone, or lied; atomic */
	bool lost;     /**< a part of the packet whose jobs are being taken was not read */
	TAILQ_ENTRY(rcd_ucopy) link;
	TAILQ_ENTRY(rcd_ucopy) ring_link;
	struct rcd_qp_copy late;      /**< of the packet that is being received, or staged */
	struct rcd_turn_list blocked; /**< wait for jobs of their own */
	struct rcd_turn_list starved; /**< wait for room */
	struct rcd_hcq_list gated;    /**< not all of it is shown; in the order of `gate_after` */
	uint32_t staged_next;
	uint32_t staged_count;
	uint32_t held_first;
	uint32_t held_count;
	uint64_t offset; /**< of the queue in the segment; the control thread's */
	struct rcd_ujob jobs[RCD_COPYQ_JOBS];
	struct rcd_staged staged[RCD_UCOPY_STAGED];
	struct rcd_uheld held[RCD_UCOPY_HELD];
};

/* rcd_ucopy.c */

/** Make a client's keys ready for memory that is reached by copies. Control thread. */
void
rcd_ucopy_open(struct rcd_lclient *client);

/** Its part of rcd_qp_tx_next(): whether the queue pair has to wait. It is in a list then. */
bool
rcd_ucopy_waits(struct rcd_hqp *hqp);

/** Whether a packet has to be staged. */
bool
rcd_ucopy_stages(const struct rcd_hqp *hqp, const struct rcd_tx_pkt *pkt);

/** Stage it, behind a look at rcd_ucopy_waits(). */
void
rcd_ucopy_stage(struct rcd_lcore *lcore, struct rcd_hqp *hqp, const struct rcd_tx_pkt *pkt);

/** Whether a packet can be received now: there is room for what it may write. */
bool
rcd_ucopy_admits(struct rcd_hqp *hqp, const struct rcd_pkt *pkt);

/** The same for a packet of a group. @param arg the queue pair */
bool
rcd_ucopy_admits_any(void *arg);

/* rcd_ucopy_take.c */

/** Take back what this poll has a budget for, clients in turns. @return whether it was anything */
bool
rcd_ucopy_poll(struct rcd_lcore *lcore);

/**
 * Wake the clients that have something to copy, and sleep: as many as this poll has a budget for,
 * in turns. @return whether it looked at any
 */
bool
rcd_ucopy_ring(struct rcd_lcore *lcore);

/** Whether anything was done. Before sleep. */
bool
rcd_ucopy_any(const struct rcd_lcore *lcore);

/** A completion was put into its queue by a queue pair that has jobs out. */
void
rcd_ucopy_hold(struct rcd_hqp *hqp, struct rcd_hcq *cq, const struct rcd_cqe *cqe);

/** One was put into the queue of a shared receive queue of XRC, by a target. */
void
rcd_ucopy_hold_shared(struct rcd_hsrq *srq, const struct rcd_cqe *cqe);

/**
 * A queue pair begins anew, or goes: its jobs are nobody's. Its completions that are not shown yet
 * stay hidden until the control thread, next, has called rcd_ucopy_void().
 */
void
rcd_ucopy_forget(struct rcd_hqp *hqp);

/**
 * Completions of a queue pair that were hidden at rcd_ucopy_forget() will never be seen. There may
 * be as many as its queues have room for, and no lcore waits for it. Control thread.
 */
void
rcd_ucopy_void(struct rcd_hqp *hqp);

/** A completion queue goes. */
void
rcd_ucopy_forget_cq(struct rcd_lclient *client, struct rcd_hcq *cq);

/**
 * The client is about to go, and nothing is copied any more: who waits for room goes on, and fails.
 *
 * @return whether there are more who wait
 */
bool
rcd_ucopy_release(struct rcd_lclient *client);

/** The client goes. Targets that it copied for fail. */
void
rcd_ucopy_end(struct rcd_lclient *client);

#endif /* RCD_UCOPY_H */
