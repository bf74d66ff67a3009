/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What is shown of what DPDK knows: of a port, of buffers, of EAL.
 */
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_dev.h"
#include "rcd_show.h"

const char *
rcd_show_eal_dir(void)
{
	return rte_eal_get_runtime_dir();
}

bool
rcd_show_eal_hugepages(void)
{
	return rte_eal_has_hugepages() != 0;
}

uint32_t
rcd_show_eal_buffers(const struct rcd_dev *dev)
{
	return rte_mempool_avail_count(dev->pool);
}

void
rcd_show_eal_driver(const struct rcd_show *show, const struct rcd_dev *dev)
{
	struct rte_eth_xstat_name names[128];
	struct rte_eth_xstat stats[128];
	int count = rte_eth_xstats_get_names(dev->lport.port_id, names, RCD_ARRAY_COUNT(names));

	if (count < 0 || count > (int)RCD_ARRAY_COUNT(names) ||
		rte_eth_xstats_get(dev->lport.port_id, stats, RCD_ARRAY_COUNT(stats)) != count)
		return;
	for (int i = 0; i < count; i++)
		if (strstr(names[i].name, "_impair_") != NULL ||
			strstr(names[i].name, "x_udp_") != NULL)
			show->ops->number(show->out, names[i].name, stats[i].value);
}

void
rcd_show_eal_port(const struct rcd_show *show, const struct rcd_dev *dev)
{
	struct rte_eth_stats stats;

	if (dev->lport.wire || rte_eth_stats_get(dev->lport.port_id, &stats) != 0)
		return;
	show->ops->number(show->out, "port_rx_missed_errors", stats.imissed);
	show->ops->number(show->out, "port_rx_errors", stats.ierrors);
	show->ops->number(show->out, "port_rx_mbuf_allocation_errors", stats.rx_nombuf);
	show->ops->number(show->out, "port_tx_errors", stats.oerrors);
}
