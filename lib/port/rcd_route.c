/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Routes: the next hop of a destination, as the kernel has it for its netdevs, by the subnets and
 * the gateway of a device that the engine owns.
 */
#include "rcd_route.h"

#include <errno.h>
#include <string.h>

#include "rcd_ah.h"
#include "rcd_dev.h"
#include "rcd_hop.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_mcast.h"
#include "rcd_neigh.h"
#include "rcd_ports.h"
#include "rcd_rtnl.h"
#include "rcd_thread.h"

/**
 * As many next hops as there can be neighbours, devices, queue pairs and address handles: it never
 * ends.
 */
#define HOPS_MAX (RCD_NEIGHS_MAX + RCD_DEVS_MAX + RCD_QP_SLOTS + RCD_AHS_MAX)

int
rcd_route_open(struct rcd_ports *ports, const struct rcd_neigh_ops *ops)
{
	struct rcd_neigh_conf conf = { .ops = ops, .arg = ports, .seed = ports->conf.seed };

	RCD_ON_CONTROL();
	ports->hops = rcd_hops_create(HOPS_MAX, ports->conf.seed);
	if (ports->hops == NULL)
		return -ENOMEM;
	conf.hops = ports->hops;
	ports->neighs = rcd_neighs_create(&conf);
	return ports->neighs != NULL ? 0 : -ENOMEM;
}

void
rcd_route_close(struct rcd_ports *ports)
{
	RCD_ON_CONTROL();
	rcd_neighs_destroy(ports->neighs);
	rcd_hops_destroy(ports->hops);
	ports->neighs = NULL;
	ports->hops = NULL;
}

/* The address on the link that packets to another have to go to. @return 0 or -ENETUNREACH */
static int
route_next(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid, struct rcd_gid *next)
{
	static const struct rcd_gid none;
	const struct rcd_gid_table *gids = dev->gids;
	const struct rcd_gid *gateway;

	*next = *dgid;
	if (!dev->lport.answers) {
		struct rcd_rtnl_way way;
		int err = rcd_rtnl_way(rcd_dev_rtnl(dev), dgid, dev->ifindex, &way);

		if (err == 0)
			*next = way.next;
		return err;
	}
	for (uint32_t i = 0; i < gids->count; i++)
		if (gids->entries[i].vlan_id == gids->entries[sgid_index].vlan_id &&
			rcd_gid_table_covers(gids, i, dgid))
			return 0;
	gateway = rcd_gid_is_ipv4(dgid) ? &dev->conf.gateway4 : &dev->conf.gateway6;
	if (rcd_gid_eq(gateway, &none))
		return -ENETUNREACH;
	*next = *gateway;
	return 0;
}

bool
rcd_route_reachable(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *dgid)
{
	struct rcd_gid next;

	RCD_ON_CONTROL();
	return route_next(dev, sgid_index, dgid, &next) == 0;
}

static bool
route_is_ours(const struct rcd_ports *ports, const uint8_t *mac)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (ports->devs[i] != NULL && memcmp(mac, ports->devs[i]->mac, RCD_MAC_LEN) == 0)
			return true;
	return false;
}

/*
 * A MAC for packets whose frames nobody looks at: of no device here, to which they would go without
 * a port.
 */
static void
route_make_mac(const struct rcd_ports *ports, uint8_t *mac)
{
	memset(mac, 0, RCD_MAC_LEN);
	mac[0] = 0x02;
	while (route_is_ours(ports, mac))
		mac[RCD_MAC_LEN - 1]++;
}

/* The device of this engine that has an address, if its MAC needs no asking. @return NULL: none */
static const struct rcd_dev *
route_local(const struct rcd_dev *dev, const struct rcd_gid *dgid)
{
	if (rcd_dev_gid_find(dev, dgid) >= 0)
		return dev;
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++) {
		const struct rcd_dev *other = dev->ports->devs[i];

		if (other != NULL && rcd_dev_knows(dev, other) &&
			rcd_dev_gid_find(other, dgid) >= 0)
			return other;
	}
	return NULL;
}

int
rcd_route_resolve(
	struct rcd_dev *dev, const struct rcd_route_query *query, uint8_t *mac, uint32_t *hop)
{
	const struct rcd_ports *ports = dev->ports;
	const struct rcd_dev *local = route_local(dev, query->dgid);
	struct rcd_neigh_target target = { .sgid_index = query->sgid_index,
		.ours = dev->lport.answers };
	struct rcd_gid next;
	int err;

	RCD_ON_CONTROL();
	*hop = RCD_HOP_NONE;
	if (local != NULL) {
		memcpy(mac, local->mac, RCD_MAC_LEN);
		*hop = local->hop;
		return 0;
	}
	if (rcd_gid_is_multicast(query->dgid)) {
		rcd_gid_multicast_mac(query->dgid, mac);
		return 0;
	}
	err = route_next(dev, query->sgid_index, query->dgid, &next);
	if (err != 0)
		return err;
	if (rcd_dev_is_udp(dev)) {
		route_make_mac(ports, mac);
		return 0;
	}
	target.key =
		rcd_dev_hop_key(&dev->lport, dev->gids->entries[query->sgid_index].vlan_id, &next);
	err = rcd_neigh_resolve(ports->neighs, &target, query->quota, query->waiter, hop);
	if (err == 0)
		rcd_hop_mac(rcd_hop_word(rcd_hops_macs(ports->hops), *hop), mac);
	return err;
}

bool
rcd_route_known(struct rcd_dev *dev, int sgid_index, const struct rcd_gid *gid, uint8_t *mac)
{
	const struct rcd_ports *ports = dev->ports;
	const struct rcd_dev *local = route_local(dev, gid);
	struct rcd_hop_key key =
		rcd_dev_hop_key(&dev->lport, dev->gids->entries[sgid_index].vlan_id, gid);
	uint32_t hop;

	RCD_ON_CONTROL();
	if (local != NULL) {
		memcpy(mac, local->mac, RCD_MAC_LEN);
		return true;
	}
	if (rcd_dev_is_udp(dev)) {
		route_make_mac(ports, mac);
		return true;
	}
	hop = rcd_neigh_known(ports->neighs, &key);
	if (hop == RCD_HOP_NONE)
		return false;
	rcd_hop_mac(rcd_hop_word(rcd_hops_macs(ports->hops), hop), mac);
	return true;
}
