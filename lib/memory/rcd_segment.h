/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The segment that a context shares with its client: a file of small pages and one of hugepages,
 * mapped one behind the other, and parts of them for queues. Offsets and lengths are in bytes.
 *
 * Threads: the control thread.
 */
#ifndef RCD_SEGMENT_H
#define RCD_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rcd_quota.h"
#include "rcd_ranges.h"
#include "rcd_shm.h"

/** A part of a segment that is being cleared for a request, by several rounds. */
struct rcd_clearing {
	uint64_t offset;
	uint64_t bytes; /**< 0: none is */
	uint64_t done;
	uint32_t conn_serial; /**< connection whose request it is */
};

/** A segment. All zero but for the descriptors, which are -1: none is made. */
struct rcd_segment {
	struct rcd_shm_hdr *shm; /**< where it is mapped; NULL: it is not */
	int fd;
	dev_t file_dev; /**< of fd, as fstat() has them */
	ino_t file_ino;
	int huge_fd;          /**< of its second part; -1: it has none */
	uint64_t bytes;       /**< of the first part */
	uint64_t huge_bytes;  /**< of the second, behind it */
	uint32_t *huge_users; /**< of each hugepage: allocations that lie in it */
	bool made;
	struct rcd_ranges small_free, huge_free;
	struct rcd_clearing clearing;
	struct rcd_quota_entry *quota; /**< who is charged */
	uint32_t *work;                /**< units of the control thread's step, added to */
};

/** What a segment is made by. */
struct rcd_segment_conf {
	const struct rcd_quota *quota; /**< limits of a client: what there is to be room for */
	uint64_t generation;           /**< of the engine */
	int socket_id;                 /**< NUMA node that its memory is to be on */
	struct rcd_quota_entry *entry; /**< who is charged; outlives the segment */
	uint32_t *work;                /**< units of the control thread's step, added to */
};

/**
 * Make and map it. What fails halfway is for rcd_segment_end(), and nothing of it is there when
 * `shm` is NULL.
 *
 * @return 0 or -errno
 */
int
rcd_segment_make(struct rcd_segment *segment, const struct rcd_segment_conf *conf);

/**
 * Unmap it and close its files; the client learns of it. Of one that was not made, nothing.
 *
 * @param pages_go  nobody has to read it any more: its pages are freed, whoever has the files
 */
void
rcd_segment_end(struct rcd_segment *segment, bool pages_go);

/**
 * Take a part of it, in pages, cleared.
 *
 * @param conn_serial  connection whose request it is for
 * @param offset       set
 * @return 0; -EINPROGRESS: it takes more than a round, call again with the same size; -ENOMEM and
 *         what a quota says
 */
int
rcd_segment_alloc(
	struct rcd_segment *segment, uint32_t conn_serial, uint64_t bytes, uint64_t *offset);

/** Give a part back. */
void
rcd_segment_free(struct rcd_segment *segment, uint64_t offset, uint64_t bytes);

/** The request of this connection, for which a part was being cleared, is over. */
void
rcd_segment_settle(struct rcd_segment *segment, uint32_t conn_serial);

/** Whether an address lies in it. Any segment. */
bool
rcd_segment_has(const struct rcd_segment *segment, uintptr_t addr);

#endif /* RCD_SEGMENT_H */
