/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a responder answers what of a READ is asked for again, takes nothing away of what it owes,
 * and nothing twice that need not be. Method: packets of a requester made by hand, and those that
 * the responder sends, one by one.
 */
#include "rcd_aeth.h"
#include "rcd_tap.h"
#include "situation.h"

/* Take packets of b until there is none. @return their number */
static uint32_t
take_all(struct rcd_tx_pkt *out, uint32_t room)
{
	uint32_t count = 0;

	while (count < room && rcd_qp_tx_next(p.b->qp, 1, &out[count]))
		count++;
	return count;
}

/* A READ of part of another, as a peer that lost its answers asks for it. */
static struct rcd_pkt
part_of(const struct rcd_pkt *whole, uint32_t packet, uint32_t packets)
{
	struct rcd_pkt pkt = *whole;

	pkt.roce.bth.psn = rcd_psn_add(whole->roce.bth.psn, packet);
	pkt.roce.reth.va += packet * 1024;
	pkt.roce.reth.dma_len = packets * 1024;
	return pkt;
}

/* Two of eight are out when a duplicate asks for the sixth alone. */
static void
duplicate_read_during_the_answer(void)
{
	struct rcd_pkt first = begin_with_reads(4);
	struct rcd_tx_pkt out[16];
	struct rcd_pkt again;

	first.roce.reth.dma_len = 8 * 1024;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(take_all(out, 2), 2);
	again = part_of(&first, 5, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &again, 1), RCD_RX_DUPLICATE);
	CU_ASSERT_EQUAL_FATAL(take_all(out + 2, 14), 6);
	for (uint32_t i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(out[i].roce.bth.psn.val, rcd_psn_add(first.roce.bth.psn, i).val);
		CU_ASSERT_EQUAL(out[i].pieces[0].base, p.sim.nodes[1].memory + 1024 * i);
		CU_ASSERT_EQUAL(out[i].roce.bth.opcode,
			i == 0          ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST
				: i < 7 ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE
					: RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST);
	}
	end();
}

/* What was sent and is asked for again comes before what is left, which goes on behind it. */
static void
a_part_of_a_read_again(void)
{
	static const uint8_t wanted[][2] = { { 1, RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST },
		{ 2, RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST },
		{ 4, RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE },
		{ 5, RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE } };
	struct rcd_pkt first = begin_with_reads(2), again, next;
	struct rcd_tx_pkt out[16];

	first.roce.reth.dma_len = 8 * 1024;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(take_all(out, 4), 4);
	again = part_of(&first, 1, 2);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &again, 1), RCD_RX_DUPLICATE);
	CU_ASSERT_EQUAL_FATAL(take_all(out, 4), 4);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(
			out[i].roce.bth.psn.val, rcd_psn_add(first.roce.bth.psn, wanted[i][0]).val);
		CU_ASSERT_EQUAL(out[i].roce.bth.opcode, wanted[i][1]);
	}
	CU_ASSERT_EQUAL(take_all(out, 16), 2);
	/* All of it is out, and the next READ is answered: the part comes first here, too. */
	next = part_of(&first, 8, 4);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &next, 1), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(take_all(out, 1), 1);
	again = part_of(&first, 7, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &again, 1), RCD_RX_DUPLICATE);
	CU_ASSERT_EQUAL_FATAL(take_all(out, 2), 2);
	CU_ASSERT_EQUAL(out[0].roce.bth.psn.val, again.roce.bth.psn.val);
	CU_ASSERT_EQUAL(out[0].roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY);
	CU_ASSERT_EQUAL(out[1].roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE);
	/* Another READ took the place of what it is a part of: it is not answered. */
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &again, 1), RCD_RX_DUPLICATE);
	next = part_of(&first, 12, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &next, 1), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL_FATAL(take_all(out, 16), 3);
	CU_ASSERT_EQUAL(out[0].roce.bth.psn.val, rcd_psn_add(first.roce.bth.psn, 10).val);
	end();
}

/*
 * The network repeats a READ that was answered while the next one is. Who takes responses in their
 * order alone drops what it has, and to it nothing has come between two responses of the next one:
 * a FIRST in the middle of that would be an error (rxe: check_ack()).
 */
static void
a_late_duplicate_of_the_read_before(void)
{
	struct rcd_pkt one = begin_with_reads(2), two;
	struct rcd_tx_pkt out[16];
	uint32_t expected = 0;
	bool middle = false;

	one.roce.reth.dma_len = 4 * 1024;
	two = part_of(&one, 4, 4);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &one, 1), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &two, 1), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL_FATAL(take_all(out, 6), 6);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &one, 1), RCD_RX_DUPLICATE);
	CU_ASSERT_EQUAL_FATAL(take_all(out + 6, 10), 6);
	for (uint32_t i = 0; i < 12; i++) {
		if (!rcd_psn_eq(out[i].roce.bth.psn, rcd_psn_add(one.roce.bth.psn, expected)))
			continue;
		CU_ASSERT_EQUAL(rcd_opcode_begins(out[i].roce.bth.opcode), !middle);
		middle = !rcd_opcode_ends(out[i].roce.bth.opcode);
		expected++;
	}
	CU_ASSERT_EQUAL(expected, 8);
	end();
}

/*
 * Duplicates at random against a model: what is owed is all of the first answer and all that was
 * asked for since, less what was sent. Runs of responses are whole, unless another begins; what it
 * came between may go on behind it.
 */
static void
duplicate_reads_at_random(void)
{
	enum {
		PACKETS = 12
	};
	struct rcd_sequence rng = { 77 };

	for (uint32_t round = 0; round < 300; round++) {
		struct rcd_pkt first = begin_with_reads(4);
		bool owed[PACKETS], open = false;
		uint32_t before = 0, between = 0, sent_count = 0, asked = PACKETS;
		struct rcd_tx_pkt out;

		first.roce.reth.dma_len = PACKETS * 1024 - sim_below(&rng, 1024);
		memset(owed, true, sizeof(owed));
		CU_ASSERT_EQUAL_FATAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_EXECUTED);
		for (uint32_t step = 0; step < 60 || rcd_qp_tx_next(p.b->qp, 1, &out); step++) {
			uint32_t packet = sim_below(&rng, PACKETS);
			uint32_t packets = 1 + sim_below(&rng, PACKETS - packet);
			struct rcd_pkt again = part_of(&first, packet, packets);

			if (step < 60 && sim_chance(&rng, 0.15)) {
				if (packet + packets == PACKETS)
					again.roce.reth.dma_len =
						first.roce.reth.dma_len - packet * 1024;
				CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &again, 1), RCD_RX_DUPLICATE);
				memset(owed + packet, true, packets);
				asked += PACKETS;
			}
			if (step < 60 && !rcd_qp_tx_next(p.b->qp, 1, &out))
				continue;
			packet = (uint32_t)rcd_psn_diff(out.roce.bth.psn, first.roce.bth.psn);
			CU_ASSERT_FATAL(packet < PACKETS);
			CU_ASSERT_EQUAL(out.pieces[0].base,
				p.sim.nodes[1].memory + 1024 * (uint64_t)packet);
			owed[packet] = false;
			CU_ASSERT(rcd_opcode_begins(out.roce.bth.opcode) ||
				(open && packet == before + 1) || packet == between + 1);
			if (rcd_opcode_begins(out.roce.bth.opcode) && open)
				between = before;
			open = !rcd_opcode_ends(out.roce.bth.opcode);
			before = packet;
			sent_count++;
		}
		CU_ASSERT_FALSE(open);
		for (uint32_t i = 0; i < PACKETS; i++)
			CU_ASSERT_FALSE(owed[i]);
		CU_ASSERT(sent_count <= asked);
		end();
	}
}

/*
 * A READ was answered and its memory given back; what comes late, or again, of the request is
 * dropped, and the queue pair goes on. A first answer that is cut short is an error.
 *
 * Covers: IBTA 9.7.5.1 reply_refuse_response()
 */
static void
memory_of_a_read_that_went(void)
{
	for (uint32_t out_before = 2; out_before <= 4; out_before += 2) {
		struct rcd_pkt first = begin_with_reads(4);
		struct rcd_tx_pkt out[16];
		bool answered = out_before == 4;

		first.roce.reth.dma_len = 4 * 1024;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_EXECUTED);
		CU_ASSERT_EQUAL(take_all(out, out_before), out_before);
		CU_ASSERT_EQUAL(rcd_mr_deregister(p.sim.nodes[1].mrs, p.key[1]), 0);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_DUPLICATE);
		CU_ASSERT_EQUAL(take_all(out, 16), answered ? 0 : 1);
		CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), answered ? RCD_QP_RTS : RCD_QP_ERR);
		if (!answered)
			CU_ASSERT_EQUAL(out[0].roce.aeth.syndrome,
				rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_REMOTE_ACCESS));
		end();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "T5 a duplicate READ during the first answer", duplicate_read_during_the_answer },
		RCD_TEST(a_part_of_a_read_again),
		RCD_TEST(a_late_duplicate_of_the_read_before),
		{ "T5 duplicate READs at random", duplicate_reads_at_random },
		{ "a duplicate READ of memory that went", memory_of_a_read_that_went },
	};

	return rcd_tap_run("qp_reads", tests, RCD_ARRAY_COUNT(tests));
}
