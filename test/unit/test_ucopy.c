/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets whose data is the queue pair's own wait for nobody's copies. Method: a target of
 * XRC in the simulator is sent what it answers by a SACK, and lies in a place of an lcore's.
 */
#include <stdlib.h>

#include "rcd_lcore.h"
#include "rcd_queue.h"
#include "rcd_tap.h"
#include "rcd_ucopy.h"
#include "situation.h"

/* The first packet is lost: the target knows nobody yet whose memory is meant, and no keys. */
static void
a_target_says_what_is_missing(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_XRC_SEND);
	struct rcd_hqp hqp = { .target = malloc(1), .lcore = calloc(1, sizeof(struct rcd_lcore)) };
	struct rcd_tx_pkt answer;
	struct rcd_pkt pkt;

	begin(&init, NULL);
	sim_agree_sack(p.b);
	pkt = by_hand(RCD_OPCODE_XRC_SEND_ONLY, 1);
	rcd_qp_rx(p.b->qp, &pkt, 1000);
	CU_ASSERT_TRUE_FATAL(rcd_qp_tx_next(p.b->qp, 2000, &answer));
	CU_ASSERT_EQUAL(answer.roce.bth.opcode, RCD_OPCODE_SACK);
	CU_ASSERT_EQUAL(answer.piece_count, 1);
	hqp.qp = p.b->qp;
	CU_ASSERT_FALSE(rcd_ucopy_stages(&hqp, &answer));
	end();
	free(hqp.target);
	free(hqp.lcore);
}

/* As many jobs are out as there may be: what writes nothing is heard all the same. */
static void
acknowledges_need_no_room(void)
{
	static const struct {
		uint8_t opcode;
		bool heard;
	} cases[] = { { RCD_OPCODE_RC_ACKNOWLEDGE, true }, { RCD_OPCODE_XRC_ACKNOWLEDGE, true },
		{ RCD_OPCODE_SACK, true }, { RCD_OPCODE_CNP, true },
		{ RCD_OPCODE_RC_ATOMIC_ACKNOWLEDGE, false }, { RCD_OPCODE_RC_SEND_ONLY, false },
		{ RCD_OPCODE_XRC_RDMA_READ_RESPONSE_ONLY, false } };
	struct rcd_hqp hqp = { .ucopy = calloc(1, sizeof(struct rcd_ucopy)),
		.lcore = calloc(1, sizeof(struct rcd_lcore)) };

	hqp.ucopy->posted = RCD_COPYQ_JOBS;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rcd_pkt pkt = { .roce.bth.opcode = cases[i].opcode };

		CU_ASSERT_EQUAL(rcd_ucopy_admits(&hqp, &pkt), cases[i].heard);
	}
	free(hqp.ucopy);
	free(hqp.lcore);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(a_target_says_what_is_missing),
		RCD_TEST(acknowledges_need_no_room),
	};

	return rcd_tap_run("ucopy", tests, sizeof(tests) / sizeof(tests[0]));
}
