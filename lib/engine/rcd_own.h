/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices as the program opens them that the engine is a part of: a connection without a socket,
 * with a context of its own, whose requests are calls. They are checked, counted and charged as
 * those of clients, and shown among them.
 *
 * Threads: any, one at a time: who begins takes the place of the control thread, between two of its
 * steps.
 */
#ifndef RCD_OWN_H
#define RCD_OWN_H

#include <stdint.h>

#include "rcd_conn.h"
#include "rcd_ctrl.h"

struct rcd_engine;
struct rcd_lcore;

/** What is opened, by whom. */
struct rcd_own_conf {
	const char *device;
	int lcore; /**< by its number in the engine; -1: one that has few */
	const struct rcd_conn_owner *owner;
	void *arg; /**< of the owner's functions, those of the lcore too */
};

/**
 * Open a device.
 *
 * @param made   set; it is there until rcd_own_close(), or until the owner is told
 * @param lcore  set to the number of the one that has it
 * @return 0; -ENODEV: no such device; -EINVAL: no such lcore, or one that receives nothing of it;
 *         -EUSERS, -ENOMEM, and what a quota says
 */
int
rcd_own_open(struct rcd_engine *engine, const struct rcd_own_conf *conf, struct rcd_conn **made,
	uint32_t *lcore);

/** End it, with all that was made in it. The owner is told, on the lcore and here, before. */
void
rcd_own_close(struct rcd_conn *conn);

/**
 * Begin a request: the device stays until rcd_own_end().
 *
 * @return 0; -ENODEV: it has gone, and nothing was begun
 */
int
rcd_own_begin(struct rcd_conn *conn);

/** It is over. Control thread: who began. */
void
rcd_own_end(struct rcd_conn *conn);

/**
 * Serve a request of rcd_ctrl.def, between those two. One that takes several rounds is served to
 * its end. Control thread.
 *
 * @param in   body of the request, of the size that the operation has; NULL: all 0
 * @param out  body of the reply, set when 0 is returned; NULL: not wanted
 * @return 0; -EINPROGRESS: it waits for a neighbour, or for work of the lcore: ask again after a
 *         step; else what the request says
 */
int
rcd_own_serve(struct rcd_conn *conn, enum rcd_ctrl_op op, const void *in, void *out);

/** The lcore of its context. Control thread. */
struct rcd_lcore *
rcd_own_lcore(const struct rcd_conn *conn);

#endif /* RCD_OWN_H */
