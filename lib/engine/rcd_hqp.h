/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queue pairs as clients ask for them. What returns an int gives 0 or -errno.
 *
 * Threads: the control thread, unless a function says otherwise.
 */
#ifndef RCD_HQP_H
#define RCD_HQP_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_ctrl.h"

struct rcd_cc_ops;
struct rcd_cc_params;
struct rcd_conn;
struct rcd_context;
struct rcd_hqp;
struct rcd_lcore;
struct rcd_lcores;
struct rcd_dev;
struct rcd_qp_init;

/**
 * A queue pair in RESET. -ENOENT: an object that it names is not there; -EINVAL: out of range, or
 * its shared receive queue is of an XRC domain.
 */
int
rcd_hqp_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_qp_req *req, struct rcd_ctrl_qp_rep *rep);

/**
 * -ENOENT; RCD_REQUEST_WAITS: what was posted before has not left (rcd_drain.h). Its groups are
 * left, its windows unbound. Another connection of the context may destroy it while the request
 * waits, and have the handle for a new one: that stays.
 *
 * @param conn  that the request came by
 */
int
rcd_hqp_destroy(struct rcd_context *context, const struct rcd_conn *conn, uint32_t handle);

/**
 * The transport's part of a queue pair or a target, in memory near its lcore; rcd_hqp_free() gives
 * it back.
 *
 * @return 0, -EINVAL for what rcd_qp_size() refuses, or -ENOMEM
 */
int
rcd_hqp_make(struct rcd_hqp *hqp, const struct rcd_dev *dev, struct rcd_qp_init *init);

/**
 * Congestion control that a device has for its queue pairs, but for traffic classes. When it is
 * automatic (cc auto), swift: its target minds that an lcore is away where others run on its core.
 *
 * @param ops, params  are set, all of them
 */
void
rcd_hqp_choose_cc(
	const struct rcd_dev *dev, const struct rcd_cc_ops **ops, struct rcd_cc_params *params);

/** Unbind the type 2 windows of a queue pair that can bind no more, some in each poll. */
void
rcd_hqp_unbind(struct rcd_hqp *hqp);

/** The queue pair of any context, or the target, that has a number. @return NULL: none has it */
struct rcd_hqp *
rcd_hqp_find(const struct rcd_lcores *lcores, uint32_t qpn);

/**
 * Whether a queue pair is of a connection's process: of its context, or of one that the process has
 * by another connection, as with librdmacm's identifiers.
 */
bool
rcd_hqp_is_of(const struct rcd_lcores *lcores, const struct rcd_conn *conn, uint32_t qpn);

/** Take one from its lcore. What it has completed is shown first. On the lcore. @return 0 */
int
rcd_hqp_leave(struct rcd_lcore *lcore, void *hqp);

/** Free one that no lcore knows, with its number and its hold on a next hop. */
void
rcd_hqp_free(struct rcd_context *context, struct rcd_hqp *hqp);

/* rcd_hqp_modify.c */

/**
 * Change a queue pair, as ibv_modify_qp().
 *
 * @return 0; -ENOENT; -EINVAL: its state does not permit it; -EPERM: a privileged Q_Key;
 *         RCD_REQUEST_WAITS: for a neighbour, or its lcore is still flushing; -ENOMEM; of the way
 *         as rcd_resolve_av()
 */
int
rcd_hqp_modify(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_qp_modify_req *req);

/** The same of a queue pair, or of a target that the context that asks has open. */
int
rcd_hqp_modify_it(struct rcd_context *context, struct rcd_conn *conn, struct rcd_hqp *hqp,
	const struct rcd_ctrl_qp_modify_req *req);

/**
 * Lend the queue pair with this number memory for selective acknowledgement, which its peer agreed
 * to while it ran. Without memory, or when it is not that one any more, nothing changes.
 */
void
rcd_hqp_lend_sack(const struct rcd_lcores *lcores, uint32_t qpn);

/** What it is now. @return 0 */
int
rcd_hqp_query_it(struct rcd_hqp *hqp, struct rcd_ctrl_qp_attr *attr);

/** What a queue pair is now. -ENOENT */
int
rcd_hqp_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_qp_attr *attr);

#endif /* RCD_HQP_H */
