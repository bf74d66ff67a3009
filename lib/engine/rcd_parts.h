/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Parts of a segment: those that are free, and one that is made ready.
 */
#ifndef RCD_PARTS_H
#define RCD_PARTS_H

#include <stdint.h>

/** Parts of a segment that are free, sorted by offset. */
struct rcd_extent {
	uint64_t start;
	uint64_t len;
};

struct rcd_extents {
	struct rcd_extent *list;
	uint32_t count;
};

/** A part of a segment that is being cleared for a request, by several rounds. */
struct rcd_clearing {
	uint64_t offset;
	uint64_t bytes; /**< 0: none is */
	uint64_t done;
	uint32_t via; /**< connection whose request it is */
};

#endif /* RCD_PARTS_H */
