/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of clients, the engine's side: files that they shared, and regions made of them.
 */
#ifndef RCD_UMEM_H
#define RCD_UMEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "rcd_id.h"

/** Memory that a client shared. */
struct rcd_mem {
	int fd;
	uint64_t offset;
	uint64_t len;
	uint64_t page;   /**< bytes */
	uint64_t filled; /**< bytes whose pages were entered */
	bool writable;
	struct rcd_ufile *file; /**< NULL: of hugepages */
	bool gone;              /**< the client took it away: it is for no region any more */
	uint8_t *base;          /**< in the window */
	uint32_t refs;          /**< regions, and one for the handle */
	uint32_t handle;
};

/** Bytes of a region that are reached by copies. */
struct rcd_copy {
	uint64_t start; /**< offset in the region */
	uint64_t len;
	uint64_t addr; /**< in the application */
};

/** A memory region, the engine's side. */
struct rcd_umr {
	LIST_ENTRY(rcd_umr) hash_link;
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
	struct rcd_mem **mems;
	uint32_t copy_count;
	struct rcd_copy *copies;
	bool null; /**< takes all bytes and gives zeros; base is foreign, and nothing */
};

LIST_HEAD(rcd_umr_list, rcd_umr);

#define RCD_UMR_BUCKETS 1024

#endif /* RCD_UMEM_H */
