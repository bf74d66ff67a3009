/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * XRC domains (IBTA Vol. 1, Annex A14): what shared receive queues and targets of several contexts
 * have in common. A context is a member of a domain by a file that its process has open: the domain
 * of a device, a user and an inode is one; without a file it is the context's own.
 *
 * Who has no descriptor of the file does not find the domain, and who is another user finds another
 * one, whatever files they share. All members are on one lcore.
 *
 * A member is charged for that, and for the descriptor that the engine keeps so that the inode's
 * number stays what it is. So there are no more domains than memberships, which are few enough to
 * be looked through.
 *
 * Threads: the control thread, but for `srqs` and `client`, which are the lcore's.
 */
#ifndef RCD_XRCD_H
#define RCD_XRCD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "rcd_ctrl.h"
#include "rcd_lclient.h"
#include "rcd_xrc.h"

struct rcd_closer;
struct rcd_conn;
struct rcd_context;
struct rcd_dev;
struct rcd_lcore;
struct rcd_xqp;

/** A domain. */
struct rcd_xrcd {
	LIST_ENTRY(rcd_xrcd) link;
	LIST_HEAD(, rcd_xqp) targets;
	struct rcd_dev *dev;
	struct rcd_lcore *lcore; /**< of all members */
	uint64_t file_dev, file_ino;
	uid_t uid;
	int fd; /**< of the file; -1: there is none */
	uint32_t members;
	bool copies; /**< a member has, or had, memory that is reached by copies */
	struct rcd_xrc_domain srqs;
	struct rcd_lclient client; /**< of the targets, which are no context's; without rings */
};

LIST_HEAD(rcd_xrcd_list, rcd_xrcd);

/** A context's membership. */
struct rcd_xmember {
	struct rcd_xrcd *xrcd;
	uint32_t handle; /**< in the context's table */
	uint32_t users;  /**< queues and targets of the context in the domain */
	bool filed;      /**< and charged for a descriptor */
};

/**
 * Become a member of the domain of a file. Who could not open the file does not: a descriptor with
 * O_PATH, for which nobody is asked whether it may be read, is none.
 *
 * @param in  flags: RCD_CTRL_O_*
 * @param fd  the file; kept if @p kept is set, else the caller's
 * @return 0; -EINVAL: no regular file or directory, flags that are not known, or there is a
 *         domain and it had to be new; -EBADF: a descriptor with O_PATH; -EAGAIN: there is none,
 *         and it was not to be made; -EBUSY: the domain is on another
 *         lcore, and the context can't go there; -ENOMEM; -EMFILE; of statx(2), -errno
 */
int
rcd_xrcd_open(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_xrcd_req *in, int fd, bool *kept, uint32_t *handle);

/** Make a domain of the context's own. @return 0; -ENOMEM */
int
rcd_xrcd_create(struct rcd_context *context, const struct rcd_conn *conn, uint32_t *handle);

/** A context is a member no more; the last one ends the domain. @return 0; -ENOENT; -EBUSY */
int
rcd_xrcd_close(struct rcd_context *context, uint32_t handle);

/** A context ends: its targets are closed, its queues taken away, and its memberships are over. */
void
rcd_xrcd_leave(struct rcd_context *context);

#endif /* RCD_XRCD_H */
