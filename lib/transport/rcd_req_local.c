/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester: work requests that send nothing.
 */
#include "rcd_qp_priv.h"

/* Spec: IBTA 10.6.7, 10.8.3 local operations are done when their turn comes */
enum rcd_wc_status
rcd_req_do_local(struct rcd_qp *qp, const struct rcd_send_wr *wr)
{
	struct rcd_key key = { wr->imm };

	if (wr->opcode == RCD_WR_LOCAL_INV) {
		if (rcd_mw_invalidate(qp->hot.mrs, key, qp->init.pd, qp->init.qpn.val) != 0)
			return RCD_WC_LOC_QP_OP_ERR;
		return RCD_WC_SUCCESS;
	}

	struct rcd_mw_bind bind = {
		.pd = qp->init.pd,
		.qpn = qp->init.qpn.val,
		.mw = wr->bind.mw,
		.variant = (uint8_t)wr->bind.new_rkey.val,
		.mr = wr->bind.mr,
		.addr = wr->bind.addr,
		.len = wr->bind.len,
		.access = wr->bind.access,
		.list = qp->init.windows,
	};

	return rcd_mw_bind(qp->hot.mrs, &bind, &key) == 0 ? RCD_WC_SUCCESS : RCD_WC_MW_BIND_ERR;
}
