/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: two queue pairs that mark find out about each other whatever is lost, nobody else is ever
 * sent a HELLO, and what is forged, repeated or of an earlier life does nothing (doc/sack.md).
 * Method: two nodes in the simulator; links that scramble or echo marks; packets made by hand.
 */
#include <errno.h>

#include "rcd_cm.h"
#include "rcd_qp_priv.h"
#include "rcd_tap.h"
#include "situation.h"

enum {
	LEN = 64 * 1024,
	TARGET = 1 << 20,
	MANY = 60, /**< requests of one packet: enough for both to find out, with losses */
};

static void
begin_both(bool a, bool b)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	memset(&p.sim, 0, sizeof(p.sim));
	begin(&init, NULL);
	if (a)
		sim_find_peer(p.a);
	if (b)
		sim_find_peer(p.b);
}

/* A packet each, one after the other. */
static void
write_many(uint32_t count)
{
	while (count-- > 0) {
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, TARGET);
		run();
	}
}

static uint32_t
hellos(void)
{
	return sent[0][RCD_OPCODE_HELLO] + sent[0][RCD_OPCODE_HELLO_ACK] +
		sent[1][RCD_OPCODE_HELLO] + sent[1][RCD_OPCODE_HELLO_ACK];
}

static void
both_find_out(void)
{
	begin_both(true, true);
	write_many(RCD_HELLO_ROW - 1);
	CU_ASSERT_EQUAL(hellos(), 0);
	CU_ASSERT_PTR_NULL(p.a->qp->sack);
	/* The responder counts to its number first, and is answered when the requester has. */
	write_many(1);
	CU_ASSERT_EQUAL(hellos(), 4);
	CU_ASSERT_PTR_NOT_NULL(p.a->qp->sack);
	CU_ASSERT_PTR_NOT_NULL(p.b->qp->sack);
	write_many(20);
	CU_ASSERT_EQUAL(hellos(), 4);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_TX_HELLO), 2);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RX_HELLO), 2);
	/* And they use it. */
	p.sim.nodes[0].out.loss = 0.05;
	post(p.a, RCD_WR_RDMA_WRITE, 0, LEN, TARGET);
	run();
	CU_ASSERT_TRUE(counter(0, RCD_COUNTER_SACK_REPAIR) > 0);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[0].memory, p.sim.nodes[1].memory + TARGET, LEN), 0);
	end();
}

static void
one_alone_says_nothing(void)
{
	for (int who = 0; who < 3; who++) {
		begin_both(who == 0, who == 1);
		write_many(MANY);
		post(p.a, RCD_WR_RDMA_READ, 0, LEN, TARGET);
		run();
		CU_ASSERT_EQUAL(hellos(), 0);
		end();
	}
}

/* And not when both do, and the network does not leave their marks alone. */
static void
marks_are_changed(void)
{
	for (int how = SIM_MARKS_SCRAMBLE; how <= SIM_MARKS_ECHO; how++) {
		for (int b = 0; b < 2; b++) {
			begin_both(true, b);
			p.sim.nodes[0].out.marks = p.sim.nodes[1].out.marks = (enum sim_marks)how;
			write_many(MANY);
			post(p.a, RCD_WR_RDMA_READ, 0, LEN, TARGET);
			post(p.b, RCD_WR_RDMA_WRITE, 0, LEN, TARGET);
			run();
			CU_ASSERT_EQUAL(hellos(), 0);
			end();
		}
	}
}

/* Whichever of the packets around the exchange are lost, and come twice. */
static void
any_may_be_lost(void)
{
	for (uint32_t mask = 0; mask < 256; mask++) {
		begin_both(true, true);
		p.sim.nodes[0].out.loss_mask = (uint64_t)(mask & 15) << 8;
		p.sim.nodes[1].out.loss_mask = (uint64_t)(mask >> 4) << 8;
		p.sim.nodes[0].out.loss_mask_frames = p.sim.nodes[1].out.loss_mask_frames = 32;
		p.sim.nodes[0].out.duplicate = p.sim.nodes[1].out.duplicate = mask % 2;
		write_many(MANY);
		CU_ASSERT_PTR_NOT_NULL(p.a->qp->sack);
		CU_ASSERT_PTR_NOT_NULL(p.b->qp->sack);
		CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, MANY);
		end();
	}
}

/* Each finds out, and gets memory, in the middle of a stream with holes. */
static void
under_way(void)
{
	for (uint32_t seed = 0; seed < 64; seed++) {
		begin_both(true, true);
		p.sim.rng.state = seed;
		p.sim.nodes[0].out.loss = p.sim.nodes[1].out.loss = 0.1;
		p.sim.nodes[0].out.gbps = 10;
		for (uint32_t i = 0; i < 16; i++)
			post(p.a, RCD_WR_RDMA_WRITE, 0, LEN, TARGET);
		run();
		CU_ASSERT_PTR_NOT_NULL(p.a->qp->sack);
		CU_ASSERT_PTR_NOT_NULL(p.b->qp->sack);
		CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 16);
		CU_ASSERT_TRUE(completed(0, 15, 15, RCD_WC_SUCCESS));
		CU_ASSERT_EQUAL(
			memcmp(p.sim.nodes[0].memory, p.sim.nodes[1].memory + TARGET, LEN), 0);
		end();
	}
}

/* What came early before the peer was known is told of with the rest. */
static void
what_was_kept_before(void)
{
	static const uint32_t early[] = { 2, 3, 5 };
	uint32_t told = 0;
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	begin_both(false, false);
	for (uint32_t i = 0; i < RCD_ARRAY_COUNT(early); i++) {
		if (i == 2) {
			p.b->sack = malloc(rcd_qp_sack_size());
			CU_ASSERT_EQUAL(rcd_qp_set_sack(p.b->qp, p.b->sack), 0);
		}
		pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, early[i]);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_KEPT);
	}
	while (rcd_qp_tx_next(p.b->qp, 1000, &out))
		if (out.roce.bth.opcode == RCD_OPCODE_SACK)
			told = *(const uint8_t *)out.pieces[0].base;
	/* PSNs behind the expected one, from 1 on. */
	CU_ASSERT_EQUAL(told, 1 << 1 | 1 << 2 | 1 << 4);
	end();
}

static void
host_is_busy(void)
{
	begin_both(true, true);
	p.a->busy = 3;
	write_many(RCD_HELLO_ROW + 2);
	CU_ASSERT_PTR_NULL(p.a->qp->sack);
	CU_ASSERT_TRUE(rcd_qp_found_peer(p.a->qp));
	write_many(1);
	CU_ASSERT_PTR_NOT_NULL(p.a->qp->sack);
	CU_ASSERT_FALSE(rcd_qp_found_peer(p.a->qp));
	CU_ASSERT_EQUAL(hellos(), 4);
	end();
}

/* To a. */
static struct rcd_pkt
hello_by_hand(uint8_t opcode, uint64_t nonce)
{
	struct rcd_pkt pkt = nak_by_hand(rcd_psn(0));

	pkt.roce.bth.opcode = opcode;
	pkt.roce.helloeth = (struct rcd_helloeth){ RCD_CM_OFFERS_SACK, nonce };
	return pkt;
}

static uint32_t
take_hellos(uint64_t now_ns)
{
	struct rcd_tx_pkt out;
	uint32_t count = 0;

	while (rcd_qp_tx_next(p.a->qp, now_ns, &out))
		count += out.roce.bth.opcode >= RCD_OPCODE_HELLO;
	return count;
}

/* It asks with each packet, and not with the one that ends the queue pair. */
static void
the_end_is_told_to_nobody(void)
{
	struct rcd_pkt pkt;

	begin_both(true, true);
	p.a->busy = UINT32_MAX;
	write_many(RCD_HELLO_ROW + 2);
	CU_ASSERT_TRUE(rcd_qp_found_peer(p.a->qp));
	p.a->busy = 0;
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, TARGET);
	CU_ASSERT_TRUE(take_hellos(p.sim.now_ns) == 0);
	pkt = nak_by_hand(p.a->qp->hot.psn_una);
	pkt.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_REMOTE_ACCESS);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_ERR);
	CU_ASSERT_PTR_NULL(p.a->sack);
	end();
}

static void
forged(void)
{
	struct rcd_pkt pkt;

	/* To who does not look: as of another service. */
	begin_both(false, true);
	pkt = hello_by_hand(RCD_OPCODE_HELLO, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 1000), RCD_RX_SERVICE);
	pkt = hello_by_hand(RCD_OPCODE_HELLO_ACK, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 1000), RCD_RX_SERVICE);
	end();
	/* Of a peer that does not mark: no answer, so that it is never sent one. */
	begin_both(true, false);
	write_many(RCD_HELLO_ROW);
	for (uint32_t i = 0; i < 100; i++) {
		pkt = hello_by_hand(RCD_OPCODE_HELLO, i);
		rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns);
		CU_ASSERT_EQUAL(take_hellos(p.sim.now_ns), 0);
		/* Nor is there a question that this could answer. */
		pkt.roce.bth.opcode = RCD_OPCODE_HELLO_ACK;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns), RCD_RX_STALE);
	}
	pkt = hello_by_hand(RCD_OPCODE_HELLO, 1);
	pkt.roce.helloeth.offers = 0;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns), RCD_RX_STALE);
	CU_ASSERT_PTR_NULL(p.a->qp->sack);
	end();
}

/* The answer is lost, and others come: what was asked back as it was, or by half. */
static void
wrong_answers(void)
{
	struct rcd_pkt pkt;
	uint64_t nonce;

	begin_both(true, true);
	write_many(RCD_HELLO_ROW - 1);
	p.sim.nodes[1].out.loss_mask = ~UINT64_C(0) << (RCD_HELLO_ROW + 1);
	p.sim.nodes[1].out.loss_mask_frames = 64;
	write_many(1);
	CU_ASSERT_TRUE(p.a->qp->hello.tries > 0);
	CU_ASSERT_PTR_NULL(p.a->qp->sack);
	nonce = p.a->qp->hello.nonce;
	for (uint32_t i = 0; i < 4; i++) {
		const uint64_t wrong[] = { nonce, ~nonce, nonce << 32 | nonce >> 32, 0 };

		pkt = hello_by_hand(RCD_OPCODE_HELLO_ACK, wrong[i]);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns), RCD_RX_STALE);
		CU_ASSERT_PTR_NULL(p.a->qp->sack);
	}
	pkt = hello_by_hand(RCD_OPCODE_HELLO_ACK, ~(nonce << 32 | nonce >> 32));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns), RCD_RX_HELLO);
	CU_ASSERT_PTR_NOT_NULL(p.a->qp->sack);
	/* Once more. */
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns), RCD_RX_STALE);
	end();
}

static void
a_flood(void)
{
	uint32_t answers = 0;
	struct rcd_pkt pkt;

	begin_both(true, true);
	write_many(MANY);
	/* Many before one packet is taken are one. */
	for (uint32_t i = 0; i < 1000; i++) {
		pkt = hello_by_hand(RCD_OPCODE_HELLO, i);
		rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns);
	}
	CU_ASSERT_EQUAL(take_hellos(p.sim.now_ns), 1);
	for (uint32_t i = 0; i < 1000; i++) {
		rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns);
		answers += take_hellos(p.sim.now_ns);
	}
	CU_ASSERT_EQUAL(answers, RCD_HELLO_ANSWERS - 2);
	end();
}

/* An acknowledge to a, so many PSNs on, whose mark is right or not. */
static void
note_mark(uint32_t psns, bool right)
{
	struct rcd_pkt pkt = nak_by_hand(rcd_psn_add(p.a->qp->hot.psn_next, psns));

	pkt.roce.bth.opcode = RCD_OPCODE_RC_ACKNOWLEDGE;
	pkt.roce.bth.mark =
		rcd_hello_mark(p.a->qp->hello.rx_seed, RCD_OPCODE_RC_ACKNOWLEDGE, pkt.roce.bth.psn);
	pkt.roce.bth.mark ^= !right;
	rcd_hello_note(p.a->qp, &pkt.roce.bth);
}

/* A peer that marks and never answers. */
static void
a_peer_without_answers(void)
{
	uint32_t count = 0;

	begin_both(true, true);
	write_many(1);
	for (uint32_t i = 0; i < 200000; i++) {
		note_mark(i, true);
		if (take_hellos(p.sim.now_ns) > 0)
			CU_ASSERT_EQUAL(p.a->qp->hello.row, (uint32_t)RCD_HELLO_ROW << count++);
	}
	CU_ASSERT_EQUAL(count, RCD_HELLO_TRIES);
	end();
}

/* Seven are not enough, nor are seven before a wrong one and seven behind it, nor repeats. */
static void
a_row_has_no_gap(void)
{
	begin_both(true, false);
	for (uint32_t i = 1; i < 2 * RCD_HELLO_ROW; i++)
		note_mark(i, i != RCD_HELLO_ROW);
	CU_ASSERT_EQUAL(p.a->qp->hello.row, RCD_HELLO_ROW - 1);
	for (uint32_t i = 0; i < RCD_HELLO_ROW; i++)
		note_mark(2 * RCD_HELLO_ROW - 1, true);
	CU_ASSERT_FALSE(p.a->qp->hello.passed || p.a->qp->hot.hello_due);
	note_mark(2 * RCD_HELLO_ROW, true);
	CU_ASSERT_TRUE(p.a->qp->hello.passed && p.a->qp->hot.hello_due);
	end();
}

/* What one side sends has the seed that the other expects, and another one than comes back. */
static void
a_seed_each_way(void)
{
	begin_both(true, true);
	CU_ASSERT_EQUAL(p.a->qp->hello.tx_seed, p.b->qp->hello.rx_seed);
	CU_ASSERT_EQUAL(p.b->qp->hello.tx_seed, p.a->qp->hello.rx_seed);
	CU_ASSERT_NOT_EQUAL(p.a->qp->hello.tx_seed, p.b->qp->hello.tx_seed);
	end();
}

/* What is of the life before is no answer, and counts no more. */
static void
reset_ends_it(void)
{
	const struct rcd_qp_attr reset = { .state = RCD_QP_RESET };
	struct rcd_qp_attr attr;
	struct rcd_pkt pkt;

	begin_both(true, true);
	write_many(MANY);
	CU_ASSERT_PTR_NOT_NULL(p.a->qp->sack);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_PTR_NULL(p.a->qp->sack);
	CU_ASSERT_FALSE(p.a->qp->hot.marks || p.a->qp->hot.looks || p.a->qp->hello.passed);
	CU_ASSERT_FALSE(rcd_qp_found_peer(p.a->qp));
	CU_ASSERT_EQUAL(rcd_qp_find_peer(p.a->qp, 1), -EINVAL);
	/* It begins anew, and so do its requests. */
	CU_ASSERT_EQUAL(rcd_qp_modify(p.b->qp, &reset, RCD_QP_ATTR_STATE), 0);
	free(p.a->sack);
	p.a->sack = NULL;
	attr = sim_attr(&p.sim);
	sim_connect(p.a, p.b, &attr, &attr);
	CU_ASSERT_EQUAL(rcd_qp_find_peer(p.a->qp, 77), 0);
	CU_ASSERT_EQUAL(rcd_qp_find_peer(p.a->qp, 78), -EINVAL);
	pkt = hello_by_hand(RCD_OPCODE_HELLO_ACK, ~(UINT64_C(77) << 32));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns), RCD_RX_STALE);
	/* The peer marks no more. */
	memset(sent, 0, sizeof(sent));
	run();
	CU_ASSERT_EQUAL(hellos(), 0);
	end();
}

static void
marks_by_themselves(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	bool seen[64] = { false };
	struct rcd_tx_pkt out;

	for (uint32_t psn = 0; psn < 100000; psn += 7) {
		uint8_t ask = rcd_hello_mark(psn / 9, RCD_OPCODE_RC_SEND_ONLY, rcd_psn(psn));
		uint8_t answer = rcd_hello_mark(psn / 9, RCD_OPCODE_RC_ACKNOWLEDGE, rcd_psn(psn));

		seen[ask] = seen[answer] = true;
		CU_ASSERT_TRUE(ask > 32 && ask < 64 && answer > 0 && answer < 32);
	}
	for (uint32_t i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(seen[i], i % 32 != 0);
	begin(&init, NULL);
	CU_ASSERT_EQUAL(rcd_qp_find_peer(p.a->qp, 1), -EINVAL);
	end();
	/* Who does not look sends none. */
	for (int looks = 0; looks < 2; looks++) {
		begin_both(looks, false);
		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, TARGET);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
		CU_ASSERT_EQUAL(out.roce.bth.mark != 0, looks);
		end();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(both_find_out),
		RCD_TEST(one_alone_says_nothing),
		RCD_TEST(marks_are_changed),
		RCD_TEST(any_may_be_lost),
		RCD_TEST(under_way),
		RCD_TEST(what_was_kept_before),
		RCD_TEST(host_is_busy),
		RCD_TEST(the_end_is_told_to_nobody),
		RCD_TEST(forged),
		RCD_TEST(wrong_answers),
		RCD_TEST(a_flood),
		RCD_TEST(a_peer_without_answers),
		RCD_TEST(a_row_has_no_gap),
		RCD_TEST(a_seed_each_way),
		RCD_TEST(reset_ends_it),
		RCD_TEST(marks_by_themselves),
	};

	return rcd_tap_run("qp_hello", tests, RCD_ARRAY_COUNT(tests));
}
