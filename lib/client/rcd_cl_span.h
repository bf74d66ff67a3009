/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Shared ranges of this process: one memfd holds them all. Private to lib/client; the caller holds
 * the lock of rcd_cl_mem.c.
 */
#ifndef RCD_CL_SPAN_H
#define RCD_CL_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rcd_client;

/** A range that was replaced by a mapping of the memfd. */
struct rcd_cl_span {
	uintptr_t start;
	uintptr_t end;
	uint64_t offset; /**< in the memfd */
	uint32_t refs;   /**< regions that use it */
	size_t seen;     /**< bytes that rcd_cl_span_check() found in place */
	bool stale;      /**< the application unmapped it, or put something else there */
	/* Handles of sessions that know it. */
	uint32_t known_count;
	struct {
		struct rcd_client *client;
		uint32_t handle;
	} * known;
};

/** A mapping, as the kernel tells of it. */
struct rcd_cl_vma {
	uintptr_t start;
	uintptr_t end;
	uint64_t offset;
	uint64_t inode;
	unsigned int major;
	unsigned int minor;
	bool readable;
	bool writable;
	bool shared;
	bool special; /**< the stack, or a page of the kernel's */
	char path[256];
};

/**
 * The mappings that cover a range, in order.
 *
 * @param vmas  set to an array to free
 * @return count; -EFAULT when there is a gap
 */
int
rcd_cl_vmas(uintptr_t start, uintptr_t end, struct rcd_cl_vma **vmas);

/**
 * Replace private anonymous memory.
 *
 * @return 0; -EBUSY: the program has a userfaultfd for it; -EPERM and the like when it can't be
 */
int
rcd_cl_span_make(uintptr_t start, uintptr_t end, struct rcd_cl_span **span);

/** A region uses a span: after ibv_fork_init() children do not inherit it. */
void
rcd_cl_span_ref(struct rcd_cl_span *span);

/** A region uses it no longer. When none does, children inherit it again. */
void
rcd_cl_span_unref(struct rcd_cl_span *span);

/** The span that a mapping is part of. @return NULL when it is none */
struct rcd_cl_span *
rcd_cl_span_of(const struct rcd_cl_vma *vma);

/** Mark the spans that are not where they were. Before a fork, and before a registration. */
void
rcd_cl_span_check(void);

/** Free spans that nobody uses and that are not where they were. */
void
rcd_cl_span_sweep(void (*forget)(struct rcd_cl_span *span));

/** The memfd. */
int
rcd_cl_span_fd(void);

/** Call a function for each span. */
void
rcd_cl_span_each(void (*fn)(struct rcd_cl_span *span, void *arg), void *arg);

/** In a child: private copies in place of all spans. rcd_cl_span_check() came before the fork. */
void
rcd_cl_span_unshare(void);

/** Keep spans from children: those there are, and those to come. @return 0 or -errno */
int
rcd_cl_span_dontfork(void);

#endif /* RCD_CL_SPAN_H */
