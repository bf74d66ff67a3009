/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What is on its way of a queue pair that a window limits. Inside of a queue pair, on its lcore.
 */
#ifndef RCD_GATE_FLIGHT_H
#define RCD_GATE_FLIGHT_H

#include <stdint.h>

struct rcd_qp;

/**
 * Bytes on their way: of what is sent again the part that was, and nothing of what the peer is
 * known to have behind a hole (RFC 6675, pipe): a hole that is being filled holds nothing back.
 * While READs are out that is so of what was sent behind the last of them.
 */
uint64_t
rcd_gate_flight(const struct rcd_qp *qp);

#endif /* RCD_GATE_FLIGHT_H */
