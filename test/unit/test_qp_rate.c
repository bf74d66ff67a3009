/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the rate that a program gives a queue pair holds for all that it sends, and for no longer
 * than the program wants. Method: two nodes in the simulator, and bytes on the wire over its time.
 */
#include <errno.h>

#include "rcd_qp_priv.h"
#include "rcd_tap.h"
#include "situation.h"

#define PACKET  (1024 + 82)
#define BYTE_NS 1000 /* at 8000 kb/s */
#define KBPS    8000
#define START   UINT64_C(1000000000)

#define ROUND_NS 20000

static uint64_t completed_ns;
_Alignas(8) static uint8_t gates[2][1024];

static int
set_rate(struct sim_qp *qp, uint32_t kbps, uint32_t burst)
{
	struct rcd_qp_attr attr = { .rate_kbps = kbps, .burst_bytes = burst };

	return rcd_qp_modify(qp->qp, &attr, RCD_QP_ATTR_RATE);
}

static void
begin_limited(enum rcd_qp_type type, const struct rcd_cc_ops *cc, uint32_t kbps, uint32_t burst)
{
	struct rcd_qp_init init = default_init(type);
	struct rcd_cc_params params;

	init.cc = cc;
	rcd_cc_params_init(&params);
	init.cc_params = &params;
	begin(&init, NULL);
	CU_ASSERT_FATAL(rcd_qp_gate_size() <= sizeof(gates[0]));
	if (cc == NULL) {
		CU_ASSERT_EQUAL(set_rate(p.a, kbps, burst), -EINVAL);
		CU_ASSERT_EQUAL(rcd_qp_set_gate(p.a->qp, gates[0]), 0);
		CU_ASSERT_EQUAL(rcd_qp_set_gate(p.b->qp, gates[1]), 0);
	}
	CU_ASSERT_EQUAL(rcd_qp_set_gate(p.a->qp, gates[0]), -EEXIST);
	CU_ASSERT_EQUAL(set_rate(p.a, kbps, burst), 0);
	CU_ASSERT_EQUAL(set_rate(p.b, kbps, burst), 0);
}

/* @return packets that leave at this time */
static uint32_t
leave(struct sim_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *out)
{
	uint32_t count = 0;

	rcd_qp_expire(qp->qp, now_ns);
	while (rcd_qp_tx_next(qp->qp, now_ns, out))
		count++;
	return count;
}

/* One packet, the next when its bytes have passed but for what a burst makes up for. */
static void
requests_and_repairs(void)
{
	uint64_t next_ns = START + (uint64_t)PACKET * BYTE_NS - RCD_CC_CREDIT_NS;
	struct rcd_qp_limits limits;
	struct rcd_tx_pkt out;
	struct rcd_pkt nak;

	begin_limited(RCD_QP_RC, NULL, KBPS, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 4 * 1024, 0);
	CU_ASSERT_EQUAL(leave(p.a, START, &out), 1);
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_TRUE(rcd_qp_next_deadline(p.a->qp) <= next_ns);
	CU_ASSERT_EQUAL(leave(p.a, next_ns - 1, &out), 0);
	CU_ASSERT_EQUAL(leave(p.a, next_ns, &out), 1);
	next_ns += (uint64_t)PACKET * BYTE_NS;
	/* Again, at the same pace. */
	nak = nak_by_hand(out.roce.bth.psn);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, next_ns - 1000), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(leave(p.a, next_ns - 1, &out), 0);
	CU_ASSERT_EQUAL(leave(p.a, next_ns, &out), 1);
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, nak.roce.bth.psn.val);
	CU_ASSERT_EQUAL(leave(p.a, next_ns + 1000, &out), 0);
	rcd_qp_limits(p.a->qp, &limits);
	CU_ASSERT_EQUAL(limits.limit_kbps, KBPS);
	CU_ASSERT_TRUE(limits.pace_ns > 0);
	CU_ASSERT_FALSE(rcd_qp_reacts(p.a->qp));
	end();
}

/* A READ's responses are held back where they come from, and so is the acknowledge behind them. */
static void
responses(void)
{
	uint64_t next_ns = START + (uint64_t)PACKET * BYTE_NS - RCD_CC_CREDIT_NS;
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	for (uint32_t with_swift = 0; with_swift < 2; with_swift++) {
		begin_limited(RCD_QP_RC, with_swift ? &rcd_cc_swift : NULL, KBPS, 0);
		/* What the algorithm holds back is of requests alone. */
		CU_ASSERT_EQUAL(leave(p.b, START - 1, &out), 0);
		p.b->qp->gate->next_ns = with_swift ? 2 * START : 0;
		pkt = by_hand(RCD_OPCODE_RC_RDMA_READ_REQUEST, 0);
		pkt.payload_len = 0;
		pkt.roce.reth = (struct rcd_reth){ .rkey = p.key[1], .dma_len = 2 * 1024 };
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, START), RCD_RX_EXECUTED);
		CU_ASSERT_EQUAL(leave(p.b, START, &out), 1);
		CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST);
		CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.b->qp), next_ns);
		CU_ASSERT_EQUAL(leave(p.b, next_ns - 1, &out), 0);
		CU_ASSERT_EQUAL(leave(p.b, next_ns, &out), 1);
		CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST);
		/* What has no data of its own passes. */
		pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 0);
		pkt.payload_len = 0;
		pkt.roce.reth = (struct rcd_reth){ .rkey = p.key[1] };
		pkt.roce.bth.ack_req = true;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, next_ns), RCD_RX_EXECUTED);
		CU_ASSERT_EQUAL(leave(p.b, next_ns, &out), 1);
		end();
	}
}

/* An initiator's rate is of its requests, and a target's of its answers. */
static void
both_ends_of_xrc(void)
{
	uint64_t next_ns = START + (uint64_t)PACKET * BYTE_NS - RCD_CC_CREDIT_NS;
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	begin_limited(RCD_QP_XRC_SEND, NULL, KBPS, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 4 * 1024, 0);
	CU_ASSERT_EQUAL(leave(p.a, START, &out), 1);
	CU_ASSERT_EQUAL(leave(p.a, next_ns - 1, &out), 0);
	CU_ASSERT_EQUAL(leave(p.a, next_ns, &out), 1);
	pkt = by_hand(RCD_OPCODE_XRC_RDMA_READ_REQUEST, 0);
	pkt.payload_len = 0;
	pkt.roce.reth.dma_len = 2 * 1024;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, START), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(leave(p.b, START, &out), 1);
	CU_ASSERT_EQUAL(leave(p.b, next_ns - 1, &out), 0);
	CU_ASSERT_EQUAL(leave(p.b, next_ns, &out), 1);
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_XRC_RDMA_READ_RESPONSE_LAST);
	end();
}

/* The peer has all that was sent up to this packet. */
static void
acknowledge(const struct rcd_tx_pkt *last, uint64_t now_ns)
{
	struct rcd_pkt ack = nak_by_hand(last->roce.bth.psn);

	ack.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, now_ns), RCD_RX_EXECUTED);
}

/* So many bytes go at once after an idle time, and not one packet more. */
static void
bursts(void)
{
	uint64_t next_ns = START + (uint64_t)PACKET * BYTE_NS;
	struct rcd_tx_pkt out;

	begin_limited(RCD_QP_RC, NULL, KBPS, 3 * PACKET);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	CU_ASSERT_EQUAL(leave(p.a, START, &out), 4);
	acknowledge(&out, START + ROUND_NS);
	CU_ASSERT_EQUAL(leave(p.a, next_ns - 1, &out), 0);
	CU_ASSERT_EQUAL(leave(p.a, next_ns, &out), 1);
	acknowledge(&out, next_ns + ROUND_NS);
	/* As many again: what was not used for a second makes no longer burst. */
	CU_ASSERT_EQUAL(leave(p.a, 2 * START, &out), 4);
	end();
	/* No more than there was time for. */
	begin_limited(RCD_QP_RC, NULL, 1, UINT32_MAX);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	CU_ASSERT_EQUAL(leave(p.a, 1, &out), 1);
	CU_ASSERT_EQUAL(leave(p.a, UINT64_C(8000000) * PACKET - 1, &out), 0);
	CU_ASSERT_EQUAL(leave(p.a, UINT64_C(8000000) * PACKET, &out), 1);
	end();
}

/* UC, datagrams and frames are limited as well; frames by their own length. */
static void
unreliable_services(void)
{
	static const uint16_t frame_max = 1518;
	static const enum rcd_qp_type types[] = { RCD_QP_UC, RCD_QP_UD, RCD_QP_RAW };
	uint64_t next_ns = START - RCD_CC_CREDIT_NS;
	struct rcd_tx_pkt out;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(types); i++) {
		uint32_t bytes = 1000 + (types[i] == RCD_QP_RAW ? 24 : 82);
		struct rcd_qp_init init = default_init(types[i]);

		init.frame_max = types[i] == RCD_QP_RAW ? &frame_max : NULL;
		begin(&init, NULL);
		CU_ASSERT_EQUAL(rcd_qp_set_gate(p.a->qp, gates[0]), 0);
		CU_ASSERT_EQUAL(set_rate(p.a, KBPS, 0), 0);
		for (uint32_t k = 0; k < 3; k++) {
			if (types[i] == RCD_QP_UD)
				post_datagram(0, 1000, 0);
			else
				post(p.a, RCD_WR_SEND, 0, 1000, 0);
		}
		CU_ASSERT_EQUAL(leave(p.a, START, &out), 1);
		CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), next_ns + bytes * BYTE_NS);
		CU_ASSERT_EQUAL(leave(p.a, next_ns + bytes * BYTE_NS - 1, &out), 0);
		CU_ASSERT_EQUAL(leave(p.a, next_ns + bytes * BYTE_NS, &out), 1);
		end();
	}
}

/* A third of a nanosecond for each packet is a whole one after three. */
static void
parts_of_a_nanosecond(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	uint64_t fourth_ns = START + UINT64_C(1082) * 8000000 - RCD_CC_CREDIT_NS;
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	CU_ASSERT_EQUAL(rcd_qp_set_gate(p.a->qp, gates[0]), 0);
	CU_ASSERT_EQUAL(set_rate(p.a, 3, 0), 0);
	for (uint32_t i = 0; i < 4; i++)
		post_datagram(0, 1000, 0);
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(leave(p.a, START + i * (fourth_ns - START) / 3, &out), 1);
	CU_ASSERT_EQUAL(leave(p.a, fourth_ns - 1, &out), 0);
	CU_ASSERT_EQUAL(leave(p.a, fourth_ns, &out), 1);
	end();
}

static void
note_completion(void *arg, struct sim_node *node, const struct rcd_cqe *cqe)
{
	(void)arg;
	(void)cqe;
	completed_ns = node->sim->now_ns;
}

/* In the long run it is the rate, within two percent and with round trips and losses. */
static void
it_holds(void)
{
	static const struct {
		enum rcd_wr_opcode opcode;
		const struct rcd_cc_ops *cc;
		uint32_t kbps;
		double loss;
	} rows[] = {
		{ RCD_WR_RDMA_WRITE, NULL, 1000000, 0 },
		{ RCD_WR_RDMA_READ, NULL, 1000000, 0 },
		{ RCD_WR_RDMA_WRITE, NULL, 9999991, 0 },
		{ RCD_WR_RDMA_WRITE, NULL, 100000, 0.01 },
		{ RCD_WR_RDMA_WRITE, &rcd_cc_swift, 100000, 0 },
		{ RCD_WR_RDMA_READ, &rcd_cc_dcqcn, 100000, 0 },
	};
	const uint32_t len = 1 << 20;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		uint32_t node = rows[i].opcode == RCD_WR_RDMA_READ;
		uint64_t bytes, took_ns;

		begin_limited(RCD_QP_RC, rows[i].cc, rows[i].kbps, 0);
		p.sim.nodes[0].out.loss = rows[i].loss;
		p.sim.nodes[0].out.gbps = p.sim.nodes[1].out.gbps = 100;
		p.sim.nodes[0].on_cqe = note_completion;
		post(p.a, rows[i].opcode, 0, len, 0);
		run();
		CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
		bytes = node == 0 ? counter(0, RCD_COUNTER_SENT_PKTS) * PACKET
				  : len / 1024 * PACKET;
		took_ns = (bytes - PACKET) * UINT64_C(8000000) / rows[i].kbps;
		CU_ASSERT_TRUE(completed_ns + RCD_CC_CREDIT_NS >= took_ns);
		CU_ASSERT_TRUE(completed_ns <= took_ns + took_ns / 50 + ROUND_NS);
		end();
	}
}

/* 0 ends it, at once; another one is not kept up by what the old one held back. */
static void
changes(void)
{
	struct rcd_qp_limits limits;
	struct rcd_tx_pkt out;

	begin_limited(RCD_QP_RC, NULL, 1, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 200 * 1024, 0);
	CU_ASSERT_EQUAL(leave(p.a, START, &out), 1);
	CU_ASSERT_EQUAL(leave(p.a, 2 * START, &out), 0);
	/* A probe of the first was due long ago. */
	CU_ASSERT_EQUAL(set_rate(p.a, KBPS, 0), 0);
	CU_ASSERT_EQUAL(leave(p.a, 2 * START, &out), 1);
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, p.a->qp->hot.psn_una.val);
	CU_ASSERT_EQUAL(set_rate(p.a, 0, 0), 0);
	CU_ASSERT_EQUAL(leave(p.a, 2 * START, &out), 199);
	rcd_qp_limits(p.a->qp, &limits);
	CU_ASSERT_EQUAL(limits.limit_kbps, 0);
	CU_ASSERT_EQUAL(limits.window, RCD_CC_NO_WINDOW);
	/* Nor is the next one late. */
	CU_ASSERT_EQUAL(leave(p.a, 2 * START + 10000000, &out), 1);
	/* A time without one is none that something waited for it. */
	CU_ASSERT_EQUAL(limits.pace_ns, START);
	CU_ASSERT_EQUAL(set_rate(p.a, KBPS, 0), 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 1024, 0);
	CU_ASSERT_EQUAL(leave(p.a, 3 * START, &out), 1);
	rcd_qp_limits(p.a->qp, &limits);
	CU_ASSERT_EQUAL(limits.pace_ns, START);
	end();
	/* A flood of them while packets and acknowledges are on their way. */
	for (uint32_t cc = 0; cc < 3; cc++) {
		static const uint32_t rates[] = { 0, UINT32_MAX, 1, 100000, 0, 0, 1000000 };
		static const struct rcd_cc_ops *const all[] = { NULL, &rcd_cc_swift,
			&rcd_cc_dcqcn };

		begin_limited(RCD_QP_RC, all[cc], UINT32_MAX, UINT32_MAX);
		p.sim.nodes[0].out.loss = p.sim.nodes[1].out.loss = 0.01;
		post(p.a, RCD_WR_RDMA_WRITE, 0, 1 << 20, 0);
		post(p.a, RCD_WR_RDMA_READ, 0, 1 << 20, 0);
		for (uint32_t i = 0; i < 2000; i++) {
			CU_ASSERT_EQUAL(set_rate(i % 2 ? p.a : p.b,
						rates[i % RCD_ARRAY_COUNT(rates)], i * 7777777u),
				0);
			sim_kick(&p.sim);
			sim_run(&p.sim, p.sim.now_ns + 1000);
		}
		CU_ASSERT_EQUAL(set_rate(p.a, 0, 0), 0);
		CU_ASSERT_EQUAL(set_rate(p.b, 0, 0), 0);
		sim_kick(&p.sim);
		run();
		CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
		CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_SUCCESS));
		end();
	}
}

/* RESET forgets it, with what it held back; in other states than RTS there is none to set. */
static void
states(void)
{
	struct rcd_qp_attr attr = { .state = RCD_QP_ERR };
	struct rcd_qp_limits limits;
	struct rcd_tx_pkt out;

	begin_limited(RCD_QP_RC, NULL, 1, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 200 * 1024, 0);
	CU_ASSERT_EQUAL(leave(p.a, START, &out), 1);
	CU_ASSERT_EQUAL(leave(p.a, START, &out), 0);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), 0);
	CU_ASSERT_EQUAL(set_rate(p.a, KBPS, 0), -EINVAL);
	attr.state = RCD_QP_RESET;
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(set_rate(p.a, KBPS, 0), -EINVAL);
	CU_ASSERT_EQUAL(set_rate(p.a, 0, 0), -EINVAL);
	rcd_qp_limits(p.a->qp, &limits);
	CU_ASSERT_EQUAL(limits.limit_kbps, 0);
	end();
}

/* Another algorithm before RTR, if there is memory for it; datagrams have none. */
static void
other_algorithms(void)
{
	struct rcd_qp_attr reset = { .state = RCD_QP_RESET };
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_cc_params params;

	rcd_cc_params_init(&params);
	begin(&init, NULL);
	CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_none, &params), -EINVAL);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_none, &params), 0);
	CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_swift, &params), -EINVAL);
	CU_ASSERT_FALSE(rcd_qp_reacts(p.a->qp));
	CU_ASSERT_EQUAL(rcd_qp_set_gate(p.a->qp, gates[0]), 0);
	CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_swift, &params), 0);
	CU_ASSERT_STRING_EQUAL(rcd_qp_cc_name(p.a->qp), "swift");
	CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_dcqcn, &params), 0);
	CU_ASSERT_STRING_EQUAL(rcd_qp_cc_name(p.a->qp), "dcqcn");
	end();
	init = default_init(RCD_QP_UD);
	begin(&init, NULL);
	CU_ASSERT_EQUAL(rcd_qp_set_gate(p.a->qp, gates[0]), 0);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &reset, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_swift, &params), -EINVAL);
	CU_ASSERT_EQUAL(rcd_qp_set_cc(p.a->qp, &rcd_cc_none, &params), 0);
	end();
}

/* A rate is no window: who has only that waits for its first probe as long as who has none. */
static void
no_early_probe(void)
{
	struct rcd_tx_pkt out;

	begin_limited(RCD_QP_RC, NULL, KBPS, 0);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, START, &out));
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(p.a->qp), START + RCD_PROBE_FIRST_NS);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "requests, and what is sent again", requests_and_repairs },
		{ "responses to READs", responses },
		{ "both ends of XRC", both_ends_of_xrc },
		{ "bursts", bursts },
		{ "UC, datagrams and frames", unreliable_services },
		{ "parts of a nanosecond", parts_of_a_nanosecond },
		{ "it holds within two percent", it_holds },
		{ "changes, and a flood of them", changes },
		{ "states", states },
		{ "other algorithms", other_algorithms },
		{ "a rate has no early probe", no_early_probe },
	};

	return rcd_tap_run("qp_rate", tests, RCD_ARRAY_COUNT(tests));
}
