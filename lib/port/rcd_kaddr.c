/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Addresses of embedded wires, given to the kernel: programs exchange what they need for RDMA over
 * TCP, to the address that they use for RDMA too, and without this that would leave the machine by
 * the default route. Only local TCP and UDP use them: no frame of the engine's goes through here.
 *
 * They are on a TUN device that nobody reads. It lasts as long as its descriptor is open, and so
 * vanishes with the engine, however that ends. Where there is no /dev/net/tun they are on lo, with
 * a lifetime that is renewed.
 */
#include "rcd_kaddr.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rcd_dev.h"
#include "rcd_gid_table.h"
#include "rcd_ports.h"
#include "rcd_rtnl.h"
#include "rcd_thread.h"

#define TUN_MTU  65520 /**< local TCP has that of lo; this is for who looks at netdevs */
#define LIFE_S   60    /**< of an address on lo */
#define RENEW_NS 20000000000ull
#define LENT_MAX 256
#define IFNAME   "rocade%d" /**< the kernel puts a number in */

/** The addresses that the kernel has of us. */
struct rcd_kaddr {
	int tun; /**< -1: not there, addresses are on lo */
	uint32_t ifindex;
	char ifname[IFNAMSIZ];
	char missing[128]; /**< why the kernel has none; empty: it has them */
	uint64_t renew_ns; /**< when lifetimes are renewed next */
	uint32_t count;
	struct rcd_gid lent[LENT_MAX];
};

static int
kaddr_request_addr(struct rcd_ports *ports, const struct rcd_gid *gid, bool add, bool renew)
{
	const struct rcd_kaddr *kaddr = ports->kaddr;
	bool v4 = rcd_gid_is_ipv4(gid);
	const uint8_t *bytes = v4 ? gid->raw + 12 : gid->raw;
	size_t len = v4 ? 4 : 16;
	struct rcd_rtnl_message message;
	struct nlmsghdr *nlh = rcd_rtnl_begin(&message, add ? RTM_NEWADDR : RTM_DELADDR, NLM_F_ACK);
	struct ifaddrmsg *info;

	if (add)
		nlh->nlmsg_flags |= NLM_F_CREATE | (renew ? NLM_F_REPLACE : NLM_F_EXCL);
	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->ifa_family = v4 ? AF_INET : AF_INET6;
	info->ifa_prefixlen = v4 ? 32 : 128;
	info->ifa_scope = RT_SCOPE_HOST;
	info->ifa_flags = v4 ? 0 : IFA_F_NODAD;
	info->ifa_index = kaddr->ifindex;
	mnl_attr_put(nlh, IFA_LOCAL, len, bytes);
	mnl_attr_put(nlh, IFA_ADDRESS, len, bytes);
	if (kaddr->tun < 0) {
		const struct ifa_cacheinfo life = { .ifa_prefered = LIFE_S, .ifa_valid = LIFE_S };

		mnl_attr_put(nlh, IFA_CACHEINFO, sizeof(life), &life);
	}
	return rcd_rtnl_ask(ports->rtnl, nlh, NULL, NULL);
}

/* Bring the TUN device up. */
static int
kaddr_set_up(struct rcd_ports *ports)
{
	struct rcd_rtnl_message message;
	struct nlmsghdr *nlh = rcd_rtnl_begin(&message, RTM_NEWLINK, NLM_F_ACK);
	struct nlattr *families, *inet6;
	struct ifinfomsg *info;

	info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	info->ifi_index = (int)ports->kaddr->ifindex;
	mnl_attr_put_u32(nlh, IFLA_MTU, TUN_MTU);
	/* No address of its own, and no router is asked for. Without IPv6 there is none anyway. */
	families = mnl_attr_nest_start(nlh, IFLA_AF_SPEC);
	inet6 = mnl_attr_nest_start(nlh, AF_INET6);
	mnl_attr_put_u8(nlh, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(nlh, inet6);
	mnl_attr_nest_end(nlh, families);
	rcd_rtnl_ask(ports->rtnl, nlh, NULL, NULL);
	mnl_attr_nest_cancel(nlh, families);
	info->ifi_flags = IFF_UP;
	info->ifi_change = IFF_UP;
	return rcd_rtnl_ask(ports->rtnl, nlh, NULL, NULL);
}

/* @return 0; -errno when there is no such device to be had, or no right to it */
static int
kaddr_make_tun(struct rcd_ports *ports)
{
	struct rcd_kaddr *kaddr = ports->kaddr;
	struct ifreq request = { .ifr_name = IFNAME, .ifr_flags = IFF_TUN | IFF_NO_PI };
	int err;

	kaddr->tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (kaddr->tun < 0)
		return -errno;
	if (ioctl(kaddr->tun, TUNSETIFF, &request) != 0) {
		err = -errno;
	} else {
		memcpy(kaddr->ifname, request.ifr_name, sizeof(kaddr->ifname));
		kaddr->ifindex = if_nametoindex(kaddr->ifname);
		err = kaddr_set_up(ports);
	}
	if (err != 0) {
		close(kaddr->tun);
		kaddr->tun = -1;
	}
	return err;
}

/* Decide where addresses go, when the first is to be given. */
static void
kaddr_choose_netdev(struct rcd_ports *ports)
{
	struct rcd_kaddr *kaddr = ports->kaddr;
	int err = kaddr_make_tun(ports);

	if (err == 0)
		return;
	snprintf(kaddr->ifname, sizeof(kaddr->ifname), "lo");
	kaddr->ifindex = if_nametoindex(kaddr->ifname);
	if (err == -EPERM || err == -EACCES || kaddr->ifindex == 0)
		snprintf(kaddr->missing, sizeof(kaddr->missing),
			"the engine has no right to give addresses to the kernel (CAP_NET_ADMIN)");
}

static bool
kaddr_is_wanted(const struct rcd_ports *ports, const struct rcd_gid *gid)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL && ports->devs[i]->lport.wire &&
			rcd_gid_table_find(ports->devs[i]->gids, gid) >= 0)
			return true;
	return false;
}

static bool
kaddr_is_lent(const struct rcd_kaddr *kaddr, const struct rcd_gid *gid)
{
	for (uint32_t i = 0; i < kaddr->count; i++)
		if (rcd_gid_eq(&kaddr->lent[i], gid))
			return true;
	return false;
}

static void
kaddr_lend(struct rcd_ports *ports, const struct rcd_gid *gid)
{
	struct rcd_kaddr *kaddr = ports->kaddr;
	int err;

	/* Link-local addresses are each interface's own. */
	if ((gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80) || kaddr_is_lent(kaddr, gid) ||
		kaddr->count == LENT_MAX)
		return;
	if (kaddr->ifindex == 0)
		kaddr_choose_netdev(ports);
	if (kaddr->missing[0] != '\0')
		return;
	err = kaddr_request_addr(ports, gid, true, false);
	if (err == 0)
		kaddr->lent[kaddr->count++] = *gid;
	else if (err == -EPERM)
		snprintf(kaddr->missing, sizeof(kaddr->missing),
			"the engine has no right to give addresses to the kernel (CAP_NET_ADMIN)");
	/* It is on lo already, or the kernel has no addresses of this family: nothing of ours. */
}

void
rcd_kaddr_sync(struct rcd_ports *ports)
{
	struct rcd_kaddr *kaddr = ports->kaddr;

	RCD_ON_CONTROL();
	if (kaddr == NULL || ports->rtnl == NULL)
		return;
	for (uint32_t i = 0; i < kaddr->count;) {
		if (kaddr_is_wanted(ports, &kaddr->lent[i])) {
			i++;
			continue;
		}
		kaddr_request_addr(ports, &kaddr->lent[i], false, false);
		kaddr->lent[i] = kaddr->lent[--kaddr->count];
	}
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		const struct rcd_dev *dev = ports->devs[i];

		for (uint32_t k = 0; dev != NULL && dev->lport.wire && k < dev->gids->count; k++)
			if (dev->gids->entries[k].used)
				kaddr_lend(ports, &dev->gids->entries[k].gid);
	}
}

uint64_t
rcd_kaddr_next(const struct rcd_ports *ports)
{
	const struct rcd_kaddr *kaddr = ports->kaddr;

	RCD_ON_CONTROL();
	return kaddr != NULL && kaddr->tun < 0 && kaddr->ifindex != 0 ? kaddr->renew_ns
								      : UINT64_MAX;
}

void
rcd_kaddr_tick(struct rcd_ports *ports, uint64_t now_ns)
{
	struct rcd_kaddr *kaddr = ports->kaddr;

	RCD_ON_CONTROL();
	if (now_ns < rcd_kaddr_next(ports))
		return;
	kaddr->renew_ns = now_ns + RENEW_NS;
	for (uint32_t i = 0; i < kaddr->count; i++)
		kaddr_request_addr(ports, &kaddr->lent[i], true, true);
	/* What another engine left behind may have run out by now. */
	rcd_kaddr_sync(ports);
}

int
rcd_kaddr_open(struct rcd_ports *ports)
{
	RCD_ON_CONTROL();
	ports->kaddr = calloc(1, sizeof(*ports->kaddr));
	if (ports->kaddr == NULL)
		return -ENOMEM;
	ports->kaddr->tun = -1;
	return 0;
}

void
rcd_kaddr_close(struct rcd_ports *ports)
{
	struct rcd_kaddr *kaddr = ports->kaddr;

	RCD_ON_CONTROL();
	if (kaddr == NULL)
		return;
	for (uint32_t i = 0; kaddr->tun < 0 && ports->rtnl != NULL && i < kaddr->count; i++)
		kaddr_request_addr(ports, &kaddr->lent[i], false, false);
	if (kaddr->tun >= 0)
		close(kaddr->tun);
	free(kaddr);
	ports->kaddr = NULL;
}

bool
rcd_kaddr_state(const struct rcd_ports *ports, struct rcd_kaddr_state *state)
{
	const struct rcd_kaddr *kaddr = ports->kaddr;

	RCD_ON_CONTROL();
	if (kaddr == NULL)
		return false;
	*state = (struct rcd_kaddr_state){
		.missing = kaddr->missing[0] != '\0' ? kaddr->missing : NULL,
		.ifname = kaddr->ifname,
		.addrs = kaddr->lent,
		.count = kaddr->count,
	};
	return true;
}
