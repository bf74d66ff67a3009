/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester: requests of RC that have an answer of their own. Inside of a queue pair, on its lcore.
 */
#ifndef RCD_REQ_READ_H
#define RCD_REQ_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_qp.h"

struct rcd_tx_pkt;
struct rcd_wr_slot;

/** What is wrong with one. */
enum rcd_wc_status
rcd_req_check_read(const struct rcd_qp *qp, const struct rcd_wr_slot *slot);

/** Whether one more has to wait for those under way. @param packets  that its answer takes */
bool
rcd_req_read_waits(const struct rcd_qp *qp, uint32_t packets);

/** Whether the next part of a READ has to, of a queue pair that is limited. */
bool
rcd_req_read_pauses(struct rcd_qp *qp);

/**
 * The packet for psn_tx. Of a READ in a window it may ask for a part.
 *
 * @param opcode  of the packet
 * @return PSNs that its answer takes from there; a probe and a repair may ask for less of them
 */
uint32_t
rcd_req_build_read(
	struct rcd_qp *qp, struct rcd_wr_slot *slot, uint8_t opcode, struct rcd_tx_pkt *pkt);

#endif /* RCD_REQ_READ_H */
