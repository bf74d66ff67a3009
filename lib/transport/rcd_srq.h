/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Shared receive queues: receive work requests that several queue pairs draw from (IBTA Vol. 1,
 * 10.2.9), with a limit event. The queue itself lives with the host.
 */
#ifndef RCD_SRQ_H
#define RCD_SRQ_H

#include "rcd_wr.h"

struct rcd_mr_table;

/** What the host does for a shared receive queue. */
struct rcd_srq_ops {
	/** Fetch the request with this free-running number. @return 0, or -EAGAIN if not posted */
	int (*fetch)(void *arg, uint32_t number, struct rcd_recv_wr *wr);

	/** How many requests are posted and not fetched, given the next number to fetch. */
	uint32_t (*available)(void *arg, uint32_t number);

	/** Take an event: limit reached, or error. */
	void (*event)(void *arg, enum rcd_event event);

	/** Take a receive completion. Of XRC alone: others go to the queue pair's host. */
	void (*complete)(void *arg, const struct rcd_cqe *cqe);
};

/** A shared receive queue. Initialise with rcd_srq_init(); members are private. */
struct rcd_srq {
	const struct rcd_srq_ops *ops;
	void *arg;
	uint32_t next;  /**< number of the next request */
	uint32_t depth; /**< requests that the queue holds */
	uint32_t limit; /**< 0: not armed */
	uint8_t max_sge;
	bool failed; /**< nothing is fetched any more */

	/* Of XRC (rcd_xrc.h): whose memory messages to it are for, and its place in its domain. */
	struct rcd_mr_table *mrs;
	uint32_t pd;
	uint32_t number;
	uint64_t serial; /**< differs from that of all that were in the domain before */
};

/** Begin an empty queue. @param depth requests that the host's queue holds */
void
rcd_srq_init(struct rcd_srq *srq, uint32_t depth, uint8_t max_sge, const struct rcd_srq_ops *ops,
	void *arg);

/**
 * Fetch the next request, and raise RCD_EVENT_SRQ_LIMIT_REACHED once when fewer than the limit
 * are left.
 *
 * @return 0, or -EAGAIN when there is none
 */
int
rcd_srq_fetch(struct rcd_srq *srq, struct rcd_recv_wr *wr);

/** Arm the limit event. @return 0, or -EINVAL when @p limit exceeds the depth */
int
rcd_srq_set_limit(struct rcd_srq *srq, uint32_t limit);

/**
 * Change the depth that limits are checked against, for a host whose queue got another one, and arm
 * the limit event anew. 0 as limit disarms it.
 *
 * @return 0, or -EINVAL when @p limit exceeds @p depth: both stay as they are
 */
int
rcd_srq_set_depth(struct rcd_srq *srq, uint32_t depth, uint32_t limit);

/** The host's queue is broken: raise RCD_EVENT_SRQ_ERR and fetch nothing any more. */
void
rcd_srq_fail(struct rcd_srq *srq);

#endif /* RCD_SRQ_H */
