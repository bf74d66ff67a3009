/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connections by verbs, for tests.
 */
#include "side.h"

#include <string.h>
#include <sys/mman.h>

#include "rcd_tap.h"
#include "rig.h"

static struct ibv_context *
open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return context;
}

struct ibv_qp *
side_new_qp(struct side *side, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .qp_type = type,
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.srq = srq,
		.cap = { .max_send_wr = SIDE_DEPTH,
			.max_recv_wr = SIDE_DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = SIDE_INLINE } };
	struct ibv_qp *qp = ibv_create_qp(side->pd, &init);

	MUST(qp != NULL);
	return qp;
}

void
side_qp(struct side *side)
{
	side->channel = ibv_create_comp_channel(side->context);
	MUST(side->channel != NULL);
	side->cq = ibv_create_cq(side->context, 2 * SIDE_DEPTH, NULL, side->channel, 0);
	MUST(side->cq != NULL);
	side->qp = side_new_qp(side, IBV_QPT_RC, NULL);
}

void
side_open(struct side *side, const char *device)
{
	memset(side, 0, sizeof(*side));
	side->context = open_device(device);
	MUST(side->context != NULL);
	side->pd = ibv_alloc_pd(side->context);
	MUST(side->pd != NULL);
	side->memory =
		mmap(NULL, SIDE_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	side->mr = ibv_reg_mr(side->pd, side->memory, SIDE_LEN,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	MUST(side->mr != NULL);
	side_qp(side);
}

void
side_close(struct side *side)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(side->qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(side->cq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(side->channel), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(side->mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(side->pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(side->context), 0);
	munmap(side->memory, SIDE_LEN);
}

/* @return 0, or the error of the first step that fails */
static int
join(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t qpn)
{
	bool ud = qp->qp_type == IBV_QPT_UD, rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = SIDE_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	int rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
	int err;

	if (!ud)
		rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (rc) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	}
	err = ibv_modify_qp(qp, &attr, init | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .dgid = *gid, .sgid_index = 1, .hop_limit = 1 } } };
	if (err == 0)
		err = ibv_modify_qp(qp, &attr, rtr);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		.timeout = 19,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1 };
	return err != 0 ? err : ibv_modify_qp(qp, &attr, rts);
}

/* The place of an address of a device: of IPv4, or a global one of IPv6. */
static uint8_t
gid_index(struct ibv_context *context, int v6, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	for (int i = 1; ibv_query_gid(context, 1, i, gid) == 0; i++)
		if (v6 ? (gid->raw[0] & 0xfe) == 0xfc
		       : memcmp(gid->raw, mapped, sizeof(mapped)) == 0)
			return (uint8_t)i;
	MUST(!"a device without such an address");
	return 0;
}

struct ibv_ah *
side_ah(struct side *from, struct side *to, int v6)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 1 } };
	union ibv_gid own;
	struct ibv_ah *ah;

	attr.grh.sgid_index = gid_index(from->context, v6, &own);
	gid_index(to->context, v6, &attr.grh.dgid);
	ah = ibv_create_ah(from->pd, &attr);
	MUST(ah != NULL);
	return ah;
}

void
side_ready(struct ibv_qp *qp)
{
	union ibv_gid none = { .raw = { 0 } };

	MUST(join(qp, &none, 0) == 0);
}

void
side_join_qps(struct side *a, struct ibv_qp *qp_a, struct side *b, struct ibv_qp *qp_b)
{
	union ibv_gid gid_a, gid_b;

	MUST(ibv_query_gid(a->context, 1, 1, &gid_a) == 0);
	MUST(ibv_query_gid(b->context, 1, 1, &gid_b) == 0);
	MUST(join(qp_a, &gid_b, qp_b->qp_num) == 0);
	MUST(join(qp_b, &gid_a, qp_a->qp_num) == 0);
}

void
side_join(struct side *a, struct side *b)
{
	side_join_qps(a, a->qp, b, b->qp);
}

/* @return status of its completion, -1 when there is none */
int
side_operate(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t to,
	uint32_t rkey)
{
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = to, .rkey = rkey } };
	uint64_t end = now_ms() + FOREVER_MS;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int got;

	if (ibv_post_send(qp, &wr, &bad) != 0)
		return -1;
	while ((got = ibv_poll_cq(qp->send_cq, 1, &wc)) == 0 && now_ms() < end)
		;
	return got == 1 ? (int)wc.status : -1;
}
