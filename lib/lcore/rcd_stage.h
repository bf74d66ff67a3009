/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The stop watch of an lcore begins and ends. Nobody measures unless a program asks for it; then
 * each change of stage reads the time-stamp counter once, and the marks say how often, so that the
 * reading itself can be subtracted.
 *
 * Threads: the lcore.
 */
#ifndef RCD_STAGE_H
#define RCD_STAGE_H

#include "rcd_stages.h"

struct rcd_lclient;
struct rcd_lcore;

/** Measure where the time of an lcore goes from now on; NULL: no more. Control thread. */
void
rcd_stage_measure(struct rcd_lcore *lcore, struct rcd_stages *stages);

/** Let a client's copies be measured, or no more. */
void
rcd_stage_watch(struct rcd_lcore *lcore, struct rcd_lclient *client);

#endif /* RCD_STAGE_H */
