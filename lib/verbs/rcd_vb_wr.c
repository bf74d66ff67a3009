/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Posting work requests: from the structs of the verbs into the slots that the engine reads. One
 * doorbell for a chain.
 */
#include "rcd_vb.h"

#include <endian.h>
#include <string.h>

static const bool allowed[][4] = {
	/* RC and XRC, UC, UD, raw packets */
	[IBV_WR_RDMA_WRITE] = { true, true, false },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { true, true, false },
	[IBV_WR_SEND] = { true, true, true, true },
	[IBV_WR_SEND_WITH_IMM] = { true, true, true },
	[IBV_WR_RDMA_READ] = { true, false, false },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { true, false, false },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { true, false, false },
	[IBV_WR_LOCAL_INV] = { true, true, false },
	[IBV_WR_BIND_MW] = { true, true, false },
	[IBV_WR_SEND_WITH_INV] = { true, false, false },
};

static int
vb_wr_type_index(enum ibv_qp_type type)
{
	if (type == IBV_QPT_RAW_PACKET)
		return 3;
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND ? 0 : type == IBV_QPT_UC ? 1 : 2;
}

/* What the request says of the remote side. */
static void
vb_wr_take_remote(const struct ibv_send_wr *from, enum ibv_qp_type type, struct rcd_send_wr *wr)
{
	if (type == IBV_QPT_RAW_PACKET) {
		memset(&wr->ud, 0, sizeof(wr->ud));
		return;
	}
	if (type == IBV_QPT_UD) {
		wr->ud.ah = from->wr.ud.ah != NULL ? from->wr.ud.ah->handle : UINT32_MAX;
		wr->ud.qpn.val = from->wr.ud.remote_qpn;
		wr->ud.qkey.val = from->wr.ud.remote_qkey;
		return;
	}
	if (from->opcode == IBV_WR_BIND_MW) {
		wr->bind.mw.val = from->bind_mw.mw->rkey;
		wr->bind.new_rkey.val = from->bind_mw.rkey;
		wr->bind.mr.val =
			from->bind_mw.bind_info.mr != NULL ? from->bind_mw.bind_info.mr->lkey : 0;
		wr->bind.addr = from->bind_mw.bind_info.addr;
		wr->bind.len = from->bind_mw.bind_info.length;
		wr->bind.access = from->bind_mw.bind_info.mw_access_flags & RCD_VB_MW_ACCESS;
		return;
	}
	wr->remote.srqn = type == IBV_QPT_XRC_SEND ? from->qp_type.xrc.remote_srqn : 0;
	if (from->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		from->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->remote.va = from->wr.atomic.remote_addr;
		wr->remote.rkey.val = from->wr.atomic.rkey;
		wr->remote.compare_or_add = from->wr.atomic.compare_add;
		wr->remote.swap = from->wr.atomic.swap;
	} else {
		wr->remote.va = from->wr.rdma.remote_addr;
		wr->remote.rkey.val = from->wr.rdma.rkey;
	}
}

/* @return 0, or EINVAL when there is more than the queue pair takes */
static int
vb_wr_take_payload(
	const struct rcd_vb_qp *qp, const struct ibv_send_wr *from, struct rcd_send_wr *wr)
{
	uint32_t len = 0;

	if (from->num_sge < 0 || (uint32_t)from->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	if (!(from->send_flags & IBV_SEND_INLINE)) {
		wr->sge_count = (uint8_t)from->num_sge;
		for (int i = 0; i < from->num_sge; i++)
			wr->sges[i] = (struct rcd_sge){ from->sg_list[i].addr,
				from->sg_list[i].length, { from->sg_list[i].lkey } };
		return 0;
	}
	for (int i = 0; i < from->num_sge; i++) {
		uint32_t part = from->sg_list[i].length;

		if (part > qp->cap.max_inline_data - len)
			return EINVAL;
		if (part > 0)
			memcpy(wr->inline_data + len,
				(const void *)(uintptr_t)from->sg_list[i].addr, part);
		len += part;
	}
	wr->inline_len = (uint16_t)len;
	return 0;
}

static int
vb_wr_post_one(struct rcd_vb_qp *qp, const struct ibv_send_wr *from)
{
	enum ibv_qp_type type = qp->qp.qp_base.qp_type;
	struct rcd_sge sges[RCD_SGE_MAX];
	uint8_t inline_data[RCD_INLINE_MAX];
	struct rcd_send_wr wr;
	int err;

	if ((unsigned int)from->opcode >= sizeof(allowed) / sizeof(allowed[0]) ||
		!allowed[from->opcode][vb_wr_type_index(type)])
		return EINVAL;
	wr.wr_id = from->wr_id;
	wr.opcode = (uint8_t)from->opcode;
	wr.flags = (uint8_t)(from->send_flags & RCD_VB_SEND_FLAGS);
	wr.sge_count = 0;
	wr.inline_len = 0;
	wr.imm = from->opcode == IBV_WR_SEND_WITH_INV || from->opcode == IBV_WR_LOCAL_INV
		? from->invalidate_rkey
		: be32toh(from->imm_data);
	wr.sges = sges;
	wr.inline_data = inline_data;
	vb_wr_take_remote(from, type, &wr);
	err = vb_wr_take_payload(qp, from, &wr);
	if (err == 0)
		err = rcd_vb_ret(rcd_cl_post_send(&qp->cl, &wr));
	if (err == 0 && from->opcode == IBV_WR_BIND_MW)
		from->bind_mw.mw->rkey =
			(from->bind_mw.mw->rkey & ~0xffu) | (from->bind_mw.rkey & 0xff);
	return err;
}

int
rcd_vb_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct rcd_vb_qp *qp = rcd_vb_qp(ibv);
	int err = 0;
	bool any = false;

	if (ibv->state < IBV_QPS_RTS || qp->cl.target) {
		*bad = wr;
		return EINVAL;
	}
	rcd_vb_lock(&qp->sq_lock);
	for (; wr != NULL; wr = wr->next) {
		err = vb_wr_post_one(qp, wr);
		if (err != 0) {
			*bad = wr;
			break;
		}
		any = true;
	}
	if (any)
		rcd_cl_ring(&qp->cl);
	rcd_vb_unlock(&qp->sq_lock);
	return err;
}

/* A receive work request in the engine's form. @return 0 or EINVAL */
static int
vb_wr_take_recv(const struct ibv_recv_wr *from, uint32_t max_sge, struct rcd_recv_wr *wr)
{
	if (from->num_sge < 0 || (uint32_t)from->num_sge > max_sge)
		return EINVAL;
	wr->wr_id = from->wr_id;
	wr->sge_count = (uint8_t)from->num_sge;
	for (int i = 0; i < from->num_sge; i++)
		wr->sges[i] = (struct rcd_sge){ from->sg_list[i].addr, from->sg_list[i].length,
			{ from->sg_list[i].lkey } };
	return 0;
}

int
rcd_vb_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rcd_vb_qp *qp = rcd_vb_qp(ibv);
	int err = 0;

	if (ibv->state == IBV_QPS_RESET || ibv->srq != NULL) {
		*bad = wr;
		return EINVAL;
	}
	rcd_vb_lock(&qp->rq_lock);
	for (; wr != NULL; wr = wr->next) {
		struct rcd_sge sges[RCD_SGE_MAX];
		struct rcd_recv_wr recv = { .sges = sges };

		err = vb_wr_take_recv(wr, qp->cap.max_recv_sge, &recv);
		if (err == 0)
			err = rcd_vb_ret(
				rcd_cl_post_recv(&qp->cl, &recv, ibv->state == IBV_QPS_ERR));
		if (err != 0) {
			*bad = wr;
			break;
		}
	}
	rcd_vb_unlock(&qp->rq_lock);
	return err;
}

int
rcd_vb_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rcd_vb_srq *srq = rcd_vb_srq(ibv);
	int err = 0;

	rcd_vb_lock(&srq->lock);
	for (; wr != NULL; wr = wr->next) {
		struct rcd_sge sges[RCD_SGE_MAX];
		struct rcd_recv_wr recv = { .sges = sges };

		err = vb_wr_take_recv(wr, srq->max_sge, &recv);
		if (err == 0)
			err = rcd_vb_ret(rcd_cl_post_srq_recv(&srq->cl, &recv));
		if (err != 0) {
			*bad = wr;
			break;
		}
	}
	rcd_vb_unlock(&srq->lock);
	return err;
}

/* Type 1 windows: the key changes with each binding (IBTA Vol. 1, 10.6.7.2.1). */
int
rcd_vb_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = { .wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info } };
	struct ibv_send_wr *bad;

	if (mw->type != IBV_MW_TYPE_1 || mw->pd != ibv->pd)
		return EINVAL;
	if (bind->bind_info.mr != NULL &&
		(bind->bind_info.mr->pd != mw->pd ||
			!(((struct rcd_vb_mr *)(void *)bind->bind_info.mr)->access &
				IBV_ACCESS_MW_BIND)))
		return EPERM;
	if (bind->bind_info.mr == NULL && bind->bind_info.length != 0)
		return EINVAL;
	return rcd_vb_post_send(ibv, &wr, &bad);
}
