/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Device memory, the client's side: a part of the session's segment, which is mapped here.
 *
 * A forked child has no segment, and may still allocate device memory of its parent's session: each
 * piece then comes with a session of its own, which shares the parent's.
 *
 * All functions may be called from any thread; who copies sees to it that others do not free.
 */
#ifndef RCD_CL_DM_H
#define RCD_CL_DM_H

#include "rcd_client.h"

/** Lengths and offsets of copies are multiples of this, as programs know it of adapters. */
#define RCD_CL_DM_UNIT 4u

/** Device memory. Members are private but for handle. */
struct rcd_cl_dm {
	struct rcd_client *client; /**< that it is of */
	struct rcd_client *own;    /**< the same, if it is for this memory alone; NULL */
	uint8_t *at;
	uint64_t len; /**< bytes */
	uint32_t handle;
};

/** Allocate, all 0. @return 0 or -errno: -EINVAL, -ENOMEM; -EIO: the engine is gone */
int
rcd_cl_dm_alloc(struct rcd_client *client, uint64_t len, struct rcd_cl_dm *dm);

/** That of another process that shares the session. @return 0; -ENOENT; -EIO */
int
rcd_cl_dm_import(struct rcd_client *client, uint32_t handle, struct rcd_cl_dm *dm);

/** Forget it here; it stays allocated. */
void
rcd_cl_dm_forget(struct rcd_cl_dm *dm);

/** Free it. @return 0; -EBUSY: regions are of it; -EIO, and it is forgotten */
int
rcd_cl_dm_free(struct rcd_cl_dm *dm);

/** Copy to it. @return 0; -EINVAL: of no such bytes; -EIO: it is not mapped in this process */
int
rcd_cl_dm_write(struct rcd_cl_dm *dm, uint64_t offset, const void *from, uint64_t len);

/** Copy from it. @return as rcd_cl_dm_write() */
int
rcd_cl_dm_read(struct rcd_cl_dm *dm, uint64_t offset, void *to, uint64_t len);

/**
 * Register a part of one; rcd_cl_mr_dereg() ends that.
 *
 * @param key  set
 * @return 0; -EINVAL: not within it, or without RCD_ACCESS_ZERO_BASED; -EOPNOTSUPP, -ENOENT,
 *         -ENOMEM, -EIO
 */
int
rcd_cl_dm_reg(struct rcd_client *client, const struct rcd_ctrl_dm_mr_req *req, uint32_t *key);

#endif /* RCD_CL_DM_H */
