/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a NIC does with received frames before a program sees them: which it lets in, whether the
 * tag stays, how many buffers they lie in. Knows no port; no EAL is needed.
 */
#ifndef IMPAIR_FILTER_H
#define IMPAIR_FILTER_H

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>
#include <stdbool.h>
#include <stdint.h>

#define IMPAIR_GROUPS 256

/** What it lets in: of multicast addresses, and of VLANs. */
struct impair_filter {
	rte_spinlock_t lock; /**< around all of it: queues ask while it is changed */
	bool active;         /**< not all multicast addresses */
	uint32_t vlans;      /**< so many at most; 0: all */
	bool all_vlans;      /**< it is switched off: those that it was told are for later */
	bool promiscuous;    /**< all the same */
	uint32_t count;
	struct rte_ether_addr groups[IMPAIR_GROUPS];
	uint64_t tags[RTE_ETHER_MAX_VLAN_ID / 64 + 1]; /**< a bit each */
};

/** Whether a frame is let in. */
bool
impair_filter_passes(struct impair_filter *filter, const struct rte_mbuf *mbuf);

/** A VLAN is let in, or no more. @return 0; -ENOSPC: there is no place for another */
int
impair_filter_set_vlan(struct impair_filter *filter, uint16_t id, bool on);

/** Nothing is, but what always is. */
void
impair_filter_clear(struct impair_filter *filter);

/** Take the tag of a frame off and put it beside it, if it has one. */
void
impair_filter_strip(struct rte_mbuf *mbuf);

/**
 * A frame as it lies in buffers of a pool that the driver puts so many bytes into: in several,
 * unless one does and it is of that pool.
 *
 * @param mbuf  in one piece, else it stays as it is; not the caller's any more
 * @return NULL: there are too few buffers, and it is lost
 */
struct rte_mbuf *
impair_filter_segment(struct rte_mbuf *mbuf, uint32_t len, struct rte_mempool *pool);

#endif /* IMPAIR_FILTER_H */
