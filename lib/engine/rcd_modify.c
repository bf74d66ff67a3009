/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Attributes of queue pairs, address handles and multicast of a session: what needs the way to a
 * peer.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_attr.h"
#include "rcd_host.h"
#include "rcd_tx.h"

#define QKEY_PRIVILEGED 0x80000000u

/* @return 0; -EAGAIN while the neighbour is being asked for; -errno */
static int
make_av(struct rcd_session *session, const struct rcd_ctrl_av *from, struct rcd_av *av,
	struct rcd_next *next)
{
	struct rcd_dev *dev = session->dev;
	const struct rcd_gid_table *gids = dev->gids;
	int err;

	if (from->sgid_index >= gids->count || !gids->entries[from->sgid_index].used)
		return -EINVAL;
	rcd_attr_take_av(from, av);
	av->sgid = gids->entries[from->sgid_index].gid;
	/* Both ends of a packet speak the same IP. */
	if (rcd_gid_is_ipv4(&av->sgid) != rcd_gid_is_ipv4(&av->dgid))
		return -EINVAL;
	err = rcd_neigh_resolve(session, dev, from->sgid_index, &av->dgid, next);
	memcpy(av->dmac, next->mac, RCD_MAC_LEN);
	return err;
}

/* A queue pair or address handle has a next hop now. */
static void
have_next(struct rcd_session *session, struct rcd_next *to, const struct rcd_next *from)
{
	*to = *from;
	if (to->neighbour)
		rcd_neigh_moved(session->dev, to, rcd_clock_ns());
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
reset_rings(struct rcd_hqp *hqp)
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
		reset_rings(hqp);
		hqp->path_valid = false;
	}
	if (!hqp->datagram && (modify->mask & (RCD_QP_ATTR_AV | RCD_QP_ATTR_DEST_QPN))) {
		const struct rcd_dev *loop;
		struct rcd_qp_attr now;
		struct rcd_path path;

		rcd_qp_query(hqp->qp, &now);
		rcd_tx_path(hqp->dev, &now.av, hqp->qpn, now.dest_qpn.val, &path, &loop);
		hqp->loop_index = loop != NULL ? loop->index : 0;
		hqp->loop_serial = loop != NULL ? loop->serial : 0;
		rcd_pkt_hdr_init(&hqp->hdr, &path);
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
more_resources(const struct rcd_session *session, uint32_t count)
{
	if (count > RCD_QP_RD_ATOMIC_MAX)
		return NULL;
	return rcd_session_zalloc(session, rcd_qp_resources_size((uint8_t)count));
}

int
rcd_verbs_qp_modify(struct rcd_session *session, const struct rcd_ctrl_qp_modify_req *req)
{
	const struct rcd_ctrl_qp_attr *from = &req->attr;
	struct modify modify = { .hqp = rcd_table_get(&session->hqps, req->handle),
		.mask = req->mask };
	struct rcd_next next = { .neighbour = false };
	int err;

	if (modify.hqp == NULL)
		return -ENOENT;
	if (((req->mask & RCD_QP_ATTR_PORT) && from->port != 1) ||
		((req->mask & RCD_QP_ATTR_PKEY_INDEX) && from->pkey_index != 0) ||
		((req->mask & RCD_QP_ATTR_PATH_MTU) &&
			from->path_mtu_bytes > session->dev->path_mtu))
		return -EINVAL;
	/* Spec: IBTA 10.2.5 Q_Keys of managers, by which QP1 is reached too, take privilege */
	if ((req->mask & RCD_QP_ATTR_QKEY) && (from->qkey & QKEY_PRIVILEGED) &&
		!rcd_cred_may(session, RCD_CAP_NET_RAW))
		return -EPERM;
	rcd_attr_take(from, &modify.attr);
	if (req->mask & RCD_QP_ATTR_AV) {
		err = make_av(session, &from->av, &modify.attr.av, &next);
		if (err != 0)
			return err;
	}
	if ((req->mask & RCD_QP_ATTR_MAX_DEST_RD_ATOMIC) &&
		from->max_dest_rd_atomic > modify.hqp->resource_count) {
		modify.resources = more_resources(session, from->max_dest_rd_atomic);
		if (modify.resources == NULL)
			return from->max_dest_rd_atomic > RCD_QP_RD_ATOMIC_MAX ? -EINVAL : -ENOMEM;
	}
	err = rcd_lcore_ask(session->lcore, modify_on_lcore, &modify);
	if (err == 0 && (req->mask & RCD_QP_ATTR_STATE) && from->state == RCD_QP_RESET) {
		rcd_ucopy_void(modify.hqp);
		rcd_verbs_unbind(modify.hqp);
	}
	if (err == 0 && (req->mask & RCD_QP_ATTR_AV))
		have_next(session, &modify.hqp->next, &next);
	/* The queue pair has left the old ones behind. */
	if (modify.taken) {
		free(modify.hqp->resources);
		modify.hqp->resources = modify.resources;
		modify.hqp->resource_count = from->max_dest_rd_atomic;
	} else {
		free(modify.resources);
	}
	return err;
}

static void
query_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct modify *query = arg;

	(void)lcore;
	rcd_qp_query(query->hqp->qp, &query->attr);
}

int
rcd_verbs_qp_query(struct rcd_session *session, uint32_t handle, struct rcd_ctrl_qp_attr *attr)
{
	struct modify query = { .hqp = rcd_table_get(&session->hqps, handle) };

	if (query.hqp == NULL)
		return -ENOENT;
	rcd_lcore_call(session->lcore, query_on_lcore, &query);
	rcd_attr_show(&query.attr, attr);
	return 0;
}

struct ah_change {
	struct rcd_session *session;
	uint32_t pd;
	struct rcd_av av;
	uint32_t handle;
};

static int
ah_create_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct ah_change *change = arg;

	(void)lcore;
	return rcd_ah_create(change->session->ahs, change->pd, &change->av, &change->handle);
}

int
rcd_verbs_ah_create(
	struct rcd_session *session, const struct rcd_ctrl_ah_req *req, uint32_t *handle)
{
	struct rcd_pd *pd = rcd_table_get(&session->pds, req->pd);
	struct ah_change change = { .session = session, .pd = req->pd };
	struct rcd_next next;
	int err;

	if (pd == NULL)
		return -ENOENT;
	err = make_av(session, &req->av, &change.av, &next);
	if (err != 0)
		return err;
	err = rcd_quota_charge(&session->quota, RCD_RESOURCE_AHS, 1);
	if (err != 0)
		return err;
	err = rcd_lcore_ask(session->lcore, ah_create_on_lcore, &change);
	if (err != 0) {
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_AHS, 1);
		return err;
	}
	pd->users++;
	session->ah_count++;
	have_next(session, &session->ah_next[change.handle], &next);
	*handle = change.handle;
	return 0;
}

static int
ah_destroy_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct ah_change *change = arg;

	(void)lcore;
	return rcd_ah_destroy(change->session->ahs, change->pd, change->handle);
}

int
rcd_verbs_ah_destroy(struct rcd_session *session, const struct rcd_ctrl_ah_handle *req)
{
	struct ah_change change = { .session = session, .pd = req->pd, .handle = req->handle };
	struct rcd_pd *pd = rcd_table_get(&session->pds, req->pd);
	int err;

	if (pd == NULL)
		return -ENOENT;
	err = rcd_lcore_ask(session->lcore, ah_destroy_on_lcore, &change);
	if (err == 0) {
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_AHS, 1);
		pd->users--;
		session->ah_count--;
		session->ah_next[req->handle].neighbour = false;
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
mcast_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct mcast *mcast = arg;
	struct rcd_mcast_table *table = lcore->mcast[mcast->hqp->dev->index];
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
rcd_verbs_mcast(struct rcd_session *session, const struct rcd_ctrl_mcast_req *req, bool attach)
{
	struct mcast mcast = { .hqp = rcd_table_get(&session->hqps, req->qp), .attach = attach };
	struct rcd_lcore *lcore = session->lcore;
	uint32_t index = session->dev->index;
	int err;

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
		err = rcd_quota_charge(&session->quota, RCD_RESOURCE_GROUPS, 1);
		if (err != 0)
			return err;
	}
	err = rcd_lcore_ask(lcore, mcast_on_lcore, &mcast);
	/* Given back: what was left, and what was not entered, or had been before. */
	if (attach ? err != 0 || mcast.had : err == 0)
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_GROUPS, 1);
	return err;
}
