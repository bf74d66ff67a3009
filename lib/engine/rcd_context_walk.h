/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A walk over all objects of one kind that a context has, on its lcore, by several commands: each
 * of them is short, so that one client's many objects hold up no other's packets.
 *
 * Threads: the control thread, unless a function says otherwise.
 */
#ifndef RCD_CONTEXT_WALK_H
#define RCD_CONTEXT_WALK_H

#include <stdint.h>

struct rcd_lcore;
struct rcd_table;

/** A walk, as commands have it. */
struct rcd_context_walk {
	const struct rcd_table *table;
	uint32_t next; /**< place to go on at */
	uint32_t done; /**< objects of the command at hand */
};

/**
 * Call a function on an lcore until the walk is over; it takes objects by rcd_context_walk_next().
 *
 * @param fn  gets the struct rcd_context_walk; its answer says nothing
 */
void
rcd_context_walk(struct rcd_lcore *lcore, const struct rcd_table *table,
	int (*fn)(struct rcd_lcore *lcore, void *arg));

/**
 * The next object, which is a unit of the lcore's work. On the lcore.
 *
 * @param budget  of a command
 * @return NULL: that was all, or enough for this command
 */
void *
rcd_context_walk_next(struct rcd_lcore *lcore, struct rcd_context_walk *walk, uint32_t budget);

#endif /* RCD_CONTEXT_WALK_H */
