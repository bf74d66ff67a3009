/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A connection: the socket of a client, who it is, and what it is told. What it has opened is a
 * context (rcd_context.h), which may be several connections'; what comes by its socket is
 * rcd_inbox.h's. The program that the engine is a part of has connections too, without a socket
 * (rcd_own.h).
 *
 * Threads: the control thread.
 */
#ifndef RCD_CONN_H
#define RCD_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "rcd_alarm.h"
#include "rcd_away.h"
#include "rcd_cm_host.h"
#include "rcd_ctrl.h"
#include "rcd_quota.h"
#include "rcd_waiter.h"

struct rcd_conns;
struct rcd_context;
struct rcd_dev;
struct rcd_lclient_ops;

/** Whose a connection is that has no socket: the program that the engine is a part of. */
struct rcd_conn_owner {
	const struct rcd_lclient_ops *lcore; /**< of its context */

	/** An asynchronous event. @return false: there is no room for it */
	bool (*event)(void *arg, const struct rcd_ctrl_event *event);

	/** The connection is no more, nor its context. */
	void (*gone)(void *arg);
};

/** A connection. */
struct rcd_conn {
	LIST_ENTRY(rcd_conn) link;         /**< of all */
	LIST_ENTRY(rcd_conn) serial_link;  /**< of those that are found together */
	LIST_ENTRY(rcd_conn) context_link; /**< of those that use the same context */
	struct rcd_conns *all;             /**< that it is one of */
	struct rcd_context *context;       /**< NULL: it has opened none */
	struct rcd_quota_entry quota;      /**< what it has whatever it opens */
	struct rcd_cm_user cm;             /**< until it has a context */
	uint32_t serial; /**< of no other that is open: numbers come round; not 0 */
	const struct rcd_conn_owner *owner; /**< NULL: a client, by its socket */
	void *owner_arg;
	int sock; /**< -1: none */
	pid_t pid;
	uid_t uid;
	gid_t gid;
	uint64_t netns; /**< that its socket was made in (rcd_away.h); 0: unknown */
	uint64_t caps;  /**< capabilities that it had when it connected, in our user namespace */
	char comm[32];  /**< printable ASCII */
	struct rcd_away *away; /**< sockets for the device that it adds next; NULL: none */
	uint32_t away_fds;     /**< descriptors of them, which are charged */
	uint32_t asked_number; /**< of the last NETNS */
	int asked; /**< state of it: 0; -EINPROGRESS until all fours are there; else why not */
	bool greeted;
	bool ended; /**< nothing is served any more; it goes when its socket says so */
	int events; /**< sending end of the event stream; -1: none */

	/* Of rcd_inbox.c: what was not read, and a request that waits. */
	struct rcd_waiter waiter;  /**< for a neighbour */
	struct rcd_alarm patience; /**< time is up, or it is tried again */
	TAILQ_ENTRY(rcd_conn) unfinished_link;
	bool read_later; /**< it brings descriptors, and the closer has no room */
	bool parked;
	bool unfinished; /**< parked, and to go on in the next round */
	bool again;      /**< a request that was parked is served */
	uint64_t parked_until_ns;
	struct rcd_ctrl_msg parked_msg;
};

LIST_HEAD(rcd_conn_list, rcd_conn);

/** Descriptors that are charged to a connection for itself. Any thread. */
static inline uint64_t
rcd_conn_descriptors(const struct rcd_conn *conn)
{
	return (uint64_t)(conn->sock >= 0) + (conn->events >= 0) + conn->away_fds;
}

/** What an epoll event is of: the high half of its data. The low half is a connection's serial. */
enum rcd_source {
	RCD_SOURCE_CONN,
	RCD_SOURCE_LISTEN,
	RCD_SOURCE_NOTES,
	RCD_SOURCE_NETLINK,
	RCD_SOURCE_NETNS,
};

/**
 * Make the event stream of a connection, and charge it.
 *
 * @param theirs  set to the client's end, which the caller closes
 * @return 0 or -errno
 */
int
rcd_conn_events_open(struct rcd_conn *conn, int *theirs);

/** Close our end of it, if there is one. */
void
rcd_conn_events_close(struct rcd_conn *conn);

/**
 * Take four sockets for the device that it adds next, and charge them, as rcd_away_take().
 *
 * @return also -EMFILE
 */
int
rcd_conn_away_take(struct rcd_conn *conn, int fds[RCD_AWAY_FDS]);

/** Whose they are from now on is the caller. @return NULL: there are none */
struct rcd_away *
rcd_conn_away_give(struct rcd_conn *conn);

/** Whether a device is there for a connection: one of its network namespace (rcd_ports_netns()). */
bool
rcd_conn_sees(const struct rcd_conn *conn, const struct rcd_dev *dev);

/** Send an asynchronous event; one that does not fit is counted. */
void
rcd_conn_event(struct rcd_conn *conn, uint32_t type, uint32_t of, uint64_t cookie);

/** Serve nothing more: the client learns of it, and we of its leaving. */
void
rcd_conn_end(struct rcd_conn *conn);

/** Free a connection that has no context and no request that waits, and close its socket. */
void
rcd_conn_free(struct rcd_conn *conn);

#endif /* RCD_CONN_H */
