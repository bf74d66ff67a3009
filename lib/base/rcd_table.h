/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Tables of numbered objects: of the numbers that are free, the one that was given back last is
 * given next. A table refers to the objects and does not own them.
 *
 * Threads: one at a time.
 */
#ifndef RCD_TABLE_H
#define RCD_TABLE_H

#include <stdint.h>

/** Numbered objects. All zero: a table without room. */
struct rcd_table {
	void **slots;
	uint32_t *free; /**< numbers to use next */
	uint32_t free_count;
	uint32_t fresh; /**< at and above it none was ever used, and no memory touched */
	uint32_t capacity;
	uint32_t used;
};

/** Make room for so many. @return 0; -ENOMEM: what there is of it, rcd_table_fini() frees */
int
rcd_table_init(struct rcd_table *table, uint32_t capacity);

/** Free the table, whatever is in it; the objects stay. */
void
rcd_table_fini(struct rcd_table *table);

/** Number an object. @param handle  set, below the capacity. @return 0; -ENOMEM: no room */
int
rcd_table_add(struct rcd_table *table, void *object, uint32_t *handle);

/** The object that has a number. @return NULL: none has it */
void *
rcd_table_get(const struct rcd_table *table, uint32_t handle);

/** Take a number back, which an object has. */
void
rcd_table_del(struct rcd_table *table, uint32_t handle);

#endif /* RCD_TABLE_H */
