/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a loss that was none costs nothing, one that may have been is not undone, and who lies
 * about it gains nothing twice. Method: two nodes in the simulator, of which a has the algorithm of
 * told.h and agreed to selective acknowledgement; SACKs by hand.
 */
#include "rcd_tap.h"
#include "told.h"

static void
send_again(uint32_t count, uint64_t now_ns)
{
	struct rcd_tx_pkt out;

	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, now_ns, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, now_ns, &out));
}

/* 64 packets are sent, and the third and seventh again, being late. @return the first PSN */
static struct rcd_psn
begin_late(void)
{
	struct rcd_psn first;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
	sim_agree_sack(p.a);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 64 * 1024, 0);
	first = send_all(1000);
	tell_sack(rcd_psn_add(first, 2), rcd_psn_add(first, 9), 0x77, 21000);
	send_again(2, 21000);
	CU_ASSERT_EQUAL(told.losses, 1);
	return first;
}

/* 40 packets have come, and the third again, and then the seventh. */
static void
both_come_twice(struct rcd_psn first, uint64_t now_ns)
{
	tell_sack(rcd_psn_add(first, 40), rcd_psn_add(first, 39), 0, now_ns);
	tell_sack(rcd_psn_add(first, 40), rcd_psn_add(first, 2), 0, now_ns);
	CU_ASSERT_EQUAL(told.undone, 0);
	tell_sack(rcd_psn_add(first, 40), rcd_psn_add(first, 6), 0, now_ns);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SPURIOUS), 2);
}

/* All that was sent again was so in vain: what that cost comes back, once. */
static void
late_is_undone(void)
{
	struct rcd_psn first = begin_late();

	both_come_twice(first, 30000);
	CU_ASSERT_EQUAL(told.undone, 1);
	CU_ASSERT_EQUAL(told.undone_to, 0);
	/* Behind the last nothing is waited for any more. */
	for (uint32_t i = 0; i < 63; i++)
		tell_sack(rcd_psn_add(first, 40), rcd_psn_add(first, i), 0, 30000);
	send_again(0, 30000);
	/* One more, too soon to be told, and in vain as well. */
	post(p.a, RCD_WR_RDMA_WRITE, 0, 16 * 1024, 0);
	CU_ASSERT_EQUAL(send_all(30000).val, rcd_psn_add(first, 64).val);
	tell_sack(rcd_psn_add(first, 40), rcd_psn_add(first, 70), UINT32_MAX, 31000);
	send_again(1, 31000);
	tell_sack(rcd_psn_add(first, 42), rcd_psn_add(first, 40), 0, 32000);
	tell_sack(rcd_psn_add(first, 42), rcd_psn_add(first, 40), 0, 32000);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SPURIOUS), 3);
	CU_ASSERT_EQUAL(told.undone, 1);
	CU_ASSERT_EQUAL(told.losses, 1);
	/* And one of what was under way then is a loss of its own. */
	tell_sack(rcd_psn_add(first, 50), rcd_psn_add(first, 75), UINT32_MAX, 90000);
	send_again(1, 90000);
	CU_ASSERT_EQUAL(told.losses, 2);
	end();
}

/* Congestion was told of since; or nobody can tell which copy came, or what a NAK is for. */
static void
loss_is_kept(void)
{
	struct rcd_psn first = begin_late();
	uint64_t now_ns = 22000;
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	pkt = nak_by_hand(rcd_psn(0));
	pkt.roce.bth.opcode = RCD_OPCODE_CNP;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 22000), RCD_RX_CNP);
	both_come_twice(first, 41000);
	CU_ASSERT_EQUAL(told.undone, 0);
	end();
	/* Probes are of the newest, and then of the third. */
	first = begin_late();
	for (out.roce.bth.psn = first; !rcd_psn_eq(out.roce.bth.psn, rcd_psn_add(first, 2));) {
		now_ns = rcd_qp_next_deadline(p.a->qp);
		rcd_qp_expire(p.a->qp, now_ns);
		CU_ASSERT_FATAL(counter(0, RCD_COUNTER_RTO) == 0);
		rcd_qp_tx_next(p.a->qp, now_ns, &out);
	}
	both_come_twice(first, now_ns);
	CU_ASSERT_EQUAL(told.undone, 0);
	end();
	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
	sim_agree_sack(p.a);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 64 * 1024, 0);
	first = send_all(1000);
	/* The first that asks is the 32nd. */
	pkt = ack_by_hand(rcd_psn_add(first, 31));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 5000), RCD_RX_EXECUTED);
	miss(first, 33, 6000);
	send_again(1, 6000);
	tell_sack(rcd_psn_add(first, 40), rcd_psn_add(first, 42), 0x3, 27000);
	send_again(1, 27000);
	tell_sack(rcd_psn_add(first, 64), rcd_psn_add(first, 63), 0, 30000);
	tell_sack(rcd_psn_add(first, 64), rcd_psn_add(first, 40), 0, 47000);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SPURIOUS), 1);
	CU_ASSERT_EQUAL(told.undone, 0);
	end();
}

/* Each loss has its own, and those that were sent again soon after the one before. */
static void
losses_are_undone_apart(void)
{
	struct rcd_psn first = begin_late();

	tell_sack(rcd_psn_add(first, 64), rcd_psn_add(first, 63), 0, 22000);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 16 * 1024, 0);
	CU_ASSERT_EQUAL(send_all(23000).val, rcd_psn_add(first, 64).val);
	tell_sack(rcd_psn_add(first, 66), rcd_psn_add(first, 68), 0x3, 24000);
	send_again(1, 24000);
	CU_ASSERT_EQUAL(told.losses, 1);
	tell_sack(rcd_psn_add(first, 66), rcd_psn_add(first, 71), 0x17, 50000);
	send_again(1, 50000);
	CU_ASSERT_EQUAL(told.losses, 2);
	tell_sack(rcd_psn_add(first, 80), rcd_psn_add(first, 79), 0, 51000);
	for (uint32_t psn = 2; psn <= 6; psn += 4)
		tell_sack(rcd_psn_add(first, 80), rcd_psn_add(first, psn), 0, 52000);
	tell_sack(rcd_psn_add(first, 80), rcd_psn_add(first, 70), 0, 52000);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SPURIOUS), 3);
	CU_ASSERT_EQUAL(told.undone, 0);
	tell_sack(rcd_psn_add(first, 80), rcd_psn_add(first, 66), 0, 53000);
	CU_ASSERT_EQUAL(told.undone, 1);
	CU_ASSERT_EQUAL(told.undone_to, 1);
	end();
}

/* Of one loss that turns out to be a heavy one: what was before it was told at all. */
static void
heavy_is_undone(void)
{
	struct rcd_psn first;

	begin_told(RCD_QP_RC, RCD_CC_NO_WINDOW, 0);
	sim_agree_sack(p.a);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 12 * 1024, 0);
	first = send_all(1000);
	tell_sack(first, rcd_psn_add(first, 2), 0x3, 21000);
	send_again(1, 21000);
	CU_ASSERT_EQUAL(told.heavy, 0);
	/* The oldest is missing after two round trips, and another one; then twice. */
	tell_sack(first, rcd_psn_add(first, 7), 0x7b, 60000);
	send_again(1, 60000);
	CU_ASSERT_EQUAL(told.heavy, 0);
	CU_ASSERT_EQUAL(told.losses, 1);
	tell_sack(first, rcd_psn_add(first, 11), 0x6fb, 160000);
	send_again(1, 160000);
	CU_ASSERT_EQUAL(told.heavy, 1);
	CU_ASSERT_EQUAL(told.losses, 2);
	tell_sack(rcd_psn_add(first, 12), rcd_psn_add(first, 11), 0, 161000);
	for (uint32_t psn = 3; psn <= 9; psn += 6)
		tell_sack(rcd_psn_add(first, 12), rcd_psn_add(first, psn), 0, 162000);
	CU_ASSERT_EQUAL(told.undone, 0);
	tell_sack(rcd_psn_add(first, 12), first, 0, 163000);
	CU_ASSERT_EQUAL(told.undone, 1);
	CU_ASSERT_EQUAL(told.undone_to, 0);
	end();
}

/* What was sent again 512 packets ago is none of what was for this loss. */
static void
places_are_used_again(void)
{
	struct rcd_psn first = begin_late();

	tell_sack(rcd_psn_add(first, 64), rcd_psn_add(first, 63), 0, 30000);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 448 * 1024, 0);
	CU_ASSERT_EQUAL(send_all(200000).val, rcd_psn_add(first, 64).val);
	tell_sack(rcd_psn_add(first, 500), rcd_psn_add(first, 503), 0x7, 250000);
	send_again(1, 250000);
	CU_ASSERT_EQUAL(told.losses, 2);
	tell_sack(rcd_psn_add(first, 512), rcd_psn_add(first, 511), 0, 251000);
	tell_sack(rcd_psn_add(first, 512), rcd_psn_add(first, 500), 0, 270000);
	CU_ASSERT_EQUAL(told.undone, 1);
	CU_ASSERT_EQUAL(told.undone_to, 1);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(late_is_undone),
		RCD_TEST(loss_is_kept),
		RCD_TEST(losses_are_undone_apart),
		RCD_TEST(heavy_is_undone),
		RCD_TEST(places_are_used_again),
	};

	return rcd_tap_run("qp_undo", tests, RCD_ARRAY_COUNT(tests));
}
