/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All connections of an engine: the listening socket, who is accepted, and how one is found.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CONNS_H
#define RCD_CONNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_conn.h"
#include "rcd_inbox.h"

struct rcd_alarms;
struct rcd_closer;
struct rcd_cm_host;
struct rcd_counters;
struct rcd_engine;
struct rcd_engine_conf;
struct rcd_ports;
struct rcd_quota_book;

/** Lists of connections that are found together by their serial. */
#define RCD_CONN_BUCKETS 1024

/** What they are to be. All of it is there as long as they are. */
struct rcd_conns_conf {
	struct rcd_engine *engine; /**< that rcd_serve() serves */
	const struct rcd_engine_conf *limits;
	struct rcd_quota_book *book;
	struct rcd_closer *closer;
	struct rcd_counters *counters;
	struct rcd_alarms *alarms;
	struct rcd_ports *ports;
	struct rcd_cm_host *cm;
	int epoll_fd;
	uint64_t secret; /**< that nobody can guess */
	uint32_t *work;  /**< units of this step */
};

/** All of them. */
struct rcd_conns {
	struct rcd_conns_conf conf;
	int listen_fd;
	int spare_fd;      /**< for a moment without a free descriptor: to refuse, not to spin */
	bool guarded;      /**< nobody sends descriptors before it may */
	bool accept_later; /**< the closer is full, or the kernel has no room */
	uint32_t next_serial;
	uint32_t count;
	struct rcd_inbox inbox;
	struct rcd_conn_list list;
	struct rcd_conn_list by_serial[RCD_CONN_BUCKETS];
};

/** There are none, and nobody listens. Before rcd_conns_fini() may follow. */
void
rcd_conns_clear(struct rcd_conns *conns);

/** Before the first one is adopted. */
void
rcd_conns_init(struct rcd_conns *conns, const struct rcd_conns_conf *conf);

/** Listen at the address of the limits; an empty one: nowhere. @param error  set unless it is 0 */
int
rcd_conns_listen(struct rcd_conns *conns, char *error, size_t error_len);

/** Listen no more. */
void
rcd_conns_unlisten(struct rcd_conns *conns);

/** Free the rest, when there are none. */
void
rcd_conns_fini(struct rcd_conns *conns);

/**
 * Take what waits at the listening socket, if anything does. While the closer is full nobody is
 * taken, and the socket is not looked at.
 */
void
rcd_conns_accept(struct rcd_conns *conns);

/** Look at it again, when the closer has room. */
void
rcd_conns_accept_again(struct rcd_conns *conns);

/** A new connection, as rcd_engine_adopt(). */
int
rcd_conns_adopt(struct rcd_conns *conns, int sock);

/**
 * A new connection without a socket, greeted: of the program that the engine is a part of. It is
 * counted and charged as a client's, of the user that the process is.
 *
 * @param made  set; rcd_inbox_close() ends it
 * @return 0; -EUSERS: there are too many; -ENOMEM
 */
int
rcd_conns_own(struct rcd_conns *conns, const struct rcd_conn_owner *owner, void *arg,
	struct rcd_conn **made);

/** A connection by its serial. @return NULL: it has gone */
struct rcd_conn *
rcd_conns_find(const struct rcd_conns *conns, uint32_t serial);

#endif /* RCD_CONNS_H */
