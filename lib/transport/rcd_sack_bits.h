/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A bit for each PSN of a window, in the place of its low bits.
 */
#ifndef RCD_SACK_BITS_H
#define RCD_SACK_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_psn.h"

/** PSNs that are told of, and known of: a requester's window. A power of two. */
#define RCD_SACK_PSNS  512
#define RCD_SACK_WORDS (RCD_SACK_PSNS / 64)

/** All zero: none is set. */
struct rcd_sack_bits {
	uint64_t words[RCD_SACK_WORDS];
};

/** The bit of a PSN. */
static inline bool
rcd_sack_bits_test(const struct rcd_sack_bits *bits, struct rcd_psn psn)
{
	return bits->words[psn.val / 64 % RCD_SACK_WORDS] >> psn.val % 64 & 1;
}

/** Set it, or not. */
static inline void
rcd_sack_bits_set(struct rcd_sack_bits *bits, struct rcd_psn psn, bool value)
{
	uint64_t mask = UINT64_C(1) << psn.val % 64;

	if (value)
		bits->words[psn.val / 64 % RCD_SACK_WORDS] |= mask;
	else
		bits->words[psn.val / 64 % RCD_SACK_WORDS] &= ~mask;
}

/** 64 of them from a PSN on, which comes in the lowest bit. */
static inline uint64_t
rcd_sack_bits_word(const struct rcd_sack_bits *bits, struct rcd_psn psn)
{
	uint32_t word = psn.val / 64 % RCD_SACK_WORDS;
	uint32_t shift = psn.val % 64;
	uint64_t low = bits->words[word] >> shift;

	return shift == 0 ? low : low | bits->words[(word + 1) % RCD_SACK_WORDS] << (64 - shift);
}

/** How many are set from a PSN on, before @p end and of RCD_SACK_PSNS at most. */
uint32_t
rcd_sack_bits_count(const struct rcd_sack_bits *bits, struct rcd_psn from, struct rcd_psn end);

#endif /* RCD_SACK_BITS_H */
