/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Targets of XRC domains: made, opened, changed and closed.
 */
#include "rcd_xqp.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_budget.h"
#include "rcd_conn.h"
#include "rcd_conns.h"
#include "rcd_context.h"
#include "rcd_contexts.h"
#include "rcd_dev.h"
#include "rcd_host.h"
#include "rcd_hqp.h"
#include "rcd_late.h"
#include "rcd_lcore.h"
#include "rcd_lcore_ctl.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_near.h"
#include "rcd_qp.h"
#include "rcd_qpns.h"
#include "rcd_quota.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_wr.h"
#include "rcd_xrcd.h"

static int
xqp_make(struct rcd_xrcd *xrcd, struct rcd_xqp *target)
{
	struct rcd_hqp *hqp = &target->hqp;
	struct rcd_qp_init init = {
		.type = RCD_QP_XRC_RECV,
		.qpn = { hqp->qpn },
		.sq_depth = 1,
		.max_recv_sge = RCD_SGE_MAX,
		.max_rd_atomic = RCD_QP_RD_ATOMIC_DEFAULT,
		.port_mtu_bytes = (uint16_t)xrcd->dev->path_mtu,
		.xrc = &xrcd->srqs,
		.reorder = xrcd->copies ? NULL : xrcd->lcore->reorder,
		.away_ns = &xrcd->lcore->absence.away_ns,
		.counters = rcd_lcore_counters(xrcd->lcore, &xrcd->dev->lport),
		.ops = &rcd_host_qp_ops,
		.arg = hqp,
	};

	return rcd_hqp_make(hqp, xrcd->dev, &init);
}

static int
xqp_join_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_hqp *hqp = arg;

	lcore->qps[hqp->qpn % RCD_QP_SLOTS] = hqp;
	return 0;
}

/* @param arg  the next one; @return whether there are more */
static int
xqp_leave_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_xqp **next = arg;

	rcd_host_publish(lcore);
	for (int done = 0; *next != NULL && done < RCD_WORK_LEAVE; done++) {
		struct rcd_hqp *hqp = &(*next)->hqp;

		rcd_ucopy_forget(hqp);
		rcd_late_forget(hqp);
		rcd_lcore_drop(lcore, hqp);
		rcd_qp_fini(hqp->qp);
		lcore->work++;
		*next = LIST_NEXT(*next, link);
	}
	return *next != NULL;
}

/* @param arg  the next one; @return whether there are more */
static int
xqp_copy_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_xqp **next = arg;

	for (int done = 0; *next != NULL && done < RCD_WORK_LEAVE; done++) {
		(*next)->hqp.may_copy = true;
		/* What one packet sets free must not be hundreds of others. */
		rcd_qp_keep_nothing((*next)->hqp.qp);
		lcore->work++;
		*next = LIST_NEXT(*next, link);
	}
	return *next != NULL;
}

void
rcd_xqp_copy(struct rcd_xrcd *xrcd)
{
	struct rcd_xqp *next = LIST_FIRST(&xrcd->targets);

	RCD_ON_CONTROL();
	if (xrcd->copies)
		return;
	xrcd->copies = true;
	while (next != NULL && rcd_lcore_call(xrcd->lcore, xqp_copy_on_lcore, &next)) {
	}
}

/* Those that nobody has open. */
static void
xqp_end(struct rcd_context *context, struct rcd_xqp_list *ended)
{
	struct rcd_xqp *next = LIST_FIRST(ended);

	if (next == NULL)
		return;
	while (rcd_lcore_call(context->client.lcore, xqp_leave_on_lcore, &next)) {
	}
	while ((next = LIST_FIRST(ended)) != NULL) {
		LIST_REMOVE(next, link);
		rcd_hqp_free(context, &next->hqp);
	}
}

static struct rcd_xqp *
xqp_begin(struct rcd_xrcd *xrcd)
{
	struct rcd_xqp *target = rcd_near_zalloc(rcd_lcore_socket_id(xrcd->lcore), sizeof(*target));

	if (target == NULL)
		return NULL;
	target->xrcd = xrcd;
	target->hqp.client = &xrcd->client;
	target->hqp.lcore = xrcd->lcore;
	target->hqp.lport = &xrcd->dev->lport;
	target->hqp.reliable = true;
	target->hqp.may_copy = xrcd->copies;
	target->hqp.target = target;
	target->hqp.sq_shm = &target->rings[0];
	target->hqp.rq_shm = &target->rings[1];
	LIST_INIT(&target->opens);
	return target;
}

/* @return 0 or -errno: as if nothing had been asked */
static int
xqp_add_open(struct rcd_context *context, const struct rcd_conn *conn, struct rcd_xqp *target,
	struct rcd_xmember *member, uint64_t cookie, struct rcd_ctrl_xqp_rep *rep)
{
	struct rcd_xopen *open;
	int err;

	/* Each of its events walks all of them. */
	if (target->open_count >= RCD_XQP_OPENS)
		return -ENOMEM;
	err = rcd_quota_charge(&context->quota, RCD_RESOURCE_QPS, 1);
	if (err != 0)
		return err;
	open = calloc(1, sizeof(*open));
	if (open == NULL || rcd_table_add(&context->xqps, open, &open->handle) != 0) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_QPS, 1);
		free(open);
		return -ENOMEM;
	}
	open->target = target;
	open->context = context;
	open->member = member;
	open->conn_serial = conn->serial;
	open->cookie = cookie;
	member->users++;
	target->open_count++;
	LIST_INSERT_HEAD(&target->opens, open, link);
	*rep = (struct rcd_ctrl_xqp_rep){ .handle = open->handle, .qpn = target->hqp.qpn };
	return 0;
}

int
rcd_xqp_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_xqp_req *req, struct rcd_ctrl_xqp_rep *rep)
{
	struct rcd_xmember *member = rcd_table_get(&context->xrcds, req->xrcd);
	struct rcd_xqp *target;
	struct rcd_xrcd *xrcd;
	int err;

	RCD_ON_CONTROL();
	if (member == NULL)
		return -ENOENT;
	xrcd = member->xrcd;
	target = xqp_begin(xrcd);
	if (target == NULL)
		return -ENOMEM;
	err = rcd_qpns_take(
		context->all->conf.qpns, rcd_lcore_index(xrcd->lcore), &target->hqp.qpn);
	/* Events come back by it. */
	target->hqp.cookie = target->hqp.qpn;
	if (err == 0)
		err = xqp_make(xrcd, target);
	if (err == 0)
		err = xqp_add_open(context, conn, target, member, req->cookie, rep);
	if (err != 0) {
		rcd_hqp_free(context, &target->hqp);
		return err;
	}
	LIST_INSERT_HEAD(&xrcd->targets, target, link);
	rcd_lcore_call(xrcd->lcore, xqp_join_on_lcore, &target->hqp);
	return 0;
}

/* @return NULL: no target has this number */
static struct rcd_xqp *
xqp_find(const struct rcd_contexts *contexts, uint32_t qpn)
{
	const struct rcd_hqp *hqp = rcd_hqp_find(contexts->conf.lcores, qpn);

	return hqp != NULL ? hqp->target : NULL;
}

int
rcd_xqp_open(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_xqp_req *req, struct rcd_ctrl_xqp_rep *rep)
{
	struct rcd_xmember *member = rcd_table_get(&context->xrcds, req->xrcd);
	struct rcd_xqp *target;

	RCD_ON_CONTROL();
	if (member == NULL)
		return -ENOENT;
	target = xqp_find(context->all, req->qpn);
	if (target == NULL || target->xrcd != member->xrcd)
		return -ENOENT;
	return xqp_add_open(context, conn, target, member, req->cookie, rep);
}

int
rcd_xqp_modify(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_qp_modify_req *req)
{
	struct rcd_xopen *open = rcd_table_get(&context->xqps, req->handle);

	RCD_ON_CONTROL();
	return open != NULL ? rcd_hqp_modify_it(context, conn, &open->target->hqp, req) : -ENOENT;
}

int
rcd_xqp_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_qp_attr *attr)
{
	struct rcd_xopen *open = rcd_table_get(&context->xqps, handle);

	RCD_ON_CONTROL();
	return open != NULL ? rcd_hqp_query_it(&open->target->hqp, attr) : -ENOENT;
}

/* @param ended  gets the target, if nobody else has it open */
static void
xqp_part(struct rcd_context *context, struct rcd_xopen *open, struct rcd_xqp_list *ended)
{
	struct rcd_xqp *target = open->target;

	open->member->users--;
	target->open_count--;
	LIST_REMOVE(open, link);
	rcd_table_del(&context->xqps, open->handle);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_QPS, 1);
	free(open);
	if (target->open_count > 0)
		return;
	LIST_REMOVE(target, link);
	LIST_INSERT_HEAD(ended, target, link);
}

int
rcd_xqp_close(struct rcd_context *context, uint32_t handle)
{
	struct rcd_xopen *open = rcd_table_get(&context->xqps, handle);
	struct rcd_xqp_list ended = LIST_HEAD_INITIALIZER(ended);

	RCD_ON_CONTROL();
	if (open == NULL)
		return -ENOENT;
	xqp_part(context, open, &ended);
	xqp_end(context, &ended);
	return 0;
}

void
rcd_xqp_leave(struct rcd_context *context)
{
	struct rcd_xqp_list ended = LIST_HEAD_INITIALIZER(ended);

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < context->xqps.fresh; i++)
		if (context->xqps.slots[i] != NULL)
			xqp_part(context, context->xqps.slots[i], &ended);
	xqp_end(context, &ended);
	*context->all->conf.work += context->xqps.fresh / RCD_WORK_LEAVE;
}

void
rcd_xqp_event(
	struct rcd_contexts *contexts, struct rcd_conns *conns, uint64_t cookie, uint32_t type)
{
	const struct rcd_xqp *target = xqp_find(contexts, (uint32_t)cookie);
	const struct rcd_xopen *open;

	RCD_ON_CONTROL();
	if (target == NULL)
		return;
	LIST_FOREACH(open, &target->opens, link) {
		struct rcd_conn *conn = rcd_conns_find(conns, open->conn_serial);

		if (conn == NULL)
			continue;
		rcd_conn_event(conn, type, RCD_CTRL_EVENT_QP, open->cookie);
		++*contexts->conf.work;
	}
}
