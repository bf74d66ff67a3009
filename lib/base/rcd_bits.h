/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Powers of two, where a member lies, and bits of two words mixed into one.
 *
 * Threads: any.
 */
#ifndef RCD_BITS_H
#define RCD_BITS_H

#include <stddef.h>
#include <stdint.h>

/** What a member is part of. */
#define RCD_OWNER(member_at, type, member)                                                         \
	((type *)(void *)((uint8_t *)(member_at)-offsetof(type, member)))

/** Of the powers of two that are no less than a number, the smallest, as its exponent: 0..32. */
static inline unsigned int
rcd_log2_up(uint32_t val)
{
	return val <= 1 ? 0 : 32 - (unsigned int)__builtin_clz(val - 1);
}

/** The same power itself. @param val  up to 2^31 */
static inline uint32_t
rcd_power_up(uint32_t val)
{
	return UINT32_C(1) << (rcd_log2_up(val) & 31);
}

/** The next multiple of a power of two. @param val  at least one multiple below 2^64 */
static inline uint64_t
rcd_align_up(uint64_t val, uint64_t power)
{
	return (val + power - 1) & ~(power - 1);
}

/** Both halves of a product: every bit of either factor is in every bit of this. */
static inline uint64_t
rcd_mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif /* RCD_BITS_H */
