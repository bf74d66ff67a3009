/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets that pass a window with room unasked are the same as if each had been asked about,
 * and are counted before anything is decided. Method: two nodes in the simulator, of which a has
 * the algorithm of told.h: with no rate its packets pass, with one that holds nothing back each is
 * asked about. Situations one by one, and scripts by seed that are run both ways.
 */
#include <inttypes.h>
#include <stdio.h>

#include "rcd_tap.h"
#include "told.h"

enum {
	SCRIPTS = 300,
	STEPS = 60,
	STEP_NS = 20000,
};

/* A window for SENDs, WRITEs and READs. @param passes  whether packets may pass unasked */
static void
begin_passing(uint32_t window, uint8_t max_rd_atomic, bool passes)
{
	begin_told_reads(window, max_rd_atomic);
	told.rate_kbps = passes ? 0 : TOLD_KBPS;
}

/* The window becomes this, and a CNP tells. */
static enum rcd_rx_verdict
congest_to(uint32_t window, uint64_t now_ns)
{
	told.window = window;
	return congest(now_ns);
}

/* It closes behind packets that passed and ask for nothing: one more does, and no second. */
static void
closes_behind(void)
{
	struct rcd_tx_pkt out;

	begin_passing(8 * PACKET, 0, true);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 20 * 1024, 0);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
		CU_ASSERT_FALSE(out.roce.bth.ack_req);
	}
	CU_ASSERT_EQUAL(congest_to(2 * PACKET, 1500), RCD_RX_CNP);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 2000, &out));
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 2000, &out));
	CU_ASSERT_EQUAL(congest_to(2 * PACKET, 2500), RCD_RX_CNP);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 3000, &out));
	end();
}

/* Atomics have no part in the window, between packets that pass either. */
static void
atomics_take_no_room(void)
{
	struct rcd_tx_pkt out;

	begin_passing(4 * PACKET, 16, true);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 1024, 0);
	for (uint32_t i = 0; i < 15; i++)
		post(p.a, RCD_WR_FETCH_ADD, 0, 8, 0);
	for (uint32_t i = 0; i < 4; i++)
		post(p.a, RCD_WR_RDMA_WRITE, 0, 1024, 0);
	for (uint32_t i = 0; i < 1 + 15 + 3; i++)
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	CU_ASSERT_TRUE(out.roce.bth.ack_req);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1000, &out));
	end();
}

/* A rate that is given while packets pass is kept from the next on, and goes again. */
static void
rate_between(void)
{
	struct rcd_qp_attr attr = { .rate_kbps = 8000 };
	struct rcd_tx_pkt out;

	begin_passing(16 * PACKET, 0, true);
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

	begin_passing(8 * PACKET, 0, true);
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

/* A script that goes on: all that it decides is of its own sequence. */
static struct script {
	struct rcd_sequence rng;
	uint32_t step;
	struct rcd_psn newest; /* that a sent */
	uint64_t digest;       /* of all that a sent, and when */
	uint64_t packets;
	bool lies; /* its peer acknowledges what it may not have, and misses what it has */
	bool failed;
} script;

static void
script_mix(uint64_t val)
{
	script.digest = (script.digest ^ val) * UINT64_C(0x100000001b3);
	script.digest ^= script.digest >> 29;
}

static void
script_note(
	const struct sim *sim, const struct sim_node *from, const struct rcd_tx_pkt *pkt, bool lost)
{
	const struct rcd_bth *bth = &pkt->roce.bth;

	if (from->number != 0)
		return;
	script_mix(sim->now_ns << 1 | lost);
	script_mix((uint64_t)bth->psn.val << 9 | (uint64_t)bth->opcode << 1 | bth->ack_req);
	script_mix(pkt->payload_len);
	if (bth->opcode == RCD_OPCODE_RC_RDMA_READ_REQUEST)
		script_mix(pkt->roce.reth.dma_len);
	script.newest = bth->psn;
	script.packets++;
}

static void
script_receive(void *arg)
{
	(void)arg;
	post_recv(&p.b->rq, 1, 0, 20480);
}

static void
script_post(void)
{
	static const uint32_t lens[] = { 0, 8, 1024, 5000, 20480 };
	static const enum rcd_wr_opcode opcodes[] = { RCD_WR_RDMA_WRITE, RCD_WR_RDMA_WRITE,
		RCD_WR_SEND, RCD_WR_RDMA_READ, RCD_WR_FETCH_ADD };
	enum rcd_wr_opcode opcode = opcodes[sim_below(&script.rng, RCD_ARRAY_COUNT(opcodes))];
	uint32_t len = lens[sim_below(&script.rng, RCD_ARRAY_COUNT(lens))];

	/* The peer may not be ready. */
	if (opcode == RCD_WR_SEND && sim_below(&script.rng, 8) == 0)
		sim_at(&p.sim, p.sim.now_ns + 5 * STEP_NS, script_receive, NULL);
	else if (opcode == RCD_WR_SEND)
		script_receive(NULL);
	post(p.a, opcode, 0, opcode == RCD_WR_FETCH_ADD ? 8 : len, 0);
}

static void
script_resume(void *arg)
{
	struct rcd_qp_attr attr = { .state = RCD_QP_RTS };

	(void)arg;
	rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE);
}

/* What any peer or program may do, at any time. */
static void
script_go(void *arg)
{
	struct rcd_qp_attr attr = { .rate_kbps = 0 };
	struct rcd_psn psn = rcd_psn_sub(script.newest, sim_below(&script.rng, 8));
	struct rcd_pkt pkt;

	(void)arg;
	for (uint32_t i = sim_below(&script.rng, 5); i > 0; i--)
		script_post();
	switch (sim_below(&script.rng, script.lies ? 10 : 8)) {
	case 0:
		congest_to(1 + sim_below(&script.rng, 30 * PACKET), p.sim.now_ns);
		break;
	case 1:
		told.window = 1 + sim_below(&script.rng, 30 * PACKET);
		break;
	case 2:
		attr.rate_kbps = sim_below(&script.rng, 2) * 5000000;
		rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_RATE);
		break;
	case 3:
		attr.state = RCD_QP_SQD;
		rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE);
		sim_at(&p.sim, p.sim.now_ns + STEP_NS, script_resume, NULL);
		break;
	case 8:
		pkt = ack_by_hand(psn);
		rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns);
		break;
	case 9:
		pkt = nak_by_hand(psn);
		rcd_qp_rx(p.a->qp, &pkt, p.sim.now_ns);
		break;
	default:
		break;
	}
	if (++script.step < STEPS)
		sim_at(&p.sim, p.sim.now_ns + sim_below(&script.rng, STEP_NS), script_go, NULL);
}

/* @return a digest of all that was sent, and of what was told of it */
static uint64_t
script_run(uint64_t seed, bool passes)
{
	struct rcd_qp_limits limits;

	script = (struct script){ .rng.state = seed, .lies = seed % 4 >= 2 };
	begin_passing(1 + sim_below(&script.rng, 20 * PACKET), 0, passes);
	p.sim.trace = script_note;
	for (uint32_t i = 0; i < 2; i++) {
		struct sim_link *out = &p.sim.nodes[i].out;

		out->loss = sim_below(&script.rng, 3) * 0.01;
		out->mark = sim_below(&script.rng, 3) * 0.02;
		out->reorder = sim_below(&script.rng, 2) * 0.02;
		out->delay_ns = 1000;
		out->gbps = 1 + sim_below(&script.rng, 20);
	}
	if (seed % 2 == 1) {
		sim_agree_sack(p.a);
		sim_agree_sack(p.b);
	}
	sim_at(&p.sim, 1000, script_go, NULL);
	run();
	rcd_qp_limits(p.a->qp, &limits);
	script_mix(limits.window_ns);
	script_mix(limits.pace_ns);
	script_mix(limits.losses);
	script_mix(told.acked);
	for (uint32_t i = 0; i < p.sim.nodes[0].cqe_count; i++)
		script_mix(p.sim.nodes[0].cqes[i].wr_id << 8 | p.sim.nodes[0].cqes[i].status);
	script.failed = p.sim.nodes[0].cqe_count > 0 &&
		p.sim.nodes[0].cqes[p.sim.nodes[0].cqe_count - 1].status != RCD_WC_SUCCESS;
	end();
	return script.digest;
}

static void
both_ways(void)
{
	uint64_t packets = 0;
	uint32_t whole = 0;

	for (uint64_t seed = 1; seed <= SCRIPTS; seed++) {
		uint64_t asked = script_run(seed, false);
		bool same = script_run(seed, true) == asked;

		if (!same)
			fprintf(stderr, "# script %" PRIu64 " differs\n", seed);
		CU_ASSERT_TRUE(same);
		packets += script.packets;
		whole += !script.failed;
	}
	CU_ASSERT_TRUE(packets > UINT64_C(100) * SCRIPTS);
	/* Who was told a lie may end in an error. */
	CU_ASSERT_TRUE(whole > SCRIPTS / 2);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "a window that closes behind what passed", closes_behind },
		{ "atomics take no room", atomics_take_no_room },
		{ "a rate that comes and goes between packets", rate_between },
		{ "RESET between packets", reset_between },
		{ "scripts are the same whether packets pass or are asked about", both_ways },
	};

	return rcd_tap_run("qp_unasked", tests, RCD_ARRAY_COUNT(tests));
}
