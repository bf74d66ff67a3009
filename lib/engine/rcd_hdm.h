/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Device memory of a context: parts of its segment, which its clients have mapped already, so that
 * they copy to and from it without asking. It is in hugepages where queues are, and counts as they
 * do (RCD_RESOURCE_QUEUE_BYTES); RCD_RESOURCE_DM_BYTES bounds it besides.
 *
 * Threads: the control thread.
 */
#ifndef RCD_HDM_H
#define RCD_HDM_H

#include <stdint.h>

#include "rcd_ctrl.h"
#include "rcd_quota.h"

struct rcd_conn;
struct rcd_context;

/** Longest that a client may have, bytes. */
uint64_t
rcd_hdm_most(const struct rcd_quota_entry *quota);

/**
 * Allocate, cleared.
 *
 * @return 0; -EINVAL: of no length; -EINPROGRESS: call again (rcd_segment_alloc()); -ENOMEM: more
 *         than there may be, and what a quota says
 */
int
rcd_hdm_alloc(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_dm_req *req, struct rcd_ctrl_dm_rep *rep);

/** Free. @return 0; -ENOENT; -EBUSY: regions are of it */
int
rcd_hdm_free(struct rcd_context *context, uint32_t handle);

/** Where it is. @return 0; -ENOENT */
int
rcd_hdm_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_dm_rep *rep);

/**
 * Register a part of it as a region.
 *
 * @param key  set
 * @return 0; -ENOENT: no such memory or domain; -EINVAL: not within it, or its addresses are not to
 *         begin at 0; as rcd_umem_reg_own()
 */
int
rcd_hdm_reg(struct rcd_context *context, const struct rcd_ctrl_dm_mr_req *req, uint32_t *key);

#endif /* RCD_HDM_H */
