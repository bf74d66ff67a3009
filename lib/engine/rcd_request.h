/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A request of a client, by whom it came and what it is about.
 *
 * Threads: the control thread.
 */
#ifndef RCD_REQUEST_H
#define RCD_REQUEST_H

#include "rcd_ctrl.h"

struct rcd_conn;
struct rcd_context;
struct rcd_engine;

/** A reply's fields and descriptors. */
struct rcd_answer {
	struct rcd_ctrl_msg msg;
	struct rcd_ctrl_fds fds;
	uint32_t keep; /**< bits of descriptors that are not to be closed after sending */
};

/**
 * What a request comes to that is served again when the connection's waiter is told, or soon if
 * that waits for nobody. No error number: each of those is an answer.
 */
#define RCD_REQUEST_WAITS 1

/** A request that is served. */
struct rcd_request {
	struct rcd_engine *engine;
	struct rcd_conn *conn; /**< that it came by */
	struct rcd_context
		*context; /**< the connection's; NULL: it has none, and the request needs none */
	uint32_t op;      /**< enum rcd_ctrl_op */
	const union rcd_ctrl_body *in;
	union rcd_ctrl_body *out;    /**< all 0 */
	struct rcd_ctrl_fds *fds_in; /**< what is kept is set to -1 */
	struct rcd_answer *reply;
};

/* rcd_serve.c */

/**
 * Serve a request that passed rcd_ctrl_req_check(). The connection is there afterwards; its context
 * may not be.
 *
 * @param conn  that it came by
 * @param fds   of the request; what is kept is set to -1
 * @return 0 with the body filled; RCD_REQUEST_WAITS; -EINPROGRESS: serve it again in the next
 *         round; another -errno
 */
int
rcd_serve(struct rcd_conn *conn, const struct rcd_ctrl_msg *req, struct rcd_ctrl_fds *fds,
	struct rcd_answer *reply);

#endif /* RCD_REQUEST_H */
