/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices: their coming and going, addresses and link state.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <stdlib.h>

#include "rcd_cma.h"
#include "rcd_kaddr.h"
#include "rcd_rx.h"

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
		if (engine->devs[i] != NULL && !engine->devs[i]->wire_waits &&
			engine->devs[i]->serial == serial)
			return engine->devs[i];
	return NULL;
}

void
rcd_dev_event(struct rcd_dev *dev, uint32_t type)
{
	struct rcd_session *session;

	LIST_FOREACH(session, &dev->engine->sessions, link)
		if (session->dev == dev)
			rcd_guest_event(session, type, RCD_CTRL_EVENT_PORT, 1);
}

uint64_t
rcd_dev_sum(const struct rcd_dev *dev, enum rcd_counter counter)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i <= dev->engine->lcore_count; i++)
		total += rcd_counter_get(&dev->counters[i], counter);
	return total;
}

uint64_t
rcd_engine_dev_count(struct rcd_engine *engine, const char *name, enum rcd_counter counter)
{
	const struct rcd_dev *dev = rcd_dev_find(engine, name);

	return dev != NULL ? rcd_dev_sum(dev, counter) : 0;
}

int
rcd_engine_dev_port(struct rcd_engine *engine, const char *name, uint16_t *port_id)
{
	const struct rcd_dev *dev = rcd_dev_find(engine, name);

	if (dev == NULL || dev->wire_waits)
		return -ENOENT;
	*port_id = dev->port_id;
	return 0;
}

static void
nothing(struct rcd_lcore *lcore, void *arg)
{
	(void)lcore;
	(void)arg;
}

int
rcd_dev_set_gids(struct rcd_dev *dev, const struct rcd_gid_table *table)
{
	struct rcd_gid_table *copy = malloc(sizeof(*copy));
	const struct rcd_gid_table *old = dev->gids;

	if (copy == NULL)
		return -ENOMEM;
	*copy = *table;
	copy->count = 0;
	for (uint32_t i = 0; i < RCD_GIDS_MAX; i++)
		if (copy->entries[i].used)
			copy->count = i + 1;
	__atomic_store_n(&dev->gids, copy, __ATOMIC_RELEASE);
	/* Each lcore begins a new round: none looks at the old table any more. */
	rcd_lcore_call_all(dev->engine, nothing, NULL);
	free((void *)(uintptr_t)old);
	if (dev->wire)
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
		return rcd_dev_set_gids(dev, &table);
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
	return rcd_dev_set_gids(dev, &table);
}

/* The address that every interface has (RFC 4291, appendix A); GID 0, as verbs users expect. */
static struct rcd_gid
link_local(const uint8_t *mac)
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
		up = rte_eth_link_get_nowait(dev->port_id, &link) == 0 && link.link_status;
	if (dev->peer != NULL)
		up = up && !dev->peer->admin_down;
	up = up && !dev->admin_down;
	if (up == dev->up)
		return;
	dev->up = up;
	RCD_LOG(NOTICE, "%s: link %s", dev->conf.name, up ? "up" : "down");
	if (!up)
		rcd_counter_add(
			&dev->counters[dev->engine->lcore_count], RCD_COUNTER_LINK_DOWNED, 1);
	rcd_dev_event(dev, up ? RCD_EVENT_PORT_ACTIVE : RCD_EVENT_PORT_ERR);
}

uint32_t
rcd_dev_speed_mbps(const struct rcd_dev *dev)
{
	struct rte_eth_link link = { .link_status = 0 };

	/* What the drivers of wires and netdevs say is made up. */
	if (dev->conf.attach != RCD_ATTACH_PORT ||
		rte_eth_link_get_nowait(dev->port_id, &link) != 0 ||
		link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		return 0;
	return link.link_speed;
}

struct join {
	struct rcd_dev *dev;
	struct rcd_txq *txqs; /**< one for each lcore */
};

static void
join(struct rcd_lcore *lcore, void *arg)
{
	const struct join *what = arg;
	struct rcd_txq *txq = &what->txqs[lcore->index];

	txq->dev = what->dev;
	TAILQ_INIT(&txq->blocked);
	lcore->txq_of[what->dev->index] = txq;
	lcore->txqs[lcore->txq_count++] = txq;
}

static void
leave(struct rcd_lcore *lcore, void *arg)
{
	const struct rcd_dev *dev = arg;
	struct rcd_txq *txq = lcore->txq_of[dev->index];

	if (txq == NULL)
		return;
	for (uint32_t i = 0; i < lcore->txq_count; i++)
		if (lcore->txqs[i] == txq)
			lcore->txqs[i--] = lcore->txqs[--lcore->txq_count];
	lcore->txq_of[dev->index] = NULL;
	for (uint16_t i = 0; i < txq->count; i++)
		rte_pktmbuf_free(txq->mbufs[txq->first + i]);
	rcd_mcast_table_destroy(lcore->mcast[dev->index]);
	lcore->mcast[dev->index] = NULL;
}

/* Buffers may be the device's own, and another device may have its number next. */
static void
forget(struct rcd_lcore *lcore, void *arg)
{
	rcd_rx_forget(lcore, ((const struct rcd_dev *)arg)->index);
}

static int
first_gids(struct rcd_dev *dev)
{
	struct rcd_gid_table table = { .count = 0 };
	uint32_t count = 0;

	table.entries[count].gid = link_local(dev->mac);
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
	return rcd_dev_set_gids(dev, &table);
}

static struct rcd_dev *
new_dev(struct rcd_engine *engine, const struct rcd_dev_conf *conf)
{
	struct rcd_dev *dev;
	uint32_t index = 0;

	while (index < RCD_DEVS_MAX && engine->devs[index] != NULL)
		index++;
	if (index == RCD_DEVS_MAX)
		return NULL;
	dev = calloc(1, sizeof(*dev));
	if (dev == NULL)
		return NULL;
	/* One set for each lcore, and one for the control thread. */
	dev->counters = rte_zmalloc("rocade_counters",
		(engine->lcore_count + 1) * sizeof(dev->counters[0]), RCD_CACHE_LINE);
	dev->txqs = rte_zmalloc(
		"rocade_txqs", engine->lcore_count * sizeof(dev->txqs[0]), RCD_CACHE_LINE);
	dev->gids = calloc(1, sizeof(*dev->gids));
	dev->engine = engine;
	dev->index = index;
	dev->conf = *conf;
	dev->wire = conf->attach == RCD_ATTACH_WIRE;
	dev->serial = engine->next_serial++;
	dev->hold[0] = dev->hold[1] = -1;
	dev->link_up = true;
	return dev;
}

static void
free_one(struct rcd_dev *dev)
{
	rcd_telemetry_lock();
	rcd_dev_show(dev->engine, dev->index, NULL);
	rcd_telemetry_unlock();
	if (dev->conf.attach == RCD_ATTACH_WIRE)
		rcd_detach_wire_rings(dev);
	rte_free(dev->counters);
	rte_free(dev->txqs);
	free((void *)(uintptr_t)dev->gids);
	free(dev);
}

static void
take_down(struct rcd_dev *dev);

/* Take a device away, and the other end of its wire with it. */
static void
remove_dev(struct rcd_dev *dev)
{
	struct rcd_dev *peer = dev->peer;

	take_down(dev);
	if (peer != NULL)
		take_down(peer);
	rcd_detach(dev);
	if (peer != NULL) {
		rcd_detach(peer);
		free_one(peer);
	}
	free_one(dev);
}

/* Attach one device and show it to the lcores. */
static int
bring_up(struct rcd_dev *dev, char *error, size_t error_len)
{
	struct join what = { .dev = dev, .txqs = dev->txqs };
	int err;

	if (dev->counters == NULL || dev->txqs == NULL || dev->gids == NULL) {
		snprintf(error, error_len, "%s: no memory", dev->conf.name);
		return -ENOMEM;
	}
	err = rcd_attach(dev, error, error_len);
	if (err != 0)
		return err;
	rcd_dev_set_mtu(dev, dev->mtu);
	err = first_gids(dev);
	if (err != 0)
		return err;
	rcd_dev_show(dev->engine, dev->index, dev);
	rcd_lcore_call_all(dev->engine, join, &what);
	if (dev->wire)
		rcd_kaddr_sync(dev->engine);
	if (dev->conf.attach == RCD_ATTACH_NETDEV)
		rcd_netlink_sync(dev);
	rcd_dev_check_link(dev);
	RCD_LOG(NOTICE, "%s: added, driver %s, port %u, path MTU %u", dev->conf.name, dev->driver,
		dev->port_id, dev->path_mtu);
	return 0;
}

static void
take_down(struct rcd_dev *dev)
{
	struct rcd_engine *engine = dev->engine;
	struct rcd_session *session, *next;

	for (session = LIST_FIRST(&engine->sessions); session != NULL; session = next) {
		next = LIST_NEXT(session, link);
		if (session->dev != dev)
			continue;
		rcd_guest_event(session, RCD_EVENT_DEVICE_FATAL, RCD_CTRL_EVENT_DEVICE, 0);
		rcd_session_end(session);
	}
	if (engine->devs[dev->index] == dev) {
		rcd_cma_dev_gone(engine->cma, dev->serial);
		rcd_neigh_flush(dev);
		rcd_lcore_call_all(engine, leave, dev);
		rcd_dev_show(engine, dev->index, NULL);
		/* A last round: nobody passes packets on any more, and none is left in hand. */
		rcd_lcore_call_all(engine, forget, dev);
		if (dev->wire)
			rcd_kaddr_sync(engine);
		RCD_LOG(NOTICE, "%s: removed", dev->conf.name);
	}
}

/* A wire has two ends, which come and go together; the peer's addresses come with its own conf. */
static int
add_wire(struct rcd_dev *dev, char *error, size_t error_len)
{
	struct rcd_dev *peer = rcd_dev_find(dev->engine, dev->conf.target);

	if (peer == NULL)
		return 0;
	if (!peer->wire_waits || strcmp(peer->conf.target, dev->conf.name) != 0) {
		snprintf(error, error_len, "%s: %s is no free end of a wire to it", dev->conf.name,
			peer->conf.name);
		return -EINVAL;
	}
	dev->peer = peer;
	peer->peer = dev;
	return 0;
}

static bool
name_valid(const char *name)
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
rcd_engine_dev_add(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len)
{
	struct rcd_dev *dev;
	int err;

	if (!name_valid(conf->name)) {
		snprintf(error, error_len, "a device's name has letters, digits and _-. only");
		return -EINVAL;
	}
	if (rcd_dev_find(engine, conf->name) != NULL) {
		snprintf(error, error_len, "%s: there is a device of this name", conf->name);
		return -EEXIST;
	}
	dev = new_dev(engine, conf);
	if (dev == NULL) {
		snprintf(error, error_len, "%s: no room for another device", conf->name);
		return -ENOSPC;
	}
	if (conf->attach == RCD_ATTACH_WIRE) {
		err = add_wire(dev, error, error_len);
		if (err == 0 && dev->peer == NULL) {
			/* The first end waits for the second, named but without a port. */
			dev->wire_waits = true;
			rcd_dev_show(engine, dev->index, dev);
			return 0;
		}
		if (err == 0)
			err = rcd_attach_wire_rings(dev, error, error_len);
		if (err == 0)
			err = bring_up(dev->peer, error, error_len);
		if (err == 0)
			dev->peer->wire_waits = false;
	} else {
		err = 0;
	}
	if (err == 0)
		err = bring_up(dev, error, error_len);
	if (err != 0)
		remove_dev(dev);
	return err;
}

int
rcd_engine_dev_del(struct rcd_engine *engine, const char *name)
{
	struct rcd_dev *dev = rcd_dev_find(engine, name);

	if (dev == NULL)
		return -ENOENT;
	remove_dev(dev);
	return 0;
}

void
rcd_dev_del_all(struct rcd_engine *engine)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (engine->devs[i] != NULL)
			remove_dev(engine->devs[i]);
}
