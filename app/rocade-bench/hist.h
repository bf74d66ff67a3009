/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A histogram of times with the same relative precision everywhere (after HdrHistogram): 128
 * buckets for each power of two, so a value is told to within 0.8 %, from 1 to 2^63.
 * One writer; no allocation, no locks.
 */
#ifndef HIST_H
#define HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 7
#define HIST_BUCKETS  ((64 - HIST_SUB_BITS) << HIST_SUB_BITS)

/** Zero-initialise before use. */
struct hist {
	uint64_t count;
	uint64_t min;
	uint64_t max;
	uint64_t buckets[HIST_BUCKETS];
};

/** Add a value. */
void
hist_add(struct hist *hist, uint64_t val);

/** Add all that another one has. */
void
hist_merge(struct hist *hist, const struct hist *other);

/**
 * The value that a share of all values does not exceed.
 *
 * @param share  0..1
 * @return to within 0.8 %, never beyond the largest value; 0 when there is none
 */
uint64_t
hist_quantile(const struct hist *hist, double share);

#endif /* HIST_H */
