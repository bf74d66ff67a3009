/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Files that clients share as memory, and what the engine may come to take for them. A page of such
 * a file that is not there is made by who touches it first, also by an lcore that places a peer's
 * data; the kernel charges it to the engine then, and its owner can take pages away as often as it
 * likes. So a client is charged for as much as could ever be there, and not for what is.
 *
 * Parts of a file that lie over each other count once. Hugepages come from a pool that was laid
 * aside for them, and are not counted.
 *
 * Threads: the control thread.
 */
#ifndef RCD_UFILE_H
#define RCD_UFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "rcd_quota.h"

/** A file of which a client has parts. */
struct rcd_ufile {
	LIST_ENTRY(rcd_ufile) link;
	dev_t dev;
	ino_t inode;
	uint32_t parts;
	uint64_t bytes;      /**< of all parts */
	uint64_t start, end; /**< where parts have been */
	uint64_t charged;
};

LIST_HEAD(rcd_ufile_list, rcd_ufile);

#define RCD_UFILE_BUCKETS 256

/** The files of a client. All zero: it has none. */
struct rcd_ufiles {
	struct rcd_ufile_list buckets[RCD_UFILE_BUCKETS];
};

/** Whether a descriptor is memory, and no call on it asks a file system of the client's choice. */
bool
rcd_ufile_is_memory(int fd);

/**
 * A client gets a part of a file of small pages.
 *
 * @param quota  who is charged
 * @param fd     the file, which is memory
 * @param file   set; for rcd_ufile_put()
 * @return 0; -ENOMEM: a quota is reached, or there is no memory; of fstat(2), -errno
 */
int
rcd_ufile_get(struct rcd_ufiles *files, struct rcd_quota_entry *quota, int fd, uint64_t offset,
	uint64_t len, struct rcd_ufile **file);

/** It gives the part back. */
void
rcd_ufile_put(struct rcd_quota_entry *quota, struct rcd_ufile *file, uint64_t offset, uint64_t len);

/** What is charged for all files, for the audit. */
uint64_t
rcd_ufile_charged(const struct rcd_ufiles *files);

#endif /* RCD_UFILE_H */
