/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory registration, the client's side: from any range of the application's memory to pieces
 * that the engine can reach.
 *
 *  share  private anonymous memory is replaced, at the same addresses and with the same bytes, by
 *         a mapping of a memfd that the engine maps too. Other threads may use the memory all the
 *         while: it is write-protected by userfaultfd, and who writes waits until the new mapping
 *         is in its place; or, where that is not allowed, they stand still (rcd_cl_stop.h).
 *  fd     memory that is shared already (memfd, shm, hugetlbfs) is passed by its descriptor.
 *  copy   what is neither (file mappings, read-only memory, the stack) is copied for the engine by
 *         a thread of this process (rcd_cl_copy.h). So is all of a region that follows what the
 *         process maps, whatever that is.
 *
 * The variable ROCADE_MR forces a way: auto (the default), share, copy.
 *
 * What was shared is remembered for the whole process, and compared with the kernel's view at each
 * registration. All functions may be called from any thread.
 */
#ifndef RCD_CL_MEM_H
#define RCD_CL_MEM_H

#include "rcd_client.h"

/** A registered region. Members are private but for key. */
struct rcd_cl_mr {
	uint32_t key; /**< L_Key and R_Key */
	uint32_t pd;
	bool removed; /**< at the engine, which a copy of it still keeps from being all */
	uint32_t span_count;
	struct rcd_cl_span **spans; /**< shared memory that it uses */
};

/** What a region is to be. */
struct rcd_cl_mr_attr {
	uint32_t pd;
	uint32_t access; /**< RCD_ACCESS_* */
	void *addr;
	uint64_t len;   /**< bytes */
	uint64_t start; /**< address that work requests and peers use; usually addr */
	/** Nothing needs to be mapped: what is when it is reached. All addresses: len is
	 * RCD_MR_ALL_BYTES, addr NULL and start 0. */
	bool on_demand;
};

/**
 * Register a region.
 *
 * @return 0; -EFAULT: not all of it is mapped, or not writable though the rights need it;
 *         -EINVAL: rights that contradict each other; -ENOMEM: memory or a quota; -EOPNOTSUPP:
 *         ROCADE_MR=share and it can't be shared, or RCD_ACCESS_FLUSH_PERSISTENT; -EIO: the engine
 *         is gone
 */
int
rcd_cl_mr_reg(struct rcd_client *client, const struct rcd_cl_mr_attr *attr, struct rcd_cl_mr *mr);

/** Change a region. On failure it stays as it was. @return as rcd_cl_mr_reg() */
int
rcd_cl_mr_rereg(struct rcd_client *client, const struct rcd_cl_mr_attr *attr, struct rcd_cl_mr *mr);

/**
 * Remove a region.
 *
 * @return 0; -EBUSY: windows are bound to it; -EIO and it is forgotten; -ETIMEDOUT: nobody reaches
 *         it any more, but a copy of it still waits for a page: call again
 */
int
rcd_cl_mr_dereg(struct rcd_client *client, struct rcd_cl_mr *mr);

/** From now on registered memory is not inherited by children, as ibv_fork_init() promises. */
int
rcd_cl_mem_fork_init(void);

/** Whether that was called. */
bool
rcd_cl_mem_fork_inited(void);

/** Forget what a session knows of shared memory: it is being closed. */
void
rcd_cl_mem_client_gone(struct rcd_client *client);

#endif /* RCD_CL_MEM_H */
