/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The inside of an agent, shared by the files that make it up:
 *
 *   rcd_cm_agent.c  pool, tables and timers; MADs in and out
 *   rcd_cm_conn.c   connections
 *   rcd_cm_sidr.c   datagram services
 */
#ifndef RCD_CM_PRIV_H
#define RCD_CM_PRIV_H

#include "rcd_check.h"
#include "rcd_cm_agent.h"
#include "rcd_timer.h"

#define RCD_CM_NOWHERE UINT32_MAX /**< place in the heap of who waits for nothing */

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
	uint8_t retries;     /**< left, of what was sent last */
	uint8_t retry_count; /**< of each message */
	uint16_t generation; /**< of the place in the pool */
	uint32_t place;      /**< in the heap of timers */
	uint64_t timeout_ns; /**< for an answer */
	uint64_t limit_ns;   /**< for an answer, however often it is asked for and delayed */
	uint64_t doubted_ns; /**< when the peer was asked whether it is still there; 0: never */
	uint64_t deadline_ns;
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
	uint32_t heap_count;
	uint64_t next_tid;
	uint64_t rate_ns; /**< when the second of req_count began */
	uint32_t req_count;
	struct rcd_cm_conn *free;
	uint32_t fresh; /**< connections from here on were never used, nor their memory touched */
	struct rcd_cm_conn **by_id;
	struct rcd_cm_conn **by_qpn;
	struct rcd_cm_conn **heap;
	struct rcd_cm_conn conns[];
};

/** Take a connection from the pool. @return NULL when it is empty */
struct rcd_cm_conn *
rcd_cm_alloc(struct rcd_cm_agent *agent, const struct rcd_cm_way *way);

/** Give it back: tables and timers forget it. */
void
rcd_cm_free(struct rcd_cm_conn *conn);

/** The peer's numbers are known: so it is found by them. */
void
rcd_cm_know(struct rcd_cm_conn *conn, uint32_t remote_id, uint32_t remote_qpn);

/** By our own ID, if it comes from the right peer. @return NULL: none */
struct rcd_cm_conn *
rcd_cm_find(struct rcd_cm_agent *agent, uint64_t local_id, const struct rcd_gid *remote);

/** By the peer's ID. */
struct rcd_cm_conn *
rcd_cm_find_remote(
	struct rcd_cm_agent *agent, uint64_t remote_id, const struct rcd_gid *remote, bool sidr);

/** By the peer's queue pair: a connection that holds it, as the peer itself has said. */
struct rcd_cm_conn *
rcd_cm_find_qpn(struct rcd_cm_agent *agent, uint64_t remote_qpn, const struct rcd_gid *remote);

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

/** Nothing more is to come but repeated questions. */
void
rcd_cm_timewait(struct rcd_cm_conn *conn, uint64_t now_ns);

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

/** An answer is awaited and did not come: the last time. */
void
rcd_cm_give_up(struct rcd_cm_conn *conn, uint64_t now_ns);

/* Messages, by attribute. */
void
rcd_cm_rx_req(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);
void
rcd_cm_rx_rep(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way);
void
rcd_cm_rx_rtu(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way);
void
rcd_cm_rx_rej(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);
void
rcd_cm_rx_mra(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);
void
rcd_cm_rx_dreq(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);
void
rcd_cm_rx_drep(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns);
void
rcd_cm_rx_lap(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way);
void
rcd_cm_rx_sidr_req(struct rcd_cm_agent *agent, const struct rcd_cm *msg,
	const struct rcd_cm_way *way, uint64_t now_ns);
void
rcd_cm_rx_sidr_rep(struct rcd_cm_agent *agent, const struct rcd_cm *msg,
	const struct rcd_cm_way *way, uint64_t now_ns);

#endif /* RCD_CM_PRIV_H */
