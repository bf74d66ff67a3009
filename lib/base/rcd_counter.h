/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Counters: one list (rcd_counter.def) makes the enum, the names and the storage.
 *
 * A set of counters has one writer, the lcore that owns it. Any thread may read a value at any
 * time with rcd_counter_get(): it sees some recent value, never a torn one.
 *
 * Threads: any, but rcd_counter_add().
 */
#ifndef RCD_COUNTER_H
#define RCD_COUNTER_H

#include <stdint.h>

#include "rcd_api.h"

RCD_API_BEGIN

/** Identifies a counter; values are dense from 0 and may change between minor releases. */
enum rcd_counter {
#define RCD_COUNTER(symbol, name, unit, description) RCD_COUNTER_##symbol,
#include "rcd_counter.def"
#undef RCD_COUNTER
	RCD_COUNTER_COUNT /**< how many there are */
};

/** One value per counter. Zero-initialise before use. */
struct rcd_counters {
	uint64_t val[RCD_COUNTER_COUNT]; /**< by enum rcd_counter */
};

/** Add @p amount to a counter. Only the owner of @p set calls it. */
static inline void
rcd_counter_add(struct rcd_counters *set, enum rcd_counter id, uint64_t amount)
{
	/* One writer: a plain sum, stored whole for the readers. */
	__atomic_store_n(&set->val[id], set->val[id] + amount, __ATOMIC_RELAXED);
}

/** Current value of a counter. */
static inline uint64_t
rcd_counter_get(const struct rcd_counters *set, enum rcd_counter id)
{
	return __atomic_load_n(&set->val[id], __ATOMIC_RELAXED);
}

/** Name, as telemetry and tools print it. @return static string, never NULL */
const char *
rcd_counter_name(enum rcd_counter id);

/** Unit in words, as "packets" or "bytes". @return static string, never NULL */
const char *
rcd_counter_unit(enum rcd_counter id);

/** One line on what is counted. @return static string, never NULL */
const char *
rcd_counter_description(enum rcd_counter id);

RCD_API_END

#endif /* RCD_COUNTER_H */
