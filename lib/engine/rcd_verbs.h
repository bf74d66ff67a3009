/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Receive queues and queue pairs as clients ask for them: their making and their end.
 * What returns an int gives 0 or -errno.
 *
 * Threads: the control thread.
 */
#ifndef RCD_VERBS_H
#define RCD_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_ctrl.h"

struct rcd_conn;
struct rcd_context;
struct rcd_hqp;

/** A shared receive queue. -ENOENT: no such domain; -EINVAL: out of range. */
int
rcd_verbs_srq_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_srq_req *req, struct rcd_ctrl_srq_rep *rep);
/** Arm its limit. -ENOENT; -EINVAL: more than its depth. */
int
rcd_verbs_srq_modify(struct rcd_context *context, const struct rcd_ctrl_srq_modify_req *req);
/** -ENOENT */
int
rcd_verbs_srq_query(
	struct rcd_context *context, uint32_t handle, struct rcd_ctrl_srq_query_rep *rep);
/** -ENOENT; -EBUSY: queue pairs refer to it. */
int
rcd_verbs_srq_destroy(struct rcd_context *context, uint32_t handle);
/** A queue pair in RESET. -ENOENT: an object that it names is not there; -EINVAL: out of range. */
int
rcd_verbs_qp_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_qp_req *req, struct rcd_ctrl_qp_rep *rep);
/** -ENOENT; its groups are left, its windows unbound. */
int
rcd_verbs_qp_destroy(struct rcd_context *context, uint32_t handle);

/**
 * Whether a queue pair is of a connection's process: of its context, or of one that the process has
 * by another connection, as with librdmacm's identifiers.
 */
bool
rcd_verbs_qpn_is_of(const struct rcd_conn *conn, uint32_t qpn);

/** Unbind the type 2 windows of a queue pair that can bind no more, some in each poll. */
void
rcd_verbs_unbind(struct rcd_hqp *hqp);

/** Take a context and all its queue pairs from its lcore; their memory stays. */
void
rcd_verbs_end(struct rcd_context *context);

/** Take all queue pairs of a context to ERR: its memory or its device went away. */
void
rcd_verbs_fail_all(struct rcd_context *context);

#endif /* RCD_VERBS_H */
