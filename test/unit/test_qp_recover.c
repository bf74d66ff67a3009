/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: how much is under way while losses are repaired: one packet after a timeout until somebody
 * answers, then twice as much in each round trip; and without congestion control half of it when
 * too much of it is lost. And what is answered in vain spends no retry. Method: two nodes in the
 * simulator, the first packets of which are lost; and a requester whose packets are taken one by
 * one and answered by hand.
 */
#include "rcd_aeth.h"
#include "rcd_tap.h"
#include "rcd_timer.h"
#include "situation.h"

enum {
	PACKETS = 20,
	TIMEOUT = 7, /* 524 us: before any probe, without congestion control */
};

/* @param retry_cnt  of a, whose timeout comes before its probes */
static void
begin_short(uint8_t retry_cnt)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.retry_cnt = retry_cnt;
	attr.timeout = TIMEOUT;
	begin(&init, &attr);
}

static uint32_t
writes_sent(void)
{
	return sent[0][RCD_OPCODE_RC_RDMA_WRITE_FIRST] + sent[0][RCD_OPCODE_RC_RDMA_WRITE_MIDDLE] +
		sent[0][RCD_OPCODE_RC_RDMA_WRITE_LAST];
}

/* Nobody answers: each time one packet, and as many times as it says. */
static void
one_packet_each_time(void)
{
	for (uint8_t retries = 0; retries <= 7; retries++) {
		begin_short(retries);
		p.sim.nodes[0].out.cut_ns = 1;
		post(p.a, RCD_WR_RDMA_WRITE, 0, PACKETS * 1024, 0);
		run();
		CU_ASSERT_EQUAL(writes_sent(), PACKETS + retries);
		CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_WRITE_FIRST], 1u + retries);
		CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_RETRY_EXC_ERR));
		CU_ASSERT_EQUAL(p.sim.now_ns - 1000, (retries + 1u) * rcd_ack_timeout_ns(TIMEOUT));
		end();
	}
}

/* All of it is lost, and repaired in a few round trips: 1, 2, 4, 8 and the rest. */
static void
a_window_is_repaired(void)
{
	begin_short(1);
	p.sim.nodes[0].out.loss_mask = (UINT64_C(1) << PACKETS) - 1;
	p.sim.nodes[0].out.loss_mask_frames = PACKETS;
	post(p.a, RCD_WR_RDMA_WRITE, 0, PACKETS * 1024, 1 << 20);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(writes_sent(), 2 * PACKETS);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RTO), 1);
	CU_ASSERT(last_ns > rcd_ack_timeout_ns(TIMEOUT) + UINT64_C(40000));
	CU_ASSERT(last_ns < rcd_ack_timeout_ns(TIMEOUT) + UINT64_C(60000));
	end();
}

/* Of a READ one packet is asked for until it comes, and then the rest at once. */
static void
a_read_asks_for_one(void)
{
	begin_short(7);
	p.sim.nodes[1].out.loss_mask = (UINT64_C(1) << (PACKETS + 2)) - 1;
	p.sim.nodes[1].out.loss_mask_frames = PACKETS + 2;
	post(p.a, RCD_WR_RDMA_READ, 0, PACKETS * 1024, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	/* Two more are lost, the third comes. */
	CU_ASSERT_EQUAL(sent[1][RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY], 3);
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_READ_REQUEST], 5);
	CU_ASSERT_EQUAL(sent[1][RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE], 2 * PACKETS - 5);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RTO), 3);
	end();
}

/* READs behind one another wait as well: none passes the window because others did. */
static void
reads_wait_too(void)
{
	begin_short(3);
	p.sim.nodes[0].out.cut_ns = 1;
	for (uint32_t i = 0; i < 4; i++)
		post(p.a, RCD_WR_RDMA_READ, 0, 8, 0);
	run();
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_RDMA_READ_REQUEST], 4 + 3);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_RETRY_EXC_ERR));
	end();
}

/* What a sends now. @return how many packets */
static uint32_t
drain(uint64_t now_ns, struct rcd_psn *first)
{
	struct rcd_tx_pkt pkt;
	uint32_t count = 0;

	for (; count < 1000 && rcd_qp_tx_next(p.a->qp, now_ns, &pkt); count++) {
		if (count == 0)
			*first = pkt.roce.bth.psn;
	}
	return count;
}

/* The peer has so many more packets. */
static void
acknowledge(struct rcd_psn *first, uint32_t packets, uint64_t now_ns)
{
	struct rcd_pkt ack = nak_by_hand(rcd_psn_add(*first, packets - 1));

	ack.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, now_ns), RCD_RX_EXECUTED);
	*first = rcd_psn_add(*first, packets);
}

/* One acknowledge for all that came: as many more as it says, so that each round has twice. */
static void
a_round_doubles_it(void)
{
	struct rcd_psn first = { 0 }, from = { 0 };
	uint64_t now_ns = 1000;

	begin_short(7);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 400 * 1024, 0);
	CU_ASSERT_EQUAL(drain(now_ns, &first), 400);
	now_ns = rcd_qp_next_deadline(p.a->qp);
	rcd_qp_expire(p.a->qp, now_ns);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RTO), 1);
	for (uint32_t count = 1; count <= 128; count *= 2) {
		CU_ASSERT_EQUAL(drain(now_ns, &from), count);
		CU_ASSERT_EQUAL(from.val, first.val);
		now_ns += 20000;
		acknowledge(&first, count, now_ns);
	}
	end();
}

/* A peer that keeps nothing has one more packet each time: less and less leaves. */
static void
a_flood_ebbs(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_psn first = { 0 }, from = { 0 };
	uint64_t now_ns = 1000;
	uint32_t count = 0;

	memset(&p.sim, 0, sizeof(p.sim));
	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 400 * 1024, 0);
	CU_ASSERT_EQUAL(drain(now_ns, &first), 400);
	for (uint32_t i = 1; i < 24; i++) {
		struct rcd_pkt nak = nak_by_hand(rcd_psn_add(first, i));

		now_ns += 100000;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, now_ns), RCD_RX_EXECUTED);
		count = drain(now_ns, &from);
		CU_ASSERT_EQUAL(from.val, nak.roce.bth.psn.val);
		/* Some alone, until it is known what the peer is. */
		CU_ASSERT(count <= (i < 10 ? 400 : 8));
		CU_ASSERT(count > 0);
	}
	CU_ASSERT(count >= 2);
	/* From there on it is one more for eight that came. */
	from = rcd_psn_add(first, 23);
	for (uint32_t came = 0, least = count; came < 100; came += count) {
		now_ns += 100000;
		if (came > 0) {
			uint32_t leaves = drain(now_ns, &first);

			CU_ASSERT(leaves >= least + came / 8 && leaves <= least + came / 8 + 1);
			count = leaves;
		}
		acknowledge(&from, count, now_ns);
	}
	end();
}

/* A READ of so many packets. @return its first PSN */
static struct rcd_psn
begin_read(uint32_t packets)
{
	struct rcd_psn first = { 0 };

	begin_short(7);
	post(p.a, RCD_WR_RDMA_READ, 0, packets * 1024, 0);
	CU_ASSERT_EQUAL(drain(1000, &first), 1);
	return first;
}

/* One response to it. */
static enum rcd_rx_verdict
respond(struct rcd_psn first, uint32_t packet, uint32_t packets, uint64_t now_ns)
{
	struct rcd_pkt pkt = nak_by_hand(rcd_psn_add(first, packet));

	pkt.roce.bth.opcode = packet == 0 ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST
		: packet + 1 < packets    ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE
					  : RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST;
	pkt.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	pkt.payload = p.sim.nodes[1].memory;
	pkt.payload_len = 1024;
	return rcd_qp_rx(p.a->qp, &pkt, now_ns);
}

/* All of them are there: what comes of it from now on comes late. A WRITE is next. */
static void
complete_read(struct rcd_psn first, uint32_t packets, uint64_t now_ns)
{
	for (uint32_t i = 0; i < packets && p.sim.nodes[0].cqe_count == 0; i++)
		respond(first, i, packets, now_ns);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 1 << 20);
	CU_ASSERT_EQUAL(drain(now_ns, &first), 1);
}

/* Nobody answers the WRITE. @return timeouts until that is the end of it, `most` if it is not */
static uint32_t
wait_in_vain(uint32_t most, uint64_t *now_ns)
{
	struct rcd_psn from;
	uint64_t timeouts = counter(0, RCD_COUNTER_RTO);

	while (counter(0, RCD_COUNTER_RTO) < timeouts + most &&
		rcd_qp_state(p.a->qp) == RCD_QP_RTS) {
		*now_ns = rcd_qp_next_deadline(p.a->qp);
		rcd_qp_expire(p.a->qp, *now_ns);
		drain(*now_ns, &from);
	}
	return (uint32_t)(counter(0, RCD_COUNTER_RTO) - timeouts);
}

/*
 * The last response alone came, and the READ was asked for again before the others did. The peer
 * has all of that to answer before the WRITE, and takes seven timeouts for each packet: it lives.
 * That many responses are taken for it, and no more.
 */
static void
answers_in_vain_spend_no_retry(void)
{
	struct rcd_psn first = begin_read(8), from;
	uint64_t now_ns = 1000 + 50000;

	CU_ASSERT_EQUAL(respond(first, 7, 8, now_ns), RCD_RX_KEPT);
	CU_ASSERT_EQUAL(drain(now_ns, &from), 1);
	CU_ASSERT_EQUAL(from.val, first.val);
	complete_read(first, 8, now_ns);
	for (uint32_t i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(wait_in_vain(7, &now_ns), 7);
		CU_ASSERT_EQUAL(respond(first, i, 8, now_ns), RCD_RX_STALE);
	}
	CU_ASSERT_EQUAL(wait_in_vain(7, &now_ns), 7);
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_RTS);
	CU_ASSERT_EQUAL(respond(first, 7, 8, now_ns), RCD_RX_STALE);
	CU_ASSERT_EQUAL(wait_in_vain(7, &now_ns), 1);
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_RETRY_EXC_ERR));
	end();
}

/* Who was asked for nothing again can't hold anything up by what nobody waits for. */
static void
answers_to_nothing_are_no_life(void)
{
	struct rcd_psn first = begin_read(8);
	struct rcd_pkt ack = nak_by_hand(first);
	uint64_t now_ns = 1000 + 50000;
	uint32_t timeouts = 0;

	complete_read(first, 8, now_ns);
	ack.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	for (uint32_t i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(respond(first, i, 8, now_ns), RCD_RX_STALE);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, now_ns), RCD_RX_STALE);
		timeouts += wait_in_vain(1, &now_ns);
	}
	CU_ASSERT_EQUAL(timeouts, 8);
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_RETRY_EXC_ERR));
	end();
}

/* However much is asked for again: a peer can hold up what comes next for so long, no longer. */
static void
answers_in_vain_have_an_end(void)
{
	enum {
		LONG = 1024,
		ROUNDS = 6
	};
	struct rcd_psn first = begin_read(LONG), from;
	uint64_t now_ns = 1000 + 50000;
	uint32_t taken = 0;

	/* Its last response each time, and none that is missing. */
	for (uint32_t i = 0; i < ROUNDS; i++, now_ns += 100000) {
		respond(first, LONG - 1, LONG, now_ns);
		CU_ASSERT_EQUAL(drain(now_ns, &from), 1);
	}
	complete_read(first, LONG, now_ns);
	while (taken < ROUNDS * LONG && wait_in_vain(7, &now_ns) == 7 &&
		rcd_qp_state(p.a->qp) == RCD_QP_RTS) {
		respond(first, taken % LONG, LONG, now_ns);
		taken++;
	}
	/* After the last of 4096 another seven, and what comes then is one too many. */
	CU_ASSERT_EQUAL(taken, 4096 + 1);
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_RETRY_EXC_ERR));
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(one_packet_each_time),
		RCD_TEST(a_window_is_repaired),
		RCD_TEST(a_read_asks_for_one),
		RCD_TEST(reads_wait_too),
		RCD_TEST(a_round_doubles_it),
		RCD_TEST(a_flood_ebbs),
		RCD_TEST(answers_in_vain_spend_no_retry),
		RCD_TEST(answers_to_nothing_are_no_life),
		RCD_TEST(answers_in_vain_have_an_end),
	};

	return rcd_tap_run("qp_recover", tests, RCD_ARRAY_COUNT(tests));
}
