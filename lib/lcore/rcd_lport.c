/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices come to the lcores and go, and their views are replaced.
 */
#include "rcd_lport.h"

#include <errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <stdlib.h>

#include "rcd_idle.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_mcast.h"
#include "rcd_rx_forget.h"
#include "rcd_rx_wait.h"
#include "rcd_thread.h"

int
rcd_lport_init(struct rcd_lport *lport, struct rcd_lcores *lcores)
{
	RCD_ON_CONTROL();
	lport->lcores = lcores;
	lport->counters = rte_zmalloc("rocade_counters",
		(lcores->count + 2) * sizeof(lport->counters[0]), RCD_CACHE_LINE);
	lport->txqs =
		rte_zmalloc("rocade_txqs", lcores->count * sizeof(lport->txqs[0]), RCD_CACHE_LINE);
	return lport->counters != NULL && lport->txqs != NULL ? 0 : -ENOMEM;
}

void
rcd_lport_fini(struct rcd_lport *lport)
{
	RCD_ON_CONTROL();
	rte_free(lport->counters);
	rte_free(lport->txqs);
	free(lport->all_flows);
	free((void *)(uintptr_t)lport->view);
}

/* Frames that wait with sums that the port was to work out, and does not know any more. */
static void
lport_drop_unsummed(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rcd_txq *txq)
{
	uint16_t kept = 0;

	for (uint16_t i = txq->first; i < txq->first + txq->count; i++) {
		struct rte_mbuf *mbuf = txq->mbufs[i];

		if ((mbuf->ol_flags & RTE_MBUF_F_TX_L4_MASK) == 0)
			txq->mbufs[kept++] = mbuf;
		else
			rte_pktmbuf_free(mbuf);
	}
	rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_TX_DROP_LINK,
		(uint64_t)(txq->count - kept));
	txq->first = 0;
	txq->shown = 0;
	txq->count = kept;
}

/* Poll it. */
static int
lport_resume(struct rcd_lcore *lcore, void *arg)
{
	const struct rcd_lport *lport = arg;
	struct rcd_txq *txq = &lport->txqs[lcore->index];

	if (!lport->csum)
		lport_drop_unsummed(lcore, lport, txq);
	txq->paused = false;
	lcore->txqs[lcore->txq_count++] = txq;
	if (rcd_lcores_sleep(lcore->lcores))
		rcd_rx_wait_join(lcore, lport);
	return 0;
}

/* Poll it no more. */
static int
lport_pause(struct rcd_lcore *lcore, void *arg)
{
	const struct rcd_lport *lport = arg;
	struct rcd_txq *txq = &lport->txqs[lcore->index];

	if (txq->paused)
		return 0;
	txq->paused = true;
	for (uint32_t i = 0; i < lcore->txq_count; i++)
		if (lcore->txqs[i] == txq)
			lcore->txqs[i--] = lcore->txqs[--lcore->txq_count];
	if (rcd_lcores_sleep(lcore->lcores))
		rcd_rx_wait_leave(lcore, lport);
	return 0;
}

static int
lport_join(struct rcd_lcore *lcore, void *arg)
{
	const struct rcd_lport *lport = arg;
	struct rcd_txq *txq = &lport->txqs[lcore->index];

	txq->lport = lport;
	TAILQ_INIT(&txq->blocked);
	lcore->txq_of[lport->index] = txq;
	return lport_resume(lcore, arg);
}

static int
lport_leave(struct rcd_lcore *lcore, void *arg)
{
	const struct rcd_lport *lport = arg;
	struct rcd_txq *txq = lcore->txq_of[lport->index];

	if (txq == NULL)
		return 0;
	lport_pause(lcore, arg);
	lcore->txq_of[lport->index] = NULL;
	for (uint16_t i = 0; i < txq->count; i++)
		rte_pktmbuf_free(txq->mbufs[txq->first + i]);
	__atomic_store_n(&lcore->mcast[lport->index], NULL, __ATOMIC_RELAXED);
	return 0;
}

/* Buffers may be the device's own, and another device may have its number next. */
static int
lport_forget(struct rcd_lcore *lcore, void *arg)
{
	rcd_rx_forget(lcore, ((const struct rcd_lport *)arg)->index);
	return 0;
}

void
rcd_lport_show(struct rcd_lport *lport)
{
	RCD_ON_CONTROL();
	rcd_lcores_call(lport->lcores, lport_join, lport);
}

void
rcd_lport_pause(struct rcd_lport *lport)
{
	RCD_ON_CONTROL();
	rcd_lcores_call(lport->lcores, lport_pause, lport);
}

void
rcd_lport_resume(struct rcd_lport *lport)
{
	RCD_ON_CONTROL();
	rcd_lcores_call(lport->lcores, lport_resume, lport);
}

void
rcd_lport_hide(struct rcd_lport *lport)
{
	struct rcd_mcast_table *tables[RCD_LCORES_MAX];

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < lport->lcores->count; i++)
		tables[i] = lport->lcores->lcore[i]->mcast[lport->index];
	rcd_lcores_call(lport->lcores, lport_leave, lport);
	/* A last round: nobody passes packets on any more, and none is left in hand. */
	rcd_lcores_call(lport->lcores, lport_forget, lport);
	/* Here, as memory is given back to the kernel by calls that no lcore makes. */
	for (uint32_t i = 0; i < lport->lcores->count; i++)
		rcd_mcast_table_destroy(tables[i]);
}

const struct rcd_lport_view *
rcd_lport_set_view(struct rcd_lport *lport, const struct rcd_lport_view *view)
{
	const struct rcd_lport_view *before = lport->view;

	RCD_ON_CONTROL();
	__atomic_store_n(&lport->view, view, __ATOMIC_RELEASE);
	return before;
}

uint64_t
rcd_lport_sum(const struct rcd_lport *lport, enum rcd_counter counter)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < lport->lcores->count + 2; i++)
		total += rcd_counter_get(&lport->counters[i], counter);
	return total;
}

struct rcd_counters *
rcd_lport_control_counters(const struct rcd_lport *lport)
{
	RCD_ON_CONTROL();
	return &lport->counters[lport->lcores->count];
}

struct rcd_counters *
rcd_lport_carrier_counters(const struct rcd_lport *lport)
{
	return &lport->counters[lport->lcores->count + 1];
}
