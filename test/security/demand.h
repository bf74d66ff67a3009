/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A pair of sides on an embedded wire: one has a region on demand, the other reaches it.
 */
#ifndef DEMAND_H
#define DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

#define PAGE  4096u
#define PAGES 16u
#define LEN   (PAGES * PAGE)
#define ALL                                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
		IBV_ACCESS_ON_DEMAND)

extern struct rig rig;
extern struct side here;  /**< whose memory is on demand */
extern struct side there; /**< who reads and writes it */
extern struct ibv_mr *mr; /**< of all of that: */
extern uint8_t *at;       /**< LEN bytes of addresses that are nobody else's; nothing is mapped */

/** Run tests on an engine of their own. @return for main() */
int
demand_run(const char *name, const struct rcd_test *tests, size_t count);

/** Both sides, joined, and the region. */
void
setup(void);

void
teardown(void);

/** Private memory. @param where  NULL: anywhere; else in the place of what is there */
uint8_t *
map(void *where, size_t len, int prot);

/** New queue pairs in the place of those that an error ended, which was all that was told. */
void
begin_anew(void);

/** The other side writes, or reads into its memory. @return the status of the completion */
int
reach(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t len, uint32_t rkey);

/** The other side writes there, and it is found where this program looks. */
void
is_written(const uint8_t *to, const uint8_t *found, uint32_t len, uint32_t rkey);

/** The other side reads there what this program has. */
void
is_read(const uint8_t *from, const uint8_t *has, uint32_t len, uint32_t rkey);

/** The other side is told that it may not, once. Queue pairs begin anew. */
void
is_refused(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey);

#endif /* DEMAND_H */
