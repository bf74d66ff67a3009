/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Rounds of an lcore's work.
 *
 * Threads: one, that of the lcore. Where it has none of its own, that is the control thread.
 */
#ifndef RCD_POLL_H
#define RCD_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_api.h"

RCD_API_BEGIN

struct rcd_lcore;

/**
 * Do one round of an lcore's work. Never blocks, allocates or logs.
 *
 * @param now_ns  of rcd_clock.h
 * @param budget  most packets to receive and to send
 * @return packets, doorbells, timers and commands handled; 0: there was nothing to do
 */
uint32_t
rcd_lcore_poll(struct rcd_lcore *lcore, uint64_t now_ns, uint32_t budget);

/** Whether the engine wants this lcore's thread back. Any thread. */
bool
rcd_lcore_stopping(const struct rcd_lcore *lcore);

/** Main function of a worker. @param arg the lcore */
int
rcd_poll_main(void *arg);

RCD_API_END

#endif /* RCD_POLL_H */
