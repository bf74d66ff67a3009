/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: clauses of the specification that no program's traffic reaches, as a peer would have to do
 * wrong for them. Method: packets made by hand for one side, or one side alone; what it answers and
 * keeps is looked at.
 */
#include "rcd_aeth.h"
#include "rcd_tap.h"
#include "situation.h"

/* What b answers: a NAK's syndrome, or -1 for nothing. */
static int
answer_of_b(void)
{
	struct rcd_tx_pkt out;

	if (!rcd_qp_tx_next(p.b->qp, 2, &out))
		return -1;
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_ACKNOWLEDGE);
	return out.roce.aeth.syndrome;
}

/* b refuses the packet for this reason, which ends it. */
static void
refused(const struct rcd_pkt *pkt, enum rcd_nak code, enum rcd_event event)
{
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, pkt, 1), RCD_RX_REFUSED);
	CU_ASSERT_EQUAL(answer_of_b(), rcd_aeth_syndrome(RCD_AETH_NAK, (uint8_t)code));
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
	CU_ASSERT_TRUE(raised(1, event));
	end();
}

/* Begins a situation. @return a packet of this opcode and length, all else right */
static struct rcd_pkt
begin_with(uint8_t opcode, uint32_t len)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt pkt;

	begin(&init, NULL);
	post_recv(&p.b->rq, 1, 0, 8192);
	pkt = by_hand(opcode, 0);
	pkt.payload_len = pkt.roce.reth.dma_len = len;
	return pkt;
}

/*
 * A packet with two faults is answered for the first.
 *
 * Covers: IBTA 9.7.4 rcd_resp_check()
 */
static void
the_first_fault_counts(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;
	struct rcd_pkt pkt;

	/* What is offered is looked at before the key, */
	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.access = 0;
	begin(&init, &attr);
	pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 0);
	pkt.roce.reth.rkey.val ^= 0x100;
	refused(&pkt, RCD_NAK_INVALID_REQUEST, RCD_EVENT_QP_REQ_ERR);
	/* and the lengths, */
	pkt = begin_with(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 8);
	pkt.roce.reth.rkey.val ^= 0x100;
	pkt.roce.reth.dma_len = 9;
	refused(&pkt, RCD_NAK_INVALID_REQUEST, RCD_EVENT_QP_REQ_ERR);
	/* and the key before there has to be a receive work request. */
	begin(&init, NULL);
	pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, 0);
	pkt.roce.reth.rkey.val ^= 0x100;
	refused(&pkt, RCD_NAK_REMOTE_ACCESS, RCD_EVENT_QP_ACCESS_ERR);
}

/* Covers: IBTA 9.7.4.1 resp_check_sequence() */
static void
packets_out_of_place(void)
{
	static const struct {
		uint8_t first, second; /* 0xff: nothing before it */
	} pairs[] = {
		{ 0xff, RCD_OPCODE_RC_SEND_MIDDLE },
		{ 0xff, RCD_OPCODE_RC_SEND_LAST },
		{ 0xff, RCD_OPCODE_RC_RDMA_WRITE_MIDDLE },
		{ 0xff, RCD_OPCODE_RC_RDMA_WRITE_LAST },
		{ RCD_OPCODE_RC_SEND_FIRST, RCD_OPCODE_RC_SEND_ONLY },
		{ RCD_OPCODE_RC_SEND_FIRST, RCD_OPCODE_RC_SEND_FIRST },
		{ RCD_OPCODE_RC_SEND_FIRST, RCD_OPCODE_RC_RDMA_WRITE_LAST },
		{ RCD_OPCODE_RC_SEND_FIRST, RCD_OPCODE_RC_RDMA_READ_REQUEST },
		{ RCD_OPCODE_RC_RDMA_WRITE_FIRST, RCD_OPCODE_RC_SEND_LAST },
		{ RCD_OPCODE_RC_RDMA_WRITE_FIRST, RCD_OPCODE_RC_RDMA_WRITE_ONLY },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(pairs); i++) {
		struct rcd_pkt pkt = begin_with(pairs[i].first, 1024);

		pkt.roce.reth.dma_len = 2048;
		if (pairs[i].first != 0xff) {
			CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
			pkt.roce.bth.psn = rcd_psn_add(pkt.roce.bth.psn, 1);
		}
		pkt.roce.bth.opcode = pairs[i].second;
		refused(&pkt, RCD_NAK_INVALID_REQUEST, RCD_EVENT_QP_REQ_ERR);
	}
}

/* Covers: IBTA 9.7.4.1 resp_check_length() */
static void
lengths_that_do_not_fit(void)
{
	static const struct {
		uint8_t opcode;
		uint32_t len, announced;
		bool good;
	} rows[] = {
		{ RCD_OPCODE_RC_SEND_ONLY, 1024, 0, true },
		{ RCD_OPCODE_RC_SEND_ONLY, 1025, 0, false },
		{ RCD_OPCODE_RC_SEND_FIRST, 1024, 0, true },
		{ RCD_OPCODE_RC_SEND_FIRST, 1023, 0, false },
		{ RCD_OPCODE_RC_SEND_FIRST, 1025, 0, false },
		{ RCD_OPCODE_RC_RDMA_WRITE_ONLY, 8, 8, true },
		{ RCD_OPCODE_RC_RDMA_WRITE_ONLY, 8, 7, false },
		{ RCD_OPCODE_RC_RDMA_WRITE_ONLY, 8, 9, false },
		{ RCD_OPCODE_RC_RDMA_WRITE_FIRST, 1024, 1025, true },
		{ RCD_OPCODE_RC_RDMA_WRITE_FIRST, 1024, 1024, false },
		{ RCD_OPCODE_RC_RDMA_WRITE_FIRST, 1024, (1u << 31) + 1, false },
		{ RCD_OPCODE_RC_RDMA_READ_REQUEST, 0, (1u << 31) + 1, false },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		struct rcd_pkt pkt = begin_with(rows[i].opcode, rows[i].len);

		pkt.roce.reth.dma_len = rows[i].announced;
		if (!rows[i].good) {
			refused(&pkt, RCD_NAK_INVALID_REQUEST, RCD_EVENT_QP_REQ_ERR);
			continue;
		}
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
		end();
	}
}

/* Covers: IBTA 9.7.5.1 resp_rx_ahead() */
static void
one_nak_for_a_gap(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
	for (uint32_t i = 1; i < 5; i++) {
		struct rcd_pkt pkt = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, i);

		CU_ASSERT_NOT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
		CU_ASSERT_EQUAL(answer_of_b(),
			i == 1 ? rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_PSN_SEQUENCE) : -1);
	}
	end();
}

/* Covers: IBTA 9.7.5.1 rcd_reply_duplicate() */
static void
a_repeated_write(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt first, second;
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	first = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 0);
	second = by_hand(RCD_OPCODE_RC_RDMA_WRITE_ONLY, 1);
	second.roce.reth.va = 8;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &second, 1), RCD_RX_EXECUTED);
	/* It comes again, with something else in it. */
	first.payload += 100;
	first.roce.bth.ack_req = true;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_DUPLICATE);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[1].memory, p.sim.nodes[0].memory, 8), 0);
	CU_ASSERT_TRUE_FATAL(rcd_qp_tx_next(p.b->qp, 2, &out));
	CU_ASSERT_EQUAL(rcd_aeth_kind(out.roce.aeth.syndrome), RCD_AETH_ACK);
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, second.roce.bth.psn.val);
	end();
}

/* Covers: IBTA 9.7.5.1 comp_rx_response() */
static void
a_response_acknowledges(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt response;
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	post(p.a, RCD_WR_RDMA_READ, 64, 8, 64);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	response = nak_by_hand(out.roce.bth.psn);
	response.roce.bth.opcode = RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY;
	response.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, 31);
	response.payload_len = 8;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &response, 2), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_SUCCESS));
	end();
}

/* Covers: IBTA 9.7.5.1, 9.7.5.2 comp_rx_acknowledge() */
static void
an_acknowledge_over_a_read(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_tx_pkt read, out;
	struct rcd_pkt ack;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	post(p.a, RCD_WR_RDMA_READ, 64, 8, 64);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 128);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &read));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	ack = nak_by_hand(out.roce.bth.psn);
	ack.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, 31);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &ack, 2), RCD_RX_EXECUTED);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 1);
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 3, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_REQUEST);
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, read.roce.bth.psn.val);
	end();
}

/* Covers: IBTA 10.2.5 req_build_datagram() */
static void
the_own_key_of_queues(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);

	begin(&init, NULL);
	post_recv(&p.b->rq, 1, 0, 200);
	post_datagram(0, 8, 0x80004321);
	run();
	CU_ASSERT_EQUAL(counter(1, RCD_COUNTER_RX_DROP_QKEY), 0);
	CU_ASSERT_TRUE(completed(1, 0, 0, RCD_WC_SUCCESS));
	end();
}

/* Covers: IBTA 10.3.1 qp_modify_check_drained() */
static void
attributes_while_draining(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr = { .state = RCD_QP_SQD };
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, p.sim.now_ns, &out));
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	attr.av = sim_av(&p.sim.nodes[0]);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE | RCD_QP_ATTR_AV), -EINVAL);
	end();
	/* With nothing under way. */
	begin(&init, NULL);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE), 0);
	attr.av = sim_av(&p.sim.nodes[0]);
	CU_ASSERT_EQUAL(rcd_qp_modify(p.a->qp, &attr, RCD_QP_ATTR_STATE | RCD_QP_ATTR_AV), 0);
	end();
}

/* Covers: IBTA 10.3.1 rcd_qp_complete_head() */
static void
datagrams_come_in_behind_an_error(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_UD);
	struct rcd_pkt pkt = { .payload_len = 4, .payload = (const uint8_t *)"data" };
	uint8_t ip[RCD_IPV4_LEN] = { 0x45 };
	struct rcd_tx_pkt out;

	begin(&init, NULL);
	post_datagram(0, 8, 0x1234);
	p.a->sq.sges[0][0].lkey.val ^= 0x100;
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.a->qp, 1, &out));
	CU_ASSERT_EQUAL(rcd_qp_state(p.a->qp), RCD_QP_SQE);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 1);
	post_recv(&p.a->rq, 0, 0, 100);
	pkt.ip = ip;
	pkt.roce.bth = (struct rcd_bth){ .opcode = RCD_OPCODE_UD_SEND_ONLY, .pkey = { 0xffff } };
	pkt.roce.deth.qkey.val = 0x1234;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &pkt, 2), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(completed(0, 1, 0, RCD_WC_SUCCESS));
	end();
}

/* Covers: IBTA 10.8.2 req_check_wr() */
static void
operations_of_other_services(void)
{
	static const struct {
		enum rcd_qp_type type;
		enum rcd_wr_opcode opcode;
	} rows[] = {
		{ RCD_QP_UC, RCD_WR_RDMA_READ },
		{ RCD_QP_UC, RCD_WR_COMPARE_SWAP },
		{ RCD_QP_UC, RCD_WR_FETCH_ADD },
		{ RCD_QP_UC, RCD_WR_SEND_WITH_INV },
		{ RCD_QP_UD, RCD_WR_RDMA_WRITE },
		{ RCD_QP_UD, RCD_WR_RDMA_WRITE_WITH_IMM },
		{ RCD_QP_UD, RCD_WR_RDMA_READ },
		{ RCD_QP_UD, RCD_WR_BIND_MW },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		struct rcd_qp_init init = default_init(rows[i].type);

		begin(&init, NULL);
		if (rows[i].type == RCD_QP_UD)
			post_datagram(0, 8, 0x1234)->opcode = rows[i].opcode;
		else
			post(p.a, rows[i].opcode, 0, 8, 0);
		run();
		CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_LOC_QP_OP_ERR));
		end();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(the_first_fault_counts),
		RCD_TEST(packets_out_of_place),
		RCD_TEST(lengths_that_do_not_fit),
		RCD_TEST(one_nak_for_a_gap),
		RCD_TEST(a_repeated_write),
		RCD_TEST(a_response_acknowledges),
		RCD_TEST(an_acknowledge_over_a_read),
		RCD_TEST(the_own_key_of_queues),
		RCD_TEST(attributes_while_draining),
		RCD_TEST(datagrams_come_in_behind_an_error),
		RCD_TEST(operations_of_other_services),
	};

	return rcd_tap_run("qp_clauses", tests, RCD_ARRAY_COUNT(tests));
}
