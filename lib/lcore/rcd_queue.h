/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queues and queue pairs of clients, the engine's side. What stands first belongs to the lcore of
 * their client; what the control thread has of them is said so.
 *
 * Threads: the lcore.
 */
#ifndef RCD_QUEUE_H
#define RCD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_eth.h"
#include "rcd_gid.h"
#include "rcd_limits.h"
#include "rcd_mr.h"
#include "rcd_pkt.h"
#include "rcd_qp.h"
#include "rcd_shm.h"
#include "rcd_srq.h"
#include "rcd_turn.h"
#include "rcd_wheel.h"
#include "rcd_wqe.h"

struct rcd_channel;
struct rcd_lcore;
struct rcd_lport;
struct rcd_lclient;
struct rcd_mcast_membership;
struct rcd_ucopy;
struct rcd_xmember;
struct rcd_xqp;

/** A completion queue, the engine's side. */
struct rcd_hcq {
	struct rcd_shm_cq *shm;
	struct rcd_cq_slot *slots;
	uint32_t mask;
	uint32_t producer;
	uint32_t published; /**< producer as the client sees it */
	uint32_t consumer;  /**< as last read, and found possible */
	uint32_t arm_seen;  /**< request for an event that was answered */
	bool solicited;     /**< among what is not published yet */
	bool dirty;
	bool failed;
	struct rcd_hcq *next_dirty;
	struct rcd_lclient *client;
	struct rcd_channel *channel; /**< NULL: none */
	TAILQ_ENTRY(rcd_hcq) owed_link;
	struct rcd_timer timer; /**< RCD_TIMER_CQ: an event is due */
	bool owed;              /**< an event is to be sent, and in the list of the channel */
	bool due;               /**< an event waits for more completions, or for its time */
	uint32_t event_count;   /**< completions that it waits for */
	uint32_t since_event;   /**< completions since the last event */
	uint64_t event_ns;      /**< longest that it waits */
	uint64_t due_ns;        /**< when it began to */

	/* Data of completions that is still on its way (rcd_ucopy.h). */
	bool gated;          /**< what is at gate_at, and behind it, is not shown... */
	bool gated_twice;    /**< what is at next_gate_at, and behind it, not even then */
	bool held_solicited; /**< among what is not shown */
	uint32_t gate_at;    /**< places in the queue */
	uint32_t next_gate_at;
	uint32_t gate_after; /**< ...before all jobs up to this one are done */
	uint32_t next_gate_after;
	uint32_t void_end;   /**< what was hidden for rcd_ucopy_void() to look at ends here... */
	uint32_t void_count; /**< ...and is so much */
	TAILQ_ENTRY(rcd_hcq) gated_link;

	uint64_t cookie;
	uint32_t conn_serial; /**< connection that made it */

	/* The control thread's. */
	uint32_t handle;
	uint32_t users;         /**< queue pairs, one for each role */
	uint64_t offset, bytes; /**< in the segment */
};

/** What the client may see of it: one past the last completion. Any thread. */
static inline uint32_t
rcd_hcq_shown(const struct rcd_hcq *cq)
{
	return __builtin_expect(cq->gated, false) ? cq->gate_at : cq->producer;
}

/** A shared receive queue, the engine's side. */
struct rcd_hsrq {
	struct rcd_srq srq;
	struct rcd_shm_wq *shm;
	uint8_t *slots;
	uint32_t mask;
	uint32_t stride;
	uint32_t published;
	bool dirty;
	struct rcd_hsrq *next_dirty;
	struct rcd_lclient *client;
	uint64_t cookie;
	uint32_t conn_serial; /**< connection that made it */
	struct rcd_hcq *cq;   /**< of XRC: that takes its completions; NULL: it is none */

	/* The control thread's. */
	uint32_t handle, users, pd, max_sge;
	uint64_t offset, bytes;
	uint64_t next_offset, next_bytes; /**< ring that it is to have; 0 bytes: none */
	uint32_t next_depth;              /**< requests that it holds */
	struct rcd_xmember *member;       /**< of XRC: by which it is in its domain */
};

/** A queue pair, the engine's side. */
struct rcd_hqp {
	struct rcd_qp *qp;
	struct rcd_lcore *lcore;
	struct rcd_lclient *client;
	const struct rcd_lport *lport;
	struct rcd_turn turn;
	uint64_t rx_bytes; /**< as rcd_turn_bytes(), of packets for it; relaxed, any thread looks */
	bool touched;
	bool block_loop; /**< what it sends to groups does not come back to it */
	bool faulty;     /**< goes to ERR at the end of this poll */
	bool datagram;   /**< each of its packets says where it goes; of raw packets, too */
	bool raw;        /**< it sends and receives whole frames */
	bool reliable;
	bool in_error;   /**< as the client was told */
	bool flushing;   /**< in its client's list of those that are flushed */
	bool may_copy;   /**< it has `ucopy`, or is a target that may have it */
	bool draining;   /**< it is to go when what was posted has left (rcd_drain.h) */
	uint32_t copies; /**< jobs that are out */
	uint32_t blocks; /**< of them: before the end of these it sends nothing */
	/** NULL: none of the client's memory is copied; of a target: nothing is being copied */
	struct rcd_ucopy *ucopy;
	struct rcd_hqp *next_touched;
	TAILQ_ENTRY(rcd_hqp) flush_link;
	struct rcd_timer timer;

	struct rcd_shm_wq *sq_shm;
	uint8_t *sq_slots;
	uint32_t sq_mask;
	uint32_t sq_stride;
	uint32_t sq_limit;     /**< producer as last read, and found possible */
	uint32_t sq_published; /**< consumer as the client sees it */
	struct rcd_shm_wq *rq_shm;
	uint8_t *rq_slots;
	uint32_t rq_mask;
	uint32_t rq_stride;
	uint32_t rq_limit;
	uint32_t rq_published;
	struct rcd_hcq *send_cq;
	struct rcd_hcq *recv_cq;
	struct rcd_hsrq *srq;

	/* Way of a connected queue pair's packets. */
	struct rcd_pkt_hdr hdr;
	uint64_t hop_word;          /**< MAC of the next hop that the header has */
	uint32_t hop;               /**< place of that; RCD_HOP_NONE: it stays */
	uint32_t loop_index;        /**< the peer is on this device of the engine, */
	uint32_t loop_serial;       /**< if it still has this serial; 0: it is not */
	struct rcd_mw_list windows; /**< type 2, bound through it */
	uint16_t vlan_id;           /**< of that way; 0: untagged */
	uint32_t hop_held;          /**< the control thread's: the place that it is counted for */

	void *local;            /**< as the operations of its client know it; NULL: they don't */
	struct rcd_xqp *target; /**< of XRC that it is; NULL: it is a context's */

	uint32_t copy_last; /**< number behind its last job */
	uint32_t staged;    /**< packets that wait for their payload */

	uint32_t drain_end;  /**< one past the last request that is to leave before it goes */
	uint32_t drain_poll; /**< when that was decided */
	uint64_t drain_begin_ns;

	uint32_t qpn;
	uint32_t index; /**< doorbell bit, and handle */
	uint64_t cookie;
	uint32_t conn_serial; /**< connection that made it, which is told; 0: a target's are many */

	/* The control thread's. */
	uint32_t pd, sq_depth, rq_depth;
	uint32_t max_inline, max_send_sge, max_recv_sge;
	uint64_t offset, bytes;
	uint32_t groups; /**< that it is attached to */
	uint32_t flows;  /**< that lead to it */
	/** In those; the lcore sees them when it is called to let the queue pair go. */
	struct rcd_mcast_membership *memberships;
	void *resources;         /**< of its responder, when they are more than the usual number */
	uint32_t resource_count; /**< of those */
	void *sack;              /**< of its selective acknowledgement, or not used any more */
	void *gate;              /**< of what limits it, if it was made without; else NULL */
};

/** A completion channel. */
struct rcd_channel {
	/* The control thread's, but for the socket. */
	uint32_t handle;
	uint32_t users;
	int sock; /**< sending end */

	/* The lcore's. */
	TAILQ_HEAD(, rcd_hcq) owed; /**< completion queues whose event is to be sent */
	TAILQ_ENTRY(rcd_channel) link;
	bool waiting;        /**< in the client's list */
	uint32_t full_round; /**< of the client: in which it took no more */
};

#endif /* RCD_QUEUE_H */
