/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The table of address handles.
 */
#include "rcd_ah.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MAX (1u << 20)
#define NO_SLOT      UINT32_MAX

struct slot {
	struct rcd_av av;
	uint32_t pd;
	uint32_t next_free;
	bool used;
};

struct rcd_ah_table {
	uint32_t capacity;
	uint32_t first_free;
	struct slot *slots; /**< capacity of them */
};

struct rcd_ah_table *
rcd_ah_table_create(uint32_t capacity)
{
	struct rcd_ah_table *table;

	if (capacity == 0 || capacity > CAPACITY_MAX)
		return NULL;
	table = calloc(1, sizeof(*table));
	if (table == NULL)
		return NULL;
	table->slots = calloc(capacity, sizeof(table->slots[0]));
	if (table->slots == NULL) {
		free(table);
		return NULL;
	}
	table->capacity = capacity;
	for (uint32_t i = 0; i < capacity; i++)
		table->slots[i].next_free = i + 1 < capacity ? i + 1 : NO_SLOT;
	return table;
}

void
rcd_ah_table_destroy(struct rcd_ah_table *table)
{
	if (table != NULL)
		free(table->slots);
	free(table);
}

int
rcd_ah_create(struct rcd_ah_table *table, uint32_t pd, const struct rcd_av *av, uint32_t *number)
{
	uint32_t i = table->first_free;
	struct slot *slot;

	if (i == NO_SLOT)
		return -ENOMEM;
	slot = &table->slots[i];
	table->first_free = slot->next_free;
	slot->used = true;
	slot->pd = pd;
	slot->av = *av;
	*number = i;
	return 0;
}

int
rcd_ah_destroy(struct rcd_ah_table *table, uint32_t pd, uint32_t number)
{
	if (rcd_ah_get(table, pd, number) == NULL)
		return -ENOENT;
	table->slots[number].used = false;
	table->slots[number].next_free = table->first_free;
	table->first_free = number;
	return 0;
}

void
rcd_ah_each(
	const struct rcd_ah_table *table, void (*fn)(const struct rcd_av *av, void *arg), void *arg)
{
	for (uint32_t i = 0; i < table->capacity; i++)
		if (table->slots[i].used)
			fn(&table->slots[i].av, arg);
}

const struct rcd_av *
rcd_ah_get(const struct rcd_ah_table *table, uint32_t pd, uint32_t number)
{
	const struct slot *slot;

	if (number >= table->capacity)
		return NULL;
	slot = &table->slots[number];
	return slot->used && slot->pd == pd ? &slot->av : NULL;
}
