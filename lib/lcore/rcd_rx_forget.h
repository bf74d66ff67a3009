/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets of a device that goes, wherever they wait for an lcore.
 *
 * Threads: the lcore.
 */
#ifndef RCD_RX_FORGET_H
#define RCD_RX_FORGET_H

#include <stdint.h>

struct rcd_lcore;

/** Free all packets that wait on an lcore, numbered as this device's; others stay. */
void
rcd_rx_forget(struct rcd_lcore *lcore, uint32_t index);

#endif /* RCD_RX_FORGET_H */
