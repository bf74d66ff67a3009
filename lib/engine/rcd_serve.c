/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of clients: one function for each kind, in a table. Which may come when is said by
 * rcd_ctrl.def, and which are one call by rcd_serve.def.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_admin.h"
#include "rcd_budget.h"
#include "rcd_clock.h"
#include "rcd_closer.h"
#include "rcd_cm_host.h"
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_engine_priv.h"
#include "rcd_eth.h"
#include "rcd_gid.h"
#include "rcd_guest.h"
#include "rcd_hah.h"
#include "rcd_hcq.h"
#include "rcd_hdm.h"
#include "rcd_hflow.h"
#include "rcd_hmcast.h"
#include "rcd_hqp.h"
#include "rcd_hsrq.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_mcast.h"
#include "rcd_number.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_quota.h"
#include "rcd_request.h"
#include "rcd_shm.h"
#include "rcd_stream.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_ushare.h"
#include "rcd_version.h"
#include "rcd_wr.h"
#include "rcd_xqp.h"
#include "rcd_xrcd.h"

#define ADMIN_GROUPS_MAX 1024 /**< of a process that administers by a group */

static_assert(RCD_GIDS_MAX == RCD_CTRL_GIDS_MAX, "a reply has room for all of them");

static int
serve_hello(struct rcd_request *r)
{
	struct rcd_engine *engine = r->engine;
	struct rcd_ctrl_hello_rep *rep = &r->out->hello_rep;

	rep->version = RCD_CTRL_VERSION;
	rep->abi = RCD_SHM_ABI;
	rep->generation = engine->generation;
	snprintf(rep->release, sizeof(rep->release), "%s", RCD_ENGINE_VERSION);
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		rep->device_count += engine->ports.devs[i] != NULL &&
			rcd_conn_sees(r->conn, engine->ports.devs[i]);
	if (r->in->hello_req.magic != RCD_CTRL_MAGIC)
		return -EPROTO;
	if (r->in->hello_req.version != RCD_CTRL_VERSION || r->in->hello_req.abi != RCD_SHM_ABI)
		return -EPROTONOSUPPORT;
	r->conn->greeted = true;
	rcd_closer_open_to_fds(r->conn->sock, true);
	return 0;
}

/* The device at this place of a client's list, which is in the order of their making. */
static struct rcd_dev *
serve_dev_at(const struct rcd_conn *conn, uint32_t place)
{
	const struct rcd_engine *engine = conn->all->conf.engine;
	uint32_t serial = 0;
	struct rcd_dev *best = NULL;

	do {
		best = NULL;
		for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
			struct rcd_dev *dev = engine->ports.devs[i];

			if (dev != NULL && rcd_conn_sees(conn, dev) &&
				dev->lport.serial >= serial &&
				(best == NULL || dev->lport.serial < best->lport.serial))
				best = dev;
		}
		if (best != NULL)
			serial = best->lport.serial + 1;
	} while (best != NULL && place-- > 0);
	return best;
}

/* What this client gets to see of a limit: its own or its user's, and not more than fits. */
static uint32_t
serve_limit_of(const struct rcd_quota_entry *quota, enum rcd_resource resource, uint32_t most)
{
	uint64_t limit = rcd_quota_limit(quota, resource);

	return limit < most ? (uint32_t)limit : most;
}

static int
serve_device(struct rcd_request *r)
{
	const struct rcd_quota_entry *quota =
		r->context != NULL ? &r->context->quota : &r->conn->quota;
	struct rcd_dev *dev = serve_dev_at(r->conn, r->in->device_req.index);
	struct rcd_ctrl_device_rep *rep = &r->out->device_rep;
	char name[RCD_NAME_LEN];
	const char *netdev;

	if (dev == NULL)
		return -ENOENT;
	rcd_dev_plain_name(dev, name);
	netdev = rcd_dev_conf_netdev(&dev->conf);
	*rep = (struct rcd_ctrl_device_rep){
		.node_guid = rcd_eui64(dev->mac),
		.max_mr_size = RCD_MR_MAX_BYTES,
		.max_dm_size = rcd_hdm_most(quota),
		.index = dev->lport.serial,
		.max_qp = serve_limit_of(quota, RCD_RESOURCE_QPS, RCD_DB_BITS),
		.max_qp_wr = RCD_WQ_DEPTH_MAX,
		.max_sge = RCD_SGE_MAX,
		.max_inline = RCD_INLINE_MAX,
		.max_cq = serve_limit_of(quota, RCD_RESOURCE_CQS, INT32_MAX),
		.max_cqe = serve_limit_of(quota, RCD_RESOURCE_CQ_SLOTS, RCD_CQ_DEPTH_MAX),
		.max_mr = serve_limit_of(quota, RCD_RESOURCE_MRS, INT32_MAX),
		.max_mw = serve_limit_of(quota, RCD_RESOURCE_MRS, INT32_MAX),
		.max_pd = serve_limit_of(quota, RCD_RESOURCE_PDS, INT32_MAX),
		.max_srq = serve_limit_of(quota, RCD_RESOURCE_SRQS, INT32_MAX),
		.max_srq_wr = RCD_WQ_DEPTH_MAX,
		.max_ah = serve_limit_of(quota, RCD_RESOURCE_AHS, INT32_MAX),
		.max_rd_atomic = RCD_QP_RD_ATOMIC_MAX,
		.max_mcast_groups = RCD_MCAST_GROUPS,
		.max_mcast_qps = RCD_MCAST_QPS_MAX,
		.max_gids = RCD_GIDS_MAX,
		.max_flows = rcd_hflow_offered(dev) ? RCD_FLOWS_CLIENT_MAX : 0,
		.numa_node = dev->socket_id >= 0 ? (uint32_t)dev->socket_id : UINT32_MAX,
	};
	snprintf(rep->name, sizeof(rep->name), "%s", name);
	if (netdev != NULL)
		snprintf(rep->netdev, sizeof(rep->netdev), "%.63s", netdev);
	return 0;
}

/* What a connection gets of an open context. @param events  its end of the event stream */
static void
serve_describe_context(struct rcd_request *r, const struct rcd_context *context, int events)
{
	r->out->open_rep.segment_bytes = context->segment.bytes;
	r->out->open_rep.generation = r->engine->generation;
	r->out->open_rep.huge_bytes = context->segment.huge_bytes;
	r->out->open_rep.flags = r->engine->yield ? RCD_CTRL_OPEN_YIELD : 0;
	r->out->open_rep.device = context->dev->lport.serial;
	r->reply->fds.fds[0] = context->segment.fd;
	r->reply->fds.fds[1] = context->wake_fd;
	r->reply->fds.fds[2] = events;
	r->reply->fds.count = 3;
	r->reply->keep = 3;
	if (context->segment.huge_bytes > 0) {
		r->reply->fds.fds[3] = context->segment.huge_fd;
		r->reply->fds.count = 4;
		r->reply->keep |= 1u << 3;
	}
}

static int
serve_import(struct rcd_request *r)
{
	int events;
	int err;

	if (r->context != NULL)
		return -EINVAL;
	err = rcd_conn_events_open(r->conn, &events);
	if (err != 0)
		return err;
	err = rcd_context_join(&r->engine->contexts, r->conn, r->fds_in->fds[0]);
	if (err != 0) {
		rcd_conn_events_close(r->conn);
		close(events);
		return err;
	}
	serve_describe_context(r, r->conn->context, events);
	return 0;
}

static int
serve_open(struct rcd_request *r)
{
	struct rcd_dev *dev;
	int events;
	int err;

	if (r->context != NULL)
		return -EINVAL;
	dev = rcd_dev_by_serial(&r->engine->ports, r->in->open_req.index);
	if (dev == NULL || !rcd_conn_sees(r->conn, dev))
		return -ENODEV;
	err = rcd_conn_events_open(r->conn, &events);
	if (err != 0)
		return err;
	r->engine->work += RCD_ROUND_OPEN;
	err = rcd_context_open(&r->engine->contexts, r->conn, dev, NULL);
	if (err != 0) {
		rcd_conn_events_close(r->conn);
		close(events);
		return err;
	}
	serve_describe_context(r, r->conn->context, events);
	return 0;
}

static int
serve_port(struct rcd_request *r)
{
	const struct rcd_dev *dev = r->context->dev;

	r->out->port_rep = (struct rcd_ctrl_port_rep){
		.state = dev->up ? RCD_PORT_ACTIVE : RCD_PORT_DOWN,
		.max_mtu_bytes = RCD_PATH_MTU_MAX_BYTES,
		.active_mtu_bytes = dev->path_mtu,
		.gid_count = RCD_GIDS_MAX,
		.speed_mbps = rcd_dev_speed_mbps(dev),
	};
	return 0;
}

static int
serve_gids(struct rcd_request *r)
{
	const struct rcd_dev *dev = r->context->dev;
	struct rcd_ctrl_gids_rep *rep = &r->out->gids_rep;
	uint32_t first = r->in->gids_req.index;

	rep->total = RCD_GIDS_MAX;
	if (first > RCD_GIDS_MAX)
		return -EINVAL;
	for (uint32_t i = first; i < RCD_GIDS_MAX; i++) {
		struct rcd_ctrl_gid *gid = &rep->gids[rep->count++];

		if (!dev->gids->entries[i].used)
			continue;
		memcpy(gid->raw, dev->gids->entries[i].gid.raw, RCD_GID_LEN);
		gid->ifindex = dev->ifindex;
		gid->vlan_tag =
			dev->gids->entries[i].vlan_id != 0 ? dev->gids->entries[i].vlan_id + 1u : 0;
	}
	return 0;
}

static int
serve_pd_create(struct rcd_request *r)
{
	struct rcd_quota_entry *quota = &r->context->quota;
	struct rcd_pd *pd;
	int err = rcd_quota_charge(quota, RCD_RESOURCE_PDS, 1);

	if (err != 0)
		return err;
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL || rcd_table_add(&r->context->pds, pd, &pd->handle) != 0) {
		free(pd);
		rcd_quota_uncharge(quota, RCD_RESOURCE_PDS, 1);
		return -ENOMEM;
	}
	r->out->pd_create_rep.handle = pd->handle;
	return 0;
}

static int
serve_pd_destroy(struct rcd_request *r)
{
	struct rcd_pd *pd = rcd_table_get(&r->context->pds, r->in->pd_destroy_req.handle);

	if (pd == NULL)
		return -ENOENT;
	if (pd->users > 0)
		return -EBUSY;
	rcd_table_del(&r->context->pds, pd->handle);
	rcd_quota_uncharge(&r->context->quota, RCD_RESOURCE_PDS, 1);
	free(pd);
	return 0;
}

static int
serve_mem_add(struct rcd_request *r)
{
	int err = rcd_ushare_add(&r->context->umem, r->conn->serial, &r->in->mem_add_req,
		r->fds_in->fds[0], &r->out->mem_add_rep.handle);

	if (err == 0 || err == -EINPROGRESS)
		r->fds_in->fds[0] = -1; /* kept */
	return err;
}

static int
serve_xrcd_open(struct rcd_request *r)
{
	bool kept;
	int err = rcd_xrcd_open(r->context, r->conn, &r->in->xrcd_open_req, r->fds_in->fds[0],
		&kept, &r->out->xrcd_open_rep.handle);

	if (kept)
		r->fds_in->fds[0] = -1;
	return err;
}

static int
serve_channel_create(struct rcd_request *r)
{
	struct rcd_channel *channel = calloc(1, sizeof(*channel));
	int ends[2];
	int err =
		channel != NULL ? rcd_stream_open(&r->context->quota, SOCK_STREAM, ends) : -ENOMEM;

	if (err != 0) {
		free(channel);
		return err;
	}
	if (rcd_table_add(&r->context->channels, channel, &channel->handle) != 0) {
		rcd_stream_close(&r->context->quota, ends[1]);
		close(ends[0]);
		free(channel);
		return -ENOMEM;
	}
	channel->sock = ends[1];
	TAILQ_INIT(&channel->owed);
	r->out->channel_create_rep.handle = channel->handle;
	r->reply->fds.fds[0] = ends[0];
	r->reply->fds.count = 1;
	return 0;
}

static int
serve_channel_destroy(struct rcd_request *r)
{
	struct rcd_channel *channel =
		rcd_table_get(&r->context->channels, r->in->channel_destroy_req.handle);

	if (channel == NULL)
		return -ENOENT;
	if (channel->users > 0)
		return -EBUSY;
	rcd_table_del(&r->context->channels, channel->handle);
	rcd_stream_close(&r->context->quota, channel->sock);
	free(channel);
	return 0;
}

/* Whether the process at the other end of a socket has a group, by itself or as one of several. */
static bool
serve_has_group(const struct rcd_conn *conn, gid_t gid)
{
	gid_t groups[ADMIN_GROUPS_MAX];
	socklen_t len = sizeof(groups);

	if (conn->gid == gid)
		return true;
	if (getsockopt(conn->sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) != 0)
		return false;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == gid)
			return true;
	return false;
}

/*
 * Whom the engine has become since its creation is nobody special: an account may be shared with
 * other services, and clients may have it.
 */
static bool
serve_may_administer(const struct rcd_conn *conn)
{
	const struct rcd_engine *engine = conn->all->conf.engine;
	const struct rcd_engine_conf *conf = &engine->conf;

	/*
	 * Root of a container has root's number, and may make itself a namespace without devices.
	 * Engines that serve their own alone are administered from anywhere, as ever.
	 */
	if (conn->netns != 0 && conn->netns != engine->ports.netns &&
		(conf->netns_links > 0 || rcd_ports_serve_others(&engine->ports)))
		return false;
	return conn->uid == 0 || conn->uid == engine->creator ||
		(conf->admin_uid >= 0 && conn->uid == (uid_t)conf->admin_uid) ||
		(conf->admin_gid >= 0 && serve_has_group(conn, (gid_t)conf->admin_gid));
}

static int
serve_admin(struct rcd_request *r)
{
	bool guest = !serve_may_administer(r->conn);
	uint64_t began_ns = rcd_clock_ns();
	int fd;

	if (guest && !rcd_guest_is(r->conn))
		return -EPERM;
	if (guest && !rcd_guest_turn(r->conn))
		return -EAGAIN;
	fd = rcd_admin(r->engine, guest ? r->conn : NULL, rcd_conn_away_give(r->conn),
		r->in->admin_req.json);
	if (guest)
		rcd_guest_spent(r->conn, began_ns);
	if (fd < 0)
		return fd;
	r->reply->fds.fds[0] = fd;
	r->reply->fds.count = 1;
	return 0;
}

static int
serve_sockets(struct rcd_request *r)
{
	return serve_may_administer(r->conn) ? rcd_conn_away_take(r->conn, r->fds_in->fds) : -EPERM;
}

/* Served again, it has no descriptor. */
static int
serve_netns(struct rcd_request *r)
{
	struct rcd_conn *conn = r->conn;
	int err = 0;

	if (conn->netns == 0 || conn->netns == r->engine->ports.netns)
		return -EALREADY;
	if (!rcd_guest_is(conn))
		return -EPERM;
	if (r->fds_in->count > 0)
		err = rcd_guest_ask(conn, r->fds_in->fds[0]);
	if (err != 0)
		return err;
	return conn->asked == -EINPROGRESS ? RCD_REQUEST_WAITS : conn->asked;
}

static int
serve_cm(struct rcd_request *r)
{
	int fd = -1;
	int err = rcd_cm_host_serve(r, &fd);

	r->engine->work += RCD_ROUND_CM;
	if (fd >= 0) {
		r->reply->fds.fds[0] = fd;
		r->reply->fds.count = 1;
	}
	return err;
}

#define RCD_SERVE(name, call)                                                                      \
	static int serve_##name(struct rcd_request *r)                                             \
	{                                                                                          \
		struct rcd_context *context = r->context;                                          \
		struct rcd_conn *conn = r->conn;                                                   \
		struct rcd_umem *umem = &context->umem;                                            \
		const __typeof__(r->in->name##_req) *in = &r->in->name##_req;                      \
		__typeof__(r->out->name##_rep) *out = &r->out->name##_rep;                         \
                                                                                                   \
		(void)conn, (void)umem, (void)in, (void)out;                                       \
		return call;                                                                       \
	}
#include "rcd_serve.def"

static int (*const functions[RCD_CTRL_OP_COUNT])(struct rcd_request *r) = {
#define RCD_CTRL_CM(symbol, name, request, reply, fds, stage, description)                         \
	[RCD_CTRL_##symbol] = serve_cm,

#define RCD_CTRL(symbol, name, request, reply, fds, stage, description)                            \
	[RCD_CTRL_##symbol] = serve_##name,
#include "rcd_ctrl.def"
};

int
rcd_serve(struct rcd_conn *conn, const struct rcd_ctrl_msg *req, struct rcd_ctrl_fds *fds,
	struct rcd_answer *reply)
{
	struct rcd_request request = { .engine = conn->all->conf.engine,
		.conn = conn,
		.context = conn->context,
		.op = req->hdr.op,
		.in = &req->body,
		.out = &reply->msg.body,
		.fds_in = fds,
		.reply = reply };
	enum rcd_ctrl_stage reached = conn->context != NULL ? RCD_CTRL_STAGE_OPEN
		: conn->greeted                             ? RCD_CTRL_STAGE_GREETED
							    : RCD_CTRL_STAGE_NEW;

	RCD_ON_CONTROL();
	if (conn->ended)
		return -EIO;
	if (rcd_ctrl_op_stage(req->hdr.op) > reached)
		return -EPROTO;
	memset(&reply->msg, 0, sizeof(reply->msg));
	reply->fds.count = 0;
	reply->keep = 0;
	return functions[req->hdr.op](&request);
}
