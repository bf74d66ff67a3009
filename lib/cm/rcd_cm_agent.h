/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connection management (IBTA Vol. 1, chapter 12) as machines without I/O: MADs go in with
 * rcd_cm_rx(), MADs to send and events come out through struct rcd_cm_ops, time is a parameter.
 * Nothing is allocated after creation; when there is no room, who asks is told so.
 *
 * A connection is made by REQ, REP and RTU between an active and a passive side, and ended by
 * DREQ and DREP; datagram services are resolved by SIDR_REQ and SIDR_REP. Messages that are lost
 * are sent again by who waits for an answer, and who has answered answers a repeated question
 * again, until its memory of it ends with the timewait.
 *
 * What is not here: addresses, ports and listeners (the host decides what a service ID is), queue
 * pairs, alternate paths (LAP is answered with "not supported").
 *
 * Threads: all calls on an agent come from one thread at a time.
 */
#ifndef RCD_CM_AGENT_H
#define RCD_CM_AGENT_H

#include "rcd_cm.h"
#include "rcd_cm_step.h"
#include "rcd_eth.h"

struct rcd_cm_agent;
struct rcd_cm_conn;

/**
 * Where MADs of a connection go, in the host's words: copied. Of two ways the remote ends are one
 * if the network namespaces and the addresses are.
 */
struct rcd_cm_way {
	uint64_t netns; /**< the host's number of the network namespace that addresses are of */
	struct rcd_gid local;
	struct rcd_gid remote;
	uint32_t flow_label;
	uint32_t dev; /**< the host's number of the device */
	uint8_t tclass;
	uint8_t hop_limit;
	/**
	 * A packet came by it, from this link address: answers go there. False again once the
	 * peer has shown that it gets them: the host finds the way to it.
	 */
	bool from_link;
	uint8_t mac[RCD_MAC_LEN];
};

/** What happened. */
enum rcd_cm_event {
	RCD_CM_EVENT_REQ,     /**< somebody asks for a connection: reply, reject or delay */
	RCD_CM_EVENT_REP,     /**< the peer agrees: confirm or reject */
	RCD_CM_EVENT_RTU,     /**< the peer has confirmed: established */
	RCD_CM_EVENT_REJ,     /**< the peer refused, at any time before it was established */
	RCD_CM_EVENT_DREQ,    /**< the peer disconnects: answer with rcd_cm_disconnected() */
	RCD_CM_EVENT_DREP,    /**< the peer has disconnected too; or it does not answer: msg NULL */
	RCD_CM_EVENT_TIMEOUT, /**< nobody answers a REQ, REP or SIDR_REQ */
	RCD_CM_EVENT_STALE,   /**< the peer asks for a new one, and has forgotten this one */
	RCD_CM_EVENT_SIDR_REQ, /**< somebody asks for a datagram service */
	RCD_CM_EVENT_SIDR_REP, /**< the answer to that */
	RCD_CM_EVENT_GONE,     /**< the timewait is over: the connection is no more after this */
};

/** What the host does for an agent. `arg` is the one given at creation. */
struct rcd_cm_ops {
	/** Send a MAD of RCD_MAD_LEN bytes to QP1 of the way's remote end. May be lost. */
	void (*send)(void *arg, const struct rcd_cm_way *way, const uint8_t *mad);

	/**
	 * Take an event. For REQ and SIDR_REQ the connection is new.
	 *
	 * @param msg  what came; NULL when nothing did
	 * @return 0; for REQ and SIDR_REQ, a reason of REJ (1..) or status of SIDR_REP: it is
	 *         refused with that and forgotten; RCD_CM_DROP: forgotten, and the peer asks
	 *         again. Not looked at otherwise
	 */
	uint16_t (*event)(void *arg, struct rcd_cm_conn *conn, enum rcd_cm_event event,
		const struct rcd_cm *msg);
};

/** See struct rcd_cm_ops. */
#define RCD_CM_DROP UINT16_MAX

/** What an agent is to be. */
struct rcd_cm_conf {
	uint32_t connections; /**< at most, those in timewait included: 1..65536 */
	uint32_t req_rate;    /**< REQs and SIDR_REQs taken in a second; 0: all */
	uint64_t secret;      /**< random bits: numbers that peers can't guess */
	uint64_t first_tid;   /**< of transactions: goes out as it is, and so is no secret */
	uint64_t guid;        /**< bits of the local adapter's (rcd_cm_guid()) */
	uint64_t life_ns;     /**< how long a packet may be under way */
	uint8_t patience;     /**< code of the time that a REQ may wait for the host: in an MRA */
	const struct rcd_cm_ops *ops;
	void *arg;
};

/** Counts of an agent. */
struct rcd_cm_counts {
	uint64_t received[RCD_CM_APR + 1]; /**< by attribute */
	uint64_t sent[RCD_CM_APR + 1];
	uint64_t sent_again;
	uint64_t duplicates;
	uint64_t dropped_class;  /**< other class, version or method, unknown attribute */
	uint64_t dropped_rate;   /**< REQs above the rate */
	uint64_t dropped_full;   /**< REQs for which there was no room */
	uint64_t dropped_nobody; /**< answers to nothing */
	uint64_t stale;          /**< REQs of queue pairs that have a connection */
};

/** Create an agent. @return NULL when memory is short or a number out of range */
struct rcd_cm_agent *
rcd_cm_agent_create(const struct rcd_cm_conf *conf);

/** Destroy an agent and forget its connections. Sends nothing. NULL is allowed. */
void
rcd_cm_agent_destroy(struct rcd_cm_agent *agent);

/** Connections, those in timewait included. */
uint32_t
rcd_cm_agent_used(const struct rcd_cm_agent *agent);

/** What the agent has done so far: the agent's, read in its thread. */
const struct rcd_cm_counts *
rcd_cm_agent_counts(const struct rcd_cm_agent *agent);

/**
 * Take a MAD that came to QP1.
 *
 * @param mad  RCD_MAD_LEN bytes
 * @param way  back to the sender: from the addresses of the packet
 */
void
rcd_cm_rx(struct rcd_cm_agent *agent, const uint8_t *mad, const struct rcd_cm_way *way,
	uint64_t now_ns);

/** When to call rcd_cm_expire() next. @return 0: never */
uint64_t
rcd_cm_next_deadline(const struct rcd_cm_agent *agent);

/**
 * Let time pass: messages are sent again, waits end.
 *
 * @param most  so many of them, those first that are due longest; the next deadline has passed
 *              already when there are more
 */
void
rcd_cm_expire(struct rcd_cm_agent *agent, uint64_t now_ns, uint32_t most);

/* rcd_cm_conn.c */

/**
 * Ask for a connection. The communication ID, the GUID, and the timeouts are put in; of the GUID
 * the last byte is the caller's: what is offered.
 *
 * @param req    all other fields; max_cm_retries and remote_cm_response_timeout say how long to ask
 * @param cookie  of the host, rcd_cm_cookie()
 * @return the connection; NULL when there is no room
 */
struct rcd_cm_conn *
rcd_cm_connect(struct rcd_cm_agent *agent, const struct rcd_cm_way *way,
	const struct rcd_cm_req *req, void *cookie, uint64_t now_ns);

/**
 * Agree to a REQ. IDs and GUID are put in, but for what is offered.
 *
 * @return 0 or -EINVAL in another state
 */
int
rcd_cm_reply(struct rcd_cm_conn *conn, const struct rcd_cm_rep *rep, uint64_t now_ns);

/** Confirm a REP: established. @return 0 or -EINVAL */
int
rcd_cm_confirm(struct rcd_cm_conn *conn, const uint8_t *private_data, uint32_t len);

/** Refuse a REQ or a REP. The connection goes to timewait. @return 0 or -EINVAL */
int
rcd_cm_reject(struct rcd_cm_conn *conn, uint16_t reason, const uint8_t *private_data, uint32_t len,
	uint64_t now_ns);

/** Say that an answer to a REQ or REP takes longer: MRA. @return 0 or -EINVAL */
int
rcd_cm_delay(struct rcd_cm_conn *conn, uint8_t service_timeout);

/** A packet of the connection came before its RTU: established. @return 0 or -EINVAL */
int
rcd_cm_heard(struct rcd_cm_conn *conn);

/** Disconnect. @return 0 or -EINVAL when it is not established */
int
rcd_cm_disconnect(
	struct rcd_cm_conn *conn, const uint8_t *private_data, uint32_t len, uint64_t now_ns);

/** Answer a DREQ: to timewait. @return 0 or -EINVAL */
int
rcd_cm_disconnected(
	struct rcd_cm_conn *conn, const uint8_t *private_data, uint32_t len, uint64_t now_ns);

/* rcd_cm_sidr.c */

/** Ask for a datagram service. @return NULL when there is no room */
struct rcd_cm_conn *
rcd_cm_sidr(struct rcd_cm_agent *agent, const struct rcd_cm_way *way,
	const struct rcd_cm_sidr_req *req, uint8_t timeout, uint8_t retries, void *cookie,
	uint64_t now_ns);

/** Answer a SIDR_REQ: to timewait. @return 0 or -EINVAL */
int
rcd_cm_sidr_reply(struct rcd_cm_conn *conn, const struct rcd_cm_sidr_rep *rep, uint64_t now_ns);

/* rcd_cm_conn.c */

/**
 * The host is done with a connection, whatever its state: the peer is told what fits (REJ, DREQ),
 * and no event but GONE comes any more.
 */
void
rcd_cm_release(struct rcd_cm_conn *conn, uint64_t now_ns);

/* rcd_cm_pool.c */

/**
 * The connection that a peer's queue pair is in, or is to be in, as the peer has said.
 *
 * @param way  netns and remote are looked at
 * @return NULL: none
 */
struct rcd_cm_conn *
rcd_cm_of_peer(struct rcd_cm_agent *agent, uint32_t remote_qpn, const struct rcd_cm_way *way);

/* rcd_cm_agent.c */

/** What its peer offers: RCD_CM_OFFERS_*. */
uint8_t
rcd_cm_offered(const struct rcd_cm_conn *conn);

/** Where a connection stands. */
enum rcd_cm_state
rcd_cm_conn_state(const struct rcd_cm_conn *conn);

/** The host's word on a connection. @return as it was set; NULL: never */
void *
rcd_cm_cookie(const struct rcd_cm_conn *conn);

/** Set it. It says nothing to the agent. */
void
rcd_cm_set_cookie(struct rcd_cm_conn *conn, void *cookie);

/** Another word of the host's, which it has until GONE. */
void *
rcd_cm_owner(const struct rcd_cm_conn *conn);

/** Set that. */
void
rcd_cm_set_owner(struct rcd_cm_conn *conn, void *owner);

/** The way to the peer: the connection's, valid until GONE. */
const struct rcd_cm_way *
rcd_cm_conn_way(const struct rcd_cm_conn *conn);

#endif /* RCD_CM_AGENT_H */
