/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the agent tells of connections becomes events of identifiers.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CMA_TELL_H
#define RCD_CMA_TELL_H

#include <stdint.h>

#include "rcd_cm_agent.h"

/** As struct rcd_cm_ops has it. @param arg  the service */
uint16_t
rcd_cma_on_event(
	void *arg, struct rcd_cm_conn *conn, enum rcd_cm_event event, const struct rcd_cm *msg);

#endif /* RCD_CMA_TELL_H */
