/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What DPDK's telemetry is told of an engine (rte_telemetry.h), in a thread of its own.
 *
 * Threads: any.
 */
#ifndef RCD_TELEMETRY_H
#define RCD_TELEMETRY_H

struct rcd_engine;

/** Register the commands for an engine; NULL: there is none any more. Control thread. */
void
rcd_telemetry_init(struct rcd_engine *engine);

/** Held while the control thread works: telemetry reads what it likes when it rests. */
void
rcd_telemetry_lock(void);
void
rcd_telemetry_unlock(void);

#endif /* RCD_TELEMETRY_H */
