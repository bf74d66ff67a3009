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

void
rcd_neigh_multicast_mac(const struct rcd_gid *gid, uint8_t *mac)
{
	if (rcd_gid_is_ipv4(gid)) {
		/* RFC 1112, 6.4: the low 23 bits. */
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = gid->raw[13] & 0x7f;
		mac[4] = gid->raw[14];
		mac[5] = gid->raw[15];
	} else {
		/* RFC 2464, 7. */
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, gid->raw + 12, 4);
	}
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
