/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Operations that are passed on to the wrapped port, but for what the arguments have differ.
 */
#include "impair_ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ethdev_driver.h>

#include "impair_dev.h"
#include "impair_lane.h"
#include "impair_nic.h"

int
impair_ops_link_update(struct rte_eth_dev *eth, int wait)
{
	const struct impair_dev *dev = eth->data->dev_private;
	struct rte_eth_link link;
	int err = wait ? rte_eth_link_get(dev->port_id, &link)
		       : rte_eth_link_get_nowait(dev->port_id, &link);

	if (err != 0)
		return err;
	if (__atomic_load_n(&dev->cut, __ATOMIC_RELAXED))
		link.link_status = RTE_ETH_LINK_DOWN;
	return rte_eth_linkstatus_set(eth, &link);
}

int
impair_ops_mtu_set(struct rte_eth_dev *eth, uint16_t mtu)
{
	const struct impair_dev *dev = eth->data->dev_private;

	if (dev->args.busy && eth->data->dev_started)
		return -EBUSY;
	return rte_eth_dev_set_mtu(dev->port_id, mtu);
}

/* The filter is ours, whatever the wrapped port knows of such things. */
static int
impair_ops_set_promiscuous(struct rte_eth_dev *eth, bool on)
{
	struct impair_dev *dev = eth->data->dev_private;
	int err;

	if (!dev->args.promiscuous)
		return -ENOTSUP;
	rte_spinlock_lock(&dev->filter.lock);
	dev->filter.promiscuous = on;
	rte_spinlock_unlock(&dev->filter.lock);
	err = on ? rte_eth_promiscuous_enable(dev->port_id)
		 : rte_eth_promiscuous_disable(dev->port_id);
	return err == -ENOTSUP && dev->filter.active ? 0 : err;
}

int
impair_ops_promiscuous_enable(struct rte_eth_dev *eth)
{
	return impair_ops_set_promiscuous(eth, true);
}

int
impair_ops_promiscuous_disable(struct rte_eth_dev *eth)
{
	return impair_ops_set_promiscuous(eth, false);
}

int
impair_ops_allmulticast_enable(struct rte_eth_dev *eth)
{
	const struct impair_dev *dev = eth->data->dev_private;

	return dev->filter.active ? -ENOTSUP : rte_eth_allmulticast_enable(dev->port_id);
}

int
impair_ops_allmulticast_disable(struct rte_eth_dev *eth)
{
	const struct impair_dev *dev = eth->data->dev_private;

	return dev->filter.active ? -ENOTSUP : rte_eth_allmulticast_disable(dev->port_id);
}

int
impair_ops_set_mc_addr_list(struct rte_eth_dev *eth, struct rte_ether_addr *list, uint32_t count)
{
	struct impair_dev *dev = eth->data->dev_private;

	if (!dev->filter.active)
		return rte_eth_dev_set_mc_addr_list(dev->port_id, list, count);
	if (count > dev->args.groups)
		return -ENOSPC;
	rte_spinlock_lock(&dev->filter.lock);
	if (count > 0)
		memcpy(dev->filter.groups, list, count * sizeof(list[0]));
	dev->filter.count = count;
	rte_spinlock_unlock(&dev->filter.lock);
	return 0;
}

int
impair_ops_vlan_filter_set(struct rte_eth_dev *eth, uint16_t id, int on)
{
	struct impair_dev *dev = eth->data->dev_private;

	if (dev->args.vlans == 0)
		return rte_eth_dev_vlan_filter(dev->port_id, id, on);
	return impair_filter_set_vlan(&dev->filter, id, on);
}

/* Ours filters until it is told not to, or always. */
int
impair_ops_vlan_offload_set(struct rte_eth_dev *eth, int mask)
{
	struct impair_dev *dev = eth->data->dev_private;
	int inner = rte_eth_dev_get_vlan_offload(dev->port_id);

	if (inner < 0)
		return inner;
	if (dev->args.vlans != 0) {
		rte_spinlock_lock(&dev->filter.lock);
		if (dev->args.vlans_off && (mask & RTE_ETH_VLAN_FILTER_MASK))
			dev->filter.all_vlans = !(eth->data->dev_conf.rxmode.offloads &
				RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
		rte_spinlock_unlock(&dev->filter.lock);
		return 0;
	}
	return rte_eth_dev_set_vlan_offload(
		dev->port_id, rte_eth_dev_get_vlan_offload(eth->data->port_id));
}

int
impair_ops_flow_ctrl_get(struct rte_eth_dev *eth, struct rte_eth_fc_conf *conf)
{
	const struct impair_dev *dev = eth->data->dev_private;

	if (!dev->args.pause)
		return rte_eth_dev_flow_ctrl_get(dev->port_id, conf);
	*conf = (struct rte_eth_fc_conf){
		.high_water = 1024, .low_water = 512, .pause_time = 100, .mode = dev->fc_mode
	};
	return 0;
}

/* Marks that would stop a sender when there is no need, or never, are refused, as by NICs. */
int
impair_ops_flow_ctrl_set(struct rte_eth_dev *eth, struct rte_eth_fc_conf *conf)
{
	struct impair_dev *dev = eth->data->dev_private;

	if (!dev->args.pause)
		return rte_eth_dev_flow_ctrl_set(dev->port_id, conf);
	if (conf->low_water == 0 || conf->high_water <= conf->low_water)
		return -EINVAL;
	dev->fc_mode = conf->mode;
	return 0;
}

int
impair_ops_mac_addr_set(struct rte_eth_dev *eth, struct rte_ether_addr *mac)
{
	const struct impair_dev *dev = eth->data->dev_private;

	return rte_eth_dev_default_mac_addr_set(dev->port_id, mac);
}

/* Received frames that are dropped are as those that a NIC lost. */
int
impair_ops_stats_get(struct rte_eth_dev *eth, struct rte_eth_stats *stats)
{
	struct impair_dev *dev = eth->data->dev_private;
	struct impair_neck_counts neck;
	int err = rte_eth_stats_get(dev->port_id, stats);
	uint64_t *const as[IMPAIR_LOST_KINDS] = { [IMPAIR_LOST_MISSED] = &stats->imissed,
		[IMPAIR_LOST_BUFFER] = &stats->rx_nombuf,
		[IMPAIR_LOST_ERROR] = &stats->ierrors };

	for (int i = 0; i < RTE_MAX_QUEUES_PER_PORT; i++)
		if (dev->rx[i].lane != NULL)
			*as[dev->args.lost] += dev->rx[i].lane->counts[IMPAIR_DROP] +
				dev->rx[i].lane->counts[IMPAIR_COUNT_BURST_DROP];
	impair_neck_read(&dev->rx_neck, &neck, false);
	*as[dev->args.lost] += neck.drops;
	if (dev->nic != NULL)
		stats->imissed += impair_nic_missed(dev->nic);
	stats->rx_nombuf += __atomic_load_n(&dev->no_buffer, __ATOMIC_RELAXED);
	return err;
}

int
impair_ops_stats_reset(struct rte_eth_dev *eth)
{
	const struct impair_dev *dev = eth->data->dev_private;

	return rte_eth_stats_reset(dev->port_id);
}

/*
 * Extended statistics: what happened, for each direction, all queues together. Kinds are first, as
 * enum impair_count has it; the bottleneck's are last, as in struct impair_neck_counts.
 */
static const char *const more_names[] = { "burst", "burst_drop", "delay_us", "queue_packets",
	"queue_drop", "queue_mark", "queue_peak_bytes", "queue_us" };

#define SIDE_XSTATS (IMPAIR_KINDS + RTE_DIM(more_names))
#define XSTATS      (2 * SIDE_XSTATS)

static_assert(SIDE_XSTATS * sizeof(uint64_t) ==
		IMPAIR_COUNTS * sizeof(uint64_t) + sizeof(struct impair_neck_counts),
	"each has a name");

int
impair_ops_xstats_get_names(
	struct rte_eth_dev *eth, struct rte_eth_xstat_name *names, unsigned int size)
{
	(void)eth;
	for (unsigned int i = 0; names != NULL && i < XSTATS && i < size; i++) {
		unsigned int k = i % SIDE_XSTATS;

		snprintf(names[i].name, sizeof(names[i].name), "%s_impair_%s",
			i < SIDE_XSTATS ? "rx" : "tx",
			k < IMPAIR_KINDS ? impair_kind_names[k] : more_names[k - IMPAIR_KINDS]);
	}
	return XSTATS;
}

/* Of one direction. */
static void
impair_ops_xstats_sum(
	const struct impair_queue *queues, struct impair_neck *neck, uint64_t sums[SIDE_XSTATS])
{
	struct impair_neck_counts counts;

	memset(sums, 0, SIDE_XSTATS * sizeof(sums[0]));
	for (int i = 0; i < RTE_MAX_QUEUES_PER_PORT; i++)
		for (int k = 0; queues[i].lane != NULL && k < IMPAIR_COUNTS; k++)
			sums[k] += queues[i].lane->counts[k];
	impair_neck_read(neck, &counts, false);
	memcpy(sums + IMPAIR_COUNTS, &counts, sizeof(counts));
}

int
impair_ops_xstats_get(struct rte_eth_dev *eth, struct rte_eth_xstat *stats, unsigned int size)
{
	struct impair_dev *dev = eth->data->dev_private;
	uint64_t sums[XSTATS];

	impair_ops_xstats_sum(dev->rx, &dev->rx_neck, sums);
	impair_ops_xstats_sum(dev->tx, &dev->tx_neck, sums + SIDE_XSTATS);
	for (unsigned int i = 0; i < XSTATS && i < size; i++)
		stats[i] = (struct rte_eth_xstat){ .id = i, .value = sums[i] };
	return XSTATS;
}

int
impair_ops_xstats_reset(struct rte_eth_dev *eth)
{
	struct impair_dev *dev = eth->data->dev_private;
	struct impair_neck_counts counts;

	impair_neck_read(&dev->rx_neck, &counts, true);
	impair_neck_read(&dev->tx_neck, &counts, true);
	for (int i = 0; i < 2 * RTE_MAX_QUEUES_PER_PORT; i++) {
		struct impair_queue *queue = i % 2 ? &dev->rx[i / 2] : &dev->tx[i / 2];

		if (queue->lane == NULL)
			continue;
		rte_spinlock_lock(&queue->lane->lock);
		memset(queue->lane->counts, 0, sizeof(queue->lane->counts));
		rte_spinlock_unlock(&queue->lane->lock);
	}
	return 0;
}
