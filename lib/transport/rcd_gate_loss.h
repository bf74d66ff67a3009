/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Whether a loss is the path's own, which loses a packet now and then, or a heavy one, behind which
 * too much is sent. Inside of a queue pair that is limited, on its lcore.
 */
#ifndef RCD_GATE_LOSS_H
#define RCD_GATE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

struct rcd_gate;
struct rcd_qp;

/**
 * The oldest packet is missing, to be asked once for each that is told. It says more than that when
 * nothing ever came back, when too much of what was sent again is missing once more, and when so
 * much is lost that it is not the path.
 */
bool
rcd_gate_loss_is_heavy(struct rcd_qp *qp, uint64_t now_ns);

/** So many packets came, and make up for losses. */
void
rcd_gate_loss_came(struct rcd_gate *gate, uint32_t packets);

/** Nothing was heard for the whole timeout: what is lost again from now on is a heavy loss. */
void
rcd_gate_loss_timeout(struct rcd_gate *gate);

#endif /* RCD_GATE_LOSS_H */
