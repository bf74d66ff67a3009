/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What turns with an impaired network leave of the rate.
 */
#include "share.h"

#include <stdlib.h>

/* By so much of their rate may the turns without differ. */
#define SAME 0.1

static int
share_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double
share_median(double *vals, uint32_t count)
{
	qsort(vals, count, sizeof(vals[0]), share_order);
	return count % 2 ? vals[count / 2] : (vals[count / 2 - 1] + vals[count / 2]) / 2;
}

void
share_compare(const double *rates, uint32_t count, struct share *share)
{
	static double shares[SHARE_TURNS_MAX / 2], between[SHARE_TURNS_MAX / 2];
	double impaired = 0, without = 0;
	uint32_t used = 0;

	for (uint32_t i = 1; i + 1 < count; i += 2) {
		double before = rates[i - 1], after = rates[i + 1];
		double least = before < after ? before : after;
		double most = before < after ? after : before;
		double beside = (before + after) / 2;

		impaired += rates[i];
		without += beside;
		if (!(least > 0 && most - least <= SAME * least))
			continue;
		between[used] = beside;
		shares[used] = rates[i] / beside;
		used++;
	}
	share->measured = used > 0;
	if (used == 0)
		return;
	share->share = share_median(shares, used);
	share->rate = share_median(between, used);
	share->whole = impaired / without;
}
