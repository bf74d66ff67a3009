/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * net_udp as an Ethernet device: its sockets are there while it is started; those that were given,
 * from its beginning.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <rte_interrupts.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <rte_random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ethdev_driver.h>
#include <ethdev_vdev.h>

#include "rcd_pmd_udp.h"
#include "udp_dev.h"
#include "udp_frame.h"

RTE_LOG_REGISTER_DEFAULT(udp_logtype, NOTICE);
#define UDP_LOG(level, format, ...)                                                                \
	rte_log(RTE_LOG_##level, (uint32_t)udp_logtype, RCD_PMD_UDP_NAME ": " format "\n",         \
		##__VA_ARGS__)

/** Of a datagram, until a peer's are seen: as RoCE with the largest path MTU has them. */
#define FIRST_GUESS 4112

static int
udp_ethdev_configure(struct rte_eth_dev *eth)
{
	/* Each queue that is sent by has the sockets of one that is received from. */
	return eth->data->nb_tx_queues <= eth->data->nb_rx_queues ? 0 : -EINVAL;
}

static void
udp_ethdev_keep(struct udp_counts *gone, const struct udp_counts *counts)
{
	for (size_t i = 0; i < sizeof(*gone) / sizeof(uint64_t); i++)
		((uint64_t *)gone)[i] += ((const uint64_t *)counts)[i];
}

static void
udp_ethdev_free_rx(struct udp_dev *dev, uint16_t index)
{
	struct udp_rxq *rxq = dev->rx[index];

	if (rxq == NULL)
		return;
	udp_rx_clear(rxq);
	udp_ethdev_keep(&dev->gone_rx, &rxq->counts);
	dev->rx[index] = NULL;
	rte_free(rxq);
}

static void
udp_ethdev_free_tx(struct udp_dev *dev, uint16_t index)
{
	struct udp_txq *txq = dev->tx[index];

	if (txq == NULL)
		return;
	udp_ethdev_keep(&dev->gone_tx, &txq->counts);
	dev->tx[index] = NULL;
	rte_free(txq);
}

static int
udp_ethdev_rx_queue_setup(struct rte_eth_dev *eth, uint16_t index, uint16_t count,
	unsigned int socket_id, const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct udp_dev *dev = eth->data->dev_private;
	uint32_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	struct udp_rxq *rxq;

	(void)count;
	(void)conf;
	if (room <= UDP_FRAME_HDR_LEN6)
		return -EINVAL;
	udp_ethdev_free_rx(dev, index);
	rxq = rte_zmalloc_socket(
		"udp_rx", sizeof(*rxq) + 2 * UDP_BYTES, RTE_CACHE_LINE_SIZE, (int)socket_id);
	if (rxq == NULL)
		return -ENOMEM;
	rxq->dev = dev;
	rxq->sockets = &dev->sockets[index];
	rxq->pool = pool;
	rxq->port_id = eth->data->port_id;
	rxq->room = room;
	rxq->rest = (uint8_t *)(rxq + 1);
	rxq->whole = rxq->rest + UDP_BYTES;
	for (int i = 0; i < UDP_FAMILIES; i++)
		rxq->guess[i].size = RTE_MIN(room - (uint32_t)UDP_FRAME_HDR_LEN6, FIRST_GUESS);
	dev->rx[index] = rxq;
	eth->data->rx_queues[index] = rxq;
	return 0;
}

static int
udp_ethdev_tx_queue_setup(struct rte_eth_dev *eth, uint16_t index, uint16_t count,
	unsigned int socket_id, const struct rte_eth_txconf *conf)
{
	struct udp_dev *dev = eth->data->dev_private;
	struct udp_txq *txq;

	(void)count;
	(void)conf;
	udp_ethdev_free_tx(dev, index);
	txq = rte_zmalloc_socket("udp_tx", sizeof(*txq), RTE_CACHE_LINE_SIZE, (int)socket_id);
	if (txq == NULL)
		return -ENOMEM;
	txq->dev = dev;
	txq->sockets = &dev->sockets[index];
	dev->tx[index] = txq;
	eth->data->tx_queues[index] = txq;
	return 0;
}

static void
udp_ethdev_close_sockets(struct rte_eth_dev *eth)
{
	struct udp_dev *dev = eth->data->dev_private;

	if (eth->intr_handle != NULL) {
		rte_intr_vec_list_free(eth->intr_handle);
		rte_intr_instance_free(eth->intr_handle);
	}
	eth->intr_handle = NULL;
	for (uint16_t i = 0; i < dev->sockets_count; i++) {
		if (!dev->sockets[i].given)
			dev->gone_missed += udp_socket_missed(&dev->sockets[i]);
		udp_socket_stop(&dev->sockets[i]);
	}
	dev->sockets_count = 0;
}

/* Who sleeps waits for the descriptor that is readable while one of a queue's sockets is. */
static int
udp_ethdev_set_interrupts(struct rte_eth_dev *eth)
{
	const struct udp_dev *dev = eth->data->dev_private;
	struct rte_intr_handle *handle;
	int err;

	if (!eth->data->dev_conf.intr_conf.rxq)
		return 0;
	handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (handle == NULL)
		return -ENOMEM;
	eth->intr_handle = handle;
	/* Nobody is to read what it is. */
	err = rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT);
	if (err == 0)
		err = rte_intr_vec_list_alloc(handle, "udp", dev->sockets_count);
	if (err == 0)
		err = rte_intr_nb_efd_set(handle, dev->sockets_count);
	for (uint16_t i = 0; err == 0 && i < dev->sockets_count; i++) {
		err = rte_intr_vec_list_index_set(handle, i, RTE_INTR_VEC_RXTX_OFFSET + i);
		if (err == 0)
			err = rte_intr_efds_index_set(handle, i, dev->sockets[i].epoll);
	}
	return err != 0 ? -ENOMEM : 0;
}

/*
 * A socket of the netdev's network namespace: one that was given, or one of our own, in ours.
 * @return -errno: there is none
 */
static int
udp_ethdev_asker(const struct udp_dev *dev)
{
	int fd = -1;

	errno = EAFNOSUPPORT; /* all that were given may have been left out */
	for (int i = 0; fd < 0 && dev->args.given_count > 0 && i < UDP_SOCKETS; i++)
		if (dev->sockets[0].fds[i] >= 0)
			fd = fcntl(dev->sockets[0].fds[i], F_DUPFD_CLOEXEC, 0);
	if (fd < 0 && dev->args.given_count == 0)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 && dev->args.given_count == 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 ? fd : -errno;
}

/* An ioctl of the netdev, with what else is in ifr. @return 0 or -errno; -ENODEV: there is none */
static int
udp_ethdev_ask(const struct udp_dev *dev, unsigned long what, struct ifreq *ifr)
{
	int fd, err;

	if (dev->args.iface[0] == '\0')
		return -ENODEV;
	fd = udp_ethdev_asker(dev);
	if (fd < 0)
		return fd;
	memcpy(ifr->ifr_name, dev->args.iface, sizeof(ifr->ifr_name));
	err = ioctl(fd, what, ifr) == 0 ? 0 : -errno;
	close(fd);
	return err;
}

/* @return 0: there is no such netdev, or none is asked for */
static unsigned int
udp_ethdev_index(const struct udp_dev *dev)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	return udp_ethdev_ask(dev, SIOCGIFINDEX, &ifr) == 0 ? (unsigned int)ifr.ifr_ifindex : 0;
}

/* Of PCI or USB. Netdevs of no device have words here, as "N/A" and "tap", or nothing. */
static bool
udp_ethdev_is_bus_address(const char *info)
{
	unsigned int part[4];
	int len, count;

	if (strncmp(info, "usb-", 4) == 0)
		return true;
	count = sscanf(info, "%8x:%2x:%2x.%1x%n", &part[0], &part[1], &part[2], &part[3], &len);
	return count == 4 && info[len] == '\0';
}

/*
 * Whether the netdev is of a device that cuts runs, or has the kernel cut them: what isn't known
 * to be one is none. In other namespaces no file and no netlink tells, but ioctls of our sockets.
 */
static bool
udp_ethdev_is_nic(const struct udp_dev *dev)
{
	/* They give a run as it is to their host, which may give it to another guest. */
	static const char *const guests[] = { "virtio_net", "vmxnet3" };
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	ifr.ifr_data = (char *)&info;
	if (udp_ethdev_ask(dev, SIOCETHTOOL, &ifr) != 0 ||
		!udp_ethdev_is_bus_address(info.bus_info))
		return false;
	for (size_t i = 0; i < RTE_DIM(guests); i++)
		if (strcmp(info.driver, guests[i]) == 0)
			return false;
	return true;
}

static int
udp_ethdev_start(struct rte_eth_dev *eth)
{
	struct udp_dev *dev = eth->data->dev_private;
	bool shared = eth->data->nb_rx_queues > 1;
	char error[256];
	int err = 0;

	/* Another may have the name by now. */
	if (dev->args.iface[0] != '\0' && udp_ethdev_index(dev) != dev->ifindex) {
		UDP_LOG(ERR, "%s: the netdev %s is gone", eth->data->name, dev->args.iface);
		return -ENODEV;
	}
	if (shared && dev->args.given_count == 0)
		err = udp_socket_claim(&dev->args, error, sizeof(error));
	/* One that nobody reads would take its share of what comes to the port. */
	for (uint16_t i = eth->data->nb_rx_queues; i < dev->args.given_count; i++)
		udp_socket_close(&dev->sockets[i]);
	dev->args.given_count = RTE_MIN(dev->args.given_count, eth->data->nb_rx_queues);

	for (uint16_t i = 0; err == 0 && i < eth->data->nb_rx_queues; i++) {
		err = udp_socket_open(
			&dev->sockets[i], &dev->args, i, shared, error, sizeof(error));
		dev->sockets_count += err == 0;
	}
	if (err != 0) {
		UDP_LOG(ERR, "%s: %s", eth->data->name, error);
		udp_ethdev_close_sockets(eth);
		return err;
	}
	err = udp_ethdev_set_interrupts(eth);
	if (err != 0) {
		udp_ethdev_close_sockets(eth);
		return err;
	}
	if (!dev->sockets[0].runs && dev->args.runs != UDP_RUNS_NONE)
		UDP_LOG(NOTICE, "%s: this kernel takes one datagram a call: it is slow",
			eth->data->name);
	if (!dev->sockets[0].gro && dev->args.gro)
		UDP_LOG(NOTICE, "%s: this kernel gives one datagram a call: it is slow",
			eth->data->name);
	eth->data->dev_link.link_status = RTE_ETH_LINK_UP;
	return 0;
}

static int
udp_ethdev_stop(struct rte_eth_dev *eth)
{
	struct udp_dev *dev = eth->data->dev_private;

	udp_ethdev_close_sockets(eth);
	for (uint16_t i = 0; i < UDP_QUEUES; i++)
		if (dev->rx[i] != NULL)
			udp_rx_clear(dev->rx[i]);
	eth->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
	return 0;
}

static void
udp_ethdev_fini(struct udp_dev *dev)
{
	for (int i = 0; i < UDP_QUEUES; i++)
		udp_socket_close(&dev->sockets[i]);
}

static int
udp_ethdev_close(struct rte_eth_dev *eth)
{
	struct udp_dev *dev = eth->data->dev_private;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return 0;
	udp_ethdev_close_sockets(eth);
	udp_ethdev_fini(dev);
	for (uint16_t i = 0; i < UDP_QUEUES; i++) {
		udp_ethdev_free_rx(dev, i);
		udp_ethdev_free_tx(dev, i);
	}
	return 0;
}

static int
udp_ethdev_infos_get(struct rte_eth_dev *eth, struct rte_eth_dev_info *info)
{
	const struct udp_dev *dev = eth->data->dev_private;

	info->max_rx_queues = info->max_tx_queues =
		dev->args.given_count > 0 ? dev->args.given_count : UDP_QUEUES;
	info->max_mac_addrs = 1;
	info->min_rx_bufsize = 0;
	info->max_rx_pktlen = UINT16_MAX;
	info->max_mtu = UINT16_MAX;
	info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	return 0;
}

static int
udp_ethdev_link_update(struct rte_eth_dev *eth, int wait)
{
	const struct udp_dev *dev = eth->data->dev_private;
	struct rte_eth_link link = { .link_speed = RTE_ETH_SPEED_NUM_UNKNOWN,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_status = dev->sockets_count > 0 };
	struct ifreq ifr;
	int err;

	(void)wait;
	memset(&ifr, 0, sizeof(ifr));
	err = udp_ethdev_ask(dev, SIOCGIFFLAGS, &ifr);
	if (dev->args.iface[0] != '\0')
		link.link_status &= err == 0 && (ifr.ifr_flags & IFF_RUNNING) != 0;
	return rte_eth_linkstatus_set(eth, &link);
}

static int
udp_ethdev_mtu_set(struct rte_eth_dev *eth, uint16_t mtu)
{
	/* That is the path's to say: what is too long for it is counted. */
	(void)eth;
	(void)mtu;
	return 0;
}

/* Of all that is not for the sockets nothing comes here, whoever wants it. */
static int
udp_ethdev_promiscuous(struct rte_eth_dev *eth)
{
	(void)eth;
	return 0;
}

static int
udp_ethdev_mac_addr_set(struct rte_eth_dev *eth, struct rte_ether_addr *mac)
{
	struct udp_dev *dev = eth->data->dev_private;
	uint64_t word = 0;

	memcpy(&word, mac, sizeof(*mac));
	__atomic_store_n(&dev->mac, word, __ATOMIC_RELAXED);
	return 0;
}

/* The descriptor is always readable while there is something: nothing to be told. */
static int
udp_ethdev_rx_intr(struct rte_eth_dev *eth, uint16_t queue)
{
	return eth->intr_handle != NULL && queue < eth->data->nb_rx_queues ? 0 : -ENOTSUP;
}

/* Of a queue: 0 is all that matters, and the kernel does not say how many. */
static uint32_t
udp_ethdev_rx_queue_count(void *arg)
{
	return udp_rx_waiting(arg);
}

static const struct eth_dev_ops udp_ops = {
	.dev_configure = udp_ethdev_configure,
	.dev_start = udp_ethdev_start,
	.dev_stop = udp_ethdev_stop,
	.dev_close = udp_ethdev_close,
	.dev_infos_get = udp_ethdev_infos_get,
	.rx_queue_setup = udp_ethdev_rx_queue_setup,
	.tx_queue_setup = udp_ethdev_tx_queue_setup,
	.link_update = udp_ethdev_link_update,
	.mtu_set = udp_ethdev_mtu_set,
	.promiscuous_enable = udp_ethdev_promiscuous,
	.promiscuous_disable = udp_ethdev_promiscuous,
	.mac_addr_set = udp_ethdev_mac_addr_set,
	.rx_queue_intr_enable = udp_ethdev_rx_intr,
	.rx_queue_intr_disable = udp_ethdev_rx_intr,
	.stats_get = udp_stats_get,
	.stats_reset = udp_stats_reset,
	.xstats_get = udp_stats_xget,
	.xstats_get_names = udp_stats_xget_names,
	.xstats_reset = udp_stats_reset,
};

/* The netdev's, or one that nobody has. */
static void
udp_ethdev_take_mac(struct rte_eth_dev *eth)
{
	struct rte_ether_addr *mac = &eth->data->mac_addrs[0];
	struct udp_dev *dev = eth->data->dev_private;
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	rte_eth_random_addr(mac->addr_bytes);
	if (udp_ethdev_ask(dev, SIOCGIFHWADDR, &ifr) == 0 &&
		ifr.ifr_hwaddr.sa_family == ARPHRD_ETHER)
		memcpy(mac, ifr.ifr_hwaddr.sa_data, sizeof(*mac));
	udp_ethdev_mac_addr_set(eth, mac);
}

static int
udp_ethdev_any_id(uint64_t *flag)
{
	static const struct rte_mbuf_dynflag any_id = { .name = RCD_MBUF_FLAG_ANY_ID };
	int bit = rte_mbuf_dynflag_register(&any_id);

	*flag = bit >= 0 ? UINT64_C(1) << bit : 0;
	return bit >= 0 ? 0 : -ENOMEM;
}

/* Its sockets, if it was given some, and its netdev. */
static int
udp_ethdev_init(struct udp_dev *dev, const struct udp_args *args, const char *name)
{
	char error[256] = "there is no such netdev";
	int err = 0;

	dev->args = *args;
	dev->peers.seed = rte_rand();
	for (int i = 0; i < UDP_QUEUES; i++)
		dev->sockets[i] = UDP_SOCKETS_NONE;
	for (uint16_t i = 0; err == 0 && i < args->given_count; i++)
		err = udp_socket_take(&dev->sockets[i], args->given[i], error, sizeof(error));
	if (err == 0) {
		dev->ifindex = udp_ethdev_index(dev);
		dev->cuts = udp_ethdev_is_nic(dev);
		err = args->iface[0] != '\0' && dev->ifindex == 0 ? -ENODEV : 0;
	}
	if (err != 0) {
		UDP_LOG(ERR, "%s: %s%s%s", name, args->iface, args->iface[0] != '\0' ? ": " : "",
			error);
		udp_ethdev_fini(dev);
	}
	return err;
}

static int
udp_ethdev_probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev);
	struct rte_eth_dev *eth;
	struct udp_args args;
	struct udp_dev *dev;
	char error[256];
	int err;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		UDP_LOG(ERR, "%s: not for secondary processes", name);
		return -ENOTSUP;
	}
	if (udp_args_parse(&args, rte_vdev_device_args(vdev), error, sizeof(error)) != 0) {
		UDP_LOG(ERR, "%s: %s", name, error);
		return -EINVAL;
	}
	eth = rte_eth_vdev_allocate(vdev, sizeof(*dev));
	if (eth == NULL)
		return -ENOMEM;
	dev = eth->data->dev_private;
	err = udp_ethdev_init(dev, &args, name);
	if (err != 0) {
		rte_eth_dev_release_port(eth);
		return err;
	}
	eth->data->mac_addrs = rte_zmalloc("udp_mac", sizeof(struct rte_ether_addr), 0);
	if (eth->data->mac_addrs == NULL || udp_ethdev_any_id(&dev->any_id) != 0) {
		udp_ethdev_fini(dev);
		rte_eth_dev_release_port(eth);
		return -ENOMEM;
	}
	udp_ethdev_take_mac(eth);
	eth->data->dev_link = (struct rte_eth_link){ .link_speed = RTE_ETH_SPEED_NUM_UNKNOWN,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX };
	eth->dev_ops = &udp_ops;
	eth->rx_queue_count = udp_ethdev_rx_queue_count;
	eth->rx_pkt_burst = udp_rx_burst;
	eth->tx_pkt_burst = udp_tx_burst;
	rte_eth_dev_probing_finish(eth);
	return 0;
}

static int
udp_ethdev_remove(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *eth = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (eth == NULL)
		return 0; /* closed already */
	udp_ethdev_close(eth);
	rte_eth_dev_release_port(eth);
	return 0;
}

static struct rte_vdev_driver udp_driver = {
	.probe = udp_ethdev_probe,
	.remove = udp_ethdev_remove,
};

RTE_PMD_REGISTER_VDEV(net_udp, udp_driver);
RTE_PMD_REGISTER_PARAM_STRING(net_udp, UDP_ARGS_TEXT);
