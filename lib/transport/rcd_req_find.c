/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester: which of the requests that have begun a PSN is of.
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
