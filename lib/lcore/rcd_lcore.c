/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An lcore: its making, and commands from the control thread. Its work is rcd_poll.c's.
 */
#include "rcd_lcore.h"

#include <errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rcd_budget.h"
#include "rcd_check.h"
#include "rcd_clock.h"
#include "rcd_counter.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_mcast.h"
#include "rcd_reorder.h"
#include "rcd_ring.h"
#include "rcd_rx_keep.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_wheel.h"

#define CALL_RING    64
#define PACKET_RING  4096
#define GROUPS_RING  256
#define REORDER_POOL 1024

/* A command from the control thread, on its stack. */
struct call {
	int (*fn)(struct rcd_lcore *lcore, void *arg);
	void *arg;
	int answer; /**< once done */
	uint32_t done;
};

static struct rte_ring *
lcore_make_ring(struct rcd_lcore *lcore, const char *what, unsigned int count, unsigned int flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "rocade_%s_%u", what, lcore->index);
	return rte_ring_create(name, count, lcore->socket_id, flags | RING_F_EXACT_SZ);
}

int
rcd_lcore_create(
	struct rcd_lcores *lcores, uint32_t index, unsigned int lcore_id, struct rte_mempool *pool)
{
	int socket_id = (int)rte_lcore_to_socket_id(lcore_id);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = -1 };
	struct rcd_lcore *lcore =
		rte_zmalloc_socket("rocade_lcore", sizeof(*lcore), RCD_CACHE_LINE, socket_id);

	RCD_ON_CONTROL();
	if (lcore == NULL)
		return -ENOMEM;
	lcores->lcore[index] = lcore;
	lcore->lcores = lcores;
	lcore->index = index;
	lcore->lcore_id = lcore_id;
	lcore->socket_id = socket_id;
	lcore->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lcore->sleep_fd = epoll_create1(EPOLL_CLOEXEC);
	if (lcore->wake_fd < 0 || lcore->sleep_fd < 0 ||
		epoll_ctl(lcore->sleep_fd, EPOLL_CTL_ADD, lcore->wake_fd, &event) != 0)
		return -errno;
	lcore->calls = lcore_make_ring(lcore, "calls", CALL_RING, RING_F_SP_ENQ | RING_F_SC_DEQ);
	lcore->handover = lcore_make_ring(lcore, "handover", PACKET_RING, RING_F_SC_DEQ);
	lcore->loop = lcore_make_ring(lcore, "loop", PACKET_RING, RING_F_SP_ENQ | RING_F_SC_DEQ);
	lcore->rest.groups =
		lcore_make_ring(lcore, "groups", GROUPS_RING, RING_F_SP_ENQ | RING_F_SC_DEQ);
	lcore->qps = rte_zmalloc_socket(
		"rocade_qps", RCD_QP_SLOTS * sizeof(lcore->qps[0]), RCD_CACHE_LINE, socket_id);
	lcore->cold = calloc(RCD_CLIENTS_MAX, sizeof(lcore->cold[0]));
	lcore->reorder = rcd_reorder_pool_create(REORDER_POOL);
	lcore->pool = pool;
	lcore->rcu = lcores->rcu;
	lcore->hop_macs = lcores->hop_macs;
	rcd_turns_init(&lcore->turns);
	TAILQ_INIT(&lcore->flushing);
	TAILQ_INIT(&lcore->owing);
	TAILQ_INIT(&lcore->copying);
	TAILQ_INIT(&lcore->ringing);
	lcore->now_ns = rcd_clock_ns();
	rcd_wheel_init(&lcore->wheel, RCD_WHEEL_TICK_LOG2, lcore->now_ns);
	if (lcore->calls == NULL || lcore->handover == NULL || lcore->loop == NULL ||
		lcore->rest.groups == NULL || lcore->qps == NULL || lcore->cold == NULL ||
		lcore->reorder == NULL || lcore->pool == NULL)
		return -ENOMEM;
	rcd_rx_keep_init(lcore);
	return 0;
}

void
rcd_lcore_destroy(struct rcd_lcore *lcore)
{
	RCD_ON_CONTROL();
	if (lcore == NULL)
		return;
	rte_pktmbuf_free_bulk(lcore->spare, lcore->spare_count);
	rte_pktmbuf_free_bulk(lcore->rest.mbufs, lcore->rest.count);
	rcd_ring_free(lcore->rest.groups);
	rcd_ring_free(lcore->handover);
	rcd_ring_free(lcore->loop);
	rte_ring_free(lcore->calls);
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		rcd_mcast_table_destroy(lcore->mcast[i]);
	rcd_reorder_pool_destroy(lcore->reorder);
	rte_free(lcore->qps);
	free(lcore->cold);
	if (lcore->wake_fd >= 0)
		close(lcore->wake_fd);
	if (lcore->sleep_fd >= 0)
		close(lcore->sleep_fd);
	rte_free(lcore);
}

void
rcd_lcore_drop(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	RCD_ON_LCORE(lcore);
	RCD_CHECK(!rcd_turn_any_urgent(&lcore->turns));
	rcd_turn_end(&hqp->turn);
	rcd_wheel_cancel(&lcore->wheel, &hqp->timer);
	lcore->qps[hqp->qpn % RCD_QP_SLOTS] = NULL;
}

void
rcd_lcore_wake(struct rcd_lcore *lcore)
{
	uint64_t one = 1;

	/* What it is woken for before the look: it looks for that behind its word of sleep. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lcore->sleeping, __ATOMIC_SEQ_CST) &&
		write(lcore->wake_fd, &one, sizeof(one)) < 0) {
		/* Full: it is going to wake up anyway. */
	}
}

int
rcd_lcore_call(struct rcd_lcore *lcore, int (*fn)(struct rcd_lcore *lcore, void *arg), void *arg)
{
	struct call call = { .fn = fn, .arg = arg };

	RCD_ON_CONTROL();
	if (!lcore->running) {
		struct rcd_thread_place place = rcd_thread_enter(lcore, lcore->index);

		lcore->now_ns = rcd_clock_ns();
		call.answer = fn(lcore, arg);
		rcd_thread_leave(place);
		return call.answer;
	}
	while (rte_ring_enqueue(lcore->calls, &call) != 0)
		sched_yield();
	rcd_lcore_wake(lcore);
	while (!__atomic_load_n(&call.done, __ATOMIC_ACQUIRE))
		sched_yield();
	return call.answer;
}

#ifdef RCD_DEBUG
struct rcd_thread_place
rcd_lcore_enter(const struct rcd_lcore *lcore)
{
	if (lcore->running)
		RCD_CHECK(rte_lcore_id() == lcore->lcore_id);
	else
		RCD_ON_CONTROL();
	return rcd_thread_enter(lcore, lcore->index);
}
#endif

uint32_t
rcd_lcore_do_calls(struct rcd_lcore *lcore)
{
	uint32_t done = 0;
	void *obj;

	RCD_ON_LCORE(lcore);
	while (done < RCD_WORK_CALLS && rte_ring_dequeue(lcore->calls, &obj) == 0) {
		struct call *call = obj;

		call->answer = call->fn(lcore, call->arg);
		__atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
		done++;
	}
	lcore->work += done;
	return done;
}
