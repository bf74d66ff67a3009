/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Received frames on their way from the wire to buffers, as NICs differ in it.
 */
#include "impair_filter.h"

#include <errno.h>
#include <string.h>

static bool
impair_filter_passes_group(const struct impair_filter *filter, const struct rte_ether_addr *mac)
{
	bool passes = !filter->active || !rte_is_multicast_ether_addr(mac) ||
		rte_is_broadcast_ether_addr(mac);

	for (uint32_t i = 0; !passes && i < filter->count; i++)
		passes = rte_is_same_ether_addr(mac, &filter->groups[i]);
	return passes;
}

static bool
impair_filter_passes_vlan(const struct impair_filter *filter, const struct rte_mbuf *mbuf)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_vlan_hdr *vlan = (const struct rte_vlan_hdr *)(eth + 1);
	uint16_t id;

	if (filter->vlans == 0 || filter->all_vlans ||
		rte_pktmbuf_data_len(mbuf) < sizeof(*eth) + sizeof(*vlan) ||
		eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_VLAN))
		return true;
	id = rte_be_to_cpu_16(vlan->vlan_tci) & RTE_ETHER_MAX_VLAN_ID;
	return (filter->tags[id / 64] >> id % 64 & 1) != 0;
}

bool
impair_filter_passes(struct impair_filter *filter, const struct rte_mbuf *mbuf)
{
	bool passes;

	rte_spinlock_lock(&filter->lock);
	passes = filter->promiscuous ||
		(impair_filter_passes_group(
			 filter, rte_pktmbuf_mtod(mbuf, const struct rte_ether_addr *)) &&
			impair_filter_passes_vlan(filter, mbuf));
	rte_spinlock_unlock(&filter->lock);
	return passes;
}

int
impair_filter_set_vlan(struct impair_filter *filter, uint16_t id, bool on)
{
	uint64_t bit = UINT64_C(1) << id % 64;
	uint32_t count = 0;
	int err = 0;

	rte_spinlock_lock(&filter->lock);
	for (size_t i = 0; i < RTE_DIM(filter->tags); i++)
		count += (uint32_t)__builtin_popcountll(filter->tags[i]);
	if (!on)
		filter->tags[id / 64] &= ~bit;
	else if (count < filter->vlans || (filter->tags[id / 64] & bit) != 0)
		filter->tags[id / 64] |= bit;
	else
		err = -ENOSPC;
	rte_spinlock_unlock(&filter->lock);
	return err;
}

void
impair_filter_clear(struct impair_filter *filter)
{
	rte_spinlock_lock(&filter->lock);
	filter->count = 0;
	filter->all_vlans = false;
	memset(filter->tags, 0, sizeof(filter->tags));
	rte_spinlock_unlock(&filter->lock);
}

void
impair_filter_strip(struct rte_mbuf *mbuf)
{
	if (rte_pktmbuf_data_len(mbuf) >=
		sizeof(struct rte_ether_hdr) + sizeof(struct rte_vlan_hdr))
		rte_vlan_strip(mbuf);
}

struct rte_mbuf *
impair_filter_segment(struct rte_mbuf *mbuf, uint32_t len, struct rte_mempool *pool)
{
	struct rte_mbuf *first = NULL;
	uint32_t total = rte_pktmbuf_pkt_len(mbuf);
	uint32_t at = 0;

	if ((total <= len && mbuf->pool == pool) || mbuf->nb_segs > 1)
		return mbuf;
	while (at < total) {
		struct rte_mbuf *piece = rte_pktmbuf_alloc(pool);
		uint32_t take = RTE_MIN(len, total - at);
		char *to;

		take = piece != NULL ? RTE_MIN(take, rte_pktmbuf_tailroom(piece)) : 0;
		to = take != 0 ? rte_pktmbuf_append(piece, (uint16_t)take) : NULL;
		if (to == NULL || (first != NULL && rte_pktmbuf_chain(first, piece) != 0)) {
			rte_pktmbuf_free(piece);
			rte_pktmbuf_free(first);
			rte_pktmbuf_free(mbuf);
			return NULL;
		}
		memcpy(to, rte_pktmbuf_mtod_offset(mbuf, const void *, at), take);
		if (first == NULL)
			first = piece;
		at += take;
	}
	/* What stands beside a frame stands beside its first piece. */
	first->port = mbuf->port;
	first->vlan_tci = mbuf->vlan_tci;
	first->ol_flags |= mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED;
	rte_pktmbuf_free(mbuf);
	return first;
}
