/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * net_impair as an Ethernet device: what it does by itself is a lane for each queue and direction;
 * everything else is passed on to the port that it wraps.
 */
#include <errno.h>
#include <rte_cycles.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_pause.h>
#include <stdio.h>
#include <string.h>

#include <ethdev_driver.h>
#include <ethdev_vdev.h>

#include "impair_csum.h"
#include "impair_dev.h"
#include "impair_lane.h"
#include "impair_nic.h"
#include "impair_ops.h"
#include "impair_path.h"
#include "rcd_pmd_impair.h"

RTE_LOG_REGISTER_DEFAULT(impair_logtype, NOTICE);
#define IMPAIR_LOG(level, format, ...)                                                             \
	rte_log(RTE_LOG_##level, (uint32_t)impair_logtype, "net_impair: " format "\n",             \
		##__VA_ARGS__)

/* Of what is received by the wrapped port to be cut into pieces: jumbo frames. */
#define WHOLE_BUFFERS 2047
#define WHOLE_ROOM    9728

/* What the wrapped port says, and this one says again. */
static const enum rte_eth_event_type forwarded[] = { RTE_ETH_EVENT_INTR_LSC,
	RTE_ETH_EVENT_INTR_RESET, RTE_ETH_EVENT_INTR_RMV };

static struct rte_vdev_driver impair_driver;

/*
 * With queues of our own the wrapped port has one, and nothing to decide; and it need not scatter
 * what is cut into pieces here.
 */
static int
impair_ethdev_configure(struct rte_eth_dev *eth)
{
	const struct impair_dev *dev = eth->data->dev_private;
	uint16_t rx_queues = eth->data->nb_rx_queues, tx_queues = eth->data->nb_tx_queues;
	struct rte_eth_conf conf = eth->data->dev_conf;

	if (dev->args.segment != 0)
		conf.rxmode.offloads &= ~RTE_ETH_RX_OFFLOAD_SCATTER;
	if (dev->args.vlans != 0)
		conf.rxmode.offloads &= ~RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	conf.txmode.offloads &= ~IMPAIR_CSUM_OFFLOADS;
	if (dev->nic != NULL) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
		memset(&conf.rx_adv_conf, 0, sizeof(conf.rx_adv_conf));
		if (impair_nic_configure(dev->nic, eth) != 0)
			return -EINVAL;
		rx_queues = tx_queues = 1;
	}
	return rte_eth_dev_configure(dev->port_id, rx_queues, tx_queues, &conf);
}

static int
impair_ethdev_set_up(struct rte_eth_dev *eth, struct impair_queue *queue, uint16_t index, bool rx,
	unsigned int socket_id)
{
	struct impair_dev *dev = eth->data->dev_private;

	impair_lane_destroy(queue->lane);
	*queue = (struct impair_queue){
		.dev = dev, .port_id = dev->port_id, .index = dev->nic != NULL ? 0 : index
	};
	queue->lane = impair_lane_create(&dev->args, rx ? dev->args.rx : dev->args.tx, index,
		rx ? &dev->rx_neck : &dev->tx_neck, (int)socket_id);
	return queue->lane != NULL ? 0 : -ENOMEM;
}

/*
 * What is in pieces above is in one below: the wrapped port may know no other way, and the pool of
 * who configures this one has buffers for pieces.
 */
static int
impair_ethdev_make_whole(
	struct impair_dev *dev, const struct rte_eth_dev *eth, unsigned int socket_id)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	if (dev->args.segment == 0 || dev->whole != NULL)
		return 0;
	snprintf(name, sizeof(name), "impair_%u", eth->data->port_id);
	dev->whole = rte_pktmbuf_pool_create(
		name, WHOLE_BUFFERS, 0, 0, RTE_PKTMBUF_HEADROOM + WHOLE_ROOM, (int)socket_id);
	return dev->whole != NULL ? 0 : -ENOMEM;
}

static int
impair_ethdev_rx_queue_setup(struct rte_eth_dev *eth, uint16_t index, uint16_t count,
	unsigned int socket_id, const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct impair_dev *dev = eth->data->dev_private;
	int err = impair_ethdev_make_whole(dev, eth, socket_id);

	if (err == 0 && (dev->nic == NULL || index == 0))
		err = rte_eth_rx_queue_setup(dev->port_id, index, count, socket_id, conf,
			dev->whole != NULL ? dev->whole : pool);

	if (err == 0)
		err = impair_ethdev_set_up(eth, &dev->rx[index], index, true, socket_id);
	if (err == 0 && dev->nic != NULL)
		err = impair_nic_queue_setup(
			dev->nic, eth->data->port_id, index, count, (int)socket_id);
	dev->rx[index].pool = pool;
	dev->rx[index].other = &dev->tx[index];
	eth->data->rx_queues[index] = &dev->rx[index];
	return err;
}

static int
impair_ethdev_tx_queue_setup(struct rte_eth_dev *eth, uint16_t index, uint16_t count,
	unsigned int socket_id, const struct rte_eth_txconf *conf)
{
	struct impair_dev *dev = eth->data->dev_private;
	int err = dev->nic == NULL || index == 0
		? rte_eth_tx_queue_setup(dev->port_id, index, count, socket_id, conf)
		: 0;

	if (err == 0)
		err = impair_ethdev_set_up(eth, &dev->tx[index], index, false, socket_id);
	eth->data->tx_queues[index] = &dev->tx[index];
	return err;
}

/* As the arguments have them. */
static void
impair_ethdev_empty_necks(struct impair_dev *dev)
{
	impair_neck_set(&dev->rx_neck, &dev->args, dev->args.rx, rte_get_tsc_hz());
	impair_neck_set(&dev->tx_neck, &dev->args, dev->args.tx, rte_get_tsc_hz());
}

static int
impair_ethdev_start(struct rte_eth_dev *eth)
{
	const struct impair_dev *dev = eth->data->dev_private;

	return rte_eth_dev_start(dev->port_id);
}

static int
impair_ethdev_stop(struct rte_eth_dev *eth)
{
	struct impair_dev *dev = eth->data->dev_private;

	for (int i = 0; i < RTE_MAX_QUEUES_PER_PORT; i++) {
		if (dev->rx[i].lane != NULL)
			impair_lane_clear(dev->rx[i].lane);
		if (dev->tx[i].lane != NULL)
			impair_lane_clear(dev->tx[i].lane);
	}
	impair_ethdev_empty_necks(dev);
	if (dev->nic != NULL)
		impair_nic_clear(dev->nic);
	impair_filter_clear(&dev->filter);
	eth->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
	return rte_eth_dev_stop(dev->port_id);
}

/* A reset that was made up takes no more of the wrapped port than that it was stopped. */
static int
impair_ethdev_reset(struct rte_eth_dev *eth)
{
	struct impair_dev *dev = eth->data->dev_private;

	if (__atomic_load_n(&dev->down, __ATOMIC_RELAXED)) {
		if (--dev->tries > 0)
			return -EAGAIN;
		__atomic_store_n(&dev->down, false, __ATOMIC_RELAXED);
		if (dev->nic != NULL)
			impair_nic_lose(dev->nic, dev->args.fewer);
		__atomic_store_n(&dev->csum, dev->csum && !dev->args.unsum, __ATOMIC_RELAXED);
		return 0;
	}
	return rte_eth_dev_reset(dev->port_id);
}

static int
impair_ethdev_forward_event(uint16_t port_id, enum rte_eth_event_type type, void *arg, void *param)
{
	(void)port_id;
	(void)param;
	return rte_eth_dev_callback_process(arg, type, NULL);
}

static int
impair_ethdev_close(struct rte_eth_dev *eth)
{
	struct impair_dev *dev = eth->data->dev_private;
	int err;

	/* It may be at it, in EAL's thread. */
	for (size_t i = 0; i < RTE_DIM(forwarded); i++)
		while (rte_eth_dev_callback_unregister(dev->port_id, forwarded[i],
			       impair_ethdev_forward_event, eth) == -EAGAIN)
			rte_pause();
	for (int i = 0; i < RTE_MAX_QUEUES_PER_PORT; i++) {
		impair_lane_destroy(dev->rx[i].lane);
		impair_lane_destroy(dev->tx[i].lane);
		dev->rx[i].lane = dev->tx[i].lane = NULL;
	}
	impair_nic_destroy(dev->nic);
	dev->nic = NULL;
	rte_eth_dev_owner_unset(dev->port_id, dev->owner.id);
	err = rte_eth_dev_close(dev->port_id);
	/* All of it is back by now, unless somebody keeps a frame for ever. */
	if (dev->whole == NULL || rte_mempool_full(dev->whole))
		rte_mempool_free(dev->whole);
	dev->whole = NULL;
	return err;
}

static int
impair_ethdev_infos_get(struct rte_eth_dev *eth, struct rte_eth_dev_info *info)
{
	const struct impair_dev *dev = eth->data->dev_private;
	int err = rte_eth_dev_info_get(dev->port_id, info);

	info->device = eth->device;
	if (dev->nic != NULL)
		impair_nic_info(dev->nic, info);
	if (dev->args.segment != 0)
		info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_SCATTER;
	if (dev->args.vlans != 0)
		info->rx_offload_capa |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	/* Not the wrapped port's: they would be worked out of what was damaged here. */
	info->tx_offload_capa &= ~IMPAIR_CSUM_DAMAGED;
	info->tx_queue_offload_capa &= ~IMPAIR_CSUM_DAMAGED;
	if (__atomic_load_n(&dev->csum, __ATOMIC_RELAXED))
		info->tx_offload_capa |= IMPAIR_CSUM_OFFLOADS;
	if (dev->args.ring != 0) {
		info->rx_desc_lim.nb_min = info->tx_desc_lim.nb_min = 1;
		info->rx_desc_lim.nb_max = info->tx_desc_lim.nb_max = (uint16_t)dev->args.ring;
	}
	return err;
}

static const struct eth_dev_ops impair_ops = {
	.dev_configure = impair_ethdev_configure,
	.dev_start = impair_ethdev_start,
	.dev_stop = impair_ethdev_stop,
	.dev_close = impair_ethdev_close,
	.dev_reset = impair_ethdev_reset,
	.dev_infos_get = impair_ethdev_infos_get,
	.rx_queue_setup = impair_ethdev_rx_queue_setup,
	.tx_queue_setup = impair_ethdev_tx_queue_setup,
	.link_update = impair_ops_link_update,
	.mtu_set = impair_ops_mtu_set,
	.promiscuous_enable = impair_ops_promiscuous_enable,
	.promiscuous_disable = impair_ops_promiscuous_disable,
	.allmulticast_enable = impair_ops_allmulticast_enable,
	.allmulticast_disable = impair_ops_allmulticast_disable,
	.set_mc_addr_list = impair_ops_set_mc_addr_list,
	.vlan_filter_set = impair_ops_vlan_filter_set,
	.vlan_offload_set = impair_ops_vlan_offload_set,
	.mac_addr_set = impair_ops_mac_addr_set,
	.flow_ctrl_get = impair_ops_flow_ctrl_get,
	.flow_ctrl_set = impair_ops_flow_ctrl_set,
	.stats_get = impair_ops_stats_get,
	.stats_reset = impair_ops_stats_reset,
	.xstats_get = impair_ops_xstats_get,
	.xstats_get_names = impair_ops_xstats_get_names,
	.xstats_reset = impair_ops_xstats_reset,
	.rss_hash_update = impair_nic_rss_hash_update,
	.rss_hash_conf_get = impair_nic_rss_hash_conf_get,
	.reta_update = impair_nic_reta_update,
	.reta_query = impair_nic_reta_query,
	.flow_ops_get = impair_nic_flow_ops_get,
};

static void
impair_ethdev_take_args(struct impair_dev *dev, const struct impair_args *args)
{
	dev->args = *args;
	__atomic_store_n(&dev->burst, args->burst != 0 ? (uint16_t)args->burst : UINT16_MAX,
		__ATOMIC_RELAXED);
	__atomic_store_n(&dev->segment, args->segment, __ATOMIC_RELAXED);
	__atomic_store_n(&dev->strip, args->strip, __ATOMIC_RELAXED);
	__atomic_store_n(&dev->cut, !args->link, __ATOMIC_RELAXED);
	impair_ethdev_empty_necks(dev);
}

/* What a driver hears of its NIC, and says: the arguments have it happen once. */
static int
impair_ethdev_say(struct rte_eth_dev *eth, const struct impair_args *args, bool link_before)
{
	struct impair_dev *dev = eth->data->dev_private;

	if (args->reset != 0)
		dev->tries = args->reset;
	if (args->reset != 0 || args->remove)
		__atomic_store_n(&dev->down, true, __ATOMIC_RELAXED);
	if (args->link != link_before)
		rte_eth_dev_callback_process(eth, RTE_ETH_EVENT_INTR_LSC, NULL);
	if (args->reset != 0)
		rte_eth_dev_callback_process(eth, RTE_ETH_EVENT_INTR_RESET, NULL);
	return args->remove ? rte_eth_dev_callback_process(eth, RTE_ETH_EVENT_INTR_RMV, NULL) : 0;
}

int
rcd_pmd_impair_set(uint16_t port_id, const char *args, char *error, size_t error_len)
{
	struct rte_eth_dev_info info;
	struct impair_args next;
	struct impair_dev *dev;
	bool link;
	int err;

	if (!rte_eth_dev_is_valid_port(port_id) || rte_eth_dev_info_get(port_id, &info) != 0 ||
		info.device == NULL || info.device->driver != &impair_driver.driver) {
		snprintf(error, error_len, "port %u is none of net_impair", port_id);
		return -ENODEV;
	}
	dev = rte_eth_devices[port_id].data->dev_private;
	impair_args_again(&next, &dev->args);
	link = dev->args.link;
	err = impair_args_parse(&next, args, error, error_len);
	if (err != 0)
		return err;
	if (!impair_args_same(&next, &dev->args)) {
		snprintf(error, error_len,
			"the wrapped port, queues, flow, groups, vlans, vlans_off, promiscuous, "
			"pause, csum and lost can't be changed");
		return -EINVAL;
	}
	impair_ethdev_take_args(dev, &next);
	for (uint16_t i = 0; i < RTE_MAX_QUEUES_PER_PORT; i++) {
		if (dev->rx[i].lane != NULL)
			impair_lane_set(dev->rx[i].lane, &next, next.rx, i);
		if (dev->tx[i].lane != NULL)
			impair_lane_set(dev->tx[i].lane, &next, next.tx, i);
	}
	return impair_ethdev_say(&rte_eth_devices[port_id], &next, link);
}

/* The wrapped port, for us alone. */
static int
impair_ethdev_take_port(struct impair_dev *dev)
{
	int err = rte_eth_dev_get_port_by_name(dev->args.port, &dev->port_id);

	if (err != 0) {
		IMPAIR_LOG(ERR, "there is no port %s", dev->args.port);
		return err;
	}
	err = rte_eth_dev_owner_new(&dev->owner.id);
	snprintf(dev->owner.name, sizeof(dev->owner.name), "net_impair");
	if (err == 0)
		err = rte_eth_dev_owner_set(dev->port_id, &dev->owner);
	if (err != 0)
		IMPAIR_LOG(ERR, "port %s belongs to somebody else", dev->args.port);
	return err;
}

static int
impair_ethdev_probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev);
	const char *text = rte_vdev_device_args(vdev);
	struct rte_eth_dev *eth, *inner;
	struct impair_args args;
	struct impair_dev *dev;
	char error[256] = "port=NAME says which port to wrap";

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		IMPAIR_LOG(ERR, "%s: not for secondary processes", name);
		return -ENOTSUP;
	}
	impair_args_init(&args);
	if (impair_args_parse(&args, text != NULL ? text : "", error, sizeof(error)) != 0 ||
		args.port[0] == '\0') {
		IMPAIR_LOG(ERR, "%s: %s", name, error);
		return -EINVAL;
	}
	eth = rte_eth_vdev_allocate(vdev, sizeof(*dev));
	if (eth == NULL)
		return -ENOMEM;
	dev = eth->data->dev_private;
	rte_spinlock_init(&dev->rx_neck.lock);
	rte_spinlock_init(&dev->tx_neck.lock);
	impair_ethdev_take_args(dev, &args);
	dev->csum = args.csum;
	dev->filter.active = args.groups != 0;
	dev->filter.vlans = args.vlans;
	dev->fc_mode = RTE_ETH_FC_FULL;
	rte_spinlock_init(&dev->filter.lock);
	eth->data->mac_addrs = rte_zmalloc("impair_mac", sizeof(struct rte_ether_addr), 0);
	if (args.queues != 0)
		dev->nic = impair_nic_create(&args, eth->data->numa_node);
	if (eth->data->mac_addrs == NULL || (args.queues != 0 && dev->nic == NULL) ||
		impair_ethdev_take_port(dev) != 0) {
		impair_nic_destroy(dev->nic);
		rte_eth_dev_release_port(eth);
		return -ENODEV;
	}
	inner = &rte_eth_devices[dev->port_id];
	rte_ether_addr_copy(&inner->data->mac_addrs[0], &eth->data->mac_addrs[0]);
	eth->data->dev_link = inner->data->dev_link;
	eth->data->dev_flags |= inner->data->dev_flags & RTE_ETH_DEV_INTR_LSC;
	eth->data->numa_node = inner->data->numa_node;
	eth->dev_ops = &impair_ops;
	eth->rx_pkt_burst = impair_path_rx_burst;
	eth->tx_pkt_burst = impair_path_tx_burst;
	eth->tx_pkt_prepare = impair_path_tx_prepare;
	for (size_t i = 0; i < RTE_DIM(forwarded); i++)
		rte_eth_dev_callback_register(
			dev->port_id, forwarded[i], impair_ethdev_forward_event, eth);
	rte_eth_dev_probing_finish(eth);
	return 0;
}

static int
impair_ethdev_remove(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *eth = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
	int err;

	if (eth == NULL)
		return 0; /* closed already */
	err = impair_ethdev_close(eth);
	rte_eth_dev_release_port(eth);
	return err;
}

static struct rte_vdev_driver impair_driver = {
	.probe = impair_ethdev_probe,
	.remove = impair_ethdev_remove,
};

RTE_PMD_REGISTER_VDEV(net_impair, impair_driver);
RTE_PMD_REGISTER_PARAM_STRING(net_impair,
	"port=<name of the wrapped port> side=tx|rx|both seed=<int> drop=<probability> "
	"duplicate=<probability> reorder=<probability> gap=<packets> corrupt=<probability> "
	"delay=<probability> delay_us=<int> ecn=<probability> burst=<int> ring=<int> busy=<0|1> "
	"reset=<int> queues=<int> flow=<0|1|2> fewer=<int> remove=<0|1> link=<0|1> segment=<int> "
	"strip=<0|1> groups=<int> vlans=<int> vlans_off=<0|1> promiscuous=<0|1> pause=<0|1> "
	"csum=<0|1> unsum=<0|1> lost=missed|buffer|error "
	"delay_dist=constant|uniform|normal|pareto jitter_us=<int> delay_min_us=<int> "
	"delay_max_us=<int> ge_p=<probability> ge_r=<probability> ge_max=<packets> "
	"ge_bad=<probability> "
	"ge_good=<probability> rate=<bytes/s> queue=<bytes> queue_packets=<int> mark=<bytes>");
