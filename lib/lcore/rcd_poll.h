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

#include "rcd_thread.h"

struct rcd_lcore;

/**
 * Be on an lcore between two of its rounds: the thread that polls it. What it changes there is
 * found by the next round. Nothing in release builds.
 *
 * @return where it was, for rcd_thread_leave()
 */
#ifdef RCD_DEBUG
struct rcd_thread_place
rcd_lcore_enter(const struct rcd_lcore *lcore);
#else
static inline struct rcd_thread_place
rcd_lcore_enter(const struct rcd_lcore *lcore)
{
	return rcd_thread_enter(lcore, 0);
}
#endif

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

#endif /* RCD_POLL_H */
