/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Views of devices: made, shown to lcores, and freed behind them.
 */
#include "rcd_dev_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_eth.h"
#include "rcd_kaddr.h"
#include "rcd_lcores.h"
#include "rcd_ports.h"
#include "rcd_thread.h"

/** A number that no VLAN has: places of devices are no neighbours'. */
#define NO_VLAN UINT16_MAX

/* What lcores are to see of a device now. @return NULL: no memory */
static struct rcd_lport_view *
dev_view_make(const struct rcd_dev *dev, const struct rcd_gid_table *gids)
{
	struct rcd_lport_view *view = calloc(1, sizeof(*view));

	if (view == NULL)
		return NULL;
	memcpy(view->mac, dev->mac, RCD_MAC_LEN);
	/* Who came last stands first, if two have a MAC. */
	for (uint32_t i = RCD_DEVS_MAX; i-- > 0;) {
		const struct rcd_dev *other = dev->ports->devs[i];

		if (other == NULL || !other->shown || !rcd_dev_reaches(dev, other) ||
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
dev_view_show(struct rcd_dev *dev, const struct rcd_lport_view *view)
{
	const struct rcd_lport_view *before = rcd_lport_set_view(&dev->lport, view);

	dev->gids = &view->gids;
	return (void *)(uintptr_t)before;
}

/* The view of each device tells the MACs of others: make all of them anew. @return 0 or -ENOMEM */
static int
dev_view_show_all(struct rcd_ports *ports)
{
	void *views[RCD_DEVS_MAX] = { NULL };
	int err = 0;

	for (uint32_t i = 0; i < RCD_DEVS_MAX && err == 0; i++) {
		const struct rcd_dev *dev = ports->devs[i];

		if (dev == NULL || !dev->shown)
			continue;
		views[i] = dev_view_make(dev, dev->gids);
		if (views[i] == NULL)
			err = -ENOMEM;
	}
	for (uint32_t i = 0; i < RCD_DEVS_MAX && err == 0; i++)
		if (views[i] != NULL)
			views[i] = dev_view_show(ports->devs[i], views[i]);
	if (err == 0)
		rcd_lcores_synchronize(ports->conf.lcores);
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		free(views[i]);
	return err;
}

/* Replace the table of addresses of a device that lcores see. */
static int
dev_view_set_gids(struct rcd_dev *dev, const struct rcd_gid_table *table)
{
	const struct rcd_lport_view *view = dev_view_make(dev, table);
	void *before;

	if (view == NULL)
		return -ENOMEM;
	before = dev_view_show(dev, view);
	rcd_lcores_synchronize(dev->ports->conf.lcores);
	free(before);
	if (dev->lport.wire)
		rcd_kaddr_sync(dev->ports);
	return 0;
}

int
rcd_dev_view_addr_add(struct rcd_dev *dev, const struct rcd_addr *addr)
{
	struct rcd_gid_table table = *dev->gids;

	RCD_ON_CONTROL();
	if (rcd_dev_gid_find(dev, &addr->gid) >= 0)
		return -EEXIST;
	for (uint32_t i = 0; i < RCD_GIDS_MAX; i++) {
		if (table.entries[i].used)
			continue;
		table.entries[i].gid = addr->gid;
		table.entries[i].prefix_len = addr->prefix_len;
		table.entries[i].vlan_id = addr->vlan_id;
		table.entries[i].used = true;
		return dev_view_set_gids(dev, &table);
	}
	return -ENOSPC;
}

int
rcd_dev_view_addr_del(struct rcd_dev *dev, const struct rcd_gid *gid)
{
	struct rcd_gid_table table = *dev->gids;
	int index = rcd_dev_gid_find(dev, gid);

	RCD_ON_CONTROL();
	if (index < 0)
		return -ENOENT;
	memset(&table.entries[index], 0, sizeof(table.entries[0]));
	return dev_view_set_gids(dev, &table);
}

/* The address that every interface has (RFC 4291, appendix A); GID 0, as verbs users expect. */
static struct rcd_gid
dev_view_link_local(const uint8_t *mac)
{
	struct rcd_gid gid = { { 0xfe, 0x80 } };
	uint64_t eui = rcd_eui64(mac);

	for (int i = 0; i < 8; i++)
		gid.raw[8 + i] = (uint8_t)(eui >> (56 - 8 * i));
	return gid;
}

/* Its address follows, unless the device has the new one already, or has another in that place. */
static int
dev_view_follow_mac(struct rcd_dev *dev, const uint8_t *before)
{
	struct rcd_gid was = dev_view_link_local(before);
	struct rcd_gid is = dev_view_link_local(dev->mac);
	struct rcd_gid_table table = *dev->gids;

	if (!rcd_gid_eq(&table.entries[0].gid, &was) || rcd_dev_gid_find(dev, &is) >= 0)
		return 0;
	table.entries[0].gid = is;
	return dev_view_set_gids(dev, &table);
}

int
rcd_dev_view_set_mac(struct rcd_dev *dev, const uint8_t *mac)
{
	uint8_t before[RCD_MAC_LEN];
	int err;

	RCD_ON_CONTROL();
	if (memcmp(dev->mac, mac, RCD_MAC_LEN) == 0)
		return 0;
	memcpy(before, dev->mac, RCD_MAC_LEN);
	memcpy(dev->mac, mac, RCD_MAC_LEN);
	if (!dev->shown)
		return 0;
	err = dev_view_show_all(dev->ports);
	if (err != 0) {
		memcpy(dev->mac, before, RCD_MAC_LEN);
		return err;
	}
	/* Behind the views, by which lcores know that it is a device of the engine. */
	rcd_hop_set(dev->ports->hops, dev->hop, mac);
	return dev_view_follow_mac(dev, before);
}

int
rcd_dev_view_begin(struct rcd_dev *dev)
{
	static const struct rcd_gid none;
	struct rcd_hop_key key = rcd_dev_hop_key(&dev->lport, NO_VLAN, &none);
	struct rcd_gid_table table = { .count = 0 };
	const struct rcd_lport_view *view;
	uint32_t count = 0;

	RCD_ON_CONTROL();
	dev->hop = rcd_hop_make(dev->ports->hops, &key, dev->mac);
	if (dev->hop == RCD_HOP_NONE)
		return -ENOMEM;
	table.entries[count].gid = dev_view_link_local(dev->mac);
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
	dev->ports->devs[dev->lport.index] = dev;
	dev->shown = true;
	view = dev_view_make(dev, &table);
	if (view == NULL)
		return -ENOMEM;
	dev_view_show(dev, view);
	return dev_view_show_all(dev->ports);
}

void
rcd_dev_view_end(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	rcd_lport_hide(&dev->lport);
	dev->shown = false;
	rcd_hop_put(dev->ports->hops, dev->hop);
	dev->hop = RCD_HOP_NONE;
	dev->ports->devs[dev->lport.index] = NULL;
	/* Without memory the others know a MAC too much: a place that no device has. */
	dev_view_show_all(dev->ports);
	if (dev->lport.wire)
		rcd_kaddr_sync(dev->ports);
}
