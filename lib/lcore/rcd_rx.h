/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The receive path.
 *
 * Threads: the lcore.
 */
#ifndef RCD_RX_H
#define RCD_RX_H

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <stdint.h>

#include "rcd_link.h"

struct rcd_lcore;

/**
 * The VLAN of a tag that the port took off; 0: it did not. Of two, one within the other, none is
 * ours. Any thread that has the buffer.
 */
static inline uint16_t
rcd_rx_stripped_vlan(const struct rte_mbuf *mbuf)
{
	if (likely(!(mbuf->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED))))
		return 0;
	if (mbuf->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED)
		return RCD_VLAN_NONE;
	return mbuf->vlan_tci & RCD_VLAN_ID_MASK;
}

/** Receive from all queues, rings included. @return packets */
uint32_t
rcd_rx_poll(struct rcd_lcore *lcore, uint32_t budget);

/**
 * Behind rcd_tx_urgent(): receive from embedded wires what that put into them, unless a rest waits.
 *
 * @return packets, RCD_TURN_URGENT of each end at most
 */
uint32_t
rcd_rx_wires(struct rcd_lcore *lcore);

#endif /* RCD_RX_H */
