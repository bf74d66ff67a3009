/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a window goes on where a path loses packets. Method: two nodes in the simulator, of which a
 * has the algorithm of told.h and agreed to selective acknowledgement; SACKs by hand.
 */
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

/* @return the first PSN of so many packets, of which eight are sent */
static struct rcd_psn
begin_window(uint32_t packets)
{
	struct rcd_psn first;

	begin_told(RCD_QP_RC, 8 * PACKET, 0);
	told.rate_kbps = 0;
	sim_agree_sack(p.a);
	post(p.a, RCD_WR_RDMA_WRITE, 0, packets * 1024, 0);
	first = send_all(1000);
	return first;
}

/* What the peer has behind a hole is not on its way, told once or ten times. */
static void
kept_is_no_flight(void)
{
	struct rcd_psn first = begin_window(40);
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
	struct rcd_psn first = begin_window(2000);
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

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(kept_is_no_flight),
		RCD_TEST(asks_where_lossy),
		RCD_TEST(asks_no_other),
	};

	return rcd_tap_run("qp_lossy", tests, RCD_ARRAY_COUNT(tests));
}
