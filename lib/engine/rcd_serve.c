/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of clients: one function for each kind, in a table. Which may come when is said by
 * rcd_ctrl.def, and which are one call by rcd_serve.def.
 */
#include "rcd_engine_priv.h"
#include "rcd_ushare.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_admin.h"
#include "rcd_closer.h"
#include "rcd_cm_host.h"

#define ADMIN_GROUPS_MAX 1024 /**< of a process that administers by a group */

static_assert(RCD_GIDS_MAX == RCD_CTRL_GIDS_MAX, "a reply has room for all of them");

struct request {
	struct rcd_session *session; /**< whose context it is about */
	struct rcd_session *via;     /**< whose connection it came by */
	uint32_t op;
	const union rcd_ctrl_body *in;
	union rcd_ctrl_body *out;
	struct rcd_ctrl_fds *fds_in;
	struct rcd_reply *reply;
};

static int
serve_hello(struct request *r)
{
	struct rcd_engine *engine = r->session->engine;
	struct rcd_ctrl_hello_rep *rep = &r->out->hello_rep;

	rep->version = RCD_CTRL_VERSION;
	rep->abi = RCD_SHM_ABI;
	rep->generation = engine->generation;
	snprintf(rep->release, sizeof(rep->release), "%s", RCD_RELEASE);
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		rep->device_count += engine->devs[i] != NULL && !engine->devs[i]->wire_waits;
	if (r->in->hello_req.magic != RCD_CTRL_MAGIC)
		return -EPROTO;
	if (r->in->hello_req.version != RCD_CTRL_VERSION || r->in->hello_req.abi != RCD_SHM_ABI)
		return -EPROTONOSUPPORT;
	r->via->greeted = true;
	rcd_closer_open_to_fds(r->via->sock, true);
	return 0;
}

/* The device at this place of the list, which is in the order of their making. */
static struct rcd_dev *
dev_at(struct rcd_engine *engine, uint32_t place)
{
	uint32_t serial = 0;
	struct rcd_dev *best = NULL;

	do {
		best = NULL;
		for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
			struct rcd_dev *dev = engine->devs[i];

			if (dev != NULL && !dev->wire_waits && dev->serial >= serial &&
				(best == NULL || dev->serial < best->serial))
				best = dev;
		}
		if (best != NULL)
			serial = best->serial + 1;
	} while (best != NULL && place-- > 0);
	return best;
}

/* What this client gets to see of a limit: its own or its user's, and not more than fits. */
static uint32_t
limit_of(const struct rcd_quota_entry *quota, enum rcd_resource resource, uint32_t most)
{
	uint64_t limit = rcd_quota_limit(quota, resource);

	return limit < most ? (uint32_t)limit : most;
}

static int
serve_device(struct request *r)
{
	struct rcd_engine *engine = r->session->engine;
	const struct rcd_quota_entry *quota = &r->session->quota;
	struct rcd_dev *dev = dev_at(engine, r->in->device_req.index);
	struct rcd_ctrl_device_rep *rep = &r->out->device_rep;
	const uint8_t *mac;

	if (dev == NULL)
		return -ENOENT;
	mac = dev->mac;
	*rep = (struct rcd_ctrl_device_rep){
		.node_guid = (uint64_t)(mac[0] ^ 2) << 56 | (uint64_t)mac[1] << 48 |
			(uint64_t)mac[2] << 40 | UINT64_C(0xfffe) << 24 | (uint64_t)mac[3] << 16 |
			(uint64_t)mac[4] << 8 | mac[5],
		.max_mr_size = RCD_MR_MAX_BYTES,
		.index = dev->serial,
		.max_qp = limit_of(quota, RCD_RESOURCE_QPS, RCD_DB_BITS),
		.max_qp_wr = 1u << 16,
		.max_sge = RCD_SGE_MAX,
		.max_inline = RCD_INLINE_MAX,
		.max_cq = limit_of(quota, RCD_RESOURCE_CQS, INT32_MAX),
		.max_cqe = limit_of(quota, RCD_RESOURCE_CQ_SLOTS, 1u << 22),
		.max_mr = limit_of(quota, RCD_RESOURCE_MRS, INT32_MAX),
		.max_mw = limit_of(quota, RCD_RESOURCE_MRS, INT32_MAX),
		.max_pd = limit_of(quota, RCD_RESOURCE_PDS, INT32_MAX),
		.max_srq = limit_of(quota, RCD_RESOURCE_SRQS, INT32_MAX),
		.max_srq_wr = 1u << 16,
		.max_ah = limit_of(quota, RCD_RESOURCE_AHS, INT32_MAX),
		.max_rd_atomic = RCD_QP_RD_ATOMIC_MAX,
		.max_mcast_groups = RCD_MCAST_GROUPS,
		.max_mcast_qps = RCD_MCAST_QPS_MAX,
		.max_gids = RCD_GIDS_MAX,
		.numa_node = dev->socket_id >= 0 ? (uint32_t)dev->socket_id : UINT32_MAX,
	};
	snprintf(rep->name, sizeof(rep->name), "%s", dev->conf.name);
	if (dev->conf.attach == RCD_ATTACH_NETDEV)
		snprintf(rep->netdev, sizeof(rep->netdev), "%.63s", dev->conf.target);
	return 0;
}

/* What a connection gets of an open context. @param events  its end of the event stream */
static void
describe_context(struct request *r, const struct rcd_session *session, int events)
{
	r->out->open_rep.segment_bytes = session->segment.bytes;
	r->out->open_rep.generation = session->engine->generation;
	r->out->open_rep.huge_bytes = session->segment.huge_bytes;
	r->out->open_rep.flags = session->engine->yield ? RCD_CTRL_OPEN_YIELD : 0;
	r->out->open_rep.device = session->dev->serial;
	r->reply->fds.fds[0] = session->segment.fd;
	r->reply->fds.fds[1] = session->wake_fd;
	r->reply->fds.fds[2] = events;
	r->reply->fds.count = 3;
	r->reply->keep = 3;
	if (session->segment.huge_bytes > 0) {
		r->reply->fds.fds[3] = session->segment.huge_fd;
		r->reply->fds.count = 4;
		r->reply->keep |= 1u << 3;
	}
}

static int
serve_import(struct request *r)
{
	struct rcd_quota_entry *quota = &r->via->quota;
	int events[2];
	int err = rcd_quota_charge(quota, RCD_RESOURCE_DESCRIPTORS, 1);

	if (err != 0)
		return err;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) != 0) {
		err = -errno;
		rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
		return err;
	}
	shutdown(events[0], SHUT_RD);
	err = rcd_guest_join(r->via, r->fds_in->fds[0]);
	if (err != 0) {
		rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
		close(events[0]);
		close(events[1]);
		return err;
	}
	r->via->events = events[0];
	describe_context(r, r->via->host, events[1]);
	return 0;
}

static int
serve_open(struct request *r)
{
	struct rcd_session *session = r->session;
	struct rcd_dev *dev;
	int events[2];
	int err;

	if (session->dev != NULL || session->shm != NULL)
		return -EINVAL;
	dev = rcd_dev_by_serial(session->engine, r->in->open_req.index);
	if (dev == NULL)
		return -ENODEV;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) != 0)
		return -errno;
	shutdown(events[0], SHUT_RD);
	session->engine->work += RCD_ROUND_OPEN;
	err = rcd_session_open(session, dev);
	if (err != 0) {
		close(events[0]);
		close(events[1]);
		return err;
	}
	session->events = events[0];
	describe_context(r, session, events[1]);
	return 0;
}

static int
serve_port(struct request *r)
{
	const struct rcd_dev *dev = r->session->dev;

	r->out->port_rep = (struct rcd_ctrl_port_rep){
		.state = dev->up ? 4 : 1,
		.max_mtu_bytes = RCD_PATH_MTU_MAX_BYTES,
		.active_mtu_bytes = dev->path_mtu,
		.gid_count = RCD_GIDS_MAX,
		.speed_mbps = rcd_dev_speed_mbps(dev),
	};
	return 0;
}

static int
serve_gids(struct request *r)
{
	const struct rcd_dev *dev = r->session->dev;
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
serve_pd_create(struct request *r)
{
	struct rcd_quota_entry *quota = &r->session->quota;
	struct rcd_pd *pd;
	int err = rcd_quota_charge(quota, RCD_RESOURCE_PDS, 1);

	if (err != 0)
		return err;
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL || rcd_table_add(&r->session->pds, pd, &pd->handle) != 0) {
		free(pd);
		rcd_quota_uncharge(quota, RCD_RESOURCE_PDS, 1);
		return -ENOMEM;
	}
	r->out->pd_create_rep.handle = pd->handle;
	return 0;
}

static int
serve_pd_destroy(struct request *r)
{
	struct rcd_pd *pd = rcd_table_get(&r->session->pds, r->in->pd_destroy_req.handle);

	if (pd == NULL)
		return -ENOENT;
	if (pd->users > 0)
		return -EBUSY;
	rcd_table_del(&r->session->pds, pd->handle);
	rcd_quota_uncharge(&r->session->quota, RCD_RESOURCE_PDS, 1);
	free(pd);
	return 0;
}

static int
serve_mem_add(struct request *r)
{
	int err = rcd_ushare_add(&r->session->umem, r->session->via, &r->in->mem_add_req,
		r->fds_in->fds[0], &r->out->mem_add_rep.handle);

	if (err == 0 || err == -EINPROGRESS)
		r->fds_in->fds[0] = -1; /* kept */
	return err;
}

static int
serve_channel_create(struct request *r)
{
	struct rcd_channel *channel = calloc(1, sizeof(*channel));
	int ends[2];
	int err = channel != NULL ? rcd_session_stream(r->session, ends) : -ENOMEM;

	if (err != 0) {
		free(channel);
		return err;
	}
	if (rcd_table_add(&r->session->channels, channel, &channel->handle) != 0) {
		rcd_session_stream_close(r->session, ends[1]);
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
serve_channel_destroy(struct request *r)
{
	struct rcd_channel *channel =
		rcd_table_get(&r->session->channels, r->in->channel_destroy_req.handle);

	if (channel == NULL)
		return -ENOENT;
	if (channel->users > 0)
		return -EBUSY;
	rcd_table_del(&r->session->channels, channel->handle);
	rcd_session_stream_close(r->session, channel->sock);
	free(channel);
	return 0;
}

/* Whether the process at the other end of a socket has a group, by itself or as one of several. */
static bool
has_group(const struct rcd_session *session, gid_t gid)
{
	gid_t groups[ADMIN_GROUPS_MAX];
	socklen_t len = sizeof(groups);

	if (session->gid == gid)
		return true;
	if (getsockopt(session->sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) != 0)
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
may_administer(const struct rcd_session *session)
{
	const struct rcd_engine *engine = session->engine;
	const struct rcd_engine_conf *conf = &engine->conf;

	return session->uid == 0 || session->uid == engine->creator ||
		(conf->admin_uid >= 0 && session->uid == (uid_t)conf->admin_uid) ||
		(conf->admin_gid >= 0 && has_group(session, (gid_t)conf->admin_gid));
}

static int
serve_admin(struct request *r)
{
	int fd;

	if (!may_administer(r->via))
		return -EPERM;
	fd = rcd_admin(r->session->engine, r->in->admin_req.line);
	if (fd < 0)
		return fd;
	r->reply->fds.fds[0] = fd;
	r->reply->fds.count = 1;
	return 0;
}

static int
serve_cm(struct request *r)
{
	int fd = -1;
	int err = rcd_cm_host_serve(r->session, r->op, r->in, r->out, &fd);

	r->session->engine->work += RCD_ROUND_CM;
	if (fd >= 0) {
		r->reply->fds.fds[0] = fd;
		r->reply->fds.count = 1;
	}
	return err;
}

#define RCD_SERVE(name, call)                                                                      \
	static int serve_##name(struct request *r)                                                 \
	{                                                                                          \
		struct rcd_session *session = r->session;                                          \
		struct rcd_umem *umem = &session->umem;                                            \
		const __typeof__(r->in->name##_req) *in = &r->in->name##_req;                      \
		__typeof__(r->out->name##_rep) *out = &r->out->name##_rep;                         \
                                                                                                   \
		(void)umem, (void)in, (void)out;                                                   \
		return call;                                                                       \
	}
#include "rcd_serve.def"

static int (*const functions[RCD_CTRL_OP_COUNT])(struct request *r) = {
#define RCD_CTRL_CM(symbol, name, request, reply, fds, stage, description)                         \
	[RCD_CTRL_##symbol] = serve_cm,

#define RCD_CTRL(symbol, name, request, reply, fds, stage, description)                            \
	[RCD_CTRL_##symbol] = serve_##name,
#include "rcd_ctrl.def"
};

int
rcd_serve(struct rcd_session *via, const struct rcd_ctrl_msg *req, struct rcd_ctrl_fds *fds,
	struct rcd_reply *reply)
{
	struct rcd_session *session = via->host != NULL ? via->host : via;
	struct request request = { .session = session,
		.via = via,
		.op = req->hdr.op,
		.in = &req->body,
		.out = &reply->msg.body,
		.fds_in = fds,
		.reply = reply };
	enum rcd_ctrl_stage reached = session->dev != NULL ? RCD_CTRL_STAGE_OPEN
		: via->greeted                             ? RCD_CTRL_STAGE_GREETED
							   : RCD_CTRL_STAGE_NEW;

	if (via->ended || session->ended)
		return -EIO;
	session->via = via->serial;
	if (rcd_ctrl_op_stage(req->hdr.op) > reached)
		return -EPROTO;
	memset(&reply->msg, 0, sizeof(reply->msg));
	reply->fds.count = 0;
	reply->keep = 0;
	return functions[req->hdr.op](&request);
}
