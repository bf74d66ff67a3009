/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Attributes of queue pairs, as clients change and ask them.
 */
#include "rcd_hqp.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_attr.h"
#include "rcd_cm_host.h"
#include "rcd_contexts.h"
#include "rcd_cred.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_hop.h"
#include "rcd_host.h"
#include "rcd_ip.h"
#include "rcd_lcore.h"
#include "rcd_link.h"
#include "rcd_near.h"
#include "rcd_pkt.h"
#include "rcd_ports.h"
#include "rcd_qp.h"
#include "rcd_qpns.h"
#include "rcd_random.h"
#include "rcd_request.h"
#include "rcd_resolve.h"
#include "rcd_shm.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_tx.h"
#include "rcd_ucopy.h"

#define QKEY_PRIVILEGED 0x80000000u
#define ECN_MASK        3
#define ECN_ECT0        2

struct modify {
	void *resources; /**< more of the responder's; NULL: those that it has */
	void *sack; /**< memory for selective acknowledgement; NULL: the peer does not know it */
	bool taken; /**< they are the queue pair's */
	bool sack_taken; /**< likewise */
	bool looks;      /**< it is to find out by itself */
	uint64_t nonce;  /**< for that */
	void *gate;      /**< memory for what limits it; NULL: nothing does, or it has that */
	const struct rcd_cc_ops *cc; /**< that it has from now on; NULL: as before */
	struct rcd_cc_params cc_params;
	struct rcd_hqp *hqp;
	struct rcd_qp_attr attr;
	uint32_t mask;
};

/* The client's indices begin anew with the numbers of the work requests. */
static void
hqp_modify_reset_rings(struct rcd_hqp *hqp)
{
	hqp->sq_limit = hqp->sq_published = 0;
	hqp->rq_limit = hqp->rq_published = 0;
	rcd_shm_store(&hqp->sq_shm->producer, 0);
	rcd_shm_store(&hqp->rq_shm->producer, 0);
	rcd_shm_store(&hqp->sq_shm->reported, 0);
	rcd_shm_store(&hqp->rq_shm->reported, 0);
	rcd_shm_store(&hqp->sq_shm->consumer, 0);
	rcd_shm_store(&hqp->rq_shm->consumer, 0);
}

static int
hqp_modify_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct modify *modify = arg;
	struct rcd_hqp *hqp = modify->hqp;
	int err = 0;

	if (modify->resources != NULL) {
		err = rcd_qp_set_resources(
			hqp->qp, modify->resources, modify->attr.max_dest_rd_atomic);
		modify->taken = err == 0;
	}
	if (err == 0 && modify->gate != NULL && rcd_qp_set_gate(hqp->qp, modify->gate) == 0) {
		hqp->gate = modify->gate;
		modify->gate = NULL;
	}
	/* In another state that fails, as what it goes with does. */
	if (err == 0 && modify->cc != NULL)
		rcd_qp_set_cc(hqp->qp, modify->cc, &modify->cc_params);
	if (err == 0)
		err = rcd_qp_modify(hqp->qp, &modify->attr, modify->mask);
	if (err != 0)
		return err;
	if (modify->sack != NULL && rcd_qp_set_sack(hqp->qp, modify->sack) == 0)
		modify->sack_taken = true;
	else if (modify->looks)
		rcd_qp_find_peer(hqp->qp, modify->nonce);
	if ((modify->mask & RCD_QP_ATTR_STATE) && modify->attr.state == RCD_QP_RESET) {
		rcd_ucopy_forget(hqp);
		/* Before its numbers, which begin anew, are shown. */
		if (hqp->local != NULL)
			hqp->client->ops->forgotten(hqp->local, false);
		rcd_host_publish(lcore);
		hqp_modify_reset_rings(hqp);
	}
	if (!hqp->datagram && (modify->mask & (RCD_QP_ATTR_AV | RCD_QP_ATTR_DEST_QPN))) {
		const struct rcd_lport *loop;
		struct rcd_qp_attr now;
		struct rcd_path path;

		rcd_qp_query(hqp->qp, &now);
		loop = rcd_tx_path(lcore, hqp->lport, &now.av, hqp->qpn, now.dest_qpn.val, &path);
		hqp->loop_index = loop != NULL ? loop->index : 0;
		hqp->loop_serial = loop != NULL ? loop->serial : 0;
		/* RFC 3168, 5: who reacts to marks says so, and is not dropped for it. */
		if (rcd_qp_reacts(hqp->qp))
			path.tclass = (path.tclass & ~ECN_MASK) | ECN_ECT0;
		rcd_pkt_hdr_init(&hqp->hdr, &path);
		/* Of no MAC that a place has: the first packet looks. */
		hqp->hop = now.av.hop;
		hqp->hop_word = 0;
		hqp->vlan_id = path.vlan_tci & RCD_VLAN_ID_MASK;
	}
	rcd_qp_posted(hqp->qp);
	rcd_lcore_touch(lcore, hqp);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	return 0;
}

/* Memory for more responder resources than the usual number. */
static void *
hqp_modify_more_resources(const struct rcd_hqp *hqp, uint32_t count)
{
	if (count > RCD_QP_RD_ATOMIC_MAX)
		return NULL;
	return rcd_near_zalloc(
		rcd_lcore_socket_id(hqp->lcore), rcd_qp_resources_size((uint8_t)count));
}

/* Whether it is to have a peer from now on. */
static bool
hqp_modify_connects(const struct rcd_hqp *hqp, const struct rcd_ctrl_qp_modify_req *req)
{
	const uint32_t needed = RCD_QP_ATTR_STATE | RCD_QP_ATTR_AV | RCD_QP_ATTR_DEST_QPN;

	return !hqp->datagram && (req->mask & needed) == needed && req->attr.state == RCD_QP_RTR;
}

/* Memory, if its connection has agreed to selective acknowledgement; without it that is not. */
static void *
hqp_modify_sack(const struct rcd_context *context, const struct rcd_hqp *hqp,
	const struct rcd_qp_attr *attr)
{
	if (!rcd_cm_host_has_sack(
		    context->all->conf.cm, context, &attr->av.dgid, attr->dest_qpn.val))
		return NULL;
	return rcd_near_zalloc(rcd_lcore_socket_id(hqp->lcore), rcd_qp_sack_size());
}

static uint64_t
hqp_modify_nonce(const struct rcd_context *context)
{
	struct rcd_random *random = context->all->conf.qpns->random;
	uint64_t high = rcd_random_u32(random);

	return high << 32 | rcd_random_u32(random);
}

/* The memory is the queue pair's from now on. */
static void
hqp_modify_keep_sack(struct rcd_hqp *hqp, void *sack)
{
	free(hqp->sack);
	hqp->sack = sack;
}

static int
hqp_modify_lend_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct modify *modify = arg;

	(void)lcore;
	/* It may have been reset since it asked. */
	modify->sack_taken = rcd_qp_found_peer(modify->hqp->qp) &&
		rcd_qp_set_sack(modify->hqp->qp, modify->sack) == 0;
	return 0;
}

void
rcd_hqp_lend_sack(const struct rcd_lcores *lcores, uint32_t qpn)
{
	struct modify modify = { .hqp = rcd_hqp_find(lcores, qpn) };

	RCD_ON_CONTROL();
	if (modify.hqp == NULL)
		return;
	modify.sack = rcd_near_zalloc(rcd_lcore_socket_id(modify.hqp->lcore), rcd_qp_sack_size());
	if (modify.sack == NULL)
		return;
	rcd_lcore_call(modify.hqp->lcore, hqp_modify_lend_on_lcore, &modify);
	if (modify.sack_taken)
		hqp_modify_keep_sack(modify.hqp, modify.sack);
	else
		free(modify.sack);
}

/* What its device has now for the traffic class; all of it was looked at when the device got it. */
static void
hqp_modify_choose_cc(const struct rcd_dev *dev, struct modify *modify)
{
	rcd_hqp_choose_cc(dev, &modify->cc, &modify->cc_params);
	rcd_cc_of_class(dev->conf.cc_class, modify->attr.av.tclass >> RCD_DSCP_SHIFT, &modify->cc);
}

/* On its lcore, with memory for a gate if it is to be limited and never was. */
static int
hqp_modify_call(struct modify *modify)
{
	const struct rcd_hqp *hqp = modify->hqp;
	bool paced = (modify->mask & RCD_QP_ATTR_RATE) && modify->attr.rate_kbps != 0;
	bool reacts = modify->cc != NULL && modify->cc != &rcd_cc_none;
	int err;

	if ((paced || reacts) && hqp->gate == NULL && !rcd_qp_reacts(hqp->qp)) {
		modify->gate = rcd_near_zalloc(rcd_lcore_socket_id(hqp->lcore), rcd_qp_gate_size());
		if (modify->gate == NULL)
			return -ENOMEM;
	}
	err = rcd_lcore_call(hqp->lcore, hqp_modify_on_lcore, modify);
	free(modify->gate);
	return err;
}

int
rcd_hqp_modify(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_qp_modify_req *req)
{
	struct rcd_hqp *hqp = rcd_table_get(&context->hqps, req->handle);

	RCD_ON_CONTROL();
	return hqp != NULL ? rcd_hqp_modify_it(context, conn, hqp, req) : -ENOENT;
}

int
rcd_hqp_modify_it(struct rcd_context *context, struct rcd_conn *conn, struct rcd_hqp *hqp,
	const struct rcd_ctrl_qp_modify_req *req)
{
	const struct rcd_ctrl_qp_attr *from = &req->attr;
	struct modify modify = { .hqp = hqp, .mask = req->mask };
	struct rcd_hops *hops = context->all->conf.ports->hops;
	int err;

	RCD_ON_CONTROL();
	if (((req->mask & RCD_QP_ATTR_PORT) && from->port != 1) ||
		((req->mask & RCD_QP_ATTR_PKEY_INDEX) && from->pkey_index != 0) ||
		((req->mask & RCD_QP_ATTR_PATH_MTU) &&
			from->path_mtu_bytes > context->dev->path_mtu))
		return -EINVAL;
	/* Spec: IBTA 10.2.5 Q_Keys of managers, by which QP1 is reached too, take privilege */
	if ((req->mask & RCD_QP_ATTR_QKEY) && (from->qkey & QKEY_PRIVILEGED) &&
		!rcd_cred_may(conn, RCD_CAP_NET_RAW))
		return -EPERM;
	rcd_attr_take(from, &modify.attr);
	if (req->mask & RCD_QP_ATTR_AV) {
		err = rcd_resolve_av(context, conn, &from->av, &modify.attr.av);
		if (err != 0)
			return err;
	}
	if ((req->mask & RCD_QP_ATTR_MAX_DEST_RD_ATOMIC) &&
		from->max_dest_rd_atomic > modify.hqp->resource_count) {
		modify.resources = hqp_modify_more_resources(hqp, from->max_dest_rd_atomic);
		if (modify.resources == NULL) {
			rcd_hop_put(hops, modify.attr.av.hop);
			return from->max_dest_rd_atomic > RCD_QP_RD_ATOMIC_MAX ? -EINVAL : -ENOMEM;
		}
	}
	if (hqp_modify_connects(modify.hqp, req)) {
		hqp_modify_choose_cc(context->dev, &modify);
		modify.sack = hqp_modify_sack(context, hqp, &modify.attr);
		modify.looks = context->dev->conf.sack == RCD_SACK_AUTO;
		if (modify.looks)
			modify.nonce = hqp_modify_nonce(context);
		/* A target is where its domain is. */
		if (hqp->target == NULL)
			rcd_context_follow(
				context, &modify.attr.av, hqp->qpn, modify.attr.dest_qpn.val);
	}
	err = hqp_modify_call(&modify);
	if (err == 0 && (req->mask & RCD_QP_ATTR_STATE) && from->state == RCD_QP_RESET) {
		rcd_ucopy_void(modify.hqp);
		rcd_hqp_unbind(modify.hqp);
	}
	if (err == 0 && (req->mask & RCD_QP_ATTR_AV)) {
		rcd_hop_put(hops, modify.hqp->hop_held);
		modify.hqp->hop_held = modify.attr.av.hop;
	} else {
		rcd_hop_put(hops, modify.attr.av.hop);
	}
	/* The queue pair has left the old ones behind. */
	if (modify.taken) {
		free(modify.hqp->resources);
		modify.hqp->resources = modify.resources;
		modify.hqp->resource_count = from->max_dest_rd_atomic;
	} else {
		free(modify.resources);
	}
	if (modify.sack_taken)
		hqp_modify_keep_sack(hqp, modify.sack);
	else
		free(modify.sack);
	/* Its requests are being flushed: it is tried again. */
	return err == -EAGAIN ? RCD_REQUEST_WAITS : err;
}

static int
hqp_modify_query_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct modify *query = arg;

	(void)lcore;
	rcd_qp_query(query->hqp->qp, &query->attr);
	return 0;
}

int
rcd_hqp_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_qp_attr *attr)
{
	struct rcd_hqp *hqp = rcd_table_get(&context->hqps, handle);

	RCD_ON_CONTROL();
	return hqp != NULL ? rcd_hqp_query_it(hqp, attr) : -ENOENT;
}

int
rcd_hqp_query_it(struct rcd_hqp *hqp, struct rcd_ctrl_qp_attr *attr)
{
	struct modify query = { .hqp = hqp };

	RCD_ON_CONTROL();
	rcd_lcore_call(hqp->lcore, hqp_modify_query_on_lcore, &query);
	rcd_attr_show(&query.attr, attr);
	return 0;
}
