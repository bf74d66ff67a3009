/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The inside of an agent, shared by the files that make it up:
 *
 *   rcd_cm_agent.c  making, MADs in, time
 *   rcd_cm_conn.c   connections
 *   rcd_cm_sidr.c   datagram services
 *   rcd_cm_pool.c   pool, tables and timers; MADs out
 */
#ifndef RCD_CM_PRIV_H
#define RCD_CM_PRIV_H

#include "rcd_bits.h"
#include "rcd_check.h"
#include "rcd_cm_agent.h"
#include "rcd_heap.h"
#include "rcd_timer.h"

#define RCD_CM_INDEX_BITS 16 /**< of a communication ID: the place in the pool */

/** The longest that a question is asked, or an answer waited for: the usual total is 77 s. */
#define RCD_CM_ASK_NS UINT64_C(180000000000)

/** Codes of the longest times that peers may want: of one answer 8.6 s, of an MRA 68.7 s. */
#define RCD_CM_TIMEOUT_MAX 21
#define RCD_CM_MRA_MAX     24

/** Between two looks whether a peer has forgotten a connection. */
#define RCD_CM_DOUBT_NS UINT64_C(1000000000)

/** Which of the messages a REJ or MRA is about. */
enum rcd_cm_about {
	RCD_CM_ABOUT_REQ,
	RCD_CM_ABOUT_REP,
	RCD_CM_ABOUT_OTHER,
};

/** A connection, or a datagram service being resolved. */
struct rcd_cm_conn {
	struct rcd_cm_agent *agent;
	void *cookie;
	void *owner;
	uint32_t local_id;
	uint32_t remote_id;
	uint32_t local_qpn;
	uint32_t remote_qpn;
	struct rcd_cm_way way;
	uint8_t state; /**< enum rcd_cm_state */
	bool released; /**< the host has forgotten it */
	bool known;    /**< remote_id is set: in the tables of peers */
	bool sidr;
	bool xrc;            /**< its REQ asks for XRC: REPs name targets */
	uint8_t offered;     /**< by the peer: RCD_CM_OFFERS_* */
	uint8_t retries;     /**< left, of what was sent last */
	uint8_t retry_count; /**< of each message */
	uint16_t generation; /**< of the place in the pool */
	uint64_t timeout_ns; /**< for an answer */
	uint64_t limit_ns;   /**< for an answer, however often it is asked for and delayed */
	uint64_t doubted_ns; /**< when the peer was asked whether it is still there; 0: never */
	struct rcd_heap_entry timer;  /**< by the time of what comes next, ns */
	struct rcd_cm_conn *next;     /**< in the free list */
	struct rcd_cm_conn *next_id;  /**< in the table by remote ID */
	struct rcd_cm_conn *next_qpn; /**< in the table by remote QPN */
	uint8_t mad[RCD_MAD_LEN];     /**< what was sent last, to be sent again */
};

/** An agent. */
struct rcd_cm_agent {
	struct rcd_cm_conf conf;
	struct rcd_cm_counts counts;
	uint32_t used;
	uint32_t bucket_mask;
	struct rcd_heap timers; /**< no alarms: simulations see each deadline as it was set */
	uint64_t next_tid;
	uint64_t rate_ns; /**< when the second of req_count began */
	uint32_t req_count;
	struct rcd_cm_conn *free;
	uint32_t fresh; /**< connections from here on were never used, nor their memory touched */
	struct rcd_cm_conn **by_id;
	struct rcd_cm_conn **by_qpn;
	struct rcd_cm_conn conns[];
};

/* rcd_cm_pool.c */

/** Take a connection from the pool. @return NULL when it is empty */
struct rcd_cm_conn *
rcd_cm_alloc(struct rcd_cm_agent *agent, const struct rcd_cm_way *way);

/** Give one back that is FREE: tables and timers forget it. */
void
rcd_cm_free(struct rcd_cm_conn *conn);

/** The peer's numbers are known: so it is found by them. */
void
rcd_cm_know(struct rcd_cm_conn *conn, uint32_t remote_id, uint32_t remote_qpn);

/** By our own ID, if it comes from the right peer. @return NULL: none */
struct rcd_cm_conn *
rcd_cm_find(struct rcd_cm_agent *agent, uint64_t local_id, const struct rcd_cm_way *way);

/** By the peer's ID. */
struct rcd_cm_conn *
rcd_cm_find_remote(
	struct rcd_cm_agent *agent, uint64_t remote_id, const struct rcd_cm_way *way, bool sidr);

/** By the peer's queue pair: a connection that holds it, as the peer itself has said. */
struct rcd_cm_conn *
rcd_cm_find_qpn(struct rcd_cm_agent *agent, uint64_t remote_qpn, const struct rcd_cm_way *way);

/** Wake at a time; 0: never. */
void
rcd_cm_wake_at(struct rcd_cm_conn *conn, uint64_t at_ns);

/** Send a message once, without remembering it. */
void
rcd_cm_send_once(
	struct rcd_cm_agent *agent, const struct rcd_cm_way *way, const struct rcd_cm *msg);

/** Send a message and remember it. */
void
rcd_cm_send(struct rcd_cm_conn *conn, const struct rcd_cm *msg);

/** Send it, and again until an answer comes or the retries are used up. */
void
rcd_cm_ask(struct rcd_cm_conn *conn, const struct rcd_cm *msg, uint64_t now_ns);

/** Wake at a time, or when a question has been open for too long. */
void
rcd_cm_wait(struct rcd_cm_conn *conn, uint64_t at_ns);

/** Send again what was sent last. */
void
rcd_cm_repeat(struct rcd_cm_conn *conn);

/** Tell the host. @return what it says */
uint16_t
rcd_cm_tell(struct rcd_cm_conn *conn, enum rcd_cm_event event, const struct rcd_cm *msg);

/** Whether a connection is in a state that permits a step. */
static inline bool
rcd_cm_may(const struct rcd_cm_conn *conn, enum rcd_cm_step step)
{
	return rcd_cm_move_may(&rcd_cm_rows[step].agent, conn->state);
}

/** Take a step. @return false: its state does not permit it, and stays */
static inline bool
rcd_cm_step(struct rcd_cm_conn *conn, enum rcd_cm_step step)
{
	return rcd_cm_move(&rcd_cm_rows[step].agent, &conn->state);
}

/**
 * Take a step to timewait: nothing more is to come but repeated questions.
 *
 * @return false: its state does not permit it, and nothing is changed
 */
bool
rcd_cm_timewait(struct rcd_cm_conn *conn, enum rcd_cm_step step, uint64_t now_ns);

/** Whether another REQ may be taken now. */
bool
rcd_cm_rate_ok(struct rcd_cm_agent *agent, uint64_t now_ns);

/** Put private data in; what is longer is cut. */
static inline void
rcd_cm_put_private(uint8_t *dst, size_t room, const uint8_t *src, uint32_t len)
{
	if (len > 0)
		memcpy(dst, src, len < room ? len : room);
}

/* rcd_cm_conn.c */

/** An answer is awaited and did not come: the last time. */
void
rcd_cm_give_up(struct rcd_cm_conn *conn, uint64_t now_ns);

/*
 * Messages, by attribute: what they do to the connection that they name, as its state allows. What
 * names none, or comes when it means nothing, is counted and dropped.
 */

/** A peer wants a connection: the host is asked, or it is refused or a repetition. */
void
rcd_cm_rx_req(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);

/** The peer agrees. */
void
rcd_cm_rx_rep(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way);

/** The peer knows that we agree. */
void
rcd_cm_rx_rtu(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way);

/** The peer refuses, or gives up. */
void
rcd_cm_rx_rej(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);

/** The peer needs more time for its answer. */
void
rcd_cm_rx_mra(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);

/** The peer ends the connection; it is answered even if there is none. */
void
rcd_cm_rx_dreq(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);

/** The peer knows that we have ended it. */
void
rcd_cm_rx_drep(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);

/** The peer has another path to offer: it is told that we take none. */
void
rcd_cm_rx_lap(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way);

/* rcd_cm_sidr.c */

/** A peer asks for the queue pair of a datagram service. */
void
rcd_cm_rx_sidr_req(struct rcd_cm_agent *agent, const struct rcd_cm *msg,
	const struct rcd_cm_way *way, uint64_t now_ns);

/** The answer to our question of that kind. */
void
rcd_cm_rx_sidr_rep(struct rcd_cm_agent *agent, const struct rcd_cm *msg,
	const struct rcd_cm_way *way, uint64_t now_ns);

#endif /* RCD_CM_PRIV_H */
