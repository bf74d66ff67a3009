/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Address vectors as clients give them, for queue pairs and address handles: checked, and the way
 * to the peer found.
 *
 * Threads: the control thread.
 */
#ifndef RCD_RESOLVE_H
#define RCD_RESOLVE_H

struct rcd_av;
struct rcd_conn;
struct rcd_context;
struct rcd_ctrl_av;

/**
 * Make a vector that packets can be sent by.
 *
 * @param conn  that asks, whose waiter waits
 * @param av    has its next hop counted, when 0 is returned
 * @return 0; RCD_REQUEST_WAITS: the neighbour is being asked for; -EINVAL: no such source, or not
 *         of the peer's kind; -ENETUNREACH, -ETIMEDOUT, -ENOMEM
 */
int
rcd_resolve_av(struct rcd_context *context, struct rcd_conn *conn, const struct rcd_ctrl_av *from,
	struct rcd_av *av);

#endif /* RCD_RESOLVE_H */
