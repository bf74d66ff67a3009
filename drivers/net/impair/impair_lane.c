/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What happens to the packets of one direction of one queue.
 */
#include "impair_lane.h"

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_malloc.h>
#include <string.h>

#include "impair_chance.h"
#include "impair_mark.h"

/* A reordered packet is not held longer than that when nothing follows it. */
#define REORDER_WAIT_US 1000

struct impair_lane *
impair_lane_create(const struct impair_args *args, bool active, uint32_t queue,
	struct impair_neck *neck, int socket_id)
{
	struct impair_lane *lane =
		rte_zmalloc_socket("impair_lane", sizeof(*lane), RTE_CACHE_LINE_SIZE, socket_id);

	if (lane == NULL)
		return NULL;
	rte_spinlock_init(&lane->lock);
	lane->neck = neck;
	impair_lane_set(lane, args, active, queue);
	return lane;
}

void
impair_lane_clear(struct impair_lane *lane)
{
	struct rte_mbuf *mbuf;

	while ((mbuf = impair_held_next(&lane->held, UINT64_MAX)) != NULL)
		rte_pktmbuf_free(mbuf);
	for (uint32_t i = 0; i < lane->late_count; i++)
		rte_pktmbuf_free(lane->late[i].mbuf);
	lane->late_count = 0;
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
	lane->burst = (struct impair_burst){ .bad = false };
	impair_held_hurry(&lane->held, rte_rdtsc());
	rte_spinlock_unlock(&lane->lock);
}

uint32_t
impair_lane_room(const struct impair_lane *lane)
{
	/* Each with a duplicate. */
	return RTE_MIN(IMPAIR_READY - lane->ready_count, IMPAIR_HELD - lane->held.count) / 2;
}

bool
impair_lane_waits(const struct impair_lane *lane)
{
	return lane->held.count > 0 || lane->late_count > 0;
}

static void
impair_lane_push(struct impair_lane *lane, struct rte_mbuf *mbuf)
{
	lane->ready[lane->ready_count++] = mbuf;
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

/* Off it goes, by the bottleneck and the way behind it; there is room for it. */
static void
impair_lane_send(
	struct impair_lane *lane, struct rte_mbuf *mbuf, uint64_t now_tsc, uint32_t delay_us)
{
	enum impair_neck_verdict verdict;
	struct rte_mbuf *own;
	uint64_t due_tsc;

	verdict = impair_neck_take(lane->neck, rte_pktmbuf_pkt_len(mbuf), now_tsc, &due_tsc);
	if (verdict == IMPAIR_NECK_DROP) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	if (verdict == IMPAIR_NECK_MARK && impair_mark_can(mbuf)) {
		/* Without a buffer it goes on as it is. */
		own = impair_lane_writable(mbuf);
		if (own != NULL) {
			mbuf = own;
			impair_mark(mbuf);
			impair_neck_marked(lane->neck);
		}
	}
	due_tsc += delay_us * rte_get_tsc_hz() / 1000000;
	if (due_tsc > now_tsc)
		impair_held_add(&lane->held, mbuf, due_tsc);
	else
		impair_lane_push(lane, mbuf);
}

static void
impair_lane_let_pass(struct impair_lane *lane, struct rte_mbuf *mbuf, uint64_t now_tsc)
{
	lane->counts[IMPAIR_REORDER]++;
	lane->late[lane->late_count++] = (struct impair_late){
		.mbuf = mbuf,
		.due_tsc = now_tsc + REORDER_WAIT_US * rte_get_tsc_hz() / 1000000,
		.due_count = lane->taken + lane->args.gap,
	};
}

/* @return how long it waits, in microseconds */
static uint32_t
impair_lane_delay(struct impair_lane *lane)
{
	uint32_t us = impair_chance_delay_us(&lane->args, &lane->sequence);

	lane->counts[IMPAIR_DELAY]++;
	lane->counts[IMPAIR_COUNT_DELAY_US] += us;
	return us;
}

/* @return the packet, with what is done to its bytes */
static struct rte_mbuf *
impair_lane_damage(struct impair_lane *lane, struct rte_mbuf *mbuf, uint32_t set)
{
	struct rte_mbuf *own;

	if ((set & (1u << IMPAIR_CORRUPT | 1u << IMPAIR_ECN)) == 0)
		return mbuf;
	/* Without a buffer it goes on as it is. */
	own = impair_lane_writable(mbuf);
	if (own == NULL)
		return mbuf;
	if ((set & 1u << IMPAIR_ECN) && impair_mark_can(own)) {
		impair_mark(own);
		lane->counts[IMPAIR_ECN]++;
	}
	if (set & 1u << IMPAIR_CORRUPT) {
		impair_lane_corrupt(lane, own);
		lane->counts[IMPAIR_CORRUPT]++;
	}
	return own;
}

void
impair_lane_take(struct impair_lane *lane, struct rte_mbuf *mbuf, uint64_t now_tsc)
{
	uint32_t set = lane->active ? impair_chance_decide(&lane->args, &lane->sequence) : 0;
	bool lost = lane->active &&
		impair_chance_burst(&lane->args, &lane->burst, &lane->sequence,
			&lane->counts[IMPAIR_COUNT_BURST]);
	struct rte_mbuf *copy = NULL;

	lane->taken++;
	if (lost || set & 1u << IMPAIR_DROP) {
		lane->counts[lost ? IMPAIR_COUNT_BURST_DROP : IMPAIR_DROP]++;
		rte_pktmbuf_free(mbuf);
		return;
	}
	mbuf = impair_lane_damage(lane, mbuf, set);
	if (set & 1u << IMPAIR_DUPLICATE) {
		copy = rte_pktmbuf_copy(mbuf, mbuf->pool, 0, UINT32_MAX);
		if (copy != NULL)
			lane->counts[IMPAIR_DUPLICATE]++;
	}
	if ((set & 1u << IMPAIR_REORDER) && lane->late_count < IMPAIR_LATE)
		impair_lane_let_pass(lane, mbuf, now_tsc);
	else
		impair_lane_send(lane, mbuf, now_tsc,
			set & 1u << IMPAIR_DELAY ? impair_lane_delay(lane) : 0);
	if (copy != NULL)
		impair_lane_send(lane, copy, now_tsc, 0);
}

void
impair_lane_release(struct impair_lane *lane, uint64_t now_tsc, uint32_t room)
{
	struct rte_mbuf *mbuf;
	uint32_t kept = 0;

	while (lane->ready_count + 2 * room < IMPAIR_READY &&
		(mbuf = impair_held_next(&lane->held, now_tsc)) != NULL)
		impair_lane_push(lane, mbuf);
	for (uint32_t i = 0; i < lane->late_count; i++) {
		struct impair_late *late = &lane->late[i];
		bool due = lane->taken >= late->due_count || now_tsc >= late->due_tsc;

		if (due && impair_lane_room(lane) > room)
			impair_lane_send(lane, late->mbuf, now_tsc, 0);
		else
			lane->late[kept++] = *late;
	}
	lane->late_count = kept;
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
