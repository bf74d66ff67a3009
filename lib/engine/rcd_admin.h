/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of the command line.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ADMIN_H
#define RCD_ADMIN_H

struct json_t;
struct rcd_engine;

/**
 * Carry out a request.
 *
 * @param text  JSON, terminated, as rcd_admin_req.h has it; rcd_admin.c lists what can be asked
 * @return a file that holds the answer, JSON, which is the caller's; or -errno
 */
int
rcd_admin(struct rcd_engine *engine, const char *text);

/* rcd_admin_list.c */

/** Objects of this kind, of all clients. @return an array of JSON objects; NULL: no such kind */
struct json_t *
rcd_admin_objects(const struct rcd_engine *engine, const char *what);

/* rcd_admin_quota.c */

/** Use and limits: of all, of each user, of each client. An array of JSON objects; never NULL. */
struct json_t *
rcd_admin_quota(struct rcd_engine *engine);

#endif /* RCD_ADMIN_H */
