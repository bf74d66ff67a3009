/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How long an lcore is away from looking at its ports: its core is taken from it, it sleeps, or a
 * poll takes long. To a sender that measures round trips that looks like a queue in the network,
 * and only the end that is away can tell. Nothing here reads a clock.
 *
 * Threads: one, that of the lcore, unless it says otherwise.
 */
#ifndef RCD_ABSENCE_H
#define RCD_ABSENCE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * A shorter gap between two looks is none: polls with all the work that they may do take that long,
 * and so small a part of what packets may wait is nobody's to mind.
 */
#define RCD_ABSENCE_LEAST_NS 20000

/** Longer ones count as this: what takes a core for longer is no slice of a scheduler. */
#define RCD_ABSENCE_MOST_NS 10000000

/** An lcore that sleeps is away for as long as waking takes, and not as long as it slept. */
#define RCD_ABSENCE_WAKE_NS 200000

/** Time is cut into epochs of 2 to so many nanoseconds, 34 ms. */
#define RCD_ABSENCE_EPOCH_LOG2 25

/** Of an lcore. All zero: it has not looked yet. */
struct rcd_absence {
	uint64_t looked_ns; /**< its last look; 0: none */
	uint64_t sum_ns;    /**< absences of this epoch, which belong to that in which they began */
	uint32_t longest_ns; /**< of them */
	/**
	 * The longest absence of late, up to RCD_ABSENCE_MOST_NS; 0: there were none, or hardly
	 * any. Written by the lcore, relaxed, and read by any.
	 */
	uint32_t away_ns;
};

/** What is left of rcd_absence_looked() and rcd_absence_slept() when a gap is not short. */
void
rcd_absence_note(struct rcd_absence *absence, uint64_t now_ns, bool slept);

/**
 * The lcore looks at its ports. At the end of an epoch in which it was away for a sixteenth of the
 * time or more, away_ns is the longest of its absences; or what an eighth less leaves, if more.
 *
 * @param now_ns  engine clock, not 0, never goes backwards
 */
static inline void
rcd_absence_looked(struct rcd_absence *absence, uint64_t now_ns)
{
	uint64_t gap_ns = now_ns - absence->looked_ns;
	uint64_t new_bits = now_ns ^ absence->looked_ns;

	if (__builtin_expect(
		    gap_ns >= RCD_ABSENCE_LEAST_NS || new_bits >> RCD_ABSENCE_EPOCH_LOG2 != 0,
		    false))
		rcd_absence_note(absence, now_ns, false);
	absence->looked_ns = now_ns;
}

/** The same at the end of a sleep, which began soon after the last look. */
static inline void
rcd_absence_slept(struct rcd_absence *absence, uint64_t now_ns)
{
	rcd_absence_note(absence, now_ns, true);
	absence->looked_ns = now_ns;
}

/** How long it is away, ns. Any thread. */
static inline uint32_t
rcd_absence_away(const struct rcd_absence *absence)
{
	return __atomic_load_n(&absence->away_ns, __ATOMIC_RELAXED);
}

#endif /* RCD_ABSENCE_H */
