/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A filter is asked for with the first VLAN of the engine's that there is: drivers that filter
 * whether they were asked or not take VLANs from who has asked alone. Who needs more than it holds
 * has it switched off. With a kernel's netdev it is off in any case, and told for those drivers
 * that go on all the same. It can be told only while it is on: with each change, tags that it does
 * not know are lost until it is off again.
 */
#include "rcd_vlans.h"

#include <rte_ethdev.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_gid_table.h"
#include "rcd_log.h"
#include "rcd_thread.h"

#define WORDS        (RCD_VLANS / 64)
#define REFUSALS_MAX 8

static bool
vlans_has(const uint64_t *vlans, uint32_t id)
{
	return (vlans[id / 64] >> id % 64 & 1) != 0;
}

static void
vlans_put(uint64_t *vlans, uint32_t id, bool there)
{
	uint64_t bit = UINT64_C(1) << id % 64;

	vlans[id / 64] = there ? vlans[id / 64] | bit : vlans[id / 64] & ~bit;
}

/* @return whether there is any */
static bool
vlans_gather(const struct rcd_dev *dev, uint64_t *wanted)
{
	bool any = !dev->lport.answers;

	memcpy(wanted, dev->vlans.kernels, sizeof(dev->vlans.kernels));
	for (uint32_t i = 0; dev->lport.answers && i < dev->gids->count; i++) {
		uint16_t id = dev->gids->entries[i].vlan_id;

		if (!dev->gids->entries[i].used || id == 0)
			continue;
		vlans_put(wanted, id, true);
		any = true;
	}
	/* Tags that give a priority and no VLAN are ours as well. */
	vlans_put(wanted, 0, any);
	return any;
}

/* @return whether it does now what it was asked, as far as it says */
static bool
vlans_switch(const struct rcd_dev *dev, bool on)
{
	int offloads = rte_eth_dev_get_vlan_offload(dev->lport.port_id);

	if (offloads < 0)
		return false;
	offloads &= ~RTE_ETH_VLAN_FILTER_OFFLOAD;
	return rte_eth_dev_set_vlan_offload(
		       dev->lport.port_id, offloads | (on ? RTE_ETH_VLAN_FILTER_OFFLOAD : 0)) == 0;
}

static bool
vlans_offered(const struct rcd_dev *dev)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(dev->lport.port_id, &info) == 0 &&
		(info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0;
}

/* One of those that differ. @return 1 if it is missing afterwards, else 0 */
static uint32_t
vlans_tell_one(struct rcd_dev *dev, uint16_t id)
{
	struct rcd_vlans *vlans = &dev->vlans;
	bool wanted = vlans_has(vlans->wanted, id);

	if (wanted == vlans_has(vlans->told, id))
		return 0;
	/* One that does not go is tried again with the next change. */
	if (rte_eth_dev_vlan_filter(dev->lport.port_id, id, wanted) == 0)
		vlans_put(vlans->told, id, wanted);
	return wanted && !vlans_has(vlans->told, id);
}

/* @param first  that is missing. @return how many are */
static uint32_t
vlans_tell_new(struct rcd_dev *dev, uint16_t *first)
{
	const struct rcd_vlans *vlans = &dev->vlans;
	uint32_t missing = 0;

	for (uint16_t id = 1; id < RCD_VLANS; id++) {
		/* One that is full is not asked thousands of times. */
		if (missing < REFUSALS_MAX
				? vlans_tell_one(dev, id) == 0
				: !vlans_has(vlans->wanted, id) || vlans_has(vlans->told, id))
			continue;
		*first = missing++ == 0 ? id : *first;
	}
	return missing;
}

/* Those that went make room for others, and a VLAN is worth more than none. @return as above */
static uint32_t
vlans_tell_all(struct rcd_dev *dev, uint16_t *first)
{
	struct rcd_vlans *vlans = &dev->vlans;
	uint32_t missing;

	for (uint16_t id = 0; id < RCD_VLANS; id++)
		if (!vlans_has(vlans->wanted, id))
			vlans_tell_one(dev, id);
	missing = vlans_tell_new(dev, first);
	if (missing > 0 && vlans_has(vlans->told, 0) &&
		rte_eth_dev_vlan_filter(dev->lport.port_id, 0, 0) == 0) {
		vlans_put(vlans->told, 0, false);
		missing = vlans_tell_new(dev, first);
	}
	vlans_tell_one(dev, 0);
	return missing;
}

void
rcd_vlans_follow(struct rcd_dev *dev)
{
	struct rcd_vlans *vlans = &dev->vlans;
	uint64_t wanted[WORDS];
	uint32_t missing;
	uint16_t first = 0;
	bool any;

	RCD_ON_CONTROL();
	if (!dev->started || dev->reset_ns != 0 || dev->lport.wire ||
		(!dev->lport.answers && dev->tuntap == NULL))
		return;
	any = vlans_gather(dev, wanted);
	if (vlans->asked ? memcmp(wanted, vlans->wanted, sizeof(wanted)) == 0 : !any)
		return;
	if (!vlans_offered(dev))
		return;
	/* Drivers hear of changes alone, and who filters unasked has not said so: on, then off. */
	if (!vlans_switch(dev, true)) {
		RCD_LOG(NOTICE, "%s: the port's filter of VLANs can't be told any", dev->conf.name);
		return;
	}
	vlans->asked = true;
	memcpy(vlans->wanted, wanted, sizeof(wanted));
	missing = vlans_tell_all(dev, &first);
	if (missing > 0)
		RCD_LOG(WARNING, "%s: the port's filter does not take VLAN %u (of %u)",
			dev->conf.name, first, missing);
	/* One that lacks some does harm. It keeps what it has: it may filter all the same. */
	if ((missing > 0 || dev->tuntap != NULL) && !vlans_switch(dev, false))
		RCD_LOG(NOTICE, "%s: the port's filter of VLANs can't be switched off",
			dev->conf.name);
}

void
rcd_vlans_tell(struct rcd_dev *dev)
{
	struct rcd_vlans *vlans = &dev->vlans;

	RCD_ON_CONTROL();
	vlans->asked = false;
	memset(vlans->wanted, 0, sizeof(vlans->wanted));
	memset(vlans->told, 0, sizeof(vlans->told));
	rcd_vlans_follow(dev);
}

void
rcd_vlans_set_kernels(struct rcd_dev *dev, uint16_t id, bool there)
{
	RCD_ON_CONTROL();
	if (id < RCD_VLANS)
		vlans_put(dev->vlans.kernels, id, there);
}
