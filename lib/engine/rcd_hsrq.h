/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Shared receive queues as clients ask for them. What returns an int gives 0 or -errno.
 *
 * Threads: the control thread.
 */
#ifndef RCD_HSRQ_H
#define RCD_HSRQ_H

#include <stdint.h>

#include "rcd_ctrl.h"

struct rcd_conn;
struct rcd_context;

/**
 * A queue in the segment.
 *
 * @return 0; -EINPROGRESS: call again; -ENOENT: no such domain; -EINVAL: out of range; -ENOMEM and
 *         what else a quota says: there is no room for it
 */
int
rcd_hsrq_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_srq_req *req, struct rcd_ctrl_srq_rep *rep);

/**
 * A queue of an XRC domain. -ENOENT: no such protection domain, membership or completion queue;
 * -EINVAL: out of range; -ENOMEM.
 */
int
rcd_hsrq_create_xrc(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_xsrq_req *req, struct rcd_ctrl_xsrq_rep *rep);

/** A context ends: no target reaches its queues any more, taken away some in each poll. */
void
rcd_hsrq_leave(struct rcd_context *context);

/** Arm its limit. -ENOENT; -EINVAL: more than its depth. */
int
rcd_hsrq_modify(struct rcd_context *context, const struct rcd_ctrl_srq_modify_req *req);

/**
 * A ring in place of the one that it has, which stays in use. A client that did not take the last
 * one gets another in its place.
 *
 * @return 0; -EINPROGRESS: call again; -ENOENT; -EINVAL: out of range; -ENOMEM and what else a
 *         quota says: there is no room for it, and a ring that was not taken is gone
 */
int
rcd_hsrq_resize(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_srq_resize_req *req, struct rcd_ctrl_srq_rep *rep);

/**
 * Take receives from that ring, with another limit or the one that there is.
 *
 * @return 0; -ENOENT: no such queue; -EINVAL: it has no such ring, the limit exceeds that, more is
 *         posted there than it holds, or the request is none. Refused, the queue stays as it is,
 *         and that ring is freed
 */
int
rcd_hsrq_switch(struct rcd_context *context, const struct rcd_ctrl_srq_switch_req *req);

/** -ENOENT */
int
rcd_hsrq_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_srq_query_rep *rep);

/** -ENOENT; -EBUSY: queue pairs refer to it. */
int
rcd_hsrq_destroy(struct rcd_context *context, uint32_t handle);

#endif /* RCD_HSRQ_H */
