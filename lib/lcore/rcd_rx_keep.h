/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Buffers that packets came in. Of those that came out of order the payload stays in its buffer
 * until its turn comes, instead of being copied twice. It is a small part of the buffers; what is
 * more is copied.
 *
 * Threads: the control thread or the lcore, as each function says.
 */
#ifndef RCD_RX_KEEP_H
#define RCD_RX_KEEP_H

#include <stdint.h>

struct rcd_lcore;
struct rte_mbuf;

/** Have the pool of an lcore, which is empty, leave payloads in buffers. Control thread. */
void
rcd_rx_keep_init(struct rcd_lcore *lcore);

/** Give back the buffers of a burst, RCD_BURST_MAX at most; NULL: was kept. On the lcore. */
void
rcd_rx_free_burst(const struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint32_t count);

#endif /* RCD_RX_KEEP_H */
