/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The ibv_wr_* way to post: a request is begun by its operation, given its payload, and put into
 * the queue when the next one begins or the chain is complete. A chain is shown to the engine as a
 * whole, or not at all.
 */
#include "rcd_vb.h"

#include <endian.h>
#include <string.h>

static struct rcd_vb_qp *
vb_qp_ex_of(struct ibv_qp_ex *qp)
{
	return (struct rcd_vb_qp *)(void *)qp;
}

static void
vb_qp_ex_put(struct rcd_vb_qp *qp)
{
	if (!qp->wr_open)
		return;
	qp->wr_open = false;
	if (qp->wr_err == 0)
		qp->wr_err = rcd_vb_ret(rcd_cl_post_send(&qp->cl, &qp->wr));
}

static struct rcd_send_wr *
vb_qp_ex_begin(struct ibv_qp_ex *ibv, uint8_t opcode)
{
	struct rcd_vb_qp *qp = vb_qp_ex_of(ibv);

	vb_qp_ex_put(qp);
	qp->wr_open = true;
	memset(&qp->wr, 0, sizeof(qp->wr));
	qp->wr.sges = qp->sges;
	qp->wr.inline_data = qp->inline_data;
	qp->wr.wr_id = ibv->wr_id;
	qp->wr.opcode = opcode;
	qp->wr.flags =
		(uint8_t)(ibv->wr_flags & RCD_VB_SEND_FLAGS & ~(unsigned int)IBV_SEND_INLINE);
	return &qp->wr;
}

static void
vb_qp_ex_remote(struct rcd_send_wr *wr, uint32_t rkey, uint64_t va)
{
	wr->remote.rkey.val = rkey;
	wr->remote.va = va;
}

static void
vb_qp_ex_wr_atomic_cmp_swp(
	struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t va, uint64_t compare, uint64_t swap)
{
	struct rcd_send_wr *wr = vb_qp_ex_begin(ibv, IBV_WR_ATOMIC_CMP_AND_SWP);

	vb_qp_ex_remote(wr, rkey, va);
	wr->remote.compare_or_add = compare;
	wr->remote.swap = swap;
}

static void
vb_qp_ex_wr_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t va, uint64_t add)
{
	struct rcd_send_wr *wr = vb_qp_ex_begin(ibv, IBV_WR_ATOMIC_FETCH_AND_ADD);

	vb_qp_ex_remote(wr, rkey, va);
	wr->remote.compare_or_add = add;
}

static void
vb_qp_ex_wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info)
{
	struct rcd_send_wr *wr = vb_qp_ex_begin(ibv, IBV_WR_BIND_MW);

	wr->bind.mw.val = mw->rkey;
	wr->bind.new_rkey.val = rkey;
	wr->bind.mr.val = info->mr != NULL ? info->mr->lkey : 0;
	wr->bind.addr = info->addr;
	wr->bind.len = info->length;
	wr->bind.access = info->mw_access_flags & RCD_VB_MW_ACCESS;
	mw->rkey = (mw->rkey & ~0xffu) | (rkey & 0xff);
}

static void
vb_qp_ex_wr_local_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	vb_qp_ex_begin(ibv, IBV_WR_LOCAL_INV)->imm = rkey;
}

static void
vb_qp_ex_wr_rdma_read(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t va)
{
	vb_qp_ex_remote(vb_qp_ex_begin(ibv, IBV_WR_RDMA_READ), rkey, va);
}

static void
vb_qp_ex_wr_rdma_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t va)
{
	vb_qp_ex_remote(vb_qp_ex_begin(ibv, IBV_WR_RDMA_WRITE), rkey, va);
}

static void
vb_qp_ex_wr_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t va, __be32 imm)
{
	struct rcd_send_wr *wr = vb_qp_ex_begin(ibv, IBV_WR_RDMA_WRITE_WITH_IMM);

	vb_qp_ex_remote(wr, rkey, va);
	wr->imm = be32toh(imm);
}

static void
vb_qp_ex_wr_send(struct ibv_qp_ex *ibv)
{
	vb_qp_ex_begin(ibv, IBV_WR_SEND);
}

static void
vb_qp_ex_wr_send_imm(struct ibv_qp_ex *ibv, __be32 imm)
{
	vb_qp_ex_begin(ibv, IBV_WR_SEND_WITH_IMM)->imm = be32toh(imm);
}

static void
vb_qp_ex_wr_send_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	vb_qp_ex_begin(ibv, IBV_WR_SEND_WITH_INV)->imm = rkey;
}

static void
vb_qp_ex_wr_atomic_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t va, const void *bytes)
{
	struct rcd_send_wr *wr = vb_qp_ex_begin(ibv, IBV_WR_ATOMIC_WRITE);

	wr->atomic_write.va = va;
	wr->atomic_write.rkey.val = rkey;
	memcpy(wr->atomic_write.bytes, bytes, sizeof(wr->atomic_write.bytes));
}

static void
vb_qp_ex_wr_flush(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t va, size_t len, uint8_t placement,
	uint8_t selectivity)
{
	struct rcd_send_wr *wr = vb_qp_ex_begin(ibv, IBV_WR_FLUSH);

	wr->flush.va = va;
	wr->flush.rkey.val = rkey;
	wr->flush.placement = placement;
	wr->flush.selectivity = selectivity;
	wr->flush.len = len;
}

static void
vb_qp_ex_wr_set_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct rcd_send_wr *wr = &vb_qp_ex_of(ibv)->wr;

	wr->ud.ah = ah->handle;
	wr->ud.qpn.val = qpn;
	wr->ud.qkey.val = qkey;
}

static void
vb_qp_ex_wr_set_xrc_srqn(struct ibv_qp_ex *ibv, uint32_t srqn)
{
	vb_qp_ex_of(ibv)->wr.remote.srqn = srqn;
}

static void
vb_qp_ex_wr_set_inline_data_list(
	struct ibv_qp_ex *ibv, size_t count, const struct ibv_data_buf *bufs)
{
	struct rcd_vb_qp *qp = vb_qp_ex_of(ibv);
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		if (bufs[i].length > qp->cap.max_inline_data - len) {
			qp->wr_err = ENOMEM;
			return;
		}
		if (bufs[i].length > 0)
			memcpy(qp->inline_data + len, bufs[i].addr, bufs[i].length);
		len += bufs[i].length;
	}
	qp->wr.flags |= IBV_SEND_INLINE;
	qp->wr.inline_len = (uint16_t)len;
}

static void
vb_qp_ex_wr_set_inline_data(struct ibv_qp_ex *ibv, void *addr, size_t len)
{
	struct ibv_data_buf buf = { .addr = addr, .length = len };

	vb_qp_ex_wr_set_inline_data_list(ibv, 1, &buf);
}

static void
vb_qp_ex_wr_set_sge_list(struct ibv_qp_ex *ibv, size_t count, const struct ibv_sge *list)
{
	struct rcd_vb_qp *qp = vb_qp_ex_of(ibv);

	if (count > qp->cap.max_send_sge) {
		qp->wr_err = ENOMEM;
		return;
	}
	qp->wr.sge_count = (uint8_t)count;
	for (size_t i = 0; i < count; i++)
		qp->sges[i] = (struct rcd_sge){ list[i].addr, list[i].length, { list[i].lkey } };
}

static void
vb_qp_ex_wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t addr, uint32_t len)
{
	struct ibv_sge sge = { .addr = addr, .length = len, .lkey = lkey };

	vb_qp_ex_wr_set_sge_list(ibv, 1, &sge);
}

static void
vb_qp_ex_wr_start(struct ibv_qp_ex *ibv)
{
	struct rcd_vb_qp *qp = vb_qp_ex_of(ibv);

	rcd_vb_lock(&qp->sq_lock);
	qp->begin = qp->cl.sq.producer;
	qp->wr_err = ibv->qp_base.state < IBV_QPS_RTS ? EINVAL : 0;
	qp->wr_open = false;
}

static int
vb_qp_ex_wr_complete(struct ibv_qp_ex *ibv)
{
	struct rcd_vb_qp *qp = vb_qp_ex_of(ibv);
	int err;

	vb_qp_ex_put(qp);
	err = qp->wr_err;
	if (err != 0)
		qp->cl.sq.producer = qp->begin;
	else if (qp->cl.sq.producer != qp->begin)
		rcd_cl_ring(&qp->cl);
	rcd_vb_unlock(&qp->sq_lock);
	return err;
}

static void
vb_qp_ex_wr_abort(struct ibv_qp_ex *ibv)
{
	struct rcd_vb_qp *qp = vb_qp_ex_of(ibv);

	qp->wr_open = false;
	qp->cl.sq.producer = qp->begin;
	rcd_vb_unlock(&qp->sq_lock);
}

void
rcd_vb_wr_functions(struct rcd_vb_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->qp;

	ex->wr_atomic_cmp_swp = vb_qp_ex_wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = vb_qp_ex_wr_atomic_fetch_add;
	ex->wr_bind_mw = vb_qp_ex_wr_bind_mw;
	ex->wr_local_inv = vb_qp_ex_wr_local_inv;
	ex->wr_rdma_read = vb_qp_ex_wr_rdma_read;
	ex->wr_rdma_write = vb_qp_ex_wr_rdma_write;
	ex->wr_rdma_write_imm = vb_qp_ex_wr_rdma_write_imm;
	ex->wr_send = vb_qp_ex_wr_send;
	ex->wr_send_imm = vb_qp_ex_wr_send_imm;
	ex->wr_send_inv = vb_qp_ex_wr_send_inv;
	ex->wr_set_ud_addr = vb_qp_ex_wr_set_ud_addr;
	ex->wr_set_xrc_srqn = vb_qp_ex_wr_set_xrc_srqn;
	ex->wr_set_inline_data = vb_qp_ex_wr_set_inline_data;
	ex->wr_set_inline_data_list = vb_qp_ex_wr_set_inline_data_list;
	ex->wr_set_sge = vb_qp_ex_wr_set_sge;
	ex->wr_set_sge_list = vb_qp_ex_wr_set_sge_list;
	ex->wr_start = vb_qp_ex_wr_start;
	ex->wr_complete = vb_qp_ex_wr_complete;
	ex->wr_abort = vb_qp_ex_wr_abort;
	ex->wr_atomic_write = vb_qp_ex_wr_atomic_write;
#ifdef RCD_VERBS_FLUSH
	ex->wr_flush = vb_qp_ex_wr_flush;
#else
	qp->wr_flush = vb_qp_ex_wr_flush;
#endif
}
