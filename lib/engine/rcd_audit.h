/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An engine looked at from outside for what must never be. For tests that poll it themselves:
 * an audit reads what belongs to lcores, and takes time that grows with all there is. Nothing of
 * the engine calls it, and programs that don't are linked without it.
 *
 * Threads: the control thread.
 */
#ifndef RCD_AUDIT_H
#define RCD_AUDIT_H

#include <stddef.h>
#include <stdint.h>

struct rcd_engine;

/**
 * Check that
 *  - every region and window of a client's table lies within addresses that were reserved for it,
 *    and no two reservations overlap or lie outside the window of client memory;
 *  - every object belongs to one context or connection, refers to objects of the same one, and the
 *    lists of the engine name those that are there;
 *  - the counts that the engine keeps, and what users are charged for, are those of what is there.
 *
 * @param error  set to a sentence about the first thing that is wrong
 * @return 0; -EFAULT; -ENOMEM
 */
int
rcd_engine_audit(const struct rcd_engine *engine, char *error, size_t error_len);

/** What an engine holds for its clients; nothing of it may stay when they are gone. */
struct rcd_holdings {
	uint32_t clients;
	uint32_t parked; /**< requests that wait for a neighbour */
	uint32_t qps;
	uint32_t cm_ids;
	uint32_t cm_connections; /**< those in timewait included */
	uint32_t closing;        /**< descriptors that threads of their own close */
	uint64_t window_bytes;   /**< addresses of client memory */
	uint64_t charged;        /**< sum of all that users are charged for */
};

/** Count what there is. */
void
rcd_engine_holdings(const struct rcd_engine *engine, struct rcd_holdings *holdings);

#endif /* RCD_AUDIT_H */
