/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A window that stays as it is, so that few packets are under way and READs are asked for in parts;
 * and whether those are ones that any responder finds again.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include "rcd_qp.h"

/** READs that a responder may be asked for again are among the last of so many. */
#define SIM_READS 32

/** What one queue pair asked for by READs, in the order of PSNs. */
struct sim_reads {
	struct {
		struct rcd_psn psn;
		uint32_t packets;
		uint64_t va;
	} asked[SIM_READS];
	uint32_t count; /**< of all */
	uint32_t wrong; /**< asked for again, and not as one of them or a part of one */
};

/** Congestion control with a window of so many packets, for all that asks for it from now on. */
const struct rcd_cc_ops *
sim_window(uint32_t packets);

/** A packet was sent. */
void
sim_reads_note(struct sim_reads *reads, const struct rcd_tx_pkt *pkt, uint32_t mtu);

#endif /* WINDOW_H */
