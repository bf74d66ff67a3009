/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Rounds of an lcore's work: packets in and out, what clients posted, timers.
 *
 * Threads: one, that of the lcore: the EAL worker that rcd_engine_launch() gave a loop. Where it
 * has none of its own, that is the control thread, between two calls of rcd_engine_step().
 */
#ifndef RCD_POLL_H
#define RCD_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_api.h"

RCD_API_BEGIN

struct rcd_lcore;

/**
 * Do one round of an lcore's work. Never blocks, allocates or logs. Buffers are the engine's own:
 * what it takes from its ports it frees, and what it gives them the ports free.
 *
 * @param lcore   of rcd_engine_lcore()
 * @param now_ns  of rcd_clock_ns(), and never before that of the round before
 * @param budget  most packets to receive from each queue, and to send; 64 is plenty, and more than
 *                that is not received at once. Up to 8 more are sent, and received from each end of
 *                an embedded wire, where packets are missing
 * @return packets, doorbells, timers and commands handled; 0: there was nothing to do
 */
uint32_t
rcd_lcore_poll(struct rcd_lcore *lcore, uint64_t now_ns, uint32_t budget);

/** Whether the engine wants this lcore's thread back, and waits for it. Any thread. */
bool
rcd_lcore_stopping(const struct rcd_lcore *lcore);

/**
 * The loop that rcd_engine_start() gives to each worker: rounds until it is to stop, and between
 * them what struct rcd_engine_conf says of idle lcores. For rcd_engine_launch().
 *
 * @param arg  the lcore: of rcd_engine_lcore(), with the index that is launched
 * @return 0
 */
int
rcd_poll_main(void *arg);

RCD_API_END

#endif /* RCD_POLL_H */
