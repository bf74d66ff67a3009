/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A list of groups is gathered from those who want them, and given to the driver when it changes.
 * Without a netdev they are the device's own; with one the kernel's besides.
 */
#include "rcd_groups.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_gid_table.h"
#include "rcd_log.h"
#include "rcd_nd.h"
#include "rcd_thread.h"

/* Looks until what a driver refused for reasons of its own is tried again. */
#define RETRY_LOOKS 16

/* A list on its way. */
struct gathering {
	struct rcd_groups_list list;
	uint32_t kept;                  /**< so many of it are the host's, or heard already */
	uint16_t order[RCD_GROUPS_MAX]; /**< places of its MACs, those in order */
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

void
rcd_groups_fini(struct rcd_groups *groups)
{
	RCD_ON_CONTROL();
	rcd_joined_fini(&groups->joined);
	rcd_memberships_fini(&groups->udp);
	rcd_kgroups_fini(&groups->kernels);
}

/* @param at  its place in the order, or that where it would be */
static bool
groups_find(const struct gathering *all, const uint8_t *mac, uint32_t *at)
{
	uint32_t from = 0, to = all->list.count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		int order = memcmp(all->list.macs[all->order[middle]], mac, RCD_MAC_LEN);

		if (order == 0)
			return true;
		if (order < 0)
			from = middle + 1;
		else
			to = middle;
	}
	*at = from;
	return false;
}

/* Behind those that are there, unless it is one of them. */
static void
groups_add_mac(struct gathering *all, const uint8_t *mac)
{
	struct rcd_groups_list *list = &all->list;
	uint32_t at;

	if (groups_find(all, mac, &at))
		return;
	if (list->count == RCD_GROUPS_MAX) {
		list->more++;
		return;
	}
	memmove(&all->order[at + 1], &all->order[at], (list->count - at) * sizeof(all->order[0]));
	all->order[at] = (uint16_t)list->count;
	memcpy(list->macs[list->count++], mac, RCD_MAC_LEN);
}

static void
groups_add(struct gathering *all, const struct rcd_gid *gid)
{
	uint8_t mac[RCD_MAC_LEN];

	rcd_gid_multicast_mac(gid, mac);
	groups_add_mac(all, mac);
}

/* What a host listens to for its addresses: who asks for them, and for groups (RFC 4291, 2.8). */
static void
groups_add_own(struct gathering *all, const struct rcd_gid_table *gids)
{
	static const struct rcd_gid all_nodes = { { 0xff, 0x02, [15] = 1 } };
	static const struct rcd_gid all_hosts = { { [10] = 0xff, 0xff, 224, 0, 0, 1 } };

	groups_add(all, &all_nodes);
	groups_add(all, &all_hosts);
	for (uint32_t i = 0; i < gids->count; i++) {
		struct rcd_gid group;

		if (!gids->entries[i].used || rcd_gid_is_ipv4(&gids->entries[i].gid))
			continue;
		group = rcd_nd_solicited_node(&gids->entries[i].gid);
		groups_add(all, &group);
	}
}

/* By others than the host. */
static bool
groups_wanted(const struct rcd_dev *dev, const uint8_t *mac)
{
	const struct rcd_kgroups_list *kernels = &dev->groups.kernels.now;
	bool found = rcd_joined_has(&dev->groups.joined, mac);

	for (uint32_t i = 0; !dev->lport.answers && !found && i < kernels->count; i++)
		found = memcmp(kernels->macs[i], mac, RCD_MAC_LEN) == 0;
	return found;
}

/*
 * Who is heard goes on to be, however many others come. Anybody may fill the kernel's list: those
 * of queue pairs come before it.
 */
static void
groups_gather(struct gathering *all, const struct rcd_dev *dev)
{
	const struct rcd_groups *groups = &dev->groups;
	const struct rcd_kgroups_list *kernels = &groups->kernels.now;

	if (dev->lport.answers)
		groups_add_own(all, dev->gids);
	for (uint32_t i = 0; i < groups->heard.count; i++)
		if (groups_wanted(dev, groups->heard.macs[i]))
			groups_add_mac(all, groups->heard.macs[i]);
	all->kept = all->list.count;
	for (uint32_t i = 0; i < groups->joined.count; i++)
		groups_add_mac(all, groups->joined.macs[i].mac);
	if (dev->lport.answers)
		return;
	for (uint32_t i = 0; i < kernels->count; i++)
		groups_add_mac(all, kernels->macs[i]);
	all->list.more += kernels->more;
}

static int
groups_set(const struct rcd_dev *dev, const struct rcd_groups_list *list, uint32_t count)
{
	return rte_eth_dev_set_mc_addr_list(
		dev->lport.port_id, (struct rte_ether_addr *)(uintptr_t)list->macs, count);
}

/* @return whether the port hears everything now */
static bool
groups_hear_all(struct rcd_dev *dev, int err)
{
	struct rcd_groups *groups = &dev->groups;

	if (rte_eth_promiscuous_enable(dev->lport.port_id) != 0)
		return false;
	groups->kind = err == -ENOTSUP ? RCD_GROUPS_PROMISCUOUS : RCD_GROUPS_CROWDED;
	groups->unheard = 0;
	groups->stale = err != -ENOTSUP && err != -ENOSPC && err != -EINPROGRESS;
	return true;
}

/*
 * The longest list that the port takes: what it says of one is true of longer ones. It begins with
 * as many as are heard already, so that those go on to be.
 */
static void
groups_give_some(struct rcd_dev *dev, const struct gathering *all)
{
	struct rcd_groups *groups = &dev->groups;
	uint32_t next = groups->room > 0 ? RTE_MIN(groups->room, all->list.count) : all->kept;
	uint32_t taken = 0, refused = all->list.count + 1;
	uint32_t last = 0;
	bool done;

	while (refused - taken > 1) {
		last = next > taken && next < refused ? next : taken + (refused - taken) / 2;
		next = 0;
		if (groups_set(dev, &all->list, last) == 0)
			taken = last;
		else
			refused = last;
		if (taken == groups->room && taken > 0)
			refused = taken + 1;
	}
	/* Drivers may forget what they had with what they refuse. */
	done = taken > 0 && (last == taken || groups_set(dev, &all->list, taken) == 0);
	groups->room = taken < all->list.count ? taken : 0;
	groups->stale = !done && all->list.count > 0;
	groups->heard = all->list;
	groups->heard.count = done ? taken : 0;
}

/* All of it is in no way to be heard. */
static void
groups_make_do(struct rcd_dev *dev, const struct gathering *all, int err)
{
	struct rcd_groups *groups = &dev->groups;
	uint32_t before = groups->unheard;

	groups_give_some(dev, all);
	groups->unheard = all->list.count + all->list.more - groups->heard.count;
	groups->kind = RCD_GROUPS_LISTED;
	if (before == 0 && groups->unheard > 0)
		RCD_LOG(WARNING,
			"%s: the port has no room for more groups (%s): %u of %u are not heard",
			dev->conf.name, strerror(-err), groups->unheard,
			all->list.count + all->list.more);
}

static void
groups_give(struct rcd_dev *dev, const struct gathering *all)
{
	struct rcd_groups *groups = &dev->groups;
	bool everything = groups->kind == RCD_GROUPS_CROWDED;
	bool news = groups->all && !groups->told_all;
	int err = all->list.more > 0 ? -ENOSPC : groups->kernels_err;

	if (groups->kernels_err != 0 && groups->kernels_err != -EINPROGRESS &&
		groups->kernels_err != groups->told_err)
		RCD_LOG(WARNING, "%s: the kernel's groups are not known: %s", dev->conf.name,
			strerror(-groups->kernels_err));
	groups->wanted = all->list;
	groups->told_all = groups->all;
	groups->told_err = groups->kernels_err;
	if (groups->all && groups_hear_all(dev, -ENOSPC))
		return;
	if (news)
		RCD_LOG(NOTICE, "%s: the port can't hear all groups", dev->conf.name);
	if (err == 0 && groups->room > 0 && all->list.count > groups->room)
		err = -ENOSPC;
	if (err == 0)
		err = groups_set(dev, &all->list, all->list.count);
	if (err == 0) {
		groups->kind = RCD_GROUPS_LISTED;
		groups->stale = false;
		groups->unheard = 0;
		groups->heard = all->list;
		if (everything && !groups->promiscuous)
			rte_eth_promiscuous_disable(dev->lport.port_id);
		return;
	}
	if (groups_hear_all(dev, err))
		return;
	if (err == -ENOTSUP)
		groups->kind = RCD_GROUPS_UNTOLD;
	else
		groups_make_do(dev, all, err);
}

/*
 * A list is given once: whether a port takes it is not asked ten times a second. But for one that
 * was given in vain, whatever for.
 *
 * @param always  whether the port may have forgotten it
 * @param now     whether there is time for a port that has no room for all
 */
static void
groups_update(struct rcd_dev *dev, bool always, bool now)
{
	struct rcd_groups *groups = &dev->groups;
	struct gathering *all = calloc(1, sizeof(*all));
	bool again = groups->stale && now && ++groups->looks % RETRY_LOOKS == 0;
	bool same;

	if (all == NULL) {
		groups->stale = true;
		groups->kind = always ? RCD_GROUPS_LISTED : groups->kind;
		return;
	}
	groups_gather(all, dev);
	same = groups->all == groups->told_all && all->list.count == groups->wanted.count &&
		all->list.more == groups->wanted.more && groups->told_err == groups->kernels_err &&
		memcmp(all->list.macs, groups->wanted.macs,
			all->list.count * sizeof(all->list.macs[0])) == 0;
	if (always || again ||
		(!same && (now || (groups->unheard == 0 && groups->kind == RCD_GROUPS_LISTED))))
		groups_give(dev, all);
	free(all);
}

void
rcd_groups_tell(struct rcd_dev *dev)
{
	struct rcd_groups *groups = &dev->groups;

	RCD_ON_CONTROL();
	/* The kernel's sockets have no list: they get what is joined. */
	if (dev->lport.wire || rcd_dev_is_udp(dev))
		return;
	groups->heard.count = groups->room = 0;
	if (groups->promiscuous)
		rte_eth_promiscuous_enable(dev->lport.port_id);
	if (rte_eth_allmulticast_enable(dev->lport.port_id) == 0)
		groups->kind = RCD_GROUPS_ALL;
	/* What a netdev hears is the kernel's to say, who knows what is joined on it. */
	else if (dev->conf.attach != RCD_ATTACH_NETDEV)
		groups_update(dev, true, true);
}

bool
rcd_groups_matter(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	return dev->started && dev->reset_ns == 0 &&
		(dev->groups.kind == RCD_GROUPS_LISTED || dev->groups.kind == RCD_GROUPS_CROWDED);
}

void
rcd_groups_follow(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	if (rcd_groups_matter(dev))
		groups_update(dev, false, false);
}

void
rcd_groups_look(struct rcd_dev *dev)
{
	struct rcd_groups *groups = &dev->groups;

	RCD_ON_CONTROL();
	if (!rcd_groups_matter(dev))
		return;
	if (!dev->lport.answers && dev->ifindex != 0) {
		groups->kernels_err =
			rcd_kgroups_look(&groups->kernels, RCD_KGROUPS_FILE, dev->ifindex);
		/* The first time a long one takes a while: none is better than one without it. */
		if (groups->kernels_err == 0 && !groups->kernels.known)
			groups->kernels_err = -EINPROGRESS;
	}
	groups_update(dev, false, true);
}

int
rcd_groups_join(struct rcd_dev *dev, const struct rcd_gid *group)
{
	struct rcd_groups *groups = &dev->groups;
	int err;

	RCD_ON_CONTROL();
	err = rcd_joined_add(&groups->joined, group);
	if (err != 0 || !rcd_dev_is_udp(dev))
		return err;
	err = rcd_memberships_add(&groups->udp, dev->hold, dev->ifindex, group);
	if (err != 0)
		rcd_joined_del(&groups->joined, group);
	return err;
}

void
rcd_groups_leave(struct rcd_dev *dev, const struct rcd_gid *group)
{
	RCD_ON_CONTROL();
	rcd_joined_del(&dev->groups.joined, group);
	if (rcd_dev_is_udp(dev))
		rcd_memberships_del(&dev->groups.udp, dev->hold, dev->ifindex, group);
}

int
rcd_groups_set_promiscuous(struct rcd_dev *dev, bool everything)
{
	enum rcd_groups_kind kind = dev->groups.kind;

	RCD_ON_CONTROL();
	dev->groups.promiscuous = everything;
	if (everything)
		return rte_eth_promiscuous_enable(dev->lport.port_id);
	/* Nobody else may need it. */
	return kind == RCD_GROUPS_PROMISCUOUS || kind == RCD_GROUPS_CROWDED
		? 0
		: rte_eth_promiscuous_disable(dev->lport.port_id);
}

void
rcd_groups_set_all(struct rcd_dev *dev, bool all)
{
	RCD_ON_CONTROL();
	dev->groups.all = all;
	if (rcd_groups_matter(dev))
		groups_update(dev, false, true);
}
