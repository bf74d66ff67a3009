/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An identifier of librdmacm: its addresses, port, device, connection and groups. It is its
 * client's, and goes with it. What happens to it becomes events of its channel.
 *
 * Functions that return int return 0 or -errno; -EINVAL is for another state than the one that
 * the request needs, as with the kernel.
 *
 * asker is the host's word for whose request it is, of several who share a client: by its rights
 * privileged ports are taken and queue pairs named (struct rcd_cma_ops).
 *
 * Threads: the control thread.
 */
#ifndef RCD_CMID_H
#define RCD_CMID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_alarm.h"
#include "rcd_cm_agent.h"
#include "rcd_cm_step.h"
#include "rcd_ctrl.h"
#include "rcd_gid.h"
#include "rcd_thread.h"
#include "rcd_waiter.h"

#define RCD_CMA_GROUPS_MAX  1024 /**< of a client */
#define RCD_CMA_BACKLOG_MAX 1024 /**< requests that wait at a listener */
#define RCD_CMA_UDP_QKEY    0x01234567u

/** Status of SIDR_REP (IBTA Vol. 1, 12.11.2.2). */
enum {
	RCD_CMA_SIDR_SUPPORTED = 0,
	RCD_CMA_SIDR_NOT_SUPPORTED = 1,
	RCD_CMA_SIDR_REFUSED = 2,
};

struct rcd_cma_dev;
struct rcd_cma;
struct rcd_cma_channel;
struct rcd_cma_client;
struct rcd_cma_event;
struct rcd_cma_member;

TAILQ_HEAD(rcd_cma_event_list, rcd_cma_event);

/** A group that an identifier has joined. */
struct rcd_cma_group {
	LIST_ENTRY(rcd_cma_group) link;
	uint32_t handle;
	struct rcd_cma_member *member; /**< NULL: it only sends */
	int sock;                      /**< by which the kernel is a member; -1: none */
};

/** An identifier. */
struct rcd_cmid {
	LIST_ENTRY(rcd_cmid) all_link; /**< of the service */
	LIST_ENTRY(rcd_cmid) port_link;
	struct rcd_cma_client *client;
	struct rcd_cma_channel *channel;
	struct rcd_cma_event_list events; /**< that wait in it, oldest first */
	uint32_t handle;
	uint16_t space;  /**< enum rcd_cma_space */
	uint8_t qp_type; /**< enum rcd_qp_type */
	uint8_t state;   /**< enum rcd_cma_state */
	struct rcd_ctrl_cm_addr src;
	struct rcd_ctrl_cm_addr dst;
	uint64_t netns;                      /**< network namespace that it has the port in */
	struct rcd_cma_port_part *port_part; /**< NULL: it has no port */
	bool reuse;
	bool afonly;
	uint8_t tos;
	bool has_tos;        /**< its owner gave that; else it is that of its device */
	uint8_t ack_timeout; /**< 0: the usual one */
	uint32_t dev;        /**< number of the device; RCD_CMA_NO_DEV: none yet, or gone */
	int sgid_index;
	struct rcd_waiter waiter;  /**< ADDR_QUERY: for the neighbour */
	struct rcd_alarm patience; /**< ADDR_QUERY: its end */

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

/** Whether an identifier is in a state that permits a step. Any thread. */
static inline bool
rcd_cmid_may(const struct rcd_cmid *id, enum rcd_cm_step step)
{
	return rcd_cm_move_may(&rcd_cm_rows[step].service, id->state);
}

/** Take a step. @return false: its state does not permit it, and stays */
static inline bool
rcd_cmid_step(struct rcd_cmid *id, enum rcd_cm_step step)
{
	RCD_ON_CONTROL();
	return rcd_cm_move(&rcd_cm_rows[step].service, &id->state);
}

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
rcd_cmid_bind(struct rcd_cmid *id, const void *asker, const struct rcd_ctrl_cm_addr *addr);

/** @return 0; -EINVAL; -EADDRINUSE; as rcd_cmid_bind(), of who has not bound */
int
rcd_cmid_listen(struct rcd_cmid *id, const void *asker, uint32_t backlog);

/** Begin to; an event tells what came of it. @return 0; -EINVAL; as rcd_cmid_bind(), _route() */
int
rcd_cmid_resolve_addr(
	struct rcd_cmid *id, const void *asker, const struct rcd_ctrl_cm_resolve_req *req);

/** Ask for the route to the address that was resolved; an event tells. @return 0 or -EINVAL */
int
rcd_cmid_resolve_route(struct rcd_cmid *id);

/** Set an option. @return 0; -EINVAL; -ENOSYS: there is no such option */
int
rcd_cmid_set(struct rcd_cmid *id, const struct rcd_ctrl_cm_set_req *req);

/** What is known of its addresses, device and path. */
void
rcd_cmid_query(const struct rcd_cmid *id, struct rcd_ctrl_cm_query_rep *rep);

/** Identifiers of a device. @param serial  RCD_CMA_NO_DEV: all of the service */
uint32_t
rcd_cmid_count(const struct rcd_cma *cma, uint32_t serial);

/** Addresses as GIDs. Any thread. */
static inline struct rcd_gid
rcd_cma_gid(const struct rcd_ctrl_cm_addr *addr)
{
	return rcd_gid_from_ipv6(addr->addr);
}

/* rcd_cma_conn.c */

/** Ask the peer for a connection; an event tells what came of it. @return 0 or -errno */
int
rcd_cmid_connect(struct rcd_cmid *id, const void *asker, const struct rcd_ctrl_cm_param_req *asked);

/** Agree to the request of a peer. @return 0 or -errno; -EINVAL: none waits for an answer */
int
rcd_cmid_accept(struct rcd_cmid *id, const void *asker, const struct rcd_ctrl_cm_param_req *asked);

/** Tell the peer that we know that it agrees: an RTU. @return 0 or -EINVAL */
int
rcd_cmid_establish(struct rcd_cmid *id);

/** Refuse a peer's request. @return 0 or -EINVAL */
int
rcd_cmid_reject(struct rcd_cmid *id, const struct rcd_ctrl_cm_reject_req *req);

/** End a connection; one that the peer has ended is no error. @return 0 or -EINVAL */
int
rcd_cmid_disconnect(struct rcd_cmid *id);

/** The peer has sent before its RTU came: connected. @return 0; -EINVAL: none is awaited */
int
rcd_cmid_heard(struct rcd_cmid *id);

/** Attributes that a queue pair of this identifier needs for a state of the verbs. */
int
rcd_cmid_qp_attr(const struct rcd_cmid *id, uint32_t state, struct rcd_ctrl_cm_attr_rep *rep);

/** Traffic class of what an identifier on this device sends. */
uint8_t
rcd_cmid_tclass(const struct rcd_cmid *id, const struct rcd_cma_dev *dev);

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

/** Leave all groups that the identifier has joined. */
void
rcd_cmid_leave_all(struct rcd_cmid *id);

#endif /* RCD_CMID_H */
