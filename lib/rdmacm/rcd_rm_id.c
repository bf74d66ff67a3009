/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Identifiers: their coming and going, addresses and paths, options.
 */
#include "rcd_rm.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define RATE_SELECTOR_EXACT 2

int
rcd_rm_addr(const struct sockaddr *from, struct rcd_ctrl_cm_addr *to)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memset(to, 0, sizeof(*to));
	if (from == NULL)
		return 0;
	if (from->sa_family == AF_INET) {
		const struct sockaddr_in *sin = (const void *)from;

		memcpy(to->addr, mapped, sizeof(mapped));
		memcpy(to->addr + 12, &sin->sin_addr, 4);
		to->port = be16toh(sin->sin_port);
		to->family = 4;
		return 0;
	}
	if (from->sa_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const void *)from;

		memcpy(to->addr, &sin6->sin6_addr, 16);
		to->port = be16toh(sin6->sin6_port);
		to->scope_id = sin6->sin6_scope_id;
		to->family = memcmp(to->addr, mapped, sizeof(mapped)) == 0 ? 4 : 6;
		return 0;
	}
	return -EAFNOSUPPORT;
}

static void
rm_id_set_sockaddr(struct sockaddr_storage *to, const struct rcd_ctrl_cm_addr *from)
{
	struct sockaddr_in *sin = (void *)to;
	struct sockaddr_in6 *sin6 = (void *)to;

	if (from->family == 0)
		return;
	memset(to, 0, sizeof(*to));
	if (from->family == 4) {
		sin->sin_family = AF_INET;
		sin->sin_port = htobe16(from->port);
		memcpy(&sin->sin_addr, from->addr + 12, 4);
	} else {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htobe16(from->port);
		sin6->sin6_scope_id = from->scope_id;
		memcpy(&sin6->sin6_addr, from->addr, 16);
	}
}

/* What there is of a path where there is no subnet manager. */
static void
rm_id_set_path(struct rcd_rm_id *id, const struct rcd_ctrl_cm_query_rep *rep)
{
	struct ibv_sa_path_rec *path = &id->path;

	memset(path, 0, sizeof(*path));
	memcpy(&path->dgid, rep->av.dgid, 16);
	memcpy(&path->sgid, rep->sgid, 16);
	path->flow_label = htobe32(rep->av.flow_label);
	path->hop_limit = rep->av.hop_limit;
	path->traffic_class = rep->av.tclass;
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = 0xffff;
	path->mtu_selector = RATE_SELECTOR_EXACT;
	path->mtu = rcd_mtu_code(rep->path_mtu_bytes);
	path->rate_selector = RATE_SELECTOR_EXACT;
	path->rate = IBV_RATE_10_GBPS;
	path->packet_life_time_selector = RATE_SELECTOR_EXACT;
	path->packet_life_time = 16;
	id->base.route.path_rec = path;
	id->base.route.num_paths = 1;
}

int
rcd_rm_id_query(struct rcd_rm_id *id)
{
	struct rdma_addr *addr = &id->base.route.addr;
	struct rcd_ctrl_cm_query_rep rep;
	int err = rcd_rm_call_handle(id, RCD_CTRL_CM_QUERY, &rep);

	if (err != 0)
		return err;
	rm_id_set_sockaddr(&addr->src_storage, &rep.src);
	rm_id_set_sockaddr(&addr->dst_storage, &rep.dst);
	if (rep.device == RCD_CTRL_NO_HANDLE)
		return 0;
	if (id->device == NULL) {
		id->device = rcd_rm_device_get(id->session, rep.device);
		if (id->device == NULL)
			return -errno;
		id->base.verbs = id->device->verbs;
		id->base.pd = id->device->pd;
		id->base.port_num = 1;
	}
	memcpy(&addr->addr.ibaddr.sgid, rep.sgid, 16);
	memcpy(&addr->addr.ibaddr.dgid, rep.av.dgid, 16);
	addr->addr.ibaddr.pkey = 0xffff;
	if (rep.av.hop_limit != 0)
		rm_id_set_path(id, &rep);
	return 0;
}

struct rcd_rm_id *
rcd_rm_id_make(struct rcd_rm_session *session, struct rdma_event_channel *channel, void *context,
	enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rcd_rm_id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return NULL;
	id->session = session;
	id->handle = RCD_CTRL_NO_HANDLE;
	id->last_request = RCD_CTRL_NO_HANDLE;
	id->base.channel = channel;
	id->base.context = context;
	id->base.ps = ps;
	id->base.qp_type = type;
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->acked, NULL);
	LIST_INIT(&id->groups);
	return id;
}

void
rcd_rm_id_free(struct rcd_rm_id *id)
{
	rcd_rm_session_del(id->session, id);
	rcd_rm_groups_free(id);
	if (id->device != NULL)
		rcd_rm_device_put(id->session, id->device);
	pthread_mutex_destroy(&id->lock);
	pthread_cond_destroy(&id->acked);
	free(id->qp_init_attr);
	free(id);
}

static int
rm_id_create_on(struct rdma_event_channel *channel, struct rdma_cm_id **given, void *context,
	enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rcd_ctrl_cm_create_req req = {
		.channel = rcd_rm_channel(channel)->handle,
		.space = (uint16_t)ps,
	};
	struct rcd_rm_session *session = rcd_rm_channel(channel)->session;
	struct rcd_rm_id *id = rcd_rm_id_make(session, channel, context, ps, type);
	struct rcd_ctrl_handle rep;
	uint32_t service = RCD_QP_RC;
	int err;

	if (id == NULL)
		return -ENOMEM;
	/* Other types have no connections here, and identifiers as RC. */
	(void)rcd_ctrl_qp_type_of_verbs(type, &service);
	req.qp_type = (uint8_t)service;
	err = rcd_rm_call(id, RCD_CTRL_CM_CREATE, &req, &rep);
	if (err == 0) {
		id->handle = rep.handle;
		err = rcd_rm_session_add(session, id);
	}
	if (err != 0) {
		rcd_rm_id_free(id);
		return err;
	}
	*given = &id->base;
	return 0;
}

int
rcd_rm_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **given, void *context,
	enum rdma_port_space ps, enum ibv_qp_type type)
{
	bool sync = channel == NULL;
	int err;

	if (given == NULL)
		return rcd_rm_ret(-EINVAL);
	if (sync)
		channel = rdma_create_event_channel();
	if (channel == NULL)
		return -1;
	err = rm_id_create_on(channel, given, context, ps, type);
	if (err != 0) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return rcd_rm_ret(err);
	}
	rcd_rm_id(*given)->sync = sync;
	return 0;
}

int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	enum rdma_port_space ps)
{
	enum ibv_qp_type type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;

	return rcd_rm_id_create(channel, id, context, ps, type);
}

/* Until the application has acknowledged all that it was given. */
static void
rm_id_wait_acks(struct rcd_rm_id *id)
{
	pthread_mutex_lock(&id->lock);
	while (id->events_acked != id->events_given)
		pthread_cond_wait(&id->acked, &id->lock);
	pthread_mutex_unlock(&id->lock);
}

int
rdma_destroy_id(struct rdma_cm_id *base)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_rm_channel *channel = rcd_rm_channel(base->channel);
	struct rcd_ctrl_handle req = { .handle = id->handle };
	struct rcd_ctrl_cm_count purged = { .count = 0 };

	/* Forgotten first: the engine may give its handle to another one at once. */
	pthread_mutex_lock(&channel->lock);
	rcd_rm_session_del(id->session, id);
	if (rcd_client_call(&id->session->client, RCD_CTRL_CM_DESTROY, &req, &purged, NULL, NULL) ==
		0)
		rcd_rm_channel_drain(channel, purged.count);
	pthread_mutex_unlock(&channel->lock);
	if (base->event != NULL)
		rdma_ack_cm_event(base->event);
	rm_id_wait_acks(id);
	if (id->sync)
		rdma_destroy_event_channel(base->channel);
	rcd_rm_id_free(id);
	return 0;
}

int
rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *to)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_rm_channel *from = rcd_rm_channel(base->channel);
	struct rcd_ctrl_cm_pair req = { .id = id->handle };
	struct rcd_ctrl_cm_count moved;
	bool sync = to == NULL;
	int err;

	rcd_rm_look(id);
	if (id->sync && !sync && base->event != NULL) {
		rdma_ack_cm_event(base->event);
		base->event = NULL;
	}
	if (sync) {
		/* Of the identifier's session, which may not be the current one. */
		rcd_rm_session_hold(id->session);
		to = rcd_rm_channel_make(id->session);
		if (to == NULL)
			return -1;
	}
	err = rcd_rm_channel(to)->session == id->session ? 0 : -EINVAL;
	if (err == 0) {
		req.second = rcd_rm_channel(to)->handle;
		pthread_mutex_lock(&from->lock);
		err = rcd_rm_call(id, RCD_CTRL_CM_MIGRATE, &req, &moved);
		if (err == 0)
			rcd_rm_channel_drain(from, moved.count);
		pthread_mutex_unlock(&from->lock);
	}
	if (err != 0) {
		if (sync)
			rdma_destroy_event_channel(to);
		return rcd_rm_ret(err);
	}
	rm_id_wait_acks(id);
	if (id->sync)
		rdma_destroy_event_channel(base->channel);
	base->channel = to;
	id->sync = sync;
	return 0;
}

int
rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *addr)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_ctrl_cm_addr_req req = { .id = id->handle };
	int err = addr != NULL ? rcd_rm_addr(addr, &req.addr) : -EINVAL;

	if (err == 0)
		err = rcd_rm_call(id, RCD_CTRL_CM_BIND, &req, NULL);
	if (err == 0)
		err = rcd_rm_id_query(id);
	return rcd_rm_ret(err);
}

int
rdma_listen(struct rdma_cm_id *base, int backlog)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_ctrl_cm_pair req = { .id = id->handle,
		.second = backlog > 0 ? (uint32_t)backlog : 0 };
	int err = rcd_rm_call(id, RCD_CTRL_CM_LISTEN, &req, NULL);

	if (err == 0)
		err = rcd_rm_id_query(id);
	return rcd_rm_ret(err);
}

/* A path that was found elsewhere: there is but one here, so that it only has to be well formed. */
static int
rm_id_set_ib_path(struct rcd_rm_id *id, const void *val, size_t len)
{
	const struct ibv_path_data *data = val;

	if (val == NULL || len == 0 || len % sizeof(*data) != 0)
		return -EINVAL;
	return rcd_rm_call_handle(id, RCD_CTRL_CM_RESOLVE_ROUTE, NULL);
}

int
rdma_set_option(struct rdma_cm_id *base, int level, int optname, void *optval, size_t optlen)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_ctrl_cm_set_req req = { .id = id->handle };
	bool byte = optname == RDMA_OPTION_ID_TOS || optname == RDMA_OPTION_ID_ACK_TIMEOUT;

	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return rcd_rm_ret(rm_id_set_ib_path(id, optval, optlen));
	if (level != RDMA_OPTION_ID)
		return rcd_rm_ret(-ENOSYS);
	if (optval == NULL || optlen != (byte ? sizeof(uint8_t) : sizeof(int)))
		return rcd_rm_ret(-EINVAL);
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		req.option = RCD_CTRL_CM_TOS;
		break;
	case RDMA_OPTION_ID_REUSEADDR:
		req.option = RCD_CTRL_CM_REUSEADDR;
		break;
	case RDMA_OPTION_ID_AFONLY:
		req.option = RCD_CTRL_CM_AFONLY;
		break;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		req.option = RCD_CTRL_CM_ACK_TIMEOUT;
		break;
	default:
		return rcd_rm_ret(-ENOSYS);
	}
	if (byte)
		req.value = *(const uint8_t *)optval;
	else
		req.value = *(const int *)optval != 0;
	return rcd_rm_ret(rcd_rm_call(id, RCD_CTRL_CM_SET, &req, NULL));
}

static __be16
rm_id_port_of(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)addr)->sin_port;
	if (addr->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)(const void *)addr)->sin6_port;
	return 0;
}

__be16
rdma_get_src_port(struct rdma_cm_id *id)
{
	return rm_id_port_of(&id->route.addr.src_storage);
}

__be16
rdma_get_dst_port(struct rdma_cm_id *id)
{
	return rm_id_port_of(&id->route.addr.dst_storage);
}
