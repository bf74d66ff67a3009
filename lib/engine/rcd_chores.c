/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the control thread does again and again. Nearly all of it has deadlines or is told of: ports
 * alone are looked at, for their link, and for what their drivers said in a thread of EAL's.
 */
#include "rcd_chores.h"

#include "rcd_away.h"
#include "rcd_cma.h"
#include "rcd_conns.h"
#include "rcd_contexts.h"
#include "rcd_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_ethdev.h"
#include "rcd_groups.h"
#include "rcd_inbox.h"
#include "rcd_kaddr.h"
#include "rcd_log.h"
#include "rcd_neigh.h"
#include "rcd_netlink.h"
#include "rcd_ports.h"
#include "rcd_thread.h"
#include "rcd_unplug.h"

/** Between two times, whatever clients and the network do. */
#define EVERY_NS UINT64_C(20000000)

#define LINKS_NS      UINT64_C(100000000)  /**< between looks at links, with somebody to tell */
#define LINKS_IDLE_NS UINT64_C(1000000000) /**< without */
#define NETLINK_NS    UINT64_C(100000000)  /**< between questions that the kernel does not answer */

/* Whether a device may change its link, or ask for a reset, without a word. Wires are ours, and
 * netdevs the kernel's, but for what is behind net_impair. */
static bool
chores_has_ports(const struct rcd_engine *engine)
{
	bool found = false;

	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		const struct rcd_dev *dev = engine->ports.devs[i];

		found |= dev != NULL &&
			(dev->conf.impair[0] != '\0' ||
				(!dev->lport.wire && dev->conf.attach != RCD_ATTACH_NETDEV));
	}
	return found;
}

/* @return a guest's link whose netdev went, as with its namespace; NULL: there is none */
static struct rcd_dev *
chores_find_left(const struct rcd_engine *engine)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		struct rcd_dev *dev = engine->ports.devs[i];

		if (dev != NULL && dev->netdev_gone && dev->away != NULL && dev->away->guest)
			return dev;
	}
	return NULL;
}

static uint64_t
chores_links_due(void *arg, uint64_t done_ns)
{
	const struct rcd_engine *engine = arg;

	if (chores_find_left(engine) != NULL)
		return 0;
	if (!chores_has_ports(engine))
		return RCD_NEVER;
	return done_ns + (engine->conns.count > 0 ? LINKS_NS : LINKS_IDLE_NS);
}

static void
chores_check_links(void *arg, uint64_t now_ns)
{
	struct rcd_engine *engine = arg;
	struct rcd_dev *left;

	(void)now_ns;
	while ((left = chores_find_left(engine)) != NULL) {
		RCD_LOG(NOTICE, "%s: its netdev is gone", left->conf.name);
		rcd_ports_del(&engine->ports, left->conf.name);
	}
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		struct rcd_dev *dev = engine->ports.devs[i];

		if (dev != NULL && rcd_unplug_asked(dev)) {
			RCD_LOG(WARNING, "%s: its NIC is taken away", dev->conf.name);
			rcd_ports_del(&engine->ports, dev->conf.name);
		} else if (dev != NULL) {
			if (rcd_unplug_reset_asked(dev)) {
				rcd_ethdev_reset(dev);
				rcd_dev_set_mtu(dev, dev->mtu);
			}
			if (dev->tuntap != NULL && rcd_groups_matter(dev))
				rcd_netlink_sync_link(dev);
			rcd_groups_look(dev);
			rcd_dev_check_link(dev);
		}
	}
}

static uint64_t
chores_neighs_due(void *arg, uint64_t done_ns)
{
	const struct rcd_engine *engine = arg;

	(void)done_ns;
	return rcd_neigh_next(engine->ports.neighs);
}

static void
chores_tick_neighs(void *arg, uint64_t now_ns)
{
	const struct rcd_engine *engine = arg;

	rcd_neigh_tick(engine->ports.neighs, now_ns);
}

static uint64_t
chores_kaddrs_due(void *arg, uint64_t done_ns)
{
	const struct rcd_engine *engine = arg;

	(void)done_ns;
	return rcd_kaddr_next(&engine->ports);
}

static void
chores_renew_kaddrs(void *arg, uint64_t now_ns)
{
	struct rcd_engine *engine = arg;

	rcd_kaddr_tick(&engine->ports, now_ns);
}

/* What the kernel told was lost, and it did not say all of it again. */
static uint64_t
chores_netlink_due(void *arg, uint64_t done_ns)
{
	const struct rcd_engine *engine = arg;

	return rcd_ports_unsure(&engine->ports) ? done_ns + NETLINK_NS : RCD_NEVER;
}

static void
chores_ask_kernel(void *arg, uint64_t now_ns)
{
	struct rcd_engine *engine = arg;

	(void)now_ns;
	rcd_ports_ready(&engine->ports);
}

static uint64_t
chores_memory_due(void *arg, uint64_t done_ns)
{
	const struct rcd_engine *engine = arg;

	(void)done_ns;
	return __atomic_load_n(&engine->faulted, __ATOMIC_RELAXED) ? 0 : RCD_NEVER;
}

static void
chores_check_memory(void *arg, uint64_t now_ns)
{
	struct rcd_engine *engine = arg;

	(void)now_ns;
	/* Before the look: what comes during it is looked at again. */
	__atomic_store_n(&engine->faulted, false, __ATOMIC_SEQ_CST);
	rcd_contexts_check_memory(&engine->contexts);
}

/* Who was not heard, because what he may send could not be closed. */
static uint64_t
chores_refused_due(void *arg, uint64_t done_ns)
{
	const struct rcd_engine *engine = arg;

	(void)done_ns;
	return engine->conns.accept_later || engine->conns.inbox.read_later ? 0 : RCD_NEVER;
}

static void
chores_hear_refused(void *arg, uint64_t now_ns)
{
	struct rcd_engine *engine = arg;

	(void)now_ns;
	rcd_conns_accept_again(&engine->conns);
	if (engine->conns.inbox.read_later)
		rcd_inbox_read_again(&engine->conns);
}

static uint64_t
chores_connections_due(void *arg, uint64_t done_ns)
{
	const struct rcd_engine *engine = arg;

	(void)done_ns;
	return rcd_cma_next(engine->cm.cma);
}

static void
chores_tick_connections(void *arg, uint64_t now_ns)
{
	const struct rcd_engine *engine = arg;

	rcd_cma_tick(engine->cm.cma, now_ns);
}

static const struct rcd_chore_ops chores[RCD_CHORES] = {
	[RCD_CHORE_LINKS] = { chores_links_due, chores_check_links, EVERY_NS },
	[RCD_CHORE_NEIGHS] = { chores_neighs_due, chores_tick_neighs, RCD_NEIGH_TICK_NS },
	[RCD_CHORE_KADDRS] = { chores_kaddrs_due, chores_renew_kaddrs, EVERY_NS },
	[RCD_CHORE_NETLINK] = { chores_netlink_due, chores_ask_kernel, EVERY_NS },
	[RCD_CHORE_MEMORY] = { chores_memory_due, chores_check_memory, EVERY_NS },
	[RCD_CHORE_REFUSED] = { chores_refused_due, chores_hear_refused, EVERY_NS },
	[RCD_CHORE_CONNECTIONS] = { chores_connections_due, chores_tick_connections, EVERY_NS },
};

void
rcd_chores_open(struct rcd_engine *engine)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_CHORES; i++)
		rcd_chore_init(&engine->chores[i], &chores[i], engine, engine->started_ns);
}

void
rcd_chores_plan(struct rcd_engine *engine)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_CHORES; i++)
		rcd_chore_plan(&engine->chores[i], &engine->chore_alarms);
}
