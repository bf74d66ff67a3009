/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The life of a connection by address in its three layers, made of rcd_cm_step.def: their states,
 * and the steps that lead from one to another. A layer changes its state by a step alone, and what
 * a state does not permit does not happen; what else a step takes is the layer's.
 *
 * Threads: any; a state is its layer's.
 */
#ifndef RCD_CM_STEP_H
#define RCD_CM_STEP_H

#include <stdbool.h>
#include <stdint.h>

/** State of a connection in the agent. */
enum rcd_cm_state {
#define RCD_CM_STATE(symbol) RCD_CM_STATE_##symbol,
#include "rcd_cm_step.def"
};

/** State of an identifier in the service. */
enum rcd_cma_state {
#define RCD_CMA_STATE(symbol, name) RCD_CMA_##symbol,
#include "rcd_cm_step.def"
};

/**
 * State of an identifier in the library, which asks the service for all else. UNSEEN: a request
 * that the program has done nothing with. FAILED: the program was told so, and need not hear what
 * follows from it.
 */
enum rcd_rm_state {
#define RCD_RM_STATE(symbol) RCD_RM_##symbol,
#include "rcd_cm_step.def"
};

/** What happens to a connection. */
enum rcd_cm_step {
#define RCD_CM_STEP(symbol, side, a_from, a_to, c_from, c_to, l_from, l_to, text)                  \
	RCD_CM_STEP_##symbol,
#include "rcd_cm_step.def"
	RCD_CM_STEPS,
};

/** What a step does to the state of a layer. */
struct rcd_cm_move {
	uint16_t from; /**< bits of the states that permit it */
	uint8_t to;    /**< or RCD_CM_STAY */
};

#define RCD_CM_STAY UINT8_MAX

/** A step, layer by layer. */
struct rcd_cm_row {
	const char *name;
	struct rcd_cm_move agent;
	struct rcd_cm_move service;
	struct rcd_cm_move library;
};

extern const struct rcd_cm_row rcd_cm_rows[RCD_CM_STEPS];

/** Whether a state permits a step. */
static inline bool
rcd_cm_move_may(const struct rcd_cm_move *move, unsigned int state)
{
	return move->from >> state & 1;
}

/** Take a step where the state permits it. @return whether it does; otherwise nothing is changed */
static inline bool
rcd_cm_move(const struct rcd_cm_move *move, uint8_t *state)
{
	if (!rcd_cm_move_may(move, *state))
		return false;
	if (move->to != RCD_CM_STAY)
		*state = move->to;
	return true;
}

/** Name of an identifier's state, for people. */
const char *
rcd_cma_state_name(enum rcd_cma_state state);

#endif /* RCD_CM_STEP_H */
