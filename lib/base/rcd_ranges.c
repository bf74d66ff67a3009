/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Free ranges.
 */
#include "rcd_ranges.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int
rcd_ranges_init(struct rcd_ranges *ranges, uint32_t room)
{
	*ranges = (struct rcd_ranges){ .list = malloc(room * sizeof(ranges->list[0])) };
	if (ranges->list == NULL)
		return -ENOMEM;
	ranges->room = room;
	return 0;
}

void
rcd_ranges_fini(struct rcd_ranges *ranges)
{
	free(ranges->list);
	*ranges = (struct rcd_ranges){ .list = NULL };
}

static void
ranges_remove_at(struct rcd_ranges *ranges, uint32_t at)
{
	memmove(&ranges->list[at], &ranges->list[at + 1],
		(--ranges->count - at) * sizeof(ranges->list[0]));
}

uint64_t
rcd_ranges_take(struct rcd_ranges *ranges, uint64_t len)
{
	for (uint32_t i = 0; i < ranges->count; i++) {
		struct rcd_range *range = &ranges->list[i];
		uint64_t start = range->start;

		if (range->len < len)
			continue;
		range->start += len;
		range->len -= len;
		if (range->len == 0)
			ranges_remove_at(ranges, i);
		return start;
	}
	return RCD_RANGES_NONE;
}

/* The first one behind a place. */
static uint32_t
ranges_place_of(const struct rcd_ranges *ranges, uint64_t start)
{
	uint32_t low = 0;
	uint32_t high = ranges->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ranges->list[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* @return whether there is room for one more range */
static bool
ranges_make_room(struct rcd_ranges *ranges)
{
	uint32_t room = ranges->room < 8 ? 16 : ranges->room * 2;
	struct rcd_range *more;

	if (ranges->count < ranges->room)
		return true;
	more = realloc(ranges->list, room * sizeof(*more));
	if (more == NULL)
		return false;
	ranges->list = more;
	ranges->room = room;
	return true;
}

int
rcd_ranges_give(struct rcd_ranges *ranges, uint64_t start, uint64_t len)
{
	uint32_t at = ranges_place_of(ranges, start);
	struct rcd_range *next = at < ranges->count ? &ranges->list[at] : NULL;
	struct rcd_range *before = at > 0 ? &ranges->list[at - 1] : NULL;

	if (next != NULL && start + len != next->start)
		next = NULL;
	if (before != NULL && before->start + before->len == start) {
		before->len += len;
		if (next != NULL) {
			before->len += next->len;
			ranges_remove_at(ranges, at);
		}
		return 0;
	}
	if (next != NULL) {
		next->start = start;
		next->len += len;
		return 0;
	}
	if (!ranges_make_room(ranges))
		return -ENOMEM;
	memmove(&ranges->list[at + 1], &ranges->list[at],
		(ranges->count++ - at) * sizeof(ranges->list[0]));
	ranges->list[at] = (struct rcd_range){ start, len };
	return 0;
}

uint64_t
rcd_ranges_sum(const struct rcd_ranges *ranges)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ranges->count; i++)
		sum += ranges->list[i].len;
	return sum;
}
