/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What becomes of a packet by chance, and for how long it waits. All of it follows from the
 * settings and a sequence; reads no clock, and knows no packet.
 */
#ifndef IMPAIR_CHANCE_H
#define IMPAIR_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "impair_args.h"

/** The two states of burst loss. All zero: good. */
struct impair_burst {
	bool bad;
	uint32_t length; /**< packets that this one has had */
};

/**
 * Decide for one packet.
 *
 * @param sequence  goes on
 * @return a set of bits, 1 << enum impair_kind; dropped ones have no other, and a packet is either
 *     reordered or delayed
 */
uint32_t
impair_chance_decide(const struct impair_args *args, struct rcd_sequence *sequence);

/**
 * Whether a burst takes one packet: it may be lost in the state that there is, which then may
 * change (Gilbert, BSTJ 1960; Elliott, BSTJ 1963). Bursts are in the mean 1 / ge_r packets long,
 * and ge_max at most. States change with packets, not with time.
 *
 * @param began  counts bursts that begin
 */
bool
impair_chance_burst(const struct impair_args *args, struct impair_burst *burst,
	struct rcd_sequence *sequence, uint64_t *began);

/** How long one packet is delayed, in microseconds, by the distribution and within its bounds. */
uint32_t
impair_chance_delay_us(const struct impair_args *args, struct rcd_sequence *sequence);

#endif /* IMPAIR_CHANCE_H */
