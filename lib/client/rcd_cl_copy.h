/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Copies from and to memory that is not shared with the engine: a thread of the client makes them,
 * as the engine asks for them in the session's segment (rcd_copyq.h). So the engine needs no right
 * to this process, and what it asks for ends with it: a program that is executed in its place is
 * never reached.
 *
 * The thread sleeps when there is nothing to copy. It takes no lock that the application could
 * hold, allocates nothing, and blocks all signals. Memory that the application has unmapped gives
 * an error and no fault; a page that has to be waited for makes it wait.
 */
#ifndef RCD_CL_COPY_H
#define RCD_CL_COPY_H

#include "rcd_client.h"

/**
 * Begin to make copies for a session, unless they are made already. Before the first region with
 * copied memory.
 *
 * @return 0; -EOPNOTSUPP: the session was imported; -EPERM: its copies have ended; -ENOMEM
 */
int
rcd_cl_copy_start(struct rcd_client *client);

/**
 * End it, and wait for the copy that is being made.
 *
 * @return whether it ended; false: it waits for a page, and the segment must stay mapped
 */
bool
rcd_cl_copy_stop(struct rcd_client *client);

/**
 * A region was removed at the engine: nothing that was asked of it before is begun any more.
 *
 * @return 0; -ETIMEDOUT: a copy of it still waits for a page
 */
int
rcd_cl_copy_forget(struct rcd_client *client, uint32_t key);

/**
 * Make no copy until rcd_cl_copy_go_on(): memory of the process is replaced meanwhile, and what the
 * kernel had begun to write would be lost.
 *
 * @return whether none is made; false: one waits for a page, and rcd_cl_copy_go_on() is not due
 */
bool
rcd_cl_copy_pause(struct rcd_client *client);

/** Go on. */
void
rcd_cl_copy_go_on(struct rcd_client *client);

/**
 * A region was changed at the engine: wait for what was asked of it before.
 *
 * @return 0; -ETIMEDOUT: a copy waits for a page
 */
int
rcd_cl_copy_drain(struct rcd_client *client);

#endif /* RCD_CL_COPY_H */
