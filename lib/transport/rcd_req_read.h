/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester: requests of RC that have an answer of their own. Inside of a queue pair, on its lcore.
 */
#ifndef RCD_REQ_READ_H
#define RCD_REQ_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_qp_priv.h"

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

/** One past the PSNs that a request asks for, whether it is one of these or has one packet. */
struct rcd_psn
rcd_req_read_end(const struct rcd_qp *qp, const struct rcd_roce *roce);

/** Packets of each part in which a READ is asked for; 0: it is not, by its record. */
static inline uint32_t
rcd_rec_part(const struct rcd_sq_rec *rec)
{
	uint32_t log2 = rec->psn_flags >> RCD_REC_PART_SHIFT;

	return log2 == 0 ? 0 : UINT32_C(1) << log2;
}

#endif /* RCD_REQ_READ_H */
