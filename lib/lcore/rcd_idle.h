/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an lcore does when there is nothing to do, in the engine's own loop (rcd_poll_main()).
 */
#ifndef RCD_IDLE_H
#define RCD_IDLE_H

/** From the one that keeps its core to the one that leaves it to others. */
enum rcd_idle {
	/** Poll with two cores per lcore and one besides, else yield; in the end (100 ms) sleep. */
	RCD_IDLE_AUTO,
	RCD_IDLE_POLL,  /**< poll on: for a core of its own */
	RCD_IDLE_YIELD, /**< poll for a moment, then let others run between polls */
	RCD_IDLE_SLEEP, /**< poll for a moment, then block until something happens */
};

#endif /* RCD_IDLE_H */
