/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Doorbells of the clients of an lcore. Those that rang lately are hot: every poll looks at them.
 *
 * Threads: the lcore of the client.
 */
#ifndef RCD_BELLS_H
#define RCD_BELLS_H

#include <stdbool.h>
#include <stdint.h>

struct rcd_lclient;
struct rcd_lcore;

/** Look at all doorbells that this poll looks at. @return units of work done */
uint32_t
rcd_bells_look(struct rcd_lcore *lcore);

/**
 * Answer a client's doorbells now. What the budget is not enough for is answered by later polls.
 *
 * @return units of work done
 */
uint32_t
rcd_bells_answer(struct rcd_lcore *lcore, struct rcd_lclient *client, uint32_t budget);

/** Whether any doorbell is set. Before sleep: looks at all. */
bool
rcd_bells_any(struct rcd_lcore *lcore);

/** From now on a client may ring. */
void
rcd_bells_add(struct rcd_lcore *lcore, struct rcd_lclient *client);

/** And no more. */
void
rcd_bells_del(struct rcd_lcore *lcore, const struct rcd_lclient *client);

#endif /* RCD_BELLS_H */
