/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The parts of READs that are under way (rcd_gate.h).
 */
#include "rcd_qp_priv.h"

bool
rcd_gate_is_full(const struct rcd_qp *qp)
{
	return qp->gate->part_count == RCD_GATE_PARTS;
}

bool
rcd_gate_find_part(const struct rcd_qp *qp, struct rcd_psn psn, struct rcd_psn *end)
{
	const struct rcd_gate *gate = qp->gate;

	for (uint32_t i = 0; gate != NULL && i < gate->part_count; i++) {
		*end = gate->parts[(gate->part_first + i) % RCD_GATE_PARTS];
		if (!rcd_psn_before(*end, psn))
			return true;
	}
	return false;
}

bool
rcd_gate_end_part(struct rcd_qp *qp)
{
	struct rcd_gate *gate = qp->gate;

	if (gate == NULL || gate->part_count == 0 ||
		!rcd_psn_eq(gate->parts[gate->part_first], qp->hot.psn_una))
		return false;
	gate->part_first = (gate->part_first + 1) % RCD_GATE_PARTS;
	gate->part_count--;
	return true;
}
