/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Tables of numbered objects.
 */
#include "rcd_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
rcd_table_init(struct rcd_table *table, uint32_t capacity)
{
	table->slots = calloc(capacity, sizeof(table->slots[0]));
	table->free = malloc(capacity * sizeof(table->free[0]));
	if (table->slots == NULL || table->free == NULL)
		return -ENOMEM;
	table->capacity = capacity;
	table->free_count = 0;
	table->fresh = 0;
	table->used = 0;
	return 0;
}

void
rcd_table_fini(struct rcd_table *table)
{
	free(table->slots);
	free(table->free);
	memset(table, 0, sizeof(*table));
}

int
rcd_table_add(struct rcd_table *table, void *object, uint32_t *handle)
{
	if (table->free_count > 0)
		*handle = table->free[--table->free_count];
	else if (table->fresh < table->capacity)
		*handle = table->fresh++;
	else
		return -ENOMEM;
	table->slots[*handle] = object;
	table->used++;
	return 0;
}

void *
rcd_table_get(const struct rcd_table *table, uint32_t handle)
{
	return handle < table->capacity ? table->slots[handle] : NULL;
}

void
rcd_table_del(struct rcd_table *table, uint32_t handle)
{
	table->slots[handle] = NULL;
	table->free[table->free_count++] = handle;
	table->used--;
}
