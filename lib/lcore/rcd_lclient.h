/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A client as its lcore knows it: the rings and keys of one open context, and what of its work a
 * poll has left. Who the client is, and how it asks for things, are the control thread's business,
 * and no lcore sees it.
 *
 * All of it belongs to the lcore but for what says otherwise. The control thread fills it in before
 * rcd_host_client_add(), and changes it by commands.
 */
#ifndef RCD_LCLIENT_H
#define RCD_LCLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_counter.h"
#include "rcd_wheel.h"

struct rcd_ah_table;
struct rcd_channel;
struct rcd_hqp;
struct rcd_lcore;
struct rcd_mr_table;
struct rcd_shm_hdr;
struct rcd_ucopied;
struct rcd_ucopy;

/** Doorbells that were taken and not answered yet: words of queue pairs, one after another. */
struct rcd_doorbells {
	uint64_t groups; /**< bits of the summary */
	uint64_t bits;   /**< of the word at hand */
	uint32_t word;
	uint32_t words_left; /**< of the group at hand, behind this one */
};

/**
 * What a client that is a part of this process is told (lib/local). All of it on its lcore, which
 * waits: none of these blocks or allocates.
 */
struct rcd_lclient_ops {
	/** Send requests of a queue pair are complete, all before this number, signalled or not. */
	void (*done)(void *qp, uint32_t number);

	/**
	 * What was posted to a queue pair is looked at no more, complete or not: it begins anew.
	 *
	 * @param gone  or is no more, and nothing of it is there
	 */
	void (*forgotten)(void *qp, bool gone);

	/** The client is no more: its rings go. */
	void (*gone)(void *arg);
};

/** A client of an lcore. */
struct rcd_lclient {
	struct rcd_shm_hdr *shm; /**< the segment, of which the client writes all it likes */
	uint64_t spent_poll;     /**< number of the last poll in which it used up a budget */
	uint32_t idle_polls;
	bool hot;
	bool in_flushing, in_owing; /**< of the lists of the lcore */
	bool flush_held;            /**< until a completion queue has moved nothing is flushed */
	struct rcd_doorbells doorbells;
	struct rcd_hqp **qps; /**< by doorbell bit; RCD_DB_BITS places or fewer */
	uint32_t qp_places;
	struct rcd_lcore *lcore; /**< whose it is; another's only while no lcore knows it */
	struct rcd_mr_table *mrs;
	struct rcd_ah_table *ahs;
	struct rcd_counters counters;      /**< offences; the control thread reads them */
	struct rcd_ucopy *ucopy;           /**< NULL: nothing is copied */
	const struct rcd_ucopied *copied;  /**< its regions of which parts are copied */
	TAILQ_HEAD(, rcd_hqp) flushing;    /**< queue pairs to flush */
	TAILQ_HEAD(, rcd_channel) waiting; /**< channels with events to send, the full ones last */
	TAILQ_ENTRY(rcd_lclient) flush_link;
	TAILQ_ENTRY(rcd_lclient) owe_link;
	struct rcd_timer retry; /**< RCD_TIMER_CLIENT: all channels with events are full */
	uint32_t event_round;   /**< of looks at full channels */
	const struct rcd_lclient_ops *ops; /**< NULL: of another process; constant */
	void *arg;                         /**< of the operations that take no queue pair */
};

TAILQ_HEAD(rcd_lclient_queue, rcd_lclient);

#endif /* RCD_LCLIENT_H */
