/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packet sequence numbers: 24-bit serial numbers that wrap.
 *
 * The order of two PSNs is that of the shorter way round the circle. A requester never has more
 * than 2^23 outstanding (IBTA Vol. 1, 9.7.1). Of two that are exactly so far apart each is before
 * the other: who may meet them asks for the order that is right, not whether it is wrong.
 *
 * Threads: any.
 */
#ifndef RCD_PSN_H
#define RCD_PSN_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_limits.h"

#define RCD_PSN_MASK ((UINT32_C(1) << RCD_PSN_BITS) - 1)

/** A PSN, host order, always below 2^24. */
struct rcd_psn {
	uint32_t val;
};

/** The PSN in the low 24 bits of @p val; higher bits are dropped. */
static inline struct rcd_psn
rcd_psn(uint32_t val)
{
	return (struct rcd_psn){ val & RCD_PSN_MASK };
}

/** The PSN @p count packets after @p psn. @p count may be of any size: it wraps. */
static inline struct rcd_psn
rcd_psn_add(struct rcd_psn psn, uint32_t count)
{
	return rcd_psn(psn.val + count);
}

/** The PSN @p count packets before @p psn. */
static inline struct rcd_psn
rcd_psn_sub(struct rcd_psn psn, uint32_t count)
{
	return rcd_psn(psn.val - count);
}

/**
 * Signed distance from @p from to @p to in packets.
 *
 * @return -2^23 .. 2^23-1; positive when @p to is the later one
 */
static inline int32_t
rcd_psn_diff(struct rcd_psn to, struct rcd_psn from)
{
	/* Bring the 24-bit sign to bit 31; the arithmetic shift brings it back. */
	return (int32_t)((to.val - from.val) << (32 - RCD_PSN_BITS)) >> (32 - RCD_PSN_BITS);
}

/** PSNs from @p from on, to the one before @p to: 0 .. 2^24-1. */
static inline uint32_t
rcd_psn_span(struct rcd_psn from, struct rcd_psn to)
{
	return (to.val - from.val) & RCD_PSN_MASK;
}

/** Whether both are the same PSN. */
static inline bool
rcd_psn_eq(struct rcd_psn a, struct rcd_psn b)
{
	return a.val == b.val;
}

/** Whether @p a comes before @p b. */
static inline bool
rcd_psn_before(struct rcd_psn a, struct rcd_psn b)
{
	return rcd_psn_diff(a, b) < 0;
}

/** Whether @p psn lies in the @p count PSNs that start at @p first. */
static inline bool
rcd_psn_in(struct rcd_psn psn, struct rcd_psn first, uint32_t count)
{
	return rcd_psn_span(first, psn) < count;
}

#endif /* RCD_PSN_H */
