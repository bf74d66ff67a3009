/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Domains of extended reliable connections: the shared receive queues in them, by number, and which
 * of them a packet is for.
 */
#include "rcd_xrc.h"

#include "rcd_check.h"
#include "rcd_qp_priv.h"

#define HIGHS ((UINT32_C(1) << RCD_XRC_SRQN_BITS) / RCD_XRC_SRQS) /**< high parts of a slot */

uint32_t
rcd_xrc_number(const struct rcd_xrc_domain *domain, uint32_t random)
{
	for (uint32_t i = 0; i < RCD_XRC_SRQS; i++) {
		uint32_t slot = (random + i) % RCD_XRC_SRQS;
		/* Never 0, which programs send who have been told no number. */
		uint32_t step = (random / RCD_XRC_SRQS) % (HIGHS - 2);
		uint32_t high = 1 + (domain->high[slot] + step) % (HIGHS - 1);

		if (domain->slots[slot] == NULL)
			return high * RCD_XRC_SRQS + slot;
	}
	return 0;
}

void
rcd_xrc_add(struct rcd_xrc_domain *domain, struct rcd_srq *srq, uint32_t number,
	struct rcd_mr_table *mrs, uint32_t pd)
{
	uint32_t slot = number % RCD_XRC_SRQS;

	RCD_CHECK(domain->slots[slot] == NULL);
	srq->mrs = mrs;
	srq->pd = pd;
	srq->number = number;
	srq->serial = ++domain->serial;
	domain->high[slot] = (uint16_t)(number / RCD_XRC_SRQS);
	domain->slots[slot] = srq;
	domain->count++;
}

void
rcd_xrc_remove(struct rcd_xrc_domain *domain, struct rcd_srq *srq)
{
	RCD_CHECK(rcd_xrc_find(domain, srq->number) == srq);
	domain->slots[srq->number % RCD_XRC_SRQS] = NULL;
	domain->count--;
}

struct rcd_srq *
rcd_xrc_enter(struct rcd_qp *qp, uint32_t srqn)
{
	struct rcd_srq *srq = rcd_xrc_find(qp->init.xrc, srqn);

	qp->hot.mrs = srq != NULL ? srq->mrs : NULL;
	qp->init.pd = srq != NULL ? srq->pd : 0;
	return srq;
}

/*
 * Spec: Annex A14 the queue that a packet names is of the target's domain, and one for all of a
 * message. It has the receive work requests, and its protection domain the keys.
 */
bool
rcd_xrc_check(struct rcd_qp *qp, const struct rcd_roce *roce)
{
	const struct rcd_srq *srq = rcd_xrc_enter(qp, roce->xrceth.srqn);

	if (srq == NULL || (qp->hot.in_progress != RCD_IN_NOTHING && srq->number != qp->srqn))
		return false;
	/* Its number may be another's by now, of whom the receive work request is not. */
	if (qp->recv_valid && srq->serial != qp->srq_serial)
		return false;
	qp->srqn = srq->number;
	return true;
}

struct rcd_srq *
rcd_qp_rx_srq(const struct rcd_qp *qp, const struct rcd_roce *roce)
{
	bool named = rcd_opcode_info(roce->bth.opcode)->exts & RCD_EXT_XRCETH;

	return named ? rcd_xrc_find(qp->init.xrc, roce->xrceth.srqn) : NULL;
}

struct rcd_srq *
rcd_qp_tx_srq(const struct rcd_qp *qp)
{
	const struct rcd_resp_resource *resource;

	if (qp->again.next != qp->again.end)
		resource = &qp->resources[qp->again_resource];
	else if (qp->hot.reply_count > 0)
		resource = &qp->resources[qp->replies[qp->reply_first]];
	else
		return NULL;
	if (rcd_opcode_info(resource->opcode)->op != RCD_OP_RDMA_READ)
		return NULL;
	return rcd_xrc_find(qp->init.xrc, resource->srqn);
}

const struct rcd_mr_table *
rcd_qp_tx_mrs(const struct rcd_qp *qp)
{
	return qp->hot.mrs;
}
