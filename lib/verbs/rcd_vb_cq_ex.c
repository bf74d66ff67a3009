/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion queues polled the extended way: one at a time, each field by a function.
 */
#include "rcd_vb.h"

#include <endian.h>

#define FLAGS_KNOWN                                                                                \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                             \
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct rcd_vb_cq *
vb_cq_ex_of(struct ibv_cq_ex *cq)
{
	return (struct rcd_vb_cq *)(void *)cq;
}

static int
vb_cq_ex_next_poll(struct ibv_cq_ex *ibv)
{
	struct rcd_vb_cq *cq = vb_cq_ex_of(ibv);

	if (rcd_vb_take(cq, &cq->at, 1) == 0)
		return ENOENT;
	ibv->wr_id = cq->at.wr_id;
	ibv->status = (enum ibv_wc_status)cq->at.status;
	return 0;
}

static int
vb_cq_ex_start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
	int err;

	if (attr->comp_mask != 0)
		return EINVAL;
	rcd_vb_lock(&vb_cq_ex_of(ibv)->lock);
	err = vb_cq_ex_next_poll(ibv);
	if (err != 0)
		rcd_vb_unlock(&vb_cq_ex_of(ibv)->lock);
	return err;
}

static void
vb_cq_ex_end_poll(struct ibv_cq_ex *ibv)
{
	rcd_vb_unlock(&vb_cq_ex_of(ibv)->lock);
}

static enum ibv_wc_opcode
vb_cq_ex_read_opcode(struct ibv_cq_ex *ibv)
{
	return (enum ibv_wc_opcode)vb_cq_ex_of(ibv)->at.opcode;
}

static uint32_t
vb_cq_ex_read_nothing(struct ibv_cq_ex *ibv)
{
	(void)ibv;
	return 0;
}

static uint32_t
vb_cq_ex_read_byte_len(struct ibv_cq_ex *ibv)
{
	return vb_cq_ex_of(ibv)->at.byte_len;
}

static __be32
vb_cq_ex_read_imm_data(struct ibv_cq_ex *ibv)
{
	const struct rcd_cq_slot *at = &vb_cq_ex_of(ibv)->at;

	return at->flags & IBV_WC_WITH_INV ? at->imm : htobe32(at->imm);
}

static uint32_t
vb_cq_ex_read_qp_num(struct ibv_cq_ex *ibv)
{
	return vb_cq_ex_of(ibv)->at.qpn;
}

static uint32_t
vb_cq_ex_read_src_qp(struct ibv_cq_ex *ibv)
{
	return vb_cq_ex_of(ibv)->at.src_qpn;
}

static unsigned int
vb_cq_ex_read_wc_flags(struct ibv_cq_ex *ibv)
{
	return vb_cq_ex_of(ibv)->at.flags;
}

static uint8_t
vb_cq_ex_read_sl(struct ibv_cq_ex *ibv)
{
	return vb_cq_ex_of(ibv)->at.sl;
}

static uint8_t
vb_cq_ex_read_path_bits(struct ibv_cq_ex *ibv)
{
	(void)ibv;
	return 0;
}

static uint64_t
vb_cq_ex_read_timestamp(struct ibv_cq_ex *ibv)
{
	return vb_cq_ex_of(ibv)->at.timestamp_ns;
}

/* The engine stamps by CLOCK_MONOTONIC; what that is on the wall is looked up now. */
static uint64_t
vb_cq_ex_read_wallclock(struct ibv_cq_ex *ibv)
{
	struct timespec wall, mono;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	return vb_cq_ex_of(ibv)->at.timestamp_ns +
		(uint64_t)(wall.tv_sec - mono.tv_sec) * 1000000000u +
		(uint64_t)(wall.tv_nsec - mono.tv_nsec);
}

struct ibv_cq_ex *
rcd_vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	bool flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS;
	struct rcd_vb_cq *cq;

	if ((attr->wc_flags & ~(uint64_t)FLAGS_KNOWN) ||
		(flags && (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) ||
		attr->comp_vector >= (uint32_t)context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = rcd_vb_cq_make(context, attr->cqe, attr->cq_context, attr->channel,
		flags && (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED));
	if (cq == NULL)
		return NULL;
	cq->cq.start_poll = vb_cq_ex_start_poll;
	cq->cq.next_poll = vb_cq_ex_next_poll;
	cq->cq.end_poll = vb_cq_ex_end_poll;
	cq->cq.read_opcode = vb_cq_ex_read_opcode;
	cq->cq.read_vendor_err = vb_cq_ex_read_nothing;
	cq->cq.read_wc_flags = vb_cq_ex_read_wc_flags;
	cq->cq.read_byte_len = vb_cq_ex_read_byte_len;
	cq->cq.read_imm_data = vb_cq_ex_read_imm_data;
	cq->cq.read_qp_num = vb_cq_ex_read_qp_num;
	cq->cq.read_src_qp = vb_cq_ex_read_src_qp;
	cq->cq.read_slid = vb_cq_ex_read_nothing;
	cq->cq.read_sl = vb_cq_ex_read_sl;
	cq->cq.read_dlid_path_bits = vb_cq_ex_read_path_bits;
	cq->cq.read_completion_ts = vb_cq_ex_read_timestamp;
	cq->cq.read_completion_wallclock_ns = vb_cq_ex_read_wallclock;
	return &cq->cq;
}
