/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Measuring begins and ends: at the lcore, and at its clients for the time of copies.
 */
#include "rcd_stage.h"

#include <rte_cycles.h>

#include "rcd_lclient.h"
#include "rcd_lcore.h"
#include "rcd_mr.h"
#include "rcd_stage_enter.h"
#include "rcd_thread.h"

static void
stage_watch_copy(void *arg, bool begins)
{
	rcd_stage_enter(arg, begins ? RCD_STAGE_COPY : RCD_STAGE_TRANSPORT);
}

void
rcd_stage_watch(struct rcd_lcore *lcore, struct rcd_lclient *client)
{
	RCD_ON_LCORE(lcore);
	rcd_mr_table_watch(client->mrs, lcore->stages != NULL ? stage_watch_copy : NULL, lcore);
}

static int
stage_measure_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	lcore->stages = arg;
	/* In a command, and so within a poll. */
	lcore->stage = RCD_STAGE_IDLE;
	lcore->stage_tsc = rte_rdtsc();
	for (uint32_t i = 0; i < lcore->hot_count; i++)
		rcd_stage_watch(lcore, lcore->hot[i]);
	for (uint32_t i = 0; i < lcore->cold_count; i++)
		rcd_stage_watch(lcore, lcore->cold[i]);
	return 0;
}

void
rcd_stage_measure(struct rcd_lcore *lcore, struct rcd_stages *stages)
{
	RCD_ON_CONTROL();
	rcd_lcore_call(lcore, stage_measure_on_lcore, stages);
}
