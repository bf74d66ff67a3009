/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as host of the CM service: its devices, neighbours, routes and clients, as lib/cma
 * asks for them. All of it belongs to the control thread.
 */
#include "rcd_cm_host.h"

#include <errno.h>

#include "rcd_clock.h"
#include "rcd_cma.h"
#include "rcd_cma_client.h"
#include "rcd_cma_dev.h"
#include "rcd_context.h"
#include "rcd_counter.h"
#include "rcd_cred.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_eth.h"
#include "rcd_gsi.h"
#include "rcd_hqp.h"
#include "rcd_lcore_ctl.h"
#include "rcd_lcores.h"
#include "rcd_link.h"
#include "rcd_lport.h"
#include "rcd_ports.h"
#include "rcd_random.h"
#include "rcd_request.h"
#include "rcd_route.h"
#include "rcd_rtnl.h"
#include "rcd_stream.h"
#include "rcd_thread.h"

static uint32_t
cm_host_random(void *arg)
{
	const struct rcd_cm_host *host = arg;

	return rcd_random_u32(host->conf.random);
}

static void
cm_host_describe(const struct rcd_dev *dev, struct rcd_cma_dev *out)
{
	*out = (struct rcd_cma_dev){
		.serial = dev->lport.serial,
		.name = dev->conf.name,
		.netns = dev->lport.netns,
		.gids = dev->gids,
		.peer_gids = dev->peer != NULL ? dev->peer->gids : NULL,
		.ifindex = dev->ifindex,
		.path_mtu_bytes = dev->path_mtu,
		.answers = dev->lport.answers,
		.up = dev->up,
		.sack = dev->conf.sack != RCD_SACK_OFF,
		.tos = dev->conf.tos,
	};
}

static bool
cm_host_dev_next(void *arg, uint32_t *place, struct rcd_cma_dev *out)
{
	const struct rcd_cm_host *host = arg;

	while (*place < RCD_DEVS_MAX) {
		const struct rcd_dev *dev = host->conf.ports->devs[(*place)++];

		if (dev == NULL)
			continue;
		cm_host_describe(dev, out);
		return true;
	}
	return false;
}

static uint64_t
cm_host_netns(const void *owner)
{
	const struct rcd_cm_user *user = owner;

	return rcd_ports_netns(user->host->conf.ports, user->netns);
}

static bool
cm_host_dev_of(void *arg, uint32_t serial, struct rcd_cma_dev *out)
{
	const struct rcd_cm_host *host = arg;
	const struct rcd_dev *dev = rcd_dev_by_serial(host->conf.ports, serial);

	if (dev != NULL)
		cm_host_describe(dev, out);
	return dev != NULL;
}

static void
cm_host_count(void *arg, uint32_t serial, enum rcd_counter counter, uint64_t add)
{
	const struct rcd_cm_host *host = arg;
	const struct rcd_dev *dev;

	if (serial == RCD_CMA_NO_DEV) {
		rcd_counter_add(host->conf.counters, counter, add);
		return;
	}
	dev = rcd_dev_by_serial(host->conf.ports, serial);
	if (dev != NULL)
		rcd_counter_add(rcd_lport_control_counters(&dev->lport), counter, add);
}

static int
cm_host_send(void *arg, const struct rcd_cm_way *way, const uint8_t *mad, struct rcd_waiter *waiter)
{
	const struct rcd_cm_host *host = arg;

	return rcd_gsi_send(host->gsi, way, mad, waiter);
}

static int
cm_host_say_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct rcd_cm_host *host = arg;

	for (uint32_t i = 0; i < host->saying_count; i++) {
		const struct rcd_cm_saying *saying = &host->sayings[i];

		rcd_link_membership(lcore, saying->lport, &saying->source, &saying->group,
			saying->vlan_id, saying->leave);
	}
	return 0;
}

void
rcd_cm_host_flush(struct rcd_cm_host *host)
{
	RCD_ON_CONTROL();
	rcd_gsi_flush(host->gsi);
	if (host->saying_count > 0)
		rcd_lcore_call(host->conf.lcores->lcore[0], cm_host_say_on_lcore, host);
	host->saying_count = 0;
}

static void
cm_host_membership(void *arg, uint32_t serial, const struct rcd_gid *source,
	const struct rcd_gid *group, uint16_t vlan_id, bool leave)
{
	struct rcd_cm_host *host = arg;
	const struct rcd_dev *dev = rcd_dev_by_serial(host->conf.ports, serial);

	if (dev == NULL)
		return;
	host->sayings[host->saying_count++] = (struct rcd_cm_saying){
		.lport = &dev->lport,
		.source = *source,
		.group = *group,
		.vlan_id = vlan_id,
		.leave = leave,
	};
	if (host->saying_count == RCD_CM_SAYINGS)
		rcd_cm_host_flush(host);
}

static int
cm_host_resolve(void *owner, uint32_t serial, int sgid_index, const struct rcd_gid *dgid,
	struct rcd_waiter *waiter)
{
	const struct rcd_cm_user *user = owner;
	struct rcd_dev *dev = rcd_dev_by_serial(user->host->conf.ports, serial);
	struct rcd_route_query query = {
		.sgid_index = sgid_index, .dgid = dgid, .quota = user->quota, .waiter = waiter
	};
	uint8_t mac[RCD_MAC_LEN];
	uint32_t hop;

	if (dev == NULL)
		return -ENETUNREACH;
	return rcd_route_resolve(dev, &query, mac, &hop);
}

static bool
cm_host_reachable(void *arg, uint32_t serial, int sgid_index, const struct rcd_gid *dgid)
{
	const struct rcd_cm_host *host = arg;
	struct rcd_dev *dev = rcd_dev_by_serial(host->conf.ports, serial);

	return dev != NULL && rcd_route_reachable(dev, sgid_index, dgid);
}

static int
cm_host_source_of(void *arg, uint64_t netns, const struct rcd_gid *dgid, uint32_t *ifindex,
	struct rcd_gid *src)
{
	const struct rcd_cm_host *host = arg;
	struct rcd_rtnl_way way = { .source = *src };
	int err = rcd_rtnl_way(rcd_ports_rtnl(host->conf.ports, netns), dgid, *ifindex, &way);

	if (err != 0)
		return err;
	*ifindex = way.ifindex;
	*src = way.source;
	return 0;
}

static bool
cm_host_may_bind(const void *asker)
{
	return rcd_cred_may(asker, RCD_CAP_NET_BIND_SERVICE);
}

static bool
cm_host_has_qpn(const void *asker, uint32_t qpn)
{
	const struct rcd_conn *conn = asker;

	return rcd_hqp_is_of(conn->cm.host->conf.lcores, conn, qpn);
}

static pid_t
cm_host_client_name(const void *owner, const char **comm)
{
	const struct rcd_cm_user *user = owner;
	const struct rcd_conn *conn =
		user->context != NULL ? rcd_context_first(user->context) : user->conn;

	*comm = conn->comm;
	return conn->pid;
}

static int
cm_host_stream(void *owner, int ends[2])
{
	const struct rcd_cm_user *user = owner;

	return rcd_stream_open(user->quota, SOCK_STREAM, ends);
}

static void
cm_host_stream_close(void *owner, int sock)
{
	const struct rcd_cm_user *user = owner;

	rcd_stream_close(user->quota, sock);
}

int
rcd_cm_host_init(struct rcd_cm_host *host, const struct rcd_cm_host_conf *conf)
{
	static const struct rcd_cma_ops ops = {
		.now_ns = rcd_clock_ns,
		.random = cm_host_random,
		.dev_next = cm_host_dev_next,
		.netns = cm_host_netns,
		.dev_of = cm_host_dev_of,
		.count = cm_host_count,
		.send = cm_host_send,
		.membership = cm_host_membership,
		.resolve = cm_host_resolve,
		.reachable = cm_host_reachable,
		.source = cm_host_source_of,
		.may_bind = cm_host_may_bind,
		.has_qpn = cm_host_has_qpn,
		.name = cm_host_client_name,
		.stream = cm_host_stream,
		.stream_close = cm_host_stream_close,
		.stream_send = rcd_ctrl_stream_send,
	};
	struct rcd_cma_conf cma = {
		.secret = conf->secret[0],
		.first_tid = conf->secret[1],
		.guid = conf->guid,
		.ops = &ops,
		.arg = host,
		.alarms = conf->alarms,
	};

	RCD_ON_CONTROL();
	*host = (struct rcd_cm_host){ .conf = *conf };
	host->cma = rcd_cma_create(&cma);
	host->gsi = rcd_gsi_create(conf->ports, conf->lcores, rcd_random_u32(conf->random));
	return host->cma != NULL && host->gsi != NULL ? 0 : -ENOMEM;
}

void
rcd_cm_host_fini(struct rcd_cm_host *host)
{
	RCD_ON_CONTROL();
	rcd_cma_destroy(host->cma);
	rcd_gsi_destroy(host->gsi);
	host->cma = NULL;
	host->gsi = NULL;
}

int
rcd_cm_host_serve(const struct rcd_request *r, int *fd)
{
	struct rcd_cm_user *user = r->context != NULL ? &r->context->cm : &r->conn->cm;

	RCD_ON_CONTROL();
	/* What a client has of this is made when it first asks. */
	if (user->cma == NULL)
		user->cma = rcd_cma_client_create(user->host->cma, user, user->quota);
	if (user->cma == NULL)
		return -ENOMEM;
	return rcd_cma_serve(user->cma, r->conn, r->op, r->in, r->out, fd);
}

bool
rcd_cm_host_has_sack(const struct rcd_cm_host *host, const struct rcd_context *context,
	const struct rcd_gid *peer, uint32_t remote_qpn)
{
	const struct rcd_cm_way way = { .netns = context->dev->lport.netns, .remote = *peer };
	const struct rcd_cm_user *user;
	const struct rcd_conn *conn;

	RCD_ON_CONTROL();
	if (context->dev->conf.sack == RCD_SACK_OFF)
		return false;
	user = rcd_cma_offered(host->cma, remote_qpn, &way, RCD_CM_OFFERS_SACK);
	if (user == NULL)
		return false;
	conn = user->context != NULL ? rcd_context_first(user->context) : user->conn;
	return conn != NULL && rcd_cred_same_process(conn, context);
}

void
rcd_cm_host_hand(struct rcd_cm_user *from, struct rcd_cm_user *to)
{
	RCD_ON_CONTROL();
	to->cma = from->cma;
	from->cma = NULL;
	if (to->cma != NULL)
		rcd_cma_client_hand(to->cma, to, to->quota);
}

void
rcd_cm_host_end(struct rcd_cm_user *user)
{
	RCD_ON_CONTROL();
	rcd_cma_client_destroy(user->cma);
	user->cma = NULL;
}
