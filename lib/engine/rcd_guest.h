/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Guests: clients of other network namespaces, who may make a few links for their own one where
 * netns_links lets them, without any right. One names, sees and ends links of its own namespace and
 * user, and no others.
 *
 * Such a link ends when a guest of the same namespace and user deletes it, when who administers
 * does, when its netdev goes, and with the engine; not with the connection that made it.
 *
 * Threads: the control thread.
 */
#ifndef RCD_GUEST_H
#define RCD_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_pauses.h"

struct rcd_admin_req;
struct rcd_conn;
struct rcd_engine;

/** What an engine knows of its guests. */
struct rcd_guests {
	bool ended; /**< nobody makes sockets any more */
	struct rcd_pauses pauses;
};

/** Whether a connection is a guest's. */
bool
rcd_guest_is(const struct rcd_conn *conn);

/**
 * Have sockets made in the network namespace of a guest, for the link that it adds next; those that
 * it has go.
 *
 * @param fd  of its namespace, as it says; the caller's
 * @return 0, and conn->asked says how it goes; -EINVAL: of none; -EAGAIN: not now; -EPIPE: nobody
 *         makes them
 */
int
rcd_guest_ask(struct rcd_conn *conn, int fd);

/** Take what was made, when its socket is readable. */
void
rcd_guest_ready(struct rcd_engine *engine);

/** Whether it is a guest's turn (rcd_pauses.h): who comes too early is told to ask again. */
bool
rcd_guest_turn(const struct rcd_conn *conn);

/** A guest had its turn, which began then. */
void
rcd_guest_spent(const struct rcd_conn *conn, uint64_t began_ns);

/**
 * Add a link for a guest, by the members name, type, netdev and mtu of its request. The sockets
 * that the request has become the link's.
 *
 * @param error  set to a sentence unless 0 is returned
 * @return 0; -EDQUOT: the namespace, its user, or all guests have as many as they may; else as
 *         rcd_ports_add()
 */
int
rcd_guest_link_add(
	const struct rcd_conn *conn, struct rcd_admin_req *req, char *error, size_t error_len);

/**
 * Remove one that it added, or another guest of its namespace and its user; of any user, if it is
 * root or who started the engine. @return likewise
 */
int
rcd_guest_link_del(const struct rcd_conn *conn, const struct rcd_admin_req *req, char *error,
	size_t error_len);

#endif /* RCD_GUEST_H */
