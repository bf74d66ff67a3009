/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An ethdev is configured when its device is made, and anew when its driver says that it was reset:
 * as many queues as lcores, and what else its driver offers of what a device can use. Another MTU
 * takes no configuring, but may take a stop.
 */
#include "rcd_ethdev.h"

#include <errno.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf_dyn.h>
#include <stdio.h>
#include <string.h>

#include "rcd_clock.h"
#include "rcd_dev.h"
#include "rcd_dev_wait.h"
#include "rcd_groups.h"
#include "rcd_lcores.h"
#include "rcd_log.h"
#include "rcd_lport.h"
#include "rcd_mbuf_flag.h"
#include "rcd_pause.h"
#include "rcd_ports.h"
#include "rcd_steer.h"
#include "rcd_thread.h"
#include "rcd_tuntap.h"
#include "rcd_vlans.h"
#include "rcd_wr.h"

#define DESCRIPTORS 1024
#define POOL_CACHE  64

/** IP MTU that the largest path MTU needs. */
#define MTU_USEFUL (RCD_PATH_MTU_MAX_BYTES + RCD_PATH_MTU_ROOM_BYTES)

/** How long a port may ask for patience: a virtual function's may itself be in its reset. */
#define RESET_NS UINT64_C(30000000000)

/** Buffers of a port that can't put a frame into several, besides those of its descriptors. */
#define JUMBO_BUFFERS 2047

int
rcd_ethdev_make_pool(struct rcd_dev *dev, uint32_t count, uint16_t room)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	RCD_ON_CONTROL();
	if (dev->pool != NULL)
		return 0;
	snprintf(name, sizeof(name), "rocade_rx_%u", dev->lport.serial);
	dev->pool = rte_pktmbuf_pool_create(name, count, POOL_CACHE, 0, room, dev->socket_id);
	return dev->pool != NULL ? 0 : -ENOMEM;
}

bool
rcd_ethdev_is_nic(const struct rte_device *device)
{
	RCD_ON_CONTROL();
	return device != NULL && strcmp(rte_bus_name(rte_dev_bus(device)), "pci") == 0;
}

const struct rte_device *
rcd_ethdev_nic(uint16_t port_id)
{
	struct rte_eth_dev_info info;

	RCD_ON_CONTROL();
	if (rte_eth_dev_info_get(port_id, &info) != 0 || !rcd_ethdev_is_nic(info.device))
		return NULL;
	return info.device;
}

/*
 * The kernel's frames may be longer than a buffer: then they come in several, or, where the driver
 * knows no such thing, in longer buffers.
 */
static int
ethdev_take_jumbo(struct rcd_dev *dev, const struct rte_eth_dev_info *info, uint64_t *offloads)
{
	struct rte_mempool *pool = dev->ports->conf.pools[dev->socket_id];
	uint32_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;

	/* Drivers of the kernel's sockets say 1514 and take more. */
	if (dev->conf.kernel[0] == '\0' ||
		RTE_MAX(info->max_rx_pktlen, info->max_mtu + (uint32_t)RCD_ETH_TWO_TAGS_LEN) <=
			room)
		return 0;
	if (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) {
		*offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
		return 0;
	}
	return rcd_ethdev_make_pool(dev,
		rcd_lport_rx_queues(&dev->lport) * DESCRIPTORS + JUMBO_BUFFERS,
		RTE_PKTMBUF_HEADROOM + RCD_TUNTAP_FRAME_MAX);
}

/* Drivers that offer sums and have no NIC for them: the kernel's own cores are better for that. */
static bool
ethdev_sums_itself(const struct rte_eth_dev_info *info)
{
	return strcmp(info->driver_name, "net_tap") == 0 ||
		strcmp(info->driver_name, "net_vhost") == 0;
}

/*
 * Of the kernel's frames, whose stack then need not look at all bytes; RoCE has no such sums. A
 * kernel knows no half: both or none.
 */
static void
ethdev_take_csum(struct rcd_dev *dev, const struct rte_eth_dev_info *info, uint64_t *offloads)
{
	const uint64_t sums = RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	bool take = dev->conf.kernel[0] != '\0' && (info->tx_offload_capa & sums) == sums &&
		!ethdev_sums_itself(info);

	if (take)
		*offloads |= sums;
	__atomic_store_n(&dev->lport.csum, take, __ATOMIC_RELAXED);
}

static int
ethdev_setup_queues(struct rcd_dev *dev)
{
	struct rcd_lport *lport = &dev->lport;
	struct rte_mempool *pool =
		dev->pool != NULL ? dev->pool : dev->ports->conf.pools[dev->socket_id];
	uint16_t rx_desc = DESCRIPTORS, tx_desc = DESCRIPTORS;
	unsigned int socket_id = (unsigned int)dev->socket_id;
	int err = rte_eth_dev_adjust_nb_rx_tx_desc(lport->port_id, &rx_desc, &tx_desc);

	for (uint16_t i = 0; err == 0 && i < rcd_lport_rx_queues(lport); i++)
		err = rte_eth_rx_queue_setup(lport->port_id, i, rx_desc, socket_id, NULL, pool);
	for (uint16_t i = 0; err == 0 && i < lport->queues; i++)
		err = rte_eth_tx_queue_setup(lport->port_id, i, tx_desc, socket_id, NULL);
	return err;
}

static int
ethdev_configure(struct rcd_dev *dev, const struct rte_eth_dev_info *info)
{
	struct rte_eth_conf conf = { .rxmode.mq_mode = RTE_ETH_MQ_RX_NONE,
		.intr_conf.rxq = dev->interrupts };
	struct rcd_lport *lport = &dev->lport;
	uint16_t queues = RTE_MIN(lport->queues, RTE_MIN(info->max_rx_queues, info->max_tx_queues));
	int err;

	/* Lcores send by those that there were. */
	if (dev->shown && queues < lport->queues)
		return -ENODEV;
	lport->queues = queues;
	lport->exception_queue = dev->steer.kind == RCD_STEER_FLOW ? lport->queues : 0;
	rcd_steer_configure(dev, info, &conf);
	ethdev_take_csum(dev, info, &conf.txmode.offloads);
	err = ethdev_take_jumbo(dev, info, &conf.rxmode.offloads);
	if (err == 0)
		err = rte_eth_dev_configure(
			lport->port_id, rcd_lport_rx_queues(lport), lport->queues, &conf);
	return err == 0 ? ethdev_setup_queues(dev) : err;
}

/* A port that can't change its MTU keeps the one it has. So does one whose MTU is the kernel's. */
static void
ethdev_set_mtu(struct rcd_dev *dev, uint16_t most)
{
	uint16_t mtu = (uint16_t)(dev->conf.mtu != 0 ? dev->conf.mtu : MTU_USEFUL);

	if (dev->conf.mtu == 0 && dev->conf.kernel[0] != '\0')
		rte_eth_dev_get_mtu(dev->lport.port_id, &mtu);
	mtu = RTE_MIN(mtu, most);
	if (rte_eth_dev_set_mtu(dev->lport.port_id, mtu) == 0 || dev->lport.wire)
		dev->mtu = mtu;
	else if (rte_eth_dev_get_mtu(dev->lport.port_id, &mtu) == 0)
		dev->mtu = dev->conf.mtu != 0 ? dev->conf.mtu : mtu;
}

static int
ethdev_start(struct rcd_dev *dev, const struct rte_eth_dev_info *info, const char **what)
{
	int err = ethdev_configure(dev, info);

	*what = "can't be configured";
	if (err != 0)
		return err;
	/* That of a netdev is its owner's. */
	if (dev->conf.attach != RCD_ATTACH_NETDEV)
		ethdev_set_mtu(dev, info->max_mtu);
	*what = "does not take flow rules";
	err = rcd_steer_check(dev);
	if (err != 0)
		return err;
	*what = "does not start";
	err = rte_eth_dev_start(dev->lport.port_id);
	if (err != 0)
		return err;
	err = rcd_steer_begin(dev);
	if (err != 0)
		rte_eth_dev_stop(dev->lport.port_id);
	return err;
}

/* A driver knows at its start that its device has too few interrupts, or none. */
static bool
ethdev_lacks_interrupts(int err)
{
	return err != 0 && err != -EADDRINUSE && err != -EACCES && err != -ENODEV;
}

/* An ethdev that is not configured, to one that runs. */
static int
ethdev_begin(struct rcd_dev *dev, struct rte_eth_dev_info *info, const char **what)
{
	int err = rte_eth_dev_info_get(dev->lport.port_id, info);

	*what = "does not tell what it can do";
	if (err != 0)
		return err;
	rcd_steer_plan(dev, info);
	do {
		dev->interrupts = !dev->lport.wire && rcd_lcores_sleep(dev->ports->conf.lcores);
		err = ethdev_start(dev, info, what);
		if (dev->interrupts && ethdev_lacks_interrupts(err)) {
			dev->interrupts = false;
			err = ethdev_start(dev, info, what);
		}
	} while (err != 0 && rcd_steer_less(dev));
	return err;
}

/* Of any port: who has the flag may be behind another, as behind net_impair. */
static uint64_t
ethdev_any_id(void)
{
	int bit = rte_mbuf_dynflag_lookup(RCD_MBUF_FLAG_ANY_ID, NULL);

	return bit >= 0 ? UINT64_C(1) << bit : 0;
}

int
rcd_ethdev_start(struct rcd_dev *dev, char *error, size_t error_len)
{
	struct rte_eth_dev_info info;
	const char *what;
	int err;

	RCD_ON_CONTROL();
	err = ethdev_begin(dev, &info, &what);
	if (err != 0) {
		snprintf(error, error_len, "%s: the port %s: %s", dev->conf.name, what,
			strerror(-err));
		return err;
	}
	dev->started = true;
	dev->lport.any_id = ethdev_any_id();
	rcd_groups_tell(dev);
	err = rcd_pause_tell(dev, dev->conf.pause);
	if (err != 0) {
		snprintf(error, error_len, "%s: pause %s: the driver refuses: %s", dev->conf.name,
			rcd_pause_name(dev->conf.pause), strerror(-err));
		return err;
	}
	snprintf(dev->driver, sizeof(dev->driver), "%s", info.driver_name);
	return 0;
}

/* It did once. */
static void
ethdev_tell_pause(struct rcd_dev *dev)
{
	int err = rcd_pause_tell(dev, dev->conf.pause);

	if (err != 0)
		RCD_LOG(WARNING, "%s: PAUSE frames are not %s any more: %s", dev->conf.name,
			rcd_pause_name(dev->conf.pause), strerror(-err));
}

/* It runs again, or it is lost. */
static void
ethdev_resume(struct rcd_dev *dev, int err)
{
	dev->started = err == 0;
	if (err == 0) {
		rcd_groups_tell(dev);
		rcd_vlans_tell(dev);
		ethdev_tell_pause(dev);
		rcd_dev_wait_again(dev);
		if (dev->shown)
			rcd_lport_resume(&dev->lport);
		return;
	}
	RCD_LOG(ERR, "%s: its port does not start again: %s", dev->conf.name, strerror(-err));
	__atomic_store_n(&dev->unplug_asked, true, __ATOMIC_RELAXED);
}

/*
 * Start a port that was stopped for a moment. It was told all there is; flow rules it may refuse
 * now, and is set up without them then.
 */
static int
ethdev_restart(struct rcd_dev *dev, uint16_t mtu)
{
	uint16_t port_id = dev->lport.port_id;
	struct rte_eth_dev_info info;
	int err = rte_eth_dev_start(port_id);

	while (err == 0 && rcd_steer_begin(dev) != 0) {
		err = rte_eth_dev_stop(port_id);
		if (err == 0)
			err = rte_eth_dev_info_get(port_id, &info);
		if (err == 0 && !rcd_steer_less(dev))
			err = -ENOTSUP;
		if (err == 0)
			err = ethdev_configure(dev, &info);
		if (err == 0)
			err = rte_eth_dev_set_mtu(port_id, mtu);
		if (err == 0)
			err = rte_eth_dev_start(port_id);
	}
	return err;
}

int
rcd_ethdev_change_mtu(struct rcd_dev *dev, uint16_t mtu)
{
	int err, started;

	RCD_ON_CONTROL();
	if (dev->reset_ns != 0)
		return -EAGAIN;
	err = rte_eth_dev_set_mtu(dev->lport.port_id, mtu);
	if (err != -EBUSY || !dev->started)
		return err;
	if (dev->shown)
		rcd_lport_pause(&dev->lport);
	rcd_steer_end(dev);
	started = rte_eth_dev_stop(dev->lport.port_id);
	if (started == 0) {
		err = rte_eth_dev_set_mtu(dev->lport.port_id, mtu);
		started = ethdev_restart(dev, err == 0 ? mtu : (uint16_t)dev->mtu);
	}
	ethdev_resume(dev, started);
	return started != 0 ? started : err;
}

/* Two ends of a wire need different addresses, the same ones at each start. */
static void
ethdev_make_mac(struct rcd_dev *dev)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (const char *at = dev->conf.name; *at != '\0'; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619u;
	dev->mac[0] = 0x02;
	dev->mac[1] = 0x52;
	memcpy(dev->mac + 2, &hash, 4);
}

int
rcd_ethdev_take_mac(struct rcd_dev *dev, char *error, size_t error_len)
{
	static const uint8_t none[RCD_MAC_LEN];
	struct rte_ether_addr own = { .addr_bytes = { 0 } }, wanted;
	int err;

	RCD_ON_CONTROL();
	memcpy(wanted.addr_bytes, dev->conf.mac, RCD_MAC_LEN);
	if (dev->conf.attach == RCD_ATTACH_PORT &&
		rte_eth_macaddr_get(dev->lport.port_id, &own) == 0)
		memcpy(dev->mac, own.addr_bytes, RCD_MAC_LEN);
	/* Of rings: those of a wire, and those that a program feeds. */
	if (dev->conf.attach != RCD_ATTACH_NETDEV && rte_is_zero_ether_addr(&own))
		ethdev_make_mac(dev);
	/* Tunnels, which sockets reach: the port is to know which. */
	if (rcd_dev_is_udp(dev) && memcmp(dev->mac, none, RCD_MAC_LEN) == 0) {
		ethdev_make_mac(dev);
		memcpy(wanted.addr_bytes, dev->mac, RCD_MAC_LEN);
	}
	if (rte_is_zero_ether_addr(&wanted))
		return 0;
	err = dev->lport.wire ? 0 : rte_eth_dev_default_mac_addr_set(dev->lport.port_id, &wanted);
	if (err != 0 && !(err == -ENOTSUP && rte_is_zero_ether_addr(&own))) {
		snprintf(error, error_len, "%s: mac: the driver refuses: %s", dev->conf.name,
			strerror(-err));
		return err;
	}
	memcpy(dev->mac, wanted.addr_bytes, RCD_MAC_LEN);
	return 0;
}

void
rcd_ethdev_follow_mac(const struct rcd_dev *dev, const uint8_t *mac)
{
	struct rte_ether_addr addr;
	int err;

	RCD_ON_CONTROL();
	if (memcmp(dev->mac, mac, RCD_MAC_LEN) == 0)
		return;
	memcpy(addr.addr_bytes, mac, RCD_MAC_LEN);
	err = rte_eth_dev_default_mac_addr_set(dev->lport.port_id, &addr);
	if (err != 0)
		RCD_LOG(WARNING, "%s: its port does not take another MAC: %s", dev->conf.name,
			strerror(-err));
}

void
rcd_ethdev_reset(struct rcd_dev *dev)
{
	struct rte_ether_addr mac;
	struct rte_eth_dev_info info;
	uint16_t mtu = (uint16_t)dev->mtu;
	const char *what = "is not reset";
	int err;

	RCD_ON_CONTROL();
	if (dev->reset_ns == 0) {
		RCD_LOG(NOTICE, "%s: the driver asks for a reset", dev->conf.name);
		rcd_lport_pause(&dev->lport);
		rcd_steer_end(dev);
		dev->reset_ns = rcd_clock_ns();
	}
	/* It stops the port, if the driver didn't. */
	err = rte_eth_dev_reset(dev->lport.port_id);
	if (err == -EAGAIN && rcd_clock_ns() - dev->reset_ns < RESET_NS) {
		__atomic_store_n(&dev->reset_asked, true, __ATOMIC_RELAXED);
		return;
	}
	dev->reset_ns = 0;
	if (err == 0)
		err = ethdev_begin(dev, &info, &what);
	if (err == 0) {
		memcpy(mac.addr_bytes, dev->mac, RCD_MAC_LEN);
		rte_eth_dev_default_mac_addr_set(dev->lport.port_id, &mac);
	}
	ethdev_resume(dev, err);
	if (err == 0 && mtu != dev->mtu && rcd_ethdev_change_mtu(dev, mtu) == 0)
		dev->mtu = mtu;
}
