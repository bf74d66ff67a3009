/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An lcore: its making, commands from the control thread and what it tells it, and the clock. Its
 * work is rcd_poll.c's.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define CALL_RING     64
#define PACKET_RING   4096
#define GROUPS_RING   256
#define REORDER_POOL  1024
#define LINK_NOTES    16 /**< of packets of the network, in this time */
#define LINK_NOTES_NS 1000000

/* A command from the control thread, on its stack. */
struct call {
	void (*fn)(struct rcd_lcore *lcore, void *arg);
	void *arg;
	uint32_t done;
};

static uint64_t clock_ahead_ns;

void
rcd_clock_advance(uint64_t ns)
{
	clock_ahead_ns += ns;
}

uint64_t
rcd_clock_ns(void)
{
	static uint64_t base_ns;
	static uint64_t base_tsc;
	static double ns_per_tick;
	uint64_t tsc;

	/* Set once, by the thread that creates the engine. */
	if (base_ns == 0) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		base_tsc = rte_rdtsc();
		ns_per_tick = 1e9 / (double)rte_get_tsc_hz();
		base_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	tsc = rte_rdtsc();
	return base_ns + clock_ahead_ns + (uint64_t)((double)(tsc - base_tsc) * ns_per_tick);
}

static struct rte_ring *
make_ring(struct rcd_lcore *lcore, const char *what, unsigned int count, unsigned int flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "rocade_%s_%u", what, lcore->index);
	return rte_ring_create(name, count, lcore->socket_id, flags | RING_F_EXACT_SZ);
}

int
rcd_lcore_create(struct rcd_engine *engine, uint32_t index, unsigned int lcore_id,
	const struct rcd_lcore_ops *ops)
{
	int socket_id = lcore_id == LCORE_ID_ANY ? 0 : (int)rte_lcore_to_socket_id(lcore_id);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct rcd_lcore *lcore =
		rte_zmalloc_socket("rocade_lcore", sizeof(*lcore), RCD_CACHE_LINE, socket_id);

	if (lcore == NULL)
		return -ENOMEM;
	engine->lcores[index] = lcore;
	lcore->engine = engine;
	lcore->ops = ops;
	lcore->index = index;
	lcore->lcore_id = lcore_id;
	lcore->socket_id = socket_id;
	lcore->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lcore->sleep_fd = epoll_create1(EPOLL_CLOEXEC);
	if (lcore->wake_fd < 0 || lcore->sleep_fd < 0 ||
		epoll_ctl(lcore->sleep_fd, EPOLL_CTL_ADD, lcore->wake_fd, &event) != 0)
		return -errno;
	lcore->calls = make_ring(lcore, "calls", CALL_RING, RING_F_SP_ENQ | RING_F_SC_DEQ);
	lcore->handover = make_ring(lcore, "handover", PACKET_RING, RING_F_SC_DEQ);
	lcore->loop = make_ring(lcore, "loop", PACKET_RING, RING_F_SP_ENQ | RING_F_SC_DEQ);
	lcore->rest.groups = make_ring(lcore, "groups", GROUPS_RING, RING_F_SP_ENQ | RING_F_SC_DEQ);
	lcore->qps = rte_zmalloc_socket(
		"rocade_qps", RCD_QP_SLOTS * sizeof(lcore->qps[0]), RCD_CACHE_LINE, socket_id);
	lcore->cold = calloc(RCD_CLIENTS_MAX, sizeof(lcore->cold[0]));
	lcore->reorder = rcd_reorder_pool_create(REORDER_POOL);
	lcore->pool = engine->pools[socket_id];
	rcd_turns_init(&lcore->turns);
	TAILQ_INIT(&lcore->flushing);
	TAILQ_INIT(&lcore->owing);
	TAILQ_INIT(&lcore->copying);
	TAILQ_INIT(&lcore->ringing);
	lcore->now_ns = rcd_clock_ns();
	rcd_wheel_init(&lcore->wheel, lcore->now_ns);
	if (lcore->calls == NULL || lcore->handover == NULL || lcore->loop == NULL ||
		lcore->rest.groups == NULL || lcore->qps == NULL || lcore->cold == NULL ||
		lcore->reorder == NULL || lcore->pool == NULL)
		return -ENOMEM;
	return 0;
}

static void
drain(struct rte_ring *ring)
{
	void *mbuf;

	while (ring != NULL && rte_ring_dequeue(ring, &mbuf) == 0)
		rte_pktmbuf_free(mbuf);
	rte_ring_free(ring);
}

void
rcd_lcore_destroy(struct rcd_lcore *lcore)
{
	if (lcore == NULL)
		return;
	rte_pktmbuf_free_bulk(lcore->spare, lcore->spare_count);
	rte_pktmbuf_free_bulk(lcore->rest.mbufs, lcore->rest.count);
	drain(lcore->rest.groups);
	drain(lcore->handover);
	drain(lcore->loop);
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
rcd_lcore_wake(struct rcd_lcore *lcore)
{
	uint64_t one = 1;

	if (__atomic_load_n(&lcore->sleeping, __ATOMIC_SEQ_CST) &&
		write(lcore->wake_fd, &one, sizeof(one)) < 0) {
		/* Full: it is going to wake up anyway. */
	}
}

void
rcd_lcore_call(struct rcd_lcore *lcore, void (*fn)(struct rcd_lcore *lcore, void *arg), void *arg)
{
	struct call call = { .fn = fn, .arg = arg };

	if (!lcore->running) {
		lcore->now_ns = rcd_clock_ns();
		fn(lcore, arg);
		return;
	}
	while (rte_ring_enqueue(lcore->calls, &call) != 0)
		sched_yield();
	rcd_lcore_wake(lcore);
	while (!__atomic_load_n(&call.done, __ATOMIC_ACQUIRE))
		sched_yield();
}

struct question {
	int (*fn)(struct rcd_lcore *lcore, void *arg);
	void *arg;
	int answer;
};

static void
answer(struct rcd_lcore *lcore, void *arg)
{
	struct question *question = arg;

	question->answer = question->fn(lcore, question->arg);
}

int
rcd_lcore_ask(struct rcd_lcore *lcore, int (*fn)(struct rcd_lcore *lcore, void *arg), void *arg)
{
	struct question question = { .fn = fn, .arg = arg };

	rcd_lcore_call(lcore, answer, &question);
	return question.answer;
}

void
rcd_lcore_call_all(
	struct rcd_engine *engine, void (*fn)(struct rcd_lcore *lcore, void *arg), void *arg)
{
	for (uint32_t i = 0; i < engine->lcore_count; i++)
		rcd_lcore_call(engine->lcores[i], fn, arg);
}

uint32_t
rcd_lcore_do_calls(struct rcd_lcore *lcore)
{
	uint32_t done = 0;
	void *obj;

	while (done < RCD_WORK_CALLS && rte_ring_dequeue(lcore->calls, &obj) == 0) {
		struct call *call = obj;

		call->fn(lcore, call->arg);
		__atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
		done++;
	}
	lcore->work += done;
	return done;
}

void
rcd_lcore_note(struct rcd_lcore *lcore, struct rcd_note *note)
{
	struct rte_ring *ring = lcore->engine->notes;
	uint64_t one = 1;

	if (rte_ring_enqueue_elem(ring, note, sizeof(*note)) != 0) {
		rcd_counter_add(&lcore->counters, RCD_COUNTER_EVENTS_LOST, 1);
		return;
	}
	/* Who takes them empties the ring: those that were first wake. */
	if (rte_ring_count(ring) > lcore->engine->lcore_count)
		return;
	if (write(lcore->engine->note_fd, &one, sizeof(one)) < 0) {
		/* Full: it is read before long. */
	}
}

bool
rcd_lcore_note_link(struct rcd_lcore *lcore, struct rcd_note *note)
{
	struct rte_ring *ring = lcore->engine->notes;

	if (lcore->now_ns - lcore->note_ns >= LINK_NOTES_NS) {
		lcore->note_ns = lcore->now_ns;
		lcore->note_left = LINK_NOTES;
	}
	if (lcore->note_left == 0 || rte_ring_free_count(ring) < rte_ring_get_capacity(ring) / 2)
		return false;
	lcore->note_left--;
	rcd_lcore_note(lcore, note);
	return true;
}
