/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All lcores of an engine: their making and end, their threads, and what they share.
 */
#include "rcd_lcores.h"

#include <errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rcd_lcore.h"
#include "rcd_limits.h"
#include "rcd_note.h"
#include "rcd_thread.h"

#define NOTES 4096

void
rcd_lcores_clear(struct rcd_lcores *lcores)
{
	RCD_ON_CONTROL();
	*lcores = (struct rcd_lcores){ .note_fd = -1 };
}

int
rcd_lcores_init(struct rcd_lcores *lcores, const struct rcd_lcore_ops *ops, void *arg)
{
	RCD_ON_CONTROL();
	lcores->ops = ops;
	lcores->arg = arg;
	lcores->qp_owner = calloc(RCD_QP_SLOTS, sizeof(lcores->qp_owner[0]));
	lcores->note_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lcores->notes = rte_ring_create_elem(
		"rocade_notes", sizeof(struct rcd_note), NOTES, SOCKET_ID_ANY, RING_F_SC_DEQ);
	lcores->rcu = rte_zmalloc(
		"rocade_rcu", rte_rcu_qsbr_get_memsize(RCD_LCORES_MAX), RTE_CACHE_LINE_SIZE);
	if (lcores->qp_owner == NULL || lcores->note_fd < 0 || lcores->notes == NULL ||
		lcores->rcu == NULL)
		return -ENOMEM;
	rte_rcu_qsbr_init(lcores->rcu, RCD_LCORES_MAX);
	return 0;
}

int
rcd_lcores_add(struct rcd_lcores *lcores, unsigned int lcore_id, struct rte_mempool *pool)
{
	RCD_ON_CONTROL();
	if (lcores->count == RCD_LCORES_MAX)
		return -ENOSPC;
	return rcd_lcore_create(lcores, lcores->count++, lcore_id, pool);
}

/* Who has no thread is not waited for. */
static void
lcores_set_running(struct rcd_lcores *lcores, struct rcd_lcore *lcore, bool running)
{
	lcore->running = running;
	if (running) {
		rte_rcu_qsbr_thread_register(lcores->rcu, lcore->index);
		rte_rcu_qsbr_thread_online(lcores->rcu, lcore->index);
	} else {
		rte_rcu_qsbr_thread_offline(lcores->rcu, lcore->index);
		rte_rcu_qsbr_thread_unregister(lcores->rcu, lcore->index);
	}
}

int
rcd_lcores_launch(struct rcd_lcores *lcores, uint32_t index, int (*loop)(void *arg), void *arg)
{
	struct rcd_lcore *lcore = lcores->lcore[index];
	int err;

	RCD_ON_CONTROL();
	if (lcore->lcore_id == rte_get_main_lcore())
		return -ENOTSUP;
	__atomic_store_n(&lcore->stop, false, __ATOMIC_SEQ_CST);
	lcores_set_running(lcores, lcore, true);
	err = rte_eal_remote_launch(loop, arg, lcore->lcore_id);
	if (err != 0)
		lcores_set_running(lcores, lcore, false);
	return err;
}

void
rcd_lcores_stop(struct rcd_lcores *lcores)
{
	uint64_t one = 1;

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < lcores->count; i++) {
		struct rcd_lcore *lcore = lcores->lcore[i];

		if (lcore == NULL || !lcore->running)
			continue;
		__atomic_store_n(&lcore->stop, true, __ATOMIC_SEQ_CST);
		if (write(lcore->wake_fd, &one, sizeof(one)) < 0) {
			/* Full: it is going to wake up anyway. */
		}
		rte_eal_wait_lcore(lcore->lcore_id);
		lcores_set_running(lcores, lcore, false);
	}
}

void
rcd_lcores_fini(struct rcd_lcores *lcores)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < lcores->count; i++)
		rcd_lcore_destroy(lcores->lcore[i]);
	rte_ring_free(lcores->notes);
	if (lcores->note_fd >= 0)
		close(lcores->note_fd);
	rte_free(lcores->rcu);
	free(lcores->qp_owner);
	rcd_lcores_clear(lcores);
}

void
rcd_lcores_call(struct rcd_lcores *lcores, int (*fn)(struct rcd_lcore *lcore, void *arg), void *arg)
{
	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < lcores->count; i++)
		rcd_lcore_call(lcores->lcore[i], fn, arg);
}

void
rcd_lcores_synchronize(struct rcd_lcores *lcores)
{
	uint64_t token;

	RCD_ON_CONTROL();
	token = rte_rcu_qsbr_start(lcores->rcu);
	/* They may need this core to get on. */
	while (rte_rcu_qsbr_check(lcores->rcu, token, false) == 0)
		sched_yield();
}

void
rcd_lcores_wake_control(const struct rcd_lcores *lcores)
{
	uint64_t one = 1;

	if (write(lcores->note_fd, &one, sizeof(one)) < 0) {
		/* Full: it does not wait. */
	}
}

void
rcd_lcores_look_again(const struct rcd_lcores *lcores, const struct rte_ring *ring)
{
	RCD_ON_CONTROL();
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!rte_ring_empty(ring))
		rcd_lcores_wake_control(lcores);
}

void
rcd_lcores_told(const struct rcd_lcores *lcores, const struct rte_ring *ring)
{
	RCD_ON_LCORES();
	/* What was put before the look at what was taken; who takes has it the other way round. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (rte_ring_count(ring) <= lcores->count)
		rcd_lcores_wake_control(lcores);
}
