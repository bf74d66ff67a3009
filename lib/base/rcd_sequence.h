/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Numbers that look random and follow from a seed: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
 * Who has seen some knows the others: what nobody may guess is rcd_random.h's.
 *
 * Threads: one at a time.
 */
#ifndef RCD_SEQUENCE_H
#define RCD_SEQUENCE_H

#include <stdint.h>

/** A sequence. Any value is a seed; a copy goes on as the original does. */
struct rcd_sequence {
	uint64_t state;
};

/** The next number. */
static inline uint64_t
rcd_sequence_next(struct rcd_sequence *sequence)
{
	uint64_t mixed = sequence->state += UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ mixed >> 31;
}

#endif /* RCD_SEQUENCE_H */
