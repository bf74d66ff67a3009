/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester of RC: how much may be under way while losses are repaired. Inside of a queue pair, on
 * its lcore.
 *
 * It is a window in packets from the oldest outstanding one on (struct rcd_qp_hot, window), and
 * RCD_REQ_WINDOW when nothing is wrong: then nothing here is called. After a timeout it is one
 * packet, and grows by each that is acknowledged, so that it doubles in a round trip. Without
 * congestion control it is halved as well when much of what was under way is lost.
 */
#ifndef RCD_RECOVER_H
#define RCD_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

struct rcd_qp;

/** What it goes by, beside the window. */
struct rcd_recovery {
	uint16_t goal;      /**< up to that the window doubles in a round trip */
	uint16_t rest;      /**< packets acknowledged, too few to widen it */
	uint16_t lost;      /**< in this round trip, of those sent since it was halved */
	uint16_t under_way; /**< packets sent again for SACKs, less those that came since */
};

/** Nothing limits repairs. */
void
rcd_recover_reset(struct rcd_qp *qp);

/** Nobody answered in time: one packet until somebody does. */
void
rcd_recover_timeout(struct rcd_qp *qp);

/** So many packets are acknowledged, and the window is not whole. */
void
rcd_recover_acked(struct rcd_qp *qp, uint32_t packets);

/** A peer that keeps nothing missed a packet, and dropped all behind it. */
void
rcd_recover_dropped(struct rcd_qp *qp);

/**
 * A packet is sent again because it is lost (SACK).
 *
 * @param fresh   the first in a round trip
 * @param recent  it was last sent since the window was halved
 * @return whether the window is halved for it
 */
bool
rcd_recover_lost(struct rcd_qp *qp, bool fresh, bool recent);

/** The peer is known to have so many packets more: as many may follow. */
void
rcd_recover_came(struct rcd_qp *qp, uint32_t packets);

/** Whether as much is sent again, and not known to have come, as may be under way. */
bool
rcd_recover_holds(const struct rcd_qp *qp);

#endif /* RCD_RECOVER_H */
