/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A token bucket of computing time.
 */
#include "rcd_pace.h"

uint64_t
rcd_pace_spend(struct rcd_pace *pace, uint64_t now_ns, uint64_t used_ns)
{
	const uint64_t most = RCD_PACE_BURST_NS + RCD_PACE_LONG_NS / RCD_PACE_PART;
	uint64_t passed_ns = now_ns - pace->at_ns;
	int64_t credit = pace->credit_ns;
	uint64_t rest_ns;

	/* Neither is worth more than fills the bucket: no sum wraps. */
	if (passed_ns > RCD_PACE_PART * most)
		passed_ns = RCD_PACE_PART * most;
	if (used_ns > most)
		used_ns = most;
	pace->at_ns = now_ns;
	credit += (int64_t)(passed_ns / RCD_PACE_PART);
	if (credit > RCD_PACE_BURST_NS)
		credit = RCD_PACE_BURST_NS;
	credit -= (int64_t)used_ns;
	if (credit < -(RCD_PACE_LONG_NS / RCD_PACE_PART))
		credit = -(RCD_PACE_LONG_NS / RCD_PACE_PART);
	pace->credit_ns = credit;
	if (credit >= 0)
		return 0;
	rest_ns = (uint64_t)-credit * RCD_PACE_PART;
	return rest_ns < RCD_PACE_REST_NS ? 0 : rest_ns;
}
