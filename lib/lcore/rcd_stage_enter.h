/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The change from one stage of an lcore to another (rcd_stage.h): in the midst of its work, so that
 * it is no call.
 *
 * Threads: the lcore.
 */
#ifndef RCD_STAGE_ENTER_H
#define RCD_STAGE_ENTER_H

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_lcore.h"
#include "rcd_stage.h"
#include "rcd_thread.h"

/** Another stage begins. @return the one before, to go back to */
static inline enum rcd_stage
rcd_stage_enter(struct rcd_lcore *lcore, enum rcd_stage stage)
{
	enum rcd_stage before = lcore->stage;
	uint64_t tsc;

	RCD_ON_LCORE(lcore);
	if (likely(lcore->stages == NULL))
		return before;
	tsc = rte_rdtsc();
	lcore->stages->cycles[before] += tsc - lcore->stage_tsc;
	lcore->stages->marks[before]++;
	lcore->stage = stage;
	lcore->stage_tsc = tsc;
	return before;
}

#endif /* RCD_STAGE_ENTER_H */
