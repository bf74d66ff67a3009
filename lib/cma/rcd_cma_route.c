/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which device, and which of its addresses, reaches a destination: as the kernel would have it for
 * its netdevs, by the subnets of their addresses for devices that the engine owns.
 */
#include "rcd_cma_route.h"

#include <errno.h>

#include "rcd_cma.h"
#include "rcd_mcast.h"
#include "rcd_thread.h"

bool
rcd_cma_addr_any(const struct rcd_ctrl_cm_addr *addr)
{
	static const uint8_t zero[16];

	RCD_ON_CONTROL();
	if (addr->family == 4)
		return memcmp(addr->addr + 12, zero, 4) == 0;
	return memcmp(addr->addr, zero, 16) == 0;
}

bool
rcd_cma_addr_itself(const struct rcd_ctrl_cm_addr *addr)
{
	static const uint8_t one[16] = { [15] = 1 };

	RCD_ON_CONTROL();
	return rcd_cma_addr_any(addr) ||
		(addr->family == 4 ? addr->addr[12] == 127 : memcmp(addr->addr, one, 16) == 0);
}

static bool
cma_route_is_link_local(const struct rcd_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* Whether a link-local address with this scope can be on the device. */
static bool
cma_route_in_scope(const struct rcd_cma_dev *dev, uint32_t scope_id)
{
	return scope_id == 0 || dev->ifindex == 0 || dev->ifindex == scope_id;
}

bool
rcd_cma_owner(const struct rcd_cma *cma, uint64_t netns, const struct rcd_ctrl_cm_addr *addr,
	struct rcd_cma_dev *dev, int *sgid_index)
{
	struct rcd_gid gid = rcd_cma_gid(addr);

	RCD_ON_CONTROL();
	for (uint32_t place = 0; rcd_cma_dev_next(cma, netns, &place, dev);) {
		if (!cma_route_in_scope(dev, addr->scope_id))
			continue;
		*sgid_index = rcd_gid_table_find(dev->gids, &gid);
		if (*sgid_index >= 0)
			return true;
	}
	return false;
}

int
rcd_cma_any_gid(const struct rcd_gid_table *gids, uint8_t family, bool link_local)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < gids->count; i++) {
		const struct rcd_gid *gid = &gids->entries[i].gid;

		if (gids->entries[i].used && rcd_gid_is_ipv4(gid) == (family == 4) &&
			cma_route_is_link_local(gid) == link_local)
			return (int)i;
	}
	return -1;
}

bool
rcd_cma_first(const struct rcd_cma *cma, uint64_t netns, uint8_t family, struct rcd_cma_dev *dev,
	int *sgid_index)
{
	RCD_ON_CONTROL();
	for (uint32_t place = 0; rcd_cma_dev_next(cma, netns, &place, dev);) {
		if (!dev->up)
			continue;
		*sgid_index = rcd_cma_any_gid(dev->gids, family, false);
		if (*sgid_index >= 0)
			return true;
	}
	return false;
}

/* What a search looks for, and what it has found. */
struct search {
	const struct rcd_cma *cma;
	uint64_t netns;
	struct rcd_gid src; /**< when pinned */
	struct rcd_gid dst;
	bool pinned; /**< src is wanted, and no other */
	uint8_t family;
	uint32_t scope_id;
	struct rcd_cma_dev dev;
	int sgid_index;
};

/* Take a device, with the wanted address or this one. @return whether that is possible */
static bool
cma_route_take(struct search *search, const struct rcd_cma_dev *dev, int sgid_index)
{
	if (search->pinned)
		sgid_index = rcd_gid_table_find(dev->gids, &search->src);
	if (sgid_index < 0)
		return false;
	search->dev = *dev;
	search->sgid_index = sgid_index;
	return true;
}

static bool
cma_route_reachable(const struct search *search, const struct rcd_cma_dev *dev, int sgid_index)
{
	return search->cma->ops->reachable(search->cma->arg, dev->serial, sgid_index, &search->dst);
}

/* The other end of a wire is reached by the wire, though it is in this engine. */
static bool
cma_route_by_wire(struct search *search)
{
	struct rcd_cma_dev dev;

	for (uint32_t place = 0; rcd_cma_dev_next(search->cma, search->netns, &place, &dev);)
		if (dev.peer_gids != NULL && rcd_gid_table_find(dev.peer_gids, &search->dst) >= 0 &&
			cma_route_take(search, &dev, rcd_gid_table_on_link(dev.gids, &search->dst)))
			return true;
	return false;
}

static bool
cma_route_by_itself(struct search *search)
{
	struct rcd_cma_dev dev;

	for (uint32_t place = 0; rcd_cma_dev_next(search->cma, search->netns, &place, &dev);) {
		int at = cma_route_in_scope(&dev, search->scope_id)
			? rcd_gid_table_find(dev.gids, &search->dst)
			: -1;

		if (at >= 0 && cma_route_take(search, &dev, at))
			return true;
	}
	return false;
}

/* The wanted address says the device, if there is a way from there. */
static bool
cma_route_by_source(struct search *search)
{
	struct rcd_cma_dev dev;

	for (uint32_t place = 0;
		search->pinned && rcd_cma_dev_next(search->cma, search->netns, &place, &dev);) {
		int at = rcd_gid_table_find(dev.gids, &search->src);

		if (at >= 0 && cma_route_reachable(search, &dev, at))
			return cma_route_take(search, &dev, at);
	}
	return false;
}

static bool
cma_route_by_subnet(struct search *search)
{
	struct rcd_cma_dev dev;
	uint32_t longest = 0;

	for (uint32_t place = 0; rcd_cma_dev_next(search->cma, search->netns, &place, &dev);) {
		int at = dev.answers && cma_route_in_scope(&dev, search->scope_id)
			? rcd_gid_table_on_link(dev.gids, &search->dst)
			: -1;

		if (at >= 0 && dev.gids->entries[at].prefix_len + 1u > longest &&
			cma_route_take(search, &dev, at))
			longest = dev.gids->entries[at].prefix_len + 1u;
	}
	return longest > 0;
}

static bool
cma_route_by_kernel(struct search *search)
{
	const struct rcd_cma *cma = search->cma;
	struct rcd_gid src = search->src;
	uint32_t ifindex = search->scope_id;
	struct rcd_cma_dev dev;

	if (cma->ops->source(cma->arg, search->netns, &search->dst, &ifindex, &src) != 0)
		return false;
	for (uint32_t place = 0; rcd_cma_dev_next(cma, search->netns, &place, &dev);) {
		int at;

		if (dev.ifindex != ifindex || ifindex == 0)
			continue;
		at = rcd_gid_table_find(dev.gids, &src);
		if (at < 0)
			at = rcd_cma_any_gid(
				dev.gids, search->family, cma_route_is_link_local(&search->dst));
		if (cma_route_take(search, &dev, at))
			return true;
	}
	return false;
}

static bool
cma_route_by_gateway(struct search *search)
{
	struct rcd_cma_dev dev;

	for (uint32_t place = 0; rcd_cma_dev_next(search->cma, search->netns, &place, &dev);) {
		int at = dev.answers ? rcd_cma_any_gid(dev.gids, search->family, false) : -1;

		if (at >= 0 && cma_route_reachable(search, &dev, at) &&
			cma_route_take(search, &dev, at))
			return true;
	}
	return false;
}

static bool
cma_route_by_any(struct search *search)
{
	struct rcd_cma_dev dev;

	for (uint32_t place = 0; rcd_cma_dev_next(search->cma, search->netns, &place, &dev);)
		if (dev.up &&
			cma_route_take(
				search, &dev, rcd_cma_any_gid(dev.gids, search->family, false)))
			return true;
	return false;
}

int
rcd_cma_route(const struct rcd_cma *cma, uint64_t netns, const struct rcd_ctrl_cm_addr *src,
	const struct rcd_ctrl_cm_addr *dst, struct rcd_cma_dev *dev, int *sgid_index)
{
	struct search search = {
		.cma = cma,
		.netns = netns,
		.src = rcd_cma_gid(src),
		.dst = rcd_cma_gid(dst),
		.pinned = src->family != 0 && !rcd_cma_addr_any(src),
		.family = dst->family,
		.scope_id = dst->scope_id,
	};
	bool found;

	RCD_ON_CONTROL();
	if (search.pinned && src->family != dst->family)
		return -EINVAL;
	if (rcd_cma_addr_itself(dst))
		found = cma_route_by_any(&search);
	else if (rcd_gid_is_multicast(&search.dst))
		found = search.pinned ? cma_route_by_any(&search)
				      : cma_route_by_kernel(&search) || cma_route_by_any(&search);
	else
		found = cma_route_by_wire(&search) || cma_route_by_itself(&search) ||
			cma_route_by_source(&search) ||
			(!search.pinned &&
				(cma_route_by_subnet(&search) || cma_route_by_kernel(&search) ||
					cma_route_by_gateway(&search)));
	if (!found)
		return -ENETUNREACH;
	*dev = search.dev;
	*sgid_index = search.sgid_index;
	return 0;
}
