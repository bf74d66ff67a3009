/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: an error costs its host a little at a time, whatever the queues hold: no call does more
 * than it was given, and each request still completes once and in order. Method: long queues, small
 * budgets, and every change of state in the middle of it.
 */
#include <errno.h>

#include "rcd_tap.h"
#include "situation.h"

#define COUNT      200
#define LOCAL_MOST 16 /**< local operations of a call */

static struct rcd_qp_attr error = { .state = RCD_QP_ERR };

static uint32_t
cqes(void)
{
	return p.sim.nodes[0].cqe_count;
}

static void
post_many(uint32_t sends, uint32_t recvs)
{
	for (uint32_t i = 0; i < sends; i++)
		post(p.a, RCD_WR_SEND, 0, 8, 0);
	for (uint32_t i = 0; i < recvs; i++)
		post_recv(&p.a->rq, 0, 0, 64);
}

/* A change of state to ERR, and a fault, hand over nothing themselves; each call its budget. */
static void
no_more_than_the_budget(void)
{
	static const uint32_t budgets[] = { 1, 7, 64 };
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	for (uint32_t i = 0; i < 2 * RCD_ARRAY_COUNT(budgets); i++) {
		uint32_t budget = budgets[i / 2];
		uint32_t calls = 0;

		begin(&init, NULL);
		post_many(COUNT, COUNT);
		if (i % 2 == 0) {
			CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &error, RCD_QP_ATTR_STATE), 0);
		} else {
			rcd_qp_fail(p.a->qp);
		}
		CU_ASSERT_EQUAL(cqes(), 0);
		CU_ASSERT_EQUAL(rcd_qp_flush(p.a->qp, 0), 0);
		for (; rcd_qp_flushing(p.a->qp); calls++) {
			uint32_t before = cqes();

			CU_ASSERT(rcd_qp_flush(p.a->qp, budget) <= budget);
			CU_ASSERT(cqes() - before <= budget);
		}
		CU_ASSERT(calls >= 2 * COUNT / budget);
		CU_ASSERT_EQUAL(cqes(), 2 * COUNT);
		for (uint32_t k = 0; k < cqes(); k++) {
			CU_ASSERT_TRUE(completed(0, k, k % COUNT, RCD_WC_WR_FLUSH_ERR));
			CU_ASSERT_EQUAL(p.sim.nodes[0].cqes[k].recv, k >= COUNT);
		}
		end();
	}
}

/* Requests that went out and were not answered come before those that were only posted. */
static void
begun_and_posted(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	p.sim.nodes[0].out.cut_ns = 1;
	post_many(10, 0);
	sim_kick(&p.sim);
	post_many(10, 1);
	rcd_qp_fail(p.a->qp);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), 0);
	for (uint32_t i = 0; rcd_qp_flushing(p.a->qp); i++) {
		/* More is posted while it goes on. */
		if (i == 3)
			post_many(1, 1);
		CU_ASSERT(rcd_qp_flush(p.a->qp, 1) <= 1);
	}
	CU_ASSERT_EQUAL(cqes(), 23);
	for (uint32_t k = 0; k < 21; k++)
		CU_ASSERT_TRUE(completed(0, k, k, RCD_WC_WR_FLUSH_ERR));
	CU_ASSERT_EQUAL(rcd_qp_sq_done(p.a->qp), 21);
	CU_ASSERT_EQUAL(rcd_qp_rq_done(p.a->qp), 2);
	end();
}

/* RESET forgets what was not flushed yet. */
static void
reset_in_the_middle(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr reset = { .state = RCD_QP_RESET };

	begin(&init, NULL);
	post_many(COUNT, COUNT);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &error, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_flush(p.a->qp, 5), 5);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_FALSE(rcd_qp_flushing(p.a->qp));
	CU_ASSERT_EQUAL(rcd_qp_flush(p.a->qp, 5), 0);
	CU_ASSERT_EQUAL(cqes(), 5);
	CU_ASSERT_EQUAL(rcd_qp_sq_done(p.a->qp), 0);
	end();
}

/*
 * Datagrams: the send queue waits in SQE, and goes on only behind all that was posted before.
 *
 * Covers: IBTA 10.3.1 qp_modify_check_flushed()
 */
static void
send_queue_error(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	struct rcd_qp_attr attr = { .state = RCD_QP_RTS };
	struct rcd_tx_pkt pkt;

	begin(&init, NULL);
	post_datagram(0, 8, 0x1234);
	p.a->sq.sges[0][0].lkey.val ^= 0x100;
	for (int i = 0; i < 20; i++)
		post_datagram(0, 8, 0x1234);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, p.sim.now_ns, &pkt));
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_SQE);
	CU_ASSERT_EQUAL(cqes(), 1);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), -EAGAIN);
	CU_ASSERT_EQUAL(rcd_qp_flush(p.a->qp, 15), 15);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), -EAGAIN);
	CU_ASSERT_EQUAL(rcd_qp_flush(p.a->qp, 15), 5);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	post_recv(&p.b->rq, 1, 0, 200);
	post_datagram(0, 8, 0x1234);
	run();
	CU_ASSERT_TRUE(completed(0, 21, 21, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_SUCCESS));
	end();
}

/* Local operations need no packet, and so no budget of packets bounds them. */
static void
local_operations(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_tx_pkt pkt;
	struct rcd_key mw;
	uint32_t calls = 0;
	uint32_t most = 0;

	begin(&init, NULL);
	CU_ASSERT_EQUAL(rcd_mw_alloc(p.sim.nodes[0].mrs, RCD_MR_WINDOW_2, SITUATION_PD, &mw), 0);
	for (uint32_t i = 0; i < COUNT; i += 2) {
		struct rcd_send_wr *wr = post(p.a, RCD_WR_BIND_MW, 0, 0, 0);

		wr->bind.mw = mw;
		wr->bind.new_rkey.val = i / 2 + 1;
		wr->bind.mr = p.key[0];
		wr->bind.len = 100;
		mw.val = (mw.val & ~UINT32_C(0xff)) | (i / 2 + 1);
		post(p.a, RCD_WR_LOCAL_INV, 0, 0, 0)->imm = mw.val;
	}
	do {
		uint32_t before = cqes();

		CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, p.sim.now_ns, &pkt));
		most = cqes() - before > most ? cqes() - before : most;
		calls++;
	} while (rcd_qp_tx_paused(p.a->qp));
	CU_ASSERT(most <= LOCAL_MOST);
	CU_ASSERT(calls >= COUNT / LOCAL_MOST);
	CU_ASSERT_EQUAL(cqes(), COUNT);
	for (uint32_t i = 0; i < COUNT; i++)
		CU_ASSERT_TRUE(completed(0, i, i, RCD_WC_SUCCESS));
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S8 a flush hands over no more than its budget", no_more_than_the_budget },
		{ "S8 a flush in pieces keeps the order", begun_and_posted },
		{ "S8 RESET in the middle of a flush", reset_in_the_middle },
		{ "S8 a send queue goes on when it is flushed", send_queue_error },
		{ "S8 local operations stop at their share", local_operations },
	};

	return rcd_tap_run("qp_flush", tests, sizeof(tests) / sizeof(tests[0]));
}
