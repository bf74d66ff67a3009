/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * net_impair: an Ethernet device that wraps another one and drops, duplicates, reorders, corrupts,
 * delays and marks packets on their way through it.
 *
 *     --vdev net_af_packet0,iface=veth0 --vdev net_impair0,port=net_af_packet0,drop=1%,seed=7
 *
 * The wrapped port belongs to the device: it is configured, started, stopped and closed with it,
 * and no other owner can take it. Each queue has a sequence of random numbers of its own, that
 * begins with the seed. What happened is counted in extended statistics (tx_impair_drop, ...).
 *
 * With queues=N it is a NIC with N queues besides, which RSS and flow rules spread what is received
 * over; the wrapped port has one queue then.
 */
#ifndef RCD_PMD_IMPAIR_H
#define RCD_PMD_IMPAIR_H

#include <stddef.h>
#include <stdint.h>

/**
 * Change what a device does from now on: what is not named is as in a new device, so "" ends all
 * impairment. The wrapped port and queues stay. Any thread, while the device works.
 *
 * @param args   as device arguments: drop=1%,duplicate=0.01,reorder=1%,gap=5,delay=100%,
 *     delay_us=50,corrupt=1e-3,ecn=0.5,seed=7,side=tx|rx|both
 * @param error  set to a sentence on failure
 * @return 0; -ENODEV: no device of this driver; -EINVAL
 */
int
rcd_pmd_impair_set(uint16_t port_id, const char *args, char *error, size_t error_len);

#endif /* RCD_PMD_IMPAIR_H */
