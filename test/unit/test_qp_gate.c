/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what a queue pair sends passes the gate, and an algorithm is told what is promised to it.
 * Method: two nodes in the simulator, of which a has the algorithm of told.h.
 */
#include "rcd_rto.h"
#include "rcd_tap.h"
#include "told.h"

/* Four packets fit: the fourth, behind which it closes, asks for an acknowledge. */
static void
window_holds(void)
{
	struct rcd_tx_pkt out;
	struct rcd_pkt ack;

	begin_told(RCD_QP_RC, 4 * PACKET, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
		CU_ASSERT_EQUAL(out.roce.bth.ack_req, i == 3);
	}
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_EQUAL(told.inits, 1);
	CU_ASSERT_EQUAL(told.init_ns, 1000);
	CU_ASSERT_EQUAL(told.packet_bytes, PACKET);
	CU_ASSERT_EQUAL(told.sent, 4 * PACKET);
	ack = ack_by_hand(rcd_psn_sub(out.roce.bth.psn, 1));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, 5000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(told.acked, 3 * PACKET);
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 6000, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 6000, &out));
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_CC_WINDOW_LIMITED), 5000);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_CC_PACING_LIMITED), 0);
	end();
	begin_told(RCD_QP_RC, 4 * PACKET, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	run();
	CU_ASSERT_EQUAL(told.acked, 20 * PACKET);
	CU_ASSERT_EQUAL(told.losses, 0);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	end();
}

/* Who has no rate is not asked when the next may leave. */
static void
no_rate_no_question(void)
{
	struct rcd_tx_pkt out;

	begin_told(RCD_QP_RC, 40 * PACKET, 1000);
	told.rate_kbps = 0;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 4 * 1024, 0);
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_EQUAL(told.sent, 0);
	end();
}

/* One algorithm is enough: where there is another, a flood of gaps makes no second window. */
static void
one_window(void)
{
	uint64_t now_ns = 1000;
	uint32_t count = 0;
	struct rcd_psn first;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 400 * 1024, 0);
	first = send_all(now_ns);
	for (uint32_t i = 1; i < 24; i++) {
		struct rcd_tx_pkt out;

		now_ns += 1000000;
		miss(first, i, now_ns);
		now_ns += 1000000;
		for (count = 0; rcd_qp_tx_next(p.a->qp, now_ns, &out);)
			count++;
	}
	CU_ASSERT_EQUAL(count, 400 - 23);
	end();
}

/* Less than a packet, and no more than a byte: one at a time, and to the end. */
static void
window_of_nothing(void)
{
	struct rcd_tx_pkt out;

	begin_told(RCD_QP_RC, 1, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 3 * 1024, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1, &out));
	end();
	begin_told(RCD_QP_RC, 1, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	post(p.a, RCD_WR_RDMA_READ, 0, 40 * 1024, 0);
	post(p.a, RCD_WR_SEND, 0, 8, 0);
	post_recv(&p.b->rq, 1, 0, 8);
	run();
	CU_ASSERT_EQUAL(told.acked, 40 * PACKET + 8 + 82);
	/* The last of the WRITE is acknowledged when the READ is out, and the SEND behind it. */
	CU_ASSERT_EQUAL(told.rtts, 39);
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(completed(0, i, i, RCD_WC_SUCCESS));
	end();
}

/* Requests leave at the pace, and so does what is sent again; each asks for an acknowledge. */
static void
pace_of_requests(void)
{
	struct rcd_qp_limits limits;
	struct rcd_tx_pkt out;
	struct rcd_pkt nak;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 10000);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 4 * 1024, 0);
	for (uint64_t now_ns = 1000; now_ns <= 11000; now_ns += 10000) {
		CU_ASSERT_FALSE(now_ns > 1000 && rcd_qp_tx_next(p.a->qp, now_ns - 1, &out));
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, now_ns, &out));
		CU_ASSERT_TRUE(out.roce.bth.ack_req);
		CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, now_ns, &out));
		CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), now_ns + 10000);
	}
	nak = nak_by_hand(rcd_psn_sub(out.roce.bth.psn, 1));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 20000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(told.losses, 1);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 20999, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 21000, &out));
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, nak.roce.bth.psn.val);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 21000, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 30999, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 31000, &out));
	CU_ASSERT_EQUAL(told.sent, 4 * PACKET);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_CC_WINDOW_LIMITED), 0);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_CC_PACING_LIMITED), 30000);
	rcd_qp_limits(p.a->qp, &limits);
	CU_ASSERT_EQUAL(limits.pace_ns, 30000);
	CU_ASSERT_EQUAL(limits.window_ns, 0);
	CU_ASSERT_EQUAL(limits.losses, 1);
	CU_ASSERT_TRUE(rcd_qp_reacts(p.a->qp));
	end();
}

/* An acknowledge waits behind responses that are held back, and one alone for nothing. */
static void
pace_of_responses(void)
{
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 10000);
	pkt = by_hand(RCD_OPCODE_RC_RDMA_READ_REQUEST, 0);
	pkt.payload_len = 0;
	pkt.roce.reth = (struct rcd_reth){ .rkey = p.key[1], .va = 0, .dma_len = 2 * 1024 };
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_EXECUTED);
	pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 0);
	pkt.payload_len = 0;
	pkt.roce.reth = (struct rcd_reth){ .rkey = p.key[1], .va = 0, .dma_len = 0 };
	pkt.roce.bth.ack_req = true;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1000, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 10999, &out));
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.b->qp), 11000);
	rcd_qp_expire(p.b->qp, 11000);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.b->qp), 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 11000, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 11000, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_ACKNOWLEDGE);
	CU_ASSERT_EQUAL(told.sent, 2 * PACKET);
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_CC_PACING_LIMITED), 1);
	end();
}

/* A probe says nothing of a loss; without a round trip the first one is heavy, and others none. */
static void
losses_of_a_start(void)
{
	struct rcd_tx_pkt out;
	struct rcd_pkt nak, ack;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8 * 1024, 0);
	while (rcd_qp_tx_next(p.a->qp, 1000, &out))
		continue;
	ack = ack_by_hand(rcd_psn_sub(out.roce.bth.psn, 7));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, 2000), RCD_RX_EXECUTED);
	rcd_qp_expire(p.a->qp, 2000 + 1000000);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1002000, &out));
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRANSMITTED_PKTS), 1);
	CU_ASSERT_EQUAL(told.losses, 0);
	for (uint32_t i = 1; i < 4; i++) {
		nak = nak_by_hand(rcd_psn_add(ack.roce.bth.psn, i));
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, UINT64_C(1100000) * i), RCD_RX_EXECUTED);
		CU_ASSERT_EQUAL(told.losses, 1);
		CU_ASSERT_EQUAL(told.heavy, 1);
	}
	end();
}

/* Who knows no round trip asks early with a window: all that he floods nobody with may be lost. */
static void
a_first_probe(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	for (uint32_t windowed = 0; windowed < 2; windowed++) {
		uint64_t probe_ns = windowed ? RCD_PROBE_FIRST_WINDOW_NS : RCD_PROBE_FIRST_NS;
		struct rcd_tx_pkt out;

		if (windowed)
			begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
		else
			begin(&init, NULL);
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
		CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), 1000 + probe_ns);
		rcd_qp_expire(p.a->qp, 1000 + probe_ns);
		CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_TLP), 1);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000 + probe_ns, &out));
		/* The second one is no sooner than it was: here comes the timeout before it. */
		CU_ASSERT(rcd_qp_next_deadline(p.a->qp) > 1000 + RCD_PROBE_FIRST_NS);
		end();
	}
}

/* What is missing of all that was under way is one loss, but when it is much, or lost again. */
static void
losses_once(void)
{
	struct rcd_psn first;
	struct rcd_pkt ack;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
	for (uint32_t i = 0; i < 3; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	first = send_all(1000);
	/* The first that asks is the 32nd. */
	ack = ack_by_hand(rcd_psn_add(first, 31));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, 5000), RCD_RX_EXECUTED);
	/* With what is acknowledged between them the fifth is one of 20 too many. */
	for (uint32_t i = 0; i < 8; i++) {
		miss(first, 33 + i, 10000 + i * UINT64_C(10000));
		CU_ASSERT_EQUAL(told.losses, i < 4 ? 1 : 2);
		CU_ASSERT_EQUAL(told.heavy, i < 4 ? 0 : 1);
	}
	/* One that is sent again and lost again, for a loss that is heavy. */
	miss(first, 40, 100000);
	CU_ASSERT_EQUAL(told.heavy, 2);
	/* All came: the next is one by itself. */
	ack = ack_by_hand(rcd_psn_add(first, 119));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, 110000), RCD_RX_EXECUTED);
	for (uint32_t i = 0; i < 3; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	CU_ASSERT_EQUAL(send_all(120000).val, rcd_psn_add(first, 120).val);
	miss(first, 121, 130000);
	CU_ASSERT_EQUAL(told.losses, 4);
	CU_ASSERT_EQUAL(told.heavy, 2);
	/* Of eight packets three are much. */
	miss(first, 232, 140000);
	miss(first, 234, 150000);
	CU_ASSERT_EQUAL(told.losses, 4);
	CU_ASSERT_EQUAL(told.heavy, 2);
	miss(first, 236, 160000);
	CU_ASSERT_EQUAL(told.losses, 5);
	CU_ASSERT_EQUAL(told.heavy, 3);
	end();
}

/* All before this packet has come, by acknowledges of no more than 32. */
static void
come(struct rcd_psn first, uint32_t from, uint32_t number, uint64_t now_ns)
{
	while (from < number) {
		struct rcd_pkt ack;

		from = from + 32 < number ? from + 32 : number;
		ack = ack_by_hand(rcd_psn_add(first, from - 1));
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, now_ns), RCD_RX_EXECUTED);
	}
}

/*
 * So many times 40 packets, of which all leave that may and 32 are acknowledged: a round trip is
 * known. @return the first
 */
static struct rcd_psn
begin_measured(uint32_t posts)
{
	struct rcd_psn first;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
	for (uint32_t i = 0; i < posts; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	first = send_all(1000);
	come(first, 0, 32, 5000);
	return first;
}

/* What is sent again is lost again: that is chance, unless it happens twice within 300 packets. */
static void
lost_again(void)
{
	for (uint32_t came = 299; came <= 300; came++) {
		struct rcd_psn first = begin_measured(10);

		miss(first, 40, 10000);
		miss(first, 40, 110000);
		CU_ASSERT_EQUAL(told.losses, 1);
		come(first, 40, 40 + came, 200000);
		miss(first, 40 + came, 210000);
		CU_ASSERT_EQUAL(told.losses, 1);
		miss(first, 40 + came, 310000);
		CU_ASSERT_EQUAL(told.losses, came < 300 ? 2 : 1);
		CU_ASSERT_EQUAL(told.heavy, came < 300 ? 1 : 0);
		/* The third time is within them. */
		miss(first, 40 + came, 410000);
		CU_ASSERT_EQUAL(told.heavy, came < 300 ? 2 : 1);
		end();
	}
}

/* Nothing is heard, until there were so many timeouts in all. @return when that was */
static uint64_t
wait_in_vain(uint32_t timeouts)
{
	uint64_t now_ns = 0;

	for (uint32_t i = 0; counter(0, RCD_COUNTER_RTO) < timeouts && i < 100; i++) {
		now_ns = rcd_qp_next_deadline(p.a->qp);
		rcd_qp_expire(p.a->qp, now_ns);
		send_all(now_ns);
	}
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RTO), timeouts);
	return now_ns;
}

/* Nothing is heard for a whole timeout, and then for another: no chance, and none is overlooked. */
static void
lost_with_all_else(void)
{
	for (uint32_t measured = 0; measured < 2; measured++) {
		struct rcd_psn first;

		begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
		post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
		first = send_all(1000);
		if (measured)
			come(first, 0, 32, 5000);
		for (uint32_t timeouts = 1; timeouts <= 4; timeouts++) {
			wait_in_vain(timeouts);
			CU_ASSERT_EQUAL(told.losses, timeouts);
			CU_ASSERT_EQUAL(told.heavy, timeouts - measured);
		}
		end();
	}
}

/* One that fills a hole acknowledges 300 that came before: they say nothing of what comes now. */
static void
lost_again_at_once(void)
{
	struct rcd_psn first = begin_measured(10);

	miss(first, 40, 10000);
	miss(first, 40, 110000);
	miss(first, 350, 210000);
	CU_ASSERT_EQUAL(told.heavy, 0);
	miss(first, 350, 310000);
	CU_ASSERT_EQUAL(told.heavy, 1);
	end();
}

/* A timeout has the next packet that is lost again be a heavy loss, until 500 others have come. */
static void
timeouts_are_forgotten(void)
{
	for (uint32_t came = 499; came <= 500; came++) {
		struct rcd_psn first = begin_measured(15);
		uint64_t now_ns;

		send_all(5000);
		now_ns = wait_in_vain(1);
		come(first, 32, 32 + came, now_ns);
		for (uint32_t i = 0; i < 2; i++) {
			now_ns += 10000000;
			CU_ASSERT_EQUAL(told.heavy, 0);
			miss(first, 32 + came, now_ns);
		}
		CU_ASSERT_EQUAL(told.heavy, came < 500 ? 1 : 0);
		end();
	}
}

/* It closes behind packets that ask for nothing: one more does, and no second. */
static void
window_closes_early(void)
{
	struct rcd_tx_pkt out;

	begin_told(RCD_QP_RC, 8 * PACKET, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
		CU_ASSERT_FALSE(out.roce.bth.ack_req);
	}
	told.window = 2 * PACKET;
	CU_ASSERT_EQUAL(congest(1500), RCD_RX_CNP);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 2000, &out));
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_EQUAL(congest(2500), RCD_RX_CNP);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 3000, &out));
	end();
}

/* A part of a first window is lost: all of it goes again, as far as the window allows. */
static void
first_window_again(void)
{
	struct rcd_psn first;
	struct rcd_tx_pkt out;

	begin_told(RCD_QP_RC, 32 * PACKET, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	first = send_all(1000);
	told.window = PACKET;
	miss(first, 2, 30000);
	CU_ASSERT_EQUAL(told.heavy, 1);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 30000, &out));
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, rcd_psn_add(first, 2).val);
	/* Nobody named the fourth. */
	told.window = 3 * PACKET;
	miss(first, 3, 90000);
	for (uint32_t i = 0; i < 2; i++) {
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 90000, &out));
		CU_ASSERT_EQUAL(out.roce.bth.psn.val, rcd_psn_add(first, 3 + i).val);
	}
	end();
}

/* It ends as without a gate: nothing waits for ever for a window that does not open. */
static void
nobody_acknowledges(void)
{
	begin_told(RCD_QP_RC, 1, 1000000);
	p.sim.nodes[0].out.loss = 1;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8 * 1024, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_RETRY_EXC_ERR));
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), 0);
	CU_ASSERT_EQUAL(told.acked, 0);
	CU_ASSERT_TRUE(told.losses > 0);
	end();
}

/* Those that nothing acknowledges: UC hears CNPs and is paced, datagrams pass. */
static void
unreliable_services(void)
{
	struct rcd_qp_limits limits;
	struct rcd_tx_pkt out;

	begin_told(RCD_QP_UC, 1, 10000);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 2 * 1024, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_EQUAL(congest(1500), RCD_RX_CNP);
	CU_ASSERT_EQUAL(told.cnps, 1);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_CNP_HANDLED), 1);
	rcd_qp_limits(p.a->qp, &limits);
	CU_ASSERT_EQUAL(limits.cnps, 1);
	CU_ASSERT_EQUAL(limits.rate_kbps, TOLD_KBPS);
	CU_ASSERT_EQUAL(limits.window, 1);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 2000, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 11000, &out));
	end();
	begin_told(RCD_QP_UD, 1, 10000);
	for (uint32_t i = 0; i < 2; i++) {
		post_datagram(0, 8, 0);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	}
	CU_ASSERT_EQUAL(told.inits, 0);
	end();
}

/* With a round trip the absences of the thread are told, after a move those of the other. */
static void
absences_are_told(void)
{
	struct rcd_qp_attr attr, reset = { .state = RCD_QP_RESET };
	uint32_t other_ns = 90000;
	struct rcd_psn first;
	struct rcd_pkt ack;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
	for (uint32_t moved = 0; moved < 3; moved++) {
		const uint32_t *next_ns = moved == 0 ? &other_ns : NULL;

		told.away_ns = 70000;
		told.rtts = 0;
		post(p.a, RCD_WR_RDMA_WRITE, 0, 4 * 1024, 0);
		/* With those of before, which RESET had it forget. */
		first = send_all(1000);
		ack = ack_by_hand(rcd_psn_add(first, 4 * (moved + 1) - 1));
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, 5000), RCD_RX_EXECUTED);
		CU_ASSERT_EQUAL(told.rtts, 1);
		CU_ASSERT_EQUAL(told.acked_away_ns, moved == 0 ? 70000 : moved == 1 ? 90000 : 0);
		/* Not while it is connected. */
		CU_ASSERT_EQUAL(rcd_qp_move(p.a->qp, p.a->init.counters, NULL, NULL), -EINVAL);
		rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE);
		rcd_qp_modify(p.b->qp, &reset, RCD_QP_ATTR_STATE);
		CU_ASSERT_EQUAL(
			rcd_qp_move(p.a->qp, p.a->init.counters, p.a->init.reorder, next_ns), 0);
		attr = sim_attr(&p.sim);
		sim_connect(p.a, p.b, &attr, &attr);
	}
	end();
}

/* A window is nothing for who is never acknowledged: CNPs would close it for ever. */
static void
no_window_of_uc(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UC);
	struct rcd_cc_params params;
	struct rcd_tx_pkt out;

	rcd_cc_params_init(&params);
	init.cc_params = &params;
	for (uint32_t later = 0; later < 2; later++) {
		init.cc = later ? &rcd_cc_dcqcn : &rcd_cc_swift;
		begin(&init, NULL);
		if (later) {
			struct rcd_qp_attr attr, reset = { .state = RCD_QP_RESET };

			rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE);
			rcd_qp_modify(p.b->qp, &reset, RCD_QP_ATTR_STATE);
			CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_swift, &params), 0);
			attr = sim_attr(&p.sim);
			sim_connect(p.a, p.b, &attr, &attr);
		}
		CU_ASSERT_FALSE(rcd_qp_reacts(p.a->qp));
		post(p.a, RCD_WR_RDMA_WRITE, 0, 100 * 1024, 0);
		for (uint32_t i = 0; i < 50; i++) {
			CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000 + i * 1000000, &out));
			CU_ASSERT_EQUAL(congest(1000 + i * 1000000), RCD_RX_CNP);
		}
		for (uint32_t i = 0; i < 50; i++)
			CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 51000000, &out));
		end();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "a window, and what is asked for when it closes", window_holds },
		{ "a window that closes early", window_closes_early },
		{ "a first window that is lost", first_window_again },
		{ "a window of less than a packet", window_of_nothing },
		RCD_TEST(no_rate_no_question),
		RCD_TEST(one_window),
		{ "the pace of requests, and of what is sent again", pace_of_requests },
		{ "the pace of responses", pace_of_responses },
		{ "losses before a round trip is known, and probes", losses_of_a_start },
		{ "the first probe comes early with a window", a_first_probe },
		{ "losses are told once for all under way, and when they are many", losses_once },
		{ "a packet that is lost again is a heavy loss within 300 others", lost_again },
		{ "what comes with one that was lost is no more than 32 others",
			lost_again_at_once },
		{ "timeouts in a row are heavy losses", lost_with_all_else },
		{ "a timeout is forgotten when 500 packets have come", timeouts_are_forgotten },
		{ "a peer that acknowledges nothing", nobody_acknowledges },
		RCD_TEST(absences_are_told),
		RCD_TEST(no_window_of_uc),
		{ "UC is paced, datagrams are not", unreliable_services },
	};

	return rcd_tap_run("qp_gate", tests, RCD_ARRAY_COUNT(tests));
}
