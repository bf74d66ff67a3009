/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A window that stays as it is.
 */
#include "window.h"

static uint32_t window_packets;

static void
window_init(struct rcd_cc *cc, const struct rcd_cc_params *params, uint32_t packet_bytes,
	uint64_t now_ns)
{
	(void)params;
	(void)now_ns;
	cc->words[0] = (uint64_t)packet_bytes * window_packets;
}

static void
window_on_cnp(struct rcd_cc *cc, uint64_t now_ns)
{
	(void)cc;
	(void)now_ns;
}

static void
window_on_ack(struct rcd_cc *cc, const struct rcd_cc_ack *ack)
{
	(void)cc;
	(void)ack;
}

static void
window_on_loss(struct rcd_cc *cc, bool heavy, uint64_t now_ns)
{
	(void)cc;
	(void)heavy;
	(void)now_ns;
}

static void
window_undo(struct rcd_cc *cc, const struct rcd_cc *before)
{
	(void)cc;
	(void)before;
}

static uint64_t
window_send_at(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns)
{
	(void)cc;
	(void)bytes;
	return now_ns;
}

static uint32_t
window_bytes(const struct rcd_cc *cc)
{
	return (uint32_t)cc->words[0];
}

static uint32_t
window_rate(const struct rcd_cc *cc)
{
	(void)cc;
	return 0;
}

static const struct rcd_cc_ops window = {
	.name = "window",
	.init = window_init,
	.on_cnp = window_on_cnp,
	.on_ack = window_on_ack,
	.on_loss = window_on_loss,
	.undo = window_undo,
	.send_at = window_send_at,
	.window = window_bytes,
	.rate = window_rate,
};

const struct rcd_cc_ops *
sim_window(uint32_t packets)
{
	window_packets = packets;
	return &window;
}

/* Whether it is one of those that were asked for, or within one. */
static bool
window_finds(const struct sim_reads *reads, struct rcd_psn psn, uint32_t packets, uint64_t va,
	uint32_t mtu)
{
	uint32_t kept = reads->count < SIM_READS ? reads->count : SIM_READS;

	for (uint32_t i = reads->count - kept; i != reads->count; i++) {
		int32_t skip = rcd_psn_diff(psn, reads->asked[i % SIM_READS].psn);

		if (skip >= 0 && (uint32_t)skip + packets <= reads->asked[i % SIM_READS].packets)
			return va == reads->asked[i % SIM_READS].va + (uint64_t)skip * mtu;
	}
	return false;
}

void
sim_reads_note(struct sim_reads *reads, const struct rcd_tx_pkt *pkt, uint32_t mtu)
{
	const struct rcd_reth *reth = &pkt->roce.reth;
	uint32_t packets = reth->dma_len == 0 ? 1 : (reth->dma_len - 1) / mtu + 1;
	struct rcd_psn psn = pkt->roce.bth.psn;
	uint32_t last = (reads->count - 1) % SIM_READS;

	if (rcd_opcode_info(pkt->roce.bth.opcode)->op != RCD_OP_RDMA_READ)
		return;
	if (reads->count > 0 &&
		rcd_psn_before(
			psn, rcd_psn_add(reads->asked[last].psn, reads->asked[last].packets))) {
		reads->wrong += !window_finds(reads, psn, packets, reth->va, mtu);
		return;
	}
	last = reads->count++ % SIM_READS;
	reads->asked[last].psn = psn;
	reads->asked[last].packets = packets;
	reads->asked[last].va = reth->va;
}
