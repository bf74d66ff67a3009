/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An identifier of librdmacm: its addresses, port, device, connection and groups. It is its
 * client's, and goes with it. What happens to it becomes events of its channel.
 *
 * Functions that return int return 0 or -errno; -EINVAL is for another state than the one that
 * the request needs, as with the kernel.
 *
 * Threads: the service's.
 */
#ifndef RCD_CMID_H
#define RCD_CMID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_cm_agent.h"
#include "rcd_ctrl.h"
#include "rcd_gid.h"

#define RCD_CMA_GROUPS_MAX  1024 /**< of a client */
#define RCD_CMA_BACKLOG_MAX 1024 /**< requests that wait at a listener */
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

/** Status of SIDR_REP (IBTA Vol. 1, 12.11.2.2). */
enum {
	RCD_CMA_SIDR_SUPPORTED = 0,
	RCD_CMA_SIDR_NOT_SUPPORTED = 1,
	RCD_CMA_SIDR_REFUSED = 2,
};

struct rcd_cma;
struct rcd_cma_channel;
struct rcd_cma_client;

/** A neighbour that was asked for. */
struct rcd_cma_hop {
	struct rcd_gid gid;
	uint16_t vlan_id; /**< 0: untagged */
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
	struct rcd_cma_client *client;
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
	uint32_t dev;        /**< number of the device; RCD_CMA_NO_DEV: none yet, or gone */
	int sgid_index;
	uint64_t until_ns;      /**< ADDR_QUERY: the end of its patience */
	struct rcd_cma_hop hop; /**< ADDR_QUERY: who was asked for */

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

/* rcd_cmid.c */

/** @return 0; -ENOENT: no such channel; -EPROTONOSUPPORT; -ENOMEM */
int
rcd_cmid_create(
	struct rcd_cma_client *client, const struct rcd_ctrl_cm_create_req *req, uint32_t *handle);

/** An identifier for a request. @return NULL when there is no room */
struct rcd_cmid *
rcd_cmid_child(struct rcd_cmid *listener);

/** It has nothing to do with its device any more: groups, connection, resolution. */
void
rcd_cmid_let_go(struct rcd_cmid *id);

/** Remove an identifier; the peer is told. @return events that its channel lost */
uint32_t
rcd_cmid_destroy(struct rcd_cmid *id);

/** @return NULL: the client has none with this number */
struct rcd_cmid *
rcd_cmid_get(const struct rcd_cma_client *client, uint32_t handle);

/** @return 0; -EINVAL; -ENODEV: nobody has the address; as rcd_cma_port_take() */
int
rcd_cmid_bind(struct rcd_cmid *id, const struct rcd_ctrl_cm_addr *addr);

/** @return 0; -EINVAL; -EADDRINUSE; as rcd_cmid_bind(), of who has not bound */
int
rcd_cmid_listen(struct rcd_cmid *id, uint32_t backlog);

/** Begin to; an event tells what came of it. @return 0; -EINVAL; as rcd_cmid_bind(), _route() */
int
rcd_cmid_resolve_addr(struct rcd_cmid *id, const struct rcd_ctrl_cm_resolve_req *req);
int
rcd_cmid_resolve_route(struct rcd_cmid *id);

/** Set an option. @return 0; -EINVAL; -ENOSYS: there is no such option */
int
rcd_cmid_set(struct rcd_cmid *id, const struct rcd_ctrl_cm_set_req *req);
void
rcd_cmid_query(const struct rcd_cmid *id, struct rcd_ctrl_cm_query_rep *rep);

/** Neighbours may have answered, and time has passed. */
void
rcd_cmid_look(struct rcd_cma *cma, uint64_t now_ns);

/** Identifiers of a device. @param serial  RCD_CMA_NO_DEV: all of the service */
uint32_t
rcd_cmid_count(const struct rcd_cma *cma, uint32_t serial);

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

/* rcd_cma_mcast.c */

/** @return 0 with an event; -EINVAL; -ENOMEM; the kernel's -errno */
int
rcd_cmid_join(struct rcd_cmid *id, const struct rcd_ctrl_cm_join_req *req, uint32_t *handle);

/** @param purged  set: events that its channel lost. @return 0 or -ENOENT */
int
rcd_cmid_leave(struct rcd_cmid *id, uint32_t handle, uint32_t *purged);
void
rcd_cmid_leave_all(struct rcd_cmid *id);

#endif /* RCD_CMID_H */
