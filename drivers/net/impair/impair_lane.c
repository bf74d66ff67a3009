/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What happens to the packets of one direction of one queue.
 */
#include "impair_lane.h"

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <string.h>

/* A reordered packet is not held longer than that when nothing follows it. */
#define REORDER_WAIT_US 1000

#define ECN_MASK 3 /* of the traffic class; RFC 3168, section 5 */
#define ECN_CE   3

struct impair_lane *
impair_lane_create(const struct impair_args *args, bool active, uint32_t queue, int socket_id)
{
	struct impair_lane *lane =
		rte_zmalloc_socket("impair_lane", sizeof(*lane), RTE_CACHE_LINE_SIZE, socket_id);

	if (lane == NULL)
		return NULL;
	rte_spinlock_init(&lane->lock);
	impair_lane_set(lane, args, active, queue);
	return lane;
}

void
impair_lane_clear(struct impair_lane *lane)
{
	for (uint32_t i = 0; i < lane->held_count; i++)
		rte_pktmbuf_free(lane->held[i].mbuf);
	lane->held_count = 0;
	for (uint32_t i = 0; i < lane->ready_count; i++)
		rte_pktmbuf_free(lane->ready[i]);
	lane->ready_count = 0;
}

void
impair_lane_destroy(struct impair_lane *lane)
{
	if (lane == NULL)
		return;
	impair_lane_clear(lane);
	rte_free(lane);
}

void
impair_lane_set(
	struct impair_lane *lane, const struct impair_args *args, bool active, uint32_t queue)
{
	rte_spinlock_lock(&lane->lock);
	lane->args = *args;
	lane->active = active;
	lane->sequence.state = args->seed ^ (uint64_t)queue << 32;
	rte_spinlock_unlock(&lane->lock);
}

uint32_t
impair_lane_room(const struct impair_lane *lane)
{
	/* All that are held may become ready at once, and each taken one with a duplicate. */
	return (IMPAIR_READY - lane->ready_count - lane->held_count) / 2;
}

static void
impair_lane_push(struct impair_lane *lane, struct rte_mbuf *mbuf)
{
	lane->ready[lane->ready_count++] = mbuf;
}

/* Where the network header begins. @return 0 when it is not IP */
static uint32_t
impair_lane_find_ip(const struct rte_mbuf *mbuf, uint16_t *type)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	uint32_t at = sizeof(struct rte_ether_hdr);

	if (rte_pktmbuf_data_len(mbuf) < at + sizeof(struct rte_vlan_hdr))
		return 0;
	*type = (uint16_t)(frame[at - 2] << 8 | frame[at - 1]);
	if (*type == RTE_ETHER_TYPE_VLAN) {
		at += sizeof(struct rte_vlan_hdr);
		*type = (uint16_t)(frame[at - 2] << 8 | frame[at - 1]);
	}
	return at;
}

/* @return whether the packet could be marked */
static bool
impair_lane_mark(struct rte_mbuf *mbuf)
{
	uint16_t type = 0;
	uint32_t at = impair_lane_find_ip(mbuf, &type);
	uint8_t *ip = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, at);

	if (type == RTE_ETHER_TYPE_IPV4 &&
		rte_pktmbuf_data_len(mbuf) >= at + sizeof(struct rte_ipv4_hdr) &&
		(ip[1] & ECN_MASK) != 0) {
		uint32_t len = (ip[0] & 0xfu) * 4;
		uint16_t sum;

		/* The checksum is over all words, options included. */
		if (rte_pktmbuf_data_len(mbuf) < at + len)
			return false;
		ip[1] |= ECN_CE;
		memset(ip + offsetof(struct rte_ipv4_hdr, hdr_checksum), 0, sizeof(sum));
		sum = (uint16_t)~rte_raw_cksum(ip, len);
		memcpy(ip + offsetof(struct rte_ipv4_hdr, hdr_checksum), &sum, sizeof(sum));
		return true;
	}
	/* The traffic class lies across the first two bytes: its ECN bits are in the second. */
	if (type == RTE_ETHER_TYPE_IPV6 &&
		rte_pktmbuf_data_len(mbuf) >= at + sizeof(struct rte_ipv6_hdr) &&
		(ip[1] >> 4 & ECN_MASK) != 0) {
		ip[1] |= ECN_CE << 4;
		return true;
	}
	return false;
}

static void
impair_lane_corrupt(struct impair_lane *lane, struct rte_mbuf *mbuf)
{
	uint32_t begin = sizeof(struct rte_ether_hdr);
	uint32_t len = rte_pktmbuf_data_len(mbuf);
	uint64_t bit;

	if (len <= begin)
		return;
	bit = rcd_sequence_next(&lane->sequence) % ((len - begin) * 8);
	rte_pktmbuf_mtod(mbuf, uint8_t *)[begin + bit / 8] ^= (uint8_t)(1 << bit % 8);
}

/* The packet, or a copy of it when others hold it too. @return NULL: no buffer */
static struct rte_mbuf *
impair_lane_writable(struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy;

	if (RTE_MBUF_DIRECT(mbuf) && rte_mbuf_refcnt_read(mbuf) == 1)
		return mbuf;
	copy = rte_pktmbuf_copy(mbuf, mbuf->pool, 0, UINT32_MAX);
	if (copy != NULL)
		rte_pktmbuf_free(mbuf);
	return copy;
}

static void
impair_lane_hold(struct impair_lane *lane, struct rte_mbuf *mbuf, uint64_t now_tsc, bool reorder)
{
	uint64_t us = reorder ? REORDER_WAIT_US : lane->args.delay_us;

	lane->held[lane->held_count++] = (struct impair_held){
		.mbuf = mbuf,
		.due_tsc = now_tsc + us * rte_get_tsc_hz() / 1000000,
		.due_count = reorder ? lane->taken + lane->args.gap : UINT64_MAX,
	};
}

void
impair_lane_take(struct impair_lane *lane, struct rte_mbuf *mbuf, uint64_t now_tsc)
{
	uint32_t set = lane->active ? impair_decide(&lane->args, &lane->sequence) : 0;
	struct rte_mbuf *copy = NULL;

	lane->taken++;
	if (set & 1u << IMPAIR_DROP) {
		lane->counts[IMPAIR_DROP]++;
		rte_pktmbuf_free(mbuf);
		return;
	}
	if (set & (1u << IMPAIR_CORRUPT | 1u << IMPAIR_ECN)) {
		struct rte_mbuf *own = impair_lane_writable(mbuf);

		/* Without a buffer it goes on as it is. */
		if (own == NULL)
			set &= ~(1u << IMPAIR_CORRUPT | 1u << IMPAIR_ECN);
		else
			mbuf = own;
	}
	if (set & 1u << IMPAIR_ECN)
		lane->counts[IMPAIR_ECN] += impair_lane_mark(mbuf);
	if (set & 1u << IMPAIR_CORRUPT) {
		impair_lane_corrupt(lane, mbuf);
		lane->counts[IMPAIR_CORRUPT]++;
	}
	if (set & 1u << IMPAIR_DUPLICATE) {
		copy = rte_pktmbuf_copy(mbuf, mbuf->pool, 0, UINT32_MAX);
		if (copy != NULL)
			lane->counts[IMPAIR_DUPLICATE]++;
	}
	if ((set & (1u << IMPAIR_REORDER | 1u << IMPAIR_DELAY)) && lane->held_count < IMPAIR_HELD) {
		bool reorder = (set & 1u << IMPAIR_REORDER) != 0;

		lane->counts[reorder ? IMPAIR_REORDER : IMPAIR_DELAY]++;
		impair_lane_hold(lane, mbuf, now_tsc, reorder);
	} else {
		impair_lane_push(lane, mbuf);
	}
	if (copy != NULL)
		impair_lane_push(lane, copy);
}

void
impair_lane_release(struct impair_lane *lane, uint64_t now_tsc)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < lane->held_count; i++) {
		struct impair_held *held = &lane->held[i];

		if (lane->taken >= held->due_count || now_tsc >= held->due_tsc)
			impair_lane_push(lane, held->mbuf);
		else
			lane->held[kept++] = *held;
	}
	lane->held_count = kept;
}

uint32_t
impair_lane_ready(struct impair_lane *lane, struct rte_mbuf ***mbufs)
{
	*mbufs = lane->ready;
	return lane->ready_count;
}

void
impair_lane_done(struct impair_lane *lane, uint32_t count)
{
	lane->ready_count -= count;
	/* What is left is little. */
	memmove(lane->ready, lane->ready + count, lane->ready_count * sizeof(lane->ready[0]));
}
