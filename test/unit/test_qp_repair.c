/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what is sent again after a loss, and when: one packet for a gap where the peer keeps what
 * comes early, all behind it where it does not, a probe where the end of a burst is lost.
 * Method: a WRITE of 40 packets in the simulator, chosen ones of which are lost.
 */
#include "rcd_tap.h"
#include "sim.h"

enum {
	PACKETS = 40,
	MTU = 1024,
	LEN = PACKETS * MTU,
	MEMORY = 1 << 17,
	PD = 2,
};

static struct sim sim;
static struct sim_qp *a, *b;
static struct rcd_key keys[2];

static uint64_t done_ns;

static void
on_cqe(void *arg, struct sim_node *node, const struct rcd_cqe *cqe)
{
	(void)arg;
	(void)cqe;
	done_ns = node->sim->now_ns;
}

/* @param kept room for packets out of order; 0: none are kept */
static void
begin(uint32_t kept, uint8_t retry_cnt)
{
	struct rcd_qp_init init = { .type = RCD_QP_RC,
		.pd = PD,
		.sq_depth = 64,
		.max_send_sge = 2,
		.max_recv_sge = 1,
		.max_inline = SIM_INLINE_MAX,
		.max_rd_atomic = 4,
		.port_mtu_bytes = MTU };
	struct rcd_qp_attr attr;

	memset(&sim, 0, sizeof(sim));
	sim_init(&sim, 1, MEMORY, kept);
	sim.nodes[0].on_cqe = on_cqe;
	attr = sim_attr(&sim);
	attr.path_mtu_bytes = MTU;
	attr.timeout = 14; /* 67 ms */
	attr.retry_cnt = retry_cnt;
	for (uint32_t node = 0; node < 2; node++) {
		struct rcd_mr_attr region = { .pd = PD,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
			.len = MEMORY,
			.base = sim.nodes[node].memory };

		for (uint32_t i = 0; i < MEMORY; i++)
			region.base[i] = (uint8_t)(i * 7 + node);
		CU_ASSERT_EQUAL_FATAL(
			rcd_mr_register(sim.nodes[node].mrs, &region, &keys[node]), 0);
	}
	a = sim_qp_create(&sim.nodes[0], &init);
	b = sim_qp_create(&sim.nodes[1], &init);
	sim_connect(a, b, &attr, &attr);
}

static uint64_t
sent_again(void)
{
	return rcd_counter_get(&sim.nodes[0].counters, RCD_COUNTER_RETRANSMITTED_PKTS);
}

/* One WRITE or READ, to its end. @return how long it took, ns of virtual time */
static uint64_t
transfer(enum rcd_wr_opcode opcode)
{
	uint32_t number = a->sq.posted++;
	uint64_t begin_ns = sim.now_ns;

	a->sq.sges[number][0] = (struct rcd_sge){ 0, LEN, keys[0] };
	a->sq.wrs[number] = (struct rcd_send_wr){ .wr_id = number,
		.opcode = (uint8_t)opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.remote = { .va = MEMORY / 2, .rkey = keys[1] } };
	sim_kick(&sim);
	sim_run(&sim, sim.now_ns + 10 * UINT64_C(1000000000));
	CU_ASSERT_EQUAL_FATAL(sim.nodes[0].cqe_count, number + 1);
	CU_ASSERT_EQUAL(sim.nodes[0].cqes[number].status, RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(sim.nodes[0].memory, sim.nodes[1].memory + MEMORY / 2, LEN), 0);
	return done_ns - begin_ns;
}

/* Of what is sent from now on. */
static void
lose(uint64_t mask)
{
	sim.nodes[0].out_frames = 0;
	sim.nodes[0].out.loss_mask = mask;
	sim.nodes[0].out.loss_mask_frames = PACKETS;
}

static void
one_gap_costs_one_packet(void)
{
	begin(64, 7);
	lose(UINT64_C(1) << 3);
	transfer(RCD_WR_RDMA_WRITE);
	CU_ASSERT_EQUAL(sent_again(), 1);
	sim_fini(&sim);
}

/* Neighbours too: each costs itself. */
static void
gaps_side_by_side(void)
{
	begin(64, 7);
	lose(UINT64_C(3) << 3 | UINT64_C(1) << 20);
	transfer(RCD_WR_RDMA_WRITE);
	CU_ASSERT_EQUAL(sent_again(), 3);
	sim_fini(&sim);
}

/* The first gap finds out, the next one goes by what is known. */
static void
a_peer_that_keeps_nothing(void)
{
	uint64_t first;

	begin(0, 7);
	lose(UINT64_C(1) << 3);
	transfer(RCD_WR_RDMA_WRITE);
	first = sent_again();
	CU_ASSERT(first >= PACKETS - 4);
	CU_ASSERT(first <= PACKETS);
	sim_fini(&sim);
}

/* Nothing comes behind the last packet: nobody but us finds out that it was lost. */
static void
a_lost_tail_is_probed(void)
{
	begin(64, 0);
	lose(UINT64_C(1) << (PACKETS - 1));
	CU_ASSERT(transfer(RCD_WR_RDMA_WRITE) < 10000000);
	CU_ASSERT_EQUAL(sent_again(), 1);
	/* And the whole of it: the probe finds out, without a retry to spend. */
	sim_fini(&sim);
	begin(64, 0);
	lose((UINT64_C(1) << PACKETS) - 1);
	CU_ASSERT(transfer(RCD_WR_RDMA_WRITE) < 20000000);
	sim_fini(&sim);
}

/* The acknowledge is lost, not the packet. */
static void
a_lost_acknowledge_is_probed(void)
{
	begin(64, 0);
	sim.nodes[1].out.loss_mask = 3;
	sim.nodes[1].out.loss_mask_frames = 2;
	CU_ASSERT(transfer(RCD_WR_RDMA_WRITE) < 20000000);
	CU_ASSERT(sent_again() <= 2);
	sim_fini(&sim);
}

/* What came before the lost end is not sent again: the newest packet has the peer ask. */
static void
a_lost_end_of_many(void)
{
	for (int32_t hole = PACKETS - 3; hole < PACKETS; hole++) {
		begin(64, 7);
		lose(UINT64_C(1) << hole);
		CU_ASSERT(transfer(RCD_WR_RDMA_WRITE) < 2000000);
		CU_ASSERT_EQUAL(sent_again(), 1);
		sim_fini(&sim);
	}
	/* Of the last two the newest comes, and the peer asks for the other one. */
	begin(64, 7);
	lose(UINT64_C(3) << (PACKETS - 2));
	CU_ASSERT(transfer(RCD_WR_RDMA_WRITE) < 2000000);
	CU_ASSERT_EQUAL(sent_again(), 2);
	sim_fini(&sim);
	/* What is acknowledged need not be the oldest: the acknowledge before is lost as well. */
	begin(64, 7);
	lose(UINT64_C(1) << (PACKETS - 1));
	sim.nodes[1].out.loss_mask = 1;
	sim.nodes[1].out.loss_mask_frames = 1;
	CU_ASSERT(transfer(RCD_WR_RDMA_WRITE) < 2000000);
	CU_ASSERT_EQUAL(sent_again(), 1);
	sim_fini(&sim);
}

/* Its answer may be long, and on its way: a probe asks for one packet, and goes on to. */
static void
a_read_is_probed(void)
{
	begin(64, 0);
	lose(1);
	CU_ASSERT(transfer(RCD_WR_RDMA_READ) < 2000000);
	CU_ASSERT_EQUAL(sent_again(), 2);
	sim_fini(&sim);
	/* Two probes are lost as well, and no retry is spent. */
	begin(64, 0);
	lose(7);
	CU_ASSERT(transfer(RCD_WR_RDMA_READ) < 10000000);
	CU_ASSERT_EQUAL(sent_again(), 4);
	sim_fini(&sim);
	/* The request came, and all of the answer is lost: what was read comes once more. */
	begin(64, 0);
	sim.nodes[1].out.loss_mask = UINT64_MAX >> (64 - PACKETS);
	sim.nodes[1].out.loss_mask_frames = PACKETS;
	CU_ASSERT(transfer(RCD_WR_RDMA_READ) < 2000000);
	CU_ASSERT_EQUAL(sent_again(), 2);
	sim_fini(&sim);
}

/* A hole in the answer is asked for once, however wide it is: its responses come one by one. */
static void
a_wide_hole_in_a_read(void)
{
	for (uint32_t width = 1; width <= 16; width++) {
		begin(64, 7);
		sim.nodes[1].out.gbps = 10;
		sim.nodes[1].out.loss_mask = ((UINT64_C(1) << width) - 1) << 4;
		sim.nodes[1].out.loss_mask_frames = PACKETS;
		CU_ASSERT(transfer(RCD_WR_RDMA_READ) < 2000000);
		CU_ASSERT_EQUAL(sent_again(), 1);
		sim_fini(&sim);
	}
}

/*
 * The answer to a probe fills a hole in an answer that is still coming: what is behind it is on its
 * way, and not asked for.
 */
static void
a_probed_hole_in_a_read(void)
{
	begin(64, 7);
	sim.nodes[0].out.delay_ns = sim.nodes[1].out.delay_ns = 10000;
	sim.nodes[1].out.gbps = 1;
	transfer(RCD_WR_RDMA_READ);
	sim.nodes[1].out_frames = 0;
	sim.nodes[1].out.loss_mask = UINT64_C(1) << 4;
	sim.nodes[1].out.loss_mask_frames = PACKETS;
	transfer(RCD_WR_RDMA_READ);
	CU_ASSERT_EQUAL(sent_again(), 1);
	CU_ASSERT_EQUAL(sim.nodes[1].out_frames, PACKETS + 1);
	sim_fini(&sim);
}

/*
 * Packets leave so slowly that the timeout is over before as many are out as are acknowledged with
 * one another: one that asks comes earlier, and nothing is sent again.
 */
static void
a_slow_port_loses_nothing(void)
{
	uint64_t learnt;

	begin(64, 7);
	sim.nodes[0].out.gbps = 0.004;
	transfer(RCD_WR_RDMA_WRITE);
	learnt = sent_again();
	CU_ASSERT(transfer(RCD_WR_RDMA_WRITE) > 80000000);
	CU_ASSERT(learnt < 4);
	CU_ASSERT_EQUAL(sent_again(), learnt);
	sim_fini(&sim);
}

/* Bytes of the last packet of node 0. */
static uint32_t last_len;

static void
note_last(
	const struct sim *in, const struct sim_node *from, const struct rcd_tx_pkt *pkt, bool lost)
{
	(void)in;
	(void)lost;
	if (from->number == 0)
		last_len = pkt->payload_len;
}

/* Posts a WRITE of inline bytes. */
static void
post_inline(void)
{
	uint32_t number = a->sq.posted++;

	a->sq.wrs[number] = (struct rcd_send_wr){ .wr_id = number,
		.opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED | RCD_SEND_INLINE,
		.inline_len = SIM_INLINE_MAX,
		.remote = { .va = 0, .rkey = keys[1] } };
}

/*
 * A request fails in its middle, and what came before it waits for an answer: its last packet is
 * none to ask with. What is behind it has not begun, and has nothing in its record but what another
 * left there.
 */
static void
a_probe_behind_a_failed_request(void)
{
	const struct sim_node *node = &sim.nodes[0];
	uint32_t failing;

	begin(64, 7);
	sim.trace = note_last;
	for (int i = 0; i < 70; i++)
		post_inline();
	CU_ASSERT(sim_run(&sim, sim.now_ns + 1000000000));
	CU_ASSERT_EQUAL_FATAL(node->cqe_count, 70);
	post_inline();
	failing = a->sq.posted++;
	/* The 32nd packet in a row asks for an acknowledge, and the next one has no memory. */
	a->sq.sges[failing][0] = (struct rcd_sge){ 0, 31 * MTU, keys[0] };
	a->sq.sges[failing][1] = (struct rcd_sge){ 0, 9 * MTU, { 0 } };
	a->sq.wrs[failing] = (struct rcd_send_wr){ .wr_id = failing,
		.opcode = RCD_WR_RDMA_WRITE,
		.sge_count = 2,
		.remote = { .va = 0, .rkey = keys[1] } };
	post_inline();
	sim.nodes[1].out_frames = 0;
	sim.nodes[1].out.loss_mask = 1;
	sim.nodes[1].out.loss_mask_frames = 1;
	CU_ASSERT(sim_run(&sim, sim.now_ns + 1000000000));
	CU_ASSERT_EQUAL_FATAL(node->cqe_count, 73);
	CU_ASSERT_EQUAL(node->cqes[70].status, RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(node->cqes[71].status, RCD_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(node->cqes[72].status, RCD_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(node->event_count, 0);
	CU_ASSERT_EQUAL(sent_again(), 1);
	CU_ASSERT_EQUAL(last_len, SIM_INLINE_MAX);
	sim_fini(&sim);
}

/* Probes wait for what round trips take and vary by; never longer than the timeout. */
static void
probes_know_the_way(void)
{
	uint64_t short_ns, long_ns, learnt;

	begin(64, 7);
	transfer(RCD_WR_RDMA_WRITE);
	lose(UINT64_C(1) << (PACKETS - 1));
	short_ns = transfer(RCD_WR_RDMA_WRITE);
	sim_fini(&sim);
	/* It becomes longer: after some probes for nothing that is known, too. */
	begin(64, 7);
	transfer(RCD_WR_RDMA_WRITE);
	sim.nodes[0].out.delay_ns = sim.nodes[1].out.delay_ns = 5000000;
	for (int i = 0; i < 12; i++)
		transfer(RCD_WR_RDMA_WRITE);
	learnt = sent_again();
	for (int i = 0; i < 4; i++)
		transfer(RCD_WR_RDMA_WRITE);
	CU_ASSERT_EQUAL(sent_again(), learnt);
	lose(UINT64_C(1) << (PACKETS - 1));
	long_ns = transfer(RCD_WR_RDMA_WRITE);
	sim_fini(&sim);
	CU_ASSERT(short_ns < 500000);
	CU_ASSERT(long_ns > 25000000);
	CU_ASSERT(long_ns < 60000000);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(one_gap_costs_one_packet),
		RCD_TEST(gaps_side_by_side),
		RCD_TEST(a_peer_that_keeps_nothing),
		RCD_TEST(a_lost_tail_is_probed),
		RCD_TEST(a_lost_acknowledge_is_probed),
		RCD_TEST(a_lost_end_of_many),
		RCD_TEST(a_read_is_probed),
		RCD_TEST(a_wide_hole_in_a_read),
		RCD_TEST(a_probed_hole_in_a_read),
		RCD_TEST(a_slow_port_loses_nothing),
		RCD_TEST(a_probe_behind_a_failed_request),
		RCD_TEST(probes_know_the_way),
	};

	return rcd_tap_run("qp_repair", tests, sizeof(tests) / sizeof(tests[0]));
}
