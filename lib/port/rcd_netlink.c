/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Messages of the kernel about links, addresses and neighbours, each to the device that it is of.
 */
#include "rcd_netlink.h"

#include <errno.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rcd_clock.h"
#include "rcd_dev.h"
#include "rcd_dev_view.h"
#include "rcd_ethdev.h"
#include "rcd_groups.h"
#include "rcd_hop.h"
#include "rcd_log.h"
#include "rcd_neigh.h"
#include "rcd_nl_link.h"
#include "rcd_nl_recv.h"
#include "rcd_thread.h"
#include "rcd_wr.h"
#include "rcd_ports.h"
#include "rcd_rtnl.h"
#include "rcd_tuntap.h"
#include "rcd_vlans.h"

#define BUFFER_BYTES  32768
#define READS_AT_ONCE 64
#define DUMPS_MAX     3  /**< attempts at a list that changes while it is read */
#define PAUSE_TIMES   10 /**< as long as all was asked for, nothing is, after that */

struct rcd_netlink {
	struct mnl_socket *changes;
	struct rcd_ports *ports;
	bool unsure;     /**< something is missing here: all has to be asked for */
	bool complained; /**< that it could not be; until it can */
	uint64_t due_ns; /**< until when it is not, by rcd_clock_ns() */
	uint64_t told;   /**< messages of others that were told of */
	/** Whose addresses are being listed, NULL: nobody's; and those that were, by place. */
	const struct rcd_dev *listing;
	bool listed[RCD_GIDS_MAX];
	_Alignas(struct nlmsghdr) char buffer[BUFFER_BYTES];
};

struct rcd_netlink *
rcd_netlink_open(struct rcd_ports *ports, int *fd)
{
	struct rcd_netlink *netlink = calloc(1, sizeof(*netlink));
	struct epoll_event event = { .events = EPOLLIN };
	unsigned int groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_NEIGH;
	int err;

	RCD_ON_CONTROL();
	if (netlink == NULL)
		return NULL;
	netlink->ports = ports;
	netlink->changes = rcd_rtnl_socket(fd, groups);
	if (netlink->changes != NULL &&
		epoll_ctl(ports->watch_fd, EPOLL_CTL_ADD, mnl_socket_get_fd(netlink->changes),
			&event) == 0)
		return netlink;
	err = errno;
	rcd_netlink_close(netlink);
	errno = err;
	return NULL;
}

void
rcd_netlink_close(struct rcd_netlink *netlink)
{
	RCD_ON_CONTROL();
	if (netlink == NULL)
		return;
	if (netlink->changes != NULL) {
		/* Closing it is not enough while whoever made it has it, too. */
		epoll_ctl(netlink->ports->watch_fd, EPOLL_CTL_DEL,
			mnl_socket_get_fd(netlink->changes), NULL);
		mnl_socket_close(netlink->changes);
	}
	free(netlink);
}

uint32_t
rcd_netlink_find(struct rcd_dev *dev)
{
	uint32_t ifindex = rcd_dev_netdev_index(dev, dev->conf.target);
	struct rcd_addr addr = { .vlan_id = 0 };
	char name[IF_NAMESIZE];

	RCD_ON_CONTROL();
	if (ifindex != 0 || !rcd_dev_by_address(dev) || strpbrk(dev->conf.target, "/@") != NULL ||
		rcd_addr_parse(dev->conf.target, &addr) != 0 ||
		rcd_rtnl_owner(rcd_dev_rtnl(dev), &addr.gid, &ifindex) != 0 ||
		!rcd_dev_netdev_name(dev, ifindex, name))
		return ifindex;
	snprintf(dev->conf.target, sizeof(dev->conf.target), "%s", name);
	return ifindex;
}

/* Numbers of netdevs are those of their namespace. */
static struct rcd_dev *
netlink_dev_of(const struct rcd_netlink *netlink, uint32_t ifindex)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		struct rcd_dev *dev = netlink->ports->devs[i];

		if (dev != NULL && ifindex != 0 && dev->ifindex == ifindex &&
			rcd_dev_netlink(dev) == netlink)
			return dev;
	}
	return NULL;
}

static void
netlink_take_mac(struct rcd_dev *dev, const uint8_t *mac)
{
	struct rcd_gid first = dev->gids->entries[0].gid;

	if (dev->tuntap != NULL && !rcd_tuntap_follow_mac(dev, mac))
		return;
	if (rcd_dev_is_udp(dev) && dev->started)
		rcd_ethdev_follow_mac(dev, mac);
	if (rcd_dev_view_set_mac(dev, mac) != 0)
		RCD_LOG(WARNING, "%s: no memory for another MAC", dev->conf.name);
	if (rcd_gid_eq(&dev->gids->entries[0].gid, &first))
		return;
	/* The kernel may have the old one still, as an address of its own. */
	rcd_dev_netlink(dev)->unsure = true;
	if (dev->started)
		rcd_dev_event(dev, RCD_EVENT_GID_CHANGE);
}

static void
netlink_take_mtu(struct rcd_dev *dev, uint32_t mtu)
{
	if (dev->tuntap == NULL || rcd_tuntap_follow_mtu(dev, mtu))
		rcd_dev_set_mtu(dev, mtu);
}

/* It may ask the kernel for something: never while an answer is read. */
static void
netlink_take_link(struct rcd_dev *dev, const struct rcd_nl_link *link)
{
	dev->link_up = link->up;
	if (link->mtu != 0)
		netlink_take_mtu(dev, link->mtu);
	if (link->has_promiscuity && dev->tuntap != NULL)
		rcd_tuntap_follow_promiscuity(dev, link->promiscuous);
	if (link->has_groups && dev->tuntap != NULL)
		rcd_groups_set_all(dev, link->all_groups);
	if (link->has_mac)
		netlink_take_mac(dev, link->mac);
	if (link->has_xdp)
		dev->xdp_taken = link->xdp;
}

static void
netlink_on_link(struct rcd_dev *dev, const struct nlmsghdr *nlh)
{
	struct rcd_nl_link link;

	rcd_nl_link_read(nlh, &link);
	netlink_take_link(dev, &link);
}

/*
 * A netdev came or went, perhaps one of a VLAN on one that is ours. Who moves to another namespace
 * goes from here, and still carries frames.
 */
static struct rcd_dev *
netlink_take_vlan(const struct rcd_netlink *netlink, const struct nlmsghdr *nlh)
{
	struct rcd_nl_vlan vlan;
	struct rcd_dev *dev;

	if (!rcd_nl_link_read_vlan(nlh, &vlan))
		return NULL;
	dev = netlink_dev_of(netlink, vlan.lower);
	if (dev == NULL || dev->tuntap == NULL)
		return NULL;
	rcd_vlans_set_kernels(dev, vlan.vlan_id, nlh->nlmsg_type == RTM_NEWLINK);
	return dev;
}

static int
netlink_on_listed_link(const struct nlmsghdr *nlh, void *arg)
{
	struct rcd_netlink *netlink = arg;

	if (rcd_nl_has(nlh, sizeof(struct ifinfomsg)))
		netlink_take_vlan(netlink, nlh);
	return MNL_CB_OK;
}

static void
netlink_on_addr(struct rcd_dev *dev, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(nlh);
	struct rcd_addr addr = { .prefix_len = info->ifa_prefixlen };
	int err, at;

	if (!rcd_rtnl_read_addr(nlh, &addr.gid))
		return;
	if (nlh->nlmsg_type == RTM_NEWADDR)
		err = rcd_dev_view_addr_add(dev, &addr);
	else
		err = rcd_dev_view_addr_del(dev, &addr.gid);
	if (err == 0 && dev->started)
		rcd_dev_event(dev, RCD_EVENT_GID_CHANGE);
	at = rcd_dev_gid_find(dev, &addr.gid);
	if (dev == rcd_dev_netlink(dev)->listing && at >= 0)
		rcd_dev_netlink(dev)->listed[at] = true;
}

static void
netlink_on_neigh(struct rcd_dev *dev, const struct nlmsghdr *nlh)
{
	const struct ndmsg *info = mnl_nlmsg_get_payload(nlh);
	struct nlattr *attr;
	const uint8_t *mac = NULL;
	struct rcd_hop_key key;
	struct rcd_gid gid;
	bool found = false;

	mnl_attr_for_each(attr, nlh, sizeof(*info)) {
		if (mnl_attr_get_type(attr) == NDA_DST)
			found = rcd_rtnl_take_addr(attr, info->ndm_family, &gid);
		else if (rcd_nl_is(attr, NDA_LLADDR, RCD_MAC_LEN))
			mac = mnl_attr_get_payload(attr);
	}
	if (!found)
		return;
	key = rcd_dev_hop_key(&dev->lport, 0, &gid);
	if (nlh->nlmsg_type == RTM_DELNEIGH || (info->ndm_state & NUD_FAILED))
		rcd_neigh_forget(dev->ports->neighs, &key);
	else if (mac != NULL && !(info->ndm_state & (NUD_INCOMPLETE | NUD_NONE)))
		rcd_neigh_learn(dev->ports->neighs, &key, mac);
}

static void
netlink_on_any_link(const struct rcd_netlink *netlink, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	struct rcd_dev *dev;

	/* A bridge tells of its ports by messages of the same kind. */
	if (info->ifi_family != AF_UNSPEC)
		return;
	dev = netlink_dev_of(netlink, (uint32_t)info->ifi_index);
	if (dev != NULL) {
		dev->netdev_gone |= nlh->nlmsg_type == RTM_DELLINK;
		netlink_on_link(dev, nlh);
		if (dev->started)
			rcd_dev_check_link(dev);
	}
	dev = netlink_take_vlan(netlink, nlh);
	if (dev != NULL)
		rcd_vlans_follow(dev);
}

/* What is shorter than its header is passed over. */
static int
netlink_on_message(const struct nlmsghdr *nlh, void *arg)
{
	const struct rcd_netlink *netlink = arg;
	const union {
		struct ifaddrmsg addr;
		struct ndmsg neigh;
	} *info = mnl_nlmsg_get_payload(nlh);
	struct rcd_dev *dev = NULL;

	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (rcd_nl_has(nlh, sizeof(struct ifinfomsg)))
			netlink_on_any_link(netlink, nlh);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		if (rcd_nl_has(nlh, sizeof(info->addr)))
			dev = netlink_dev_of(netlink, info->addr.ifa_index);
		if (dev != NULL)
			netlink_on_addr(dev, nlh);
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		if (rcd_nl_has(nlh, sizeof(info->neigh)))
			dev = netlink_dev_of(netlink, (uint32_t)info->neigh.ndm_ifindex);
		if (dev != NULL)
			netlink_on_neigh(dev, nlh);
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

/* @return 0, or an error of one that is not known whole */
static int
netlink_sync_all(const struct rcd_netlink *netlink)
{
	int err = 0;

	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		struct rcd_dev *dev = netlink->ports->devs[i];
		int one;

		if (dev == NULL || dev->ifindex == 0 || rcd_dev_netlink(dev) != netlink)
			continue;
		one = rcd_netlink_sync(dev);
		if (one != 0)
			err = one;
		if (dev->started)
			rcd_dev_check_link(dev);
	}
	return err;
}

/* Whoever makes it ask again and again gets a small part of the thread's time. */
static void
netlink_recover(struct rcd_netlink *netlink)
{
	uint64_t begin_ns = rcd_clock_ns();
	uint64_t end_ns;

	if (begin_ns < netlink->due_ns)
		return;
	netlink->unsure = false;
	netlink->complained &= netlink_sync_all(netlink) != 0;
	end_ns = rcd_clock_ns();
	netlink->due_ns = end_ns + PAUSE_TIMES * (end_ns - begin_ns);
}

/* Each time that there are twice as many: who sends can't fill the log. */
static void
netlink_tell_dropped(struct rcd_netlink *netlink)
{
	uint64_t dropped = rcd_nl_dropped();

	if (dropped <= 2 * netlink->told)
		return;
	RCD_LOG(WARNING, "netlink: %" PRIu64 " messages were not the kernel's, and are dropped",
		dropped);
	netlink->told = dropped;
}

void
rcd_netlink_ready(struct rcd_netlink *netlink)
{
	int fd = mnl_socket_get_fd(netlink->changes);
	bool more = true;

	RCD_ON_CONTROL();
	for (int i = 0; i < READS_AT_ONCE && more; i++) {
		ssize_t got = rcd_nl_recv(fd, netlink->buffer, sizeof(netlink->buffer));

		if (got > 0)
			mnl_cb_run(netlink->buffer, (size_t)got, 0, 0, netlink_on_message, netlink);
		more = got >= 0 || errno == ENOBUFS || errno == EINTR;
		netlink->unsure |= got < 0 && errno == ENOBUFS;
	}
	netlink_tell_dropped(netlink);
	/* What is there yet is older than what would be asked for; the socket stays ready. */
	if (netlink->unsure && !more)
		netlink_recover(netlink);
}

/*
 * A list of one kind, of the device's netdev alone where the kernel can tell them apart; entries of
 * others are passed over.
 */
static int
netlink_dump(struct rcd_dev *dev, uint16_t type, mnl_cb_t each)
{
	struct rcd_rtnl_message message;
	struct nlmsghdr *nlh = rcd_rtnl_begin(&message, type, NLM_F_DUMP);
	int err = -EINTR;

	/* rcd_rtnl_socket() has the kernel read the first of these; the second it always does. */
	if (type == RTM_GETADDR) {
		struct ifaddrmsg *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));

		info->ifa_index = dev->ifindex;
	} else if (type == RTM_GETNEIGH) {
		mnl_nlmsg_put_extra_header(nlh, sizeof(struct ndmsg));
		mnl_attr_put_u32(nlh, NDA_IFINDEX, dev->ifindex);
	} else {
		mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	}
	/* The kernel says so of a list that changed meanwhile, and may lack something. */
	for (int i = 0; i < DUMPS_MAX && err == -EINTR; i++)
		err = rcd_rtnl_ask(rcd_dev_rtnl(dev), nlh, each, rcd_dev_netlink(dev));
	return err;
}

/* All of a device's addresses, and no others: that one went may be what was lost. */
static int
netlink_sync_addrs(struct rcd_dev *dev)
{
	struct rcd_netlink *netlink = rcd_dev_netlink(dev);
	int err;

	memset(netlink->listed, 0, sizeof(netlink->listed));
	netlink->listing = dev;
	err = netlink_dump(dev, RTM_GETADDR, netlink_on_message);
	netlink->listing = NULL;
	/* The first one is made of the MAC, whether the kernel has it or not. */
	for (uint32_t i = 1; err == 0 && i < dev->gids->count; i++) {
		struct rcd_gid gone = dev->gids->entries[i].gid;

		if (!dev->gids->entries[i].used || netlink->listed[i])
			continue;
		err = rcd_dev_view_addr_del(dev, &gone);
		if (err == 0 && dev->started)
			rcd_dev_event(dev, RCD_EVENT_GID_CHANGE);
	}
	return err;
}

static int
netlink_on_first_link(const struct nlmsghdr *nlh, void *arg)
{
	if (rcd_nl_has(nlh, sizeof(struct ifinfomsg)))
		rcd_nl_link_read(nlh, arg);
	return MNL_CB_OK;
}

int
rcd_netlink_sync_link(struct rcd_dev *dev)
{
	struct rcd_rtnl_message message;
	struct rcd_nl_link link = { .up = dev->link_up };
	struct ifinfomsg *info;
	struct nlmsghdr *nlh;
	int err;

	RCD_ON_CONTROL();
	nlh = rcd_rtnl_begin(&message, RTM_GETLINK, NLM_F_ACK);
	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->ifi_index = (int)dev->ifindex;
	err = rcd_rtnl_ask(rcd_dev_rtnl(dev), nlh, netlink_on_first_link, &link);
	if (err == 0)
		netlink_take_link(dev, &link);
	return err;
}

static int
netlink_sync(struct rcd_dev *dev)
{
	int err = rcd_netlink_sync_link(dev);

	/* Addresses find the device by its place, which it has not yet the first time. */
	if (err == 0 && dev->shown)
		err = netlink_sync_addrs(dev);
	/* By UDP the kernel finds neighbours itself. */
	if (err == 0 && dev->shown && !rcd_dev_is_udp(dev))
		err = netlink_dump(dev, RTM_GETNEIGH, netlink_on_message);
	/* One too many lets in what nobody takes: those that went meanwhile are let be. */
	if (err == 0 && dev->shown && dev->tuntap != NULL) {
		err = netlink_dump(dev, RTM_GETLINK, netlink_on_listed_link);
		rcd_vlans_follow(dev);
	}
	return err;
}

int
rcd_netlink_sync(struct rcd_dev *dev)
{
	struct rcd_netlink *netlink = rcd_dev_netlink(dev);
	int err;

	RCD_ON_CONTROL();
	if (netlink == NULL)
		return -ENOTCONN;
	err = netlink_sync(dev);
	/* One that is gone is down, whether that was told or lost; no more can be known of it. */
	if (err == -ENODEV) {
		dev->link_up = false;
		dev->netdev_gone = true;
	}
	if (err != 0 && err != -ENODEV && dev->shown) {
		if (!netlink->complained)
			RCD_LOG(WARNING, "%s: the kernel does not tell all of %s: %s",
				dev->conf.name, rcd_dev_conf_netdev(&dev->conf), strerror(-err));
		netlink->unsure = netlink->complained = true;
	}
	return err;
}

bool
rcd_netlink_unsure(const struct rcd_netlink *netlink)
{
	RCD_ON_CONTROL();
	return netlink != NULL && netlink->unsure;
}

/* A request about one neighbour. What the kernel answers is learned. @return 0 or -errno */
static int
netlink_ask_neigh(struct rcd_dev *dev, uint16_t type, uint16_t flags, uint8_t ndm_flags,
	const struct rcd_gid *gid)
{
	struct rcd_rtnl_message message;
	struct nlmsghdr *nlh = rcd_rtnl_begin(&message, type, NLM_F_ACK | flags);
	bool v4 = rcd_gid_is_ipv4(gid);
	struct ndmsg *info;

	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->ndm_family = v4 ? AF_INET : AF_INET6;
	info->ndm_ifindex = (int)dev->ifindex;
	info->ndm_state = NUD_NONE;
	info->ndm_flags = ndm_flags;
	mnl_attr_put(nlh, NDA_DST, v4 ? 4 : 16, v4 ? gid->raw + 12 : gid->raw);
	return rcd_rtnl_ask(rcd_dev_rtnl(dev), nlh, netlink_on_message, rcd_dev_netlink(dev));
}

void
rcd_netlink_probe(struct rcd_dev *dev, const struct rcd_gid *gid)
{
	RCD_ON_CONTROL();
	if (rcd_dev_netlink(dev) == NULL)
		return;
	/* An entry in use has the kernel resolve it; one that exists is told of if it is known. */
	netlink_ask_neigh(dev, RTM_NEWNEIGH, NLM_F_CREATE, NTF_USE, gid);
	netlink_ask_neigh(dev, RTM_GETNEIGH, 0, 0, gid);
}
