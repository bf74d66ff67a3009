/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester: which of the requests that have begun a PSN is of, and how many of them are out.
 */
#include "rcd_qp_priv.h"

uint32_t
rcd_req_find(struct rcd_qp *qp, struct rcd_psn psn)
{
	uint32_t low = qp->hot.sq_head;
	uint32_t high = qp->hot.sq_next;

	/* PSNs ascend with the numbers. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (rcd_psn_before(psn, rcd_rec_psn(rcd_sq_rec(qp, middle))))
			high = middle;
		else
			low = middle;
	}
	return low;
}

uint32_t
rcd_qp_sq_out(struct rcd_qp *qp)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint32_t last = hot->sq_next - 1;
	struct rcd_psn end;

	if (hot->sq_next == hot->sq_head)
		return hot->sq_next;
	/* The next one begins when all of those before were sent, the first time. */
	end = rcd_psn_add(rcd_rec_psn(rcd_sq_rec(qp, last)), rcd_rec_packets(qp, last));
	return rcd_psn_before(hot->psn_next, end) ? last : hot->sq_next;
}
