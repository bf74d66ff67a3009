/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets that pass a window with room unasked are counted before anything is decided.
 * Method: two nodes in the simulator, of which a has the algorithm of told.h, with no rate.
 */
#include "rcd_tap.h"
#include "told.h"

/* A window for SENDs, WRITEs and READs, and no rate. */
static void
begin_passing(uint32_t window)
{
	begin_told_reads(window, 0);
	told.rate_kbps = 0;
}

static enum rcd_rx_verdict
congest(uint32_t window, uint64_t now_ns)
{
	struct rcd_pkt cnp = nak_by_hand(rcd_psn(0));

	told.window = window;
	cnp.roce.bth.opcode = RCD_OPCODE_CNP;
	return rcd_qp_rx(p.a->qp, &cnp, now_ns);
}

/* It closes behind packets that passed and ask for nothing: one more does, and no second. */
static void
closes_behind(void)
{
	struct rcd_tx_pkt out;

	begin_passing(8 * PACKET);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
		CU_ASSERT_FALSE(out.roce.bth.ack_req);
	}
	CU_ASSERT_EQUAL(congest(2 * PACKET, 1500), RCD_RX_CNP);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 2000, &out));
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 2000, &out));
	CU_ASSERT_EQUAL(congest(2 * PACKET, 2500), RCD_RX_CNP);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 3000, &out));
	end();
}

/* A rate that is given while packets pass is kept from the next on, and goes again. */
static void
rate_between(void)
{
	struct rcd_qp_attr attr = { .rate_kbps = 8000 };
	struct rcd_tx_pkt out;

	begin_passing(16 * PACKET);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_RATE), 0);
	/* A burst makes up for no more than the clock has gone. */
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, PACKET * 1000 - 1, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, PACKET * 1000, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, PACKET * 1000, &out));
	attr.rate_kbps = 0;
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_RATE), 0);
	for (uint32_t i = 3; i < 16; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, PACKET * 1000, &out));
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, PACKET * 1000, &out));
	end();
}

/* What passed before a RESET is of no later window. */
static void
reset_between(void)
{
	struct rcd_qp_attr attr, reset = { .state = RCD_QP_RESET };
	struct rcd_tx_pkt out;
	uint32_t count = 0;

	begin_passing(8 * PACKET);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	for (uint32_t i = 0; i < 5; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_EQUAL(rcd_qp_modify(p.b->qp, &reset, RCD_QP_ATTR_STATE), 0);
	attr = sim_attr(&p.sim);
	sim_connect(p.a, p.b, &attr, &attr);
	while (rcd_qp_tx_next(p.a->qp, 2000, &out))
		count++;
	CU_ASSERT_EQUAL(count, 8);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "a window that closes behind what passed", closes_behind },
		{ "a rate that comes and goes between packets", rate_between },
		{ "RESET between packets", reset_between },
	};

	return rcd_tap_run("qp_unasked", tests, RCD_ARRAY_COUNT(tests));
}
