/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An lcore: what it has and works on, and commands for it. Its work is one round after the other of
 * rcd_poll.h.
 *
 * Threads: the lcore, for all of it that does not say otherwise.
 */
#ifndef RCD_LCORE_H
#define RCD_LCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_absence.h"
#include "rcd_counter.h"
#include "rcd_lclient.h"
#include "rcd_lcore_ctl.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_pkt.h"
#include "rcd_queue.h"
#include "rcd_rest.h"
#include "rcd_stage.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_ucopy.h"
#include "rcd_wheel.h"

struct rcd_lcores;
struct rcd_mcast_table;
struct rcd_reorder_pool;
struct rte_mbuf;
struct rte_mempool;
struct rte_rcu_qsbr;
struct rte_ring;

/** Ethernet's own bytes around a frame; they count, so that many small ones cost what they cost. */
#define RCD_FRAME_OVERHEAD 24

/** Packets on their way to a port. */
struct rcd_txq {
	const struct rcd_lport *lport;
	uint16_t first;
	uint16_t count;
	uint16_t shown;  /**< place up to which sniffers have had what waits */
	bool paused;     /**< its port is stopped for a moment; it is not among the lcore's txqs */
	bool blind;      /**< packets can't end the lcore's sleep */
	bool seen;       /**< an interrupt ended one */
	uint32_t errors; /**< of the descriptor that would, and ended sleeps */
	uint32_t missed; /**< sleeps in a row that packets came in and no interrupt ended */
	uint32_t fresh;  /**< frames queued since they were counted last, and their bytes */
	uint64_t fresh_bytes;
	struct rte_mbuf *mbufs[RCD_BURST_MAX];
	struct rcd_turn_list blocked; /**< wait for the port to take something */
};

#define RCD_HOT_CLIENTS 32

/** What a timer of an lcore is part of. */
enum rcd_timer_kind {
	RCD_TIMER_QP,
	RCD_TIMER_CQ,
	RCD_TIMER_CLIENT,
};

/** An lcore. */
struct rcd_lcore {
	/* Of every poll. */
	uint64_t now_ns;
	struct rcd_absence absence;
	struct rte_ring *calls;
	struct rte_ring *handover; /**< packets that others received for our queue pairs */
	struct rte_ring *loop;     /**< our own packets for devices of this engine */
	uint32_t txq_count;
	struct rcd_txq *txqs[RCD_DEVS_MAX];   /**< of the devices in use, densely */
	struct rcd_txq *txq_of[RCD_DEVS_MAX]; /**< by index of the device */
	uint32_t hot_count;
	uint32_t cold_count;
	uint32_t cold_next;
	uint32_t hot_next;     /**< where the look at doorbells goes on */
	uint32_t work;         /**< units of this poll, packets aside */
	uint32_t sniff_work;   /**< likewise: of copies for sniffers, in no other budget */
	uint64_t longest_work; /**< units of the largest poll, packets included */
	struct rcd_lclient_queue flushing; /**< clients with queue pairs to flush */
	struct rcd_lclient_queue owing;    /**< clients with events to send */
	struct rcd_lclient *hot[RCD_HOT_CLIENTS];
	struct rcd_lclient **cold; /**< RCD_CLIENTS_MAX places */
	struct rcd_hqp *touched;
	struct rcd_hcq *dirty_cqs;
	struct rcd_hsrq *dirty_srqs;
	struct rcd_turns turns;
	struct rcd_ucopy_queue copying; /**< clients with copies that are not done */
	struct rcd_ucopy_queue ringing; /**< clients with copies they were not told of */
	uint16_t ipv4_id;
	uint32_t spare_count;
	struct rte_mbuf *spare[RCD_BURST_MAX];
	struct rte_mempool *pool;
	const uint64_t *hop_macs; /**< of next hops, by number */
	struct rcd_hqp **qps;     /**< RCD_QP_SLOTS places */
	/** By device. The control thread stores one, the lcore NULL; others ask if there is one. */
	struct rcd_mcast_table *mcast[RCD_DEVS_MAX];
	struct rcd_counters counters; /**< what belongs to no device */
	struct rcd_wheel wheel;
	struct rcd_reorder_pool *reorder;

	struct rcd_rest rest; /**< what budgets of this poll left for the next */

	/* Scratch of the receive path. */
	struct rcd_frame frames[RCD_BURST_MAX];
	struct rcd_pkt pkts[RCD_BURST_MAX];
	enum rcd_verdict verdicts[RCD_BURST_MAX];
	struct rte_mbuf **burst; /**< whose buffers pkts are; those that are kept are NULL */
	uint32_t buffers_kept;   /**< out of order (rcd_rx_keep.h) */

	const struct rcd_lcores *lcores; /**< that it is one of */
	struct rte_rcu_qsbr *rcu;        /**< of those */
	uint32_t index;
	unsigned int lcore_id;
	bool running; /**< a thread polls it */
	bool stop;
	int wake_fd;
	/**
	 * epoll, by edge: wake_fd and those of the clients, none of which is read, and descriptors
	 * that receive queues wait by (rcd_rx_wait.h), which are armed for one sleep each.
	 */
	int sleep_fd;
	uint32_t sleeping;
	int socket_id;
	uint32_t context_count; /**< the control thread's */
	uint64_t note_ns;       /**< when the time of note_left began */
	uint32_t note_left;     /**< notes that the network may still cause in it */
	/** Since the start, and those that found something; relaxed, any thread looks. */
	uint64_t polls;
	uint64_t busy_polls;
	struct rcd_stages *stages; /**< NULL: nobody measures */
	enum rcd_stage stage;
	uint64_t stage_tsc; /**< when it began */
};

/** What an lcore counts for others to see, stored whole. Any thread, of what it counts itself. */
static inline void
rcd_lcore_set_tally(uint64_t *tally, uint64_t val)
{
	__atomic_store_n(tally, val, __ATOMIC_RELAXED);
}

/** And looked at. Any thread. */
static inline uint64_t
rcd_lcore_tally(const uint64_t *tally)
{
	return __atomic_load_n(tally, __ATOMIC_RELAXED);
}

/** An lcore's counters of a device. Any thread. */
static inline struct rcd_counters *
rcd_lcore_counters(const struct rcd_lcore *lcore, const struct rcd_lport *lport)
{
	return &lport->counters[lcore->index];
}

/**
 * Make an lcore, as one of several. Control thread.
 *
 * @param pool  of the buffers that it sends; outlives it
 * @return 0 or -errno: it is for rcd_lcore_destroy()
 */
int
rcd_lcore_create(
	struct rcd_lcores *lcores, uint32_t index, unsigned int lcore_id, struct rte_mempool *pool);

/** Free it, stopped. NULL is allowed. Control thread. */
void
rcd_lcore_destroy(struct rcd_lcore *lcore);

/**
 * On an lcore from now on, in a round or for what is done beside them. One thread, whose it is.
 * Nothing in release builds.
 *
 * @return where the thread was, for rcd_thread_leave()
 */
#ifdef RCD_DEBUG
struct rcd_thread_place
rcd_lcore_enter(const struct rcd_lcore *lcore);
#else
static inline struct rcd_thread_place
rcd_lcore_enter(const struct rcd_lcore *lcore)
{
	return rcd_thread_enter(lcore, 0);
}
#endif

/** Do commands (rcd_lcore_call()), as many as a poll has a budget for. @return how many */
uint32_t
rcd_lcore_do_calls(struct rcd_lcore *lcore);

/** It has a queue pair no longer: no turn, no timer, no packets for it. */
void
rcd_lcore_drop(struct rcd_lcore *lcore, struct rcd_hqp *hqp);

/** Remember that a queue pair changed: indices, deadline and fault are looked at after the poll. */
static inline void
rcd_lcore_touch(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	RCD_ON_LCORE(lcore);
	if (hqp->touched)
		return;
	hqp->touched = true;
	hqp->next_touched = lcore->touched;
	lcore->touched = hqp;
}

#endif /* RCD_LCORE_H */
