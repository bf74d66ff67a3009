/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory that clients take away.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ULOST_H
#define RCD_ULOST_H

#include <stdbool.h>
#include <stdint.h>

struct rcd_umem;

/**
 * Give addresses of a context's memory back. A fault there that nobody knows of yet is its own: it
 * is noted in `lost`.
 */
void
rcd_ulost_release(struct rcd_umem *umem, void *start, uint64_t len);

/**
 * Memory at this address is gone: its regions end here, what stands in for it is nobody's.
 *
 * @return whether it was this context's
 */
bool
rcd_ulost_cut(struct rcd_umem *umem, uintptr_t addr);

#endif /* RCD_ULOST_H */
