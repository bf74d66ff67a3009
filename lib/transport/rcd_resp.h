/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Private to the receiving half of the responder of RC: rcd_resp.c and rcd_resp_check.c.
 */
#ifndef RCD_RESP_H
#define RCD_RESP_H

#include "rcd_qp_priv.h"

/** What a check says. */
enum check {
	CHECK_OK,
	CHECK_RNR,             /**< no receive work request, or no resource yet */
	CHECK_AGAIN,           /**< not yet: to be sent again */
	CHECK_INVALID_REQUEST, /**< NAK codes, and what becomes of a receive work request */
	CHECK_TOO_LONG,
	CHECK_REMOTE_ACCESS,
	CHECK_LOCAL,
};

static inline enum rcd_op
rcd_resp_op(const struct rcd_roce *roce)
{
	return (enum rcd_op)rcd_opcode_info(roce->bth.opcode)->op;
}

/* rcd_resp_check.c */

/**
 * Check the request for the expected PSN.
 *
 * @param len  bytes of payload
 * @param at   set to where in engine memory it is for; NULL for a SEND
 */
enum check
rcd_resp_check(struct rcd_qp *qp, const struct rcd_roce *roce, uint32_t len, uint8_t **at);

#endif /* RCD_RESP_H */
