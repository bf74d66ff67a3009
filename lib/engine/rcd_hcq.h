/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion queues as clients ask for them. One of a context at a time can be in the middle of
 * being resized, by several rounds. What returns an int gives 0 or -errno.
 *
 * Threads: the control thread.
 */
#ifndef RCD_HCQ_H
#define RCD_HCQ_H

#include <stdint.h>

#include "rcd_ctrl.h"

struct rcd_conn;
struct rcd_context;

/** A queue in the segment; -ENOENT: no such channel; -EINVAL: no depth that there can be. */
int
rcd_hcq_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_cq_req *req, struct rcd_ctrl_cq_rep *rep);

/** @return -EINPROGRESS: in the next round again */
int
rcd_hcq_resize(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_cq_resize_req *req, struct rcd_ctrl_cq_rep *rep);
/** When its events are told of, as ibv_modify_cq(). -ENOENT; -EINVAL */
int
rcd_hcq_modify(struct rcd_context *context, const struct rcd_ctrl_cq_modify_req *req);
/** -ENOENT; -EBUSY: queue pairs refer to it. */
int
rcd_hcq_destroy(struct rcd_context *context, uint32_t handle);

/** A connection's request is over: a queue that was not moved whole stays as it was. */
void
rcd_hcq_settle(struct rcd_context *context, uint32_t conn_serial);

/** The context ends, its lcore knows it no more. */
void
rcd_hcq_end(struct rcd_context *context);

#endif /* RCD_HCQ_H */
