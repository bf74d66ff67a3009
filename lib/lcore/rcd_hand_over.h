/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets for queue pairs of another lcore, by its ring.
 *
 * Threads: the lcore.
 */
#ifndef RCD_HAND_OVER_H
#define RCD_HAND_OVER_H

struct rcd_lcore;
struct rcd_lport;
struct rte_mbuf;

/** To another lcore, a packet of this device. The buffer is no longer the caller's. */
void
rcd_hand_over(struct rcd_lcore *lcore, struct rcd_lcore *owner, const struct rcd_lport *lport,
	struct rte_mbuf *mbuf);

#endif /* RCD_HAND_OVER_H */
