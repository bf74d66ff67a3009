/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What is on its way.
 */
#include "rcd_gate_flight.h"

#include "rcd_qp_priv.h"

/* Outstanding packets that the peer is known to have. */
static uint32_t
gate_flight_held(const struct rcd_qp *qp)
{
	const struct rcd_sack *sack = qp->sack;
	struct rcd_psn from = qp->hot.psn_una;

	if (sack == NULL || !sack->newest_valid)
		return 0;
	/*
	 * The place of one that was sent too far ahead may have the bit of one long before it, and
	 * so may those of responses, which nobody keeps.
	 */
	if (rcd_psn_before(from, sack->blind))
		from = sack->blind;
	if (qp->hot.reads_out > 0) {
		/* It went back, and not every READ was asked for again. */
		if (rcd_psn_diff(qp->hot.psn_read, qp->hot.psn_una) <= 0)
			return 0;
		if (rcd_psn_before(from, qp->hot.psn_read))
			from = qp->hot.psn_read;
	}
	return rcd_sack_bits_count(&sack->held, from, qp->hot.psn_next);
}

uint64_t
rcd_gate_flight(const struct rcd_qp *qp)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	uint64_t all = rcd_psn_span(hot->psn_una, hot->psn_next);
	uint64_t sent = rcd_psn_span(hot->psn_una, hot->psn_tx);

	if (sent >= all)
		sent = all - gate_flight_held(qp);
	return sent >= all ? qp->gate->flight : qp->gate->flight * sent / all;
}
