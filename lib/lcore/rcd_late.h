/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Work of clients that may take more than one poll: each does a share of it for one client and for
 * all. Flushed requests here; completion events are rcd_cq_event.h's.
 *
 * Threads: the lcore of the client.
 */
#ifndef RCD_LATE_H
#define RCD_LATE_H

#include <stdint.h>

#include "rcd_budget.h"
#include "rcd_lclient.h"
#include "rcd_lcore.h"
#include "rcd_thread.h"

struct rcd_hqp;

/**
 * How much is done for a client in this poll. Who used all of it in the poll before gets little
 * where others have something to do: what one of them waits for takes several polls.
 */
static inline uint32_t
rcd_late_share(const struct rcd_lcore *lcore, const struct rcd_lclient *client)
{
	RCD_ON_LCORE(lcore);
	if (__builtin_expect(lcore->polls - client->spent_poll > 1, true) || lcore->hot_count < 2)
		return RCD_WORK_CLIENT;
	return RCD_WORK_AGAIN;
}

/**
 * A budget of this poll was used up. It is counted, and where cores are shared others run before
 * the next poll.
 *
 * @param client  whose it was; NULL: that of all
 */
void
rcd_late_spent(struct rcd_lcore *lcore, struct rcd_lclient *client);

/** Requests of a queue pair are to be flushed. */
void
rcd_late_flush(struct rcd_lcore *lcore, struct rcd_hqp *hqp);

/** A queue pair goes: none of its requests are flushed any more. */
void
rcd_late_forget(struct rcd_hqp *hqp);

/** Flush what this poll has a budget for, clients in turns. @return units of work done */
uint32_t
rcd_late_poll(struct rcd_lcore *lcore);

#endif /* RCD_LATE_H */
