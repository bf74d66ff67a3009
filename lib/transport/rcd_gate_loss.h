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
 * The oldest packet is missing: called once for each time that it is told, before the gate takes it
 * for a loss of its own or for part of the last one.
 *
 * @return whether it says more than that: when nothing ever came back, when too much of what was
 *         sent again is missing once more (then gate->heavy is cleared: it is heavy anew), or when
 *         so much is lost that it is not the path
 */
bool
rcd_gate_loss_take(struct rcd_qp *qp, uint64_t now_ns);

/** So many packets came, and make up for losses. */
void
rcd_gate_loss_came(struct rcd_gate *gate, uint32_t packets);

/**
 * One of retry_cnt is spent (rcd_comp_retry()): until 500 packets have come, what was sent
 * again and is lost again is a heavy loss at once.
 */
void
rcd_gate_loss_timeout(struct rcd_gate *gate);

#endif /* RCD_GATE_LOSS_H */
