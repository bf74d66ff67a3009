/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Rings of buffers at their end.
 *
 * Threads: the control thread.
 */
#ifndef RCD_RING_H
#define RCD_RING_H

struct rte_ring;

/** Free a ring that nobody uses any more, and the mbufs in it. NULL is allowed. */
void
rcd_ring_free(struct rte_ring *ring);

#endif /* RCD_RING_H */
