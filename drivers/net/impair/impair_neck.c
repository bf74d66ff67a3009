/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The time and the room of a bottleneck.
 */
#include "impair_neck.h"

#define US_IN_S 1000000

void
impair_neck_set(
	struct impair_neck *neck, const struct impair_args *args, bool active, uint64_t tsc_hz)
{
	rte_spinlock_lock(&neck->lock);
	neck->rate = active ? args->rate : 0;
	neck->room_bytes = args->queue != 0 ? args->queue : UINT64_MAX;
	neck->room_packets = args->queue_packets;
	neck->mark_bytes = args->mark != 0 ? args->mark : UINT64_MAX;
	neck->tsc_hz = tsc_hz;
	neck->free_tsc = neck->rest = neck->bytes = 0;
	neck->count = 0;
	rte_spinlock_unlock(&neck->lock);
}

/* Those that have left make room. */
static void
impair_neck_forget(struct impair_neck *neck, uint64_t now_tsc)
{
	while (neck->count > 0 && neck->packets[neck->first].leaves_tsc <= now_tsc) {
		neck->bytes -= neck->packets[neck->first].len_bytes;
		neck->first = (neck->first + 1) % IMPAIR_QUEUE_PACKETS;
		neck->count--;
	}
}

static void
impair_neck_queue(struct impair_neck *neck, uint32_t len_bytes, uint64_t now_tsc)
{
	uint64_t work = len_bytes * neck->tsc_hz;
	uint32_t last = (neck->first + neck->count++) % IMPAIR_QUEUE_PACKETS;

	if (neck->free_tsc < now_tsc) {
		neck->free_tsc = now_tsc;
		neck->rest = 0;
	}
	work += neck->rest;
	neck->free_tsc += work / neck->rate;
	neck->rest = work % neck->rate;
	neck->packets[last] =
		(struct impair_neck_packet){ .leaves_tsc = neck->free_tsc, .len_bytes = len_bytes };
	neck->bytes += len_bytes;
	if (neck->bytes > neck->counts.peak_bytes)
		neck->counts.peak_bytes = neck->bytes;
	neck->counts.packets++;
	/* In floating point: cycles of a long queue, times a million, may be more than 64 bits. */
	neck->counts.wait_us +=
		(uint64_t)((double)(neck->free_tsc - now_tsc) * US_IN_S / (double)neck->tsc_hz);
}

enum impair_neck_verdict
impair_neck_take(
	struct impair_neck *neck, uint32_t len_bytes, uint64_t now_tsc, uint64_t *leaves_tsc)
{
	enum impair_neck_verdict verdict = IMPAIR_NECK_PASS;

	rte_spinlock_lock(&neck->lock);
	if (neck->rate == 0) {
		*leaves_tsc = now_tsc;
		rte_spinlock_unlock(&neck->lock);
		return IMPAIR_NECK_PASS;
	}
	impair_neck_forget(neck, now_tsc);
	if (neck->count > 0 &&
		(neck->count >= neck->room_packets || len_bytes > neck->room_bytes ||
			neck->bytes > neck->room_bytes - len_bytes)) {
		neck->counts.drops++;
		verdict = IMPAIR_NECK_DROP;
	} else {
		if (neck->bytes >= neck->mark_bytes)
			verdict = IMPAIR_NECK_MARK;
		impair_neck_queue(neck, len_bytes, now_tsc);
		*leaves_tsc = neck->free_tsc;
	}
	rte_spinlock_unlock(&neck->lock);
	return verdict;
}

void
impair_neck_marked(struct impair_neck *neck)
{
	rte_spinlock_lock(&neck->lock);
	neck->counts.marks++;
	rte_spinlock_unlock(&neck->lock);
}

void
impair_neck_read(struct impair_neck *neck, struct impair_neck_counts *counts, bool forget)
{
	rte_spinlock_lock(&neck->lock);
	*counts = neck->counts;
	if (forget)
		neck->counts = (struct impair_neck_counts){ .packets = 0 };
	rte_spinlock_unlock(&neck->lock);
}
