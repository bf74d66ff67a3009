/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory that a client shares: parts of files, each mapped once, of which regions are made.
 *
 * Threads: the control thread.
 */
#ifndef RCD_USHARE_H
#define RCD_USHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_ctrl.h"
#include "rcd_ufile.h"

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

struct rcd_umem;

/**
 * A client shares a part of a file.
 *
 * @param conn_serial  connection that asks
 * @param fd           the file; kept with 0 and -EINPROGRESS
 * @param handle       set
 * @return 0; -EINPROGRESS: ask again, without the file; -EBADF: it is no memory; -EINVAL: of no
 *         whole pages; -ENOMEM, and what a quota says; -errno of mmap()
 */
int
rcd_ushare_add(struct rcd_umem *umem, uint32_t conn_serial, const struct rcd_ctrl_mem_req *req,
	int fd, uint32_t *handle);

/** It is for no further region; it goes with the last one. @return 0; -ENOENT */
int
rcd_ushare_del(struct rcd_umem *umem, uint32_t handle);

/** The request of this connection, for which memory was being entered, is over. */
void
rcd_ushare_settle(struct rcd_umem *umem, uint32_t conn_serial);

/** One reference to shared memory less. */
void
rcd_ushare_put(struct rcd_umem *umem, struct rcd_mem *mem);

#endif /* RCD_USHARE_H */
