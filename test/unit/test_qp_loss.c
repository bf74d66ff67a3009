/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what a receiver does with what comes early, and a requester with what does not come.
 * Method: two nodes in the simulator, one packet at a time or whole requests of which some are
 * lost.
 */
#include "rcd_aeth.h"
#include "rcd_reorder.h"
#include "rcd_tap.h"
#include "situation.h"

/* As far ahead as the PSNs of READs bring them; what is further out is from nowhere. */
static void
far_ahead(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt pkt;

	begin(&init, NULL);
	pkt = by_hand(RCD_OPCODE_RC_SEND_ONLY, RCD_REORDER_SPAN - 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_KEPT);
	pkt = by_hand(RCD_OPCODE_RC_SEND_ONLY, RCD_REORDER_SPAN);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_OUT_OF_SEQUENCE);
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_OUT_OF_SEQ_KEPT), 1);
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_OUT_OF_SEQ_REQUEST), 1);
	CU_ASSERT_EQUAL(rcd_qp_kept(p.b->qp), 1);
	end();
}

/* A READ of twice as many PSNs as are kept packets is lost: what came behind it is not. */
static void
behind_a_big_read(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	p.sim.nodes[0].out.loss_mask = 1;
	p.sim.nodes[0].out.loss_mask_frames = 1;
	post(p.a, RCD_WR_RDMA_READ, 0, 1 << 20, 0);
	for (uint32_t i = 0; i < 30; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 1 << 20);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 31);
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_READ_REQUEST], 2);
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_WRITE_ONLY], 30);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[0].memory, p.sim.nodes[1].memory, 1 << 20), 0);
	end();
}

/* Answers to READs that come behind a hole can be kept: no more are asked for. */
static void
reads_ahead(void)
{
	static const struct {
		uint32_t len, begun;
	} rows[] = { { 16 << 10, RCD_REORDER_WINDOW / 16 }, { 96 << 10, RCD_REORDER_WINDOW / 96 },
		{ 1 << 20, 1 }, { 8, 60 } };
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;
	struct rcd_tx_pkt pkt;

	init.max_rd_atomic = 60;
	for (size_t row = 0; row < RCD_ARRAY_COUNT(rows); row++) {
		uint32_t begun = 0;

		memset(&p.sim, 0, sizeof(p.sim));
		attr = sim_attr(&p.sim);
		attr.max_rd_atomic = attr.max_dest_rd_atomic = 60;
		begin(&init, &attr);
		for (uint32_t i = 0; i < 64; i++)
			post(p.a, RCD_WR_RDMA_READ, 0, rows[row].len, 0);
		for (; rcd_qp_tx_next(p.a->qp, 1, &pkt); begun++)
			CU_ASSERT_EQUAL(pkt.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_REQUEST);
		CU_ASSERT_EQUAL(begun, rows[row].begun);
		end();
	}
}

/* Feed b a READ of so many packets. */
static void
feed_read(uint32_t packets)
{
	struct rcd_pkt read = by_hand(RCD_OPCODE_RC_RDMA_READ_REQUEST, 0);

	read.payload_len = 0;
	read.roce.reth = (struct rcd_reth){ .rkey = p.key[1], .dma_len = packets * 1024 };
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &read, 1000), RCD_RX_EXECUTED);
}

/*
 * A gap is told of once, and not while something has to go before. Without SACK that is the
 * responses to a READ: the answer to what comes early is not to bring them out of their turn.
 */
static void
a_gap_is_told_once(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt early;
	struct rcd_tx_pkt out;

	for (uint32_t sack = 0; sack < 2; sack++) {
		begin(&init, NULL);
		if (sack)
			sim_agree_sack(p.b);
		CU_ASSERT_FALSE(rcd_qp_tells_gap(p.b->qp));
		feed_read(3);
		early = by_hand(RCD_OPCODE_RC_SEND_ONLY, 1);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &early, 1000), RCD_RX_KEPT);
		for (uint32_t i = 0; i < 3 && !sack; i++) {
			CU_ASSERT_FALSE(rcd_qp_tells_gap(p.b->qp));
			CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1000, &out));
			CU_ASSERT_TRUE(out.payload_len > 0);
		}
		CU_ASSERT_TRUE(rcd_qp_tells_gap(p.b->qp));
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1000, &out));
		CU_ASSERT_EQUAL(
			out.roce.bth.opcode, sack ? RCD_OPCODE_SACK : RCD_OPCODE_RC_ACKNOWLEDGE);
		CU_ASSERT_FALSE(rcd_qp_tells_gap(p.b->qp));
		/* What follows is behind the same gap. */
		early = by_hand(RCD_OPCODE_RC_SEND_ONLY, 2);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &early, 1000), RCD_RX_KEPT);
		CU_ASSERT_FALSE(rcd_qp_tells_gap(p.b->qp));
		/* And this one behind another, of which only SACK can tell. */
		early = by_hand(RCD_OPCODE_RC_SEND_ONLY, 5);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &early, 1000), RCD_RX_KEPT);
		CU_ASSERT_EQUAL(rcd_qp_tells_gap(p.b->qp), sack);
		end();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S8 what comes from too far ahead is dropped and counted", far_ahead },
		RCD_TEST(behind_a_big_read),
		RCD_TEST(reads_ahead),
		RCD_TEST(a_gap_is_told_once),
	};

	return rcd_tap_run("qp_loss", tests, RCD_ARRAY_COUNT(tests));
}
