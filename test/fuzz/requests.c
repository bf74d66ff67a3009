/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests that make sense.
 */
#include "requests.h"

#include "rcd_limits.h"
#include "rcd_mr.h"
#include "rcd_qp.h"

/* Which request made what the first word of a request names. HELLO makes nothing. */
static const uint8_t maker[RCD_CTRL_OP_COUNT] = {
	[RCD_CTRL_PD_DESTROY] = RCD_CTRL_PD_CREATE,
	[RCD_CTRL_PD_QUERY] = RCD_CTRL_PD_CREATE,
	[RCD_CTRL_MR_NULL] = RCD_CTRL_PD_CREATE,
	[RCD_CTRL_MW_ALLOC] = RCD_CTRL_PD_CREATE,
	[RCD_CTRL_MEM_DEL] = RCD_CTRL_MEM_ADD,
	[RCD_CTRL_MR_DEREG] = RCD_CTRL_MR_REG,
	[RCD_CTRL_MR_QUERY] = RCD_CTRL_MR_REG,
	[RCD_CTRL_MW_FREE] = RCD_CTRL_MW_ALLOC,
	[RCD_CTRL_CHANNEL_DESTROY] = RCD_CTRL_CHANNEL_CREATE,
	[RCD_CTRL_CQ_RESIZE] = RCD_CTRL_CQ_CREATE,
	[RCD_CTRL_CQ_MODIFY] = RCD_CTRL_CQ_CREATE,
	[RCD_CTRL_CQ_DESTROY] = RCD_CTRL_CQ_CREATE,
	[RCD_CTRL_SRQ_MODIFY] = RCD_CTRL_SRQ_CREATE,
	[RCD_CTRL_SRQ_QUERY] = RCD_CTRL_SRQ_CREATE,
	[RCD_CTRL_SRQ_RESIZE] = RCD_CTRL_SRQ_CREATE,
	[RCD_CTRL_SRQ_SWITCH] = RCD_CTRL_SRQ_CREATE,
	[RCD_CTRL_SRQ_DESTROY] = RCD_CTRL_SRQ_CREATE,
	[RCD_CTRL_QP_MODIFY] = RCD_CTRL_QP_CREATE,
	[RCD_CTRL_QP_QUERY] = RCD_CTRL_QP_CREATE,
	[RCD_CTRL_QP_DESTROY] = RCD_CTRL_QP_CREATE,
	[RCD_CTRL_XRCD_CLOSE] = RCD_CTRL_XRCD_CREATE,
	[RCD_CTRL_XSRQ_CREATE] = RCD_CTRL_PD_CREATE,
	[RCD_CTRL_XQP_CREATE] = RCD_CTRL_XRCD_CREATE,
	[RCD_CTRL_XQP_OPEN] = RCD_CTRL_XRCD_CREATE,
	[RCD_CTRL_XQP_MODIFY] = RCD_CTRL_XQP_CREATE,
	[RCD_CTRL_XQP_QUERY] = RCD_CTRL_XQP_CREATE,
	[RCD_CTRL_XQP_CLOSE] = RCD_CTRL_XQP_CREATE,
	[RCD_CTRL_DM_FREE] = RCD_CTRL_DM_ALLOC,
	[RCD_CTRL_DM_QUERY] = RCD_CTRL_DM_ALLOC,
	[RCD_CTRL_DM_REG] = RCD_CTRL_PD_CREATE,
	[RCD_CTRL_FLOW_CREATE] = RCD_CTRL_QP_CREATE,
	[RCD_CTRL_FLOW_DESTROY] = RCD_CTRL_FLOW_CREATE,
	[RCD_CTRL_FLOW_READ] = RCD_CTRL_FLOW_CREATE,
	[RCD_CTRL_MCAST_ATTACH] = RCD_CTRL_QP_CREATE,
	[RCD_CTRL_MCAST_DETACH] = RCD_CTRL_QP_CREATE,
	[RCD_CTRL_CM_CHANNEL_DESTROY] = RCD_CTRL_CM_CHANNEL_CREATE,
	[RCD_CTRL_CM_EVENT] = RCD_CTRL_CM_CHANNEL_CREATE,
	[RCD_CTRL_CM_CREATE] = RCD_CTRL_CM_CHANNEL_CREATE,
	[RCD_CTRL_CM_DESTROY] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_MIGRATE] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_BIND] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_RESOLVE_ADDR] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_RESOLVE_ROUTE] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_QUERY] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_LISTEN] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_CONNECT] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_ACCEPT] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_ESTABLISH] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_REJECT] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_DISCONNECT] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_HEARD] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_QP_ATTR] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_SET] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_JOIN] = RCD_CTRL_CM_CREATE,
	[RCD_CTRL_CM_LEAVE] = RCD_CTRL_CM_CREATE,
};

/* 10.0.0.1 and 10.0.0.2 are there, the others are not. */
static void
put_addr(uint8_t *raw, uint32_t which)
{
	static const uint8_t last[] = { 1, 2, 2, 77 };

	raw[10] = raw[11] = 0xff;
	raw[12] = 10;
	raw[15] = last[which % 4];
}

static struct rcd_ctrl_cm_addr
cm_addr(uint32_t which)
{
	struct rcd_ctrl_cm_addr addr = { .port = (uint16_t)(7000 + (which >> 2 & 1)), .family = 4 };

	put_addr(addr.addr, which);
	return addr;
}

static void
fill_mr(const struct client *client, uint32_t which, struct rcd_ctrl_mr_req *req)
{
	req->pd = client_pick(client, RCD_CTRL_PD_CREATE, which);
	req->access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE | RCD_ACCESS_MW_BIND;
	req->start = req->addr = UINT64_C(0x10000) * (which & 3);
	req->len = 8192;
	req->key = client_pick(client, RCD_CTRL_MR_REG, which);
	req->extent_count = 1 + (which >> 3 & 1);
	for (uint32_t i = 0; i < req->extent_count; i++)
		req->extents[i] = (struct rcd_ctrl_extent){ .offset = req->start + 4096 * i,
			.len = req->len / req->extent_count,
			.mem = which >> (4 + i) & 1
				? RCD_CTRL_MEM_COPIED
				: client_pick(client, RCD_CTRL_MEM_ADD, which) };
	if (!(which & 0x40))
		return;
	/* All addresses. */
	req->start = req->addr = 0;
	req->len = RCD_MR_ALL_BYTES;
	req->extent_count = 1;
	req->extents[0] = (struct rcd_ctrl_extent){ .len = req->len, .mem = RCD_CTRL_MEM_COPIED };
}

void
request_mend(uint32_t op, union rcd_ctrl_body *body)
{
	struct rcd_ctrl_mr_req *req = &body->mr_reg_req;
	uint64_t sum = 0;

	if ((op != RCD_CTRL_MR_REG && op != RCD_CTRL_MR_REREG) || req->extent_count == 0 ||
		req->extent_count > RCD_CTRL_EXTENTS_MAX)
		return;
	for (uint32_t i = 0; i + 1 < req->extent_count; i++)
		sum += req->extents[i].len;
	req->extents[req->extent_count - 1].len = req->len - sum;
}

/* Of few, so that older inputs stay nearly what they are. */
static bool
which_is_raw(uint32_t which)
{
	return (which & 0xb8) == 0xb8;
}

static void
fill_qp(const struct client *client, uint32_t which, struct rcd_ctrl_qp_req *req)
{
	*req = (struct rcd_ctrl_qp_req){
		.pd = client_pick(client, RCD_CTRL_PD_CREATE, which),
		.type = which_is_raw(which) ? RCD_QP_RAW : which % 3,
		.send_cq = client_pick(client, RCD_CTRL_CQ_CREATE, which),
		.recv_cq = client_pick(client, RCD_CTRL_CQ_CREATE, which >> 2),
		.srq = which & 0x40 ? client_pick(client, RCD_CTRL_SRQ_CREATE, which)
				    : RCD_CTRL_NO_HANDLE,
		.sq_depth = 8,
		.rq_depth = 8,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 32,
		.flags = which >> 7 & 1,
		.cookie = 5,
	};
}

static void
fill_modify(const struct client *client, uint32_t which, struct rcd_ctrl_qp_modify_req *req)
{
	static const uint32_t masks[] = {
		[RCD_QP_RESET] = RCD_QP_ATTR_STATE,
		[RCD_QP_INIT] = RCD_QP_ATTR_STATE | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT |
			RCD_QP_ATTR_ACCESS,
		[RCD_QP_RTR] = RCD_QP_ATTR_STATE | RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU |
			RCD_QP_ATTR_DEST_QPN | RCD_QP_ATTR_RQ_PSN | RCD_QP_ATTR_MAX_DEST_RD_ATOMIC |
			RCD_QP_ATTR_MIN_RNR_TIMER,
		[RCD_QP_RTS] = RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQ_PSN | RCD_QP_ATTR_TIMEOUT |
			RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY | RCD_QP_ATTR_MAX_RD_ATOMIC,
		[RCD_QP_SQD] = RCD_QP_ATTR_STATE,
		[RCD_QP_SQE] = RCD_QP_ATTR_STATE | RCD_QP_ATTR_QKEY,
		[RCD_QP_ERR] = RCD_QP_ATTR_STATE,
	};
	uint32_t state = which % 7;

	req->mask = masks[state];
	if (which_is_raw(which))
		req->mask = RCD_QP_ATTR_STATE | (state == RCD_QP_INIT ? RCD_QP_ATTR_PORT : 0);
	req->attr = (struct rcd_ctrl_qp_attr){
		.av = { .sgid_index = 1, .hop_limit = 64 },
		.access = RCD_ACCESS_REMOTE,
		.qkey = 0x1234,
		.dest_qpn = client->learnt.count > 0
			? client->learnt.vals[(which >> 3) % (client->learnt.count % 64 + 1)]
			: 0,
		.path_mtu_bytes = 1024,
		.state = (uint8_t)state,
		.port = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 4,
	};
	put_addr(req->attr.av.dgid, which >> 3);
}

static void
fill_admin(uint32_t which, struct rcd_ctrl_admin_req *req)
{
	static const char *const texts[] = {
		"{\"op\":\"link\"}",
		"{\"op\":\"resource\"}",
		"{\"op\":\"resource\",\"kind\":\"cm_id\"}",
		"{\"op\":\"resource\",\"kind\":\"qp\"}",
		"{\"op\":\"resource\",\"kind\":\"mr\"}",
		"{\"op\":\"resource\",\"kind\":\"ctx\"}",
		"{\"op\":\"statistic\",\"name\":\"f0\"}",
		"{\"op\":\"addr_add\",\"name\":\"f0\",\"address\":\"10.0.0.3/24\"}",
		"{\"op\":\"addr_add\",\"name\":\"f1\",\"address\":\"10.0.0.4/24@5\"}",
		"{\"op\":\"addr_del\",\"name\":\"f0\",\"address\":\"10.0.0.3\"}",
		"{\"op\":\"addr_del\",\"name\":\"f0\",\"address\":\"10.0.0.1\"}",
		"{\"op\":\"link_set\",\"name\":\"f0\",\"state\":\"down\"}",
		"{\"op\":\"link_set\",\"name\":\"f0\",\"state\":\"up\"}",
		"{\"op\":\"link_del\",\"name\":\"f0\"}",
		"{\"op\":\"link_del\",\"name\":\"f1\"}",
		"{\"op\":\"link_add\",\"name\":\"f0\",\"type\":\"wire\",\"peer\":\"f1\"}",
		"{\"op\":\"engine\"}",
		"{\"op\":\"resource\",\"kind\":\"quota\"}",
		"{\"op\":\"link_set\",\"name\":\"f0\",\"mtu\":\"1500\",\"gateway4\":\"10.0.0.9\","
		"\"gateway6\":\"none\"}",
		"{\"op\":\"link_add\",\"name\":\"f2\",\"peer\":\"f3\",\"mtu\":\"2K\",\"address\":"
		"\"10.9.0.1/24, fd09::1/64@3\",\"state\":\"down\"}",
		"{\"op\":\"link_set\",\"name\":\"f0\",\"mtu\":1500}",
		"{\"op\":\"link\",\"op\":\"stop\"}",
		"{\"op\":\"link_set\",\"name\":[\"f0\"]}",
		"[[[[[[[[[[[[[[[[{}]]]]]]]]]]]]]]]]",
		"link set f0 up",
		"{\"op\":\"link_add\",\"name\":\"f0\",\"impair\":\"drop=1%\",\"x\":\"\\u0007\"}",
	};

	snprintf(req->json, sizeof(req->json), "%s",
		texts[which % (sizeof(texts) / sizeof(texts[0]))]);
}

static void
fill_cm(const struct client *client, uint32_t op, uint32_t which, union rcd_ctrl_body *body)
{
	switch (op) {
	case RCD_CTRL_CM_CREATE:
		body->cm_create_req.space = which & 4 ? 0x0111 : 0x0106;
		body->cm_create_req.qp_type = which & 4 ? RCD_QP_UD : RCD_QP_RC;
		break;
	case RCD_CTRL_CM_MIGRATE:
		body->cm_migrate_req.second =
			client_pick(client, RCD_CTRL_CM_CHANNEL_CREATE, which >> 2);
		break;
	case RCD_CTRL_CM_BIND:
		body->cm_bind_req.addr = cm_addr(which >> 2);
		break;
	case RCD_CTRL_CM_RESOLVE_ADDR:
		body->cm_resolve_addr_req.timeout_ms = 1000;
		body->cm_resolve_addr_req.dst = cm_addr(which >> 2);
		break;
	case RCD_CTRL_CM_LISTEN:
		body->cm_listen_req.second = 4;
		break;
	case RCD_CTRL_CM_CONNECT:
	case RCD_CTRL_CM_ACCEPT:
		body->cm_connect_req.qpn = client->learnt.count > 0
			? client->learnt.vals[(which >> 2) % (client->learnt.count % 64 + 1)]
			: 100;
		body->cm_connect_req.param.private_len = 5;
		body->cm_connect_req.param.responder_resources = 4;
		body->cm_connect_req.param.initiator_depth = 4;
		body->cm_connect_req.param.retry_count = 7;
		break;
	case RCD_CTRL_CM_QP_ATTR:
		body->cm_qp_attr_req.second = which >> 2 & 3;
		break;
	case RCD_CTRL_CM_SET:
		body->cm_set_req.option = which >> 2 & 3;
		body->cm_set_req.value = 1;
		break;
	case RCD_CTRL_CM_JOIN:
		body->cm_join_req.addr = cm_addr(0);
		body->cm_join_req.addr.addr[12] = 239;
		break;
	case RCD_CTRL_CM_LEAVE:
		body->cm_leave_req.second = client_pick(client, RCD_CTRL_CM_JOIN, which >> 2);
		break;
	default:
		break;
	}
}

static void
fill_queue(const struct client *client, uint32_t op, uint32_t which, union rcd_ctrl_body *body)
{
	switch (op) {
	case RCD_CTRL_CQ_CREATE:
		body->cq_create_req.depth = 16;
		body->cq_create_req.channel = which & 1
			? client_pick(client, RCD_CTRL_CHANNEL_CREATE, which >> 1)
			: RCD_CTRL_NO_HANDLE;
		break;
	case RCD_CTRL_CQ_RESIZE:
		body->cq_resize_req.depth = 64;
		break;
	case RCD_CTRL_CQ_MODIFY:
		body->cq_modify_req.count = 2;
		body->cq_modify_req.period_us = 10;
		break;
	case RCD_CTRL_SRQ_CREATE:
		body->srq_create_req.pd = client_pick(client, RCD_CTRL_PD_CREATE, which);
		body->srq_create_req.depth = 16;
		body->srq_create_req.max_sge = 1;
		break;
	case RCD_CTRL_SRQ_MODIFY:
		body->srq_modify_req.limit = 4;
		break;
	case RCD_CTRL_SRQ_RESIZE:
		body->srq_resize_req.depth = 64;
		break;
	case RCD_CTRL_SRQ_SWITCH:
		body->srq_switch_req.set_limit = which & 1;
		body->srq_switch_req.limit = 8;
		break;
	case RCD_CTRL_QP_CREATE:
		fill_qp(client, which, &body->qp_create_req);
		break;
	case RCD_CTRL_FLOW_CREATE:
		body->flow_create_req.priority = which >> 2 & 3;
		body->flow_create_req.kind = which >> 4 & 3;
		body->flow_create_req.drop = which >> 6 & 1;
		memset(&body->flow_create_req.mask, which >> 7 & 1, RCD_FLOW_KEY_LEN);
		break;
	case RCD_CTRL_XSRQ_CREATE:
		body->xsrq_create_req.srq.depth = 16;
		body->xsrq_create_req.srq.max_sge = 1;
		body->xsrq_create_req.xrcd = client_pick(client, RCD_CTRL_XRCD_CREATE, which);
		body->xsrq_create_req.cq = client_pick(client, RCD_CTRL_CQ_CREATE, which >> 2);
		break;
	case RCD_CTRL_XQP_MODIFY:
	case RCD_CTRL_QP_MODIFY:
		fill_modify(client, which, &body->qp_modify_req);
		break;
	default:
		break;
	}
}

void
request_fill(const struct client *client, uint32_t op, uint32_t which, union rcd_ctrl_body *body)
{
	memset(body, 0, sizeof(*body));
	if (maker[op] != RCD_CTRL_HELLO)
		body->pd_destroy_req.handle = client_pick(client, maker[op], which);
	switch (op) {
	case RCD_CTRL_DEVICE:
		body->device_req.index = which & 1;
		break;
	case RCD_CTRL_OPEN:
		body->open_req.index = client->device;
		break;
	case RCD_CTRL_MEM_ADD:
		body->mem_add_req.len = which & 1 ? 4096 : 65536;
		body->mem_add_req.writable = 1;
		break;
	case RCD_CTRL_DM_ALLOC:
		body->dm_alloc_req.len = which & 1 ? 4096 : 10000;
		break;
	case RCD_CTRL_DM_REG:
		body->dm_reg_req.dm = client_pick(client, RCD_CTRL_DM_ALLOC, which >> 2);
		body->dm_reg_req.access =
			RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE | RCD_ACCESS_ZERO_BASED;
		body->dm_reg_req.len = 4000;
		break;
	case RCD_CTRL_MR_REG:
	case RCD_CTRL_MR_REREG:
		fill_mr(client, which, &body->mr_reg_req);
		break;
	case RCD_CTRL_MR_QUERY:
		body->mr_query_req.handle >>= 8;
		break;
	case RCD_CTRL_MW_ALLOC:
		body->mw_alloc_req.type = 1 + (which & 1);
		break;
	case RCD_CTRL_AH_CREATE:
		body->ah_create_req.pd = client_pick(client, RCD_CTRL_PD_CREATE, 0);
		body->ah_create_req.av.sgid_index = 1;
		put_addr(body->ah_create_req.av.dgid, which);
		break;
	case RCD_CTRL_AH_DESTROY:
		body->ah_destroy_req.pd = client_pick(client, RCD_CTRL_PD_CREATE, 0);
		body->ah_destroy_req.handle = client_pick(client, RCD_CTRL_AH_CREATE, which);
		break;
	case RCD_CTRL_MCAST_ATTACH:
	case RCD_CTRL_MCAST_DETACH:
		put_addr(body->mcast_attach_req.group, 0);
		body->mcast_attach_req.group[12] = 239;
		break;
	case RCD_CTRL_ADMIN:
		fill_admin(which, &body->admin_req);
		break;
	default:
		fill_queue(client, op, which, body);
		fill_cm(client, op, which, body);
		break;
	}
}
