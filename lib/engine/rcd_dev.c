/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices: their coming and going, addresses and link state.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdlib.h>

#include "rcd_cma.h"
#include "rcd_kaddr.h"

struct rcd_dev *
rcd_dev_find(struct rcd_engine *engine, const char *name)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (engine->devs[i] != NULL && strcmp(engine->devs[i]->conf.name, name) == 0)
			return engine->devs[i];
	return NULL;
}

struct rcd_dev *
rcd_dev_by_serial(const struct rcd_engine *engine, uint32_t serial)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (engine->devs[i] != NULL && engine->devs[i]->lport.serial == serial)
			return engine->devs[i];
	return NULL;
}

void
rcd_dev_event(struct rcd_dev *dev, uint32_t type)
{
	struct rcd_context *context;

	LIST_FOREACH(context, &dev->engine->contexts, link)
		if (context->dev == dev)
			rcd_context_event(context, type, RCD_CTRL_EVENT_PORT, 1);
}

uint64_t
rcd_engine_dev_count(struct rcd_engine *engine, const char *name, enum rcd_counter counter)
{
	const struct rcd_dev *dev = rcd_dev_find(engine, name);

	return dev != NULL ? rcd_lport_sum(&dev->lport, counter) : 0;
}

int
rcd_engine_dev_port(struct rcd_engine *engine, const char *name, uint16_t *port_id)
{
	const struct rcd_dev *dev = rcd_dev_find(engine, name);

	if (dev == NULL)
		return -ENOENT;
	*port_id = dev->lport.port_id;
	return 0;
}

int
rcd_dev_gid_find(const struct rcd_dev *dev, const struct rcd_gid *gid)
{
	return rcd_gid_table_find(dev->gids, gid);
}

/* Whether packets of a device get to another without a port: the end of a wire is for the wire. */
static bool
dev_reaches(const struct rcd_dev *dev, const struct rcd_dev *other)
{
	return other == dev || (!dev->lport.wire && !other->lport.wire && !dev->conf.no_shortcut);
}

/* What lcores are to see of a device now. @return NULL: no memory */
static struct rcd_lport_view *
dev_view(const struct rcd_dev *dev, const struct rcd_gid_table *gids)
{
	struct rcd_lport_view *view = calloc(1, sizeof(*view));

	if (view == NULL)
		return NULL;
	memcpy(view->mac, dev->mac, RCD_MAC_LEN);
	/* Who came last stands first, if two have a MAC. */
	for (uint32_t i = RCD_DEVS_MAX; i-- > 0;) {
		const struct rcd_dev *other = dev->engine->devs[i];

		if (other == NULL || !other->shown || !dev_reaches(dev, other) ||
			rcd_lport_view_local(view, other->mac) >= 0)
			continue;
		memcpy(view->locals[view->local_count].mac, other->mac, RCD_MAC_LEN);
		view->locals[view->local_count++].index = (uint16_t)i;
	}
	view->gids = *gids;
	view->gids.count = 0;
	for (uint32_t i = 0; i < RCD_GIDS_MAX; i++)
		if (view->gids.entries[i].used)
			view->gids.count = i + 1;
	return view;
}

/* The one before, for free(). */
static void *
dev_show_view(struct rcd_dev *dev, const struct rcd_lport_view *view)
{
	const struct rcd_lport_view *before = rcd_lport_set_view(&dev->lport, view);

	dev->gids = &view->gids;
	return (void *)(uintptr_t)before;
}

/* The view of each device tells the MACs of others: make all of them anew. @return 0 or -ENOMEM */
static int
dev_show_all(struct rcd_engine *engine)
{
	void *views[RCD_DEVS_MAX] = { NULL };
	int err = 0;

	for (uint32_t i = 0; i < RCD_DEVS_MAX && err == 0; i++) {
		const struct rcd_dev *dev = engine->devs[i];

		if (dev == NULL || !dev->shown)
			continue;
		views[i] = dev_view(dev, dev->gids);
		if (views[i] == NULL)
			err = -ENOMEM;
	}
	for (uint32_t i = 0; i < RCD_DEVS_MAX && err == 0; i++)
		if (views[i] != NULL)
			views[i] = dev_show_view(engine->devs[i], views[i]);
	if (err == 0)
		rcd_lcores_synchronize(&engine->lcores);
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		free(views[i]);
	return err;
}

int
rcd_dev_set_mac(struct rcd_dev *dev, const uint8_t *mac)
{
	uint8_t before[RCD_MAC_LEN];
	int err;

	if (memcmp(dev->mac, mac, RCD_MAC_LEN) == 0)
		return 0;
	memcpy(before, dev->mac, RCD_MAC_LEN);
	memcpy(dev->mac, mac, RCD_MAC_LEN);
	err = dev->shown ? dev_show_all(dev->engine) : 0;
	if (err != 0)
		memcpy(dev->mac, before, RCD_MAC_LEN);
	return err;
}

/* Replace the table of addresses of a device that lcores see. */
static int
dev_set_gids(struct rcd_dev *dev, const struct rcd_gid_table *table)
{
	const struct rcd_lport_view *view = dev_view(dev, table);
	void *before;

	if (view == NULL)
		return -ENOMEM;
	before = dev_show_view(dev, view);
	rcd_lcores_synchronize(&dev->engine->lcores);
	free(before);
	if (dev->lport.wire)
		rcd_kaddr_sync(dev->engine);
	return 0;
}

int
rcd_dev_addr_add(struct rcd_dev *dev, const struct rcd_addr *addr)
{
	struct rcd_gid_table table = *dev->gids;

	if (rcd_dev_gid_find(dev, &addr->gid) >= 0)
		return -EEXIST;
	for (uint32_t i = 0; i < RCD_GIDS_MAX; i++) {
		if (table.entries[i].used)
			continue;
		table.entries[i].gid = addr->gid;
		table.entries[i].prefix_len = addr->prefix_len;
		table.entries[i].vlan_id = addr->vlan_id;
		table.entries[i].used = true;
		return dev_set_gids(dev, &table);
	}
	return -ENOSPC;
}

int
rcd_dev_addr_del(struct rcd_dev *dev, const struct rcd_gid *gid)
{
	struct rcd_gid_table table = *dev->gids;
	int index = rcd_dev_gid_find(dev, gid);

	if (index < 0)
		return -ENOENT;
	memset(&table.entries[index], 0, sizeof(table.entries[0]));
	return dev_set_gids(dev, &table);
}

/* The address that every interface has (RFC 4291, appendix A); GID 0, as verbs users expect. */
static struct rcd_gid
dev_link_local(const uint8_t *mac)
{
	struct rcd_gid gid = { { 0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3],
		mac[4], mac[5] } };

	return gid;
}

void
rcd_dev_set_mtu(struct rcd_dev *dev, uint32_t mtu)
{
	uint32_t path_mtu = RCD_PATH_MTU_MAX_BYTES;

	if (dev->mtu_max != 0 && mtu > dev->mtu_max)
		mtu = dev->mtu_max;
	if (dev->conf.attach == RCD_ATTACH_NETDEV && dev->conf.mtu != 0 && mtu > dev->conf.mtu)
		mtu = dev->conf.mtu;
	dev->mtu = mtu;
	while (path_mtu > RCD_PATH_MTU_MIN_BYTES && path_mtu + 80 > mtu)
		path_mtu /= 2;
	dev->path_mtu = path_mtu;
}

void
rcd_dev_check_link(struct rcd_dev *dev)
{
	struct rte_eth_link link = { .link_status = 0 };
	bool up;

	if (dev->conf.attach == RCD_ATTACH_NETDEV)
		up = dev->link_up;
	else
		up = rte_eth_link_get_nowait(dev->lport.port_id, &link) == 0 && link.link_status;
	if (dev->peer != NULL)
		up = up && !dev->peer->admin_down;
	up = up && !dev->admin_down;
	if (up == dev->up)
		return;
	dev->up = up;
	RCD_LOG(NOTICE, "%s: link %s", dev->conf.name, up ? "up" : "down");
	if (!up)
		rcd_counter_add(
			rcd_lport_control_counters(&dev->lport), RCD_COUNTER_LINK_DOWNED, 1);
	rcd_dev_event(dev, up ? RCD_EVENT_PORT_ACTIVE : RCD_EVENT_PORT_ERR);
}

uint32_t
rcd_dev_speed_mbps(const struct rcd_dev *dev)
{
	struct rte_eth_link link = { .link_status = 0 };

	/* What the drivers of wires and netdevs say is made up. */
	if (dev->conf.attach != RCD_ATTACH_PORT ||
		rte_eth_link_get_nowait(dev->lport.port_id, &link) != 0 ||
		link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		return 0;
	return link.link_speed;
}

/* The addresses that it begins with, and lcores may see it. @return 0 or -ENOMEM */
static int
dev_show_first(struct rcd_dev *dev)
{
	struct rcd_gid_table table = { .count = 0 };
	const struct rcd_lport_view *view;
	uint32_t count = 0;

	table.entries[count].gid = dev_link_local(dev->mac);
	table.entries[count].prefix_len = 64;
	table.entries[count++].used = true;
	for (uint32_t i = 0; i < dev->conf.addr_count; i++) {
		const struct rcd_addr *addr = &dev->conf.addrs[i];

		if (rcd_gid_eq(&addr->gid, &table.entries[0].gid))
			continue;
		table.entries[count].gid = addr->gid;
		table.entries[count].prefix_len = addr->prefix_len;
		table.entries[count].vlan_id = addr->vlan_id;
		table.entries[count++].used = true;
	}
	dev->engine->devs[dev->lport.index] = dev;
	dev->shown = true;
	view = dev_view(dev, &table);
	if (view == NULL)
		return -ENOMEM;
	dev_show_view(dev, view);
	return dev_show_all(dev->engine);
}

/* @param index  the first place that it may have */
static struct rcd_dev *
dev_new(struct rcd_engine *engine, const struct rcd_dev_conf *conf, uint32_t index, uint32_t serial)
{
	static const struct rcd_gid_table no_gids;
	struct rcd_dev *dev;

	while (index < RCD_DEVS_MAX && engine->devs[index] != NULL)
		index++;
	if (index == RCD_DEVS_MAX)
		return NULL;
	dev = calloc(1, sizeof(*dev));
	if (dev == NULL)
		return NULL;
	dev->engine = engine;
	dev->conf = *conf;
	dev->gids = &no_gids;
	dev->lport = (struct rcd_lport){
		.index = index,
		.serial = serial,
		.wire = conf->attach == RCD_ATTACH_WIRE,
		.answers = conf->attach != RCD_ATTACH_NETDEV,
		.impaired = conf->impair[0] != '\0',
	};
	dev->hold[0] = dev->hold[1] = -1;
	dev->link_up = true;
	dev->admin_down = conf->down;
	return dev;
}

static void
dev_free_one(struct rcd_dev *dev)
{
	if (dev->engine->devs[dev->lport.index] == dev)
		dev->engine->devs[dev->lport.index] = NULL;
	if (dev->conf.attach == RCD_ATTACH_WIRE)
		rcd_detach_wire_rings(dev);
	rcd_lport_fini(&dev->lport);
	free(dev);
}

static void
dev_take_down(struct rcd_dev *dev);

/* Take a device away, and the other end of its wire with it. */
static void
dev_remove(struct rcd_dev *dev)
{
	struct rcd_dev *peer = dev->peer;

	dev_take_down(dev);
	if (peer != NULL)
		dev_take_down(peer);
	rcd_detach(dev);
	if (peer != NULL) {
		rcd_detach(peer);
		dev_free_one(peer);
	}
	dev_free_one(dev);
}

/* Attach one device and show it to the lcores. */
static int
dev_bring_up(struct rcd_dev *dev, char *error, size_t error_len)
{
	int err;

	if (rcd_lport_init(&dev->lport, &dev->engine->lcores) != 0) {
		snprintf(error, error_len, "%s: no memory", dev->conf.name);
		return -ENOMEM;
	}
	err = rcd_attach(dev, error, error_len);
	if (err != 0)
		return err;
	rcd_dev_set_mtu(dev, dev->mtu);
	err = dev_show_first(dev);
	if (err != 0)
		return err;
	rcd_lport_show(&dev->lport);
	if (dev->lport.wire)
		rcd_kaddr_sync(dev->engine);
	if (dev->conf.attach == RCD_ATTACH_NETDEV)
		rcd_netlink_sync(dev);
	rcd_dev_check_link(dev);
	RCD_LOG(NOTICE, "%s: added, driver %s, port %u, path MTU %u", dev->conf.name, dev->driver,
		dev->lport.port_id, dev->path_mtu);
	return 0;
}

static void
dev_take_down(struct rcd_dev *dev)
{
	struct rcd_engine *engine = dev->engine;
	struct rcd_context *context, *next;

	for (context = LIST_FIRST(&engine->contexts); context != NULL; context = next) {
		next = LIST_NEXT(context, link);
		if (context->dev != dev)
			continue;
		rcd_context_event(context, RCD_EVENT_DEVICE_FATAL, RCD_CTRL_EVENT_DEVICE, 0);
		rcd_context_end(context);
	}
	if (dev->shown) {
		rcd_cma_dev_gone(engine->cma, dev->lport.serial);
		rcd_neigh_flush(engine->neighs, dev->lport.serial);
		rcd_lport_hide(&dev->lport);
		dev->shown = false;
		engine->devs[dev->lport.index] = NULL;
		/* Without memory the others know a MAC too much: a place that no device has. */
		dev_show_all(engine);
		if (dev->lport.wire)
			rcd_kaddr_sync(engine);
		RCD_LOG(NOTICE, "%s: removed", dev->conf.name);
	}
}

/* A wire has two ends, which come and go together, each with its own conf. */
static int
dev_add_wire(struct rcd_dev *dev, struct rcd_dev *peer, char *error, size_t error_len)
{
	int err;

	dev->peer = peer;
	peer->peer = dev;
	err = rcd_attach_wire_rings(dev, error, error_len);
	if (err == 0)
		err = dev_bring_up(peer, error, error_len);
	return err;
}

/* The first end waits for the second, named but without a port. */
static int
dev_add_end(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len)
{
	int err = rcd_wire_end_add(&engine->wire_ends, conf, engine->next_serial);

	if (err == 0)
		engine->next_serial++;
	else
		snprintf(error, error_len, "%s: no memory", conf->name);
	return err;
}

/* The end that waits for this one, or NULL. @return 0, or -EINVAL: the name is another's */
static int
dev_find_end(struct rcd_engine *engine, const struct rcd_dev_conf *conf, struct rcd_wire_end **end,
	char *error, size_t error_len)
{
	*end = NULL;
	if (conf->attach != RCD_ATTACH_WIRE)
		return 0;
	*end = rcd_wire_end_find(&engine->wire_ends, conf->target);
	if (*end == NULL ? rcd_dev_find(engine, conf->target) == NULL
			 : strcmp((*end)->conf.target, conf->name) == 0)
		return 0;
	snprintf(error, error_len, "%s: %s is no free end of a wire to it", conf->name,
		conf->target);
	return -EINVAL;
}

static bool
dev_name_taken(struct rcd_engine *engine, const char *name)
{
	return rcd_dev_find(engine, name) != NULL ||
		rcd_wire_end_find(&engine->wire_ends, name) != NULL;
}

static uint32_t
dev_places(const struct rcd_engine *engine)
{
	uint32_t places = RCD_DEVS_MAX - engine->wire_ends.count;

	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		places -= engine->devs[i] != NULL;
	return places;
}

static bool
dev_name_valid(const char *name)
{
	size_t len = strnlen(name, RCD_NAME_LEN);

	if (len == 0 || len == RCD_NAME_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= 'A' && name[i] <= 'Z') &&
			!(name[i] >= '0' && name[i] <= '9') && strchr("_-.", name[i]) == NULL)
			return false;
	return true;
}

int
rcd_dev_add(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len)
{
	struct rcd_wire_end *end;
	struct rcd_dev *dev, *peer = NULL;
	int err;

	if (!dev_name_valid(conf->name)) {
		snprintf(error, error_len, "a device's name has letters, digits and _-. only");
		return -EINVAL;
	}
	if (dev_name_taken(engine, conf->name)) {
		snprintf(error, error_len, "%s: there is a device of this name", conf->name);
		return -EEXIST;
	}
	err = dev_find_end(engine, conf, &end, error, error_len);
	if (err != 0)
		return err;
	if (dev_places(engine) == 0) {
		snprintf(error, error_len, "%s: no room for another device", conf->name);
		return -ENOSPC;
	}
	if (conf->attach == RCD_ATTACH_WIRE && end == NULL)
		return dev_add_end(engine, conf, error, error_len);
	if (end != NULL) {
		peer = dev_new(engine, &end->conf, 0, end->serial);
		rcd_wire_end_del(&engine->wire_ends, end);
	}
	dev = dev_new(
		engine, conf, peer != NULL ? peer->lport.index + 1 : 0, engine->next_serial++);
	if (dev == NULL || (peer == NULL && conf->attach == RCD_ATTACH_WIRE)) {
		snprintf(error, error_len, "%s: no memory", conf->name);
		if (dev != NULL || peer != NULL)
			dev_free_one(dev != NULL ? dev : peer);
		return -ENOMEM;
	}
	err = peer != NULL ? dev_add_wire(dev, peer, error, error_len) : 0;
	if (err == 0)
		err = dev_bring_up(dev, error, error_len);
	if (err != 0)
		dev_remove(dev);
	return err;
}

int
rcd_dev_del(struct rcd_engine *engine, const char *name)
{
	struct rcd_wire_end *end = rcd_wire_end_find(&engine->wire_ends, name);
	struct rcd_dev *dev = rcd_dev_find(engine, name);

	if (end != NULL)
		rcd_wire_end_del(&engine->wire_ends, end);
	else if (dev != NULL)
		dev_remove(dev);
	else
		return -ENOENT;
	return 0;
}

int
rcd_engine_dev_add(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len)
{
	int err;

	rcd_telemetry_lock();
	err = rcd_dev_add(engine, conf, error, error_len);
	rcd_telemetry_unlock();
	return err;
}

int
rcd_engine_dev_del(struct rcd_engine *engine, const char *name)
{
	int err;

	rcd_telemetry_lock();
	err = rcd_dev_del(engine, name);
	rcd_telemetry_unlock();
	return err;
}

void
rcd_dev_del_all(struct rcd_engine *engine)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (engine->devs[i] != NULL)
			dev_remove(engine->devs[i]);
	rcd_wire_ends_fini(&engine->wire_ends);
}
