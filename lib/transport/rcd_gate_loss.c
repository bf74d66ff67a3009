/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a loss says of the path.
 */
#include "rcd_gate_loss.h"

#include "rcd_qp_priv.h"

/*
 * One packet of so many may be lost for the path's own reasons. It is more when so many packets are
 * wanting for that, or as many as two round trips have; two losses in a row are chance.
 */
#define LOSS_PACKETS  20
#define LOSS_DEBT_MAX 80
#define LOSS_DEBT_MIN 40
#define LOSS_ROUNDS   2

/*
 * What is lost twice: each counts for RELOST_PACKETS that have to come, each that comes takes one
 * off, and a sum above the limit is much. So are two within RELOST_NEAR packets, and more than one
 * of RELOST_PACKETS for long; a path that loses one packet of 30 loses one of 900 twice.
 */
#define RELOST_PACKETS 500
#define RELOST_NEAR    300
#define RELOST_LIMIT   (2 * RELOST_PACKETS - RELOST_NEAR)

/*
 * Whether what was sent again and is missing once more says that it is not the path: always where
 * the last loss was a heavy one, as the first is of who knows no round trip.
 */
static bool
gate_loss_counts_again(struct rcd_gate *gate)
{
	gate->relost += RELOST_PACKETS;
	if (!gate->heavy && gate->relost <= RELOST_LIMIT)
		return false;
	gate->relost = 0;
	gate->heavy = false;
	return true;
}

/*
 * Who hears of other holes (SACK) while the oldest packet is on its way again hears nothing of that
 * one.
 */
bool
rcd_gate_loss_take(struct rcd_qp *qp, uint64_t now_ns)
{
	struct rcd_gate *gate = qp->gate;
	bool same = gate->losing && rcd_psn_eq(gate->loss_una, qp->hot.psn_una);
	bool again = same && now_ns - gate->una_ns >= rcd_rto_round(qp) * 3 / 2;
	uint32_t limit = LOSS_ROUNDS * rcd_psn_span(qp->hot.psn_una, qp->hot.psn_next);

	if (limit < LOSS_DEBT_MIN)
		limit = LOSS_DEBT_MIN;
	if (limit > LOSS_DEBT_MAX)
		limit = LOSS_DEBT_MAX;
	if (!same || again)
		gate->una_ns = now_ns;
	gate->loss_una = qp->hot.psn_una;
	gate->loss_debt += LOSS_PACKETS;
	if (!(again && gate_loss_counts_again(gate)) && qp->rtt_ns != 0 && gate->loss_debt <= limit)
		return false;
	gate->loss_debt = 0;
	return true;
}

/* Who fills a hole acknowledges all behind it at once, which came while it was missing. */
void
rcd_gate_loss_came(struct rcd_gate *gate, uint32_t packets)
{
	gate->loss_debt -= packets < gate->loss_debt ? packets : gate->loss_debt;
	if (packets > RCD_ACK_REQ_EVERY)
		packets = RCD_ACK_REQ_EVERY;
	gate->relost -= packets < gate->relost ? packets : gate->relost;
}

void
rcd_gate_loss_timeout(struct rcd_gate *gate)
{
	gate->relost = RELOST_LIMIT;
}
