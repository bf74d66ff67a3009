/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Statistics. Queues count for ever; a reset is remembered as what was counted then.
 */
#include <errno.h>
#include <rte_ethdev.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <ethdev_driver.h>

#include "udp_dev.h"

/* Names that DPDK has no words for; tx ones first. */
static const struct {
	const char *name;
	bool rx;
	size_t at;
} xstats_of[] = {
	{ "tx_udp_calls", false, offsetof(struct udp_counts, calls) },
	{ "tx_udp_runs", false, offsetof(struct udp_counts, runs) },
	{ "tx_udp_invalid", false, offsetof(struct udp_counts, invalid) },
	{ "tx_udp_too_long", false, offsetof(struct udp_counts, too_long) },
	{ "tx_udp_refused", false, offsetof(struct udp_counts, refused) },
	{ "tx_udp_full", false, offsetof(struct udp_counts, full) },
	{ "tx_udp_icmp", false, offsetof(struct udp_counts, icmp) },
	{ "rx_udp_calls", true, offsetof(struct udp_counts, calls) },
	{ "rx_udp_runs", true, offsetof(struct udp_counts, runs) },
	{ "rx_udp_copied", true, offsetof(struct udp_counts, copied) },
	{ "rx_udp_invalid", true, offsetof(struct udp_counts, invalid) },
	{ "rx_udp_too_long", true, offsetof(struct udp_counts, too_long) },
	{ "rx_udp_options", true, offsetof(struct udp_counts, options) },
	{ "rx_udp_fragments", true, offsetof(struct udp_counts, fragments) },
	{ "rx_udp_icmp", true, offsetof(struct udp_counts, icmp) },
};

static uint64_t
udp_stats_read(const struct udp_counts *counts, size_t at)
{
	return __atomic_load_n(
		(const uint64_t *)(const void *)((const uint8_t *)counts + at), __ATOMIC_RELAXED);
}

static const struct udp_counts *
udp_stats_counts(const struct udp_dev *dev, bool rx, uint16_t queue)
{
	if (rx)
		return dev->rx[queue] != NULL ? &dev->rx[queue]->counts : NULL;
	return dev->tx[queue] != NULL ? &dev->tx[queue]->counts : NULL;
}

/* Of all queues, since the device was made. */
static uint64_t
udp_stats_total(const struct udp_dev *dev, bool rx, size_t at)
{
	uint64_t sum = udp_stats_read(rx ? &dev->gone_rx : &dev->gone_tx, at);

	for (uint16_t i = 0; i < UDP_QUEUES; i++) {
		const struct udp_counts *counts = udp_stats_counts(dev, rx, i);

		if (counts != NULL)
			sum += udp_stats_read(counts, at);
	}
	return sum;
}

/* Since the last reset. */
static uint64_t
udp_stats_sum(const struct udp_dev *dev, bool rx, size_t at)
{
	return udp_stats_total(dev, rx, at) -
		udp_stats_read(rx ? &dev->reset_rx : &dev->reset_tx, at);
}

static uint64_t
udp_stats_missed(const struct udp_dev *dev)
{
	uint64_t sum = dev->gone_missed;

	/* Those that were given stay and count while the device is stopped. */
	for (uint16_t i = 0; i < UDP_QUEUES; i++)
		sum += udp_socket_missed(&dev->sockets[i]);
	return sum;
}

int
udp_stats_get(struct rte_eth_dev *eth, struct rte_eth_stats *stats)
{
	const struct udp_dev *dev = eth->data->dev_private;

	stats->ipackets = udp_stats_sum(dev, true, offsetof(struct udp_counts, packets));
	stats->ibytes = udp_stats_sum(dev, true, offsetof(struct udp_counts, bytes));
	stats->opackets = udp_stats_sum(dev, false, offsetof(struct udp_counts, packets));
	stats->obytes = udp_stats_sum(dev, false, offsetof(struct udp_counts, bytes));
	stats->imissed = udp_stats_missed(dev) - dev->reset_missed;
	stats->rx_nombuf = udp_stats_sum(dev, true, offsetof(struct udp_counts, no_buffer));
	stats->ierrors = udp_stats_sum(dev, true, offsetof(struct udp_counts, invalid)) +
		udp_stats_sum(dev, true, offsetof(struct udp_counts, too_long)) +
		udp_stats_sum(dev, true, offsetof(struct udp_counts, options)) +
		udp_stats_sum(dev, true, offsetof(struct udp_counts, fragments));
	stats->oerrors = udp_stats_sum(dev, false, offsetof(struct udp_counts, invalid)) +
		udp_stats_sum(dev, false, offsetof(struct udp_counts, too_long)) +
		udp_stats_sum(dev, false, offsetof(struct udp_counts, refused)) +
		udp_stats_sum(dev, false, offsetof(struct udp_counts, full));
	return 0;
}

int
udp_stats_reset(struct rte_eth_dev *eth)
{
	struct udp_dev *dev = eth->data->dev_private;

	dev->reset_missed = udp_stats_missed(dev);
	for (size_t at = 0; at < sizeof(struct udp_counts); at += sizeof(uint64_t)) {
		uint64_t rx = udp_stats_total(dev, true, at), tx = udp_stats_total(dev, false, at);

		memcpy((uint8_t *)&dev->reset_rx + at, &rx, sizeof(rx));
		memcpy((uint8_t *)&dev->reset_tx + at, &tx, sizeof(tx));
	}
	return 0;
}

int
udp_stats_xget(struct rte_eth_dev *eth, struct rte_eth_xstat *xstats, unsigned int count)
{
	const struct udp_dev *dev = eth->data->dev_private;

	if (xstats == NULL || count < RTE_DIM(xstats_of))
		return RTE_DIM(xstats_of);
	for (unsigned int i = 0; i < RTE_DIM(xstats_of); i++)
		xstats[i] = (struct rte_eth_xstat){ .id = i,
			.value = udp_stats_sum(dev, xstats_of[i].rx, xstats_of[i].at) };
	return RTE_DIM(xstats_of);
}

int
udp_stats_xget_names(struct rte_eth_dev *eth, struct rte_eth_xstat_name *names, unsigned int count)
{
	(void)eth;
	if (names == NULL || count < RTE_DIM(xstats_of))
		return RTE_DIM(xstats_of);
	for (size_t i = 0; i < RTE_DIM(xstats_of); i++)
		snprintf(names[i].name, sizeof(names[i].name), "%s", xstats_of[i].name);
	return RTE_DIM(xstats_of);
}
