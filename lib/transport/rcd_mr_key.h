/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The keyed permutation of 24 bits behind the keys of regions: a Feistel network. Threads: any.
 */
#ifndef RCD_MR_KEY_H
#define RCD_MR_KEY_H

#include <stdint.h>

#define RCD_MR_KEY_ROUNDS    4
#define RCD_MR_KEY_HALF_BITS 12
#define RCD_MR_KEY_HALF_MASK ((1u << RCD_MR_KEY_HALF_BITS) - 1)

/** Mixes half a value; any function will do for such a network to be a permutation. */
static inline uint32_t
rcd_mr_key_mix(uint32_t half, uint32_t round_key)
{
	uint32_t mixed = (half ^ round_key) * 0x9e3779b1u;

	mixed = (mixed ^ mixed >> 15) * 0x85ebca77u;
	return mixed >> (32 - RCD_MR_KEY_HALF_BITS);
}

/** A value of 24 bits in the place of another. @param keys  RCD_MR_KEY_ROUNDS of them, secret */
static inline uint32_t
rcd_mr_key_permute(const uint32_t *keys, uint32_t val)
{
	uint32_t left = val >> RCD_MR_KEY_HALF_BITS;
	uint32_t right = val & RCD_MR_KEY_HALF_MASK;

	for (unsigned int i = 0; i < RCD_MR_KEY_ROUNDS; i++) {
		uint32_t next = left ^ rcd_mr_key_mix(right, keys[i]);

		left = right;
		right = next;
	}
	return left << RCD_MR_KEY_HALF_BITS | right;
}

/** The value whose place it has. */
static inline uint32_t
rcd_mr_key_unpermute(const uint32_t *keys, uint32_t val)
{
	uint32_t left = val >> RCD_MR_KEY_HALF_BITS;
	uint32_t right = val & RCD_MR_KEY_HALF_MASK;

	for (unsigned int i = RCD_MR_KEY_ROUNDS; i-- > 0;) {
		uint32_t before = right ^ rcd_mr_key_mix(left, keys[i]);

		right = left;
		left = before;
	}
	return left << RCD_MR_KEY_HALF_BITS | right;
}

#endif /* RCD_MR_KEY_H */
