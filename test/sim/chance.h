/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What happens now and then in simulations.
 */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdbool.h>

#include "rcd_sequence.h"

/** Whether it happens this time. @param probability  0: never, and nothing is drawn; 1: always */
static inline bool
chance_falls(struct rcd_sequence *rng, double probability)
{
	/* 53 bits: a number from 0 up to 1, which it never is. */
	return probability > 0 && (double)(rcd_sequence_next(rng) >> 11) * 0x1p-53 < probability;
}

#endif /* CHANCE_H */
