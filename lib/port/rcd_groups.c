/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A list of groups is gathered from those who want them, and given to the driver when it changes.
 * Without a netdev they are the device's own; with one the kernel's besides, which are asked for,
 * as it tells nobody when they change (RTNLGRP_IPV4_MCADDR and its like are of Linux 6.14).
 */
#include "rcd_groups.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_gid_table.h"
#include "rcd_lcore.h"
#include "rcd_lcore_ctl.h"
#include "rcd_limits.h"
#include "rcd_log.h"
#include "rcd_mcast.h"
#include "rcd_nd.h"
#include "rcd_ports.h"
#include "rcd_thread.h"

/* Of the calling process's namespace, whatever of /proc it can see. */
#define KERNEL_LIST "/proc/self/net/dev_mcast"

/* A list on its way. */
struct gathering {
	const struct rcd_dev *dev;
	uint32_t count;
	bool crowded; /**< there were more than fit */
	uint8_t macs[RCD_GROUPS_MAX][RCD_MAC_LEN];
};

const char *
rcd_groups_name(enum rcd_groups_kind kind)
{
	switch (kind) {
	case RCD_GROUPS_UNTOLD:
		return "untold";
	case RCD_GROUPS_ALL:
		return "all";
	case RCD_GROUPS_LISTED:
		return "listed";
	case RCD_GROUPS_PROMISCUOUS:
	case RCD_GROUPS_CROWDED:
		return "promiscuous";
	}
	return "";
}

static void
groups_add_mac(struct gathering *list, const uint8_t *mac)
{
	uint32_t at = 0;
	int order = 1;

	while (at < list->count && (order = memcmp(list->macs[at], mac, RCD_MAC_LEN)) < 0)
		at++;
	if (at < list->count && order == 0)
		return;
	if (list->count == RCD_GROUPS_MAX) {
		list->crowded = true;
		return;
	}
	memmove(list->macs[at + 1], list->macs[at], (list->count - at) * RCD_MAC_LEN);
	memcpy(list->macs[at], mac, RCD_MAC_LEN);
	list->count++;
}

static void
groups_add(struct gathering *list, const struct rcd_gid *gid)
{
	uint8_t mac[RCD_MAC_LEN];

	rcd_gid_multicast_mac(gid, mac);
	groups_add_mac(list, mac);
}

/* What a host listens to for its addresses: who asks for them, and for groups (RFC 4291, 2.8). */
static void
groups_add_own(struct gathering *list)
{
	static const struct rcd_gid all_nodes = { { 0xff, 0x02, [15] = 1 } };
	static const struct rcd_gid all_hosts = { { [10] = 0xff, 0xff, 224, 0, 0, 1 } };
	const struct rcd_gid_table *gids = list->dev->gids;

	groups_add(list, &all_nodes);
	groups_add(list, &all_hosts);
	for (uint32_t i = 0; i < gids->count; i++) {
		struct rcd_gid group;

		if (!gids->entries[i].used || rcd_gid_is_ipv4(&gids->entries[i].gid))
			continue;
		group = rcd_nd_solicited_node(&gids->entries[i].gid);
		groups_add(list, &group);
	}
}

/* What the kernel would tell a NIC: one line for each group of a netdev. @return 0 or -errno */
static int
groups_add_kernels(struct gathering *list)
{
	FILE *file = fopen(KERNEL_LIST, "re");
	unsigned int index, m[RCD_MAC_LEN];
	char line[128];

	if (file == NULL)
		return -errno;
	while (fgets(line, sizeof(line), file) != NULL) {
		uint8_t mac[RCD_MAC_LEN];

		if (sscanf(line, "%u %*s %*u %*u %2x%2x%2x%2x%2x%2x", &index, &m[0], &m[1], &m[2],
			    &m[3], &m[4], &m[5]) != 1 + RCD_MAC_LEN ||
			index != list->dev->ifindex)
			continue;
		for (int i = 0; i < RCD_MAC_LEN; i++)
			mac[i] = (uint8_t)m[i];
		groups_add_mac(list, mac);
	}
	fclose(file);
	return 0;
}

/* Those that queue pairs of an lcore are in. */
static int
groups_add_joined(struct rcd_lcore *lcore, void *arg)
{
	struct gathering *list = arg;
	const struct rcd_mcast_table *table = lcore->mcast[list->dev->lport.index];
	struct rcd_gid gid;

	for (uint32_t at = 0; table != NULL && rcd_mcast_next(table, &at, &gid);)
		groups_add(list, &gid);
	return 0;
}

/* @return 0; -ENOSPC: too many; -ENOMEM; or the list of the kernel's can't be had */
static int
groups_gather(struct gathering *list, const struct rcd_dev *dev)
{
	const struct rcd_lcores *lcores = dev->ports->conf.lcores;
	int err = 0;

	list->dev = dev;
	if (dev->lport.answers)
		groups_add_own(list);
	/* Anybody may fill the kernel's list: those of queue pairs come before it. */
	for (uint32_t i = 0; dev->shown && i < lcores->count; i++)
		if (__atomic_load_n(&lcores->lcore[i]->mcast[dev->lport.index], __ATOMIC_RELAXED) !=
			NULL)
			rcd_lcore_call(lcores->lcore[i], groups_add_joined, list);
	if (!dev->lport.answers && dev->ifindex != 0)
		err = groups_add_kernels(list);
	return err == 0 && list->crowded ? -ENOSPC : err;
}

static void
groups_hear_all(struct rcd_dev *dev, int err)
{
	struct rcd_groups *groups = &dev->groups;
	enum rcd_groups_kind kind = err == -ENOTSUP ? RCD_GROUPS_PROMISCUOUS : RCD_GROUPS_CROWDED;

	if (rte_eth_promiscuous_enable(dev->lport.port_id) == 0)
		groups->kind = kind;
	else if (err == -ENOTSUP)
		groups->kind = RCD_GROUPS_UNTOLD;
	else if (groups->kind == RCD_GROUPS_LISTED)
		RCD_LOG(WARNING,
			"%s: the port has no room for more groups (%s): some are not heard",
			dev->conf.name, strerror(-err));
}

/* @param always  whether the port may have forgotten them */
static void
groups_give(struct rcd_dev *dev, bool always)
{
	struct rcd_groups *groups = &dev->groups;
	struct gathering *list = calloc(1, sizeof(*list));
	bool heard_all = groups->kind == RCD_GROUPS_CROWDED;
	int err = list != NULL ? groups_gather(list, dev) : -ENOMEM;
	bool same = list != NULL && list->count == groups->count && err == groups->err &&
		memcmp(list->macs, groups->macs, list->count * sizeof(list->macs[0])) == 0;

	/* It is asked once for a list: whether it takes that is not asked ten times a second. */
	if (!always && same) {
		free(list);
		return;
	}
	if (list != NULL) {
		groups->count = list->count;
		groups->err = err;
		memcpy(groups->macs, list->macs, sizeof(groups->macs));
	}
	if (err == 0)
		err = rte_eth_dev_set_mc_addr_list(
			dev->lport.port_id, (struct rte_ether_addr *)groups->macs, groups->count);
	free(list);
	if (err != 0) {
		groups_hear_all(dev, err);
		return;
	}
	groups->kind = RCD_GROUPS_LISTED;
	if (heard_all && !groups->promiscuous)
		rte_eth_promiscuous_disable(dev->lport.port_id);
}

void
rcd_groups_tell(struct rcd_dev *dev)
{
	struct rcd_groups *groups = &dev->groups;

	RCD_ON_CONTROL();
	if (dev->lport.wire)
		return;
	if (groups->promiscuous)
		rte_eth_promiscuous_enable(dev->lport.port_id);
	if (rte_eth_allmulticast_enable(dev->lport.port_id) == 0)
		groups->kind = RCD_GROUPS_ALL;
	/* What a netdev hears is the kernel's to say, who knows what is joined on it. */
	else if (dev->conf.attach != RCD_ATTACH_NETDEV)
		groups_give(dev, true);
}

void
rcd_groups_follow(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	if (dev->started && dev->reset_ns == 0 &&
		(dev->groups.kind == RCD_GROUPS_LISTED || dev->groups.kind == RCD_GROUPS_CROWDED))
		groups_give(dev, false);
}

int
rcd_groups_set_promiscuous(struct rcd_dev *dev, bool all)
{
	enum rcd_groups_kind kind = dev->groups.kind;

	RCD_ON_CONTROL();
	dev->groups.promiscuous = all;
	if (all)
		return rte_eth_promiscuous_enable(dev->lport.port_id);
	/* Nobody else may need it. */
	return kind == RCD_GROUPS_PROMISCUOUS || kind == RCD_GROUPS_CROWDED
		? 0
		: rte_eth_promiscuous_disable(dev->lport.port_id);
}
