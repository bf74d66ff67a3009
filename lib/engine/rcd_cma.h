/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The CM service of the engine: identifiers of all clients, as librdmacm knows them, over one
 * agent of lib/cm. All of it belongs to the control thread, but for the MADs that lcores take in
 * and send.
 *
 *   rcd_cma.c        the service: its agent, time, MADs in and out
 *   rcd_cma_id.c     identifiers: made, bound, resolved, listening, removed
 *   rcd_cma_conn.c   connections and datagram services of identifiers
 *   rcd_cma_quota.c  who is charged for connections
 *   rcd_cma_tell.c   what the agent tells of them
 *   rcd_cma_list.c   identifiers for the command line
 *   rcd_cma_event.c  channels and their events
 *   rcd_cma_port.c   port spaces
 *   rcd_cma_route.c  device and source address for a destination
 *   rcd_cma_mcast.c  multicast groups
 *   rcd_cma_serve.c  requests of clients
 *
 * The meaning of requests and events is that of librdmacm(7) and of the kernel's rdma_cm.
 */
#ifndef RCD_CMA_H
#define RCD_CMA_H

#include "rcd_cm_agent.h"
#include "rcd_engine_priv.h"

#define RCD_CMA_CONNECTIONS 65536 /**< of all clients, those in timewait included */
#define RCD_CMA_IDS_MAX     16384 /**< of a client */
#define RCD_CMA_CHANNELS    1024  /**< of a client */
#define RCD_CMA_GROUPS_MAX  1024  /**< of a client */
#define RCD_CMA_EVENTS_MAX  32768 /**< that wait in a channel */
#define RCD_CMA_BACKLOG_MAX 1024  /**< requests that wait at a listener */
#define RCD_CMA_REQ_RATE    20000 /**< requests taken in a second, of all peers */
#define RCD_CMA_UDP_QKEY    0x01234567u

/** State of an identifier. */
enum rcd_cma_state {
	RCD_CMA_IDLE,
	RCD_CMA_BOUND,
	RCD_CMA_LISTEN,
	RCD_CMA_ADDR_QUERY,
	RCD_CMA_ADDR_RESOLVED,
	RCD_CMA_ROUTE_RESOLVED,
	RCD_CMA_CONNECT, /**< from the first message until the end; the agent knows more */
	RCD_CMA_DISCONNECT,
	RCD_CMA_DEVICE_REMOVAL,
};

/** Events of librdmacm, numbers as there. */
enum rcd_cma_event_type {
	RCD_CMA_EVENT_ADDR_RESOLVED,
	RCD_CMA_EVENT_ADDR_ERROR,
	RCD_CMA_EVENT_ROUTE_RESOLVED,
	RCD_CMA_EVENT_ROUTE_ERROR,
	RCD_CMA_EVENT_CONNECT_REQUEST,
	RCD_CMA_EVENT_CONNECT_RESPONSE,
	RCD_CMA_EVENT_CONNECT_ERROR,
	RCD_CMA_EVENT_UNREACHABLE,
	RCD_CMA_EVENT_REJECTED,
	RCD_CMA_EVENT_ESTABLISHED,
	RCD_CMA_EVENT_DISCONNECTED,
	RCD_CMA_EVENT_DEVICE_REMOVAL,
	RCD_CMA_EVENT_MULTICAST_JOIN,
	RCD_CMA_EVENT_MULTICAST_ERROR,
	RCD_CMA_EVENT_ADDR_CHANGE,
	RCD_CMA_EVENT_TIMEWAIT_EXIT,
};

/** Status of SIDR_REP (IBTA Vol. 1, 12.11.2.2). */
enum {
	RCD_CMA_SIDR_SUPPORTED = 0,
	RCD_CMA_SIDR_NOT_SUPPORTED = 1,
	RCD_CMA_SIDR_REFUSED = 2,
};

struct rcd_cmid;

/** An event that waits. */
struct rcd_cma_event {
	STAILQ_ENTRY(rcd_cma_event) link;
	struct rcd_cmid *of; /**< goes with it: for a request, the listener */
	struct rcd_ctrl_cm_event_rep rep;
};

/** A channel of events. */
struct rcd_cma_channel {
	uint32_t handle;
	uint32_t users; /**< identifiers */
	int sock;       /**< sending end: a byte for each event */
	uint32_t count;
	uint32_t untold; /**< events whose byte did not fit */
	STAILQ_HEAD(, rcd_cma_event) events;
};

/** A group that an identifier has joined. */
struct rcd_cma_group {
	LIST_ENTRY(rcd_cma_group) link;
	uint32_t handle;
	struct rcd_gid gid;
	int sock; /**< by which the kernel is a member; -1: none */
	bool send_only;
};

/** An identifier. */
struct rcd_cmid {
	LIST_ENTRY(rcd_cmid) all_link; /**< of the service */
	LIST_ENTRY(rcd_cmid) port_link;
	TAILQ_ENTRY(rcd_cmid) wait_link; /**< of those in ADDR_QUERY */
	struct rcd_session *session;
	struct rcd_cma_channel *channel;
	uint32_t handle;
	uint16_t space;  /**< enum rcd_cma_space */
	uint8_t qp_type; /**< enum rcd_ctrl_qp_type */
	uint8_t state;   /**< enum rcd_cma_state */
	struct rcd_ctrl_cm_addr src;
	struct rcd_ctrl_cm_addr dst;
	bool on_port; /**< in the chain of src.port */
	bool reuse;
	bool afonly;
	uint8_t tos;
	uint8_t ack_timeout; /**< 0: the usual one */
	struct rcd_dev *dev; /**< NULL: none yet, or gone */
	int sgid_index;
	uint64_t until_ns;    /**< ADDR_QUERY: the end of its patience */
	struct rcd_next next; /**< ADDR_QUERY: who was asked for */

	/* Of a listener. */
	uint32_t backlog;
	uint32_t waiting;          /**< requests that the client has not seen */
	struct rcd_cmid *listener; /**< of a request that the client has not seen */
	LIST_ENTRY(rcd_cmid) child_link;
	LIST_HEAD(, rcd_cmid) children; /**< those requests */

	/* Of a connection. */
	struct rcd_cm_conn *conn;
	struct rcd_cm_way way;
	uint32_t qpn, qkey;
	uint32_t remote_qpn;
	uint32_t psn, remote_psn;
	uint32_t path_mtu_bytes;
	uint8_t responder_resources; /**< ours */
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t timeout;

	LIST_HEAD(, rcd_cma_group) groups;
	uint32_t next_group;
};

LIST_HEAD(rcd_cmid_list, rcd_cmid);
TAILQ_HEAD(rcd_cmid_queue, rcd_cmid);

/** Who is charged for connections: a session, and its user when that has ended before them. */
struct rcd_cma_account {
	LIST_ENTRY(rcd_cma_account) link;
	struct rcd_quota_entry *entry; /**< the session's, or rest */
	struct rcd_quota_entry rest;
};

LIST_HEAD(rcd_cma_accounts, rcd_cma_account);

/** What a client has. */
struct rcd_cma_client {
	struct rcd_cma_account *account;
	struct rcd_table ids;
	struct rcd_table channels;
	uint32_t group_count;
};

/** A MAD on its way from an lcore. */
struct rcd_cma_mad {
	struct rcd_cm_way way;
	uint8_t mad[RCD_MAD_LEN];
};

#define RCD_CMA_MADS   1024 /**< that wait for the control thread; a power of two */
#define RCD_CMA_PARKED 128  /**< that wait for a neighbour */
#define RCD_CMA_SPACES 4

/** Ports that are given to who asks for any, as the kernel's net.ipv4.ip_local_port_range. */
#define RCD_CMA_EPHEMERAL_FIRST 32768u
#define RCD_CMA_EPHEMERAL_COUNT 28232u

/** Identifiers that may share a port: all of them are looked at by who comes, requests too. */
#define RCD_CMA_PORT_SHARE 1024

/** Who has a port. */
struct rcd_cma_port {
	struct rcd_cmid_list ids;
	uint32_t count;
};

/** A port space. */
struct rcd_cma_space_ports {
	struct rcd_cma_port *ports;                          /**< by number */
	uint64_t taken[(RCD_CMA_EPHEMERAL_COUNT + 63) / 64]; /**< ephemeral ones, a bit each */
};

/** A MAD that waits for a neighbour. */
struct rcd_cma_parked {
	struct rcd_cma_mad mad;
	uint64_t until_ns;
	bool used;
};

/** The service. */
struct rcd_cma {
	struct rcd_engine *engine;
	struct rcd_cm_agent *agent;
	struct rte_ring *mads;
	struct rcd_cm_counts told; /**< what the devices' counters have of the agent's counts */
	struct rcd_cmid_list ids;
	struct rcd_cma_accounts rests; /**< of sessions that have ended */
	struct rcd_cmid_queue waiting; /**< in ADDR_QUERY; the next one to look at is the first */
	struct rcd_cma_space_ports spaces[RCD_CMA_SPACES];
	uint32_t psn; /**< of packets to QP1 */
	uint32_t parked_count;
	uint64_t reported_ns; /**< when groups were reported last, because of a query */
	struct rcd_cma_parked parked[RCD_CMA_PARKED];
};

/** Random bits that nobody can guess from others. */
uint32_t
rcd_cma_random(struct rcd_cma *cma);

/* rcd_cma_id.c */

int
rcd_cmid_create(
	struct rcd_session *session, const struct rcd_ctrl_cm_create_req *req, uint32_t *handle);

/** An identifier for a request. @return NULL when there is no room */
struct rcd_cmid *
rcd_cmid_child(struct rcd_cmid *listener);

/** It has nothing to do with its device any more: groups, connection, resolution. */
void
rcd_cmid_let_go(struct rcd_cmid *id);

/** Remove an identifier; the peer is told. @return events that its channel lost */
uint32_t
rcd_cmid_destroy(struct rcd_cmid *id);

struct rcd_cmid *
rcd_cmid_get(const struct rcd_session *session, uint32_t handle);

int
rcd_cmid_bind(struct rcd_cmid *id, const struct rcd_ctrl_cm_addr *addr);
int
rcd_cmid_listen(struct rcd_cmid *id, uint32_t backlog);
int
rcd_cmid_resolve_addr(struct rcd_cmid *id, const struct rcd_ctrl_cm_resolve_req *req);
int
rcd_cmid_resolve_route(struct rcd_cmid *id);
int
rcd_cmid_set(struct rcd_cmid *id, const struct rcd_ctrl_cm_set_req *req);
void
rcd_cmid_query(const struct rcd_cmid *id, struct rcd_ctrl_cm_query_rep *rep);

/** Neighbours may have answered, and time has passed. */
void
rcd_cmid_look(struct rcd_cma *cma, uint64_t now_ns);

/** Addresses as GIDs. */
static inline struct rcd_gid
rcd_cma_gid(const struct rcd_ctrl_cm_addr *addr)
{
	return rcd_gid_from_ipv6(addr->addr);
}

/* rcd_cma_conn.c */

int
rcd_cmid_connect(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *asked);
int
rcd_cmid_accept(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *asked);
int
rcd_cmid_establish(struct rcd_cmid *id);
int
rcd_cmid_reject(struct rcd_cmid *id, const struct rcd_ctrl_cm_reject_req *req);
int
rcd_cmid_disconnect(struct rcd_cmid *id);
int
rcd_cmid_heard(struct rcd_cmid *id);

/** Attributes that a queue pair of this identifier needs for a state of the verbs. */
int
rcd_cmid_qp_attr(const struct rcd_cmid *id, uint32_t state, struct rcd_ctrl_cm_attr_rep *rep);

/** The way to the peer. */
void
rcd_cmid_av(const struct rcd_cmid *id, struct rcd_ctrl_av *av);

/* rcd_cma_quota.c */

/** The account of a session. @return NULL: no memory */
struct rcd_cma_account *
rcd_cma_account_open(struct rcd_session *session);

/** The session ends; what its user still has is kept until the connections are gone. */
void
rcd_cma_account_close(struct rcd_cma *cma, struct rcd_cma_account *account);

/** Charge for a connection. @return 0 or -ENOMEM */
int
rcd_cma_account_charge(struct rcd_cma_account *account);

/** A connection is no more. */
void
rcd_cma_account_uncharge(struct rcd_cma_account *account);

/** Forget what sessions have left behind. */
void
rcd_cma_accounts_end(struct rcd_cma *cma);

/* rcd_cma_tell.c */

/** What the agent has to say. */
uint16_t
rcd_cma_on_event(
	void *arg, struct rcd_cm_conn *conn, enum rcd_cm_event event, const struct rcd_cm *msg);

/* rcd_cma_event.c */

int
rcd_cma_channel_create(struct rcd_session *session, uint32_t *handle, int *fd);
int
rcd_cma_channel_destroy(struct rcd_session *session, uint32_t handle);
struct rcd_cma_channel *
rcd_cma_channel_get(const struct rcd_session *session, uint32_t handle);

/** An event of an identifier, all but its kind zero. @return NULL, and it is counted as lost */
struct rcd_cma_event *
rcd_cma_event(struct rcd_cmid *id, enum rcd_cma_event_type type, int status);

/** Let it wait in the channel of whom it is of. */
void
rcd_cma_event_post(struct rcd_cma_event *event);

/** Both, for an event that says no more than its kind. */
void
rcd_cma_event_tell(struct rcd_cmid *id, enum rcd_cma_event_type type, int status);

/** Take the oldest. @return 0 or -EAGAIN */
int
rcd_cma_event_take(struct rcd_session *session, struct rcd_cma_channel *channel,
	struct rcd_ctrl_cm_event_rep *rep);

/** Remove what waits of an identifier, or of one group of it. @return how many events */
uint32_t
rcd_cma_event_purge(struct rcd_cmid *id, const struct rcd_cma_group *group);

/** Take an identifier and what waits of it to another channel. @return how many events */
uint32_t
rcd_cma_event_migrate(struct rcd_cmid *id, struct rcd_cma_channel *channel);

/** Forget all that waits for a client: it takes nothing any more. */
void
rcd_cma_events_end(struct rcd_session *session);

/** Free a client's channels. */
void
rcd_cma_channels_end(struct rcd_session *session);

/* rcd_cma_port.c */

int
rcd_cma_ports_init(struct rcd_cma *cma);
void
rcd_cma_ports_fini(struct rcd_cma *cma);

/** Whether it is a port space. */
bool
rcd_cma_space_valid(uint32_t space);

/**
 * Take the port of id->src; a free one when that is 0, which is put in. Its session is charged.
 *
 * @return 0; -EADDRINUSE; -EACCES: privileged; -EADDRNOTAVAIL: none is free, or a quota is reached
 */
int
rcd_cma_port_take(struct rcd_cmid *id);
void
rcd_cma_port_release(struct rcd_cmid *id);

/** Whether a bound identifier may listen beside the others on its port. @return 0, -EADDRINUSE */
int
rcd_cma_port_listen(const struct rcd_cmid *id);

/** Who listens for this. @return NULL: nobody */
struct rcd_cmid *
rcd_cma_port_find(struct rcd_cma *cma, const struct rcd_dev *dev, enum rcd_cma_space space,
	uint16_t port, const struct rcd_gid *dst);

/* rcd_cma_route.c */

/** Whether it is the wildcard of its family, or of none. */
bool
rcd_cma_addr_any(const struct rcd_ctrl_cm_addr *addr);

/** Whether it means this machine without being an address of a device: a wildcard or loopback. */
bool
rcd_cma_addr_itself(const struct rcd_ctrl_cm_addr *addr);

/** An address of a device, of this family and link-local or not. @return its place; -1: none */
int
rcd_cma_any_gid(const struct rcd_dev *dev, uint8_t family, bool link_local);

/**
 * The device and address for a destination (doc/cm.md).
 *
 * @param src  family 0 or the wildcard: any; else that address is wanted
 * @return 0; -ENETUNREACH: the way there is no device of this engine; -EINVAL
 */
int
rcd_cma_route(struct rcd_engine *engine, const struct rcd_ctrl_cm_addr *src,
	const struct rcd_ctrl_cm_addr *dst, struct rcd_dev **dev, int *sgid_index);

/** The first device that is up, and an address of this family that it has. @return NULL: none */
struct rcd_dev *
rcd_cma_first(struct rcd_engine *engine, uint8_t family, int *sgid_index);

/** The device that has an address. @return NULL */
struct rcd_dev *
rcd_cma_owner(struct rcd_engine *engine, const struct rcd_ctrl_cm_addr *addr, int *sgid_index);

/* rcd_cma_mcast.c */

int
rcd_cmid_join(struct rcd_cmid *id, const struct rcd_ctrl_cm_join_req *req, uint32_t *handle);
int
rcd_cmid_leave(struct rcd_cmid *id, uint32_t handle, uint32_t *purged);
void
rcd_cmid_leave_all(struct rcd_cmid *id);

#endif /* RCD_CMA_H */
