/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what reviews found in queue pairs does not come back. Method: two nodes in the simulator,
 * the situation of each finding, packets made or taken by hand where it needs that.
 */
#include <errno.h>

#include "rcd_aeth.h"
#include "rcd_rto.h"
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

/* One that nobody hears is sent again after 64 packets, and not while it is still to leave. */
static void
a_lost_rnr_nak(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	uint32_t naks_seen = 0;
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	for (uint32_t i = 0; i < 200; i++) {
		struct rcd_pkt pkt = by_hand(RCD_OPCODE_RC_SEND_ONLY, i);

		CU_ASSERT_EQUAL(
			rcd_qp_rx(p.b->qp, &pkt, 1), i == 0 ? RCD_RX_RNR : RCD_RX_OUT_OF_SEQUENCE);
		/* The first leaves late: what came with it counts for nothing. */
		if (i < 8)
			continue;
		while (rcd_qp_tx_next(p.b->qp, 1, &out)) {
			CU_ASSERT_EQUAL(rcd_aeth_kind(out.roce.aeth.syndrome), RCD_AETH_RNR_NAK);
			CU_ASSERT_EQUAL(out.roce.bth.psn.val,
				by_hand(RCD_OPCODE_RC_SEND_ONLY, 0).roce.bth.psn.val);
			CU_ASSERT_EQUAL(i, 8 + 64 * naks_seen);
			naks_seen++;
		}
	}
	CU_ASSERT_EQUAL(naks_seen, 3);
	end();
}

#define PACED_NS (RCD_PROBE_FIRST_WINDOW_NS - 50000) /* before the first probe */

static uint64_t paced_until;
static struct rcd_cc_ops pace;

static uint64_t
pace_send_at(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns)
{
	(void)cc;
	CU_ASSERT_EQUAL(bytes, 1024 + 82);
	(void)now_ns;
	return paced_until;
}

static uint32_t
pace_rate(const struct rcd_cc *cc)
{
	(void)cc;
	return 1;
}

/* a has sent one of two packets and is paced. @return a NAK for the first */
static struct rcd_pkt
begin_paced(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_tx_pkt out;

	pace = rcd_cc_none;
	pace.send_at = pace_send_at;
	pace.rate = pace_rate;
	init.cc = &pace;
	paced_until = PACED_NS;
	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 2 * 1024, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	/* Nothing follows for a while: its answer is asked for. */
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 2, &out));
	return nak_by_hand(out.roce.bth.psn);
}

static void
naks_are_heard_while_paced(void)
{
	struct rcd_pkt nak = begin_paced();
	struct rcd_tx_pkt out;

	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 1000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_COMPLETER_RETRY_ERR), 1);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 2000, &out));
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), PACED_NS);
	rcd_qp_expire(p.a->qp, PACED_NS);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, PACED_NS, &out));
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, nak.roce.bth.psn.val);
	end();
}

static void
rnr_naks_are_heard_while_paced(void)
{
	struct rcd_pkt nak = begin_paced();
	struct rcd_tx_pkt out;

	nak.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_RNR_NAK, 14); /* 1.28 ms */
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 1000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), 1000 + 1280000);
	rcd_qp_expire(p.a->qp, PACED_NS);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, PACED_NS, &out));
	/* While it waits, either NAK says nothing new. */
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 1100000), RCD_RX_EXECUTED);
	nak.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_PSN_SEQUENCE);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 1100000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), 1000 + 1280000);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_COMPLETER_RETRY_ERR), 0);
	rcd_qp_expire(p.a->qp, 1000 + 1280000);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000 + 1280000, &out));
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, nak.roce.bth.psn.val);
	/* A short one does not end the pacing. */
	end();
	nak = begin_paced();
	nak.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_RNR_NAK, 1); /* 10 us */
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, 1000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), PACED_NS);
	end();
}

/* Covers: IBTA 9.9.3 unrel_too_long() */
static void
an_oversized_datagram(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);

	begin(&init, NULL);
	post_recv(&p.b->rq, 1, 0, RCD_GRH_LEN + 7);
	post_datagram(0, 8, 0x1234);
	run();
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_RX_DROP_TOO_LONG), 1);
	CU_ASSERT_EQUAL(p.sim.nodes[1].cqe_count, 0);
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_RTS);
	/* The next one that fits takes the same work request. */
	post_datagram(0, 7, 0x1234);
	run();
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_SUCCESS));
	end();
}

/* Covers: IBTA 9.9.3, 11.6.2 unrel_too_long() */
static void
an_oversized_datagram_and_a_shared_queue(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	struct sim_node *node = &p.sim.nodes[1];

	init.srq = &node->srq;
	begin(&init, NULL);
	post_recv(&node->srq_queue, 1, 0, RCD_GRH_LEN + 7);
	post_recv(&node->srq_queue, 1, 100, RCD_GRH_LEN + 8);
	post_datagram(0, 8, 0x1234);
	post_datagram(0, 8, 0x1234);
	run();
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_LOC_LEN_ERR));
	CU_ASSERT_TRUE(completed(1, 1, 1, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_RTS);
	CU_ASSERT_EQUAL(node->event_count, 0);
	end();
}

/* Covers: IBTA 9.9.3, 11.6.2 unrel_too_long() */
static void
an_oversized_unreliable_message(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UC);
	struct sim_node *node = &p.sim.nodes[1];

	for (int shared = 0; shared < 2; shared++) {
		init.srq = shared ? &node->srq : NULL;
		begin(&init, NULL);
		for (uint32_t i = 0; i < 2; i++)
			post_recv(shared ? &node->srq_queue : &p.b->rq, 1, 0, 2000);
		post(p.a, RCD_WR_SEND, 0, 4 * 1024, 0);
		post(p.a, RCD_WR_SEND, 9000, 2000, 0);
		run();
		if (shared)
			CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_LOC_LEN_ERR));
		CU_ASSERT_TRUE(completed(1, (uint32_t)shared, (uint64_t)shared, RCD_WC_SUCCESS));
		CU_ASSERT_EQUAL(node->cqe_count, 1u + (uint32_t)shared);
		CU_ASSERT_EQUAL(memcmp(node->memory, p.sim.nodes[0].memory + 9000, 2000), 0);
		CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_RTS);
		CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_RX_DROP_TOO_LONG), 1);
		CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_RX_DROP_MESSAGE), 2);
		end();
	}
}

/* As adapters tell it over RoCE, where there is no service level. */
static void
kind_of_network_header(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	struct rcd_pkt pkt = { .payload_len = 4, .payload = (const uint8_t *)"data" };
	uint8_t ip[RCD_IPV6_LEN] = { 0 };

	begin(&init, NULL);
	pkt.ip = ip;
	pkt.roce.bth = (struct rcd_bth){ .opcode = RCD_OPCODE_UD_SEND_ONLY, .pkey = { 0xffff } };
	pkt.roce.deth.qkey.val = 0x1234;
	for (uint8_t i = 0; i < 2; i++) {
		post_recv(&p.b->rq, 1, 0, 100);
		pkt.l3 = i == 0 ? RCD_L3_IPV4 : RCD_L3_IPV6;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
		CU_ASSERT_EQUAL(p.sim.nodes[1].cqes[i].sl, 2 - i);
	}
	end();
}

/*
 * What is wrong with the receiver's own work request still ends it, for whom it belongs to.
 *
 * Covers: IBTA 9.9.3 unrel_fail_recv()
 */
static void
errors_of_the_own_side(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);

	begin(&init, NULL);
	post_recv(&p.b->rq, 1, 0, 200);
	p.b->rq.sges[0][0].lkey.val ^= 0x100;
	post_datagram(0, 8, 0x1234);
	run();
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_LOC_PROT_ERR));
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
	end();
}

/* Windows of two queue pairs, bound, invalidated and freed at random, against the counts. */
static void
windows_of_a_queue_pair(void)
{
	enum {
		WINDOWS = 40
	};
	struct rcd_mr_table *table = rcd_mr_table_create(6, 5);
	struct rcd_mr_attr attr = { .pd = 1,
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_MW_BIND,
		.len = 64,
		.base = p.sim.nodes[0].memory };
	struct rcd_mw_list lists[2] = { { 0 }, { 0 } };
	struct rcd_key keys[WINDOWS], region;
	int of[WINDOWS]; /* the queue pair that it is bound through; -1: none */
	struct rcd_sequence rng = { 9 };

	CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &region), 0);
	for (int i = 0; i < WINDOWS; i++) {
		CU_ASSERT_EQUAL(rcd_mw_alloc(table, RCD_MR_WINDOW_2, 1, &keys[i]), 0);
		of[i] = -1;
	}
	for (int round = 0; round < 2000; round++) {
		uint32_t i = sim_below(&rng, WINDOWS), qp = sim_below(&rng, 2), bound = 0;

		if (of[i] < 0) {
			struct rcd_mw_bind bind = { .pd = 1,
				.qpn = 100 + qp,
				.mw = keys[i],
				.variant = (uint8_t)round,
				.mr = region,
				.len = 8,
				.list = &lists[qp] };

			CU_ASSERT_EQUAL(rcd_mw_bind(table, &bind, &keys[i]), 0);
			of[i] = (int)qp;
		} else if (sim_chance(&rng, 0.5)) {
			CU_ASSERT_EQUAL(
				rcd_mw_invalidate(table, keys[i], 1, 100 + (uint32_t)of[i]), 0);
			of[i] = -1;
		} else {
			CU_ASSERT_EQUAL(rcd_mw_free(table, keys[i]), 0);
			CU_ASSERT_EQUAL(rcd_mw_alloc(table, RCD_MR_WINDOW_2, 1, &keys[i]), 0);
			of[i] = -1;
		}
		if (round % 50 != 0)
			continue;
		for (int k = 0; k < WINDOWS; k++)
			bound += of[k] == (int)qp;
		/* A budget that is just enough, and one that is not. */
		if (bound > 1)
			CU_ASSERT_TRUE(rcd_mw_unbind_some(table, &lists[qp], bound - 1));
		CU_ASSERT_FALSE(rcd_mw_unbind_some(table, &lists[qp], 1));
		for (int k = 0; k < WINDOWS; k++) {
			if (of[k] != (int)qp)
				continue;
			CU_ASSERT_EQUAL(rcd_mw_invalidate(table, keys[k], 1, 100 + qp), -EINVAL);
			of[k] = -1;
		}
	}
	CU_ASSERT_FALSE(rcd_mw_unbind_some(table, &lists[0], WINDOWS));
	CU_ASSERT_FALSE(rcd_mw_unbind_some(table, &lists[1], WINDOWS));
	CU_ASSERT_EQUAL(rcd_mr_deregister(table, region), 0);
	rcd_mr_table_destroy(table);
}

/* A client writes over a READ that is out, with a list that is longer than there is room for. */
static void
a_request_that_is_written_over(void)
{
	static const uint8_t payload[16] = { 0xee };
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_send_wr *wr;
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	begin(&init, NULL);
	wr = post(p.a, RCD_WR_RDMA_READ, 0, sizeof(payload), 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	/* Its length stays. */
	wr->flags |= RCD_SEND_INLINE;
	wr->inline_len = sizeof(payload);
	wr->sge_count = UINT8_MAX;
	pkt = nak_by_hand(out.roce.bth.psn);
	pkt.roce.bth.opcode = RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY;
	pkt.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	pkt.payload = payload;
	pkt.payload_len = sizeof(payload);
	rcd_qp_rx(p.a->qp, &pkt, 2);
	CU_ASSERT_TRUE(raised(0, RCD_EVENT_QP_FATAL));
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_ERR);
	CU_ASSERT_NOT_EQUAL(p.sim.nodes[0].memory[0], payload[0]);
	end();
}

/*
 * A WRITE is to be sent again after a timeout when the second response to the READ behind it comes:
 * the WRITE is complete by that, and its place the client's.
 */
static void
a_request_that_is_done_before_it_is_sent_again(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_tx_pkt out;
	struct rcd_psn read;
	struct rcd_pkt pkt;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	post(p.a, RCD_WR_RDMA_READ, 0, 4096, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	read = out.roce.bth.psn;
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	/* Probes come first. */
	for (uint32_t i = 0; i < 32 && counter(0, RCD_COUNTER_RTO) == 0; i++) {
		p.sim.now_ns = rcd_qp_next_deadline(p.a->qp);
		rcd_qp_expire(p.a->qp, p.sim.now_ns);
	}
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RTO), 1);
	pkt = nak_by_hand(rcd_psn_add(read, 1));
	pkt.roce.bth.opcode = RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE;
	pkt.payload_len = 1024;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns), RCD_RX_KEPT);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	p.a->sq.wrs[0].opcode = RCD_WR_SEND;
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, p.sim.now_ns, &out));
	CU_ASSERT_TRUE(rcd_psn_eq(out.roce.bth.psn, read));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_REQUEST);
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_RTS);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "T1 inline payload stays until its packet was taken", inline_payload_stays },
		{ "T1 inline payload that is sent again", inline_payload_sent_again },
		{ "T4 an oversized datagram is dropped", an_oversized_datagram },
		{ "T4 an oversized datagram and a shared receive queue",
			an_oversized_datagram_and_a_shared_queue },
		{ "T4 an oversized message of UC is dropped", an_oversized_unreliable_message },
		{ "T4 errors of the own side stop the queue pair", errors_of_the_own_side },
		{ "T7 an RNR NAK is repeated every 64 packets", a_lost_rnr_nak },
		{ "T9 windows of a queue pair are unbound, some at a time",
			windows_of_a_queue_pair },
		{ "T14 a datagram's kind of network header", kind_of_network_header },
		{ "T11 NAKs are heard while paced", naks_are_heard_while_paced },
		{ "T11 RNR NAKs are heard while paced", rnr_naks_are_heard_while_paced },
		{ "R1 a request that is written over while it is out",
			a_request_that_is_written_over },
		{ "R2 a request that is done before it is sent again",
			a_request_that_is_done_before_it_is_sent_again },
	};

	return rcd_tap_run("qp_findings", tests, RCD_ARRAY_COUNT(tests));
}
