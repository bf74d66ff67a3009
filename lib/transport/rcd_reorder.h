/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A pool of packets that came out of order. Queue pairs of one thread share it, so that memory is
 * bounded by the pool and not by the number of queue pairs; who finds it empty drops the packet, as
 * every receiver may. A payload is copied into the pool, or stays in the host's buffer if the host
 * can do without that for a while.
 */
#ifndef RCD_REORDER_H
#define RCD_REORDER_H

#include "rcd_qp.h"

/** Packets that a list keeps at most: as many as our requesters have under way. */
#define RCD_REORDER_WINDOW 512

/** How far ahead of the expected PSN a packet may be to be kept: the responses to READs take PSNs,
 * so that a request behind large ones is far ahead; what is out by more is from nowhere. */
#define RCD_REORDER_SPAN (1 << 16)

/** Kept packets that one in the middle is compared with: a peer that sends in no order costs little
 * more than others. Networks that reorder bring late packets to one of the two ends. */
#define RCD_REORDER_STEPS 64

/** Payloads up to this length are always copied: a buffer is not worth it. */
#define RCD_REORDER_COPY_MAX 256

/** What the host does for a pool whose payloads may stay in its buffers. */
struct rcd_reorder_host {
	/**
	 * Leave the payload of a packet where it is until release() is called.
	 *
	 * @param pkt  the one that rcd_qp_rx() was called with
	 * @return what to release, whose first cache line is prefetched before that; or NULL: it
	 *         has to be copied
	 */
	void *(*hold)(void *arg, const struct rcd_pkt *pkt);

	/** The payload is not needed any more. Once for each that was held. */
	void (*release)(void *arg, void *held);

	void *arg;
};

/**
 * A kept packet: private to the transport. Room for a copy of its payload lies elsewhere: most
 * payloads stay with the host, and packets a page apart would cost a miss of the TLB each.
 */
struct rcd_kept {
	struct rcd_kept *next; /**< towards later PSNs, or in the free list */
	void *held;            /**< the host's, which has the payload; NULL: it is in `copy` */
	const uint8_t *payload;
	uint8_t *copy; /**< room for RCD_PATH_MTU_MAX_BYTES, this packet's for good */
	uint32_t payload_len;
	struct rcd_roce roce;
} __attribute__((aligned(64)));

/** Kept packets, sorted by PSN. Zeroed: none. */
struct rcd_kept_list {
	struct rcd_kept *first;
	struct rcd_kept *last; /**< when there is a first */
	uint32_t count;
};

/** Create a pool. @param count packets, 1..2^20 @return NULL when out of memory or range */
struct rcd_reorder_pool *
rcd_reorder_pool_create(uint32_t count);

/** Have payloads stay in the host's buffers from now on, as far as it lets them. */
void
rcd_reorder_pool_set_host(struct rcd_reorder_pool *pool, const struct rcd_reorder_host *host);

/** Destroy a pool. All packets must be back. NULL is allowed. */
void
rcd_reorder_pool_destroy(struct rcd_reorder_pool *pool);

/** Packets that queue pairs hold at present. */
uint32_t
rcd_reorder_pool_used(const struct rcd_reorder_pool *pool);

/** Take a packet that holds nothing. @return NULL when the pool is empty */
struct rcd_kept *
rcd_reorder_get(struct rcd_reorder_pool *pool);

/** Give a packet back, and what it holds. */
void
rcd_reorder_put(struct rcd_reorder_pool *pool, struct rcd_kept *kept);

/**
 * Put a packet into a list that is sorted by PSN.
 *
 * @param pool  NULL: nothing is kept
 * @return whether it was kept: not when one of its PSN is there, its place is far from both ends,
 *         the list has RCD_REORDER_WINDOW, or the pool is empty
 */
bool
rcd_reorder_keep(
	struct rcd_reorder_pool *pool, struct rcd_kept_list *list, const struct rcd_pkt *pkt);

/** Take the first packet out of a list that has one. The caller gives it back. */
struct rcd_kept *
rcd_reorder_take(struct rcd_kept_list *list);

/** Give all packets of a list back. */
void
rcd_reorder_drop(struct rcd_reorder_pool *pool, struct rcd_kept_list *list);

#endif /* RCD_REORDER_H */
