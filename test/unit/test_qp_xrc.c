/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a target of XRC delivers to the shared receive queue that a packet names, with the keys of
 * that queue's protection domain, and to no other; and a queue may go at any time. Method: one
 * situation each, some with packets that no initiator of ours would send.
 */
#include "rcd_aeth.h"
#include "rcd_tap.h"
#include "situation.h"

enum {
	OTHER_PD = SITUATION_PD + 1,
	FROM = 0x1000,
	TO = 0x8000,
};

static const uint8_t invalid_request = 0x61;
static const uint8_t remote_access = 0x62;
static const uint8_t remote_operation = 0x63;

static void
begin_xrc(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_XRC_SEND);

	begin(&init, NULL);
}

static struct sim_recv_queue *
queue(uint32_t xsrq)
{
	return &p.sim.nodes[1].xsrqs[xsrq].queue;
}

static bool
arrived(uint32_t from, uint32_t to, uint32_t len)
{
	return memcmp(p.sim.nodes[0].memory + from, p.sim.nodes[1].memory + to, len) == 0;
}

static bool
untouched(uint32_t at, uint32_t len)
{
	for (uint32_t i = at; i < at + len; i++) {
		if (p.sim.nodes[1].memory[i] != (uint8_t)(i * 11 + 1))
			return false;
	}
	return true;
}

/* Both ends are in ERR after this NAK, and the request completed with this status. */
static void
check_refused(uint8_t syndrome, enum rcd_wc_status status)
{
	CU_ASSERT_EQUAL(naks[syndrome], 1);
	CU_ASSERT_TRUE(completed(0, 0, 0, status));
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_ERR);
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
}

/* Covers: Annex A14 rcd_xrc_check() */
static void
a_queue_that_is_not_there(void)
{
	static const enum rcd_wr_opcode opcodes[] = { RCD_WR_SEND, RCD_WR_RDMA_WRITE,
		RCD_WR_RDMA_READ, RCD_WR_RDMA_WRITE_WITH_IMM, RCD_WR_FETCH_ADD };
	static const uint32_t flips[] = { 1, RCD_XRC_SRQS, 1u << 23 };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(opcodes); i++) {
		for (size_t k = 0; k < RCD_ARRAY_COUNT(flips); k++) {
			begin_xrc();
			post_recv(queue(0), 1, TO, 64);
			post(p.a, opcodes[i], FROM, 8, TO)->remote.srqn ^= flips[k];
			run();
			check_refused(invalid_request, RCD_WC_REM_INV_REQ_ERR);
			CU_ASSERT_TRUE(raised(1, RCD_EVENT_QP_REQ_ERR));
			CU_ASSERT_EQUAL(p.sim.nodes[1].cqe_count, 0);
			CU_ASSERT_TRUE(untouched(TO, 64));
			end();
		}
	}
}

/* What belongs to one queue's protection domain is out of reach through another. */
static void
keys_are_of_the_queue(void)
{
	static const enum rcd_wr_opcode opcodes[] = { RCD_WR_RDMA_WRITE, RCD_WR_RDMA_READ,
		RCD_WR_COMPARE_SWAP };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(opcodes); i++) {
		begin_xrc();
		uint32_t other = sim_xsrq_add(&p.sim.nodes[1], 1, OTHER_PD);

		post(p.a, opcodes[i], FROM, 8, TO)->remote.srqn = other;
		run();
		check_refused(remote_access, RCD_WC_REM_ACCESS_ERR);
		CU_ASSERT_TRUE(untouched(TO, 8));
		end();
	}
	/* Its receive work requests too. */
	begin_xrc();
	uint32_t other = sim_xsrq_add(&p.sim.nodes[1], 1, OTHER_PD);

	post_recv(queue(1), 1, TO, 64);
	post(p.a, RCD_WR_SEND, FROM, 8, 0)->remote.srqn = other;
	run();
	check_refused(remote_operation, RCD_WC_REM_OP_ERR);
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_LOC_PROT_ERR));
	CU_ASSERT_TRUE(untouched(TO, 64));
	end();
}

static void
each_message_to_its_queue(void)
{
	begin_xrc();
	uint32_t second = sim_xsrq_add(&p.sim.nodes[1], 1, SITUATION_PD);

	post_recv(queue(0), 1, TO, 4000);
	post_recv(queue(1), 1, TO + 8000, 64);
	queue(1)->wrs[0].wr_id = 77;
	post(p.a, RCD_WR_SEND_WITH_IMM, FROM, 40, 0)->remote.srqn = second;
	p.a->sq.wrs[0].imm = 5;
	post(p.a, RCD_WR_SEND, FROM + 100, 3000, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(1, 0, 77, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(1, 1, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqes[0].imm, 5);
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqes[1].qpn.val, p.b->init.qpn.val);
	CU_ASSERT_TRUE(arrived(FROM, TO + 8000, 40));
	CU_ASSERT_TRUE(arrived(FROM + 100, TO, 3000));
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_XRC_SEND_MIDDLE], 1);
	CU_ASSERT_EQUAL(rcd_qp_rq_done(p.b->qp), 0);
	end();
}

/* One queue's lack of receive work requests is not answered from another. */
static void
no_receive_of_another_queue(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_XRC_SEND);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.rnr_retry = 1;
	begin(&init, &attr);
	uint32_t second = sim_xsrq_add(&p.sim.nodes[1], 1, SITUATION_PD);

	post_recv(queue(0), 1, TO, 64);
	post(p.a, RCD_WR_SEND, FROM, 8, 0)->remote.srqn = second;
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_RNR_RETRY_EXC_ERR));
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_RTS);
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqe_count, 0);
	end();
}

static void
feed(struct rcd_pkt *pkt)
{
	pkt->payload_len = 1024;
	rcd_qp_rx(p.b->qp, pkt, p.sim.now_ns);
	rcd_qp_flush(p.b->qp, 8);
}

/* A message is for one queue from its first packet to its last. */
static void
the_queue_changes_within_a_message(void)
{
	begin_xrc();
	uint32_t second = sim_xsrq_add(&p.sim.nodes[1], 1, SITUATION_PD);
	struct rcd_pkt pkt = by_hand(RCD_OPCODE_XRC_SEND_FIRST, 0);

	post_recv(queue(0), 1, TO, 4000);
	post_recv(queue(1), 1, TO + 4000, 4000);
	feed(&pkt);
	pkt = by_hand(RCD_OPCODE_XRC_SEND_MIDDLE, 0);
	pkt.roce.xrceth.srqn = second;
	feed(&pkt);
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
	/* The receive that was taken is given back to whose it is, flushed. */
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqe_count, 1);
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_WR_FLUSH_ERR));
	CU_ASSERT_TRUE(untouched(TO + 4000, 4000));
	end();
}

/*
 * A queue goes in the middle of a message, and another may have come in its place: nothing of it is
 * written or completed any more.
 */
static void
the_queue_goes_within_a_message(void)
{
	for (int again = 0; again < 2; again++) {
		begin_xrc();
		struct sim_node *node = &p.sim.nodes[1];
		struct rcd_pkt pkt = by_hand(RCD_OPCODE_XRC_SEND_FIRST, 0);

		post_recv(queue(0), 1, TO, 4000);
		post_recv(queue(1), 1, TO + 4000, 4000);
		feed(&pkt);
		rcd_xrc_remove(&node->xrc, &node->xsrqs[0].srq);
		if (again) {
			sim_xsrq_add(node, 1, SITUATION_PD);
			rcd_xrc_remove(&node->xrc, &node->xsrqs[1].srq);
			rcd_xrc_add(
				&node->xrc, &node->xsrqs[1].srq, p.srqn, node->mrs, SITUATION_PD);
		}
		pkt = by_hand(RCD_OPCODE_XRC_SEND_MIDDLE, 0);
		feed(&pkt);
		CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
		CU_ASSERT_EQUAL(node->cqe_count, 0);
		CU_ASSERT_TRUE(untouched(TO + 1024, 6000));
		end();
	}
}

/* A READ is being answered when the queue goes whose keys it is read with. */
static void
the_queue_goes_before_an_answer(void)
{
	begin_xrc();
	struct sim_node *node = &p.sim.nodes[1];
	struct rcd_pkt pkt = by_hand(RCD_OPCODE_XRC_RDMA_READ_REQUEST, 0);
	struct rcd_tx_pkt out;

	pkt.payload_len = 0;
	pkt.roce.reth.dma_len = 4096;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, p.sim.now_ns), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, p.sim.now_ns, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_XRC_RDMA_READ_RESPONSE_FIRST);
	rcd_xrc_remove(&node->xrc, &node->xsrqs[0].srq);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, p.sim.now_ns, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_XRC_ACKNOWLEDGE);
	CU_ASSERT_EQUAL(out.roce.aeth.syndrome, remote_access);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, p.sim.now_ns, &out));
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
	end();
}

/* An answer that waits is of the queue that was asked, whichever is asked in between. */
static void
answers_of_two_queues(void)
{
	begin_xrc();
	struct rcd_mr_attr attr = {
		.pd = OTHER_PD,
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
		.len = SITUATION_MEMORY,
		.base = p.sim.nodes[1].memory,
	};
	uint32_t other = sim_xsrq_add(&p.sim.nodes[1], 1, OTHER_PD);
	struct rcd_send_wr *wr;
	struct rcd_key key;

	CU_ASSERT_EQUAL(rcd_mr_register(p.sim.nodes[1].mrs, &attr, &key), 0);
	post(p.a, RCD_WR_RDMA_READ, FROM, 5000, TO);
	wr = post(p.a, RCD_WR_RDMA_READ, FROM + 5000, 5000, TO + 5000);
	wr->remote.rkey = key;
	wr->remote.srqn = other;
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(arrived(FROM, TO, 10000));
	end();
}

/* A client wrote more elements than its queue's slots hold. */
static void
more_elements_than_the_queue_has(void)
{
	begin_xrc();
	struct sim_xsrq *xsrq = &p.sim.nodes[1].xsrqs[0];

	xsrq->srq.max_sge = 1;
	post_recv(queue(0), 1, TO, 64);
	queue(0)->sges[0][1] = queue(0)->sges[0][0];
	queue(0)->wrs[0].sge_count = 2;
	post(p.a, RCD_WR_SEND, FROM, 100, 0);
	run();
	check_refused(remote_operation, RCD_WC_REM_OP_ERR);
	CU_ASSERT_TRUE(untouched(TO, 64));
	end();
}

static void
too_long_for_the_receive(void)
{
	begin_xrc();
	post_recv(queue(0), 1, TO, 64);
	post(p.a, RCD_WR_SEND, FROM, 65, 0);
	run();
	check_refused(invalid_request, RCD_WC_REM_INV_REQ_ERR);
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_LOC_LEN_ERR));
	CU_ASSERT_TRUE(raised(1, RCD_EVENT_QP_LAST_WQE_REACHED));
	end();
}

static void
numbers_of_queues(void)
{
	static struct rcd_xrc_domain domain;
	static struct rcd_srq srqs[RCD_XRC_SRQS];
	uint32_t last = 0;

	for (uint32_t i = 0; i < RCD_XRC_SRQS; i++) {
		uint32_t number = rcd_xrc_number(&domain, i * 2654435761u);

		CU_ASSERT_TRUE(number != 0 && number >> RCD_XRC_SRQN_BITS == 0);
		CU_ASSERT_PTR_NULL(rcd_xrc_find(&domain, number));
		rcd_xrc_add(&domain, &srqs[i], number, NULL, 0);
		CU_ASSERT_PTR_EQUAL(rcd_xrc_find(&domain, number), &srqs[i]);
	}
	CU_ASSERT_EQUAL(rcd_xrc_number(&domain, 12345), 0);
	/* The only free slot: never the same number twice in a row. */
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t number;

		last = srqs[0].number;
		rcd_xrc_remove(&domain, &srqs[0]);
		CU_ASSERT_PTR_NULL(rcd_xrc_find(&domain, last));
		number = rcd_xrc_number(&domain, i * 40503u << 8);
		CU_ASSERT_TRUE(number != last && number >= RCD_XRC_SRQS);
		CU_ASSERT_EQUAL(number % RCD_XRC_SRQS, last % RCD_XRC_SRQS);
		rcd_xrc_add(&domain, &srqs[0], number, NULL, 0);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(a_queue_that_is_not_there),
		RCD_TEST(keys_are_of_the_queue),
		RCD_TEST(each_message_to_its_queue),
		RCD_TEST(no_receive_of_another_queue),
		RCD_TEST(the_queue_changes_within_a_message),
		RCD_TEST(the_queue_goes_within_a_message),
		RCD_TEST(the_queue_goes_before_an_answer),
		RCD_TEST(answers_of_two_queues),
		RCD_TEST(more_elements_than_the_queue_has),
		RCD_TEST(too_long_for_the_receive),
		RCD_TEST(numbers_of_queues),
	};

	return rcd_tap_run("qp_xrc", tests, RCD_ARRAY_COUNT(tests));
}
