/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A filter is asked for with the first VLAN that there is: drivers that filter whether they were
 * asked or not take VLANs from who has asked alone.
 */
#include "rcd_vlans.h"

#include <rte_ethdev.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_gid_table.h"
#include "rcd_log.h"
#include "rcd_thread.h"

/* @return whether there is any */
static bool
vlans_gather(const struct rcd_dev *dev, uint64_t *wanted)
{
	bool any = false;

	memset(wanted, 0, sizeof(dev->vlans.told));
	for (uint32_t i = 0; i < dev->gids->count; i++) {
		uint16_t id = dev->gids->entries[i].vlan_id;

		if (!dev->gids->entries[i].used || id == 0)
			continue;
		wanted[id / 64] |= UINT64_C(1) << id % 64;
		any = true;
	}
	/* Tags that give a priority and no VLAN are ours as well. */
	wanted[0] |= any ? 1 : 0;
	return any;
}

/* @return whether it filters now */
static bool
vlans_ask(struct rcd_dev *dev)
{
	uint16_t port_id = dev->lport.port_id;
	struct rte_eth_dev_info info;
	int offloads;

	if (dev->vlans.filter)
		return true;
	if (rte_eth_dev_info_get(port_id, &info) != 0 ||
		!(info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER))
		return false;
	offloads = rte_eth_dev_get_vlan_offload(port_id);
	dev->vlans.filter = offloads >= 0 &&
		rte_eth_dev_set_vlan_offload(port_id, offloads | RTE_ETH_VLAN_FILTER_OFFLOAD) == 0;
	return dev->vlans.filter;
}

/* A filter that lacks one of ours does harm; one that is there for the asking alone goes. */
static void
vlans_give_up(struct rcd_dev *dev, uint16_t id)
{
	int offloads = rte_eth_dev_get_vlan_offload(dev->lport.port_id);

	RCD_LOG(WARNING, "%s: the port's filter does not take VLAN %u", dev->conf.name, id);
	if (offloads >= 0)
		rte_eth_dev_set_vlan_offload(
			dev->lport.port_id, offloads & ~RTE_ETH_VLAN_FILTER_OFFLOAD);
	memset(&dev->vlans, 0, sizeof(dev->vlans));
}

void
rcd_vlans_follow(struct rcd_dev *dev)
{
	struct rcd_vlans *vlans = &dev->vlans;
	uint64_t wanted[RCD_VLANS / 64];

	RCD_ON_CONTROL();
	if (!dev->started || dev->reset_ns != 0 || !dev->lport.answers || dev->lport.wire)
		return;
	if ((!vlans_gather(dev, wanted) && !vlans->filter) || !vlans_ask(dev))
		return;
	for (uint16_t id = 0; id < RCD_VLANS; id++) {
		uint64_t bit = UINT64_C(1) << id % 64;

		if (((wanted[id / 64] ^ vlans->told[id / 64]) & bit) == 0)
			continue;
		if (rte_eth_dev_vlan_filter(dev->lport.port_id, id, (wanted[id / 64] & bit) != 0) ==
			0) {
			vlans->told[id / 64] ^= bit;
		} else if (id != 0) {
			vlans_give_up(dev, id);
			return;
		}
	}
}

void
rcd_vlans_tell(struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	memset(&dev->vlans, 0, sizeof(dev->vlans));
	rcd_vlans_follow(dev);
}
