/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a program's loops on the workers of EAL post and poll by themselves, while another thread
 * makes things, changes them and takes them away.
 * Method: two lcores, each with an open device of its own, whose queue pairs write mbufs into each
 * other's memory; in builds for debugging each call is checked to be on its lcore.
 */
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "local_rig.h"
#include "rcd_clock.h"
#include "rcd_context.h"
#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_engine_priv.h"
#include "rcd_limits.h"
#include "rcd_number.h"
#include "rcd_poll.h"
#include "rcd_rss.h"
#include "rcd_tap.h"
#include "rcd_wr.h"

#define MBUFS  511
#define LEN    1800
#define ENOUGH 2000 /**< WRITEs of each lcore */

/* A loop, and what it works on while it is to. */
struct worker {
	struct rcd_lcore *lcore;
	struct side *side, *peer;
	struct rte_mempool *mbufs;
	struct rcd_local_pool *pool;
	bool works; /**< the control thread says so... */
	bool seen;  /**< ...and the loop has seen it */
	bool ended; /**< it stopped, and touches nothing more */
	uint32_t posted, completed, refused;
	uint32_t failed; /**< status of the first completion that did */
};

static struct side a, b;
static struct rte_mempool *pools[2];
static struct worker workers[2];

/* As many as there is room for, rung for once. Every third is told of. */
static void
worker_post(struct worker *worker)
{
	struct side *side = worker->side;
	uint32_t posted = 0;
	int err = 0;

	while (err == 0) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(worker->mbufs);
		struct rcd_send_wr wr;
		struct rcd_sge sge;

		if (mbuf == NULL)
			break;
		wr = side_wr(side, worker->peer, RCD_WR_RDMA_WRITE, &sge, 0, 0);
		wr.flags = worker->posted % 3 == 0 ? RCD_SEND_SIGNALED : 0;
		memset(rte_pktmbuf_append(mbuf, LEN), 'x', LEN);
		if (rcd_local_pool_sges(worker->pool, mbuf, &sge, 1) == 1)
			err = rcd_local_post_send(side->qp, &wr, mbuf);
		else
			err = -1;
		if (err != 0)
			rte_pktmbuf_free(mbuf);
		posted += err == 0;
		worker->posted += err == 0;
	}
	if (posted > 0)
		rcd_local_ring(side->qp);
	if (err == -ENODEV)
		__atomic_store_n(&worker->refused, worker->refused + 1, __ATOMIC_RELAXED);
}

static void
worker_poll(struct worker *worker)
{
	struct rcd_cq_slot slots[32];
	int count = rcd_local_poll_cq(worker->side->cq, slots, 32);

	for (int i = 0; i < count; i++)
		if (slots[i].status != RCD_WC_SUCCESS && worker->failed == 0)
			__atomic_store_n(&worker->failed, slots[i].status, __ATOMIC_RELAXED);
	if (count > 0)
		__atomic_store_n(
			&worker->completed, worker->completed + (uint32_t)count, __ATOMIC_RELAXED);
}

static int
worker_loop(void *arg)
{
	struct worker *worker = arg;

	while (!rcd_lcore_stopping(worker->lcore)) {
		bool works = __atomic_load_n(&worker->works, __ATOMIC_ACQUIRE);

		if (works) {
			worker_post(worker);
			worker_poll(worker);
		}
		__atomic_store_n(&worker->seen, works, __ATOMIC_RELEASE);
		if (rcd_lcore_poll(worker->lcore, rcd_clock_ns(), RCD_BURST_MAX) == 0)
			sched_yield();
	}
	__atomic_store_n(&worker->ended, true, __ATOMIC_RELEASE);
	return 0;
}

static void
worker_set(bool works)
{
	for (int i = 0; i < 2; i++)
		__atomic_store_n(&workers[i].works, works, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		LOCAL_UNTIL(__atomic_load_n(&workers[i].seen, __ATOMIC_ACQUIRE) == works);
}

/* Mbufs that somebody has. */
static uint32_t
out(void)
{
	return rte_mempool_in_use_count(pools[0]) + rte_mempool_in_use_count(pools[1]);
}

/* Each end on an lcore of its own. */
static void
begin(void)
{
	local_begin(NULL);
	memset(workers, 0, sizeof(workers));
	CU_ASSERT_EQUAL_FATAL(rcd_engine_lcore_count(engine), 2);
	for (uint32_t i = 0; i < 2; i++) {
		workers[i].lcore = rcd_engine_lcore(engine, i);
		workers[i].mbufs = pools[i];
		CU_ASSERT_EQUAL_FATAL(rcd_engine_launch(engine, i, worker_loop, &workers[i]), 0);
	}
	side_pair(&a, &b, RCD_QP_RC);
	CU_ASSERT_NOT_EQUAL_FATAL(rcd_local_lcore(a.local), rcd_local_lcore(b.local));
	for (uint32_t i = 0; i < 2; i++) {
		struct worker *worker = &workers[i];

		worker->side = rcd_local_lcore(a.local) == i ? &a : &b;
		worker->peer = worker->side == &a ? &b : &a;
		CU_ASSERT_EQUAL_FATAL(rcd_local_pool_reg(worker->side->local, worker->side->pd,
					      pools[i], 0, &worker->pool),
			0);
	}
}

static void
end(void)
{
	for (int i = 0; i < 2; i++)
		rcd_local_pool_dereg(workers[i].pool);
	local_audit();
	side_close(&a);
	side_close(&b);
	CU_ASSERT_EQUAL(out(), 0);
	local_end();
	for (int i = 0; i < 2; i++)
		CU_ASSERT(__atomic_load_n(&workers[i].ended, __ATOMIC_ACQUIRE));
}

static uint32_t
completed(const struct worker *worker)
{
	return __atomic_load_n(&worker->completed, __ATOMIC_RELAXED);
}

static void
loops_transfer(void)
{
	struct rcd_ctrl_qp_attr attr;
	struct rcd_local_qp *qp;

	begin();
	worker_set(true);
	while (completed(&workers[0]) < ENOUGH / 3 || completed(&workers[1]) < ENOUGH / 3) {
		/* Others come and go beside them. */
		CU_ASSERT_EQUAL_FATAL(side_qp(&a, RCD_QP_RC, &qp), 0);
		CU_ASSERT_EQUAL(rcd_local_qp_query(a.qp, &attr), 0);
		CU_ASSERT_EQUAL(attr.state, RCD_QP_RTS);
		rcd_local_qp_destroy(qp);
		local_turn();
		usleep(100);
	}
	worker_set(false);
	LOCAL_UNTIL(out() == 0);
	/* What the lcores wrote is there for this thread when they have answered it. */
	CU_ASSERT_EQUAL(rcd_local_qp_query(a.qp, &attr), 0);
	CU_ASSERT_EQUAL(rcd_local_qp_query(b.qp, &attr), 0);
	for (int i = 0; i < 2; i++) {
		if (workers[i].failed != 0)
			printf("# a WRITE completed with %u\n", workers[i].failed);
		CU_ASSERT_EQUAL(workers[i].failed, 0);
		for (uint32_t k = 0; k < LEN; k++)
			CU_ASSERT_FATAL(workers[i].peer->memory[k] == 'x');
	}
	end();
}

static void
device_goes_meanwhile(void)
{
	begin();
	worker_set(true);
	LOCAL_UNTIL(completed(&workers[0]) > 100 && completed(&workers[1]) > 100);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "w1"), 0);
	for (int i = 0; i < 2; i++)
		LOCAL_UNTIL(__atomic_load_n(&workers[i].refused, __ATOMIC_RELAXED) > 10);
	worker_set(false);
	CU_ASSERT_EQUAL(out(), 0);
	end();
}

static void
engine_goes_meanwhile(void)
{
	begin();
	worker_set(true);
	LOCAL_UNTIL(completed(&workers[0]) > 100 && completed(&workers[1]) > 100);
	local_end();
	CU_ASSERT_EQUAL(out(), 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(__atomic_load_n(&workers[i].ended, __ATOMIC_ACQUIRE));
		CU_ASSERT(workers[i].refused > 0);
		rcd_local_pool_dereg(workers[i].pool);
	}
	side_close(&a);
	side_close(&b);
}

static bool
ended(const struct worker *worker)
{
	return __atomic_load_n(&worker->ended, __ATOMIC_ACQUIRE);
}

/* Launch a loop once more. @return whether it makes its rounds, and did not end at once */
static bool
launch_again(uint32_t index)
{
	struct worker *worker = &workers[index];

	worker->ended = false;
	worker->works = true;
	worker->seen = false;
	CU_ASSERT_EQUAL_FATAL(rcd_engine_launch(engine, index, worker_loop, worker), 0);
	LOCAL_UNTIL(__atomic_load_n(&worker->seen, __ATOMIC_ACQUIRE) || ended(worker));
	return !ended(worker);
}

/* The loops end, this thread polls for them, and they go on from there. */
static __attribute__((unused)) void
loops_run_again(void)
{
	uint32_t before[2];
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;
	bool run = true;

	begin();
	worker_set(true);
	LOCAL_UNTIL(completed(&workers[0]) > 100 && completed(&workers[1]) > 100);
	worker_set(false);
	rcd_engine_end_loops(engine);
	local_polls = true;
	LOCAL_UNTIL(out() == 0);
	while (rcd_local_poll_cq(a.cq, &slot, 1) > 0)
		CU_ASSERT_EQUAL(slot.status, RCD_WC_SUCCESS);
	bytes_fill(a.memory, 5000, 4);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, 5000);
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), 0);
	rcd_local_ring(a.qp);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(bytes_filled(b.memory, 5000, 4));
	local_polls = false;
	for (uint32_t i = 0; i < 2 && run; i++) {
		CU_ASSERT(ended(&workers[i]));
		before[i] = workers[i].completed;
		run = launch_again(i);
	}
	CU_ASSERT(run);
	if (run) {
		for (uint32_t i = 0; i < 2; i++)
			LOCAL_UNTIL(completed(&workers[i]) > before[i] + 100);
		worker_set(false);
	} else {
		/* Nobody waits for an lcore that has no loop. */
		rcd_engine_end_loops(engine);
		local_polls = true;
	}
	LOCAL_UNTIL(out() == 0);
	end();
	local_polls = false;
}

/* The program says where. */
static void
lcores_are_chosen(void)
{
	struct rcd_local *local;

	local_begin(NULL);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(rcd_local_open(engine, "w0", i, &local), 0);
		CU_ASSERT_EQUAL(rcd_local_lcore(local), (uint32_t)i);
		rcd_local_close(local);
	}
	CU_ASSERT_EQUAL(rcd_local_open(engine, "w0", 2, &local), -EINVAL);
	local_end();
}

/* Packets that come to the other lcore are handed over: the program polls it here. */
static void
stays_where_it_is(void)
{
	struct rcd_dev_conf conf = { .attach = RCD_ATTACH_WIRE,
		.name = "x0",
		.target = "x1",
		.no_shortcut = true,
		.addr_count = 1 };
	const struct rcd_context *context;
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;
	struct rcd_rss *rss;
	char error[200];
	uint32_t here;

	local_polls = true;
	local_begin(NULL);
	CU_ASSERT_EQUAL_FATAL(rcd_addr_parse("10.9.1.1/24", &conf.addrs[0]), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_engine_dev_add(engine, &conf, error, sizeof(error)), 0);
	memcpy(conf.name, "x1", 3);
	memcpy(conf.target, "x0", 3);
	CU_ASSERT_EQUAL_FATAL(rcd_addr_parse("10.9.1.2/24", &conf.addrs[0]), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_engine_dev_add(engine, &conf, error, sizeof(error)), 0);
	side_open(&b, "x1", RCD_QP_RC);
	side_open(&a, "x0", RCD_QP_RC);
	here = rcd_local_lcore(a.local);
	/* As a NIC would that has all packets come to the other one. */
	rss = &rcd_dev_find(&engine->ports, "x0")->steer.rss;
	*rss = (struct rcd_rss){ .types = RTE_ETH_RSS_NONFRAG_IPV4_UDP,
		.reta_size = 1,
		.key_len = 40,
		.reta = { (uint16_t)!here } };
	side_join(&a, &b);
	context = LIST_FIRST(&engine->contexts.list);
	CU_ASSERT_PTR_EQUAL(context->client.lcore, rcd_engine_lcore(engine, here));
	bytes_fill(a.memory, 5000, 3);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, 5000);
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), 0);
	rcd_local_ring(a.qp);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(bytes_filled(b.memory, 5000, 3));
	side_close(&a);
	side_close(&b);
	local_end();
	local_polls = false;
}

static const struct rcd_test tests[] = {
	RCD_TEST(loops_transfer),
	RCD_TEST(device_goes_meanwhile),
	RCD_TEST(engine_goes_meanwhile),
#ifndef __SANITIZE_THREAD__ /* EAL's wait for a worker is not seen there: it is no race */
	RCD_TEST(loops_run_again),
#endif
	RCD_TEST(lcores_are_chosen),
	RCD_TEST(stays_where_it_is),
};

int
main(void)
{
	static const char *const names[] = { "first", "second" };

	/* An lcore that a busy machine keeps waiting is no peer that has gone. */
	side_timeout = 19;
	local_eal("0@0,1@(0-1),2@(0-1)");
	for (int i = 0; i < 2; i++) {
		pools[i] = rte_pktmbuf_pool_create(
			names[i], MBUFS, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
		if (pools[i] == NULL)
			return 1;
	}
	return rcd_tap_run("local_lcore", tests, sizeof(tests) / sizeof(tests[0]));
}
