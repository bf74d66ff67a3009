/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Private to rcd_mr.c and rcd_mr_copy.c: the table itself.
 */
#ifndef RCD_MR_PRIV_H
#define RCD_MR_PRIV_H

#include "rcd_mr.h"
#include "rcd_mr_key.h"

/** Places to remember where a key was found; most packets use the same few. */
#define RCD_MR_HINTS 64

struct rcd_mr_table {
	uint32_t capacity;
	uint32_t used;
	uint32_t first_free;
	uint32_t last_free;
	uint32_t round_keys[RCD_MR_KEY_ROUNDS];
	uint32_t hints[RCD_MR_HINTS]; /**< slots, by the key's middle bits; any value is safe */
	struct rcd_mr *slots;         /**< capacity of them */
	struct rcd_mr_foreign foreign;
	void (*watch)(void *arg, bool begins);
	void *watch_arg;
};

#endif /* RCD_MR_PRIV_H */
