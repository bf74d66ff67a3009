/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What is free of a line of numbers, addresses or offsets in a file: sorted ranges, of which the
 * first that is long enough is taken from its start. Neighbours become one. The numbers and their
 * unit are the owner's; nothing is read or written there. Threads: one at a time.
 */
#ifndef RCD_RANGES_H
#define RCD_RANGES_H

#include <stdint.h>

#define RCD_RANGES_NONE UINT64_MAX /**< the start of no range */

/** What is free in one piece: addresses, bytes or numbers, as the owner counts. */
struct rcd_range {
	uint64_t start;
	uint64_t len;
};

/** The free ranges. All zero: nothing is free, and there is room for none. */
struct rcd_ranges {
	struct rcd_range *list; /**< sorted; no two of them touch */
	uint32_t count;
	uint32_t room;
};

/**
 * Nothing is free yet.
 *
 * @param room  ranges that the list has memory for; it grows, but giving so many can't fail
 * @return 0; -ENOMEM
 */
int
rcd_ranges_init(struct rcd_ranges *ranges, uint32_t room);

/** Free the list. */
void
rcd_ranges_fini(struct rcd_ranges *ranges);

/** Take so many, which are more than 0. @return where they begin; RCD_RANGES_NONE: nowhere */
uint64_t
rcd_ranges_take(struct rcd_ranges *ranges, uint64_t len);

/**
 * Give back what was taken, or add something that has no part free yet.
 *
 * @return 0; -ENOMEM: the list has no room, and what was given is free never again
 */
int
rcd_ranges_give(struct rcd_ranges *ranges, uint64_t start, uint64_t len);

/** How much is free. */
uint64_t
rcd_ranges_sum(const struct rcd_ranges *ranges);

#endif /* RCD_RANGES_H */
