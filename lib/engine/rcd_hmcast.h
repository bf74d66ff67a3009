/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which queue pairs are in which multicast groups, as clients ask for it.
 *
 * Threads: the control thread.
 */
#ifndef RCD_HMCAST_H
#define RCD_HMCAST_H

#include <stdbool.h>

#include "rcd_ctrl.h"

struct rcd_context;
struct rcd_hqp;

/**
 * A queue pair joins a group, or leaves it.
 *
 * @return 0; -ENOENT; -EINVAL: no group, or no UD; -ENOMEM
 */
int
rcd_hmcast_change(struct rcd_context *context, const struct rcd_ctrl_mcast_req *req, bool attach);

/** No lcore knows the queue pair any more: what it was in is no more its device's to hear. */
void
rcd_hmcast_end(struct rcd_context *context, struct rcd_hqp *hqp);

#endif /* RCD_HMCAST_H */
