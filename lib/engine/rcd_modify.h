/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What clients change and ask of queue pairs, address handles, and who is in a multicast group.
 * What returns an int gives 0 or -errno.
 *
 * Threads: the control thread.
 */
#ifndef RCD_MODIFY_H
#define RCD_MODIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_ctrl.h"

struct rcd_conn;
struct rcd_context;

/**
 * Change a queue pair, as ibv_modify_qp().
 *
 * @return 0; -ENOENT; -EINVAL: its state does not permit it; -EAGAIN: it waits for a neighbour, by
 *         the connection's waiter; -EALREADY: the lcore is still flushing, ask again later; of the
 *         way, -ENETUNREACH, -ETIMEDOUT or -ENOMEM
 */
int
rcd_modify_qp(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_qp_modify_req *req);
/** What a queue pair is now. -ENOENT */
int
rcd_modify_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_qp_attr *attr);

/** @return likewise */
int
rcd_modify_ah_create(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_ah_req *req, uint32_t *handle);
/** -ENOENT: not of this context, or of another domain. */
int
rcd_modify_ah_destroy(struct rcd_context *context, const struct rcd_ctrl_ah_handle *req);

/** A queue pair joins a group, or leaves it. -ENOENT; -EINVAL: no group, or no UD; -ENOMEM */
int
rcd_modify_mcast(struct rcd_context *context, const struct rcd_ctrl_mcast_req *req, bool attach);

#endif /* RCD_MODIFY_H */
