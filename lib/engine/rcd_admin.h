/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of the command line.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ADMIN_H
#define RCD_ADMIN_H

struct rcd_away;
struct rcd_conn;
struct rcd_engine;

/**
 * Carry out a request.
 *
 * @param guest  whose it is, if not of who administers (rcd_guest.h); NULL: it is
 * @param away   sockets for the device that it adds, which are gone afterwards; NULL: none
 * @param text   JSON, terminated, as rcd_admin_req.h has it; rcd_admin.c lists what can be asked
 * @return a file that holds the answer, JSON, which is the caller's; -EPERM: this is nothing for
 *         guests; or another -errno
 */
int
rcd_admin(struct rcd_engine *engine, const struct rcd_conn *guest, struct rcd_away *away,
	const char *text);

#endif /* RCD_ADMIN_H */
