/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the kernel says of a netdev that it keeps: link, MTU, addresses, neighbours and routes, by
 * rtnetlink. One socket listens to changes; questions go through another, and are answered before
 * the function returns.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <time.h>

#define BUFFER_BYTES 32768

struct rcd_netlink {
	struct mnl_socket *changes;
	struct mnl_socket *questions;
	struct rcd_engine *engine;
	struct rcd_gid hop; /**< answer to the last question for a route */
	struct rcd_gid source;
	uint32_t ifindex;
	bool hop_found;
};

static struct mnl_socket *
netlink_open_socket(unsigned int groups)
{
	struct mnl_socket *sock = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (sock != NULL && mnl_socket_bind(sock, groups, MNL_SOCKET_AUTOPID) < 0) {
		mnl_socket_close(sock);
		return NULL;
	}
	return sock;
}

int
rcd_netlink_open(struct rcd_engine *engine)
{
	struct rcd_netlink *netlink = calloc(1, sizeof(*netlink));

	if (netlink == NULL)
		return -ENOMEM;
	netlink->engine = engine;
	netlink->changes = netlink_open_socket(
		RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_NEIGH);
	netlink->questions = netlink_open_socket(0);
	engine->netlink = netlink;
	if (netlink->changes == NULL || netlink->questions == NULL)
		return -errno;
	return 0;
}

void
rcd_netlink_close(struct rcd_engine *engine)
{
	struct rcd_netlink *netlink = engine->netlink;

	if (netlink == NULL)
		return;
	if (netlink->changes != NULL)
		mnl_socket_close(netlink->changes);
	if (netlink->questions != NULL)
		mnl_socket_close(netlink->questions);
	free(netlink);
	engine->netlink = NULL;
}

int
rcd_netlink_fd(const struct rcd_engine *engine)
{
	return mnl_socket_get_fd(engine->netlink->changes);
}

static struct rcd_dev *
netlink_dev_of(struct rcd_engine *engine, uint32_t ifindex)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (engine->devs[i] != NULL && ifindex != 0 && engine->devs[i]->ifindex == ifindex)
			return engine->devs[i];
	return NULL;
}

/* An IPv4 or IPv6 address as a GID. @return false for anything else */
static bool
netlink_take_addr(const struct nlattr *attr, uint8_t family, struct rcd_gid *gid)
{
	const uint8_t *bytes = mnl_attr_get_payload(attr);
	uint16_t len = mnl_attr_get_payload_len(attr);

	if (family == AF_INET && len == 4)
		*gid = rcd_gid_from_ipv4(bytes);
	else if (family == AF_INET6 && len == 16)
		*gid = rcd_gid_from_ipv6(bytes);
	else
		return false;
	return true;
}

/* Whether a netdev has a program of XDP, in any mode. */
static bool
netlink_has_program(const struct nlattr *nest)
{
	struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		if (mnl_attr_get_type(attr) == IFLA_XDP_ATTACHED)
			return mnl_attr_get_u8(attr) != XDP_ATTACHED_NONE;
	}
	return false;
}

static void
netlink_take_mac(struct rcd_dev *dev, const uint8_t *mac)
{
	if (rcd_dev_set_mac(dev, mac) != 0)
		RCD_LOG(WARNING, "%s: no memory for another MAC", dev->conf.name);
}

static void
netlink_on_link(struct rcd_dev *dev, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);
	struct nlattr *attr;

	if (nlh->nlmsg_type == RTM_DELLINK) {
		dev->link_up = false;
		return;
	}
	dev->link_up = (info->ifi_flags & IFF_UP) && (info->ifi_flags & IFF_RUNNING);
	mnl_attr_for_each(attr, nlh, sizeof(*info)) {
		if (mnl_attr_get_type(attr) == IFLA_MTU)
			rcd_dev_set_mtu(dev, mnl_attr_get_u32(attr));
		else if (mnl_attr_get_type(attr) == IFLA_ADDRESS &&
			mnl_attr_get_payload_len(attr) == RCD_MAC_LEN)
			netlink_take_mac(dev, mnl_attr_get_payload(attr));
		else if (mnl_attr_get_type(attr) == IFLA_XDP)
			dev->xdp_taken = netlink_has_program(attr);
	}
}

static void
netlink_on_addr(struct rcd_dev *dev, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(nlh);
	struct rcd_addr addr = { .prefix_len = info->ifa_prefixlen };
	struct nlattr *attr;
	bool found = false;
	bool local = false;
	int err;

	mnl_attr_for_each(attr, nlh, sizeof(*info)) {
		/* On a point-to-point link IFA_ADDRESS is the peer, and IFA_LOCAL ours. */
		if (mnl_attr_get_type(attr) == IFA_LOCAL)
			local = found = netlink_take_addr(attr, info->ifa_family, &addr.gid);
		else if (mnl_attr_get_type(attr) == IFA_ADDRESS && !local)
			found = netlink_take_addr(attr, info->ifa_family, &addr.gid);
	}
	if (!found)
		return;
	if (nlh->nlmsg_type == RTM_NEWADDR)
		err = rcd_dev_addr_add(dev, &addr);
	else
		err = rcd_dev_addr_del(dev, &addr.gid);
	if (err == 0 && dev->started)
		rcd_dev_event(dev, RCD_EVENT_GID_CHANGE);
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
			found = netlink_take_addr(attr, info->ndm_family, &gid);
		else if (mnl_attr_get_type(attr) == NDA_LLADDR &&
			mnl_attr_get_payload_len(attr) == RCD_MAC_LEN)
			mac = mnl_attr_get_payload(attr);
	}
	if (!found)
		return;
	key = rcd_route_key(&dev->lport, 0, &gid);
	if (nlh->nlmsg_type == RTM_DELNEIGH || (info->ndm_state & NUD_FAILED))
		rcd_neigh_forget(dev->engine->neighs, &key);
	else if (mac != NULL && !(info->ndm_state & (NUD_INCOMPLETE | NUD_NONE)))
		rcd_neigh_learn(dev->engine->neighs, &key, mac);
}

static int
netlink_on_message(const struct nlmsghdr *nlh, void *arg)
{
	struct rcd_netlink *netlink = arg;
	struct rcd_dev *dev;

	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK: {
		const struct ifinfomsg *info = mnl_nlmsg_get_payload(nlh);

		dev = netlink_dev_of(netlink->engine, (uint32_t)info->ifi_index);
		if (dev != NULL) {
			netlink_on_link(dev, nlh);
			if (dev->started)
				rcd_dev_check_link(dev);
		}
		break;
	}
	case RTM_NEWADDR:
	case RTM_DELADDR: {
		const struct ifaddrmsg *info = mnl_nlmsg_get_payload(nlh);

		dev = netlink_dev_of(netlink->engine, info->ifa_index);
		if (dev != NULL)
			netlink_on_addr(dev, nlh);
		break;
	}
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH: {
		const struct ndmsg *info = mnl_nlmsg_get_payload(nlh);

		dev = netlink_dev_of(netlink->engine, (uint32_t)info->ndm_ifindex);
		if (dev != NULL)
			netlink_on_neigh(dev, nlh);
		break;
	}
	default:
		break;
	}
	return MNL_CB_OK;
}

void
rcd_netlink_ready(struct rcd_engine *engine)
{
	struct rcd_netlink *netlink = engine->netlink;
	static char buffer[BUFFER_BYTES];
	ssize_t got;

	while ((got = mnl_socket_recvfrom(netlink->changes, buffer, sizeof(buffer))) > 0)
		mnl_cb_run(buffer, (size_t)got, 0, 0, netlink_on_message, netlink);
	if (got < 0 && errno == ENOBUFS) {
		/* Changes were lost: ask for everything. */
		for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
			if (engine->devs[i] != NULL && engine->devs[i]->ifindex != 0)
				rcd_netlink_sync(engine->devs[i]);
	}
}

/* Send a request and feed all answers to a function. */
static int
netlink_ask(struct rcd_netlink *netlink, struct nlmsghdr *nlh, mnl_cb_t callback, void *arg)
{
	static char buffer[BUFFER_BYTES];
	unsigned int port = mnl_socket_get_portid(netlink->questions);
	static uint32_t sequence;
	int run = MNL_CB_OK;

	nlh->nlmsg_seq = ++sequence;
	if (mnl_socket_sendto(netlink->questions, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	while (run > MNL_CB_STOP) {
		/* The kernel answers while we send: nothing to wait for. */
		ssize_t got = mnl_socket_recvfrom(netlink->questions, buffer, sizeof(buffer));

		if (got < 0)
			return -errno;
		run = mnl_cb_run(buffer, (size_t)got, sequence, port, callback, arg);
	}
	return run < 0 ? -errno : 0;
}

/* A list of one kind; entries of other netdevs are passed over by netlink_on_message(). */
static int
netlink_dump(struct rcd_netlink *netlink, uint16_t type, uint8_t family)
{
	char buffer[256] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct rtgenmsg *gen;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	gen = mnl_nlmsg_put_extra_header(nlh, sizeof(struct ndmsg));
	gen->rtgen_family = family;
	return netlink_ask(netlink, nlh, netlink_on_message, netlink);
}

static int
netlink_on_first_link(const struct nlmsghdr *nlh, void *arg)
{
	netlink_on_link(arg, nlh);
	return MNL_CB_OK;
}

int
rcd_netlink_request(struct rcd_engine *engine, struct nlmsghdr *nlh)
{
	if (engine->netlink == NULL || engine->netlink->questions == NULL)
		return -ENOTCONN;
	return netlink_ask(engine->netlink, nlh, NULL, NULL);
}

int
rcd_netlink_sync(struct rcd_dev *dev)
{
	struct rcd_netlink *netlink = dev->engine->netlink;
	char buffer[256] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *info;
	int err;

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->ifi_index = (int)dev->ifindex;
	err = netlink_ask(netlink, nlh, netlink_on_first_link, dev);
	/* Addresses find the device by its place, which it has not yet the first time. */
	if (err == 0 && dev->started) {
		err = netlink_dump(netlink, RTM_GETADDR, AF_UNSPEC);
		if (err == 0)
			err = netlink_dump(netlink, RTM_GETNEIGH, AF_UNSPEC);
	}
	return err;
}

/* A request about one neighbour. What the kernel answers is learned. @return 0 or -errno */
static int
netlink_ask_neigh(struct rcd_dev *dev, uint16_t type, uint16_t flags, uint8_t ndm_flags,
	const struct rcd_gid *gid)
{
	char buffer[256] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	bool v4 = rcd_gid_is_ipv4(gid);
	struct ndmsg *info;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->ndm_family = v4 ? AF_INET : AF_INET6;
	info->ndm_ifindex = (int)dev->ifindex;
	info->ndm_state = NUD_NONE;
	info->ndm_flags = ndm_flags;
	mnl_attr_put(nlh, NDA_DST, v4 ? 4 : 16, v4 ? gid->raw + 12 : gid->raw);
	return netlink_ask(dev->engine->netlink, nlh, netlink_on_message, dev->engine->netlink);
}

void
rcd_netlink_probe(struct rcd_dev *dev, const struct rcd_gid *gid)
{
	/* An entry in use has the kernel resolve it; one that exists is told of if it is known. */
	netlink_ask_neigh(dev, RTM_NEWNEIGH, NLM_F_CREATE, NTF_USE, gid);
	netlink_ask_neigh(dev, RTM_GETNEIGH, 0, 0, gid);
}

static int
netlink_on_route(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *info = mnl_nlmsg_get_payload(nlh);
	struct rcd_netlink *netlink = arg;
	struct nlattr *attr;

	if (nlh->nlmsg_type != RTM_NEWROUTE)
		return MNL_CB_OK;
	netlink->hop_found = info->rtm_type == RTN_UNICAST || info->rtm_type == RTN_MULTICAST;
	mnl_attr_for_each(attr, nlh, sizeof(*info)) {
		switch (mnl_attr_get_type(attr)) {
		case RTA_GATEWAY:
			netlink_take_addr(attr, info->rtm_family, &netlink->hop);
			break;
		case RTA_PREFSRC:
			netlink_take_addr(attr, info->rtm_family, &netlink->source);
			break;
		case RTA_OIF:
			netlink->ifindex = mnl_attr_get_u32(attr);
			break;
		default:
			break;
		}
	}
	return MNL_CB_OK;
}

/* @param ifindex  to leave by; 0: any */
static int
netlink_ask_route(struct rcd_netlink *netlink, const struct rcd_gid *dgid, uint32_t ifindex)
{
	char buffer[256] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	bool v4 = rcd_gid_is_ipv4(dgid);
	struct rtmsg *info;

	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->rtm_family = v4 ? AF_INET : AF_INET6;
	info->rtm_dst_len = v4 ? 32 : 128;
	mnl_attr_put(nlh, RTA_DST, v4 ? 4 : 16, v4 ? dgid->raw + 12 : dgid->raw);
	if (ifindex != 0)
		mnl_attr_put_u32(nlh, RTA_OIF, ifindex);
	netlink->hop = *dgid;
	netlink->hop_found = false;
	if (netlink_ask(netlink, nlh, netlink_on_route, netlink) != 0 || !netlink->hop_found)
		return -ENETUNREACH;
	return 0;
}

int
rcd_netlink_route(struct rcd_dev *dev, const struct rcd_gid *dgid, struct rcd_gid *hop)
{
	int err = netlink_ask_route(dev->engine->netlink, dgid, dev->ifindex);

	if (err == 0)
		*hop = dev->engine->netlink->hop;
	return err;
}

int
rcd_netlink_source(struct rcd_engine *engine, const struct rcd_gid *dgid, uint32_t *ifindex,
	struct rcd_gid *src)
{
	struct rcd_netlink *netlink = engine->netlink;
	int err;

	if (netlink == NULL || netlink->questions == NULL)
		return -ENETUNREACH;
	netlink->ifindex = 0;
	netlink->source = *src;
	err = netlink_ask_route(netlink, dgid, *ifindex);
	if (err == 0) {
		*ifindex = netlink->ifindex;
		*src = netlink->source;
	}
	return err;
}
