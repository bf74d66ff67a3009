/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: in a window a READ counts with what its responses bring, and is asked for in parts that any
 * responder takes for READs of their own. Method: two nodes in the simulator, of which a has the
 * algorithm of told.h; its packets one by one, and responses made by hand.
 */
#include "rcd_tap.h"
#include "told.h"

/* The next request is a READ of so many packets, so many behind the first. */
static struct rcd_psn
take_part(uint32_t at, uint32_t packets, uint64_t now_ns)
{
	struct rcd_tx_pkt out = { .payload_len = 0 };

	CU_ASSERT_TRUE_FATAL(rcd_qp_tx_next(p.a->qp, now_ns, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_REQUEST);
	CU_ASSERT_EQUAL(out.roce.reth.va, 4096 + at * 1024);
	CU_ASSERT_EQUAL(out.roce.reth.dma_len, packets * 1024);
	CU_ASSERT_EQUAL(out.roce.reth.rkey.val, p.key[1].val);
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	return out.roce.bth.psn;
}

static void
take_none(uint64_t now_ns)
{
	struct rcd_tx_pkt out;

	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, now_ns, &out));
}

/* A whole response. */
static enum rcd_rx_verdict
answer(struct rcd_psn psn, uint8_t opcode, uint8_t tclass, uint64_t now_ns)
{
	static const uint8_t bytes[1024] = { 0x5a };
	struct rcd_pkt pkt = nak_by_hand(psn);

	pkt.roce.bth.opcode = opcode;
	pkt.roce.aeth.syndrome = 0x1f;
	pkt.payload = bytes;
	pkt.payload_len = sizeof(bytes);
	pkt.tclass = tclass;
	return rcd_qp_rx(p.a->qp, &pkt, now_ns);
}

/* The middle ones of a READ or part, each as it comes. */
static void
answer_all(struct rcd_psn first, uint32_t count, uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT_EQUAL(answer(rcd_psn_add(first, i),
					i + 1 == count ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST
						       : RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE,
					0, now_ns),
			RCD_RX_EXECUTED);
}

/* 24 packets where 16 fit; the rest in steps of four, and the end as it is. */
static void
parts_of_a_read(void)
{
	struct rcd_psn first;

	begin_told_reads(16 * PACKET, 8);
	post(p.a, RCD_WR_RDMA_READ, 0, 24 * 1024, 4096);
	first = take_part(0, 16, 1000);
	CU_ASSERT_EQUAL(told.sent, 16 * PACKET);
	take_none(1000);
	answer_all(first, 3, 2000);
	CU_ASSERT_EQUAL(told.acked, 3 * PACKET);
	take_none(2000);
	answer_all(rcd_psn_add(first, 3), 1, 2000);
	CU_ASSERT_EQUAL(take_part(16, 4, 2000).val, rcd_psn_add(first, 16).val);
	take_none(2000);
	answer_all(rcd_psn_add(first, 4), 12, 3000);
	CU_ASSERT_EQUAL(take_part(20, 4, 3000).val, rcd_psn_add(first, 20).val);
	take_none(3000);
	answer_all(rcd_psn_add(first, 16), 7, 4000);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 0);
	answer_all(rcd_psn_add(first, 23), 1, 4000);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 1);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	/* Four, nine and one came while at least half of the window was in use. */
	CU_ASSERT_EQUAL(told.acked, 14 * PACKET);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), 0);
	end();
}

/* Of a window of 32 packets a quarter: seven are no reason to ask. */
static void
a_quarter_at_a_time(void)
{
	struct rcd_psn first;

	begin_told_reads(32 * PACKET, 8);
	post(p.a, RCD_WR_RDMA_READ, 0, 64 * 1024, 4096);
	first = take_part(0, 32, 1000);
	answer_all(first, 7, 2000);
	take_none(2000);
	answer_all(rcd_psn_add(first, 7), 1, 2000);
	take_part(32, 8, 2000);
	take_none(2000);
	end();
}

/* A peer keeps two: of parts there are no more, however much room there is. */
static void
no_more_than_the_peer_keeps(void)
{
	struct rcd_psn first;

	begin_told_reads(16 * PACKET, 2);
	post(p.a, RCD_WR_RDMA_READ, 0, 40 * 1024, 4096);
	first = take_part(0, 16, 1000);
	answer_all(first, 8, 2000);
	take_part(16, 8, 2000);
	answer_all(rcd_psn_add(first, 8), 7, 2000);
	take_none(2000);
	/* The first one ends. */
	answer_all(rcd_psn_add(first, 15), 1, 2000);
	take_part(24, 8, 2000);
	take_none(2000);
	end();
}

/* A window smaller than a packet: one at a time, and to the end. */
static void
one_at_a_time(void)
{
	struct rcd_psn first;

	begin_told_reads(1, 8);
	post(p.a, RCD_WR_RDMA_READ, 0, 3 * 1024, 4096);
	first = take_part(0, 1, 1);
	take_none(1);
	answer_all(first, 1, 2);
	take_part(1, 1, 2);
	end();
	begin_told_reads(1, 8);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	post(p.a, RCD_WR_RDMA_READ, 0, 20 * 1024, 4096);
	post(p.a, RCD_WR_RDMA_READ, 0, 0, 0);
	run();
	CU_ASSERT_EQUAL(told.acked, 40 * PACKET + 82);
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_READ_REQUEST], 21);
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(completed(0, i, i, RCD_WC_SUCCESS));
	end();
}

/* What is asked for again ends where it did, though the window has other room by now. */
static void
parts_again(void)
{
	struct rcd_psn first;

	begin_told_reads(4 * PACKET, 8);
	post(p.a, RCD_WR_RDMA_READ, 0, 8 * 1024, 4096);
	first = take_part(0, 4, 1000);
	answer_all(first, 2, 2000);
	take_part(4, 2, 2000);
	told.window = 100 * PACKET;
	/* The timeout. */
	for (uint64_t at = 2000; rcd_qp_next_deadline(p.a->qp) != 0 && told.losses == 0 &&
		at < UINT64_C(10000000000);) {
		struct rcd_tx_pkt out;

		at = rcd_qp_next_deadline(p.a->qp);
		rcd_qp_expire(p.a->qp, at);
		if (told.losses > 0) {
			/* One packet, until something answers. */
			CU_ASSERT_EQUAL(take_part(2, 1, at).val, rcd_psn_add(first, 2).val);
			take_none(at);
			answer_all(rcd_psn_add(first, 2), 1, at);
			CU_ASSERT_EQUAL(take_part(3, 1, at).val, rcd_psn_add(first, 3).val);
			CU_ASSERT_EQUAL(take_part(4, 2, at).val, rcd_psn_add(first, 4).val);
			take_none(at);
			break;
		}
		while (rcd_qp_tx_next(p.a->qp, at, &out))
			CU_ASSERT_TRUE(out.roce.reth.dma_len <= 2048);
	}
	CU_ASSERT_EQUAL(told.losses, 1);
	end();
}

/* Round trips of READs count, but not behind a FLUSH, which takes as long as it takes. */
static void
round_trips(void)
{
	struct rcd_tx_pkt out;
	struct rcd_psn first;

	begin_told_reads(4 * PACKET, 8);
	post(p.a, RCD_WR_RDMA_READ, 0, 8 * 1024, 4096);
	first = take_part(0, 4, 1000);
	answer_all(first, 2, 9000);
	CU_ASSERT_EQUAL(told.rtts, 1);
	end();
	begin_told_reads(4 * PACKET, 8);
	post(p.a, RCD_WR_COMPARE_SWAP, 0, 8, 4096);
	post(p.a, RCD_WR_RDMA_READ, 0, 1024, 4096);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_COMPARE_SWAP);
	run();
	CU_ASSERT_EQUAL(told.rtts, 0);
	end();
}

/* A mark on a response to a READ is as a CNP for who asked, once something was asked for. */
static void
marks_of_responses(void)
{
	struct rcd_tx_pkt out;
	struct rcd_psn first;

	begin_told_reads(8 * PACKET, 8);
	CU_ASSERT_EQUAL(
		answer(rcd_psn(1), RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE, 3, 1), RCD_RX_STALE);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_CNP);
	CU_ASSERT_EQUAL(told.cnps, 0);
	post(p.a, RCD_WR_RDMA_READ, 0, 8 * 1024, 4096);
	first = take_part(0, 8, 100000);
	CU_ASSERT_EQUAL(
		answer(first, RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, 3, 200000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(told.cnps, 1);
	/* No more often than once in 50 us. */
	CU_ASSERT_EQUAL(
		answer(rcd_psn_add(first, 1), RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE, 3, 200001),
		RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(told.cnps, 1);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(parts_of_a_read),
		RCD_TEST(a_quarter_at_a_time),
		RCD_TEST(no_more_than_the_peer_keeps),
		RCD_TEST(one_at_a_time),
		RCD_TEST(parts_again),
		RCD_TEST(round_trips),
		RCD_TEST(marks_of_responses),
	};

	return rcd_tap_run("qp_parts", tests, RCD_ARRAY_COUNT(tests));
}
