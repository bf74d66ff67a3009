/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a region is made of: its memory, mapped at contiguous addresses.
 *
 * Threads: the control thread.
 */
#ifndef RCD_UREGION_H
#define RCD_UREGION_H

#include "rcd_umem.h"

/**
 * Make a region's memory.
 *
 * @param copies  0: bytes may be reached by copies; else the error where some are to be
 * @param made    set; for rcd_uregion_free()
 * @return 0; -EINVAL, -ENOENT, -EACCES, -EFAULT, -ENOMEM; of mmap(), of a quota; what `copies` says
 */
int
rcd_uregion_make(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, int copies,
	struct rcd_umr **made);

/** Unmap it; no lcore knows it any more. */
void
rcd_uregion_free(struct rcd_umem *umem, struct rcd_umr *umr);

#endif /* RCD_UREGION_H */
