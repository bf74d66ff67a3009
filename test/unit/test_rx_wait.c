/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: an lcore that sleeps relies on a NIC's interrupts, and no more on those that do not come.
 * Method: the driver is the test's: it has packets, or not, at the end of sleeps that the test
 * tells of.
 */
#include "rcd_rx_wait.h"

#include <rte_ethdev.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_lport.h"
#include "rcd_tap.h"
#include "rcd_thread.h"

#define SECOND 1000000000u
#define WHOLE  (SECOND / 10)
#define SHORT  (SECOND / 1000)
#define TRIAL  (SECOND / 500)

static uint32_t packets;

int
__wrap_rte_eth_dev_rx_intr_enable(uint16_t port, uint16_t queue);
int
__wrap_rte_eth_dev_rx_intr_disable(uint16_t port, uint16_t queue);

int
__wrap_rte_eth_dev_rx_intr_enable(uint16_t port, uint16_t queue)
{
	(void)port;
	(void)queue;
	return 0;
}

int
__wrap_rte_eth_dev_rx_intr_disable(uint16_t port, uint16_t queue)
{
	(void)port;
	(void)queue;
	return 0;
}

static uint32_t
count(void *queue)
{
	(void)queue;
	return packets;
}

static struct rcd_lcores lcores;
static struct rcd_lcore lcore = { .lcores = &lcores };
static struct rcd_lport lport;
static struct rcd_txq txq;
static int fd;

static void
begin(void)
{
	static void *queue;

	fd = eventfd(0, EFD_NONBLOCK);
	packets = 0;
	rte_eth_fp_ops[0].rx_queue_count = count;
	rte_eth_fp_ops[0].rxq.data = &queue;
	lport = (struct rcd_lport){ .queues = 1, .txqs = &txq };
	lport.rx_waits[0] = (struct rcd_rx_wait){ RCD_RX_WAIT_INTERRUPT, fd };
	txq = (struct rcd_txq){ .lport = &lport };
	lcore.sleep_fd = epoll_create1(0);
	lcore.txqs[0] = &txq;
	lcore.txq_count = 1;
	rcd_rx_wait_join(&lcore, &lport);
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), lcores.sleeps_late ? TRIAL : WHOLE);
	CU_ASSERT(rcd_rx_wait_arm(&lcore));
}

static void
end(void)
{
	rcd_rx_wait_disarm(&lcore);
	rcd_rx_wait_leave(&lcore, &lport);
	close(lcore.sleep_fd);
	close(fd);
}

static void
sleeps(uint32_t times, uint32_t here, uint64_t nap_ns)
{
	packets = here;
	while (times-- > 0)
		rcd_rx_wait_woken(&lcore, NULL, 0, nap_ns);
}

/* After a few that come too late: others may have come between the end of a sleep and the look. */
static void
interrupts_that_do_not_come(void)
{
	begin();
	sleeps(7, 1, WHOLE);
	sleeps(100, 0, WHOLE);
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), WHOLE);
	sleeps(1, 1, WHOLE);
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), SHORT);
	/* For good, until the port is set up anew. */
	sleeps(100, 1, WHOLE);
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), SHORT);
	end();
	begin();
	end();
}

/* A sleep that was to be short says nothing, nor does one that something else ended. */
static void
interrupts_that_come(void)
{
	const struct epoll_event other = { .events = EPOLLIN, .data.fd = -1 };
	struct epoll_event ours;

	begin();
	ours = (struct epoll_event){ .events = EPOLLIN, .data.fd = fd };
	for (int round = 0; round < 10; round++) {
		sleeps(7, 1, WHOLE);
		rcd_rx_wait_woken(&lcore, &ours, 1, WHOLE);
		sleeps(100, 1, WHOLE - 1);
		for (int i = 0; i < 100; i++)
			rcd_rx_wait_woken(&lcore, &other, 1, WHOLE);
		CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), WHOLE);
	}
	end();
}

/* Sleeps that another port keeps short are none of its own. */
static void
sleeps_of_another_port(void)
{
	struct rcd_lport other = { .queues = 1 };
	struct rcd_txq blind = { .lport = &other, .blind = true };

	begin();
	lcore.txqs[1] = &blind;
	lcore.txq_count = 2;
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), SHORT);
	sleeps(100, 1, SHORT);
	CU_ASSERT_FALSE(txq.blind);
	lcore.txq_count = 1;
	end();
}

/* Who need not sleep does so for a moment, until one has come. */
static void
interrupts_of_who_need_not_sleep(void)
{
	struct epoll_event ours;

	lcores.sleeps_late = true;
	begin();
	ours = (struct epoll_event){ .events = EPOLLIN, .data.fd = fd };
	CU_ASSERT(rcd_rx_wait_longest(&lcore) > RCD_RX_WAIT_BLIND_NS);
	sleeps(7, 1, TRIAL);
	sleeps(100, 1, TRIAL - 1);
	CU_ASSERT(rcd_rx_wait_longest(&lcore) > RCD_RX_WAIT_BLIND_NS);
	rcd_rx_wait_woken(&lcore, &ours, 1, TRIAL);
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), WHOLE);
	sleeps(100, 1, WHOLE - 1);
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), WHOLE);
	end();
	begin();
	sleeps(8, 1, TRIAL);
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), RCD_RX_WAIT_BLIND_NS);
	end();
	/* What is known to wake it is not tried. */
	lport.rx_waits[0].sure = true;
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), SHORT);
	txq.blind = false;
	CU_ASSERT_EQUAL(rcd_rx_wait_longest(&lcore), WHOLE);
	lcores.sleeps_late = false;
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(interrupts_that_do_not_come),
		RCD_TEST(interrupts_that_come),
		RCD_TEST(sleeps_of_another_port),
		RCD_TEST(interrupts_of_who_need_not_sleep),
	};
	struct rcd_thread_place place = rcd_thread_enter(&lcore, 0);
	int status = rcd_tap_run("rx_wait", tests, sizeof(tests) / sizeof(tests[0]));

	rcd_thread_leave(place);
	return status;
}
