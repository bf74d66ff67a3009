/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Attributes of queue pairs, address handles and multicast of a context: what needs the way to a
 * peer.
 */
#include "rcd_modify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_ah.h"
#include "rcd_attr.h"
#include "rcd_cred.h"
#include "rcd_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_gid.h"
#include "rcd_hop.h"
#include "rcd_host.h"
#include "rcd_lcore.h"
#include "rcd_mcast.h"
#include "rcd_near.h"
#include "rcd_pkt.h"
#include "rcd_qp.h"
#include "rcd_quota.h"
#include "rcd_route.h"
#include "rcd_shm.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_tx.h"
#include "rcd_ucopy.h"
#include "rcd_verbs.h"

#define QKEY_PRIVILEGED 0x80000000u

/*
 * @param av  has its next hop counted, when 0 is returned
 * @return 0; -EAGAIN while the neighbour is being asked for; -errno
 */
static int
modify_make_av(struct rcd_context *context, struct rcd_conn *conn, const struct rcd_ctrl_av *from,
	struct rcd_av *av)
{
	struct rcd_dev *dev = context->dev;
	const struct rcd_gid_table *gids = dev->gids;
	int err;

	if (from->sgid_index >= gids->count || !gids->entries[from->sgid_index].used)
		return -EINVAL;
	rcd_attr_take_av(from, av);
	av->sgid = gids->entries[from->sgid_index].gid;
	/* Both ends of a packet speak the same IP. */
	if (rcd_gid_is_ipv4(&av->sgid) != rcd_gid_is_ipv4(&av->dgid))
		return -EINVAL;
	err = rcd_route_resolve(dev, from->sgid_index, &av->dgid, &context->quota, &conn->waiter,
		av->dmac, &av->hop);
	if (err == 0)
		rcd_hop_get(context->engine->ports.hops, av->hop);
	return err;
}

struct modify {
	void *resources; /**< more of the responder's; NULL: those that it has */
	bool taken;      /**< they are the queue pair's */
	struct rcd_hqp *hqp;
	struct rcd_qp_attr attr;
	uint32_t mask;
};

/* The client's indices begin anew with the numbers of the work requests. */
static void
modify_reset_rings(struct rcd_hqp *hqp)
{
	hqp->sq_limit = hqp->sq_published = 0;
	hqp->rq_limit = hqp->rq_published = 0;
	rcd_shm_store(&hqp->sq_shm->producer, 0);
	rcd_shm_store(&hqp->rq_shm->producer, 0);
	rcd_shm_store(&hqp->sq_shm->consumer, 0);
	rcd_shm_store(&hqp->rq_shm->consumer, 0);
}

static int
modify_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct modify *modify = arg;
	struct rcd_hqp *hqp = modify->hqp;
	int err = 0;

	if (modify->resources != NULL) {
		err = rcd_qp_set_resources(
			hqp->qp, modify->resources, modify->attr.max_dest_rd_atomic);
		modify->taken = err == 0;
	}
	if (err == 0)
		err = rcd_qp_modify(hqp->qp, &modify->attr, modify->mask);
	if (err != 0)
		return err;
	if ((modify->mask & RCD_QP_ATTR_STATE) && modify->attr.state == RCD_QP_RESET) {
		rcd_ucopy_forget(hqp);
		rcd_host_publish(lcore);
		modify_reset_rings(hqp);
		hqp->path_valid = false;
	}
	if (!hqp->datagram && (modify->mask & (RCD_QP_ATTR_AV | RCD_QP_ATTR_DEST_QPN))) {
		const struct rcd_lport *loop;
		struct rcd_qp_attr now;
		struct rcd_path path;

		rcd_qp_query(hqp->qp, &now);
		loop = rcd_tx_path(lcore, hqp->lport, &now.av, hqp->qpn, now.dest_qpn.val, &path);
		hqp->loop_index = loop != NULL ? loop->index : 0;
		hqp->loop_serial = loop != NULL ? loop->serial : 0;
		rcd_pkt_hdr_init(&hqp->hdr, &path);
		/* Of no MAC that a place has: the first packet looks. */
		hqp->hop = now.av.hop;
		hqp->hop_word = 0;
		hqp->vlan_id = path.vlan_tci;
		hqp->path_valid = true;
	}
	rcd_qp_posted(hqp->qp);
	rcd_lcore_touch(lcore, hqp);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	return 0;
}

/* Memory for more responder resources than the usual number. */
static void *
modify_more_resources(const struct rcd_context *context, uint32_t count)
{
	if (count > RCD_QP_RD_ATOMIC_MAX)
		return NULL;
	return rcd_near_zalloc(
		context->client.lcore->socket_id, rcd_qp_resources_size((uint8_t)count));
}

int
rcd_modify_qp(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_qp_modify_req *req)
{
	const struct rcd_ctrl_qp_attr *from = &req->attr;
	struct modify modify = { .hqp = rcd_table_get(&context->hqps, req->handle),
		.mask = req->mask };
	struct rcd_hops *hops = context->engine->ports.hops;
	int err;

	RCD_ON_CONTROL();
	if (modify.hqp == NULL)
		return -ENOENT;
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
		err = modify_make_av(context, conn, &from->av, &modify.attr.av);
		if (err != 0)
			return err;
	}
	if ((req->mask & RCD_QP_ATTR_MAX_DEST_RD_ATOMIC) &&
		from->max_dest_rd_atomic > modify.hqp->resource_count) {
		modify.resources = modify_more_resources(context, from->max_dest_rd_atomic);
		if (modify.resources == NULL) {
			rcd_hop_put(hops, modify.attr.av.hop);
			return from->max_dest_rd_atomic > RCD_QP_RD_ATOMIC_MAX ? -EINVAL : -ENOMEM;
		}
	}
	err = rcd_lcore_call(context->client.lcore, modify_on_lcore, &modify);
	if (err == 0 && (req->mask & RCD_QP_ATTR_STATE) && from->state == RCD_QP_RESET) {
		rcd_ucopy_void(modify.hqp);
		rcd_verbs_unbind(modify.hqp);
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
	/* Its requests are being flushed: it is tried again. */
	return err == -EAGAIN ? -EALREADY : err;
}

static int
modify_query_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct modify *query = arg;

	(void)lcore;
	rcd_qp_query(query->hqp->qp, &query->attr);
	return 0;
}

int
rcd_modify_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_qp_attr *attr)
{
	struct modify query = { .hqp = rcd_table_get(&context->hqps, handle) };

	RCD_ON_CONTROL();
	if (query.hqp == NULL)
		return -ENOENT;
	rcd_lcore_call(context->client.lcore, modify_query_on_lcore, &query);
	rcd_attr_show(&query.attr, attr);
	return 0;
}

struct ah_change {
	struct rcd_context *context;
	uint32_t pd;
	struct rcd_av av;
	uint32_t handle;
};

static int
modify_ah_create_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct ah_change *change = arg;

	(void)lcore;
	return rcd_ah_create(change->context->client.ahs, change->pd, &change->av, &change->handle);
}

int
rcd_modify_ah_create(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_ah_req *req, uint32_t *handle)
{
	struct rcd_pd *pd = rcd_table_get(&context->pds, req->pd);
	struct ah_change change = { .context = context, .pd = req->pd };
	int err;

	RCD_ON_CONTROL();
	if (pd == NULL)
		return -ENOENT;
	err = modify_make_av(context, conn, &req->av, &change.av);
	if (err != 0)
		return err;
	err = rcd_quota_charge(&context->quota, RCD_RESOURCE_AHS, 1);
	if (err == 0) {
		err = rcd_lcore_call(context->client.lcore, modify_ah_create_on_lcore, &change);
		if (err != 0)
			rcd_quota_uncharge(&context->quota, RCD_RESOURCE_AHS, 1);
	}
	if (err != 0) {
		rcd_hop_put(context->engine->ports.hops, change.av.hop);
		return err;
	}
	pd->users++;
	context->ah_count++;
	*handle = change.handle;
	return 0;
}

static int
modify_ah_destroy_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct ah_change *change = arg;
	const struct rcd_av *av =
		rcd_ah_get(change->context->client.ahs, change->pd, change->handle);

	(void)lcore;
	if (av == NULL)
		return -ENOENT;
	change->av = *av;
	return rcd_ah_destroy(change->context->client.ahs, change->pd, change->handle);
}

int
rcd_modify_ah_destroy(struct rcd_context *context, const struct rcd_ctrl_ah_handle *req)
{
	struct ah_change change = { .context = context, .pd = req->pd, .handle = req->handle };
	struct rcd_pd *pd = rcd_table_get(&context->pds, req->pd);
	int err;

	RCD_ON_CONTROL();
	if (pd == NULL)
		return -ENOENT;
	err = rcd_lcore_call(context->client.lcore, modify_ah_destroy_on_lcore, &change);
	if (err == 0) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_AHS, 1);
		pd->users--;
		context->ah_count--;
		rcd_hop_put(context->engine->ports.hops, change.av.hop);
	}
	return err;
}

struct mcast {
	struct rcd_hqp *hqp;
	struct rcd_gid group;
	bool attach;
	bool had; /**< it was attached before */
};

static int
modify_mcast_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct mcast *mcast = arg;
	struct rcd_mcast_table *table = lcore->mcast[mcast->hqp->lport->index];
	int err;

	mcast->had = rcd_mcast_has(table, &mcast->group, mcast->hqp->qp);
	if (mcast->attach)
		err = rcd_mcast_attach(table, &mcast->group, mcast->hqp->qp);
	else
		err = rcd_mcast_detach(table, &mcast->group, mcast->hqp->qp);
	if (err == 0 && mcast->had != mcast->attach)
		mcast->hqp->groups += mcast->attach ? 1 : -1u;
	return err;
}

int
rcd_modify_mcast(struct rcd_context *context, const struct rcd_ctrl_mcast_req *req, bool attach)
{
	struct mcast mcast = { .hqp = rcd_table_get(&context->hqps, req->qp), .attach = attach };
	struct rcd_lcore *lcore = context->client.lcore;
	uint32_t index = context->dev->lport.index;
	int err;

	RCD_ON_CONTROL();
	if (mcast.hqp == NULL)
		return -ENOENT;
	memcpy(mcast.group.raw, req->group, RCD_GID_LEN);
	if (lcore->mcast[index] == NULL) {
		struct rcd_mcast_table *table = rcd_mcast_table_create(RCD_MCAST_GROUPS);

		if (table == NULL)
			return -ENOMEM;
		__atomic_store_n(&lcore->mcast[index], table, __ATOMIC_RELEASE);
	}
	if (attach) {
		err = rcd_quota_charge(&context->quota, RCD_RESOURCE_GROUPS, 1);
		if (err != 0)
			return err;
	}
	err = rcd_lcore_call(lcore, modify_mcast_on_lcore, &mcast);
	/* Given back: what was left, and what was not entered, or had been before. */
	if (attach ? err != 0 || mcast.had : err == 0)
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_GROUPS, 1);
	return err;
}
