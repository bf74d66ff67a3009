/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Identifiers: their coming and going, addresses, listening, options.
 */
#include "rcd_cmid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bits.h"
#include "rcd_cma_client.h"
#include "rcd_cma_event.h"
#include "rcd_cma_route.h"
#include "rcd_limits.h"
#include "rcd_thread.h"

struct rcd_cmid *
rcd_cmid_get(const struct rcd_cma_client *client, uint32_t handle)
{
	RCD_ON_CONTROL();
	return rcd_table_get(&client->ids, handle);
}

static void
cmid_stop_waiting(struct rcd_cmid *id)
{
	rcd_waiter_cancel(&id->waiter);
	rcd_alarm_cancel(id->client->cma->alarms, &id->patience);
}

/* Whether the peer's MAC is known. @return -EAGAIN: not yet, and it waits */
static int
cmid_look(struct rcd_cmid *id)
{
	const struct rcd_cma *cma = id->client->cma;
	struct rcd_gid gid = rcd_cma_gid(&id->dst);

	return cma->ops->resolve(id->client->owner, id->dev, id->sgid_index, &gid, &id->waiter);
}

/* It is, or will never be. */
static void
cmid_resolved(struct rcd_cmid *id, int err)
{
	cmid_stop_waiting(id);
	rcd_cmid_step(id, err == 0 ? RCD_CM_STEP_ADDR_FOUND : RCD_CM_STEP_ADDR_FAILED);
	rcd_cma_event_tell(
		id, err == 0 ? RCD_CMA_EVENT_ADDR_RESOLVED : RCD_CMA_EVENT_ADDR_ERROR, err);
}

static void
cmid_told(struct rcd_waiter *waiter)
{
	struct rcd_cmid *id = RCD_OWNER(waiter, struct rcd_cmid, waiter);
	int err = cmid_look(id);

	if (err != -EAGAIN)
		cmid_resolved(id, err);
}

static void
cmid_impatient(struct rcd_alarm *alarm, uint64_t now_ns)
{
	struct rcd_cmid *id = RCD_OWNER(alarm, struct rcd_cmid, patience);
	int err = cmid_look(id);

	(void)now_ns;
	cmid_resolved(id, err == -EAGAIN ? -ETIMEDOUT : err);
}

static struct rcd_cmid *
cmid_new_id(struct rcd_cma_client *client, struct rcd_cma_channel *channel)
{
	struct rcd_cmid *id;

	if (rcd_quota_charge(client->quota, RCD_RESOURCE_CM_IDS, 1) != 0)
		return NULL;
	id = calloc(1, sizeof(*id));
	if (id == NULL || rcd_table_add(&client->ids, id, &id->handle) != 0) {
		rcd_quota_uncharge(client->quota, RCD_RESOURCE_CM_IDS, 1);
		free(id);
		return NULL;
	}
	id->waiter.fn = cmid_told;
	id->patience.fn = cmid_impatient;
	id->client = client;
	id->channel = channel;
	channel->users++;
	TAILQ_INIT(&id->events);
	LIST_INIT(&id->groups);
	LIST_INIT(&id->children);
	LIST_INSERT_HEAD(&client->cma->ids, id, all_link);
	return id;
}

/* What CM knows how to connect. */
static bool
cmid_type_valid(uint8_t qp_type)
{
	return qp_type <= RCD_QP_UD || qp_type == RCD_QP_XRC_SEND || qp_type == RCD_QP_XRC_RECV;
}

int
rcd_cmid_create(
	struct rcd_cma_client *client, const struct rcd_ctrl_cm_create_req *req, uint32_t *handle)
{
	struct rcd_cma_channel *channel = rcd_cma_channel_get(client, req->channel);
	struct rcd_cmid *id;

	RCD_ON_CONTROL();
	if (channel == NULL)
		return -ENOENT;
	if (!rcd_cma_space_valid(req->space) || !cmid_type_valid(req->qp_type))
		return -EPROTONOSUPPORT;
	id = cmid_new_id(client, channel);
	if (id == NULL)
		return -ENOMEM;
	id->space = req->space;
	id->qp_type = req->qp_type;
	*handle = id->handle;
	return 0;
}

struct rcd_cmid *
rcd_cmid_child(struct rcd_cmid *listener)
{
	struct rcd_cmid *id;

	RCD_ON_CONTROL();
	id = cmid_new_id(listener->client, listener->channel);
	if (id == NULL)
		return NULL;
	id->space = listener->space;
	id->qp_type = listener->qp_type;
	id->tos = listener->tos;
	id->has_tos = listener->has_tos;
	id->ack_timeout = listener->ack_timeout;
	rcd_cmid_step(
		id, id->qp_type == RCD_QP_UD ? RCD_CM_STEP_SIDR_REQ_CAME : RCD_CM_STEP_REQ_CAME);
	id->listener = listener;
	LIST_INSERT_HEAD(&listener->children, id, child_link);
	return id;
}

void
rcd_cmid_let_go(struct rcd_cmid *id)
{
	RCD_ON_CONTROL();
	rcd_cmid_leave_all(id);
	if (id->conn != NULL) {
		rcd_cm_set_cookie(id->conn, NULL);
		rcd_cm_release(id->conn, rcd_cma_now_ns(id->client->cma));
		id->conn = NULL;
	}
	cmid_stop_waiting(id);
}

uint32_t
rcd_cmid_destroy(struct rcd_cmid *id)
{
	struct rcd_cma_client *client = id->client;
	struct rcd_cmid *child;
	uint32_t count = 0;

	RCD_ON_CONTROL();
	/* Requests that nobody has seen are refused. */
	while ((child = LIST_FIRST(&id->children)) != NULL)
		count += rcd_cmid_destroy(child);
	if (id->listener != NULL)
		LIST_REMOVE(id, child_link);
	rcd_cmid_let_go(id);
	rcd_cma_port_release(id);
	count += rcd_cma_event_purge(id, NULL);
	id->channel->users--;
	LIST_REMOVE(id, all_link);
	rcd_table_del(&client->ids, id->handle);
	rcd_quota_uncharge(client->quota, RCD_RESOURCE_CM_IDS, 1);
	free(id);
	return count;
}

static bool
cmid_addr_valid(const struct rcd_ctrl_cm_addr *addr)
{
	struct rcd_gid gid = rcd_cma_gid(addr);

	return (addr->family == 4 && rcd_gid_is_ipv4(&gid)) ||
		(addr->family == 6 && !rcd_gid_is_ipv4(&gid));
}

int
rcd_cmid_bind(struct rcd_cmid *id, const void *asker, const struct rcd_ctrl_cm_addr *addr)
{
	const struct rcd_cma *cma = id->client->cma;
	uint64_t netns = rcd_cma_client_netns(id->client);
	struct rcd_cma_dev dev = { .serial = RCD_CMA_NO_DEV };
	int sgid_index = 0;
	int err;

	RCD_ON_CONTROL();
	if (!rcd_cmid_may(id, RCD_CM_STEP_BIND) || !cmid_addr_valid(addr))
		return -EINVAL;
	if (!rcd_cma_addr_any(addr)) {
		/* As the kernel has it: 127.0.0.1 can be bound to, and leads nowhere. */
		if (!rcd_cma_owner(cma, netns, addr, &dev, &sgid_index) &&
			!(rcd_cma_addr_itself(addr) &&
				rcd_cma_first(cma, netns, addr->family, &dev, &sgid_index)))
			return -ENODEV;
	}
	id->src = *addr;
	err = rcd_cma_port_take(id, asker);
	if (err != 0) {
		memset(&id->src, 0, sizeof(id->src));
		return err;
	}
	id->dev = dev.serial;
	id->sgid_index = sgid_index;
	rcd_cmid_step(id, RCD_CM_STEP_BIND);
	return 0;
}

int
rcd_cmid_listen(struct rcd_cmid *id, const void *asker, uint32_t backlog)
{
	struct rcd_ctrl_cm_addr any = { .addr = { [10] = 0xff, [11] = 0xff }, .family = 4 };
	int err;

	RCD_ON_CONTROL();
	/* Who has not bound listens on any address, and a port that is free. */
	err = rcd_cmid_may(id, RCD_CM_STEP_BIND) ? rcd_cmid_bind(id, asker, &any) : 0;
	if (err != 0)
		return err;
	/* Nobody connects to an initiator. */
	if (!rcd_cmid_may(id, RCD_CM_STEP_LISTEN) || id->qp_type == RCD_QP_XRC_SEND)
		return -EINVAL;
	err = rcd_cma_port_listen(id);
	if (err != 0)
		return err;
	id->backlog = backlog > 0 && backlog < RCD_CMA_BACKLOG_MAX ? backlog : RCD_CMA_BACKLOG_MAX;
	rcd_cmid_step(id, RCD_CM_STEP_LISTEN);
	return 0;
}

/* Put an address of the device in, without its port. */
static void
cmid_set_gid(struct rcd_ctrl_cm_addr *addr, uint8_t family, const struct rcd_gid *gid)
{
	memcpy(addr->addr, gid->raw, RCD_GID_LEN);
	addr->family = family;
}

int
rcd_cmid_resolve_addr(
	struct rcd_cmid *id, const void *asker, const struct rcd_ctrl_cm_resolve_req *req)
{
	struct rcd_cma *cma = id->client->cma;
	struct rcd_ctrl_cm_addr src = req->src;
	struct rcd_ctrl_cm_addr dst = req->dst;
	struct rcd_cma_dev dev;
	int sgid_index;
	int err;

	RCD_ON_CONTROL();
	if (!cmid_addr_valid(&dst) || (src.family != 0 && !cmid_addr_valid(&src)))
		return -EINVAL;
	if (rcd_cmid_may(id, RCD_CM_STEP_BIND)) {
		/* Bound to any address: the right one comes with the route. */
		if (src.family == 0) {
			src.family = dst.family;
			if (src.family == 4)
				src.addr[10] = src.addr[11] = 0xff;
		}
		err = rcd_cmid_bind(id, asker, &src);
		if (err != 0)
			return err;
	}
	if (!rcd_cmid_may(id, RCD_CM_STEP_ADDR_ASKED))
		return -EINVAL;
	err = rcd_cma_route(cma, id->netns, &id->src, &dst, &dev, &sgid_index);
	if (err != 0)
		return err;
	id->dev = dev.serial;
	id->sgid_index = sgid_index;
	cmid_set_gid(&id->src, dst.family, &dev.gids->entries[sgid_index].gid);
	/* To itself, by a name that is no address of a device. */
	if (rcd_cma_addr_itself(&dst))
		cmid_set_gid(&dst, dst.family, &dev.gids->entries[sgid_index].gid);
	id->dst = dst;
	rcd_cmid_step(id, RCD_CM_STEP_ADDR_ASKED);
	err = cmid_look(id);
	if (err == -EAGAIN)
		rcd_alarm_set(cma->alarms, &id->patience,
			rcd_cma_now_ns(cma) + (uint64_t)req->timeout_ms * 1000000);
	else
		cmid_resolved(id, err);
	return 0;
}

int
rcd_cmid_resolve_route(struct rcd_cmid *id)
{
	struct rcd_cma_dev dev;

	RCD_ON_CONTROL();
	if (!rcd_cma_dev(id->client->cma, id->dev, &dev) ||
		!rcd_cmid_step(id, RCD_CM_STEP_ROUTE_FOUND))
		return -EINVAL;
	id->path_mtu_bytes = dev.path_mtu_bytes;
	rcd_cma_event_tell(id, RCD_CMA_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

int
rcd_cmid_set(struct rcd_cmid *id, const struct rcd_ctrl_cm_set_req *req)
{
	RCD_ON_CONTROL();
	switch (req->option) {
	case RCD_CTRL_CM_TOS:
		if (req->value > UINT8_MAX)
			return -EINVAL;
		id->tos = (uint8_t)req->value;
		id->has_tos = true;
		return 0;
	case RCD_CTRL_CM_REUSEADDR:
		if (id->state != RCD_CMA_IDLE && req->value != 0 && id->state != RCD_CMA_BOUND)
			return -EINVAL;
		id->reuse = req->value != 0;
		return 0;
	case RCD_CTRL_CM_AFONLY:
		if (id->state != RCD_CMA_IDLE && id->state != RCD_CMA_BOUND)
			return -EINVAL;
		id->afonly = req->value != 0;
		return 0;
	case RCD_CTRL_CM_ACK_TIMEOUT:
		/* Code of the timer; 0 is for ever, and so no timeout of a connection here. */
		if (req->value > 31 || (id->qp_type != RCD_QP_RC && id->qp_type != RCD_QP_XRC_SEND))
			return -EINVAL;
		id->ack_timeout = (uint8_t)req->value;
		id->timeout = id->ack_timeout;
		return 0;
	default:
		return -ENOSYS;
	}
}

void
rcd_cmid_query(const struct rcd_cmid *id, struct rcd_ctrl_cm_query_rep *rep)
{
	struct rcd_cma_dev dev;
	struct rcd_gid sgid;

	RCD_ON_CONTROL();
	rep->src = id->src;
	rep->dst = id->dst;
	rep->device = RCD_CTRL_NO_HANDLE;
	if (!rcd_cma_dev(id->client->cma, id->dev, &dev))
		return;
	rep->device = dev.serial;
	sgid = dev.gids->entries[id->sgid_index].gid;
	memcpy(rep->sgid, sgid.raw, RCD_GID_LEN);
	rep->av.sgid_index = (uint8_t)id->sgid_index;
	memcpy(rep->av.dgid, id->dst.addr, RCD_GID_LEN);
	rep->av.tclass = rcd_cmid_tclass(id, &dev);
	if (id->state != RCD_CMA_ROUTE_RESOLVED && id->state != RCD_CMA_CONNECT &&
		id->state != RCD_CMA_DISCONNECT)
		return;
	rep->path_mtu_bytes = id->path_mtu_bytes;
	rep->av.hop_limit = RCD_HOP_LIMIT;
	rep->av.flow_label = id->way.flow_label;
}

uint32_t
rcd_cmid_count(const struct rcd_cma *cma, uint32_t serial)
{
	const struct rcd_cmid *id;
	uint32_t count = 0;

	RCD_ON_CONTROL();
	LIST_FOREACH(id, &cma->ids, all_link)
		count += serial == RCD_CMA_NO_DEV || id->dev == serial;
	return count;
}
