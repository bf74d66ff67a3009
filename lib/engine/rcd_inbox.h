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

struct rcd_conn;
struct rcd_engine;

/** The socket of a connection can be read. It may be gone afterwards. */
void
rcd_inbox_ready(struct rcd_conn *conn);

/** A connection is over: what waits for it, its share of a context, and then itself. */
void
rcd_inbox_close(struct rcd_conn *conn);

/** Go on with requests that are not finished, of a few connections in turns. */
void
rcd_inbox_go_on(struct rcd_engine *engine);

/** Connections whose messages were left unread, for want of room to close descriptors, are read. */
void
rcd_inbox_read_again(struct rcd_engine *engine);

#endif /* RCD_INBOX_H */
