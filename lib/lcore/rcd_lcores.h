/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All lcores of an engine, and what they share: who owns which queue pair, what they tell the
 * control thread, what they do when there is nothing to do, and whom they ask about what is not
 * theirs.
 *
 * Threads: the control thread.
 */
#ifndef RCD_LCORES_H
#define RCD_LCORES_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid.h"
#include "rcd_idle.h"
#include "rcd_limits.h"

#define RCD_LCORES_MAX 16

struct rcd_lcore;
struct rcd_lport;
struct rcd_pkt;
struct rte_mempool;
struct rte_rcu_qsbr;
struct rte_ring;

/** What those above do for an lcore, on it. */
struct rcd_lcore_ops {
	/** A packet to QP1: connection management. */
	void (*rx_gsi)(void *arg, struct rcd_lcore *lcore, const struct rcd_lport *lport,
		const struct rcd_pkt *pkt, uint16_t vlan_id);

	/** Whether somebody may want to hear of a neighbour. */
	bool (*wants_neighbour)(void *arg, const struct rcd_lport *lport, uint16_t vlan_id,
		const struct rcd_gid *gid);
};

/** Constant while any of them runs, but for what says otherwise. */
struct rcd_lcores {
	uint32_t count;
	enum rcd_idle idle; /**< not RCD_IDLE_AUTO */
	bool sleeps_late; /**< sleep in the end, where all ports are sure to wake: RCD_IDLE_AUTO */
	const struct rcd_lcore_ops *ops;
	void *arg;              /**< of those */
	struct rte_ring *notes; /**< struct rcd_note; from any of them, to the control thread */
	int note_fd;            /**< an eventfd that wakes it */
	uint8_t *qp_owner; /**< RCD_QP_SLOTS places: index of the lcore plus 1, 0: free; atomic */
	struct rte_rcu_qsbr *rcu; /**< each that has a thread reports to it once a poll */
	const uint64_t *hop_macs; /**< of next hops, by number (rcd_hop_word.h) */
	struct rcd_lcore *lcore[RCD_LCORES_MAX];
};

/** Whether they may sleep, now or later. Any thread. */
static inline bool
rcd_lcores_sleep(const struct rcd_lcores *lcores)
{
	return lcores->idle == RCD_IDLE_SLEEP || lcores->sleeps_late;
}

/** None are there yet. Before rcd_lcores_init() may fail, so that rcd_lcores_fini() may follow. */
void
rcd_lcores_clear(struct rcd_lcores *lcores);

/**
 * Make what they share.
 *
 * @param ops  with its argument: outlives them
 * @return 0 or -ENOMEM: it is for rcd_lcores_fini()
 */
int
rcd_lcores_init(struct rcd_lcores *lcores, const struct rcd_lcore_ops *ops, void *arg);

/** Stop those that run. */
void
rcd_lcores_stop(struct rcd_lcores *lcores);

/** Free them, stopped, and what they share. */
void
rcd_lcores_fini(struct rcd_lcores *lcores);

/**
 * Make another one.
 *
 * @param lcore_id  EAL's number of it
 * @param pool      of the buffers that it sends; outlives it
 * @return 0; -ENOSPC; -ENOMEM or -errno, and it is for rcd_lcores_fini()
 */
int
rcd_lcores_add(struct rcd_lcores *lcores, unsigned int lcore_id, struct rte_mempool *pool);

/**
 * Run a loop that polls an lcore on the EAL worker of its number.
 *
 * @return 0; -ENOTSUP: it has none but the main one; -EBUSY: that runs something else
 */
int
rcd_lcores_launch(struct rcd_lcores *lcores, uint32_t index, int (*loop)(void *arg), void *arg);

/** A function of which nobody needs an answer, on each lcore in turn. */
void
rcd_lcores_call(
	struct rcd_lcores *lcores, int (*fn)(struct rcd_lcore *lcore, void *arg), void *arg);

/**
 * Wait until no lcore has anything in hand that was taken from where all find it before this call:
 * one poll of each, unless it sleeps. What the program polls itself, in this thread, is not waited
 * for.
 */
void
rcd_lcores_synchronize(struct rcd_lcores *lcores);

/** Wake the control thread. Any thread, and signal handlers. */
void
rcd_lcores_wake_control(const struct rcd_lcores *lcores);

/**
 * Wake the control thread for a ring that has one more. It empties a ring when it looks; with more
 * there than each lcore can have put at once, somebody woke it before. On the lcore that put it.
 */
void
rcd_lcores_told(const struct rcd_lcores *lcores, const struct rte_ring *ring);

/** After such a ring was emptied, or as much of it as there was time for: the rest wakes it. */
void
rcd_lcores_look_again(const struct rcd_lcores *lcores, const struct rte_ring *ring);

#endif /* RCD_LCORES_H */
