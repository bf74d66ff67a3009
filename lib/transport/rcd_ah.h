/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Address handles: numbered address vectors of a protection domain, for datagrams (IBTA Vol. 1,
 * 11.2.2). A table belongs to one thread at a time.
 */
#ifndef RCD_AH_H
#define RCD_AH_H

#include "rcd_qp.h"

/** Create a table. @param capacity 1..2^20 @return NULL when out of memory or range */
struct rcd_ah_table *
rcd_ah_table_create(uint32_t capacity);

/** Destroy a table and its handles. NULL is allowed. */
void
rcd_ah_table_destroy(struct rcd_ah_table *table);

/** Make a handle. @param number set to its number @return 0, or -ENOMEM when the table is full */
int
rcd_ah_create(struct rcd_ah_table *table, uint32_t pd, const struct rcd_av *av, uint32_t *number);

/** Hand each handle's address vector to a function, which leaves the table alone. */
void
rcd_ah_each(const struct rcd_ah_table *table, void (*fn)(const struct rcd_av *av, void *arg),
	void *arg);

/** Remove a handle. @return 0, or -ENOENT when there is none of this number and domain */
int
rcd_ah_destroy(struct rcd_ah_table *table, uint32_t pd, uint32_t number);

/** Address vector of a handle. @return NULL when there is none of this number and domain */
const struct rcd_av *
rcd_ah_get(const struct rcd_ah_table *table, uint32_t pd, uint32_t number);

#endif /* RCD_AH_H */
