/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what reviews found in queue pairs does not come back. Method: two nodes in the simulator,
 * the situation of each finding, packets made or taken by hand where it needs that.
 */
#include "rcd_aeth.h"
#include "rcd_tap.h"
#include "situation.h"

/* A SEND of one repeated byte, its payload in the work request. */
static void
post_inline(uint8_t byte, uint16_t len)
{
	uint32_t number = p.a->sq.posted;
	struct rcd_send_wr *wr = post(p.a, RCD_WR_SEND, 0, 0, 0);

	wr->flags |= RCD_SEND_INLINE;
	wr->inline_len = len;
	memset(p.a->sq.inlines[number], byte, len);
}

/* A window of a's own is bound. @return its key after that */
static struct rcd_key
post_bind(void)
{
	struct rcd_send_wr *wr = post(p.a, RCD_WR_BIND_MW, 0, 0, 0);

	CU_ASSERT_EQUAL(
		rcd_mw_alloc(p.sim.nodes[0].mrs, RCD_MR_WINDOW_2, SITUATION_PD, &wr->bind.mw), 0);
	wr->bind.new_rkey.val = 0x11;
	wr->bind.mr = p.key[0];
	wr->bind.len = 64;
	wr->bind.access = RCD_ACCESS_REMOTE_READ;
	return (struct rcd_key){ (wr->bind.mw.val & ~0xffu) | 0x11 };
}

/* Whether the payload of a packet is this byte all over. */
static bool
carries(const struct rcd_tx_pkt *pkt, uint8_t byte, uint32_t len)
{
	uint32_t right = 0;

	for (uint32_t i = 0; i < pkt->piece_count; i++)
		for (uint32_t k = 0; k < pkt->pieces[i].len; k++)
			right += pkt->pieces[i].base[k] == byte;
	return right == len && pkt->payload_len == len;
}

/* Any number of local operations between two: what is fetched next must not take their place. */
static void
inline_payload_stays(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_tx_pkt pkt;

	for (uint32_t between = 0; between < 6; between++) {
		begin(&init, NULL);
		post_inline('A', 32);
		for (uint32_t i = 0; i < between; i++)
			post_bind();
		post_inline('B', 32);
		post_inline('C', 7);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &pkt));
		CU_ASSERT_TRUE(carries(&pkt, 'A', 32));
		CU_ASSERT_FALSE(pkt.roce.bth.ack_req);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &pkt));
		CU_ASSERT_TRUE(carries(&pkt, 'B', 32));
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &pkt));
		CU_ASSERT_TRUE(carries(&pkt, 'C', 7));
		CU_ASSERT_TRUE(pkt.roce.bth.ack_req);
		end();
	}
}

/* The same where the first is sent again, alone and with all behind it. */
static void
inline_payload_sent_again(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	for (uint32_t mask = 1; mask < 16; mask++) {
		begin(&init, NULL);
		p.sim.nodes[0].out.loss_mask = mask;
		p.sim.nodes[0].out.loss_mask_frames = 4;
		for (uint32_t i = 0; i < 4; i++) {
			post_inline((uint8_t)('A' + i), 32);
			post_bind();
			post_recv(&p.b->rq, 1, 64 * i, 32);
		}
		run();
		for (uint32_t i = 0; i < 4; i++) {
			uint8_t want[32];

			memset(want, 'A' + (int)i, sizeof(want));
			CU_ASSERT_EQUAL(memcmp(p.sim.nodes[1].memory + 64 * i, want, 32), 0);
		}
		CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 8);
		CU_ASSERT_EQUAL(p.sim.nodes[1].cqe_count, 4);
		end();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "T1 inline payload stays until its packet was taken", inline_payload_stays },
		{ "T1 inline payload that is sent again", inline_payload_sent_again },
	};

	return rcd_tap_run("qp_findings", tests, RCD_ARRAY_COUNT(tests));
}
