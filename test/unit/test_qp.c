/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what queue pairs promise one by one: retries, errors, events, drains, the unreliable
 * services. Method: two nodes in the simulator, one situation each, packets watched on the way.
 */
#include <errno.h>
#include <stdio.h>

#include "rcd_aeth.h"
#include "rcd_bring_up.h"
#include "rcd_tap.h"
#include "rcd_timer.h"
#include "situation.h"

/* Covers: IBTA 9.7.6.1.3 rcd_comp_retry() */
static void
seven_retries_are_seven(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	for (uint8_t retries = 0; retries <= 7; retries++) {
		struct rcd_qp_attr attr = { 0 };

		memset(&p.sim, 0, sizeof(p.sim));
		attr = sim_attr(&p.sim);
		attr.retry_cnt = retries;
		attr.timeout = 7; /* before any probe */
		begin(&init, &attr);
		p.sim.nodes[0].out.cut_ns = 1;
		post(p.a, RCD_WR_SEND, 0, 8, 0);
		run();
		CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_SEND_ONLY], retries + 1u);
		CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_RETRY_EXC_ERR));
		CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_ERR);
		CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRY_EXCEEDED_ERR), 1);
		/* 4.096 us * 2^timeout each. */
		CU_ASSERT_EQUAL(p.sim.now_ns - 1000, (retries + 1u) * rcd_ack_timeout_ns(7));
		end();
	}
}

/* Covers: IBTA 9.7.5.2.8 resp_check_resources() */
static void
rnr_retries_and_their_timer(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.rnr_retry = 3;
	attr.min_rnr_timer = 12; /* 0.64 ms */
	begin(&init, &attr);
	post(p.a, RCD_WR_SEND, 0, 8, 0);
	run();
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_SEND_ONLY], 4);
	CU_ASSERT_EQUAL(naks[0x2c], 4);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_RNR_RETRY_EXC_ERR));
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RCVD_RNR_ERR), 4);
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_SEND_RNR_ERR), 4);
	/* Not a timer tick more than asked for: the rest is the way there and back. */
	CU_ASSERT_EQUAL(gap_ns, 640000 + 2 * 5000);
	end();
}

/*
 * Covers: IBTA 9.7.3 req_set_ack_req()
 * Covers: IBTA 9.7.5.1 comp_rx_acknowledge()
 */
static void
one_acknowledge_covers_a_burst(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	for (uint32_t i = 0; i < 20; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 100 * i, 64, 100 * i);
	run();
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_WRITE_ONLY], 20);
	CU_ASSERT_EQUAL(sent[1][RCD_OPCODE_RC_ACKNOWLEDGE], 1);
	CU_ASSERT_EQUAL(ack_reqs, 1);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 20);
	CU_ASSERT_EQUAL(rcd_qp_messages(p.b->qp), 20);
	CU_ASSERT_EQUAL(rcd_qp_messages(p.a->qp), 0);
	end();
}

/* Frames of node 0 that are out before node 1 has answered anything. */
static uint32_t early_sends;

static void
watch_early(
	const struct sim *sim, const struct sim_node *from, const struct rcd_tx_pkt *pkt, bool lost)
{
	watch(sim, from, pkt, lost);
	if (from->number == 1)
		early_sends =
			early_sends == UINT32_MAX ? sent[0][RCD_OPCODE_RC_SEND_ONLY] : early_sends;
}

static void
a_big_read_does_not_stall_what_follows(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	early_sends = UINT32_MAX;
	p.sim.trace = watch_early;
	post(p.a, RCD_WR_RDMA_READ, 0, 1 << 20, 0); /* 1024 PSNs, twice the window */
	for (uint32_t i = 0; i < 30; i++) {
		post(p.a, RCD_WR_SEND, 0, 8, 0);
		post_recv(&p.b->rq, 1, (1 << 20) + 64 * i, 64);
	}
	run();
	CU_ASSERT_EQUAL(early_sends, 30);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 31);
	CU_ASSERT_EQUAL(rcd_qp_messages(p.b->qp), 31);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[0].memory, p.sim.nodes[1].memory, 1 << 20), 0);
	end();
}

static void
fence_waits_for_reads(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	early_sends = UINT32_MAX;
	p.sim.trace = watch_early;
	post(p.a, RCD_WR_RDMA_READ, 0, 64, 0);
	post(p.a, RCD_WR_SEND, 0, 8, 0)->flags |= RCD_SEND_FENCE;
	post_recv(&p.b->rq, 1, 4096, 64);
	run();
	CU_ASSERT_EQUAL(early_sends, 0);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 2);
	end();
}

/* Covers: IBTA 9.7.4.1 resp_check_resources() */
static void
no_more_reads_than_agreed(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.max_rd_atomic = 2;
	attr.max_dest_rd_atomic = 2;
	begin(&init, &attr);
	early_sends = UINT32_MAX;
	for (uint32_t i = 0; i < 10; i++)
		post(p.a, RCD_WR_RDMA_READ, 64 * i, 64, 0);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 10);
	CU_ASSERT_TRUE(completed(0, 9, 9, RCD_WC_SUCCESS));
	end();

	/* A requester that does not keep to it is refused at the first one too many. */
	attr.max_rd_atomic = 3;
	begin(&init, &attr);
	for (uint32_t i = 0; i < 3; i++)
		post(p.a, RCD_WR_RDMA_READ, 64 * i, 64, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(0, 2, 2, RCD_WC_REM_INV_REQ_ERR));
	CU_ASSERT_TRUE(raised(1, RCD_EVENT_QP_REQ_ERR));
	end();
}

/* Found with perftest and the kernel's rxe, which offers 128. */
static void
more_responder_resources(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr reset = { .state = RCD_QP_RESET }, attr;
	static uint64_t mem[2][512];

	begin(&init, NULL);
	attr = sim_attr(&p.sim);
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 60;
	CU_ASSERT_TRUE(rcd_qp_resources_size(60) <= sizeof(mem[0]));
	CU_ASSERT_EQUAL(rcd_qp_set_resources(p.b->qp, mem[1], 60), -EINVAL); /* in RTS */
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.b->qp, &reset, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_set_resources(p.b->qp, mem[1], 0), -EINVAL);
	CU_ASSERT_EQUAL(rcd_qp_set_resources(p.b->qp, mem[1], 129), -EINVAL);
	CU_ASSERT_EQUAL(rcd_qp_set_resources(p.b->qp, mem[1], 60), 0);
	CU_ASSERT_EQUAL(rcd_qp_set_resources(p.a->qp, mem[0], 60), 0);
	sim_connect(p.a, p.b, &attr, &attr);
	p.sim.nodes[1].out.gbps = 1;
	for (uint32_t i = 0; i < 64; i++)
		post(p.a, RCD_WR_RDMA_READ, 64 * i, 64, 64 * i);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 64);
	CU_ASSERT_TRUE(completed(0, 63, 63, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[0].memory, p.sim.nodes[1].memory, 64 * 64), 0);
	end();
}

static void
a_gap_in_responses_is_noticed_at_once(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.timeout = 20; /* 4.3 s */
	begin(&init, &attr);
	p.sim.nodes[1].out.loss_mask = 1 << 3;
	p.sim.nodes[1].out.loss_mask_frames = 16;
	post(p.a, RCD_WR_RDMA_READ, 0, 16 * 1024, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(last_ns < 1000000);
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_READ_REQUEST], 2);
	/* The missing one alone comes again. */
	CU_ASSERT_EQUAL(sent[1][RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST] +
			sent[1][RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE] +
			sent[1][RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST],
		16);
	CU_ASSERT_EQUAL(sent[1][RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY], 1);
	end();
}

/* Found by net_impair: what was under way made the requester ask again and again. */
static void
a_gap_in_a_long_read_is_asked_for_once(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	p.sim.nodes[1].out.gbps = 10;
	p.sim.nodes[1].out.loss_mask = 1 << 3;
	p.sim.nodes[1].out.loss_mask_frames = 16;
	post(p.a, RCD_WR_RDMA_READ, 0, 200 * 1024, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_READ_REQUEST], 2);
	end();
}

static void
a_lost_nak_is_sent_again(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.timeout = 20;
	begin(&init, &attr);
	p.sim.nodes[0].out.gbps = 10;
	p.sim.nodes[0].out.loss_mask = 1 << 1; /* the second request */
	p.sim.nodes[0].out.loss_mask_frames = 2;
	p.sim.nodes[1].out.loss_mask = 1; /* and the NAK for it */
	p.sim.nodes[1].out.loss_mask_frames = 1;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 200 * 1024, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(naks[0x60] >= 2);
	CU_ASSERT_TRUE(last_ns < 4000000);
	end();
}

/* A request that the peer refuses: status here, event and receive status there. */
static void
check_refused(enum rcd_wc_status status, enum rcd_event event, enum rcd_wc_status recv_status)
{
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, status));
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_WR_FLUSH_ERR));
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_ERR);
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
	if (event != 0) {
		CU_ASSERT_TRUE(raised(1, event));
	}
	CU_ASSERT_TRUE(completed(1, 0, 0, recv_status));
	end();
}

/*
 * Covers: IBTA 9.4.1 resp_execute_send()
 * Covers: IBTA 9.7.4.1 resp_check_offered(), resp_check_remote(), resp_refuse()
 */
static void
naks_and_what_they_mean(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
#define REFUSED(status, event, recv_status, recv_len, ...)                                         \
	do {                                                                                       \
		begin(&init, &attr);                                                               \
		post_recv(&p.b->rq, 1, 0, recv_len);                                               \
		__VA_ARGS__;                                                                       \
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);                                             \
		check_refused(status, event, recv_status);                                         \
	} while (0)
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR, RCD_WC_WR_FLUSH_ERR, 64,
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0)->remote.rkey.val ^= 0x100);
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR, RCD_WC_WR_FLUSH_ERR, 64,
		post(p.a, RCD_WR_RDMA_WRITE, 0, 5000, SITUATION_MEMORY - 4999));
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR, RCD_WC_WR_FLUSH_ERR, 64,
		post(p.a, RCD_WR_RDMA_READ, 0, 8, SITUATION_MEMORY));
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR, RCD_WC_WR_FLUSH_ERR, 64,
		post(p.a, RCD_WR_FETCH_ADD, 0, 8, SITUATION_MEMORY + 8));
	REFUSED(RCD_WC_REM_INV_REQ_ERR, 0, RCD_WC_LOC_LEN_ERR, 64,
		post(p.a, RCD_WR_SEND, 0, 65, 0));
	REFUSED(RCD_WC_REM_OP_ERR, 0, RCD_WC_LOC_PROT_ERR, 64, p.b->rq.sges[0][0].lkey.val ^= 0x100;
		post(p.a, RCD_WR_SEND, 0, 8, 0));
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR, RCD_WC_WR_FLUSH_ERR, 64,
		post(p.a, RCD_WR_SEND_WITH_INV, 0, 8, 0)->imm = 12345);
	attr.access = 0;
	REFUSED(RCD_WC_REM_INV_REQ_ERR, RCD_EVENT_QP_REQ_ERR, RCD_WC_WR_FLUSH_ERR, 64,
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0));
	REFUSED(RCD_WC_REM_INV_REQ_ERR, RCD_EVENT_QP_REQ_ERR, RCD_WC_WR_FLUSH_ERR, 64,
		post(p.a, RCD_WR_RDMA_READ, 0, 8, 0));
	REFUSED(RCD_WC_REM_INV_REQ_ERR, RCD_EVENT_QP_REQ_ERR, RCD_WC_WR_FLUSH_ERR, 64,
		post(p.a, RCD_WR_COMPARE_SWAP, 0, 8, 0));
#undef REFUSED
}

/*
 * Errors of the own side leave the wire alone; what came before completes first.
 *
 * Covers: IBTA 10.6.7, 10.8.3 rcd_req_do_local()
 * Covers: IBTA 10.8.2 req_check_wr()
 */
static void
local_errors(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

#define LOCAL(status, ...)                                                                         \
	do {                                                                                       \
		begin(&init, NULL);                                                                \
		post(p.a, RCD_WR_RDMA_WRITE, 0, 3000, 0);                                          \
		__VA_ARGS__;                                                                       \
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);                                             \
		run();                                                                             \
		CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));                                \
		CU_ASSERT_TRUE(completed(0, 1, 1, status));                                        \
		CU_ASSERT_TRUE(completed(0, 2, 2, RCD_WC_WR_FLUSH_ERR));                           \
		CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_RTS);                                \
		end();                                                                             \
	} while (0)
	LOCAL(RCD_WC_LOC_PROT_ERR, post(p.a, RCD_WR_SEND, 0, 8, 0);
		p.a->sq.sges[1][0].lkey.val ^= 0x100);
	LOCAL(RCD_WC_LOC_PROT_ERR, post(p.a, RCD_WR_RDMA_WRITE, SITUATION_MEMORY - 2000, 4000, 0));
	LOCAL(RCD_WC_LOC_QP_OP_ERR, post(p.a, RCD_WR_SEND, 0, 8, 0)->opcode = 77);
	LOCAL(RCD_WC_LOC_QP_OP_ERR, post(p.a, RCD_WR_SEND, 0, 8, 0)->sge_count = 33);
	LOCAL(RCD_WC_LOC_LEN_ERR, post(p.a, RCD_WR_COMPARE_SWAP, 0, 7, 0));
	LOCAL(RCD_WC_LOC_QP_OP_ERR, post(p.a, RCD_WR_FETCH_ADD, 0, 8, 4));
	LOCAL(RCD_WC_LOC_QP_OP_ERR, post(p.a, RCD_WR_LOCAL_INV, 0, 0, 0)->imm = 4711);
	LOCAL(RCD_WC_MW_BIND_ERR, post(p.a, RCD_WR_BIND_MW, 0, 0, 0)->bind.mw.val = 4711);
#undef LOCAL
}

/*
 * Covers: IBTA 10.3.1, 11.4.2 rcd_qp_flush()
 * Covers: IBTA 11.4.2 rcd_qp_complete_send()
 */
static void
flush_is_complete_and_in_order(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr = { .state = RCD_QP_ERR };

	begin(&init, NULL);
	for (uint32_t i = 0; i < 5; i++) {
		post(p.a, RCD_WR_SEND, 0, 8, 0)->flags = 0;
		post_recv(&p.a->rq, 0, 0, 64);
	}
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_flush(p.a->qp, 100), 10);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 10);
	for (uint32_t i = 0; i < 10; i++) {
		CU_ASSERT_TRUE(completed(0, i, i % 5, RCD_WC_WR_FLUSH_ERR));
		CU_ASSERT_EQUAL(p.sim.nodes[0].cqes[i].recv, i >= 5);
		CU_ASSERT_TRUE(p.sim.nodes[0].cqes[i].solicited);
	}
	/* What is posted later is flushed too. */
	post(p.a, RCD_WR_SEND, 0, 8, 0);
	post_recv(&p.a->rq, 0, 0, 64);
	rcd_qp_posted(p.a->qp);
	CU_ASSERT_EQUAL(rcd_qp_flush(p.a->qp, 100), 2);
	CU_ASSERT_TRUE(completed(0, 10, 5, RCD_WC_WR_FLUSH_ERR));
	CU_ASSERT_TRUE(completed(0, 11, 5, RCD_WC_WR_FLUSH_ERR));
	end();
}

static void
drain(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr = { .state = RCD_QP_SQD, .sqd_notify = true };
	struct rcd_tx_pkt pkt;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 3 * 1024, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	/* One packet is out when the drain begins: its message is finished, the next not begun. */
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, p.sim.now_ns, &pkt));
	CU_ASSERT_EQUAL(
		rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQD_NOTIFY), 0);
	CU_ASSERT_FALSE(raised(0, RCD_EVENT_SQ_DRAINED));
	run();
	CU_ASSERT_TRUE(raised(0, RCD_EVENT_SQ_DRAINED));
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 1);
	attr.state = RCD_QP_RTS;
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 2);
	end();
}

/* Covers: IBTA 10.8.2 req_check_wr() */
static void
send_errors_of_datagrams(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	struct rcd_qp_attr attr = { .state = RCD_QP_RTS };

	begin(&init, NULL);
	post_recv(&p.b->rq, 1, 0, 200);
	post_datagram(0, 8, 0x1234);
	p.a->sq.sges[0][0].lkey.val ^= 0x100;
	post_datagram(0, 8, 0x1234);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_LOC_PROT_ERR));
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_WR_FLUSH_ERR));
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_SQE);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	post_datagram(0, 8, 0x1234);
	run();
	CU_ASSERT_TRUE(completed(0, 2, 2, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_SUCCESS));
	/* Longer than the port's MTU; an address handle that is not there. */
	post_datagram(0, 1025, 0x1234);
	run();
	CU_ASSERT_TRUE(completed(0, 3, 3, RCD_WC_LOC_LEN_ERR));
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	post_datagram(0, 8, 0x1234)->ud.ah = 99;
	run();
	CU_ASSERT_TRUE(completed(0, 4, 4, RCD_WC_LOC_QP_OP_ERR));
	end();
}

/* Covers: IBTA 9.8 rcd_ud_rx() */
static void
datagrams(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	const uint8_t *grh;

	begin(&init, NULL);
	post_recv(&p.b->rq, 1, 0, 200);
	post_datagram(5000, 100, 0x1234);
	run();
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqes[0].byte_len, 140);
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqes[0].src_qpn.val, p.a->init.qpn.val);
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqes[0].flags, RCD_WC_GRH);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[1].memory + 40, p.sim.nodes[0].memory + 5000, 100), 0);
	/* The IPv4 header in the last 20 of the 40 bytes. */
	grh = p.sim.nodes[1].memory;
	CU_ASSERT_EQUAL(grh[0] | grh[19], 0);
	CU_ASSERT_EQUAL(grh[20], 0x45);
	CU_ASSERT_EQUAL(grh[35], 1); /* from 10.77.0.1 */

	/* Wrong Q_Key, no receive request: dropped, counted; the sender sees success. */
	post_datagram(0, 8, 0x4321);
	run();
	post_datagram(0, 8, 0x1234);
	run();
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_RX_DROP_QKEY), 1);
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_RX_DROP_NO_RECV), 1);
	CU_ASSERT_TRUE(completed(0, 2, 2, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(rcd_qp_messages(p.b->qp), 1);
	end();
}

static void
multicast(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	struct rcd_mcast_table *table = rcd_mcast_table_create(2);
	struct rcd_mcast_membership members[2];
	struct rcd_gid groups[3];
	struct rcd_pkt pkt = { .payload_len = 4, .payload = (const uint8_t *)"data" };
	uint8_t ip[RCD_IPV4_LEN] = { 0x45 };

	begin(&init, NULL);
	for (uint8_t i = 0; i < 3; i++)
		groups[i] = rcd_gid_from_ipv4((const uint8_t[]){ 239, 1, 1, i });
	for (uint32_t i = 0; i < 2; i++)
		members[i] =
			(struct rcd_mcast_membership){ i == 0 ? &members[1] : NULL, groups[i] };
	CU_ASSERT_EQUAL(rcd_mcast_attach(table, &groups[0], p.a->qp), 0);
	CU_ASSERT_EQUAL(rcd_mcast_attach(table, &groups[0], p.a->qp), 0);
	CU_ASSERT_EQUAL(rcd_mcast_attach(table, &groups[0], p.b->qp), 0);
	CU_ASSERT_EQUAL(rcd_mcast_attach(table, &groups[1], p.b->qp), 0);
	CU_ASSERT_EQUAL(rcd_mcast_attach(table, &groups[2], p.b->qp), -ENOMEM);
	groups[2].raw[12] = 10; /* no multicast address */
	CU_ASSERT_EQUAL(rcd_mcast_attach(table, &groups[2], p.b->qp), -EINVAL);
	groups[2].raw[12] = 239;
	post_recv(&p.a->rq, 0, 0, 100);
	post_recv(&p.b->rq, 1, 0, 100);
	pkt.ip = ip;
	pkt.dgid = groups[0];
	pkt.roce.bth = (struct rcd_bth){ .opcode = RCD_OPCODE_UD_SEND_ONLY,
		.pkey = { 0xffff },
		.dest_qpn = { RCD_QPN_MULTICAST } };
	pkt.roce.deth.qkey.val = 0x1234;
	CU_ASSERT_EQUAL(rcd_mcast_rx(table, &pkt, 1, NULL), 2);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(rcd_mcast_detach(table, &groups[0], p.a->qp), 0);
	CU_ASSERT_EQUAL(rcd_mcast_detach(table, &groups[0], p.a->qp), -EINVAL);
	CU_ASSERT_EQUAL(rcd_mcast_rx(table, &pkt, 1, NULL), 1);
	rcd_mcast_detach_all(table, members, p.b->qp);
	CU_ASSERT_EQUAL(rcd_mcast_members(table, &groups[0]), 0);
	CU_ASSERT_EQUAL(rcd_mcast_members(table, &groups[1]), 0);
	rcd_mcast_detach_all(NULL, NULL, p.b->qp);
	CU_ASSERT_EQUAL(rcd_mcast_rx(table, &pkt, 1, NULL), 0);
	CU_ASSERT_EQUAL(rcd_mcast_attach(table, &groups[2], p.b->qp), 0);
	rcd_mcast_table_destroy(table);
	end();
}

/* Covers: IBTA 9.8 unrel_skip() */
static void
an_unreliable_message_that_lost_a_packet(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UC);

	begin(&init, NULL);
	p.sim.nodes[0].out.loss_mask = 1 << 1;
	p.sim.nodes[0].out.loss_mask_frames = 2;
	post(p.a, RCD_WR_SEND, 0, 3 * 1024, 0);
	post(p.a, RCD_WR_SEND, 9000, 2 * 1024, 0);
	post_recv(&p.b->rq, 1, 0, 4096);
	post_recv(&p.b->rq, 1, 4096, 4096);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 2);
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqe_count, 1);
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqes[0].byte_len, 2 * 1024);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[1].memory, p.sim.nodes[0].memory + 9000, 2048), 0);
	CU_ASSERT_EQUAL(rcd_qp_messages(p.b->qp), 1);
	end();
}

/*
 * Covers: IBTA 11.5.2 rcd_srq_fetch()
 * Covers: IBTA 11.6.3 flush_recv()
 */
static void
shared_receive_queue(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr = { .state = RCD_QP_ERR };
	struct sim_node *node;

	memset(&p, 0, sizeof(p));
	node = &p.sim.nodes[1];
	init.srq = &node->srq;
	begin(&init, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		post_recv(&node->srq_queue, 1, 100 * i, 100);
		post(p.a, RCD_WR_SEND, 0, 8, 0);
	}
	CU_ASSERT_EQUAL(rcd_srq_set_limit(&node->srq, SIM_QUEUE_MAX + 1), -EINVAL);
	CU_ASSERT_EQUAL(rcd_srq_set_limit(&node->srq, 2), 0);
	run();
	CU_ASSERT_EQUAL(node->cqe_count, 4);
	/* Once, when the third was taken: one was left. */
	CU_ASSERT_EQUAL(node->event_count, 1);
	CU_ASSERT_TRUE(raised(1, RCD_EVENT_SRQ_LIMIT_REACHED));
	CU_ASSERT_EQUAL(rcd_qp_modify(p.b->qp, &attr, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_flush(p.b->qp, 100), 0);
	CU_ASSERT_TRUE(raised(1, RCD_EVENT_QP_LAST_WQE_REACHED));
	rcd_srq_fail(&node->srq);
	CU_ASSERT_TRUE(raised(1, RCD_EVENT_SRQ_ERR));
	end();
}

/* Covers: IBTA 11.6.3 qp_dispatch() */
static void
communication_established(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;
	struct sim_qp *c;

	begin(&init, NULL);
	/* A third, which stays in RTR, in the place of b. */
	c = sim_qp_create(&p.sim.nodes[1], &init);
	rcd_qp_query(p.a->qp, &attr);
	attr.rq_psn = attr.sq_psn;
	attr.av = sim_av(&p.sim.nodes[1]);
	attr.dest_qpn = p.a->init.qpn;
	rcd_bring_up(c->qp, RCD_QP_RC, attr, RCD_QP_RTR);
	p.b->init.qpn.val = 0xabc; /* the simulator delivers by this number */
	c->init.qpn.val = 0x200;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(p.sim.nodes[1].event_count, 1);
	CU_ASSERT_TRUE(raised(1, RCD_EVENT_COMM_EST));
	end();
}

/* Covers: Annex A17 qp_note_congestion() */
static void
congestion_is_told_and_heard(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	p.sim.nodes[0].out.mark = 1;
	p.sim.nodes[0].out.gbps = 1;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 50 * 1024, 0);
	run();
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_RX_ECN_MARKED), 50);
	/* At most one in 50 us: 50 packets at 1 Gb/s take some 440. */
	CU_ASSERT_TRUE(sent[1][RCD_OPCODE_CNP] >= 7 && sent[1][RCD_OPCODE_CNP] <= 10);
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_TX_CNP), sent[1][RCD_OPCODE_CNP]);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RX_CNP), sent[1][RCD_OPCODE_CNP]);
	end();
}

/* A client writes over a request that is outstanding: its queue pair fails, and says so. */
static void
a_request_that_changes(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	p.sim.nodes[0].out.loss_mask = 7;
	p.sim.nodes[0].out.loss_mask_frames = 3;
	for (uint32_t i = 0; i < 3; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	sim_kick(&p.sim);
	p.a->sq.sges[0][0].len = 9;
	run();
	CU_ASSERT_TRUE(raised(0, RCD_EVENT_QP_FATAL));
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_ERR);
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(completed(0, i, i, RCD_WC_WR_FLUSH_ERR));
	/* The host may say the same of its own accord. */
	rcd_qp_fail(p.b->qp);
	CU_ASSERT_TRUE(raised(1, RCD_EVENT_QP_FATAL));
	end();
}

/* Found by the simulator: a duplicate waits to be answered when the next READ comes. */
static void
a_repeated_answer_gives_way(void)
{
	struct rcd_pkt pkt = begin_with_reads(1);
	struct rcd_tx_pkt out;

	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_DUPLICATE);
	pkt.roce.bth.psn = rcd_psn_add(pkt.roce.bth.psn, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY);
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, pkt.roce.bth.psn.val);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 1, &out));
	end();
}

/* Found by the simulator: what is missing was answered behind a later READ, or never. */
static void
what_is_missing_is_answered_first(void)
{
	struct rcd_pkt first = begin_with_reads(4);
	struct rcd_pkt second = first;
	struct rcd_tx_pkt out;

	second.roce.bth.psn = rcd_psn_add(first.roce.bth.psn, 1);
	second.roce.reth.dma_len = 3000;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &second, 1), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST);
	/* The answer to the first was lost; both are asked for again. */
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_DUPLICATE);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &second, 1), RCD_RX_DUPLICATE);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
		CU_ASSERT_EQUAL(out.roce.bth.psn.val, rcd_psn_add(first.roce.bth.psn, i).val);
	}
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 1, &out));
	end();
}

/* Found by net_impair: the NAK left behind the packet that it asked for, instead of the ACK. */
static void
a_gap_that_fills_needs_no_nak(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt first, second;
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	first = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 0);
	second = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 1);
	second.roce.bth.ack_req = true;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &second, 1), RCD_RX_KEPT);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_ACKNOWLEDGE);
	CU_ASSERT_EQUAL(rcd_aeth_kind(out.roce.aeth.syndrome), RCD_AETH_ACK);
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, second.roce.bth.psn.val);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 1, &out));
	end();
}

/* Found by net_impair: seven losses of one packet ended the connection. A peer that answers is
 * heard for longer, and not for ever. */
static void
naks_are_no_timeouts(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_tx_pkt out;
	struct rcd_pkt nak;
	uint64_t now = 1;
	int times = 0;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, now, &out));
	nak = nak_by_hand(out.roce.bth.psn);
	while (rcd_qp_state(p.a->qp) == RCD_QP_RTS && times < 1000) {
		now += 1000000;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, now), RCD_RX_EXECUTED);
		times += rcd_qp_tx_next(p.a->qp, now, &out);
	}
	CU_ASSERT_TRUE(times > 50 && times < 100);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_RETRY_EXC_ERR));
	end();
}

/* A peer may send it all the same. */
static void
a_nak_for_what_comes_next(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt nak;
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	nak = nak_by_hand(rcd_psn_add(out.roce.bth.psn, 1));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 1), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1, &out));
	/* Once more, it says nothing. */
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 1), RCD_RX_STALE);
	end();
}

/* Found with the kernel's rxe behind a network that reorders: each late response made the requester
 * ask for everything again. */
static void
a_late_response_is_waited_for(void)
{
	static const uint32_t order[] = { 0, 2, 3, 1, 4 };
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_READ, 0, 5 * 1024, 0);
	/* A second one: nothing says that no more will come. */
	post(p.a, RCD_WR_RDMA_READ, 8192, 1024, 8192);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	for (uint32_t i = 0; i < 5; i++) {
		struct rcd_pkt pkt = by_hand(order[i] == 0 ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST
				: order[i] == 4            ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST
						: RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE,
			0);

		if (i == 1)
			CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
		pkt.sgid = sim_av(&p.sim.nodes[0]).dgid;
		pkt.dgid = sim_av(&p.sim.nodes[0]).sgid;
		pkt.roce.bth.psn = rcd_psn_add(out.roce.bth.psn, order[i]);
		if (i > 0)
			pkt.roce.bth.psn = rcd_psn_sub(pkt.roce.bth.psn, 5);
		pkt.roce.aeth.syndrome = 31;
		pkt.payload = p.sim.nodes[1].memory + order[i] * 1024;
		pkt.payload_len = 1024;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 1000),
			i == 1 || i == 2 ? RCD_RX_KEPT : RCD_RX_EXECUTED);
		CU_ASSERT_FALSE(i > 0 && rcd_qp_tx_next(p.a->qp, 1000, &out));
	}
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[0].memory, p.sim.nodes[1].memory, 5 * 1024), 0);
	CU_ASSERT_EQUAL(rcd_reorder_pool_used(p.sim.nodes[0].reorder), 0);
	end();
}

/* Covers: IBTA 9.6, 10.9.3 qp_check_common() */
static void
strangers_are_dropped(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt pkt = { .payload = NULL };

	begin(&init, NULL);
	pkt.sgid = sim_av(&p.sim.nodes[0]).dgid;
	pkt.dgid = sim_av(&p.sim.nodes[0]).sgid;
	pkt.roce.bth = (struct rcd_bth){
		.opcode = RCD_OPCODE_RC_SEND_ONLY, .pkey = { 0xffff }, .ack_req = true
	};
	pkt.roce.bth.pkey.val = 0x8001;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 1), RCD_RX_PKEY);
	pkt.roce.bth.pkey.val = 0x7fff; /* a limited member of our partition */
	CU_ASSERT_NOT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 1), RCD_RX_PKEY);
	pkt.sgid.raw[15] ^= 1;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 1), RCD_RX_PATH);
	pkt.sgid.raw[15] ^= 1;
	pkt.dgid.raw[0] ^= 1;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 1), RCD_RX_PATH);
	pkt.dgid.raw[0] ^= 1;
	pkt.roce.bth.opcode = RCD_OPCODE_RC_ACKNOWLEDGE;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 1), RCD_RX_STALE);
	CU_ASSERT_STRING_EQUAL(rcd_rx_verdict_name(RCD_RX_STALE), "STALE");
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(seven_retries_are_seven),
		RCD_TEST(rnr_retries_and_their_timer),
		RCD_TEST(one_acknowledge_covers_a_burst),
		RCD_TEST(a_big_read_does_not_stall_what_follows),
		RCD_TEST(fence_waits_for_reads),
		RCD_TEST(no_more_reads_than_agreed),
		RCD_TEST(more_responder_resources),
		RCD_TEST(a_gap_in_responses_is_noticed_at_once),
		RCD_TEST(a_gap_in_a_long_read_is_asked_for_once),
		RCD_TEST(a_lost_nak_is_sent_again),
		RCD_TEST(naks_and_what_they_mean),
		RCD_TEST(local_errors),
		RCD_TEST(flush_is_complete_and_in_order),
		RCD_TEST(drain),
		RCD_TEST(send_errors_of_datagrams),
		RCD_TEST(datagrams),
		RCD_TEST(multicast),
		RCD_TEST(an_unreliable_message_that_lost_a_packet),
		RCD_TEST(shared_receive_queue),
		RCD_TEST(communication_established),
		RCD_TEST(congestion_is_told_and_heard),
		RCD_TEST(a_request_that_changes),
		RCD_TEST(a_repeated_answer_gives_way),
		RCD_TEST(what_is_missing_is_answered_first),
		RCD_TEST(a_gap_that_fills_needs_no_nak),
		RCD_TEST(naks_are_no_timeouts),
		RCD_TEST(a_nak_for_what_comes_next),
		RCD_TEST(a_late_response_is_waited_for),
		RCD_TEST(strangers_are_dropped),
	};

	return rcd_tap_run("qp", tests, RCD_ARRAY_COUNT(tests));
}
