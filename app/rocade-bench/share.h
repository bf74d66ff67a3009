/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What turns with an impaired network leave of the rate of those without, on a machine that changes
 * meanwhile; and the median. One thread: what is compared lies in static memory meanwhile.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define SHARE_TURNS_MAX 100001 /**< with the last one without */

/** Nothing is set but measured where that is false. */
struct share {
	bool measured; /**< an impaired turn at least could be compared */
	double share;  /**< of the rate without, median over those */
	double rate;   /**< without, in the unit of what was given: median as well */
	double whole;  /**< share by sums over all turns */
};

/** @param vals  one at least; they are sorted in place */
double
share_median(double *vals, uint32_t count);

/**
 * Each impaired turn as a share of the two beside it. Where those differ by more than a tenth the
 * machine is another than it was, and the share says nothing of the network: it is left out,
 * however the turn fared. Of a machine that changed in the impaired turn alone nobody can tell:
 * hence the median.
 *
 * What hits fewer than half of the turns the median does not show, nor what lasts into the next
 * turn, which is no longer the same as the one before: that is in the whole, with all that the
 * machine did, to turns of both kinds.
 *
 * @param rates  of turns without and with, by turns, beginning with one without
 * @param count  up to SHARE_TURNS_MAX; of fewer than 3 nothing is measured, and of an even one the
 *               last turn is not looked at
 */
void
share_compare(const double *rates, uint32_t count, struct share *share);

#endif /* SHARE_H */
