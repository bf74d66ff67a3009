/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Responder of RC: checks a request in the order of the specification. Each check looks and says
 * what is wrong; nothing is changed by it.
 */
#include <errno.h>

#include "rcd_qp_priv.h"
#include "rcd_resp.h"

/* Spec: IBTA 9.7.4.1 what may follow what within messages */
static enum check
resp_check_sequence(const struct rcd_qp *qp, const struct rcd_roce *roce)
{
	enum rcd_op op = rcd_resp_op(roce);
	bool begins = rcd_opcode_begins(roce->bth.opcode);

	switch ((enum rcd_in_progress)qp->hot.in_progress) {
	case RCD_IN_NOTHING:
		return begins ? CHECK_OK : CHECK_INVALID_REQUEST;
	case RCD_IN_SEND:
		return !begins && op == RCD_OP_SEND ? CHECK_OK : CHECK_INVALID_REQUEST;
	case RCD_IN_WRITE:
		return !begins && op == RCD_OP_RDMA_WRITE ? CHECK_OK : CHECK_INVALID_REQUEST;
	}
	return CHECK_INVALID_REQUEST;
}

/* Rights that a FLUSH needs, of the queue pair and of the region. */
static uint32_t
resp_check_flush_rights(const struct rcd_feth *feth)
{
	return (feth->placement & RCD_PLACEMENT_GLOBAL ? RCD_ACCESS_FLUSH_GLOBAL : 0) |
		(feth->placement & RCD_PLACEMENT_PERSISTENT ? RCD_ACCESS_FLUSH_PERSISTENT : 0);
}

/* Spec: Annex A19 placement types that the queue pair offers; what nobody knows is not promised */
static bool
resp_check_offers_flush(const struct rcd_qp *qp, const struct rcd_feth *feth)
{
	uint32_t rights = resp_check_flush_rights(feth);

	return rights != 0 && (qp->attr.access & rights) == rights &&
		(feth->placement & ~RCD_PLACEMENT_ALL) == 0 &&
		feth->selectivity <= RCD_SELECTIVITY_REGION && qp->attr.max_dest_rd_atomic > 0;
}

/* Spec: IBTA 9.7.4.1 operations that this queue pair does not offer to its peer */
static enum check
resp_check_offered(const struct rcd_qp *qp, const struct rcd_roce *roce)
{
	uint32_t access = qp->attr.access;
	bool offered = false;

	switch (rcd_resp_op(roce)) {
	case RCD_OP_SEND:
		offered = true;
		break;
	case RCD_OP_RDMA_WRITE:
		offered = access & RCD_ACCESS_REMOTE_WRITE;
		break;
	case RCD_OP_RDMA_READ:
		offered = (access & RCD_ACCESS_REMOTE_READ) && qp->attr.max_dest_rd_atomic > 0;
		break;
	case RCD_OP_COMPARE_SWAP:
	case RCD_OP_FETCH_ADD:
		offered = (access & RCD_ACCESS_REMOTE_ATOMIC) && qp->attr.max_dest_rd_atomic > 0;
		break;
	case RCD_OP_FLUSH:
		offered = resp_check_offers_flush(qp, &roce->feth);
		break;
	case RCD_OP_ATOMIC_WRITE:
		offered = (access & RCD_ACCESS_REMOTE_WRITE) && qp->attr.max_dest_rd_atomic > 0;
		break;
	case RCD_OP_READ_RESPONSE:
	case RCD_OP_ACKNOWLEDGE:
	case RCD_OP_ATOMIC_RESPONSE:
	case RCD_OP_SACK:
	case RCD_OP_CNP:
	case RCD_OP_HELLO:
	case RCD_OP_HELLO_ACK:
		break;
	}
	return offered ? CHECK_OK : CHECK_INVALID_REQUEST;
}

/* Spec: IBTA 9.7.4.1 packet lengths within a message, and what a RETH may announce */
static enum check
resp_check_length(const struct rcd_qp *qp, const struct rcd_roce *roce, uint32_t len)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	const struct rcd_opcode_info *info = rcd_opcode_info(roce->bth.opcode);
	bool whole = info->position == RCD_POS_FIRST || info->position == RCD_POS_MIDDLE;
	uint32_t before = rcd_opcode_begins(roce->bth.opcode) ? 0 : hot->in_len;
	uint32_t total =
		rcd_opcode_has(roce->bth.opcode, RCD_EXT_RETH) ? roce->reth.dma_len : hot->in_total;

	if (rcd_opcode_has(roce->bth.opcode, RCD_EXT_RETH) && total > RCD_MSG_MAX_BYTES)
		return CHECK_INVALID_REQUEST;
	if (rcd_resp_op(roce) == RCD_OP_COMPARE_SWAP || rcd_resp_op(roce) == RCD_OP_FETCH_ADD)
		return roce->atomiceth.va % RCD_ATOMIC_LEN == 0 ? CHECK_OK : CHECK_INVALID_REQUEST;
	if (rcd_resp_op(roce) == RCD_OP_RDMA_READ || rcd_resp_op(roce) == RCD_OP_FLUSH)
		return CHECK_OK;
	/* Spec: Annex A19 an ATOMIC WRITE is of eight bytes, to where they are aligned */
	if (rcd_resp_op(roce) == RCD_OP_ATOMIC_WRITE)
		return len == RCD_ATOMIC_LEN && total == RCD_ATOMIC_LEN &&
				roce->reth.va % RCD_ATOMIC_LEN == 0
			? CHECK_OK
			: CHECK_INVALID_REQUEST;
	if (whole ? len != hot->mtu : len > hot->mtu)
		return CHECK_INVALID_REQUEST;
	if (info->position == RCD_POS_LAST && len == 0)
		return CHECK_INVALID_REQUEST;
	if (before + len > RCD_MSG_MAX_BYTES)
		return CHECK_INVALID_REQUEST;
	if (rcd_resp_op(roce) == RCD_OP_RDMA_WRITE &&
		(whole ? before + len >= total : before + len != total))
		return CHECK_INVALID_REQUEST;
	return CHECK_OK;
}

/* Aligned for the peer, but perhaps not where it lies here. */
static enum check
resp_check_aligned(const uint8_t *at)
{
	return at != NULL && (uintptr_t)at % RCD_ATOMIC_LEN == 0 ? CHECK_OK : CHECK_REMOTE_ACCESS;
}

/* Spec: IBTA 9.7.4.1 R_Key, range, rights and protection domain */
static enum check
resp_check_remote(const struct rcd_qp *qp, const struct rcd_roce *roce, uint32_t len, uint8_t **at)
{
	struct rcd_mr_use use = { .pd = qp->init.pd, .qpn = qp->init.qpn.val, .remote = true };
	struct rcd_mr_table *mrs = qp->hot.mrs;

	*at = NULL;
	switch (rcd_resp_op(roce)) {
	case RCD_OP_RDMA_WRITE:
		use.access = RCD_ACCESS_REMOTE_WRITE;
		if (rcd_opcode_begins(roce->bth.opcode)) {
			/* The whole range at once, so that nothing is written of what must fail. */
			*at = rcd_mr_translate(
				mrs, roce->reth.rkey, roce->reth.va, roce->reth.dma_len, &use);
		} else {
			*at = rcd_mr_translate(
				mrs, qp->write_key, qp->write_va + qp->hot.in_len, len, &use);
		}
		return *at != NULL ? CHECK_OK : CHECK_REMOTE_ACCESS;
	case RCD_OP_RDMA_READ:
		use.access = RCD_ACCESS_REMOTE_READ;
		*at = rcd_mr_translate(
			mrs, roce->reth.rkey, roce->reth.va, roce->reth.dma_len, &use);
		return *at != NULL ? CHECK_OK : CHECK_REMOTE_ACCESS;
	case RCD_OP_COMPARE_SWAP:
	case RCD_OP_FETCH_ADD:
		use.access = RCD_ACCESS_REMOTE_ATOMIC;
		*at = rcd_mr_translate(
			mrs, roce->atomiceth.rkey, roce->atomiceth.va, RCD_ATOMIC_LEN, &use);
		return resp_check_aligned(*at);
	case RCD_OP_FLUSH:
		use.access = resp_check_flush_rights(&roce->feth);
		/* A range of no bytes needs its rights as well. */
		use.whole =
			roce->feth.selectivity == RCD_SELECTIVITY_REGION || roce->reth.dma_len == 0;
		*at = rcd_mr_translate(
			mrs, roce->reth.rkey, roce->reth.va, roce->reth.dma_len, &use);
		return *at != NULL ? CHECK_OK : CHECK_REMOTE_ACCESS;
	case RCD_OP_ATOMIC_WRITE:
		use.access = RCD_ACCESS_REMOTE_WRITE;
		*at = rcd_mr_translate(mrs, roce->reth.rkey, roce->reth.va, RCD_ATOMIC_LEN, &use);
		return resp_check_aligned(*at);
	case RCD_OP_SEND:
	case RCD_OP_READ_RESPONSE:
	case RCD_OP_ACKNOWLEDGE:
	case RCD_OP_ATOMIC_RESPONSE:
	case RCD_OP_SACK:
	case RCD_OP_CNP:
	case RCD_OP_HELLO:
	case RCD_OP_HELLO_ACK:
		break;
	}
	return CHECK_OK;
}

/*
 * Room to answer a READ, or what is answered as one. The peer agreed not to have more outstanding.
 * Repeated answers don't count: a peer that asks for something new has what it asked for before.
 *
 * Requesters that don't count FLUSHes, as the kernel's rxe, are to send again what was one too many
 * because of those: nothing was done for it.
 */
static enum check
resp_check_resource(const struct rcd_qp *qp, enum rcd_op op)
{
	const struct rcd_resp_resource *oldest = &qp->resources[qp->resource_next];
	bool flush = op == RCD_OP_FLUSH;

	if (!oldest->pending || oldest->repeated)
		return CHECK_OK;
	for (uint32_t i = 0; i < qp->attr.max_dest_rd_atomic; i++)
		flush |= qp->resources[i].opcode == RCD_OPCODE_RC_FLUSH && qp->resources[i].pending;
	return flush ? CHECK_AGAIN : CHECK_INVALID_REQUEST;
}

/* Whether eight bytes change at once: what is told by them must be there before. */
static bool
resp_check_is_atomic(enum rcd_op op)
{
	return op == RCD_OP_COMPARE_SWAP || op == RCD_OP_FETCH_ADD || op == RCD_OP_ATOMIC_WRITE;
}

/* Spec: IBTA 9.7.4.1, 9.7.5.2.8 a receive work request, or room for an answer */
static enum check
resp_check_resources(
	struct rcd_qp *qp, const struct rcd_roce *roce, uint32_t len, const uint8_t *at)
{
	enum rcd_op op = rcd_resp_op(roce);
	bool send = op == RCD_OP_SEND;

	if (resp_check_is_atomic(op)) {
		int err = rcd_mr_atomic_order(qp->hot.mrs, qp->hot.arg, at);

		if (err != 0)
			return err == -EAGAIN ? CHECK_AGAIN : CHECK_REMOTE_ACCESS;
	}
	if (!send && op != RCD_OP_RDMA_WRITE)
		return resp_check_resource(qp, op);
	if (!send && !rcd_opcode_has(roce->bth.opcode, RCD_EXT_IMMDT))
		return CHECK_OK;
	if (rcd_qp_need_recv(qp) != 0)
		return CHECK_RNR;
	if (qp->recv.sge_count > qp->recv.sge_max)
		return CHECK_LOCAL;
	if (send) {
		uint32_t before = rcd_opcode_begins(roce->bth.opcode) ? 0 : qp->hot.in_len;

		if ((uint64_t)before + len > rcd_sg_len(qp->recv.sges, qp->recv.sge_count))
			return CHECK_TOO_LONG;
	}
	return CHECK_OK;
}

/* Spec: IBTA 9.7.4 order of the checks */
enum check
rcd_resp_check(struct rcd_qp *qp, const struct rcd_roce *roce, uint32_t len, uint8_t **at)
{
	enum check check = resp_check_sequence(qp, roce);

	if (qp->init.xrc != NULL && !rcd_xrc_check(qp, roce))
		check = CHECK_INVALID_REQUEST;
	if (check == CHECK_OK)
		check = resp_check_offered(qp, roce);
	if (check == CHECK_OK)
		check = resp_check_length(qp, roce, len);
	if (check == CHECK_OK)
		check = resp_check_remote(qp, roce, len, at);
	if (check == CHECK_OK)
		check = resp_check_resources(qp, roce, len, *at);
	return check;
}
