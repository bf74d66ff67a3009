/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets for queue pairs of another lcore, by its ring.
 *
 * Threads: the lcore.
 */
#ifndef RCD_HAND_OVER_H
#define RCD_HAND_OVER_H

#include <stdbool.h>
#include <stdint.h>

/** In the number of its device, a packet says that it is a copy for sniffers, and nothing else. */
#define RCD_HAND_OVER_SNIFFED (UINT32_C(1) << 31)

struct rcd_lcore;
struct rcd_lport;
struct rte_mbuf;

/** To another lcore, a packet of this device. The buffer is no longer the caller's. */
void
rcd_hand_over(struct rcd_lcore *lcore, struct rcd_lcore *owner, const struct rcd_lport *lport,
	struct rte_mbuf *mbuf);

/** Likewise, a copy for sniffers. */
void
rcd_hand_over_sniffed(struct rcd_lcore *lcore, struct rcd_lcore *owner,
	const struct rcd_lport *lport, struct rte_mbuf *mbuf);

/**
 * Whether another lcore has room for what may as well be dropped, which fills its ring by half: the
 * rest is for packets that are sent again when they are lost. One that has no room is counted.
 */
bool
rcd_hand_over_fits(
	struct rcd_lcore *lcore, const struct rcd_lcore *owner, const struct rcd_lport *lport);

#endif /* RCD_HAND_OVER_H */
