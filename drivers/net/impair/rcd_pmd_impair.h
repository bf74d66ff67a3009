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
 * Packets are lost each by itself (drop) or in bursts (ge_p and ge_r: the two states of Gilbert and
 * Elliott). They are delayed by a time or a distribution of times (delay_dist). And there may be a
 * bottleneck of some rate, with a queue that drops what it has no room for, and marks ECN-capable
 * packets when it is long (rate, queue, mark); all queues of the device go by it, and a delay comes
 * after it. Time goes by the TSC, and packets when a burst is sent or received: there is no thread.
 * A device keeps up to 2688 packets of each queue and direction, and the pool that they are of
 * needs more than that; it frees them when it is stopped.
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
 *     delay_us=50,corrupt=1e-3,ecn=0.5,seed=7,side=tx|rx|both, ge_p=0.1%,ge_r=25%,ge_max=8,
 *     ge_bad=100%,ge_good=0, delay_dist=constant|uniform|normal|pareto,jitter_us=20,
 *     delay_min_us=0,delay_max_us=500, rate=125000000 (bytes/s),queue=256000 (bytes),
 *     queue_packets=500,mark=64000 (bytes), and the others of doc/engine.md that are not constant
 * @param error  set to a sentence on failure
 * @return 0; -ENODEV: no device of this driver; -EINVAL
 */
int
rcd_pmd_impair_set(uint16_t port_id, const char *args, char *error, size_t error_len);

#endif /* RCD_PMD_IMPAIR_H */
