/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The steps of a connection as a table.
 */
#include "rcd_cm_step.h"

#define NONE    0
#define A(name) (1u << RCD_CM_STATE_##name)
#define C(name) (1u << RCD_CMA_##name)
#define L(name) (1u << RCD_RM_##name)

/* Behind the prefix of each layer's states. */
#define RCD_CM_STATE_STAY RCD_CM_STAY
#define RCD_CMA_STAY      RCD_CM_STAY
#define RCD_RM_STAY       RCD_CM_STAY

const struct rcd_cm_row rcd_cm_rows[RCD_CM_STEPS] = {
#define RCD_CM_STEP(symbol, side, a_from, a_to, c_from, c_to, l_from, l_to, text)                  \
	[RCD_CM_STEP_##symbol] = {                                                                 \
		.name = #symbol,                                                                   \
		.agent = { a_from, RCD_CM_STATE_##a_to },                                          \
		.service = { c_from, RCD_CMA_##c_to },                                             \
		.library = { l_from, RCD_RM_##l_to },                                              \
	},
#include "rcd_cm_step.def"
};

const char *
rcd_cma_state_name(enum rcd_cma_state state)
{
	static const char *const names[] = {
#define RCD_CMA_STATE(symbol, name) [RCD_CMA_##symbol] = name,
#include "rcd_cm_step.def"
	};

	return names[state];
}
