/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Descriptors of receive queues in an lcore's epoll, and interrupts that are asked for only while
 * it sleeps: an lcore that polls pays for neither.
 */
#include "rcd_rx_wait.h"

#include <rte_ethdev.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_lport.h"
#include "rcd_thread.h"

#define LONG_NS      1000000000 /**< whoever gives us work ends the sleep */
#define INTERRUPT_NS 100000000  /**< drivers differ in what came before one was asked for */
#define TRIAL_NS     2000000    /**< an interrupt that none was seen of, for who need not sleep */
#define ERRORS_MAX   1000       /**< of a descriptor */
#define MISSED_MAX   8          /**< a NIC may hold one back for some of a sleep, by chance */

_Static_assert(TRIAL_NS > RCD_RX_WAIT_BLIND_NS, "who need not sleep tries");

/*
 * The queues of a port that packets come to this lcore by: its own, and the one of what is no RoCE.
 *
 * @param queues  two places
 * @return how many there are
 */
static uint32_t
rx_wait_queues(const struct rcd_lcore *lcore, const struct rcd_lport *lport, uint16_t *queues)
{
	uint32_t count = 0;

	if (lcore->index < lport->queues)
		queues[count++] = (uint16_t)lcore->index;
	if (lcore->index == 0 && lport->exception_queue != 0)
		queues[count++] = lport->exception_queue;
	return count;
}

static bool
rx_wait_watch(
	const struct rcd_lcore *lcore, const struct rcd_rx_wait *wait, int op, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = wait->fd };

	return epoll_ctl(lcore->sleep_fd, op, wait->fd, &event) == 0;
}

void
rcd_rx_wait_join(const struct rcd_lcore *lcore, const struct rcd_lport *lport)
{
	struct rcd_txq *txq = &lport->txqs[lcore->index];
	uint16_t queues[2];
	uint32_t count;

	RCD_ON_LCORE(lcore);
	count = rx_wait_queues(lcore, lport, queues);
	txq->blind = txq->seen = false;
	txq->errors = txq->missed = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct rcd_rx_wait *wait = &lport->rx_waits[queues[i]];

		/* By edge, as all that is never read; what is readable, only once it is armed. */
		if (wait->kind != RCD_RX_WAIT_NONE &&
			!rx_wait_watch(lcore, wait, EPOLL_CTL_ADD,
				wait->kind == RCD_RX_WAIT_READABLE ? EPOLLONESHOT
								   : EPOLLIN | EPOLLET))
			txq->blind = true;
	}
}

void
rcd_rx_wait_leave(const struct rcd_lcore *lcore, const struct rcd_lport *lport)
{
	uint16_t queues[2];
	uint32_t count;

	RCD_ON_LCORE(lcore);
	count = rx_wait_queues(lcore, lport, queues);
	for (uint32_t i = 0; i < count; i++)
		if (lport->rx_waits[queues[i]].kind != RCD_RX_WAIT_NONE)
			rx_wait_watch(lcore, &lport->rx_waits[queues[i]], EPOLL_CTL_DEL, 0);
}

/* Who was told to sleep finds out by sleeping; who need not, by sleeping for a moment. */
static uint64_t
rx_wait_longest_queue(
	const struct rcd_lcore *lcore, const struct rcd_txq *txq, const struct rcd_rx_wait *wait)
{
	switch (wait->kind) {
	case RCD_RX_WAIT_READABLE:
		return LONG_NS;
	case RCD_RX_WAIT_INTERRUPT:
		return lcore->lcores->sleeps_late && !wait->sure && !txq->seen ? TRIAL_NS
									       : INTERRUPT_NS;
	case RCD_RX_WAIT_NONE:
		break;
	}
	return RCD_RX_WAIT_BLIND_NS;
}

static uint64_t
rx_wait_longest(const struct rcd_lcore *lcore, const struct rcd_txq *txq)
{
	const struct rcd_lport *lport = txq->lport;
	uint64_t longest = LONG_NS;
	uint16_t queues[2];
	uint32_t count = rx_wait_queues(lcore, lport, queues);

	/* Nobody tells when a port takes what it did not take. */
	if (txq->count > 0 || txq->blind || lport->impaired)
		return RCD_RX_WAIT_BLIND_NS;
	if (lport->wire)
		return lcore->lcores->count > 1 ? RCD_RX_WAIT_BLIND_NS : LONG_NS;
	for (uint32_t i = 0; i < count; i++)
		longest = RTE_MIN(
			longest, rx_wait_longest_queue(lcore, txq, &lport->rx_waits[queues[i]]));
	return longest;
}

/* Whether a descriptor is that of one of a port's queues. */
static bool
rx_wait_has(const struct rcd_lcore *lcore, const struct rcd_lport *lport, int fd)
{
	uint16_t queues[2];
	uint32_t count = rx_wait_queues(lcore, lport, queues);

	for (uint32_t i = 0; i < count; i++)
		if (lport->rx_waits[queues[i]].kind != RCD_RX_WAIT_NONE &&
			lport->rx_waits[queues[i]].fd == fd)
			return true;
	return false;
}

/*
 * A netdev that was down leaves its socket an error, which ends each sleep until it is read. One
 * that comes back again and again is not waited for any more.
 */
static void
rx_wait_clear(struct rcd_lcore *lcore, int fd)
{
	uint8_t byte;

	if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0) {
		/* It is. */
	}
	for (uint32_t i = 0; i < lcore->txq_count; i++) {
		struct rcd_txq *txq = lcore->txqs[i];

		if (!rx_wait_has(lcore, txq->lport, fd) || ++txq->errors < ERRORS_MAX)
			continue;
		rcd_rx_wait_leave(lcore, txq->lport);
		txq->blind = true;
	}
}

static bool
rx_wait_missed(const struct rcd_lcore *lcore, const struct rcd_lport *lport)
{
	uint16_t queues[2];
	uint32_t count = rx_wait_queues(lcore, lport, queues);
	bool missed = false;

	for (uint32_t i = 0; i < count; i++)
		missed |= lport->rx_waits[queues[i]].kind == RCD_RX_WAIT_INTERRUPT &&
			rte_eth_rx_queue_count(lport->port_id, queues[i]) > 0;
	return missed;
}

/*
 * Some drivers take it that interrupts are asked for, and none comes: net_e1000_em does not say to
 * an 82574L which of its several is that of a queue. Who finds packets at the end of whole sleeps,
 * again and again, waits for no more of them.
 */
static void
rx_wait_doubt(struct rcd_lcore *lcore, uint64_t nap_ns)
{
	for (uint32_t i = 0; i < lcore->txq_count; i++) {
		struct rcd_txq *txq = lcore->txqs[i];
		uint64_t longest = RTE_MIN(rx_wait_longest(lcore, txq), (uint64_t)INTERRUPT_NS);

		/* Not by a sleep that something else had made shorter. */
		if (longest > RCD_RX_WAIT_BLIND_NS && nap_ns >= longest &&
			rx_wait_missed(lcore, txq->lport))
			txq->blind = ++txq->missed == MISSED_MAX;
	}
}

static void
rx_wait_trust(struct rcd_lcore *lcore, int fd)
{
	for (uint32_t i = 0; i < lcore->txq_count; i++)
		if (rx_wait_has(lcore, lcore->txqs[i]->lport, fd)) {
			lcore->txqs[i]->missed = 0;
			lcore->txqs[i]->seen = true;
		}
}

void
rcd_rx_wait_woken(
	struct rcd_lcore *lcore, const struct epoll_event *events, int count, uint64_t nap_ns)
{
	RCD_ON_LCORE(lcore);
	for (int i = 0; i < count; i++) {
		if (events[i].data.fd < 0)
			continue;
		if (events[i].events & EPOLLERR)
			rx_wait_clear(lcore, events[i].data.fd);
		else
			rx_wait_trust(lcore, events[i].data.fd);
	}
	if (count == 0)
		rx_wait_doubt(lcore, nap_ns);
}

uint64_t
rcd_rx_wait_longest(const struct rcd_lcore *lcore)
{
	uint64_t longest = LONG_NS;

	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < lcore->txq_count; i++)
		longest = RTE_MIN(longest, rx_wait_longest(lcore, lcore->txqs[i]));
	return longest;
}

/* @return false: there are packets in it already */
static bool
rx_wait_arm_queue(const struct rcd_lcore *lcore, const struct rcd_lport *lport, uint16_t queue)
{
	const struct rcd_rx_wait *wait = &lport->rx_waits[queue];

	if (wait->kind == RCD_RX_WAIT_NONE)
		return true;
	if (wait->kind == RCD_RX_WAIT_READABLE) {
		rx_wait_watch(lcore, wait, EPOLL_CTL_MOD, EPOLLIN | EPOLLONESHOT);
		return true;
	}
	rte_eth_dev_rx_intr_enable(lport->port_id, queue);
	/* Not every driver counts. */
	return rte_eth_rx_queue_count(lport->port_id, queue) <= 0;
}

bool
rcd_rx_wait_arm(const struct rcd_lcore *lcore)
{
	bool empty = true;

	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < lcore->txq_count; i++) {
		const struct rcd_lport *lport = lcore->txqs[i]->lport;
		uint16_t queues[2];
		uint32_t count = rx_wait_queues(lcore, lport, queues);

		for (uint32_t k = 0; k < count; k++)
			if (!rx_wait_arm_queue(lcore, lport, queues[k]))
				empty = false;
	}
	return empty;
}

void
rcd_rx_wait_disarm(const struct rcd_lcore *lcore)
{
	RCD_ON_LCORE(lcore);
	for (uint32_t i = 0; i < lcore->txq_count; i++) {
		const struct rcd_lport *lport = lcore->txqs[i]->lport;
		uint16_t queues[2];
		uint32_t count = rx_wait_queues(lcore, lport, queues);

		for (uint32_t k = 0; k < count; k++)
			if (lport->rx_waits[queues[k]].kind == RCD_RX_WAIT_INTERRUPT)
				rte_eth_dev_rx_intr_disable(lport->port_id, queues[k]);
	}
}
