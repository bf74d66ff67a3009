/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion events: when one is due, and its way to the channel.
 *
 * Threads: the lcore of the client.
 */
#ifndef RCD_CQ_EVENT_H
#define RCD_CQ_EVENT_H

#include <stdint.h>

struct rcd_hcq;
struct rcd_lcore;
struct rcd_lclient;

/** Completions were published: whether its client is to be told. */
void
rcd_cq_event_check(struct rcd_lcore *lcore, struct rcd_hcq *cq);

/** A timer of a completion queue: the event that is due goes out. */
void
rcd_cq_event_due(struct rcd_lcore *lcore, struct rcd_hcq *cq);

/** What an event waits for has changed. */
void
rcd_cq_event_moderate(
	struct rcd_lcore *lcore, struct rcd_hcq *cq, uint32_t count, uint64_t wait_ns);

/** A timer of a client: its channels may have room again. */
void
rcd_cq_event_retry(struct rcd_lcore *lcore, struct rcd_lclient *client);

/** A completion queue goes: it owes nothing any more. */
void
rcd_cq_event_forget(struct rcd_lcore *lcore, struct rcd_hcq *cq);

/** Send the events that this poll has a budget for, clients in turns. @return units of work */
uint32_t
rcd_cq_event_poll(struct rcd_lcore *lcore);

#endif /* RCD_CQ_EVENT_H */
