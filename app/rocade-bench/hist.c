/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The histogram.
 */
#include "hist.h"

#define SUB (UINT64_C(1) << HIST_SUB_BITS)

/* Values below 2 * SUB have a bucket each; from there the buckets of an octave double in width. */
static uint32_t
hist_bucket_of(uint64_t val)
{
	uint32_t octave;

	if (val < 2 * SUB)
		return (uint32_t)val;
	octave = 63 - (uint32_t)__builtin_clzll(val) - HIST_SUB_BITS;
	return (octave << HIST_SUB_BITS) + (uint32_t)(val >> octave);
}

/* The largest value that falls into a bucket. */
static uint64_t
hist_last_of(uint32_t bucket)
{
	uint32_t octave;

	if (bucket < 2 * SUB)
		return bucket;
	octave = (bucket >> HIST_SUB_BITS) - 1;
	return (((bucket & (SUB - 1)) + SUB + 1) << octave) - 1;
}

void
hist_add(struct hist *hist, uint64_t val)
{
	if (val >> 63)
		val = INT64_MAX;
	if (hist->count == 0 || val < hist->min)
		hist->min = val;
	if (val > hist->max)
		hist->max = val;
	hist->count++;
	hist->buckets[hist_bucket_of(val)]++;
}

void
hist_merge(struct hist *hist, const struct hist *other)
{
	if (other->count == 0)
		return;
	if (hist->count == 0 || other->min < hist->min)
		hist->min = other->min;
	if (other->max > hist->max)
		hist->max = other->max;
	hist->count += other->count;
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		hist->buckets[i] += other->buckets[i];
}

uint64_t
hist_quantile(const struct hist *hist, double share)
{
	double wanted = share * (double)hist->count;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		seen += hist->buckets[i];
		if (hist->buckets[i] > 0 && (double)seen >= wanted) {
			uint64_t val = hist_last_of(i);

			return val > hist->max ? hist->max : val < hist->min ? hist->min : val;
		}
	}
	return hist->max;
}
