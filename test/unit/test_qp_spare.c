/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a SACK that tells of a hole spares the NAK where it is as good as one, and nowhere else: no
 * hole waits for a timer that need not (doc/sack.md). Method: requests and SACKs made by hand, and
 * two nodes in the simulator without any timer.
 */
#include "rcd_aeth.h"
#include "rcd_qp_priv.h"
#include "rcd_tap.h"
#include "situation.h"

enum {
	MTU = 1024,
	BESIDE = RCD_NAKS_BESIDE,
	TARGET = 1 << 20,
};

static const uint8_t second[4] = { 0x01 }, nothing[4];

/* Both have agreed, and no timer runs. */
static void
begin_agreed(uint8_t retry_cnt)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.timeout = 0;
	attr.retry_cnt = retry_cnt;
	begin(&init, &attr);
	sim_agree_sack(p.a);
	sim_agree_sack(p.b);
	p.sim.nodes[0].out.gbps = p.sim.nodes[1].out.gbps = 10;
}

/* A request comes, and b may not send yet. */
static void
comes(uint32_t psns, enum rcd_rx_verdict verdict)
{
	struct rcd_pkt pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, psns);

	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), verdict);
}

/* SACKs with a bit that b sent for what came last. */
static uint32_t sacks;

/* A WRITE comes to b, so far behind the one that it expects. @return NAKs that it sends then */
static uint32_t
naks_for(uint32_t psns)
{
	struct rcd_pkt pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, psns);
	struct rcd_tx_pkt out;
	uint32_t count = 0;

	sacks = 0;
	rcd_qp_rx(p.b->qp, &pkt, 1000);
	while (rcd_qp_tx_next(p.b->qp, 1700, &out)) {
		count += rcd_aeth_kind(out.roce.aeth.syndrome) == RCD_AETH_NAK;
		sacks += out.roce.bth.opcode == RCD_OPCODE_SACK && out.pieces[0].base[0] != 0;
	}
	return count;
}

/* The first holes get both. @return NAKs of those */
static uint32_t
earn_trust(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < BESIDE; i++) {
		count += naks_for(1);
		CU_ASSERT_EQUAL(naks_for(0), 0);
	}
	return count;
}

static void
sacks_stand_for_naks(void)
{
	begin_agreed(7);
	CU_ASSERT_EQUAL(earn_trust(), BESIDE);
	CU_ASSERT_EQUAL(naks_for(1), 0);
	CU_ASSERT_EQUAL(sacks, 1);
	CU_ASSERT_EQUAL(naks_for(3), 0);
	CU_ASSERT_EQUAL(sacks, 1);
	/* Late, and not sent again. */
	CU_ASSERT_EQUAL(naks_for(2), 0);
	CU_ASSERT_EQUAL(sacks, 1);
	end();
}

/* Memory comes when a NAK is about to leave: the peer may have none yet. */
static void
just_agreed(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	comes(1, RCD_RX_KEPT);
	sim_agree_sack(p.b);
	CU_ASSERT_EQUAL(naks_for(3), 1);
	CU_ASSERT_EQUAL(sacks, 1);
	end();
}

/* What fills a long hole takes no trust away: no NAK has left for it. */
static void
long_hole_is_one(void)
{
	begin_agreed(7);
	CU_ASSERT_EQUAL(naks_for(BESIDE), 1);
	for (uint32_t i = 0; i < BESIDE; i++)
		comes(0, RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(naks_for(1), 1);
	end();
}

/* Not for long: 64 packets behind a hole it is told of in the other way, too. */
static void
long_holes(void)
{
	begin_agreed(7);
	earn_trust();
	CU_ASSERT_EQUAL(naks_for(1), 0);
	/* More than the situation keeps. */
	p.b->qp->nak_seen = RCD_NAK_AGAIN_PACKETS - 2;
	CU_ASSERT_EQUAL(naks_for(2), 0);
	/* With a SACK, as in every sixteenth. */
	p.b->qp->sack->since = RCD_SACK_EVERY - 1;
	CU_ASSERT_EQUAL(naks_for(3), 1);
	CU_ASSERT_EQUAL(naks_for(4), 0);
	CU_ASSERT_EQUAL(naks_for(0), 0);
	/* Which says nothing against SACKs: so many come in a round trip. */
	CU_ASSERT_EQUAL(naks_for(1), 0);
	end();
}

/* What is there comes again, and not what is missing. */
static void
who_does_not_hear(void)
{
	begin_agreed(7);
	earn_trust();
	CU_ASSERT_EQUAL(naks_for(1), 0);
	CU_ASSERT_EQUAL(naks_for(1), 1);
	CU_ASSERT_EQUAL(naks_for(0), 0);
	/* That was the first of them. */
	CU_ASSERT_EQUAL(earn_trust(), BESIDE - 1);
	CU_ASSERT_EQUAL(naks_for(1), 0);
	end();
}

/* What a network doubles before anything was told says nothing of who is told. */
static void
doubled(void)
{
	begin_agreed(7);
	earn_trust();
	comes(1, RCD_RX_KEPT);
	CU_ASSERT_EQUAL(naks_for(1), 1);
	CU_ASSERT_EQUAL(naks_for(0), 0);
	CU_ASSERT_EQUAL(naks_for(1), 0);
	end();
}

/* A NAK that has to leave does, though what is late comes before it has. */
static void
asked_for(void)
{
	begin_agreed(7);
	earn_trust();
	CU_ASSERT_EQUAL(naks_for(1), 0);
	p.b->qp->nak_seen = RCD_NAK_AGAIN_PACKETS - 1;
	comes(3, RCD_RX_KEPT);
	CU_ASSERT_EQUAL(naks_for(2), 1);
	CU_ASSERT_EQUAL(sacks, 1);
	end();
}

/* Kept, and just not behind what a SACK tells of. */
static void
too_far_to_tell(void)
{
	for (uint32_t last = RCD_SACK_PSNS - 1; last <= RCD_SACK_PSNS; last++) {
		begin_agreed(7);
		earn_trust();
		CU_ASSERT_EQUAL(naks_for(last), last == RCD_SACK_PSNS);
		end();
	}
}

/* It leaves behind what is still to be answered, and a SACK before that. */
static void
behind_answers(void)
{
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	begin_agreed(7);
	earn_trust();
	pkt = by_hand(RCD_OPCODE_RC_RDMA_READ_REQUEST, 0);
	pkt.payload_len = 0;
	pkt.roce.reth.dma_len = 4 * MTU;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_EXECUTED);
	pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_KEPT);
	CU_ASSERT_TRUE_FATAL(rcd_qp_tx_next(p.b->qp, 1700, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_SACK);
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_TRUE_FATAL(rcd_qp_tx_next(p.b->qp, 1700, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST);
	CU_ASSERT_TRUE_FATAL(rcd_qp_tx_next(p.b->qp, 1700, &out));
	CU_ASSERT_EQUAL(rcd_aeth_kind(out.roce.aeth.syndrome), RCD_AETH_NAK);
	end();
}

/* Of a request that fails the NAK is another, and it leaves. */
static void
refused(void)
{
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;
	uint32_t count = 0;

	begin_agreed(7);
	earn_trust();
	CU_ASSERT_EQUAL(naks_for(2), 0);
	pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 0);
	pkt.roce.reth.dma_len = 9;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_REFUSED);
	while (rcd_qp_tx_next(p.b->qp, 1700, &out))
		count += out.roce.aeth.syndrome ==
			rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_INVALID_REQUEST);
	CU_ASSERT_EQUAL(count, 1);
	end();
}

/* Packets that a sends now, of which it is told nothing. */
static uint32_t
take_all(uint64_t now_ns)
{
	struct rcd_tx_pkt pkt;
	uint32_t count = 0;

	while (rcd_qp_tx_next(p.a->qp, now_ns, &pkt))
		CU_ASSERT_FATAL(++count < 1000);
	return count;
}

/* A requester has memory for it since a moment ago: all that is out was sent before. */
static void
who_is_blind(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_psn first;
	struct rcd_pkt pkt;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 64 * MTU, TARGET);
	first = by_hand(RCD_OPCODE_RC_SEND_ONLY, 0).roce.bth.psn;
	CU_ASSERT_EQUAL(take_all(1000), 64);
	sim_agree_sack(p.a);
	/* Without a bit it tells of no hole, and many tell of one: it is sent again once. */
	for (uint32_t i = 0; i < 100; i++) {
		uint64_t now_ns = 20000 + 40000 * i;

		pkt = sack_by_hand(first, rcd_psn_add(first, 2), i == 0 ? nothing : second, 4);
		rcd_qp_rx(p.a->qp, &pkt, now_ns);
		CU_ASSERT_EQUAL(take_all(now_ns), i == 1);
	}
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 0);
	end();
}

/* With a retry count of 0 it is the end, if it is of what was sent. */
static void
no_retries(void)
{
	static const uint8_t never_sent[4] = { 0x80 };
	struct rcd_psn first;
	struct rcd_pkt pkt;

	begin_agreed(0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8 * MTU, TARGET);
	first = by_hand(RCD_OPCODE_RC_SEND_ONLY, 0).roce.bth.psn;
	CU_ASSERT_EQUAL(take_all(1000), 8);
	for (uint32_t i = 0; i < 2; i++) {
		pkt = sack_by_hand(first, rcd_psn_add(first, 2), i == 0 ? never_sent : second, 4);
		rcd_qp_rx(p.a->qp, &pkt, 20000 + i);
		CU_ASSERT_EQUAL(take_all(20000 + i), 0);
		CU_ASSERT_EQUAL(completed(0, 0, 0, RCD_WC_RETRY_EXC_ERR), i == 1);
	}
	end();
}

/* More PSNs than are kept track of, and a WRITE behind them is lost. */
static void
behind_a_long_read(void)
{
	begin_agreed(7);
	p.b->qp->nak_beside = 0;
	post(p.a, RCD_WR_RDMA_READ, 0, 600 * MTU, TARGET);
	for (uint32_t i = 0; i < 4; i++)
		post(p.a, RCD_WR_RDMA_WRITE, i * MTU, MTU, TARGET + i * MTU);
	p.sim.nodes[0].out.loss_mask = 0x2;
	p.sim.nodes[0].out.loss_mask_frames = 64;
	run();
	for (uint32_t i = 0; i < 5; i++)
		CU_ASSERT_TRUE(completed(0, i, i, RCD_WC_SUCCESS));
	end();
}

/* Packets overtake others here; what is lost at the end of a burst is not waited for. */
static void
patience_ends(void)
{
	static const enum rcd_wr_opcode lasts[] = { RCD_WR_RDMA_WRITE, RCD_WR_RDMA_READ };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(lasts); i++) {
		begin_agreed(7);
		p.b->qp->nak_beside = 0;
		p.a->qp->sack->base = 20000 >> RCD_SACK_TICK_SHIFT;
		p.a->qp->sack->patience = 16;
		post(p.a, RCD_WR_RDMA_WRITE, 0, 3 * MTU, TARGET);
		post(p.a, lasts[i], 4 * MTU, 4 * MTU, TARGET + 4 * MTU);
		p.sim.nodes[0].out.loss_mask = 0x4;
		p.sim.nodes[0].out.loss_mask_frames = 64;
		run();
		CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
		CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_SUCCESS));
		CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SACK_REPAIR), 1);
		end();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(sacks_stand_for_naks),
		RCD_TEST(just_agreed),
		RCD_TEST(long_hole_is_one),
		RCD_TEST(long_holes),
		RCD_TEST(who_does_not_hear),
		RCD_TEST(doubled),
		RCD_TEST(asked_for),
		RCD_TEST(too_far_to_tell),
		RCD_TEST(behind_answers),
		RCD_TEST(refused),
		RCD_TEST(who_is_blind),
		RCD_TEST(no_retries),
		RCD_TEST(behind_a_long_read),
		RCD_TEST(patience_ends),
	};

	return rcd_tap_run("qp_spare", tests, RCD_ARRAY_COUNT(tests));
}
