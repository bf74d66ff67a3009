/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of a context, the engine's side: files that its client shared, and regions made of them.
 *
 * Threads: the control thread. What the context's lcore reads, keys and the list of regions that
 * are reached by copies, is changed on that lcore, by an operation that the owner of the context
 * hands in.
 */
#ifndef RCD_UMEM_H
#define RCD_UMEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_ctrl.h"
#include "rcd_id.h"
#include "rcd_mr.h"
#include "rcd_quota.h"
#include "rcd_table.h"
#include "rcd_ucopied.h"
#include "rcd_ufile.h"

struct rcd_mem;

/** Bytes of a region that are reached by copies. */
struct rcd_copy {
	uint64_t start; /**< offset in the region */
	uint64_t len;
	uint64_t addr; /**< in the application */
};

/** A memory region, the engine's side. */
struct rcd_umr {
	TAILQ_ENTRY(rcd_umr) link;
	struct rcd_key key;
	uint32_t pd;
	uint8_t *base;
	uint64_t start;
	uint64_t len;
	uint32_t access;
	void *reserved; /**< addresses of its own; NULL: part of a mem */
	uint64_t reserved_len;
	uint64_t window_charged;
	uint32_t mappings_charged;
	uint32_t mem_count;
	struct rcd_mem **mems; /**< that it refers to */
	uint32_t copy_count;
	struct rcd_copy *copies;
	bool null; /**< takes all bytes and gives zeros; base is foreign, and nothing */
	bool own;  /**< of this process, where it is: none of it was shared or mapped */
	/** Of all addresses: the upper bits of base, which is foreign; 0: it is not. */
	uint8_t far;
	uint32_t *users; /**< of what it is a part of, itself among them; NULL: of nothing */
};

TAILQ_HEAD(rcd_umr_list, rcd_umr);

/** A protection domain. */
struct rcd_pd {
	uint32_t handle;
	uint32_t users; /**< objects that refer to it */
};

/** What the owner of a context does for its memory. */
struct rcd_umem_ops {
	/** Run a function on the context's lcore, and wait for it. @return what it returned */
	int (*on_lcore)(void *owner, int (*fn)(void *arg), void *arg);
};

/** The memory of a context. All zero: it has none. */
struct rcd_umem {
	/* The lcore's. */
	struct rcd_mr_table *mrs;  /**< keys; the owner's */
	struct rcd_ucopied copied; /**< regions with copies */

	/* The control thread's. */
	const struct rcd_umem_ops *ops;
	void *owner;
	struct rcd_quota_entry *quota; /**< who is charged */
	const struct rcd_table *pds;   /**< struct rcd_pd */
	uint32_t *work;                /**< units of the control thread's step, added to */
	struct rcd_table mems;         /**< struct rcd_mem */
	struct rcd_umr_list umrs;      /**< from the oldest to the newest */
	struct rcd_umr **umr_of;       /**< by the slot of its key (rcd_mr_slot()); NULL: none */
	struct rcd_ufiles files;
	uint32_t umr_count;
	uint32_t mw_count;
	uint64_t fars[4];        /**< a bit for each that a region has */
	struct rcd_mem *filling; /**< memory whose pages are being entered; NULL: none is */
	uint32_t filling_conn;   /**< connection whose request it is */
	bool lost;               /**< gave memory back that it had taken away: untold so far */
};

/** Who works for a context's memory, and who pays. All of it outlives the memory. */
struct rcd_umem_conf {
	const struct rcd_umem_ops *ops;
	void *owner; /**< first argument of the operations */
	struct rcd_mr_table *mrs;
	struct rcd_quota_entry *quota;
	const struct rcd_table *pds;
	uint32_t *work;
	uint32_t mems_max;
};

/** Make the tables. @return 0; -ENOMEM: what was made goes by rcd_umem_fini() */
int
rcd_umem_init(struct rcd_umem *umem, const struct rcd_umem_conf *conf);

/** Unmap all of it. The lcore knows nothing of it any more. */
void
rcd_umem_close(struct rcd_umem *umem);

/** Free the tables, behind rcd_umem_close(). All zero is allowed. */
void
rcd_umem_fini(struct rcd_umem *umem);

/**
 * Register a region. One of RCD_MR_ALL_BYTES, a single extent that is copied from address 0, is all
 * that its process has mapped when it is reached; RCD_MR_ALL_MAX at a time.
 *
 * @param copies  0: bytes may be reached by copies; else the error where some are to be
 * @param key     set
 * @return 0; -ENOENT: no such domain or memory; -EINVAL; -EACCES: it is to be written and may not;
 *         -EFAULT: the memory went away; -EOPNOTSUPP: RCD_ACCESS_FLUSH_PERSISTENT; -ENOMEM, and
 *         what a quota says; what `copies` says
 */
int
rcd_umem_reg(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, int copies, uint32_t *key);

/** A region of this process's own memory, which stays where and what it is. */
struct rcd_umem_own {
	void *addr;
	uint64_t len; /**< bytes */
	uint32_t pd;
	uint32_t access; /**< RCD_ACCESS_*; its addresses are those of this process, or from 0 */
	uint32_t *users; /**< counts the region for as long as it is there; NULL: nobody does */
};

/**
 * Register a region of this process's own memory: nothing is mapped or charged but the key, and
 * nobody guards it, as it is no client's.
 *
 * @param key  set
 * @return 0; -ENOENT: no such domain; -EINVAL: rights or range; -EOPNOTSUPP as rcd_umem_reg();
 *         -ENOMEM, and what a quota says
 */
int
rcd_umem_reg_own(struct rcd_umem *umem, const struct rcd_umem_own *own, uint32_t *key);

/** Register a region that takes all bytes and gives zeros. @return as rcd_umem_reg() */
int
rcd_umem_null(struct rcd_umem *umem, uint32_t pd, uint32_t *key);

/** What a region is, by the number in its key. @return 0; -ENOENT */
int
rcd_umem_query(struct rcd_umem *umem, uint32_t handle, struct rcd_ctrl_mr_query_rep *rep);

/**
 * Another region in the place of one, whose key it gets; or none.
 *
 * @return as rcd_umem_reg(); -EBUSY: a window is bound to it
 */
int
rcd_umem_rereg(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, int copies, uint32_t *key);

/** End a region. @return 0; -ENOENT; -EBUSY: a window is bound to it */
int
rcd_umem_dereg(struct rcd_umem *umem, uint32_t key);

/** Make a memory window. @return 0; -EINVAL: of no known type; -ENOENT, -ENOMEM, of a quota */
int
rcd_umem_mw_alloc(struct rcd_umem *umem, const struct rcd_ctrl_mw_req *req, uint32_t *key);

/** End a window. @return 0 or -errno of rcd_mw_free() */
int
rcd_umem_mw_free(struct rcd_umem *umem, uint32_t key);

#endif /* RCD_UMEM_H */
