/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Walks by several commands: which object is next, and where a command stops.
 */
#include "rcd_context_walk.h"

#include <stddef.h>

#include "rcd_lcore.h"
#include "rcd_table.h"
#include "rcd_thread.h"

void
rcd_context_walk(struct rcd_lcore *lcore, const struct rcd_table *table,
	int (*fn)(struct rcd_lcore *lcore, void *arg))
{
	struct rcd_context_walk walk = { .table = table };

	RCD_ON_CONTROL();
	while (walk.next < table->fresh) {
		walk.done = 0;
		rcd_lcore_call(lcore, fn, &walk);
	}
}

void *
rcd_context_walk_next(struct rcd_lcore *lcore, struct rcd_context_walk *walk, uint32_t budget)
{
	RCD_ON_LCORE(lcore);
	while (walk->next < walk->table->fresh && walk->done < budget) {
		void *object = walk->table->slots[walk->next++];

		if (object == NULL)
			continue;
		walk->done++;
		lcore->work++;
		return object;
	}
	return NULL;
}
