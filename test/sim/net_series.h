/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Values over virtual time, one for each interval.
 */
#ifndef NET_SERIES_H
#define NET_SERIES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_check.h"

/** Length of an interval. */
#define NET_INTERVAL_NS 10000

/** How finely lengths of queues are told apart, and how many of them: what is more is the last. */
#define NET_BIN_BYTES 1024
#define NET_BINS      16384

/** Values by interval, from time 0. Zeroed: none. free() values. */
struct net_series {
	uint64_t *values;
	uint32_t count, capacity;
};

/** The value of the interval of a time, 0 at first. */
static inline uint64_t *
net_series_at(struct net_series *series, uint64_t at_ns)
{
	uint32_t number = (uint32_t)(at_ns / NET_INTERVAL_NS);

	if (number >= series->capacity) {
		uint32_t capacity = 2 * number + 64;

		series->values = realloc(series->values, capacity * sizeof(series->values[0]));
		RCD_CHECK(series->values != NULL);
		memset(series->values + series->capacity, 0,
			(capacity - series->capacity) * sizeof(series->values[0]));
		series->capacity = capacity;
	}
	if (number >= series->count)
		series->count = number + 1;
	return &series->values[number];
}

#endif /* NET_SERIES_H */
