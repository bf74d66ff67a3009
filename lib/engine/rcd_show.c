/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What is shown, fact by fact, with the names of iproute2's rdma where it has one.
 */
#include "rcd_show.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "rcd_absence.h"
#include "rcd_away.h"
#include "rcd_clock.h"
#include "rcd_closer.h"
#include "rcd_cmid.h"
#include "rcd_counter.h"
#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_engine_priv.h"
#include "rcd_eth.h"
#include "rcd_gid.h"
#include "rcd_groups.h"
#include "rcd_kaddr.h"
#include "rcd_lcore.h"
#include "rcd_lport.h"
#include "rcd_neigh.h"
#include "rcd_steer.h"
#include "rcd_thread.h"
#include "rcd_version.h"

static void
show_text(const struct rcd_show *show, const char *name, const char *val)
{
	show->ops->text(show->out, name, val);
}

static void
show_number(const struct rcd_show *show, const char *name, uint64_t val)
{
	show->ops->number(show->out, name, val);
}

static void
show_mac(const struct rcd_show *show, const char *name, const uint8_t *mac)
{
	char text[3 * RCD_MAC_LEN];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		mac[3], mac[4], mac[5]);
	show_text(show, name, text);
}

void
rcd_show_gid(const struct rcd_show *show, const char *name, const struct rcd_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	show_text(show, name, text);
}

static void
show_gids(const struct rcd_show *show, const struct rcd_gid_table *gids)
{
	show->ops->list(show->out, "gids");
	for (uint32_t i = 0; i < gids->count; i++) {
		if (!gids->entries[i].used)
			continue;
		show->ops->item(show->out, "index", i);
		rcd_show_gid(show, "gid", &gids->entries[i].gid);
		show_text(show, "type", "RoCE v2");
		show_number(show, "vlan", gids->entries[i].vlan_id);
		show->ops->end(show->out);
	}
	show->ops->end(show->out);
}

static void
show_names(const struct rcd_show *show, const struct rcd_dev *dev)
{
	show_number(show, "ifindex", dev->lport.serial);
	show_text(show, "ifname", dev->conf.name);
}

/* Of a network namespace what the operator called it, and what the kernel does; or whose it is. */
static void
show_netns(const struct rcd_show *show, const struct rcd_dev *dev)
{
	if (dev->lport.netns == 0)
		return;
	show_text(show, "netns", dev->conf.netns);
	show_number(show, "netns_cookie", dev->lport.netns);
	if (dev->away->guest)
		show_number(show, "uid", dev->away->uid);
}

/* What changes while the link is there, in more than one store. */
static void
show_link_rest(const struct rcd_show *show, const struct rcd_dev *dev)
{
	const char *netdev = rcd_dev_conf_netdev(&dev->conf);
	static const struct rcd_gid none;

	show_mac(show, "mac", dev->mac);
	show_gids(show, dev->gids);
	show_text(show, "steering", rcd_steer_name(dev->steer.kind));
	if (dev->groups.kind != RCD_GROUPS_UNTOLD)
		show_text(show, "multicast", rcd_groups_name(dev->groups.kind));
	if (dev->groups.kind == RCD_GROUPS_LISTED)
		show_number(show, "multicast_unheard", dev->groups.unheard);
	if (dev->pause != RCD_PAUSE_KEEP)
		show_text(show, "pause", rcd_pause_name(dev->pause));
	if (netdev != NULL)
		show_text(show, "netdev", netdev);
	if (dev->peer != NULL)
		show_text(show, "peer", dev->peer->conf.name);
	if (!rcd_gid_eq(&dev->conf.gateway4, &none))
		rcd_show_gid(show, "gateway4", &dev->conf.gateway4);
	if (!rcd_gid_eq(&dev->conf.gateway6, &none))
		rcd_show_gid(show, "gateway6", &dev->conf.gateway6);
	if (dev->conf.raw != RCD_RAW_OFF)
		show_text(show, "raw", rcd_raw_use_name(dev->conf.raw));
	if (dev->conf.cc[0] != '\0')
		show_text(show, "cc", dev->conf.cc);
	if (dev->conf.cc_class[0] != '\0')
		show_text(show, "cc_class", dev->conf.cc_class);
	if (dev->conf.sl_dscp[0] != '\0')
		show_text(show, "sl_dscp", dev->conf.sl_dscp);
	if (dev->conf.tos != 0)
		show_number(show, "tos", dev->conf.tos);
	if (dev->conf.sack != RCD_SACK_AUTO)
		show_text(show, "sack", rcd_sack_use_name(dev->conf.sack));
	if (dev->conf.impair[0] != '\0')
		show_text(show, "impair", dev->conf.impair);
	if (dev->pool != NULL)
		show_number(show, "buffers_free", rcd_show_eal_buffers(dev));
}

void
rcd_show_link(const struct rcd_show *show, const struct rcd_dev *dev)
{
	show_names(show, dev);
	show_number(show, "port", 1);
	show_text(show, "state", dev->up ? "ACTIVE" : "DOWN");
	show_text(show, "physical_state", dev->up ? "LINK_UP" : "DISABLED");
	show_text(show, "type", rcd_attach_name(dev->conf.attach));
	show_text(show, "driver", dev->driver);
	show_text(show, "link_layer", "Ethernet");
	show_number(show, "dpdk_port", dev->lport.port_id);
	show_number(show, "mtu", dev->mtu);
	show_number(show, "active_mtu", dev->path_mtu);
	show_netns(show, dev);
	if (show->all)
		show_link_rest(show, dev);
}

void
rcd_show_dev(const struct rcd_show *show, const struct rcd_dev *dev)
{
	uint64_t eui = rcd_eui64(dev->mac);
	char guid[24];

	snprintf(guid, sizeof(guid), "%04x:%04x:%04x:%04x", (uint16_t)(eui >> 48),
		(uint16_t)(eui >> 32), (uint16_t)(eui >> 16), (uint16_t)eui);
	show_names(show, dev);
	show_text(show, "node_type", "ca");
	show_text(show, "fw", RCD_ENGINE_VERSION);
	show_text(show, "node_guid", guid);
	show_text(show, "sys_image_guid", guid);
	show_netns(show, dev);
}

void
rcd_show_statistic(const struct rcd_show *show, const struct rcd_dev *dev)
{
	show_names(show, dev);
	show_number(show, "port", 1);
	show->ops->object(show->out, "counters");
	for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
		enum rcd_counter id = (enum rcd_counter)i;

		show_number(show, rcd_counter_name(id), rcd_lport_sum(&dev->lport, id));
	}
	rcd_show_eal_port(show, dev);
	if (show->all && (dev->conf.impair[0] != '\0' || rcd_dev_is_udp(dev)))
		rcd_show_eal_driver(show, dev);
	show->ops->end(show->out);
}

void
rcd_show_resource(const struct rcd_show *show, const struct rcd_dev *dev)
{
	uint32_t pd = 0, cq = 0, qp = 0, mr = 0, srq = 0, ctx = 0;
	const struct rcd_context *context;

	RCD_ON_CONTROL();
	LIST_FOREACH(context, &show->engine->contexts.list, link) {
		if (context->dev != dev)
			continue;
		ctx++;
		pd += context->pds.used;
		cq += context->cqs.used;
		qp += context->hqps.used;
		mr += context->umem.umr_count;
		srq += context->srqs.used;
	}
	show_names(show, dev);
	show_number(show, "pd", pd);
	show_number(show, "cq", cq);
	show_number(show, "qp", qp);
	show_number(show, "cm_id", rcd_cmid_count(show->engine->cm.cma, dev->lport.serial));
	show_number(show, "mr", mr);
	show_number(show, "ctx", ctx);
	show_number(show, "srq", srq);
}

/* Those that the kernel has of us, or why it has none; nothing when that was not asked for. */
static void
show_kernel_addresses(const struct rcd_show *show, const struct rcd_engine *engine)
{
	struct rcd_kaddr_state state;

	if (!rcd_kaddr_state(&engine->ports, &state)) {
		show->ops->none(show->out, "kernel_addresses");
		return;
	}
	show->ops->object(show->out, "kernel_addresses");
	if (state.missing != NULL) {
		show_text(show, "missing", state.missing);
	} else {
		show_text(show, "netdev", state.ifname);
		show->ops->list(show->out, "addresses");
		for (uint32_t i = 0; i < state.count; i++)
			rcd_show_gid(show, NULL, &state.addrs[i]);
		show->ops->end(show->out);
	}
	show->ops->end(show->out);
}

static void
show_lcores(const struct rcd_show *show, const struct rcd_engine *engine)
{
	show->ops->list(show->out, "lcores");
	for (uint32_t i = 0; i < engine->lcores.count; i++) {
		const struct rcd_lcore *lcore = engine->lcores.lcore[i];

		show->ops->item(show->out, "lcore", lcore->lcore_id);
		show_number(show, "polls", rcd_lcore_tally(&lcore->polls));
		show_number(show, "busy_polls", rcd_lcore_tally(&lcore->busy_polls));
		show_number(show, "longest_poll_work", rcd_lcore_tally(&lcore->longest_work));
		show_number(show, "away_ns", rcd_absence_away(&lcore->absence));
		if (show->all) {
			show_number(show, "contexts", lcore->context_count);
			show_number(show, "numa_node", (uint64_t)lcore->socket_id);
		}
		show->ops->end(show->out);
	}
	show->ops->end(show->out);
}

/* What belongs to no device: offences of clients, and what an lcore meets. */
static void
show_engine_counters(const struct rcd_show *show, struct rcd_engine *engine)
{
	show->ops->object(show->out, "counters");
	for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
		enum rcd_counter id = (enum rcd_counter)i;
		uint64_t total = rcd_counter_get(&engine->counters, id);
		struct rcd_context *context;
		struct rcd_xrcd *xrcd;

		for (uint32_t k = 0; k < engine->lcores.count; k++)
			total += rcd_counter_get(&engine->lcores.lcore[k]->counters, id);
		LIST_FOREACH(context, &engine->contexts.list, link)
			total += rcd_counter_get(&context->client.counters, id);
		LIST_FOREACH(xrcd, &engine->contexts.xrcds, link)
			total += rcd_counter_get(&xrcd->client.counters, id);
		if (total > 0)
			show_number(show, rcd_counter_name(id), total);
	}
	show->ops->end(show->out);
}

/* What only the control thread may look at. */
static void
show_engine_rest(const struct rcd_show *show, const struct rcd_engine *engine)
{
	RCD_ON_CONTROL();
	show_number(show, "neighbours", rcd_neigh_count(engine->ports.neighs));
	show_number(show, "uptime_ns", rcd_clock_ns() - engine->started_ns);
	show_number(show, "closing", rcd_closer_held(engine->closer));
	show->ops->flag(show->out, "hugepages", rcd_show_eal_hugepages());
	show_kernel_addresses(show, engine);
}

void
rcd_show_engine(const struct rcd_show *show)
{
	struct rcd_engine *engine = show->engine;
	static const char *const idle[] = { "auto", "poll", "yield", "sleep" };

	show_text(show, "version", RCD_ENGINE_VERSION);
	if (show->all) {
		show_number(show, "pid", (uint64_t)getpid());
		show_text(show, "runtime_dir", rcd_show_eal_dir());
		show_text(show, "idle", idle[engine->conf.idle]);
		show_text(show, "netns", engine->conf.netns_exclusive ? "exclusive" : "shared");
		show_text(show, "idle_first", idle[engine->lcores.idle]);
	}
	show_number(show, "clients", engine->conns.count);
	show_number(show, "queue_pairs", engine->qpns.used);
	show_number(show, "longest_step_work", engine->longest_work);
	if (show->all)
		show_engine_rest(show, engine);
	show_lcores(show, engine);
	if (show->all)
		show_engine_counters(show, engine);
}

void
rcd_show_counters(const struct rcd_show *show)
{
	for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
		enum rcd_counter id = (enum rcd_counter)i;

		show->ops->object(show->out, NULL);
		show_text(show, "name", rcd_counter_name(id));
		show_text(show, "unit", rcd_counter_unit(id));
		show_text(show, "description", rcd_counter_description(id));
		show->ops->end(show->out);
	}
}
