/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The heap of packets that wait.
 */
#include "impair_held.h"

#include <stdbool.h>

static bool
impair_held_before(const struct impair_held_packet *one, const struct impair_held_packet *other)
{
	return one->due_tsc != other->due_tsc ? one->due_tsc < other->due_tsc
					      : one->order < other->order;
}

/* Put a packet where there is none, or further down. */
static void
impair_held_sink(struct impair_held *held, uint32_t at, struct impair_held_packet packet)
{
	struct impair_held_packet *packets = held->packets;
	uint32_t below;

	while ((below = 2 * at + 1) < held->count) {
		if (below + 1 < held->count &&
			impair_held_before(&packets[below + 1], &packets[below]))
			below++;
		if (!impair_held_before(&packets[below], &packet))
			break;
		packets[at] = packets[below];
		at = below;
	}
	packets[at] = packet;
}

void
impair_held_add(struct impair_held *held, struct rte_mbuf *mbuf, uint64_t due_tsc)
{
	struct impair_held_packet packet = {
		.mbuf = mbuf, .due_tsc = due_tsc, .order = held->order++
	};
	struct impair_held_packet *packets = held->packets;
	uint32_t at = held->count++;

	for (; at > 0 && impair_held_before(&packet, &packets[(at - 1) / 2]); at = (at - 1) / 2)
		packets[at] = packets[(at - 1) / 2];
	packets[at] = packet;
}

struct rte_mbuf *
impair_held_next(struct impair_held *held, uint64_t now_tsc)
{
	struct rte_mbuf *mbuf = held->packets[0].mbuf;

	if (held->count == 0 || held->packets[0].due_tsc > now_tsc)
		return NULL;
	held->count--;
	impair_held_sink(held, 0, held->packets[held->count]);
	return mbuf;
}

void
impair_held_hurry(struct impair_held *held, uint64_t now_tsc)
{
	for (uint32_t i = 0; i < held->count; i++)
		if (held->packets[i].due_tsc > now_tsc)
			held->packets[i].due_tsc = now_tsc;
	for (uint32_t i = held->count / 2; i-- > 0;)
		impair_held_sink(held, i, held->packets[i]);
}
