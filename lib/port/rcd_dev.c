/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices one by one: how they are found, what they know of each other, their MTU.
 */
#include "rcd_dev.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "rcd_away.h"
#include "rcd_eth.h"
#include "rcd_limits.h"
#include "rcd_ports.h"
#include "rcd_thread.h"

struct rcd_dev *
rcd_dev_find(const struct rcd_ports *ports, const char *name)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL && strcmp(ports->devs[i]->conf.name, name) == 0)
			return ports->devs[i];
	return NULL;
}

void
rcd_dev_plain_name(const struct rcd_dev *dev, char *name)
{
	RCD_ON_CONTROL();
	snprintf(name, RCD_NAME_LEN, "%.*s", (int)strcspn(dev->conf.name, "@"), dev->conf.name);
}

struct rcd_dev *
rcd_dev_by_serial(const struct rcd_ports *ports, uint32_t serial)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL && ports->devs[i]->lport.serial == serial)
			return ports->devs[i];
	return NULL;
}

int
rcd_dev_gid_find(const struct rcd_dev *dev, const struct rcd_gid *gid)
{
	RCD_ON_CONTROL();
	return rcd_gid_table_find(dev->gids, gid);
}

bool
rcd_dev_knows(const struct rcd_dev *dev, const struct rcd_dev *other)
{
	RCD_ON_CONTROL();
	return other == dev ||
		(!dev->lport.wire && !other->lport.wire && dev->lport.netns == other->lport.netns);
}

bool
rcd_dev_reaches(const struct rcd_dev *dev, const struct rcd_dev *other)
{
	RCD_ON_CONTROL();
	return other == dev || (rcd_dev_knows(dev, other) && !dev->conf.no_shortcut);
}

bool
rcd_dev_by_address(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	return dev->conf.attach == RCD_ATTACH_NETDEV &&
		(dev->conf.mode == RCD_NETDEV_UDP || dev->conf.mode == RCD_NETDEV_AUTO);
}

bool
rcd_dev_is_udp(const struct rcd_dev *dev)
{
	return dev->mode == RCD_NETDEV_UDP;
}

struct rcd_hop_key
rcd_dev_hop_key(const struct rcd_lport *lport, uint16_t vlan_id, const struct rcd_gid *gid)
{
	return (struct rcd_hop_key){ .dev = lport->serial, .vlan_id = vlan_id, .gid = *gid };
}

struct rcd_rtnl *
rcd_dev_rtnl(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	return dev->away != NULL ? dev->away->rtnl : dev->ports->rtnl;
}

struct rcd_netlink *
rcd_dev_netlink(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	return dev->away != NULL ? dev->away->netlink : dev->ports->netlink;
}

void
rcd_dev_event(struct rcd_dev *dev, uint32_t type)
{
	RCD_ON_CONTROL();
	dev->ports->conf.ops->event(dev->ports->conf.arg, dev, type);
}

void
rcd_dev_set_mtu(struct rcd_dev *dev, uint32_t mtu)
{
	uint32_t path_mtu = RCD_PATH_MTU_MAX_BYTES;
	uint32_t frame_max;

	RCD_ON_CONTROL();
	if (dev->mtu_max != 0 && mtu > dev->mtu_max)
		mtu = dev->mtu_max;
	if (dev->conf.attach == RCD_ATTACH_NETDEV && dev->conf.mtu != 0 && mtu > dev->conf.mtu)
		mtu = dev->conf.mtu;
	dev->mtu = mtu;
	while (path_mtu > RCD_PATH_MTU_MIN_BYTES && path_mtu + RCD_PATH_MTU_ROOM_BYTES > mtu)
		path_mtu /= 2;
	dev->path_mtu = path_mtu;
	frame_max = mtu + RCD_ETH_LEN + RCD_VLAN_TAG_LEN;
	if (frame_max > RCD_FRAME_MAX_BYTES)
		frame_max = RCD_FRAME_MAX_BYTES;
	__atomic_store_n(&dev->lport.frame_max, (uint16_t)frame_max, __ATOMIC_RELAXED);
}

uint32_t
rcd_dev_netdev_index(const struct rcd_dev *dev, const char *name)
{
	struct ifreq ifr = { .ifr_ifindex = 0 };

	RCD_ON_CONTROL();
	if (dev->away == NULL)
		return if_nametoindex(name);
	if (strlen(name) < sizeof(ifr.ifr_name))
		memcpy(ifr.ifr_name, name, strlen(name));
	return ioctl(dev->hold[0], SIOCGIFINDEX, &ifr) == 0 ? (uint32_t)ifr.ifr_ifindex : 0;
}

bool
rcd_dev_netdev_name(const struct rcd_dev *dev, uint32_t ifindex, char *name)
{
	struct ifreq ifr = { .ifr_ifindex = (int)ifindex };

	RCD_ON_CONTROL();
	if (dev->away == NULL)
		return if_indextoname(ifindex, name) != NULL;
	if (ioctl(dev->hold[0], SIOCGIFNAME, &ifr) != 0)
		return false;
	memcpy(name, ifr.ifr_name, IF_NAMESIZE);
	return true;
}
