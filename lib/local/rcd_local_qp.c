/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queue pairs of the program: made, changed and destroyed. They are used by rcd_local_io.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "rcd_bytes.h"
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_lcore_ctl.h"
#include "rcd_local_object.h"
#include "rcd_own.h"
#include "rcd_table.h"

static void
local_qp_refer(struct rcd_local_qp *qp, int by)
{
	qp->send_cq->users += (uint32_t)by;
	qp->recv_cq->users += (uint32_t)by;
}

void
rcd_local_qp_free(struct rcd_local_qp *qp)
{
	free(qp->mbufs);
	free(qp);
}

/* As the engine has it, and known to the lcore. */
static int
local_qp_make(struct rcd_local *local, const struct rcd_ctrl_qp_req *req, struct rcd_local_qp *qp)
{
	struct rcd_local_bind bind = { .qp = qp };
	struct rcd_conn *conn = local->conn;
	struct rcd_ctrl_qp_rep rep;
	int err = rcd_own_serve(conn, RCD_CTRL_QP_CREATE, req, &rep);

	if (err != 0)
		return err;
	qp->mbufs = calloc(rep.sq_depth, sizeof(qp->mbufs[0]));
	if (qp->mbufs == NULL) {
		const struct rcd_ctrl_handle handle = { .handle = rep.handle };

		rcd_own_serve(conn, RCD_CTRL_QP_DESTROY, &handle, NULL);
		return -ENOMEM;
	}
	qp->handle = rep.handle;
	qp->qpn = rep.qpn;
	qp->datagram = req->type == RCD_QP_UD;
	qp->max_send_sge = rep.max_send_sge;
	qp->max_recv_sge = rep.max_recv_sge;
	qp->max_inline = rep.max_inline;
	bind.hqp = rcd_table_get(&conn->context->hqps, rep.handle);
	rcd_lcore_call(rcd_own_lcore(conn), rcd_local_io_bind, &bind);
	return 0;
}

int
rcd_local_qp_create(
	struct rcd_local *local, const struct rcd_local_qp_conf *conf, struct rcd_local_qp **qp)
{
	struct rcd_ctrl_qp_req req = {
		.pd = conf->pd,
		.type = conf->type,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = conf->sq_depth,
		.rq_depth = conf->rq_depth,
		.max_send_sge = conf->max_send_sge,
		.max_recv_sge = conf->max_recv_sge,
		.max_inline = conf->max_inline,
		.signal_all = conf->signal_all,
		.cookie = conf->cookie,
	};
	struct rcd_local_qp *made;
	int err;

	if (conf->send_cq == NULL || conf->send_cq->local != local || conf->recv_cq == NULL ||
		conf->recv_cq->local != local || conf->type > RCD_QP_UD)
		return -EINVAL;
	req.send_cq = conf->send_cq->handle;
	req.recv_cq = conf->recv_cq->handle;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return -ENOMEM;
	err = local->conn != NULL ? rcd_own_begin(local->conn) : -ENODEV;
	if (err == 0) {
		err = local_qp_make(local, &req, made);
		rcd_own_end(local->conn);
	}
	if (err != 0) {
		rcd_local_qp_free(made);
		return err;
	}
	made->local = local;
	made->type = conf->type;
	made->send_cq = conf->send_cq;
	made->recv_cq = conf->recv_cq;
	local_qp_refer(made, 1);
	LIST_INSERT_HEAD(&local->qps, made, link);
	*qp = made;
	return 0;
}

void
rcd_local_qp_destroy(struct rcd_local_qp *qp)
{
	const struct rcd_ctrl_handle req = { .handle = qp->handle };

	/* With the device it went. */
	rcd_local_request(qp->local, RCD_CTRL_QP_DESTROY, &req, NULL);
	local_qp_refer(qp, -1);
	LIST_REMOVE(qp, link);
	rcd_local_qp_free(qp);
}

int
rcd_local_qp_modify(struct rcd_local_qp *qp, const struct rcd_ctrl_qp_attr *attr, uint32_t mask)
{
	const struct rcd_ctrl_qp_modify_req req = {
		.handle = qp->handle, .mask = mask, .attr = *attr
	};

	return rcd_local_request(qp->local, RCD_CTRL_QP_MODIFY, &req, NULL);
}

/* What leads to each state, besides the state. */
static uint32_t
local_qp_mask(enum rcd_qp_type type, enum rcd_qp_state state)
{
	bool rc = type == RCD_QP_RC, ud = type == RCD_QP_UD;

	if (state == RCD_QP_INIT)
		return RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT |
			(ud ? RCD_QP_ATTR_QKEY : RCD_QP_ATTR_ACCESS);
	if (state == RCD_QP_RTR)
		return (ud ? 0u
			   : RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU | RCD_QP_ATTR_DEST_QPN |
					       RCD_QP_ATTR_RQ_PSN) |
			(rc ? RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER : 0u);
	return RCD_QP_ATTR_SQ_PSN |
		(rc ? RCD_QP_ATTR_TIMEOUT | RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY |
					RCD_QP_ATTR_MAX_RD_ATOMIC
		    : 0u);
}

int
rcd_local_qp_connect(struct rcd_local_qp *qp, const struct rcd_ctrl_qp_attr *attr)
{
	static const enum rcd_qp_state way[] = { RCD_QP_RESET, RCD_QP_INIT, RCD_QP_RTR,
		RCD_QP_RTS };
	struct rcd_ctrl_qp_attr next, now;
	int err = rcd_local_qp_query(qp, &now);

	for (size_t i = 0; err == 0 && i + 1 < RCD_ARRAY_COUNT(way); i++) {
		if (now.state != way[i])
			continue;
		next = *attr;
		next.state = (uint8_t)way[i + 1];
		err = rcd_local_qp_modify(
			qp, &next, RCD_QP_ATTR_STATE | local_qp_mask(qp->type, way[i + 1]));
		now.state = next.state;
	}
	if (err == 0 && now.state != RCD_QP_RTS)
		err = -EINVAL;
	return err;
}

int
rcd_local_qp_query(struct rcd_local_qp *qp, struct rcd_ctrl_qp_attr *attr)
{
	const struct rcd_ctrl_handle req = { .handle = qp->handle };

	return rcd_local_request(qp->local, RCD_CTRL_QP_QUERY, &req, attr);
}

uint32_t
rcd_local_qp_num(const struct rcd_local_qp *qp)
{
	return qp->qpn;
}
