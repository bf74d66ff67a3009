/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The receive path.
 *
 * Threads: the lcore.
 */
#ifndef RCD_RX_H
#define RCD_RX_H

#include <stdint.h>

struct rcd_lcore;

/** Receive from all queues, rings included. @return packets */
uint32_t
rcd_rx_poll(struct rcd_lcore *lcore, uint32_t budget);

/** Free all packets that wait on an lcore, numbered as this device's; others stay. */
void
rcd_rx_forget(struct rcd_lcore *lcore, uint32_t index);

#endif /* RCD_RX_H */
