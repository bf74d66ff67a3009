/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as host of the CM service: its devices, neighbours, routes and clients, as lib/cma
 * asks for them. All of it belongs to the control thread.
 */
#include "rcd_engine_priv.h"

#include "rcd_cm_host.h"

#include <errno.h>

#include "rcd_cma_client.h"
#include "rcd_gsi.h"

static uint32_t
host_random(void *arg)
{
	struct rcd_engine *engine = arg;

	return rcd_random_u32(&engine->random);
}

static void
describe(const struct rcd_dev *dev, struct rcd_cma_dev *out)
{
	*out = (struct rcd_cma_dev){
		.serial = dev->serial,
		.name = dev->conf.name,
		.gids = dev->gids,
		.peer_gids = dev->peer != NULL ? dev->peer->gids : NULL,
		.ifindex = dev->ifindex,
		.path_mtu_bytes = dev->path_mtu,
		.answers = dev->answers,
		.up = dev->up,
	};
}

static bool
dev_next(void *arg, uint32_t *place, struct rcd_cma_dev *out)
{
	const struct rcd_engine *engine = arg;

	while (*place < RCD_DEVS_MAX) {
		const struct rcd_dev *dev = engine->devs[(*place)++];

		if (dev == NULL || dev->wire_waits)
			continue;
		describe(dev, out);
		return true;
	}
	return false;
}

static bool
dev_of(void *arg, uint32_t serial, struct rcd_cma_dev *out)
{
	const struct rcd_dev *dev = rcd_dev_by_serial(arg, serial);

	if (dev != NULL)
		describe(dev, out);
	return dev != NULL;
}

static void
host_count(void *arg, uint32_t serial, enum rcd_counter counter, uint64_t add)
{
	struct rcd_engine *engine = arg;
	const struct rcd_dev *dev;

	if (serial == RCD_CMA_NO_DEV) {
		rcd_counter_add(&engine->counters, counter, add);
		return;
	}
	dev = rcd_dev_by_serial(engine, serial);
	if (dev != NULL)
		rcd_counter_add(&dev->counters[engine->lcore_count], counter, add);
}

static int
host_send(void *arg, const struct rcd_cm_way *way, const uint8_t *mad)
{
	return rcd_gsi_send(arg, way, mad);
}

/* What an lcore has to say. */
struct saying {
	struct rcd_dev *dev;
	const struct rcd_gid *source;
	const struct rcd_gid *group;
	uint16_t vlan_id;
	bool leave;
};

static void
say_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct saying *saying = arg;

	rcd_link_membership(
		lcore, saying->dev, saying->source, saying->group, saying->vlan_id, saying->leave);
}

static void
membership(void *arg, uint32_t serial, const struct rcd_gid *source, const struct rcd_gid *group,
	uint16_t vlan_id, bool leave)
{
	struct rcd_engine *engine = arg;
	struct saying saying = {
		.dev = rcd_dev_by_serial(engine, serial),
		.source = source,
		.group = group,
		.vlan_id = vlan_id,
		.leave = leave,
	};

	if (saying.dev != NULL)
		rcd_lcore_call(engine->lcores[0], say_on_lcore, &saying);
}

static int
resolve(void *owner, uint32_t serial, int sgid_index, const struct rcd_gid *dgid,
	struct rcd_cma_hop *hop)
{
	struct rcd_session *session = owner;
	struct rcd_dev *dev = rcd_dev_by_serial(session->engine, serial);
	struct rcd_next next;
	int err;

	if (dev == NULL)
		return -ENETUNREACH;
	err = rcd_neigh_resolve(session, dev, sgid_index, dgid, &next);
	hop->gid = next.gid;
	hop->vlan_id = next.vlan_id;
	return err;
}

static int
look(void *owner, uint32_t serial, int sgid_index, const struct rcd_cma_hop *hop)
{
	struct rcd_session *session = owner;
	struct rcd_dev *dev = rcd_dev_by_serial(session->engine, serial);
	struct rcd_next next = { .gid = hop->gid, .vlan_id = hop->vlan_id, .neighbour = true };

	return dev != NULL ? rcd_neigh_look(session, dev, sgid_index, &next) : -ENETUNREACH;
}

static bool
reachable(void *arg, uint32_t serial, int sgid_index, const struct rcd_gid *dgid)
{
	struct rcd_dev *dev = rcd_dev_by_serial(arg, serial);

	return dev != NULL && rcd_neigh_reachable(dev, sgid_index, dgid);
}

static int
source_of(void *arg, const struct rcd_gid *dgid, uint32_t *ifindex, struct rcd_gid *src)
{
	return rcd_netlink_source(arg, dgid, ifindex, src);
}

static bool
may_bind(const void *owner)
{
	return rcd_cred_may(owner, RCD_CAP_NET_BIND_SERVICE);
}

static bool
has_qpn(const void *owner, uint32_t qpn)
{
	return rcd_verbs_qpn_is_of(owner, qpn);
}

static pid_t
client_name(const void *owner, const char **comm)
{
	const struct rcd_session *session = owner;

	*comm = session->comm;
	return session->pid;
}

static int
stream(void *owner, int ends[2])
{
	return rcd_session_stream(owner, ends);
}

static void
stream_close(void *owner, int sock)
{
	rcd_session_stream_close(owner, sock);
}

int
rcd_cm_host_create(struct rcd_engine *engine)
{
	static const struct rcd_cma_ops ops = {
		.now_ns = rcd_clock_ns,
		.random = host_random,
		.dev_next = dev_next,
		.dev_of = dev_of,
		.count = host_count,
		.send = host_send,
		.membership = membership,
		.resolve = resolve,
		.look = look,
		.reachable = reachable,
		.source = source_of,
		.may_bind = may_bind,
		.has_qpn = has_qpn,
		.name = client_name,
		.stream = stream,
		.stream_close = stream_close,
		.stream_send = rcd_ctrl_stream_send,
	};
	struct rcd_cma_conf conf = {
		.secret = engine->secret[2],
		.first_tid = engine->secret[3],
		.guid = engine->generation,
		.ops = &ops,
		.arg = engine,
	};

	engine->cma = rcd_cma_create(&conf);
	return engine->cma != NULL ? rcd_gsi_create(engine) : -ENOMEM;
}

void
rcd_cm_host_destroy(struct rcd_engine *engine)
{
	rcd_cma_destroy(engine->cma);
	engine->cma = NULL;
	rcd_gsi_destroy(engine);
}

int
rcd_cm_host_serve(struct rcd_session *session, uint32_t op, const union rcd_ctrl_body *in,
	union rcd_ctrl_body *out, int *fd)
{
	/* What a client has of this is made when it first asks. */
	if (session->cma == NULL)
		session->cma =
			rcd_cma_client_create(session->engine->cma, session, &session->quota);
	return session->cma != NULL ? rcd_cma_serve(session->cma, op, in, out, fd) : -ENOMEM;
}

void
rcd_cm_host_end(struct rcd_session *session)
{
	rcd_cma_client_destroy(session->cma);
	session->cma = NULL;
}
