/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Bits of a window of PSNs.
 */
#include "rcd_sack_bits.h"

uint32_t
rcd_sack_bits_count(const struct rcd_sack_bits *bits, struct rcd_psn from, struct rcd_psn end)
{
	uint32_t left = rcd_psn_span(from, end);
	uint32_t count = 0;

	for (uint32_t i = 0; i < left && i < RCD_SACK_PSNS; i += 64) {
		uint64_t word = rcd_sack_bits_word(bits, rcd_psn_add(from, i));

		if (left - i < 64)
			word &= (UINT64_C(1) << (left - i)) - 1;
		count += (uint32_t)__builtin_popcountll(word);
	}
	return count;
}
