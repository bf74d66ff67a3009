/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The way of a queue pair from RESET to RTR or RTS, with the attributes that each step requires.
 */
#ifndef RCD_BRING_UP_H
#define RCD_BRING_UP_H

#include "rcd_check.h"
#include "rcd_qp.h"

/**
 * Bring a fresh queue pair to RTR or RTS. Attributes that its service does not have are not looked
 * at; that a step is refused is a defect of the test.
 *
 * @param to  RCD_QP_RTR or RCD_QP_RTS
 */
static inline void
rcd_bring_up(
	struct rcd_qp *qp, enum rcd_qp_type type, struct rcd_qp_attr attr, enum rcd_qp_state to)
{
	bool requester = type == RCD_QP_RC || type == RCD_QP_XRC_SEND;
	bool responder = type == RCD_QP_RC || type == RCD_QP_XRC_RECV;
	bool connected = type != RCD_QP_UD && type != RCD_QP_GSI;
	uint32_t init = RCD_QP_ATTR_PKEY_INDEX;
	uint32_t rtr = 0;
	uint32_t rts = RCD_QP_ATTR_SQ_PSN;

	init |= type == RCD_QP_GSI ? 0 : RCD_QP_ATTR_PORT;
	init |= connected ? RCD_QP_ATTR_ACCESS : RCD_QP_ATTR_QKEY;
	if (connected)
		rtr = RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU | RCD_QP_ATTR_DEST_QPN |
			RCD_QP_ATTR_RQ_PSN;
	if (requester || responder)
		rts |= RCD_QP_ATTR_TIMEOUT;
	if (responder)
		rtr |= RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER;
	if (requester)
		rts |= RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY | RCD_QP_ATTR_MAX_RD_ATOMIC;
	if (type == RCD_QP_RAW) {
		init = RCD_QP_ATTR_PORT;
		rtr = rts = 0;
	}
	attr.state = RCD_QP_INIT;
	RCD_CHECK(rcd_qp_modify(qp, &attr, RCD_QP_ATTR_STATE | init) == 0);
	attr.state = RCD_QP_RTR;
	RCD_CHECK(rcd_qp_modify(qp, &attr, RCD_QP_ATTR_STATE | rtr) == 0);
	attr.state = RCD_QP_RTS;
	if (to == RCD_QP_RTS)
		RCD_CHECK(rcd_qp_modify(qp, &attr, RCD_QP_ATTR_STATE | rts) == 0);
}

#endif /* RCD_BRING_UP_H */
