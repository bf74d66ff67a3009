/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: selective acknowledgement (doc/sack.md) repairs all holes in one round trip and each of
 * them once, is not heard of by who has not agreed, and no peer gains by lies. Method: two nodes in
 * the simulator, chosen frames lost; SACKs made by hand, and random ones.
 */
#include <errno.h>

#include "rcd_aeth.h"
#include "rcd_qp_priv.h"
#include "rcd_tap.h"
#include "situation.h"

enum {
	PACKETS = 64,
	LEN = PACKETS * 1024,
	TARGET = 1 << 20,
};

static void
agree(void)
{
	sim_agree_sack(p.a);
	sim_agree_sack(p.b);
}

/* Both have agreed. @param timeout  code of it; 0: never */
static void
begin_agreed(uint8_t timeout, uint8_t retry_cnt)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.timeout = timeout;
	attr.retry_cnt = retry_cnt;
	begin(&init, &attr);
	agree();
	p.sim.nodes[0].out.gbps = p.sim.nodes[1].out.gbps = 10;
}

/* And a WRITE of 64 packets is posted. */
static void
begin_write(uint8_t timeout, uint8_t retry_cnt)
{
	begin_agreed(timeout, retry_cnt);
	post(p.a, RCD_WR_RDMA_WRITE, 0, LEN, TARGET);
}

static void
lose(uint32_t node, uint64_t mask)
{
	p.sim.nodes[node].out.loss_mask = mask;
	p.sim.nodes[node].out.loss_mask_frames = 64;
}

static void
check_written(void)
{
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 1);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[0].memory, p.sim.nodes[1].memory + TARGET, LEN), 0);
}

/* With no timer at all, since none is set: what is lost is told of. */
static void
holes_are_repaired_once(void)
{
	begin_write(0, 7);
	lose(0, UINT64_C(0x830209));
	run();
	check_written();
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRANSMITTED_PKTS), 6);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SACK_REPAIR), 6);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SPURIOUS), 0);
	CU_ASSERT_TRUE(sent[1][RCD_OPCODE_SACK] >= 4);
	CU_ASSERT_TRUE(sent[1][RCD_OPCODE_SACK] <= 24);
	/* The whole of it takes 56 us, and a repair 10 there and 10 back behind what waits. */
	CU_ASSERT_TRUE(p.sim.now_ns < 120000);
	end();
}

static void
a_repair_is_lost(void)
{
	begin_write(0, 7);
	/* Of the first packet, which is sent again while others are still to come. */
	lose(0, UINT64_C(0x01));
	p.sim.nodes[0].out.loss_mask |= UINT64_C(0x3ff) << 20;
	run();
	check_written();
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRANSMITTED_PKTS), 11);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SPURIOUS), 0);
	end();
}

/* The standard NAK is still there, and asks for nothing twice. */
static void
sacks_are_lost(void)
{
	begin_write(8, 7);
	lose(0, UINT64_C(0x110100));
	lose(1, UINT64_C(0x5));
	run();
	check_written();
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRANSMITTED_PKTS), 3);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RTO), 0);
	end();
}

/* What comes twice is told of, and counted. */
static void
late_is_not_lost(void)
{
	begin_write(8, 7);
	p.sim.nodes[0].out.reorder = 0.1;
	run();
	check_written();
	CU_ASSERT_TRUE(counter(0, RCD_COUNTER_SPURIOUS) > 0);
	CU_ASSERT_TRUE(counter(0, RCD_COUNTER_SPURIOUS) <= counter(0, RCD_COUNTER_SACK_REPAIR));
	end();
}

static void
who_has_not_agreed(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	for (uint32_t who = 0; who < 2; who++) {
		begin(&init, NULL);
		/* The requester alone is told nothing; the responder alone is not heard. */
		sim_agree_sack(who == 0 ? p.a : p.b);
		lose(0, 0x10);
		post(p.a, RCD_WR_RDMA_WRITE, 0, LEN, TARGET);
		run();
		check_written();
		CU_ASSERT_EQUAL(sent[1][RCD_OPCODE_SACK] > 0, who == 1);
		CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RX_DROP_SERVICE), sent[1][RCD_OPCODE_SACK]);
		CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SACK_REPAIR), 0);
		end();
	}
}

static void
what_can_agree(void)
{
	static const enum rcd_qp_type others[] = { RCD_QP_UC, RCD_QP_UD };
	struct rcd_qp_attr reset = { .state = RCD_QP_RESET };
	struct rcd_qp_init init;
	struct rcd_tx_pkt pkt;
	uint64_t *mem = malloc(rcd_qp_sack_size());

	for (size_t i = 0; i < RCD_ARRAY_COUNT(others); i++) {
		init = default_init(others[i]);
		begin(&init, NULL);
		CU_ASSERT_EQUAL(rcd_qp_set_sack(p.a->qp, mem), -EINVAL);
		end();
	}
	init = default_init(RCD_QP_RC);
	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, TARGET);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &pkt));
	CU_ASSERT_EQUAL(rcd_qp_set_sack(p.a->qp, mem), 0);
	CU_ASSERT_EQUAL(rcd_qp_set_sack(p.a->qp, mem), -EINVAL);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_set_sack(p.a->qp, mem), -EINVAL);
	end();
	free(mem);
}

/* Takes what a sends now. @return how many; each is outstanding */
static uint32_t
take_all(uint64_t now_ns, struct rcd_psn first)
{
	struct rcd_tx_pkt pkt;
	uint32_t count = 0;

	while (rcd_qp_tx_next(p.a->qp, now_ns, &pkt)) {
		CU_ASSERT_TRUE(rcd_psn_in(pkt.roce.bth.psn, first, PACKETS));
		CU_ASSERT_FATAL(++count <= PACKETS);
	}
	return count;
}

/* PSNs never sent and behind the window, expected ones that are late, and from nowhere. */
static void
lies_about_psns(void)
{
	uint8_t all[RCD_SACK_BITMAP_MAX_LEN];
	struct rcd_psn first;
	struct rcd_qp_attr attr;
	struct rcd_pkt pkt;

	begin_write(0, 7);
	rcd_qp_query(p.a->qp, &attr);
	first = attr.sq_psn;
	memset(all, 0xff, sizeof(all));
	CU_ASSERT_EQUAL(take_all(1000, first), PACKETS);
	pkt = sack_by_hand(rcd_psn_sub(first, 1), first, all, 64);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 2000), RCD_RX_STALE);
	pkt = sack_by_hand(rcd_psn_add(first, PACKETS + 1), first, all, 64);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 2000), RCD_RX_STALE);
	CU_ASSERT_EQUAL(take_all(2000, first), 0);
	/* All but the first is there, and more than was ever sent; what was seen is nonsense. */
	for (int32_t seen = -600; seen < 600; seen += 40) {
		pkt = sack_by_hand(first, rcd_psn_add(first, (uint32_t)seen), all, 64);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 100000), RCD_RX_EXECUTED);
	}
	CU_ASSERT_EQUAL(take_all(100000, first), 1);
	/* Said again, and nothing was sent since: nothing is. */
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 200000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(take_all(200000, first), 0);
	/* Nothing is complete for being there: that is the expected PSN's to say. */
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 0);
	/* It had them, it said, and expects one of them: all is sent again when asked for. */
	pkt = sack_by_hand(rcd_psn_add(first, 4), rcd_psn_add(first, PACKETS - 1), all, 0);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 300000), RCD_RX_EXECUTED);
	pkt = sack_by_hand(rcd_psn_add(first, 4), rcd_psn_add(first, PACKETS - 1), all, 4);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 300000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(take_all(300000, first), PACKETS - 4 - 32 - 1);
	end();
}

/* What was sent again for nothing comes: when the rest was sent, that does not say. */
static void
an_earlier_copy_comes(void)
{
	uint8_t all[RCD_SACK_BITMAP_MAX_LEN];
	struct rcd_qp_attr attr;
	struct rcd_pkt pkt;

	begin_write(0, 7);
	rcd_qp_query(p.a->qp, &attr);
	memset(all, 0xff, sizeof(all));
	all[3] = 0x7f;
	CU_ASSERT_EQUAL(take_all(1000, attr.sq_psn), PACKETS);
	/* The first half is there but for its first. */
	pkt = sack_by_hand(attr.sq_psn, rcd_psn_add(attr.sq_psn, 31), all, 4);
	rcd_qp_rx(p.a->qp, &pkt, 21000);
	CU_ASSERT_EQUAL(take_all(21000, attr.sq_psn), 1);
	/* And that one a microsecond later, while the other half is still on its way. */
	pkt = sack_by_hand(rcd_psn_add(attr.sq_psn, 32), attr.sq_psn, all, 0);
	rcd_qp_rx(p.a->qp, &pkt, 22000);
	CU_ASSERT_EQUAL(take_all(22000, attr.sq_psn), 0);
	end();
}

/*
 * All round trips that were measured were long, behind a queue, which is gone when a probe is
 * answered: that answer is to the probe, and all that was sent before it is lost.
 */
static void
a_probe_is_answered_sooner(void)
{
	static const uint8_t last[8] = { [7] = 0x40 };
	uint64_t now_ns = 200000;
	struct rcd_qp_attr attr;
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;
	uint32_t missing;

	begin_write(8, 7);
	rcd_qp_query(p.a->qp, &attr);
	CU_ASSERT_EQUAL(take_all(1000, attr.sq_psn), PACKETS);
	/* The last one alone has come, and nothing of what is then sent again. */
	pkt = sack_by_hand(attr.sq_psn, rcd_psn_add(attr.sq_psn, PACKETS - 1), last, 8);
	rcd_qp_rx(p.a->qp, &pkt, now_ns);
	/* That is a flood: half of what was under way. */
	CU_ASSERT_EQUAL(take_all(now_ns, attr.sq_psn), PACKETS / 2);
	while (!rcd_qp_tx_next(p.a->qp, now_ns, &out)) {
		now_ns = rcd_qp_next_deadline(p.a->qp);
		rcd_qp_expire(p.a->qp, now_ns);
	}
	CU_ASSERT_EQUAL_FATAL(counter(0, RCD_COUNTER_TLP), 1);
	missing = rcd_psn_eq(out.roce.bth.psn, attr.sq_psn) ? 1 : 0;
	pkt = sack_by_hand(rcd_psn_add(attr.sq_psn, missing), out.roce.bth.psn, last, 8);
	now_ns += 20000;
	rcd_qp_rx(p.a->qp, &pkt, now_ns);
	/* They were lost with the others, and do not count again. */
	CU_ASSERT_EQUAL(take_all(now_ns, attr.sq_psn), PACKETS / 2);
	end();
}

/* Random SACKs as fast as they come: what is sent for each is bounded by what is outstanding. */
static void
a_flood(void)
{
	uint8_t bitmap[RCD_SACK_BITMAP_MAX_LEN];
	struct rcd_sequence rng = { 5 };
	uint64_t now_ns = 1000;
	struct rcd_qp_attr attr;
	struct rcd_psn first;
	uint32_t again = 0;

	begin_write(0, 7);
	rcd_qp_query(p.a->qp, &attr);
	first = attr.sq_psn;
	CU_ASSERT_EQUAL(take_all(now_ns, first), PACKETS);
	for (uint32_t i = 0; i < 20000; i++) {
		struct rcd_pkt pkt;

		now_ns += sim_below(&rng, 300);
		for (uint32_t k = 0; k < sizeof(bitmap); k++)
			bitmap[k] = (uint8_t)rcd_sequence_next(&rng);
		/* The first stays outstanding. */
		pkt = sack_by_hand(first, rcd_psn_add(first, sim_below(&rng, 200)), bitmap,
			(uint16_t)(4 + sim_below(&rng, 16) * 4));
		pkt.roce.sacketh.delay_ns = (uint32_t)rcd_sequence_next(&rng);
		rcd_qp_rx(p.a->qp, &pkt, now_ns);
		again += take_all(now_ns, first);
	}
	/* Once all is said to be there the first alone is left, and not for ever. */
	CU_ASSERT_TRUE(again < 200);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 0);
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_RTS);
	end();
}

/* Something newer has always come, it says, and the oldest never: that is left to the timeout. */
static void
the_oldest_never_comes(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	uint8_t all[RCD_SACK_BITMAP_MAX_LEN];
	uint64_t now_ns = 1000;
	struct rcd_qp_attr attr;
	struct rcd_tx_pkt pkt;
	uint32_t again = 0;

	init.sq_depth = 256;
	begin(&init, NULL);
	agree();
	rcd_qp_query(p.a->qp, &attr);
	memset(all, 0xff, sizeof(all));
	for (uint32_t i = 0; i < 200; i++) {
		struct rcd_psn newest = rcd_psn_add(attr.sq_psn, i);
		struct rcd_pkt sack = sack_by_hand(attr.sq_psn, newest, all, sizeof(all));

		post(p.a, RCD_WR_RDMA_WRITE, 0, 8, TARGET);
		while (rcd_qp_tx_next(p.a->qp, now_ns, &pkt))
			again += i > 0 && rcd_psn_eq(pkt.roce.bth.psn, attr.sq_psn);
		now_ns += 1000;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &sack, now_ns), RCD_RX_EXECUTED);
		/* The same again: a copy that the network made is none that was sent in vain. */
		rcd_qp_rx(p.a->qp, &sack, now_ns);
	}
	CU_ASSERT_EQUAL(again, 65);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SPURIOUS), 0);
	CU_ASSERT_TRUE(rcd_qp_next_deadline(p.a->qp) != 0);
	end();
}

/*
 * What was sent last has come, it says, and nothing else ever: each time all else is sent again.
 * That ends as well, without progress.
 */
static void
the_last_alone_comes(void)
{
	static const uint8_t none[4];
	uint64_t now_ns = 1000;
	struct rcd_qp_attr attr;
	uint32_t again = 0;
	struct rcd_psn last;

	begin_write(14, 7);
	rcd_qp_query(p.a->qp, &attr);
	last = rcd_psn_add(attr.sq_psn, take_all(now_ns, attr.sq_psn) - 1);
	for (uint32_t i = 0; i < 2000; i++) {
		struct rcd_pkt pkt = sack_by_hand(attr.sq_psn, last, none, sizeof(none));
		struct rcd_tx_pkt out;

		/* Soon, and it seems that the network takes no time. */
		pkt.roce.sacketh.delay_ns = 1900;
		now_ns += 2000;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, now_ns), RCD_RX_EXECUTED);
		for (; rcd_qp_tx_next(p.a->qp, now_ns, &out); now_ns += 64, again++)
			last = out.roce.bth.psn;
	}
	CU_ASSERT_TRUE(again <= RCD_GAP_TRIES * RCD_SACK_PSNS);
	CU_ASSERT_TRUE(rcd_qp_next_deadline(p.a->qp) != 0);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 0);
	end();
}

/* What came twice is counted once, however often that is said. */
static void
twice_is_told_twice(void)
{
	uint8_t all[RCD_SACK_BITMAP_MAX_LEN];
	struct rcd_qp_attr attr;
	struct rcd_pkt pkt;

	begin_write(0, 7);
	rcd_qp_query(p.a->qp, &attr);
	memset(all, 0xff, sizeof(all));
	CU_ASSERT_EQUAL(take_all(1000, attr.sq_psn), PACKETS);
	pkt = sack_by_hand(attr.sq_psn, rcd_psn_add(attr.sq_psn, 9), all, 64);
	rcd_qp_rx(p.a->qp, &pkt, 20000);
	CU_ASSERT_EQUAL(take_all(20000, attr.sq_psn), 1);
	/* Both copies are there. */
	pkt = sack_by_hand(rcd_psn_add(attr.sq_psn, 1), attr.sq_psn, all, 0);
	for (int i = 0; i < 3; i++) {
		rcd_qp_rx(p.a->qp, &pkt, 30000);
		CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SPURIOUS), i > 0);
	}
	end();
}

/* With a retry count of 0 nothing is sent again: the NAK is the end, as ever. */
static void
no_retries(void)
{
	begin_write(8, 0);
	lose(0, 0x10);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_RETRY_EXC_ERR));
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SACK_REPAIR), 0);
	end();
}

/* What the peer kept it may drop: it has no receive request. All goes again, and arrives. */
static void
what_was_kept_is_dropped(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	agree();
	for (uint32_t i = 0; i < 8; i++)
		post(p.a, RCD_WR_SEND, 1024 * i, 1024, 0);
	lose(0, 0x2);
	post_recv(&p.b->rq, 1, TARGET, 1024);
	CU_ASSERT_TRUE(sim_run(&p.sim, p.sim.now_ns + 100000) || true);
	for (uint32_t i = 1; i < 8; i++)
		post_recv(&p.b->rq, 1, TARGET + 1024 * i, 1024);
	run();
	for (uint32_t i = 0; i < 8; i++)
		CU_ASSERT_TRUE(completed(0, i, i, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[0].memory, p.sim.nodes[1].memory + TARGET, 8 * 1024), 0);
	CU_ASSERT_TRUE(counter(0, RCD_COUNTER_RCVD_RNR_ERR) > 0);
	end();
}

/* What a responder tells, bit by bit; ahead of what it owes, and at first beside a NAK. */
static void
what_is_told(void)
{
	static const uint32_t psns[] = { 3, 4, 5, 9, 40, 41 };
	static const bool tells[] = { true, false, false, true, true, false };
	static const uint8_t bitmap[8] = { 0x1c, 0x01, 0, 0, 0x80, 0x01 };
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_psn expected;
	uint32_t nak_count = 0;
	struct rcd_tx_pkt out;
	struct rcd_qp_attr attr;

	begin(&init, NULL);
	agree();
	rcd_qp_query(p.b->qp, &attr);
	expected = attr.rq_psn;
	for (size_t i = 0; i < RCD_ARRAY_COUNT(psns); i++) {
		struct rcd_pkt pkt = by_hand(RCD_OPCODE_RC_SEND_ONLY, psns[i]);
		bool told = false;

		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1000), RCD_RX_KEPT);
		while (rcd_qp_tx_next(p.b->qp, 1700, &out)) {
			told |= out.roce.bth.opcode == RCD_OPCODE_SACK;
			nak_count += out.roce.bth.opcode == RCD_OPCODE_RC_ACKNOWLEDGE;
		}
		CU_ASSERT_EQUAL(told, tells[i]);
	}
	CU_ASSERT_EQUAL(nak_count, 1);
	/* One that asks is answered. */
	struct rcd_pkt pkt = by_hand(RCD_OPCODE_RC_SEND_ONLY, 42);

	pkt.roce.bth.ack_req = true;
	rcd_qp_rx(p.b->qp, &pkt, 1000);
	CU_ASSERT_TRUE_FATAL(rcd_qp_tx_next(p.b->qp, 1700, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_SACK);
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, expected.val);
	CU_ASSERT_EQUAL(out.roce.sacketh.seen.val, rcd_psn_add(expected, 42).val);
	CU_ASSERT_EQUAL(out.roce.sacketh.delay_ns, 700);
	CU_ASSERT_EQUAL_FATAL(out.payload_len, 8);
	CU_ASSERT_EQUAL(memcmp(out.pieces[0].base, bitmap, 5), 0);
	CU_ASSERT_EQUAL(out.pieces[0].base[5], 0x03);
	end();
}

/*
 * A READ was the last for longer than the times of packets can tell. What was sent before it is
 * forgotten; else it would seem to be sent behind what comes now, which then is never lost.
 */
static void
long_after_a_read(void)
{
	const uint64_t ages_ns = UINT64_C(200000000000);

	begin_agreed(0, 7);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, TARGET);
	post(p.a, RCD_WR_RDMA_READ, LEN, 8, TARGET);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 2);
	p.sim.now_ns += ages_ns;
	lose(0, UINT64_C(1) << 22);
	post(p.a, RCD_WR_RDMA_WRITE, 0, LEN, TARGET);
	run();
	CU_ASSERT_TRUE(completed(0, 2, 2, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_SACK_REPAIR), 1);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(holes_are_repaired_once),
		RCD_TEST(a_repair_is_lost),
		RCD_TEST(sacks_are_lost),
		RCD_TEST(late_is_not_lost),
		RCD_TEST(who_has_not_agreed),
		RCD_TEST(what_can_agree),
		RCD_TEST(lies_about_psns),
		RCD_TEST(an_earlier_copy_comes),
		RCD_TEST(a_probe_is_answered_sooner),
		RCD_TEST(a_flood),
		RCD_TEST(the_oldest_never_comes),
		RCD_TEST(the_last_alone_comes),
		RCD_TEST(twice_is_told_twice),
		RCD_TEST(long_after_a_read),
		RCD_TEST(no_retries),
		RCD_TEST(what_was_kept_is_dropped),
		RCD_TEST(what_is_told),
	};

	return rcd_tap_run("qp_sack", tests, RCD_ARRAY_COUNT(tests));
}
