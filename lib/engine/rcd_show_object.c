/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Objects of clients, one item of a list for each of them, with the names of iproute2's rdma.
 */
#include "rcd_show.h"

#include <arpa/inet.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_cma_client.h"
#include "rcd_context.h"
#include "rcd_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_gid.h"
#include "rcd_id.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_umem.h"
#include "rcd_xqp.h"
#include "rcd_xrcd.h"

static void
show_object_text(const struct rcd_show *show, const char *name, const char *val)
{
	show->ops->text(show->out, name, val);
}

static void
show_object_number(const struct rcd_show *show, const char *name, uint64_t val)
{
	show->ops->number(show->out, name, val);
}

/* Whose the context is. */
static void
show_object_owner(const struct rcd_show *show, const struct rcd_context *context)
{
	const struct rcd_conn *first = rcd_context_first(context);

	show_object_number(show, "pid", (uint64_t)first->pid);
	show_object_text(show, "comm", first->comm);
}

static void
show_object_begin(const struct rcd_show *show, const struct rcd_context *context,
	const char *number_name, uint32_t number)
{
	show->ops->object(show->out, NULL);
	show_object_text(show, "ifname", context->dev->conf.name);
	show_object_number(show, number_name, number);
	show_object_owner(show, context);
}

/* Who it talks to, and what it has sent and received since it was made. */
static void
show_object_traffic(const struct rcd_show *show, const struct rcd_hqp *hqp)
{
	struct rcd_gid dgid;
	struct rcd_qpn peer;

	if (!hqp->datagram && rcd_qp_peer(hqp->qp, &dgid, &peer)) {
		show_object_number(show, "rqpn", peer.val);
		rcd_show_gid(show, "dgid", &dgid);
	}
	if (hqp->raw)
		show_object_number(show, "flows", hqp->flows);
	show_object_number(show, "tx_messages", rcd_qp_sq_done(hqp->qp));
	show_object_number(show, "rx_messages", rcd_qp_messages(hqp->qp));
	show_object_number(show, "tx_bytes", rcd_turn_bytes(&hqp->turn));
	show_object_number(show, "rx_bytes", __atomic_load_n(&hqp->rx_bytes, __ATOMIC_RELAXED));
}

/* Of one that its program or congestion control limits. */
static void
show_object_limits(const struct rcd_show *show, const struct rcd_hqp *hqp)
{
	struct rcd_qp_limits limits;

	rcd_qp_limits(hqp->qp, &limits);
	if (limits.limit_kbps != 0)
		show_object_number(show, "rate_limit_kbps", limits.limit_kbps);
	if (!rcd_qp_reacts(hqp->qp)) {
		if (limits.limit_kbps != 0)
			show_object_number(show, "pacing_ns", limits.pace_ns);
		return;
	}
	show_object_text(show, "cc", rcd_qp_cc_name(hqp->qp));
	if (limits.window != RCD_CC_NO_WINDOW)
		show_object_number(show, "cc_window", limits.window);
	if (limits.rate_kbps != 0)
		show_object_number(show, "cc_rate_kbps", limits.rate_kbps);
	show_object_number(show, "cc_cnps", limits.cnps);
	show_object_number(show, "cc_losses", limits.losses);
	show_object_number(show, "cc_window_ns", limits.window_ns);
	show_object_number(show, "cc_pacing_ns", limits.pace_ns);
}

/* As rdma(8) names them. */
static const char *const qp_types[RCD_QP_TYPE_COUNT] = {
	[RCD_QP_RC] = "RC",
	[RCD_QP_UC] = "UC",
	[RCD_QP_UD] = "UD",
	[RCD_QP_GSI] = "GSI",
	[RCD_QP_RAW] = "RAW_PACKET",
	[RCD_QP_XRC_SEND] = "XRC_INI",
	[RCD_QP_XRC_RECV] = "XRC_TGT",
};

static const char *const qp_states[RCD_QP_STATE_COUNT] = {
#define RCD_QP_STATE(symbol, number) [number] = #symbol,
#include "rcd_number.def"
};

static void
show_object_qp_begin(
	const struct rcd_show *show, const struct rcd_context *context, const struct rcd_hqp *hqp)
{
	show_object_begin(show, context, "lqpn", hqp->qpn);
	show_object_number(show, "ctxn", rcd_context_first(context)->serial);
	show_object_text(show, "type", qp_types[rcd_qp_type(hqp->qp)]);
	show_object_text(show, "state", qp_states[rcd_qp_state(hqp->qp)]);
}

/* Targets of XRC: once for each context that has one open. */
static void
show_object_targets(const struct rcd_show *show, const struct rcd_context *context)
{
	for (uint32_t i = 0; i < context->xqps.fresh; i++) {
		const struct rcd_xopen *open = context->xqps.slots[i];

		if (open == NULL)
			continue;
		show_object_qp_begin(show, context, &open->target->hqp);
		show_object_number(show, "xrcdn", open->member->handle);
		show_object_traffic(show, &open->target->hqp);
		show_object_limits(show, &open->target->hqp);
		show->ops->end(show->out);
	}
}

static void
show_object_qps(const struct rcd_show *show, const struct rcd_context *context)
{
	for (uint32_t i = 0; i < context->hqps.capacity; i++) {
		const struct rcd_hqp *hqp = context->hqps.slots[i];

		if (hqp == NULL)
			continue;
		show_object_qp_begin(show, context, hqp);
		show_object_number(show, "pdn", hqp->pd);
		show_object_number(show, "sq_depth", hqp->sq_depth);
		show_object_number(show, "rq_depth", hqp->rq_depth);
		show_object_number(show, "sq_done", rcd_qp_sq_done(hqp->qp));
		show_object_number(show, "sq_posted", rcd_shm_load(&hqp->sq_shm->producer));
		show_object_number(show, "rq_posted",
			hqp->rq_depth > 0 ? rcd_shm_load(&hqp->rq_shm->producer) : 0);
		show_object_traffic(show, hqp);
		show_object_limits(show, hqp);
		show->ops->end(show->out);
	}
	show_object_targets(show, context);
}

static void
show_object_pds(const struct rcd_show *show, const struct rcd_context *context)
{
	for (uint32_t i = 0; i < context->pds.capacity; i++) {
		const struct rcd_pd *pd = context->pds.slots[i];

		if (pd == NULL)
			continue;
		show_object_begin(show, context, "pdn", i);
		show_object_number(show, "users", pd->users);
		show->ops->end(show->out);
	}
}

static void
show_object_cqs(const struct rcd_show *show, const struct rcd_context *context)
{
	for (uint32_t i = 0; i < context->cqs.capacity; i++) {
		const struct rcd_hcq *cq = context->cqs.slots[i];

		if (cq == NULL)
			continue;
		show_object_begin(show, context, "cqn", i);
		show_object_number(show, "cqe", (uint64_t)cq->mask + 1);
		show_object_number(show, "users", cq->users);
		show->ops->end(show->out);
	}
}

static void
show_object_srqs(const struct rcd_show *show, const struct rcd_context *context)
{
	for (uint32_t i = 0; i < context->srqs.capacity; i++) {
		const struct rcd_hsrq *srq = context->srqs.slots[i];

		if (srq == NULL)
			continue;
		show_object_begin(show, context, "srqn", i);
		show_object_text(show, "type", srq->member != NULL ? "XRC" : "BASIC");
		if (srq->member != NULL) {
			show_object_number(show, "xrcdn", srq->member->handle);
			show_object_number(show, "xsrqn", srq->srq.number);
		}
		show->ops->end(show->out);
	}
}

/* Keys are secrets of their owner; the table is for everybody in the group. */
static void
show_object_mr(
	const struct rcd_show *show, const struct rcd_context *context, const struct rcd_umr *umr)
{
	show->ops->object(show->out, NULL);
	show_object_text(show, "ifname", context->dev->conf.name);
	show_object_number(show, "mrlen", umr->len);
	show_object_number(show, "pdn", umr->pd);
	show_object_text(show, "memory", umr->copies != NULL ? "copied" : "shared");
	show_object_owner(show, context);
	show->ops->end(show->out);
}

static void
show_object_mrs(const struct rcd_show *show, const struct rcd_context *context)
{
	const struct rcd_umr *umr;

	TAILQ_FOREACH(umr, &context->umem.umrs, link)
		show_object_mr(show, context, umr);
}

static void
show_object_ctx(const struct rcd_show *show, const struct rcd_context *context)
{
	show_object_begin(show, context, "ctxn", rcd_context_first(context)->serial);
	show->ops->end(show->out);
}

static void
show_object_addr(const struct rcd_show *show, const char *addr_name, const char *port_name,
	const struct rcd_ctrl_cm_addr *addr)
{
	char text[INET6_ADDRSTRLEN];

	if (addr->family == 0)
		return;
	if (addr->family == 4)
		inet_ntop(AF_INET, addr->addr + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, addr->addr, text, sizeof(text));
	show_object_text(show, addr_name, text);
	show_object_number(show, port_name, addr->port);
}

static void
show_object_cmid(void *arg, const struct rcd_cma_listed *listed)
{
	const struct rcd_show *show = arg;

	show->ops->object(show->out, NULL);
	show_object_text(show, "ifname", listed->ifname != NULL ? listed->ifname : "-");
	show_object_number(show, "cm-idn", listed->handle);
	show_object_number(show, "pid", (uint64_t)listed->pid);
	show_object_text(show, "comm", listed->comm);
	show_object_text(show, "state", listed->state);
	show_object_text(show, "ps", listed->space);
	show_object_text(show, "qp-type", listed->qp_type);
	if (listed->qpn != 0)
		show_object_number(show, "lqpn", listed->qpn);
	show_object_addr(show, "src-addr", "src-port", listed->src);
	show_object_addr(show, "dst-addr", "dst-port", listed->dst);
	show->ops->end(show->out);
}

bool
rcd_show_objects(const struct rcd_show *show, const char *kind)
{
	static const struct {
		const char *name;
		void (*fn)(const struct rcd_show *show, const struct rcd_context *context);
	} kinds[] = {
		{ "pd", show_object_pds },
		{ "cq", show_object_cqs },
		{ "qp", show_object_qps },
		{ "mr", show_object_mrs },
		{ "srq", show_object_srqs },
		{ "ctx", show_object_ctx },
	};
	const struct rcd_context *context;

	RCD_ON_CONTROL();
	if (strcmp(kind, "cm_id") == 0) {
		rcd_cma_list(show->engine->cm.cma, show_object_cmid, (void *)(uintptr_t)show);
		return true;
	}
	for (size_t i = 0; i < RCD_ARRAY_COUNT(kinds); i++) {
		if (strcmp(kinds[i].name, kind) != 0)
			continue;
		LIST_FOREACH(context, &show->engine->contexts.list, link)
			kinds[i].fn(show, context);
		return true;
	}
	return false;
}
