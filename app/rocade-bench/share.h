/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What turns with damage leave of the rate of those without, on a machine that changes meanwhile.
 * No allocation, no locks.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define SHARE_TURNS_MAX 100001 /**< with the last one without */

/** Medians over the damaged turns that could be compared. */
struct share {
	bool measured; /**< one at least could be */
	double share;  /**< of the rate without damage */
	double rate;   /**< that */
};

/** Sorts them, one at least. */
double
share_median(double *vals, uint32_t count);

/**
 * Each damaged turn as a share of the two beside it. Where those differ by a tenth the machine is
 * another than it was, and the share says nothing of the damage: it is left out, however the turn
 * fared. Of a machine that changed in the damaged turn alone nobody can tell: hence the median.
 *
 * @param rates  of turns without damage and with it, beginning and ending with one without
 * @param count  3 to SHARE_TURNS_MAX, or fewer, and nothing is measured; an even one has a last
 *               turn that is not looked at
 */
void
share_compare(const double *rates, uint32_t count, struct share *share);

#endif /* SHARE_H */
