/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The three attachments: an end of an embedded wire, a kernel's netdev, any DPDK port. Each finds
 * or makes an ethdev; setting it up is common to all.
 */
#include "rcd_attach.h"

#include <errno.h>
#include <net/if.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_away.h"
#include "rcd_dev.h"
#include "rcd_dev_wait.h"
#include "rcd_ethdev.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_log.h"
#include "rcd_hold.h"
#include "rcd_memif.h"
#include "rcd_netlink.h"
#include "rcd_ports.h"
#include "rcd_ring.h"
#include "rcd_steer.h"
#include "rcd_thread.h"
#include "rcd_tuntap.h"
#include "rcd_unplug.h"
#include "rcd_xdp.h"

#define WIRE_RING 1024

/** Room for numbers of descriptors, of all queues of a port. */
#define UDP_SOCKETS_LEN 1024

/** Room of a buffer that with its mempool header and struct rte_mbuf fills a page. */
#define XDP_MBUF_ROOM 3584
#define XDP_BUFFERS   16383
#define XDP_MTU_MAX   (XDP_MBUF_ROOM - RTE_PKTMBUF_HEADROOM - 256)

__attribute__((format(printf, 3, 4))) static void
attach_say(char *error, size_t error_len, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, error_len, format, args);
	va_end(args);
}

/* Rings of a wire: one for each queue and direction, named by the end that sends. */
static struct rte_ring *
attach_wire_ring(const struct rcd_dev *sender, uint16_t queue, bool make)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "rcdw_%u_%u", sender->lport.serial, queue);
	if (make)
		return rte_ring_create(name, WIRE_RING, sender->socket_id, RING_F_EXACT_SZ);
	return rte_ring_lookup(name);
}

static int
attach_wire_end(struct rcd_dev *dev, char *error, size_t error_len)
{
	struct rte_ring *rx[RCD_LCORES_MAX], *tx[RCD_LCORES_MAX];
	char name[32];
	int port;

	for (uint16_t i = 0; i < dev->lport.queues; i++) {
		rx[i] = attach_wire_ring(dev->peer, i, false);
		tx[i] = attach_wire_ring(dev, i, false);
	}
	snprintf(name, sizeof(name), "rocade%u", dev->lport.serial);
	port = rte_eth_from_rings(
		name, rx, dev->lport.queues, tx, dev->lport.queues, (unsigned int)dev->socket_id);
	if (port < 0) {
		attach_say(error, error_len, "%s: no ring port: %s", dev->conf.name,
			rte_strerror(rte_errno));
		return -ENODEV;
	}
	dev->lport.port_id = (uint16_t)port;
	snprintf(dev->vdev, sizeof(dev->vdev), "net_ring_%s", name);
	return 0;
}

int
rcd_attach_wire_rings(struct rcd_dev *dev, char *error, size_t error_len)
{
	uint16_t queues = (uint16_t)dev->ports->conf.lcores->count;

	RCD_ON_CONTROL();
	for (uint16_t i = 0; i < queues; i++) {
		if (attach_wire_ring(dev, i, true) == NULL ||
			attach_wire_ring(dev->peer, i, true) == NULL) {
			attach_say(error, error_len, "%s: no memory for the wire", dev->conf.name);
			return -ENOMEM;
		}
	}
	return 0;
}

void
rcd_detach_wire_rings(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	for (uint16_t i = 0; i < RCD_LCORES_MAX; i++)
		rcd_ring_free(attach_wire_ring(dev, i, false));
}

static int
attach_probe(struct rcd_dev *dev, const char *driver, const char *args)
{
	int err;

	snprintf(dev->vdev, sizeof(dev->vdev), "%s_rocade%u", driver, dev->lport.serial);
	err = rte_eal_hotplug_add("vdev", dev->vdev, args);
	if (err == 0 && rte_eth_dev_get_port_by_name(dev->vdev, &dev->lport.port_id) == 0)
		return 0;
	if (err == 0)
		rte_eal_hotplug_remove("vdev", dev->vdev);
	dev->vdev[0] = '\0';
	return err != 0 ? err : -ENODEV;
}

static int
attach_packet(struct rcd_dev *dev)
{
	char args[400];
	/*
	 * Frames lie in blocks without gaps, blocks are whole pages. The larger frame holds what
	 * RoCE sends and no more; 32 of them are 35 pages. Longer frames are the kernel's alone.
	 */
	bool large = dev->mtu + 256 > 2048;
	unsigned int frame = large ? 4480 : 2048;
	unsigned int block = large ? 143360 : 65536;

	snprintf(args, sizeof(args), "iface=%s,qpairs=%u,framesz=%u,blocksz=%u,framecnt=%u",
		dev->conf.target, dev->lport.queues, frame, block, 1024u);
	return attach_probe(dev, "net_af_packet", args);
}

static int
attach_xdp(struct rcd_dev *dev)
{
	char path[512];
	char args[900];

	/* Without the program all packets of the netdev would be ours: the kernel keeps it. */
	if (rcd_xdp_program(path, sizeof(path)) == NULL)
		return -ENOENT;
	/*
	 * The kernel takes buffers of a page at most, each with all that DPDK puts before the data.
	 * There must be more than fill, receive, send and completion rings hold: a receiver without
	 * buffers stops for good.
	 */
	if (rcd_ethdev_make_pool(dev, XDP_BUFFERS, XDP_MBUF_ROOM) != 0)
		return -ENOMEM;
	snprintf(args, sizeof(args), "iface=%s,start_queue=0,queue_count=%u,xdp_prog=%s",
		dev->conf.target, dev->lport.queues, path);
	return attach_probe(dev, "net_af_xdp", args);
}

/* What the kernel has of a netdev that is there. */
static int
attach_follow_netdev(struct rcd_dev *dev, char *error, size_t error_len)
{
	int err = rcd_netlink_sync(dev);

	if (err != 0)
		attach_say(error, error_len, "%s: the kernel does not tell of %s: %s",
			dev->conf.name, rcd_dev_conf_netdev(&dev->conf), strerror(-err));
	return err;
}

static int
attach_netdev(struct rcd_dev *dev, char *error, size_t error_len)
{
	int err;

	if (dev->away != NULL && dev->away->queue_count < dev->lport.queues) {
		attach_say(error, error_len,
			"%s: too few sockets of its network namespace for the engine's lcores",
			dev->conf.name);
		return -EINVAL;
	}
	err = dev->away != NULL ? rcd_away_begin(dev) : 0;
	if (err != 0) {
		attach_say(error, error_len, "%s: the sockets of its network namespace: %s",
			dev->conf.name, strerror(-err));
		return err;
	}
	dev->mode = RCD_NETDEV_AUTO;
	dev->ifindex = rcd_netlink_find(dev);
	if (dev->ifindex != 0)
		return attach_follow_netdev(dev, error, error_len);
	attach_say(error, error_len, "%s: there is no netdev %s%s", dev->conf.name,
		dev->conf.target, rcd_dev_by_address(dev) ? ", and none with this address" : "");
	return -ENODEV;
}

/* Give the kernel its netdev on a port that is started. */
static int
attach_kernel(struct rcd_dev *dev, char *error, size_t error_len)
{
	int err = rcd_tuntap_open(dev, error, error_len);

	/* What the kernel told of the netdev until now, such as its first MAC, is past. */
	if (err == 0)
		rcd_netlink_ready(dev->ports->netlink);
	if (err == 0)
		err = attach_follow_netdev(dev, error, error_len);
	return err == 0 ? rcd_hold_port(dev, error, error_len) : err;
}

/* Put net_impair before the port. */
static int
attach_wrap(struct rcd_dev *dev, char *error, size_t error_len)
{
	char name[RTE_ETH_NAME_MAX_LEN], vdev[64];
	char args[RTE_ETH_NAME_MAX_LEN + sizeof(dev->conf.impair) + 8];
	uint16_t inner = dev->lport.port_id;
	struct rte_eth_dev_info info;
	int err = rte_eth_dev_get_name_by_port(inner, name);

	if (err == 0)
		err = rte_eth_dev_info_get(inner, &info);
	if (err != 0)
		return err;
	snprintf(args, sizeof(args), "port=%s,%s", name, dev->conf.impair);
	memcpy(vdev, dev->vdev, sizeof(vdev));
	err = attach_probe(dev, "net_impair", args);
	if (err != 0) {
		memcpy(dev->vdev, vdev, sizeof(vdev));
		attach_say(error, error_len, "%s: %s", dev->conf.name,
			dev->ports->conf.impair_set == NULL
				? "this build has no net_impair (usertools/rocade-driver-sdk.sh)"
				: "net_impair does not take its arguments, as the log says");
		return err;
	}
	dev->wrapped = vdev[0] != '\0' ? info.device : NULL;
	return 0;
}

static int
attach_start_port(struct rcd_dev *dev, char *error, size_t error_len)
{
	int err = dev->conf.impair[0] != '\0' ? attach_wrap(dev, error, error_len) : 0;

	return err == 0 ? rcd_ethdev_start(dev, error, error_len) : err;
}

static void
attach_close_port(struct rcd_dev *dev);

static int
attach_open_udp(struct rcd_dev *dev, char *error, size_t error_len)
{
	char args[sizeof(dev->conf.target) + 8 + UDP_SOCKETS_LEN];
	struct rte_devargs known = { .bus = NULL };
	int err = rte_devargs_parse(&known, "net_udp");

	free(known.data);
	if (err != 0) {
		attach_say(error, error_len,
			"%s: this build has no net_udp (usertools/rocade-driver-sdk.sh)",
			dev->conf.name);
		return -ENOTSUP;
	}
	/* The kernel takes nearly any name, arguments of drivers have a grammar. */
	if (strpbrk(dev->conf.target, ",=[]\\ ") != NULL) {
		attach_say(error, error_len, "%s: no driver takes a netdev of this name",
			dev->conf.name);
		return -EINVAL;
	}
	snprintf(args, sizeof(args), "iface=%s%s", dev->conf.target,
		dev->away != NULL ? ",sockets=" : "");
	if (dev->away != NULL)
		err = rcd_away_args(dev->away, dev->lport.queues, args + strlen(args),
			sizeof(args) - strlen(args));
	if (err == 0)
		err = attach_probe(dev, "net_udp", args);
	if (dev->away != NULL)
		rcd_away_queued(dev->away);
	if (err == 0)
		return attach_start_port(dev, error, error_len);
	attach_say(error, error_len, "%s: net_udp does not take %s: %s", dev->conf.name,
		dev->conf.target, strerror(-err));
	return err;
}

static int
attach_open_xdp(struct rcd_dev *dev, char *error, size_t error_len)
{
	int err;

	dev->mtu_max = XDP_MTU_MAX;
	err = rcd_xdp_begin(dev);
	if (err == 0)
		err = attach_xdp(dev);
	if (err == 0)
		err = attach_start_port(dev, error, error_len);
	return err == 0 ? rcd_xdp_hold(dev) : err;
}

static int
attach_open_packet(struct rcd_dev *dev, char *error, size_t error_len)
{
	int err = attach_packet(dev);

	return err == 0 ? attach_start_port(dev, error, error_len) : err;
}

/* Ways to reach a netdev, the one that is tried first before others. */
static const struct netdev_way {
	enum rcd_netdev_mode mode;
	const char *name;
	int (*open)(struct rcd_dev *dev, char *error, size_t error_len);
} netdev_ways[] = {
	{ RCD_NETDEV_XDP, "AF_XDP", attach_open_xdp },
	{ RCD_NETDEV_UDP, "UDP sockets", attach_open_udp },
	{ RCD_NETDEV_PACKET, "AF_PACKET", attach_open_packet },
};

/* A virtual netdev has no driver that could do more for AF_XDP than others do without. */
static bool
attach_may_go(const struct rcd_dev *dev, enum rcd_netdev_mode mode)
{
	char path[320];

	if (mode == dev->conf.mode)
		return true;
	if (mode != RCD_NETDEV_XDP)
		return dev->conf.mode == RCD_NETDEV_AUTO ||
			(dev->conf.mode == RCD_NETDEV_XDP && mode == RCD_NETDEV_PACKET);
	snprintf(path, sizeof(path), "/sys/class/net/%s/device", dev->conf.target);
	return dev->conf.mode == RCD_NETDEV_AUTO && access(path, F_OK) == 0;
}

/* By UDP, the driver's sockets have the port. */
static int
attach_go(struct rcd_dev *dev, const struct netdev_way *way, char *error, size_t error_len)
{
	int err = 0;

	dev->mode = way->mode;
	error[0] = '\0';
	if (way->mode != RCD_NETDEV_UDP)
		err = rcd_hold_port(dev, error, error_len);
	if (err == 0)
		err = way->open(dev, error, error_len);
	if (err != 0 && error[0] == '\0')
		attach_say(error, error_len, "%s: %s on %s: %s", dev->conf.name, way->name,
			dev->conf.target, strerror(-err));
	return err;
}

/* What did not work leaves nothing, and may have had fewer queues and shorter packets. */
static void
attach_clear(struct rcd_dev *dev, uint32_t mtu)
{
	attach_close_port(dev);
	rcd_hold_release(dev);
	dev->mtu = mtu;
	dev->mtu_max = 0;
	dev->lport.queues = (uint16_t)dev->ports->conf.lcores->count;
}

/* A port on the netdev by the first driver that works. */
static int
attach_open_netdev(struct rcd_dev *dev, char *error, size_t error_len)
{
	const struct netdev_way *tried = NULL;
	uint32_t mtu = dev->mtu;
	int err = -EINVAL;

	for (const struct netdev_way *way = netdev_ways; way < netdev_ways + RTE_DIM(netdev_ways);
		way++) {
		if (!attach_may_go(dev, way->mode))
			continue;
		if (tried != NULL) {
			RCD_LOG(NOTICE, "%s: no %s on %s (%s); trying %s", dev->conf.name,
				tried->name, dev->conf.target, error, way->name);
			attach_clear(dev, mtu);
		}
		err = attach_go(dev, way, error, error_len);
		if (err == 0)
			return 0;
		tried = way;
	}
	return err;
}

/* Whose a port is, or the NIC that it is of, behind net_impair too. @return NULL: nobody's */
static const struct rcd_dev *
attach_find_owner(const struct rcd_dev *dev, uint16_t port_id)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port_id, &info) != 0)
		info.device = NULL;
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		const struct rcd_dev *other = dev->ports->devs[i];

		if (other != NULL && other != dev && other->started &&
			(other->lport.port_id == port_id ||
				(other->wrapped != NULL && other->wrapped == info.device)))
			return other;
	}
	return NULL;
}

static int
attach_port(struct rcd_dev *dev, char *error, size_t error_len)
{
	const struct rcd_dev *owner;
	char name[64], path[sizeof(dev->conf.target)];
	size_t len = strcspn(dev->conf.target, ","), path_len = sizeof(path);
	int err;

	snprintf(name, sizeof(name), "%.*s", (int)len, dev->conf.target);
	if (!dev->conf.fed && strncmp(name, RCD_DEV_FED_PORT, strlen(RCD_DEV_FED_PORT)) == 0) {
		attach_say(error, error_len, "%s: %s is a port that the program feeds",
			dev->conf.name, name);
		return -EBUSY;
	}
	if (rte_eth_dev_get_port_by_name(name, &dev->lport.port_id) == 0) {
		owner = attach_find_owner(dev, dev->lport.port_id);
		if (owner != NULL) {
			attach_say(error, error_len, "%s: %s is the port of %s", dev->conf.name,
				name, owner->conf.name);
			return -EBUSY;
		}
		/* EAL made it: of options, which stay, or of a NIC, which can be had again. */
		if (rcd_ethdev_nic(dev->lport.port_id) != NULL)
			snprintf(dev->vdev, sizeof(dev->vdev), "%s", name);
		return 0;
	}
	if (rcd_memif_socket(dev->conf.target, path, &path_len) == 0)
		rcd_memif_prepare(path, path_len);
	err = rte_dev_probe(dev->conf.target);
	if (err == 0 && rte_eth_dev_get_port_by_name(name, &dev->lport.port_id) == 0) {
		snprintf(dev->vdev, sizeof(dev->vdev), "%s", name);
		return 0;
	}
	attach_say(error, error_len, "%s: EAL finds no port %s", dev->conf.name, dev->conf.target);
	return err != 0 ? err : -ENODEV;
}

int
rcd_attach(struct rcd_dev *dev, char *error, size_t error_len)
{
	struct rcd_dev_wait_sockets sockets;
	int err = -EINVAL;

	RCD_ON_CONTROL();
	sockets.count = 0;
	if (rcd_lcores_sleep(dev->ports->conf.lcores))
		rcd_dev_wait_look(&sockets);
	dev->lport.queues = (uint16_t)dev->ports->conf.lcores->count;
	dev->socket_id = dev->ports->conf.lcores->lcore[0]->socket_id;
	switch (dev->conf.attach) {
	case RCD_ATTACH_WIRE:
		err = attach_wire_end(dev, error, error_len);
		break;
	case RCD_ATTACH_NETDEV:
		err = attach_netdev(dev, error, error_len);
		if (err == 0)
			err = attach_open_netdev(dev, error, error_len);
		break;
	case RCD_ATTACH_PORT:
		err = attach_port(dev, error, error_len);
		break;
	}
	if (err != 0)
		return err;
	if (rte_eth_dev_socket_id(dev->lport.port_id) >= 0)
		dev->socket_id = rte_eth_dev_socket_id(dev->lport.port_id);
	if (dev->ports->conf.pools[dev->socket_id] == NULL)
		dev->socket_id = dev->ports->conf.lcores->lcore[0]->socket_id;
	if (dev->conf.attach != RCD_ATTACH_NETDEV)
		err = attach_start_port(dev, error, error_len);
	if (err != 0)
		return err;
	rcd_dev_wait_set(dev, &sockets);
	rcd_unplug_watch(dev);
	err = rcd_ethdev_take_mac(dev, error, error_len);
	if (err != 0)
		return err;
	return dev->conf.kernel[0] != '\0' ? attach_kernel(dev, error, error_len) : 0;
}

/* The last device of a memif's socket takes it along. */
static void
attach_leave_memif(const struct rcd_dev *dev)
{
	char path[sizeof(dev->conf.target)], other_path[sizeof(dev->conf.target)];
	size_t len = sizeof(path);

	if (dev->vdev[0] == '\0' || dev->conf.attach != RCD_ATTACH_PORT ||
		rcd_memif_socket(dev->conf.target, path, &len) != 0)
		return;
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		const struct rcd_dev *other = dev->ports->devs[i];
		size_t other_len = sizeof(other_path);

		if (other != NULL && other != dev && other->conf.attach == RCD_ATTACH_PORT &&
			rcd_memif_socket(other->conf.target, other_path, &other_len) == 0 &&
			other_len == len && memcmp(path, other_path, len) == 0)
			return;
	}
	rcd_memif_deafen(path, len);
}

static void
attach_close_port(struct rcd_dev *dev)
{
	struct rte_eth_dev_info info;

	attach_leave_memif(dev);
	rcd_unplug_end(dev);
	if (dev->started) {
		rcd_steer_end(dev);
		rte_eth_dev_stop(dev->lport.port_id);
	}
	dev->started = false;
	rcd_xdp_release(dev);
	if (dev->vdev[0] != '\0' && rte_eth_dev_info_get(dev->lport.port_id, &info) == 0) {
		rte_eth_dev_close(dev->lport.port_id);
		/* A NIC may have ports besides, of other devices. */
		if (rte_eth_find_next_of(0, info.device) == RTE_MAX_ETHPORTS)
			rte_dev_remove(info.device);
	}
	if (dev->wrapped != NULL)
		rte_dev_remove(dev->wrapped);
	dev->wrapped = NULL;
	dev->vdev[0] = '\0';
	rcd_xdp_end(dev);
	/* A port that is stopped, but was not made for the device, may keep some of it for ever. */
	if (dev->pool != NULL && rte_mempool_full(dev->pool))
		rte_mempool_free(dev->pool);
	else if (dev->pool != NULL)
		RCD_LOG(WARNING, "%s: its port keeps buffers: their memory is lost",
			dev->conf.name);
	dev->pool = NULL;
}

void
rcd_detach(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	rcd_tuntap_stop(dev);
	attach_close_port(dev);
	rcd_tuntap_close(dev);
	rcd_hold_release(dev);
}
