/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Buffers whose packets came out of order: the payload stays in them until its turn comes, instead
 * of being copied twice. It is a small part of the buffers; what is more is copied.
 *
 * Threads: the control thread, as each function says.
 */
#ifndef RCD_RX_KEEP_H
#define RCD_RX_KEEP_H

struct rcd_lcore;

/** Have the pool of an lcore, which is empty, leave payloads in buffers. Control thread. */
void
rcd_rx_keep_init(struct rcd_lcore *lcore);

#endif /* RCD_RX_KEEP_H */
