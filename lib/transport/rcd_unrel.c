/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Receivers of the unreliable services, and of raw packets. Nothing is answered: what can't be
 * taken is dropped and counted, and a message of UC that lost a packet is dropped to its end.
 */
#include <errno.h>

#include "rcd_qp_priv.h"

/* Spec: IBTA 9.8 after a gap, everything up to the next message is dropped */
static enum rcd_rx_verdict
unrel_skip(struct rcd_qp *qp, enum rcd_rx_verdict verdict)
{
	/* A receive work request that was begun is used again from its start. */
	qp->hot.in_progress = RCD_IN_NOTHING;
	qp->skip_message = true;
	return verdict;
}

/*
 * An error of the local side, in its work request or its memory: that completes with it, and the
 * queue pair stops.
 *
 * Spec: IBTA 9.9.3 errors that are the responder's own
 */
static enum rcd_rx_verdict
unrel_fail_recv(struct rcd_qp *qp, enum rcd_wc_status status)
{
	struct rcd_cqe cqe = { .status = (uint8_t)status };

	rcd_qp_complete_recv(qp, &cqe);
	rcd_qp_error(qp, 0);
	return RCD_RX_REFUSED;
}

/*
 * A message that is longer than the buffers is dropped: any stranger can send one. A queue pair
 * of a shared receive queue completes what it has taken from there with the error; that and the
 * rest are what rxe does as well.
 *
 * Spec: IBTA 9.9.3, 11.6.2 neither stops the queue pair; what the status is
 */
static enum rcd_rx_verdict
unrel_too_long(struct rcd_qp *qp)
{
	struct rcd_cqe cqe = { .status = RCD_WC_LOC_LEN_ERR };

	if (qp->init.srq != NULL)
		rcd_qp_complete_recv(qp, &cqe);
	return RCD_RX_TOO_LONG;
}

static bool
unrel_lengths_right(const struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	const struct rcd_opcode_info *info = rcd_opcode_info(pkt->roce.bth.opcode);
	bool whole = info->position == RCD_POS_FIRST || info->position == RCD_POS_MIDDLE;
	uint32_t len = pkt->payload_len;

	if (whole ? len != qp->hot.mtu : len > qp->hot.mtu)
		return false;
	if (info->position == RCD_POS_LAST && len == 0)
		return false;
	if ((uint64_t)qp->hot.in_len + len > RCD_MSG_MAX_BYTES)
		return false;
	return info->op == RCD_OP_SEND ||
		(whole ? qp->hot.in_len + len < qp->hot.in_total
		       : qp->hot.in_len + len == qp->hot.in_total);
}

static enum rcd_rx_verdict
unrel_uc_send(struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;

	if (rcd_qp_need_recv(qp) != 0)
		return unrel_skip(qp, RCD_RX_NO_RECV);
	if (qp->recv.sge_count > qp->init.max_recv_sge)
		return unrel_fail_recv(qp, RCD_WC_LOC_QP_OP_ERR);
	if ((uint64_t)hot->in_len + pkt->payload_len >
		rcd_sg_len(qp->recv.sges, qp->recv.sge_count))
		return unrel_skip(qp, unrel_too_long(qp));
	if (rcd_sg_scatter(qp, qp->recv.sges, qp->recv.sge_count, hot->in_len, pkt->payload,
		    pkt->payload_len) != 0)
		return unrel_fail_recv(qp, RCD_WC_LOC_PROT_ERR);
	hot->in_len += pkt->payload_len;
	if (rcd_opcode_ends(pkt->roce.bth.opcode))
		rcd_qp_complete_message(qp, &pkt->roce, RCD_WC_RECV);
	return RCD_RX_EXECUTED;
}

static enum rcd_rx_verdict
unrel_uc_write(struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	struct rcd_mr_use use = { .pd = qp->init.pd,
		.qpn = qp->init.qpn.val,
		.access = RCD_ACCESS_REMOTE_WRITE,
		.remote = true };
	struct rcd_qp_hot *hot = &qp->hot;
	bool imm = rcd_opcode_has(pkt->roce.bth.opcode, RCD_EXT_IMMDT);
	uint8_t *at = NULL;

	if (qp->attr.access & RCD_ACCESS_REMOTE_WRITE)
		at = rcd_mr_translate(hot->mrs, qp->write_key, qp->write_va + hot->in_len,
			rcd_opcode_begins(pkt->roce.bth.opcode) ? hot->in_total : pkt->payload_len,
			&use);
	if (at == NULL)
		return unrel_skip(qp, RCD_RX_MESSAGE);
	if (imm && rcd_qp_need_recv(qp) != 0)
		return unrel_skip(qp, RCD_RX_NO_RECV);
	if (rcd_mr_write(hot->mrs, hot->arg, at, pkt->payload, pkt->payload_len) != 0)
		return unrel_skip(qp, RCD_RX_MESSAGE);
	hot->in_len += pkt->payload_len;
	if (imm)
		rcd_qp_complete_message(qp, &pkt->roce, RCD_WC_RECV_RDMA_WITH_IMM);
	return RCD_RX_EXECUTED;
}

enum rcd_rx_verdict
rcd_uc_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint8_t opcode = pkt->roce.bth.opcode;
	bool send = rcd_opcode_info(opcode)->op == RCD_OP_SEND;
	enum rcd_in_progress kind = send ? RCD_IN_SEND : RCD_IN_WRITE;
	bool gap = !rcd_psn_eq(pkt->roce.bth.psn, hot->epsn);
	enum rcd_rx_verdict verdict;

	hot->epsn = rcd_psn_add(pkt->roce.bth.psn, 1);
	if (rcd_opcode_begins(opcode)) {
		qp->skip_message = false;
		hot->in_len = 0;
		hot->in_progress = (uint8_t)kind;
		if (!send) {
			hot->in_total = pkt->roce.reth.dma_len;
			qp->write_key = pkt->roce.reth.rkey;
			qp->write_va = pkt->roce.reth.va;
		}
	} else if (gap || qp->skip_message || hot->in_progress != kind) {
		return unrel_skip(qp, RCD_RX_MESSAGE);
	}
	if (!unrel_lengths_right(qp, pkt))
		return unrel_skip(qp, RCD_RX_MESSAGE);
	verdict = send ? unrel_uc_send(qp, pkt) : unrel_uc_write(qp, pkt);
	if (rcd_opcode_ends(opcode)) {
		hot->in_progress = RCD_IN_NOTHING;
		if (verdict == RCD_RX_EXECUTED)
			rcd_qp_note_message(hot);
	}
	return verdict;
}

/*
 * The 40 bytes in front of a datagram's payload: the IPv6 header, or the IPv4 header behind 20
 * bytes of nothing.
 */
static void
unrel_make_grh(const struct rcd_pkt *pkt, uint8_t *grh)
{
	memset(grh, 0, RCD_GRH_LEN);
	if (pkt->l3 == RCD_L3_IPV4)
		memcpy(grh + RCD_GRH_LEN - RCD_IPV4_LEN, pkt->ip, RCD_IPV4_LEN);
	else
		memcpy(grh, pkt->ip, RCD_GRH_LEN);
}

enum rcd_rx_verdict
rcd_ud_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	struct rcd_qkey qkey =
		qp->hot.type == RCD_QP_GSI ? (struct rcd_qkey){ RCD_QKEY_GSI } : qp->attr.qkey;
	bool imm = rcd_opcode_has(pkt->roce.bth.opcode, RCD_EXT_IMMDT);
	struct rcd_cqe cqe = {
		.opcode = RCD_WC_RECV,
		.flags = (uint8_t)(RCD_WC_GRH | (imm ? RCD_WC_WITH_IMM : 0)),
		.solicited = pkt->roce.bth.solicited,
		.byte_len = RCD_GRH_LEN + (uint32_t)pkt->payload_len,
		.imm = imm ? pkt->roce.immdt.data : 0,
		.src_qpn = pkt->roce.deth.src_qpn,
		/* As the kernel numbers enum rdma_network_type: RoCE has no service levels. */
		.sl = pkt->l3 == RCD_L3_IPV4 ? 2 : 1,
	};
	uint8_t grh[RCD_GRH_LEN];

	/* Spec: IBTA 9.8 a wrong Q_Key is dropped in silence */
	if (pkt->roce.deth.qkey.val != qkey.val)
		return RCD_RX_QKEY;
	if (pkt->payload_len > qp->init.port_mtu_bytes)
		return RCD_RX_MESSAGE;
	if (rcd_qp_need_recv(qp) != 0)
		return RCD_RX_NO_RECV;
	if (qp->recv.sge_count > qp->init.max_recv_sge)
		return unrel_fail_recv(qp, RCD_WC_LOC_QP_OP_ERR);
	if (cqe.byte_len > rcd_sg_len(qp->recv.sges, qp->recv.sge_count))
		return unrel_too_long(qp);
	unrel_make_grh(pkt, grh);
	if (rcd_sg_scatter(qp, qp->recv.sges, qp->recv.sge_count, 0, grh, sizeof(grh)) != 0 ||
		rcd_sg_scatter(qp, qp->recv.sges, qp->recv.sge_count, RCD_GRH_LEN, pkt->payload,
			pkt->payload_len) != 0)
		return unrel_fail_recv(qp, RCD_WC_LOC_PROT_ERR);
	rcd_qp_note_message(&qp->hot);
	rcd_qp_complete_recv(qp, &cqe);
	return RCD_RX_EXECUTED;
}

enum rcd_rx_verdict
rcd_frame_rx(struct rcd_qp *qp, const uint8_t *frame, uint32_t len, bool csum_ok)
{
	struct rcd_cqe cqe = {
		.opcode = RCD_WC_RECV,
		.flags = csum_ok ? RCD_WC_IP_CSUM_OK : 0,
		.byte_len = len,
	};

	if (rcd_qp_need_recv(qp) != 0)
		return RCD_RX_NO_RECV;
	if (qp->recv.sge_count > qp->init.max_recv_sge)
		return unrel_fail_recv(qp, RCD_WC_LOC_QP_OP_ERR);
	if (len > rcd_sg_len(qp->recv.sges, qp->recv.sge_count))
		return unrel_too_long(qp);
	if (rcd_sg_scatter(qp, qp->recv.sges, qp->recv.sge_count, 0, frame, len) != 0)
		return unrel_fail_recv(qp, RCD_WC_LOC_PROT_ERR);
	rcd_qp_note_message(&qp->hot);
	rcd_qp_complete_recv(qp, &cqe);
	return RCD_RX_EXECUTED;
}
