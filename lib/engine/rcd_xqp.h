/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Targets of XRC: queue pairs of a domain, and of no context. Contexts that are members have them
 * open, the one that made it among them; it lives until the last has closed it, and each is charged
 * for a queue pair and told of its events. What returns an int gives 0 or -errno.
 *
 * Threads: the control thread.
 */
#ifndef RCD_XQP_H
#define RCD_XQP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_ctrl.h"
#include "rcd_queue.h"
#include "rcd_shm.h"

struct rcd_conn;
struct rcd_conns;
struct rcd_context;
struct rcd_contexts;
struct rcd_xmember;
struct rcd_xrcd;

/** Times that a target can be open: all of them are told of its events. */
#define RCD_XQP_OPENS 256

/** A context that has a target open. */
struct rcd_xopen {
	LIST_ENTRY(rcd_xopen) link;
	struct rcd_xqp *target;
	struct rcd_context *context;
	struct rcd_xmember *member;
	uint32_t handle;
	uint32_t conn_serial; /**< connection that is told of events */
	uint64_t cookie;
};

/** A target. */
struct rcd_xqp {
	struct rcd_hqp hqp;
	struct rcd_shm_wq rings[2]; /**< in the place of a client's: nothing is ever posted */
	struct rcd_xrcd *xrcd;
	LIST_ENTRY(rcd_xqp) link;
	LIST_HEAD(, rcd_xopen) opens;
	uint32_t open_count;
};

LIST_HEAD(rcd_xqp_list, rcd_xqp);

/** Make a target in RESET, and have it open. -ENOENT: no such membership; -ENOMEM */
int
rcd_xqp_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_xqp_req *req, struct rcd_ctrl_xqp_rep *rep);

/**
 * Have one open that another context, or this one, made. -ENOENT: not in the domain; -ENOMEM: also
 * when it is open RCD_XQP_OPENS times.
 */
int
rcd_xqp_open(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_xqp_req *req, struct rcd_ctrl_xqp_rep *rep);

/** Memory of a member is reached by copies from now on: the targets of the domain wait for them. */
void
rcd_xqp_copy(struct rcd_xrcd *xrcd);

/** As rcd_hqp_modify() */
int
rcd_xqp_modify(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_qp_modify_req *req);

/** -ENOENT */
int
rcd_xqp_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_qp_attr *attr);

/** -ENOENT; the last one ends it. */
int
rcd_xqp_close(struct rcd_context *context, uint32_t handle);

/** A context ends: all that it has open is closed, some in each poll. */
void
rcd_xqp_leave(struct rcd_context *context);

/** Tell those who have a target open of an event. @param cookie  of the note */
void
rcd_xqp_event(
	struct rcd_contexts *contexts, struct rcd_conns *conns, uint64_t cookie, uint32_t type);

#endif /* RCD_XQP_H */
