/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Regions of memory that is named by a descriptor: a dma-buf, or a file that can be mapped. It is
 * mapped here for as long as the region is there, and registered as memory of the process
 * (rcd_cl_mem.h): shared where that can be, copied else.
 *
 * All functions may be called from any thread.
 */
#ifndef RCD_CL_DMABUF_H
#define RCD_CL_DMABUF_H

#include "rcd_cl_mem.h"

/** A region, and where its memory is mapped. Members are private but for mr.key. */
struct rcd_cl_dmabuf {
	struct rcd_cl_mr mr;
	void *mapping; /**< NULL: nothing is */
	uint64_t mapping_len;
};

/**
 * Register bytes of what a descriptor names, which stays the caller's and may be closed.
 *
 * @param attr    without an address
 * @param offset  in it, bytes
 * @return 0; -EINVAL: not all of it is there, or no bytes; -EBADF: no descriptor; -EACCES: not
 *         opened for what the rights need; -EOPNOTSUPP: it can't be mapped, or no CPU can reach it;
 *         as rcd_cl_mr_reg()
 */
int
rcd_cl_dmabuf_reg(struct rcd_client *client, const struct rcd_cl_mr_attr *attr, int fd,
	uint64_t offset, struct rcd_cl_dmabuf *buf);

/** Remove it. @return as rcd_cl_mr_dereg() */
int
rcd_cl_dmabuf_dereg(struct rcd_client *client, struct rcd_cl_dmabuf *buf);

#endif /* RCD_CL_DMABUF_H */
