/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The rings of an exception path, on both of their ends.
 */
#include "rcd_exception.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rcd_budget.h"
#include "rcd_bytes.h"
#include "rcd_counter.h"
#include "rcd_csum.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_lport.h"
#include "rcd_ring.h"
#include "rcd_thread.h"
#include "rcd_tx.h"

/** Between two calls for a carrier that sleeps: each is a system call of the lcore's. */
#define WAKE_NS 50000

static struct rte_ring *
exception_ring(const char *what, uint32_t serial, uint32_t places, int socket_id, unsigned flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "rcdx_%s_%u", what, serial);
	return rte_ring_create(name, places, socket_id, flags | RING_F_EXACT_SZ);
}

int
rcd_exception_init(struct rcd_exception *exception, uint32_t serial, int socket_id)
{
	RCD_ON_CONTROL();
	exception->to = exception_ring("to", serial, RCD_EXCEPTION_TO, socket_id, RING_F_SC_DEQ);
	exception->from = exception_ring(
		"from", serial, RCD_EXCEPTION_FROM, socket_id, RING_F_SP_ENQ | RING_F_SC_DEQ);
	exception->back = exception_ring(
		"back", serial, RCD_EXCEPTION_BACK, socket_id, RING_F_SP_ENQ | RING_F_SC_DEQ);
	exception->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (exception->to == NULL || exception->from == NULL || exception->back == NULL)
		return -ENOMEM;
	return exception->wake_fd >= 0 ? 0 : -errno;
}

void
rcd_exception_fini(struct rcd_exception *exception)
{
	RCD_ON_CONTROL();
	rcd_ring_free(exception->to);
	rcd_ring_free(exception->from);
	rcd_ring_free(exception->back);
	if (exception->wake_fd >= 0)
		close(exception->wake_fd);
	exception->to = NULL;
	exception->from = NULL;
	exception->back = NULL;
	exception->wake_fd = -1;
}

bool
rcd_exception_put(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf)
{
	bool room;

	RCD_ON_LCORE(lcore);
	room = rte_ring_enqueue(lport->exception->to, mbuf) == 0;
	rcd_counter_add(rcd_lcore_counters(lcore, lport),
		room ? RCD_COUNTER_TO_KERNEL : RCD_COUNTER_TO_KERNEL_DROP, 1);
	return room;
}

/* Nobody calls twice for one sleep, and a call that comes too early is made in a later poll. */
static void
exception_call_carrier(const struct rcd_lcore *lcore, struct rcd_exception *exception)
{
	uint64_t one = 1;

	if (lcore->now_ns < __atomic_load_n(&exception->wake_ns, __ATOMIC_RELAXED) ||
		!__atomic_exchange_n(&exception->asleep, false, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&exception->wake_ns, lcore->now_ns + WAKE_NS, __ATOMIC_RELAXED);
	if (write(exception->wake_fd, &one, sizeof(one)) < 0) {
		/* Full: it is going to wake up anyway. */
	}
}

/* They are no frames: nothing waits for it, and one poll frees no more than it receives. */
static void
exception_free_some(const struct rcd_exception *exception)
{
	struct rte_mbuf *mbufs[RCD_BURST_MAX];
	uint32_t count =
		rte_ring_dequeue_burst(exception->back, (void **)mbufs, RCD_BURST_MAX, NULL);

	rte_pktmbuf_free_bulk(mbufs, count);
}

/*
 * A sum that the carrier left to the port, which may want the frame in some form. One that it does
 * not take, as it was set up anew since, or knows why, is worked out here.
 */
static struct rte_mbuf *
exception_prepare(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf)
{
	bool udp = (mbuf->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM;
	uint16_t start = (uint16_t)(mbuf->l2_len + mbuf->l3_len);
	uint16_t offset = udp ? RCD_CSUM_UDP : RCD_CSUM_TCP;
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint16_t pseudo = rcd_get_be16(frame + start + offset);

	if (__atomic_load_n(&lport->csum, __ATOMIC_RELAXED) &&
		rte_eth_tx_prepare(lport->port_id, (uint16_t)lcore->index, &mbuf, 1) == 1) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_FROM_KERNEL_CSUM, 1);
		return mbuf;
	}
	rcd_put_be16(frame + start + offset, pseudo);
	rcd_csum_finish(frame, rte_pktmbuf_data_len(mbuf), start, offset);
	mbuf->ol_flags &= ~(RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6);
	return mbuf;
}

static void
exception_send(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf)
{
	if (unlikely((mbuf->ol_flags & RTE_MBUF_F_TX_L4_MASK) != 0))
		mbuf = exception_prepare(lcore, lport, mbuf);
	rcd_tx_frame(lcore, lport, mbuf);
}

uint32_t
rcd_exception_poll(struct rcd_lcore *lcore, const struct rcd_lport *lport)
{
	struct rcd_exception *exception = lport->exception;
	struct rte_mbuf *mbufs[RCD_WORK_KERNEL];
	uint32_t count;

	RCD_ON_LCORE(lcore);
	if (!rte_ring_empty(exception->to) && __atomic_load_n(&exception->asleep, __ATOMIC_RELAXED))
		exception_call_carrier(lcore, exception);
	if (lcore->index != 0)
		return 0;
	if (!rte_ring_empty(exception->back))
		exception_free_some(exception);
	if (rte_ring_empty(exception->from))
		return 0;
	count = RTE_MIN(rcd_tx_room(lcore, lport), (uint32_t)RCD_WORK_KERNEL);
	count = rte_ring_dequeue_burst(exception->from, (void **)mbufs, count, NULL);
	for (uint32_t i = 0; i < count; i++)
		exception_send(lcore, lport, mbufs[i]);
	rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_FROM_KERNEL, count);
	return count;
}

bool
rcd_exception_waits(const struct rcd_lcore *lcore)
{
	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < lcore->txq_count; i++) {
		const struct rcd_exception *exception = lcore->txqs[i]->lport->exception;

		if (exception != NULL &&
			((lcore->index == 0 && !rte_ring_empty(exception->from)) ||
				(!rte_ring_empty(exception->to) &&
					__atomic_load_n(&exception->asleep, __ATOMIC_RELAXED))))
			return true;
	}
	return false;
}

uint32_t
rcd_exception_take(struct rcd_exception *exception, struct rte_mbuf **mbufs, uint32_t max)
{
	return rte_ring_dequeue_burst(exception->to, (void **)mbufs, max, NULL);
}

void
rcd_exception_give_back(
	const struct rcd_exception *exception, struct rte_mbuf **mbufs, uint32_t count)
{
	uint32_t given = rte_ring_enqueue_burst(exception->back, (void **)mbufs, count, NULL);

	/* The lcore has not looked for long. */
	rte_pktmbuf_free_bulk(mbufs + given, count - given);
}

bool
rcd_exception_has_room(const struct rcd_exception *exception)
{
	return !rte_ring_full(exception->from);
}

void
rcd_exception_give(const struct rcd_lport *lport, struct rte_mbuf *mbuf)
{
	if (rte_ring_enqueue(lport->exception->from, mbuf) != 0)
		rte_pktmbuf_free(mbuf);
	rcd_lcore_wake(lport->lcores->lcore[0]);
}

bool
rcd_exception_may_sleep(struct rcd_exception *exception)
{
	__atomic_store_n(&exception->asleep, true, __ATOMIC_SEQ_CST);
	if (rte_ring_empty(exception->to))
		return true;
	__atomic_store_n(&exception->asleep, false, __ATOMIC_SEQ_CST);
	return false;
}

void
rcd_exception_awake(struct rcd_exception *exception)
{
	uint64_t calls;

	__atomic_store_n(&exception->asleep, false, __ATOMIC_SEQ_CST);
	if (read(exception->wake_fd, &calls, sizeof(calls)) < 0) {
		/* It woke for something else. */
	}
}
