/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The parts of READs that are under way (rcd_gate.h). Inside of a queue pair, on its lcore.
 */
#ifndef RCD_GATE_PART_H
#define RCD_GATE_PART_H

#include <stdbool.h>

#include "rcd_psn.h"

struct rcd_qp;

/** Whether no further part of a READ can be kept track of. */
bool
rcd_gate_is_full(const struct rcd_qp *qp);

/** The part at or behind a PSN: one past it. @return false: all ends of READs are before it */
bool
rcd_gate_find_part(const struct rcd_qp *qp, struct rcd_psn psn, struct rcd_psn *end);

/** psn_una moved. @return whether a part of a READ that does not end it ended there: no more */
bool
rcd_gate_end_part(struct rcd_qp *qp);

#endif /* RCD_GATE_PART_H */
