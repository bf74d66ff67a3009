/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * One round of an lcore's work, its timers, and what it does when there is nothing to do.
 */
#include "rcd_poll.h"

#include <rte_branch_prediction.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_rcu_qsbr.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>

#include "rcd_absence.h"
#include "rcd_bells.h"
#include "rcd_bits.h"
#include "rcd_budget.h"
#include "rcd_check.h"
#include "rcd_clock.h"
#include "rcd_cq_event.h"
#include "rcd_exception.h"
#include "rcd_host.h"
#include "rcd_idle.h"
#include "rcd_late.h"
#include "rcd_lclient.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_rx.h"
#include "rcd_rx_wait.h"
#include "rcd_stage.h"
#include "rcd_stage_enter.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_tx.h"
#include "rcd_ucopy.h"
#include "rcd_wheel.h"

#define SHARED_BURST 12   /**< packets of each source in a poll while others wait for the core */
#define WAY_YIELDS   24   /**< until somebody else runs */
#define NOBODY_NS    1000 /**< one in which nobody ran is shorter, or... */
#define NOBODY_TIMES 3    /**< ...no longer than so many of the shortest */
#define AWAY_MOST_NS 10000000  /**< an absence that is made up for */
#define SPIN_POLLS   8         /**< without work, before others may run... */
#define SPIN_MOST_NS 2000      /**< ...or so long: a port may take a system call to look at */
#define SPIN_NS      50000     /**< without work, before sleep... */
#define REST_NS      100000000 /**< ...where it is not the policy */

static void
poll_expire_qp(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	uint64_t deadline = rcd_qp_next_deadline(hqp->qp);

	if (hqp->in_error)
		rcd_qp_posted(hqp->qp);
	/* The deadline may have moved since: then the timer is set anew after this poll. */
	if (deadline != 0 && deadline <= lcore->now_ns) {
		rcd_qp_expire(hqp->qp, lcore->now_ns);
		rcd_turn_begin(&lcore->turns, &hqp->turn);
	}
	rcd_lcore_touch(lcore, hqp);
}

static void
poll_expire(struct rcd_timer *timer, void *arg)
{
	switch ((enum rcd_timer_kind)timer->kind) {
	case RCD_TIMER_QP:
		poll_expire_qp(arg, RCD_OWNER(timer, struct rcd_hqp, timer));
		break;
	case RCD_TIMER_CQ:
		rcd_cq_event_due(arg, RCD_OWNER(timer, struct rcd_hcq, timer));
		break;
	case RCD_TIMER_CLIENT:
		rcd_cq_event_retry(arg, RCD_OWNER(timer, struct rcd_lclient, retry));
		break;
	}
}

/* What a poll that found nothing took was waiting, whatever it looked at. */
static void
poll_count_idle(struct rcd_stages *stages, const struct rcd_stages *before)
{
	for (int i = 0; i < RCD_STAGE_COUNT; i++) {
		if (i == RCD_STAGE_HOST || i == RCD_STAGE_IDLE)
			continue;
		stages->cycles[RCD_STAGE_IDLE] += stages->cycles[i] - before->cycles[i];
		stages->marks[RCD_STAGE_IDLE] += stages->marks[i] - before->marks[i];
		stages->cycles[i] = before->cycles[i];
		stages->marks[i] = before->marks[i];
	}
}

/* Timers that are due. @return how many were looked at */
static uint32_t
poll_do_timers(struct rcd_lcore *lcore)
{
	uint32_t done;

	if (!rcd_wheel_due(&lcore->wheel, lcore->now_ns))
		return 0;
	done = rcd_wheel_advance(&lcore->wheel, lcore->now_ns, RCD_WORK_TIMERS, poll_expire, lcore);
	lcore->work += done;
	if (unlikely(done == RCD_WORK_TIMERS))
		rcd_late_spent(lcore, NULL);
	return done + 1;
}

/* Packets are counted here, and what they and clients caused where it is done. */
static void
poll_count_work(struct rcd_lcore *lcore, uint32_t packets)
{
	uint32_t work = lcore->work + lcore->sniff_work + packets;

	if (unlikely(work > lcore->longest_work))
		rcd_lcore_set_tally(&lcore->longest_work, work);
	lcore->work = 0;
	lcore->sniff_work = 0;
}

/*
 * Who sends hears of a packet that is missing before he sends more, if he is told before all that
 * others have to send is built; at the other end of a wire he may be of this lcore, and repairs
 * what is missing in this poll.
 */
static __rte_noinline uint32_t
poll_tell_gaps(struct rcd_lcore *lcore)
{
	uint32_t packets = rcd_tx_urgent(lcore);

	if (packets > 0) {
		rcd_stage_enter(lcore, RCD_STAGE_RX);
		packets += rcd_rx_wires(lcore);
	}
	/* What those found missing is told of in its turn. */
	while (rcd_turn_next_urgent(&lcore->turns) != NULL)
		;
	return packets;
}

static uint32_t
poll_once(struct rcd_lcore *lcore, uint32_t budget)
{
	uint32_t done = 0;
	uint32_t packets;

	lcore->rest.spent = false;
	if (!rte_ring_empty(lcore->calls))
		done += rcd_lcore_do_calls(lcore);
	rcd_stage_enter(lcore, RCD_STAGE_RX);
	packets = rcd_rx_poll(lcore, budget);
	if (unlikely(rcd_turn_any_urgent(&lcore->turns)))
		packets += poll_tell_gaps(lcore);
	rcd_stage_enter(lcore, RCD_STAGE_DOORBELL);
	done += rcd_bells_look(lcore);
	rcd_stage_enter(lcore, RCD_STAGE_TRANSPORT);
	if (unlikely(!TAILQ_EMPTY(&lcore->copying)))
		done += rcd_ucopy_poll(lcore);
	done += poll_do_timers(lcore);
	if (unlikely(!TAILQ_EMPTY(&lcore->flushing)))
		done += rcd_late_poll(lcore);
	packets += rcd_tx_poll(lcore, (budget + 1) / 2);
	if (unlikely(!TAILQ_EMPTY(&lcore->ringing)))
		done += rcd_ucopy_ring(lcore);
	rcd_stage_enter(lcore, RCD_STAGE_PUBLISH);
	rcd_host_publish(lcore);
	if (unlikely(!TAILQ_EMPTY(&lcore->owing)))
		done += rcd_cq_event_poll(lcore);
	rcd_stage_enter(lcore, RCD_STAGE_HOST);
	poll_count_work(lcore, packets);
	/* No view of a device is in hand any more. */
	rte_rcu_qsbr_quiescent(lcore->rcu, lcore->index);
	done += packets;
	rcd_lcore_set_tally(&lcore->polls, lcore->polls + 1);
	if (done > 0)
		rcd_lcore_set_tally(&lcore->busy_polls, lcore->busy_polls + 1);
	return done;
}

uint32_t
rcd_lcore_poll(struct rcd_lcore *lcore, uint64_t now_ns, uint32_t budget)
{
	struct rcd_thread_place place = rcd_lcore_enter(lcore);
	struct rcd_stages *stages = lcore->stages;
	struct rcd_stages before;
	uint32_t done;

	lcore->now_ns = now_ns;
	rcd_absence_looked(&lcore->absence, now_ns);
	if (likely(stages == NULL)) {
		done = poll_once(lcore, budget);
		rcd_thread_leave(place);
		return done;
	}
	rcd_stage_enter(lcore, RCD_STAGE_RX);
	before = *stages;
	done = poll_once(lcore, budget);
	if (done == 0)
		poll_count_idle(stages, &before);
	rcd_thread_leave(place);
	return done;
}

bool
rcd_lcore_stopping(const struct rcd_lcore *lcore)
{
	return __atomic_load_n(&lcore->stop, __ATOMIC_RELAXED);
}

static void
poll_set_sleeping(struct rcd_lcore *lcore, uint32_t sleeping)
{
	__atomic_store_n(&lcore->sleeping, sleeping, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < lcore->hot_count; i++)
		__atomic_store_n(&lcore->hot[i]->shm->sleeping, sleeping, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < lcore->cold_count; i++)
		__atomic_store_n(&lcore->cold[i]->shm->sleeping, sleeping, __ATOMIC_SEQ_CST);
}

/* A poll left work for which a budget was not enough. */
static bool
poll_carries_over(const struct rcd_lcore *lcore)
{
	return lcore->rest.spent || !TAILQ_EMPTY(&lcore->flushing) || !TAILQ_EMPTY(&lcore->owing);
}

/* Without work for so long an lcore sleeps. */
static uint64_t
poll_sleep_after(const struct rcd_lcores *lcores)
{
	if (lcores->idle == RCD_IDLE_SLEEP)
		return SPIN_NS;
	return lcores->sleeps_late ? REST_NS : UINT64_MAX;
}

/* Sleep until a doorbell, a command, a timer, a packet, or the time to look at the ports again. */
static void
poll_nap(struct rcd_lcore *lcore)
{
	struct epoll_event events[16];
	uint64_t now_ns = rcd_clock_ns();
	uint64_t next_ns = rcd_wheel_next(&lcore->wheel);
	uint64_t nap_ns = rcd_rx_wait_longest(lcore);
	struct timespec timeout;
	int count;

	/* Who need not sleep keeps no packet waiting for it. */
	if (lcore->lcores->sleeps_late && nap_ns <= RCD_RX_WAIT_BLIND_NS)
		return;
	/* Nobody rings for what a budget left for the next poll. */
	if (next_ns <= now_ns || poll_carries_over(lcore))
		return;
	if (next_ns - now_ns < nap_ns)
		nap_ns = next_ns - now_ns;
	poll_set_sleeping(lcore, 1);
	if (rcd_rx_wait_arm(lcore) && rte_ring_empty(lcore->calls) &&
		rte_ring_empty(lcore->handover) && rte_ring_empty(lcore->loop) &&
		!rcd_bells_any(lcore) && !rcd_ucopy_any(lcore) && !rcd_exception_waits(lcore) &&
		!__atomic_load_n(&lcore->stop, __ATOMIC_SEQ_CST)) {
		timeout.tv_sec = (time_t)(nap_ns / 1000000000u);
		timeout.tv_nsec = (long)(nap_ns % 1000000000u);
		/*
		 * Edge-triggered: each ring ends one sleep, and nothing has to be read. A client
		 * has its wake-up descriptor too, and could make a read of it block.
		 */
		rte_rcu_qsbr_thread_offline(lcore->rcu, lcore->index);
		count = epoll_pwait2(lcore->sleep_fd, events, 16, &timeout, NULL);
		rte_rcu_qsbr_thread_online(lcore->rcu, lcore->index);
		rcd_absence_slept(&lcore->absence, rcd_clock_ns());
		/* Time to look, whatever it was. */
		rcd_rx_wait_woken(lcore, events, count, nap_ns);
	}
	rcd_rx_wait_disarm(lcore);
	poll_set_sleeping(lcore, 0);
}

/* What an lcore knows of who shares its core. */
struct way {
	uint64_t not_before_ns; /* it does not give way until then */
	uint64_t shortest_ns;   /* of all yields: in that one nobody ran */
	uint32_t yields;        /* of the next time; more than one: others ran of late */
};

/*
 * Who makes work without end does not keep others from a shared core: they have it after each poll
 * that left something. A client that waits gives it back at once. One that computes keeps it until
 * the scheduler takes it away, for milliseconds: then the lcore works for as long as it was away
 * before it gives way again, or each poll would cost whoever waits for it that much.
 *
 * A scheduler that counts who gave way how often returns to us at once as often as the other one
 * gave way before. So we ask until somebody ran, and less often while there is nobody.
 */
static void
poll_give_way(struct way *way)
{
	uint64_t left_ns = rcd_clock_ns();
	uint64_t back_ns = left_ns;
	bool ran = false;

	if (left_ns < way->not_before_ns)
		return;
	for (uint32_t i = 0; i < way->yields && !ran; i++) {
		uint64_t asked_ns = back_ns;

		sched_yield();
		back_ns = rcd_clock_ns();
		way->shortest_ns = RTE_MIN(way->shortest_ns, back_ns - asked_ns);
		ran = back_ns - asked_ns > RTE_MAX(NOBODY_NS, NOBODY_TIMES * way->shortest_ns);
	}
	way->not_before_ns = back_ns + RTE_MIN(back_ns - left_ns, AWAY_MOST_NS);
	way->yields = ran ? WAY_YIELDS : RTE_MAX(way->yields / 2, 1u);
}

/* One poll. @return what it did */
static uint32_t
poll_main(struct rcd_lcore *lcore, struct way *way, uint64_t now_ns)
{
	bool gives_way = lcore->lcores->idle >= RCD_IDLE_YIELD;
	uint32_t budget = RCD_BURST_MAX;
	uint32_t done;

	/* Who waits for the core waits for the end of a poll. */
	if (gives_way && way->yields > 1 && poll_carries_over(lcore))
		budget = SHARED_BURST;
	done = rcd_lcore_poll(lcore, now_ns, budget);
	if (unlikely(gives_way && poll_carries_over(lcore)))
		poll_give_way(way);
	return done;
}

int
rcd_poll_main(void *arg)
{
	struct rcd_lcore *lcore = arg;
	struct rcd_thread_place place = rcd_lcore_enter(lcore);
	enum rcd_idle idle = lcore->lcores->idle;
	uint64_t sleep_after_ns = poll_sleep_after(lcore->lcores);
	uint64_t busy_ns = rcd_clock_ns();
	struct way way = { .shortest_ns = AWAY_MOST_NS, .yields = WAY_YIELDS };
	uint32_t empty = 0;

	while (!rcd_lcore_stopping(lcore)) {
		uint64_t now_ns = rcd_clock_ns();

		if (poll_main(lcore, &way, now_ns) > 0) {
			busy_ns = now_ns;
			empty = 0;
			continue;
		}
		switch (idle) {
		case RCD_IDLE_AUTO:
		case RCD_IDLE_POLL:
			rte_pause();
			break;
		case RCD_IDLE_YIELD:
		case RCD_IDLE_SLEEP:
			if (++empty >= SPIN_POLLS || now_ns - busy_ns >= SPIN_MOST_NS)
				sched_yield();
			break;
		}
		if (now_ns - busy_ns > sleep_after_ns)
			poll_nap(lcore);
	}
	rcd_thread_leave(place);
	return 0;
}
