/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Next hops: the address on the link that packets to a destination have to go to.
 */
#include "rcd_engine_priv.h"

#include <errno.h>

int
rcd_hop_find(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid, struct rcd_gid *hop)
{
	static const struct rcd_gid none;
	const struct rcd_gid_table *gids = dev->gids;
	const struct rcd_gid *gateway;

	*hop = *dgid;
	if (!dev->answers)
		return rcd_netlink_route(dev, dgid, hop);
	for (uint32_t i = 0; i < gids->count; i++)
		if (gids->entries[i].vlan_id == gids->entries[sgid_index].vlan_id &&
			rcd_gid_table_covers(gids, i, dgid))
			return 0;
	gateway = rcd_gid_is_ipv4(dgid) ? &dev->conf.gateway4 : &dev->conf.gateway6;
	if (rcd_gid_eq(gateway, &none))
		return -ENETUNREACH;
	*hop = *gateway;
	return 0;
}

bool
rcd_neigh_reachable(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid)
{
	struct rcd_gid hop;

	return rcd_hop_find(dev, sgid_index, dgid, &hop) == 0;
}

struct rcd_dev *
rcd_hop_local(struct rcd_dev *dev, const struct rcd_gid *dgid)
{
	if (rcd_dev_gid_find(dev, dgid) >= 0)
		return dev;
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		struct rcd_dev *other = dev->engine->devs[i];

		if (other != NULL && !dev->wire && !other->wire &&
			rcd_dev_gid_find(other, dgid) >= 0)
			return other;
	}
	return NULL;
}
