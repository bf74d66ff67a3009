/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who a client is, and what it may.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CRED_H
#define RCD_CRED_H

#include <stdbool.h>

struct rcd_conn;
struct rcd_context;

/** Capabilities that requests may need, numbers as in capabilities(7). */
enum rcd_cap {
	RCD_CAP_NET_BIND_SERVICE = 10,
	RCD_CAP_NET_RAW = 13,
};

/** Read the name and the rights of the process that has connected. */
void
rcd_cred_read(struct rcd_conn *conn);

/** Whether a connection has a capability, and had it from the start. */
bool
rcd_cred_may(const struct rcd_conn *conn, enum rcd_cap cap);

/**
 * Whether a connection uses a context, or is of a process that does by another: as librdmacm's
 * connection is. A process of a PID namespace that we can't see has no number here, and shares with
 * nobody but by the context itself.
 */
bool
rcd_cred_same_process(const struct rcd_conn *conn, const struct rcd_context *context);

#endif /* RCD_CRED_H */
