/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Work of clients that may take more than one poll: flushed requests and completion events. Each
 * poll does a share of it for one session and for all. On the lcore of the session, all of it.
 */
#ifndef RCD_LATE_H
#define RCD_LATE_H

#include "rcd_engine_priv.h"

/* rcd_late.c */

/**
 * How much is done for a session in this poll. Who used all of it in the poll before gets little
 * where others have something to do: what one of them waits for takes several polls.
 */
static inline uint32_t
rcd_late_share(const struct rcd_lcore *lcore, const struct rcd_session *session)
{
	if (likely(lcore->polls - session->spent_poll > 1) || lcore->hot_count < 2)
		return RCD_WORK_SESSION;
	return RCD_WORK_AGAIN;
}

/**
 * A budget of this poll was used up. It is counted, and where cores are shared others run before
 * the next poll.
 *
 * @param session  whose it was; NULL: that of all
 */
void
rcd_late_spent(struct rcd_lcore *lcore, struct rcd_session *session);

/** Requests of a queue pair are to be flushed. */
void
rcd_late_flush(struct rcd_lcore *lcore, struct rcd_hqp *hqp);

/** A queue pair goes: none of its requests are flushed any more. */
void
rcd_late_forget(struct rcd_hqp *hqp);

/** Flush what this poll has a budget for, sessions in turns. @return units of work done */
uint32_t
rcd_late_poll(struct rcd_lcore *lcore);

/* rcd_event.c */

/** Completions were published: whether its client is to be told. */
void
rcd_event_check(struct rcd_lcore *lcore, struct rcd_hcq *cq);

/** A timer of a completion queue: the event that is due goes out. */
void
rcd_event_due(struct rcd_lcore *lcore, struct rcd_hcq *cq);

/** What an event waits for has changed. */
void
rcd_event_moderate(struct rcd_lcore *lcore, struct rcd_hcq *cq, uint32_t count, uint64_t wait_ns);

/** A timer of a session: its channels may have room again. */
void
rcd_event_retry(struct rcd_lcore *lcore, struct rcd_session *session);

/** A completion queue goes: it owes nothing any more. */
void
rcd_event_forget(struct rcd_lcore *lcore, struct rcd_hcq *cq);

/** Send the events that this poll has a budget for, sessions in turns. @return units of work */
uint32_t
rcd_event_poll(struct rcd_lcore *lcore);

#endif /* RCD_LATE_H */
