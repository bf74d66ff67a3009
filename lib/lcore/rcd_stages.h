/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Where the time of an lcore went: sums of a stop watch that is always in exactly one stage.
 * rcd_engine_measure() starts it. Each change of stage reads the time-stamp counter once; the marks
 * say how often, so that the reading itself can be subtracted.
 *
 * Threads: the lcore writes them; who reads them from elsewhere sees sums of about the same time.
 */
#ifndef RCD_STAGES_H
#define RCD_STAGES_H

#include <stdint.h>

/** What an lcore is doing. */
enum rcd_stage {
	RCD_STAGE_RX,        /**< bursts from ports and rings, parsing, the ICRC of what came */
	RCD_STAGE_TRANSPORT, /**< state machines of the queue pairs, both ways; timers */
	RCD_STAGE_COPY,      /**< payload between buffers and the memory of applications */
	RCD_STAGE_TX,        /**< headers, the ICRC of what goes, bursts to ports */
	RCD_STAGE_DOORBELL,  /**< looking at what clients have posted */
	RCD_STAGE_PUBLISH,   /**< showing clients what was completed */
	RCD_STAGE_IDLE,      /**< polls that found nothing to do */
	RCD_STAGE_HOST,      /**< outside of rcd_lcore_poll(): the program that calls it */
};

#define RCD_STAGE_COUNT 8 /**< of enum rcd_stage */

/** Sums since somebody zeroed them. */
struct rcd_stages {
	uint64_t cycles[RCD_STAGE_COUNT]; /**< of the time-stamp counter */
	uint64_t marks[RCD_STAGE_COUNT];  /**< how often each was left */
};

#endif /* RCD_STAGES_H */
