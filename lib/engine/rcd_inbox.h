/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What comes by connections: requests are read in turns, those that can't be answered yet wait, and
 * replies go out.
 *
 * Threads: the control thread.
 */
#ifndef RCD_INBOX_H
#define RCD_INBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct rcd_conn;
struct rcd_conns;

/** What was read of all connections and is not answered, or not read. */
struct rcd_inbox {
	uint32_t parked; /**< connections whose request waits, for whatever it may be */
	bool read_later; /**< as some connection has it */
	TAILQ_HEAD(rcd_unfinished_queue, rcd_conn) unfinished; /**< those that go on in turns */
};

/** The socket of a connection can be read. It may be gone afterwards. */
void
rcd_inbox_ready(struct rcd_conn *conn);

/** A connection is over: what waits for it, its share of a context, and then itself. */
void
rcd_inbox_close(struct rcd_conn *conn);

/** Go on with requests that are not finished, of a few connections in turns. */
void
rcd_inbox_go_on(struct rcd_conns *conns);

/** Connections whose messages were left unread, for want of room to close descriptors, are read. */
void
rcd_inbox_read_again(struct rcd_conns *conns);

#endif /* RCD_INBOX_H */
