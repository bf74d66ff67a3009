/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a window goes on where a path loses packets. Method: two nodes in the simulator, of which a
 * has the algorithm of told.h and agreed to selective acknowledgement; SACKs by hand.
 */
#include "rcd_gate_flight.h"
#include "rcd_qp_priv.h"
#include "rcd_tap.h"
#include "told.h"

#define LOSSY_PACKETS 1024 /* that have to come without a loss */

/* Packets that leave now. @param asking  how many of them ask for an acknowledge */
static uint32_t
send_now(uint64_t now_ns, uint32_t *asking)
{
	struct rcd_tx_pkt out;
	uint32_t count = 0;

	*asking = 0;
	for (; rcd_qp_tx_next(p.a->qp, now_ns, &out); count++)
		*asking += out.roce.bth.ack_req;
	return count;
}

static void
acknowledge(struct rcd_psn last, uint64_t now_ns)
{
	struct rcd_pkt ack = ack_by_hand(last);

	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, now_ns), RCD_RX_EXECUTED);
}

/* @return the first PSN of so many packets, of which as many are sent as the window holds */
static struct rcd_psn
begin_window(uint32_t window, uint32_t packets)
{
	begin_told(RCD_QP_RC, window * PACKET, 0);
	told.rate_kbps = 0;
	sim_agree_sack(p.a);
	post(p.a, RCD_WR_RDMA_WRITE, 0, packets * 1024, 0);
	return send_all(1000);
}

/* A ring of them, which is counted from anywhere, once. */
static void
bits_are_counted(void)
{
	struct rcd_psn from = rcd_psn(RCD_PSN_MASK - 99);
	struct rcd_sack_bits bits = { { 0 } };

	for (uint32_t i = 0; i < RCD_SACK_PSNS; i += 2)
		rcd_sack_bits_set(&bits, rcd_psn_add(from, i), true);
	CU_ASSERT_EQUAL(rcd_sack_bits_count(&bits, from, from), 0);
	CU_ASSERT_EQUAL(rcd_sack_bits_count(&bits, from, rcd_psn_add(from, 1)), 1);
	CU_ASSERT_EQUAL(rcd_sack_bits_count(&bits, from, rcd_psn_add(from, 201)), 101);
	CU_ASSERT_EQUAL(rcd_sack_bits_count(&bits, from, rcd_psn_add(from, 512)), 256);
	CU_ASSERT_EQUAL(rcd_sack_bits_count(&bits, from, rcd_psn_add(from, 1000)), 256);
}

/* What the peer has behind a hole is not on its way, told once or ten times. */
static void
kept_is_no_flight(void)
{
	struct rcd_psn first = begin_window(8, 40);
	uint32_t asking;

	tell_sack(first, rcd_psn_add(first, 3), 0x7, 21000);
	/* The hole, and three. */
	CU_ASSERT_EQUAL(send_now(21000, &asking), 4);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRANSMITTED_PKTS), 1);
	for (uint32_t i = 0; i < 10; i++)
		tell_sack(first, rcd_psn_add(first, 3), 0x7, 22000);
	CU_ASSERT_EQUAL(send_now(22000, &asking), 0);
	/* It was filled: eight are out, of which none was heard of. */
	acknowledge(rcd_psn_add(first, 3), 41000);
	CU_ASSERT_EQUAL(send_now(41000, &asking), 1);
	end();
}

/* A window asks twice where packets were lost, and once when enough have come. */
static void
asks_where_lossy(void)
{
	struct rcd_psn first = begin_window(8, 2000);
	struct rcd_psn next = rcd_psn_add(first, 8);
	uint64_t now_ns = 100000;
	uint32_t asking;

	acknowledge(rcd_psn_add(first, 7), 21000);
	CU_ASSERT_EQUAL(send_now(21000, &asking), 8);
	CU_ASSERT_EQUAL(asking, 1);
	tell_sack(next, rcd_psn_add(next, 1), 0x1, 41000);
	send_now(41000, &asking);
	CU_ASSERT_EQUAL(told.losses, 1);
	/* One more went for that which was kept. */
	acknowledge(rcd_psn_add(next, 8), now_ns);
	next = rcd_psn_add(next, 9);
	for (uint32_t came = 0; came + 8 < LOSSY_PACKETS - 9; came += 8) {
		CU_ASSERT_EQUAL(send_now(now_ns, &asking), 8);
		CU_ASSERT_EQUAL(asking, 2);
		now_ns += 20000;
		acknowledge(rcd_psn_add(next, 7), now_ns);
		next = rcd_psn_add(next, 8);
	}
	CU_ASSERT_EQUAL(send_now(now_ns, &asking), 8);
	acknowledge(rcd_psn_add(next, 7), now_ns + 20000);
	CU_ASSERT_EQUAL(send_now(now_ns + 20000, &asking), 8);
	CU_ASSERT_EQUAL(asking, 1);
	end();
}

/* One of which half is not used is like one where nothing is lost: it asks when it closes. */
static void
asks_where_used(void)
{
	struct rcd_psn first = begin_window(30, 8);
	uint32_t asking;

	tell_sack(first, rcd_psn_add(first, 1), 0x1, 21000);
	CU_ASSERT_EQUAL(send_now(21000, &asking), 1);
	CU_ASSERT_EQUAL(told.losses, 1);
	for (uint32_t i = 0; i < 2; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	acknowledge(rcd_psn_add(first, 7), 41000);
	CU_ASSERT_EQUAL(send_now(41000, &asking), 30);
	CU_ASSERT_EQUAL(asking, 1);
	acknowledge(rcd_psn_add(first, 37), 61000);
	CU_ASSERT_EQUAL(send_now(61000, &asking), 30);
	CU_ASSERT_EQUAL(asking, 2);
	end();
}

/* The last acknowledge of a burst sees but its end: the next burst asks as the last one did. */
static void
asks_where_bursts(void)
{
	struct rcd_psn first = begin_window(30, 30);
	uint32_t asking;

	tell_sack(first, rcd_psn_add(first, 1), 0x1, 21000);
	CU_ASSERT_EQUAL(send_now(21000, &asking), 1);
	CU_ASSERT_EQUAL(told.losses, 1);
	acknowledge(rcd_psn_add(first, 19), 41000);
	acknowledge(rcd_psn_add(first, 29), 42000);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 30 * 1024, 0);
	CU_ASSERT_EQUAL(send_now(61000, &asking), 30);
	CU_ASSERT_EQUAL(asking, 2);
	end();
}

/* One that is full when the first loss is told, before any acknowledge, is used. */
static void
asks_where_full(void)
{
	struct rcd_psn first = begin_window(30, 80);
	uint32_t asking;

	tell_sack(first, rcd_psn_add(first, 20), (1u << 20) - 1, 21000);
	/* What is sent again asks, the 15th of 20 does, and the last. */
	CU_ASSERT_EQUAL(send_now(21000, &asking), 21);
	CU_ASSERT_EQUAL(told.losses, 1);
	CU_ASSERT_EQUAL(asking, 3);
	end();
}

/*
 * A window closes behind packets that expected more, and what is sent again for one of them, which
 * asks, is lost: no packet can follow that would ask, and the timer probes.
 */
static void
asks_when_the_timer_is_due(void)
{
	struct rcd_tx_pkt out;
	struct rcd_psn first;
	uint32_t asking;

	begin_told(RCD_QP_RC, 30 * PACKET, 0);
	told.rate_kbps = 0;
	sim_agree_sack(p.a);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	first = p.a->qp->hot.psn_next;
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
		CU_ASSERT_FALSE(out.roce.bth.ack_req);
	}
	told.window = PACKET;
	tell_sack(first, rcd_psn_add(first, 1), 0x1, 21000);
	CU_ASSERT_EQUAL(send_now(21000, &asking), 1);
	CU_ASSERT_EQUAL(asking, 1);
	rcd_qp_expire(p.a->qp, rcd_qp_next_deadline(p.a->qp));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 500000, &out));
	CU_ASSERT_TRUE(rcd_psn_before(out.roce.bth.psn, rcd_psn_add(first, 4)));
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 500000, &out));
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_TLP), 1);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RTO), 0);
	end();
}

/* Without SACK a window asks once. */
static void
asks_no_other(void)
{
	struct rcd_psn first;
	uint32_t asking;

	begin_told(RCD_QP_RC, 8 * PACKET, 0);
	told.rate_kbps = 0;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 40 * 1024, 0);
	first = send_all(1000);
	miss(first, 3, 21000);
	send_now(21000, &asking);
	CU_ASSERT_EQUAL(told.losses, 1);
	/* The eight, and three that went when as many were acknowledged. */
	acknowledge(rcd_psn_add(first, 10), 41000);
	CU_ASSERT_EQUAL(send_now(41000, &asking), 8);
	CU_ASSERT_EQUAL(asking, 1);
	end();
}

/* A part of a READ has the room that is left so: of sixteen eight, and the hole is one of them. */
static void
kept_makes_room_for_reads(void)
{
	struct rcd_tx_pkt out;
	struct rcd_psn first;

	begin_told_reads(16 * PACKET, 8);
	told.rate_kbps = 0;
	sim_agree_sack(p.a);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 16 * 1024, 0);
	first = send_all(1000);
	post(p.a, RCD_WR_RDMA_READ, 0, 32 * 1024, 0);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	tell_sack(first, rcd_psn_add(first, 8), 0xff, 21000);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 21000, &out));
	CU_ASSERT_TRUE(rcd_psn_eq(out.roce.bth.psn, first));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 21000, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_REQUEST);
	CU_ASSERT_EQUAL(out.roce.reth.dma_len, 8 * 1024);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 21000, &out));
	end();
}

/* The places of a READ's responses are those of packets that were kept long before. */
static void
reads_were_not_kept(void)
{
	struct rcd_tx_pkt out;
	struct rcd_psn first;

	begin_told_reads(512 * PACKET, 8);
	told.rate_kbps = 0;
	sim_agree_sack(p.a);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 16 * 1024, 0);
	first = send_all(1000);
	tell_sack(first, rcd_psn_add(first, 8), 0xff, 21000);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 21000, &out));
	/* Something is always on its way. */
	acknowledge(rcd_psn_add(first, 14), 41000);
	for (uint32_t i = 16; i < 512; i += 16) {
		post(p.a, RCD_WR_RDMA_WRITE, 0, 16 * 1024, 0);
		send_all(50000 + 1000 * i);
		acknowledge(rcd_psn_add(first, i + 14), 50500 + 1000 * i);
	}
	told.window = 16 * PACKET;
	CU_ASSERT_EQUAL(congest(1000000), RCD_RX_CNP);
	post(p.a, RCD_WR_RDMA_READ, 0, 32 * 1024, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000000, &out));
	CU_ASSERT_TRUE(out.roce.reth.dma_len > 8 * 1024);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1000000, &out));
	CU_ASSERT_EQUAL(rcd_gate_flight(p.a->qp), p.a->qp->gate->flight);
	end();
}

/* Who is connected anew without a window asks no more often for what was lost before. */
static void
asks_no_more_when_it_has_no_window(void)
{
	struct rcd_qp_attr attr, reset = { .state = RCD_QP_RESET };
	struct rcd_cc_params params;
	uint32_t asking;

	begin_window(8, 40);
	tell_sack(p.a->qp->hot.psn_una, rcd_psn_add(p.a->qp->hot.psn_una, 3), 0x7, 21000);
	send_now(21000, &asking);
	CU_ASSERT_EQUAL(told.losses, 1);
	rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE);
	rcd_qp_modify(p.b->qp, &reset, RCD_QP_ATTR_STATE);
	rcd_cc_params_init(&params);
	CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_none, &params), 0);
	attr = sim_attr(&p.sim);
	sim_connect(p.a, p.b, &attr, &attr);
	CU_ASSERT_EQUAL(send_now(41000, &asking), 40);
	CU_ASSERT_EQUAL(asking, 2);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(bits_are_counted),
		RCD_TEST(kept_is_no_flight),
		RCD_TEST(kept_makes_room_for_reads),
		RCD_TEST(asks_where_lossy),
		RCD_TEST(asks_where_used),
		RCD_TEST(asks_where_bursts),
		RCD_TEST(asks_where_full),
		RCD_TEST(asks_when_the_timer_is_due),
		RCD_TEST(asks_no_other),
		RCD_TEST(reads_were_not_kept),
		RCD_TEST(asks_no_more_when_it_has_no_window),
	};

	return rcd_tap_run("qp_lossy", tests, RCD_ARRAY_COUNT(tests));
}
