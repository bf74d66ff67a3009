/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets that pass a window unasked are no more than it has room for, and are counted as if
 * they had asked; nothing passes so that is paced, lost or of a READ. Method: two nodes in the
 * simulator, of which a has the algorithm of told.h without a rate; what the gate holds is looked
 * at where no packet shows it.
 */
#include "rcd_qp_priv.h"
#include "rcd_tap.h"
#include "told.h"

/* A window of so many packets that paces nothing. */
static void
begin_window(uint32_t packets)
{
	begin_told_reads(packets * PACKET, 8);
	told.rate_kbps = 0;
}

/* So many leave now, and no more. */
static struct rcd_tx_pkt
leave(uint32_t count, uint64_t now_ns)
{
	struct rcd_tx_pkt out = { .payload_len = 0 }, none;

	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, now_ns, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, now_ns, &none));
	return out;
}

/* The first packets, while more may follow. @return the PSN of the first */
static struct rcd_psn
leave_some(uint32_t count, uint64_t now_ns)
{
	struct rcd_psn first = p.a->qp->hot.psn_next;
	struct rcd_tx_pkt out;

	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, now_ns, &out));
	CU_ASSERT_TRUE(p.a->qp->hot.pass > 0);
	return first;
}

/* A WRITE of so many packets, of which so many have left. @return the PSN of the first */
static struct rcd_psn
begin_sent(uint32_t window, uint32_t packets, uint32_t count)
{
	begin_window(window);
	post(p.a, RCD_WR_RDMA_WRITE, 0, packets * 1024, 0);
	return leave_some(count, 1000);
}

static void
acknowledge(struct rcd_psn last, uint64_t now_ns)
{
	struct rcd_pkt ack = ack_by_hand(last);

	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, now_ns), RCD_RX_EXECUTED);
}

/* Whole packets and short ones: the last that fits asks for an acknowledge, and all are counted. */
static void
as_many_as_fit(void)
{
	struct rcd_tx_pkt out;

	begin_window(16);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	out = leave(16, 1000);
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_FALSE(p.a->qp->hot.held);
	acknowledge(rcd_psn_sub(out.roce.bth.psn, 12), 2000);
	CU_ASSERT_EQUAL(told.acked, 4 * PACKET);
	out = leave(4, 2000);
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_EQUAL(p.a->qp->gate->flight, 16 * PACKET);
	CU_ASSERT_EQUAL(told.sent, 0);
	end();
	begin_window(2);
	for (uint32_t i = 0; i < 30; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 0, 18, 0);
	leave((2 * PACKET + 99) / 100, 1000);
	end();
	begin_sent(2000, 200, 1);
	CU_ASSERT_EQUAL(p.a->qp->hot.pass, 63);
	end();
}

/* It shrinks while packets may pass: they may no more, but for one that asks. */
static void
window_shrinks(void)
{
	begin_sent(8, 40, 4);
	told.window = 2 * PACKET;
	CU_ASSERT_EQUAL(congest(1500), RCD_RX_CNP);
	CU_ASSERT_TRUE(leave(1, 2000).roce.bth.ack_req);
	end();
	/* It stays, and what passes asks: when it is full there is none besides. */
	begin_sent(8, 40, 4);
	CU_ASSERT_EQUAL(congest(1500), RCD_RX_CNP);
	CU_ASSERT_TRUE(leave(4, 2000).roce.bth.ack_req);
	end();
}

/* A READ counts with its responses, at the head of the queue and behind what may pass. */
static void
reads_ask(void)
{
	for (uint32_t before = 0; before < 2; before++) {
		begin_window(8);
		if (before > 0)
			post(p.a, RCD_WR_RDMA_WRITE, 0, 1024, 0);
		post(p.a, RCD_WR_RDMA_READ, 0, 5 * 1024, 4096);
		post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
		leave(1 + 3, 1000);
		CU_ASSERT_EQUAL(p.a->qp->gate->flight, 8 * PACKET);
		end();
	}
}

/* A pace of the algorithm's or the program's, with a window or not. */
static void
paced_ask(void)
{
	struct rcd_qp_attr rate = { .rate_kbps = 8000 };

	begin_window(8);
	told.rate_kbps = TOLD_KBPS;
	told.gap_ns = 10000;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	leave(1, 1000);
	leave(1, 11000);
	end();
	begin_sent(8, 20, 2);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &rate, RCD_QP_ATTR_RATE), 0);
	leave(1, 1000000000);
	CU_ASSERT_TRUE(p.a->qp->hot.held);
	rate.rate_kbps = 0;
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &rate, RCD_QP_ATTR_RATE), 0);
	CU_ASSERT_FALSE(p.a->qp->hot.held);
	leave(5, 1000000000);
	end();
	begin_told(RCD_QP_RC, 8 * PACKET, 0);
	told.rate_kbps = 0;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	leave(8, 1000);
	CU_ASSERT_EQUAL(p.a->qp->hot.pass, 0);
	end();
}

/* After a heavy loss everything asks: what is sent again, and what is new behind it. */
static void
losses_ask(void)
{
	struct rcd_psn first;

	first = begin_sent(8, 40, 4);
	CU_ASSERT_TRUE(rcd_gate_lost(p.a->qp, 2000));
	CU_ASSERT_EQUAL(p.a->qp->hot.pass, 0);
	leave(4, 3000);
	CU_ASSERT_EQUAL(p.a->qp->hot.pass, 0);
	miss(first, 1, 4000);
	CU_ASSERT_EQUAL(p.a->qp->hot.pass, 0);
	/* They are paced, too. */
	for (uint32_t i = 1; i <= 8; i++) {
		struct rcd_tx_pkt out;

		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, i * UINT64_C(1000000), &out));
		CU_ASSERT_EQUAL(p.a->qp->hot.pass, 0);
	}
	CU_ASSERT_EQUAL(p.a->qp->gate->flight, 8 * PACKET);
	end();
	/* A probe is no new packet. */
	first = begin_sent(8, 6, 6);
	acknowledge(first, 2000);
	rcd_qp_expire(p.a->qp, 1002000);
	leave(1, 1002000);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRANSMITTED_PKTS), 1);
	acknowledge(rcd_psn_add(first, 5), 1003000);
	CU_ASSERT_EQUAL(told.acked, 6 * PACKET);
	end();
}

/* While one hole is filled what is sent again asks, and what is new behind it passes. */
static void
new_ones_pass_a_hole(void)
{
	struct rcd_psn first = begin_sent(8, 40, 4);
	struct rcd_psn next;
	struct rcd_tx_pkt out;

	leave(4, 1000);
	acknowledge(rcd_psn_add(first, 7), 21000);
	leave_some(4, 21000);
	miss(first, 9, 41000);
	next = p.a->qp->hot.psn_next;
	CU_ASSERT_TRUE(p.a->qp->gate->losing);
	CU_ASSERT_EQUAL(told.heavy, 0);
	CU_ASSERT_EQUAL(p.a->qp->hot.pass, 0);
	for (uint32_t i = 0; i < 4 && p.a->qp->hot.pass == 0; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 41000, &out));
	CU_ASSERT_TRUE(p.a->qp->hot.pass > 0);
	CU_ASSERT_TRUE(rcd_psn_eq(out.roce.bth.psn, next));
	CU_ASSERT_TRUE(p.a->qp->gate->losing);
	end();
}

/* The peer is not ready: what goes again asks, and counts once. */
static void
again_asks(void)
{
	struct rcd_psn first;
	struct rcd_pkt nak;

	begin_window(32);
	post(p.a, RCD_WR_SEND, 0, 20 * 1024, 0);
	first = leave_some(10, 1000);
	nak = nak_by_hand(first);
	nak.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_RNR_NAK, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 2000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(p.a->qp->hot.pass, 0);
	rcd_qp_expire(p.a->qp, 1000000);
	for (uint32_t i = 0; i < 9; i++) {
		struct rcd_tx_pkt out;

		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000000, &out));
		CU_ASSERT_EQUAL(p.a->qp->hot.pass, 0);
	}
	leave(11, 1000000);
	acknowledge(rcd_psn_add(first, 19), 1001000);
	CU_ASSERT_EQUAL(told.acked, 20 * PACKET);
	end();
}

/* An algorithm hears of acknowledges by which it learns: a round trip, or half of its window. */
static void
acks_to_learn_of(void)
{
	struct rcd_psn first;

	first = begin_sent(16, 6, 6);
	acknowledge(rcd_psn_add(first, 2), 2000);
	CU_ASSERT_EQUAL(told.acks, 0);
	CU_ASSERT_EQUAL(p.a->qp->gate->flight, 3 * PACKET);
	acknowledge(rcd_psn_add(first, 5), 3000);
	CU_ASSERT_EQUAL(told.acks, 1);
	CU_ASSERT_EQUAL(told.rtts, 1);
	CU_ASSERT_EQUAL(told.acked, 3 * PACKET);
	CU_ASSERT_EQUAL(p.a->qp->gate->flight, 0);
	end();
	first = begin_sent(16, 8, 8);
	acknowledge(rcd_psn_add(first, 0), 2000);
	CU_ASSERT_EQUAL(told.acks, 1);
	CU_ASSERT_EQUAL(told.rtts, 0);
	end();
	begin_told(RCD_QP_RC, 16 * PACKET, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 6 * 1024, 0);
	first = send_all(1000);
	acknowledge(first, 2000);
	CU_ASSERT_EQUAL(told.acks, 1);
	CU_ASSERT_EQUAL(told.rtts, 0);
	end();
}

/* Who only answers leaves its gate alone, and ends no wait of its requests. */
static void
responders(void)
{
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	begin_told_reads(1, 8);
	told.gap_ns = 10000;
	for (uint32_t own = 0; own < 2; own++) {
		pkt = by_hand(RCD_OPCODE_RC_RDMA_READ_REQUEST, 0);
		pkt.payload_len = 0;
		pkt.roce.reth = (struct rcd_reth){ .rkey = p.key[1], .va = 0, .dma_len = 2 * 1024 };
		if (own > 0) {
			post(p.b, RCD_WR_RDMA_WRITE, 0, 2 * 1024, 0);
			CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1000, &out));
			CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 1000, &out));
		}
		CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.b->qp), own > 0 ? 11000 : 0);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_EXECUTED);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1000, &out));
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1000, &out));
		CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST);
		CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.b->qp), own > 0 ? 11000 : 0);
		CU_ASSERT_EQUAL(told.inits, own);
	}
	end();
}

/* What passes ends the wait, whether a timer told of its end or not. */
static void
held_no_more(void)
{
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	begin_window(8);
	told.rate_kbps = TOLD_KBPS;
	told.gap_ns = 10000;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 4 * 1024, 0);
	leave(1, 1000);
	CU_ASSERT_TRUE(p.a->qp->hot.held);
	told.rate_kbps = 0;
	CU_ASSERT_EQUAL(congest(2000), RCD_RX_CNP);
	leave_some(1, 11000);
	CU_ASSERT_FALSE(p.a->qp->hot.held);
	end();
	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 10000);
	pkt = by_hand(RCD_OPCODE_RC_RDMA_READ_REQUEST, 0);
	pkt.payload_len = 0;
	pkt.roce.reth = (struct rcd_reth){ .rkey = p.key[1], .va = 0, .dma_len = 2 * 1024 };
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1000, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 1000, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 11000, &out));
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.b->qp), 0);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(as_many_as_fit),
		RCD_TEST(window_shrinks),
		RCD_TEST(reads_ask),
		RCD_TEST(paced_ask),
		RCD_TEST(losses_ask),
		RCD_TEST(new_ones_pass_a_hole),
		RCD_TEST(again_asks),
		RCD_TEST(acks_to_learn_of),
		RCD_TEST(responders),
		RCD_TEST(held_no_more),
	};

	return rcd_tap_run("qp_pass", tests, RCD_ARRAY_COUNT(tests));
}
