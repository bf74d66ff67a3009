/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Random scenarios over the simulator, with a model of what must come of them.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "sim.h"

/** What happened in a scenario, for totals. */
struct scenario_stats {
	uint64_t packets;
	uint64_t operations;
	uint64_t failed;  /**< scenarios that were meant to fail, and failed as they must */
	uint64_t damaged; /**< frames that the ICRC found */
	uint64_t kept;
	uint64_t again;
	uint64_t sack_repairs, spurious;
	uint64_t found; /**< queue pairs that found out that their peer takes part */
	uint64_t reads; /**< requests for data, or parts of it, each once */
};

/** Who takes part in selective acknowledgement: nobody, everybody, or some queue pairs do, whose
 * peers know nothing of it and drop what they are sent. Or they find out by marks, everybody or
 * likewise, over networks some of which scramble or echo marks: who must not find a peer is checked
 * not to send it a HELLO. */
enum scenario_sack {
	SCENARIO_SACK_OFF,
	SCENARIO_SACK_ON,
	SCENARIO_SACK_MIXED,
	SCENARIO_SACK_FIND,
	SCENARIO_SACK_FIND_MIXED,
	SCENARIO_SACKS,
};

/**
 * Run the scenario that a seed stands for.
 *
 * @param window  packets that each queue pair may have under way, READs asked for in parts; 0: some
 *     have an algorithm, as the seed says
 * @param stats  added to
 * @return NULL, or what went wrong; the text is good until the next call
 */
const char *
scenario_run(uint64_t seed, enum scenario_sack sack, uint32_t window, struct scenario_stats *stats);

#endif /* SCENARIO_H */
