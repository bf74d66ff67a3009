/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: FLUSH and ATOMIC WRITE do what they promise, once, and where rights allow it. Method: two
 * nodes in the simulator, one situation each; packets made by hand where a requester of ours would
 * not send them.
 */
#include <errno.h>
#include <string.h>

#include "rcd_aeth.h"
#include "rcd_tap.h"
#include "situation.h"

static const uint8_t eight[8] = { 1, 2, 3, 4, 5, 6, 7, 0x80 };

static struct rcd_send_wr *
post_flush(uint64_t va, uint64_t len, uint8_t placement, uint8_t selectivity)
{
	struct rcd_send_wr *wr = post(p.a, RCD_WR_FLUSH, 0, 0, 0);

	wr->flush.va = va;
	wr->flush.rkey = p.key[1];
	wr->flush.placement = placement;
	wr->flush.selectivity = selectivity;
	wr->flush.len = len;
	return wr;
}

static struct rcd_send_wr *
post_global(uint64_t va, uint64_t len)
{
	return post_flush(va, len, RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_RANGE);
}

static struct rcd_send_wr *
post_atomic_write(uint64_t va, const uint8_t bytes[8])
{
	struct rcd_send_wr *wr = post(p.a, RCD_WR_ATOMIC_WRITE, 0, 0, 0);

	wr->atomic_write.va = va;
	wr->atomic_write.rkey = p.key[1];
	memcpy(wr->atomic_write.bytes, bytes, 8);
	return wr;
}

static void
begin_rc(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);

	begin(&init, NULL);
}

/* As a log is written: data, placed, and only then what says that it is there. */
static void
write_flush_atomic_write(void)
{
	begin_rc();
	post(p.a, RCD_WR_RDMA_WRITE, 0, 3000, 8192);
	post_global(8192, 3000);
	post_atomic_write(16384, eight);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(completed(0, i, i, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqes[1].opcode, RCD_WC_FLUSH);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqes[1].byte_len, 0);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqes[2].opcode, RCD_WC_ATOMIC_WRITE);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqes[2].byte_len, 8);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[1].memory + 8192, p.sim.nodes[0].memory, 3000), 0);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[1].memory + 16384, eight, 8), 0);
	/* Neighbours stay as they were. */
	CU_ASSERT_EQUAL(p.sim.nodes[1].memory[16383], (uint8_t)(16383 * 11 + 1));
	CU_ASSERT_EQUAL(p.sim.nodes[1].memory[16392], (uint8_t)(16392 * 11 + 1));
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_FLUSH], 1);
	CU_ASSERT_EQUAL(sent[0][RCD_OPCODE_RC_ATOMIC_WRITE], 1);
	CU_ASSERT_EQUAL(sent[1][RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY], 2);
	CU_ASSERT_EQUAL(rcd_qp_messages(p.b->qp), 3);
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRANSMITTED_PKTS), 0);
	end();
}

static void
what_a_flush_can_name(void)
{
	begin_rc();
	post_global(0, SITUATION_MEMORY);
	post_global(0, 0);
	/* Of all of the region: the range is not looked at. */
	post_flush(UINT64_MAX, RCD_MSG_MAX_BYTES, RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_REGION);
	/* Which may be longer than a request can say. */
	post_flush(0, UINT64_C(3) << 30, RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_REGION);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 4);
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_TRUE(completed(0, i, i, RCD_WC_SUCCESS));
	end();
}

/* Of a region that nobody reaches any more there is nothing to promise. */
static void
a_region_that_was_cut(void)
{
	begin_rc();
	rcd_mr_cut(p.sim.nodes[1].mrs, p.key[1]);
	post_flush(0, 8, RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_REGION);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_REM_ACCESS_ERR));
	end();
}

/* Frames of node 0 that are out before node 1 has answered anything. */
static uint32_t early_sends;

static void
watch_early(
	const struct sim *sim, const struct sim_node *from, const struct rcd_tx_pkt *pkt, bool lost)
{
	watch(sim, from, pkt, lost);
	if (from->number == 1 && early_sends == UINT32_MAX)
		early_sends = sent[0][RCD_OPCODE_RC_RDMA_WRITE_ONLY];
}

static void
fence_waits_for_a_flush(void)
{
	begin_rc();
	early_sends = UINT32_MAX;
	p.sim.trace = watch_early;
	post_global(0, 8);
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0)->flags |= RCD_SEND_FENCE;
	run();
	CU_ASSERT_EQUAL(early_sends, 0);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 2);
	end();
}

/* What was posted is refused with this status; what was posted behind it is flushed. */
static void
check_refused(enum rcd_wc_status status, enum rcd_event event)
{
	post(p.a, RCD_WR_RDMA_WRITE, 0, 8, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, status));
	CU_ASSERT_TRUE(completed(0, 1, 1, RCD_WC_WR_FLUSH_ERR));
	CU_ASSERT_TRUE(raised(1, event));
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
	CU_ASSERT_EQUAL(p.sim.nodes[1].memory[0], 1);
	end();
}

/* A region of the responder's beside the one that has all rights. */
static struct rcd_key
region(uint32_t access, uint64_t offset)
{
	struct rcd_mr_attr attr = { .pd = SITUATION_PD,
		.access = RCD_ACCESS_LOCAL_WRITE | access,
		.len = 64,
		.base = p.sim.nodes[1].memory + offset };
	struct rcd_key key = { 0 };

	CU_ASSERT_EQUAL(rcd_mr_register(p.sim.nodes[1].mrs, &attr, &key), 0);
	return key;
}

/* Covers: Annex A19 resp_check_offers_flush() */
static void
rights_of_a_flush(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
#define REFUSED(status, event, ...)                                                                \
	do {                                                                                       \
		begin(&init, &attr);                                                               \
		__VA_ARGS__;                                                                       \
		check_refused(status, event);                                                      \
	} while (0)
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_global(0, 8)->flush.rkey.val ^= 0x100);
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_global(0, 0)->flush.rkey.val ^= 0x100);
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR, post_global(SITUATION_MEMORY, 1));
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR, post_global(UINT64_MAX, 2));
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_global(0, 8)->flush.rkey = region(RCD_ACCESS_REMOTE_WRITE, 0));
	/* The queue pair does not offer it, and where it does, no region has it. */
	REFUSED(RCD_WC_REM_INV_REQ_ERR, RCD_EVENT_QP_REQ_ERR,
		post_flush(0, 8, RCD_PLACEMENT_PERSISTENT, RCD_SELECTIVITY_RANGE));
	attr.access |= RCD_ACCESS_FLUSH_PERSISTENT;
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_flush(0, 8, RCD_PLACEMENT_PERSISTENT, RCD_SELECTIVITY_RANGE));
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_flush(0, 8, RCD_PLACEMENT_ALL, RCD_SELECTIVITY_REGION));
	attr.access = RCD_ACCESS_REMOTE & ~(uint32_t)RCD_ACCESS_FLUSH_GLOBAL;
	REFUSED(RCD_WC_REM_INV_REQ_ERR, RCD_EVENT_QP_REQ_ERR, post_global(0, 8));
	attr.access = RCD_ACCESS_FLUSH_GLOBAL;
	begin(&init, &attr);
	post_global(0, 8)->flush.rkey = region(RCD_ACCESS_FLUSH_GLOBAL, 0);
	run();
	CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_SUCCESS));
	end();
}

static void
rights_of_an_atomic_write(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_atomic_write(0, eight)->atomic_write.rkey.val ^= 0x100);
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_atomic_write(SITUATION_MEMORY, eight));
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_atomic_write(0, eight)->atomic_write.rkey =
			region(RCD_ACCESS_REMOTE_READ | RCD_ACCESS_FLUSH_GLOBAL, 0));
	/* Aligned as the peer counts, and not where it lies. */
	REFUSED(RCD_WC_REM_ACCESS_ERR, RCD_EVENT_QP_ACCESS_ERR,
		post_atomic_write(0, eight)->atomic_write.rkey =
			region(RCD_ACCESS_REMOTE_WRITE, 4));
	attr.access = RCD_ACCESS_REMOTE & ~(uint32_t)RCD_ACCESS_REMOTE_WRITE;
	REFUSED(RCD_WC_REM_INV_REQ_ERR, RCD_EVENT_QP_REQ_ERR, post_atomic_write(0, eight));
#undef REFUSED
}

/* What no requester of ours sends. */
static struct rcd_pkt
flush_by_hand(uint8_t placement, uint8_t selectivity, uint32_t len)
{
	struct rcd_pkt pkt = by_hand(RCD_OPCODE_RC_FLUSH, 0);

	pkt.payload_len = 0;
	pkt.roce.feth = (struct rcd_feth){ placement, selectivity };
	pkt.roce.reth.dma_len = len;
	return pkt;
}

static struct rcd_pkt
atomic_write_by_hand(uint64_t va, uint32_t dma_len, uint16_t payload_len)
{
	struct rcd_pkt pkt = by_hand(RCD_OPCODE_RC_ATOMIC_WRITE, 0);

	pkt.payload = eight;
	pkt.payload_len = payload_len;
	pkt.roce.reth.va = va;
	pkt.roce.reth.dma_len = dma_len;
	return pkt;
}

static void
check_refused_by_hand(struct rcd_pkt pkt)
{
	struct rcd_tx_pkt out;

	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_REFUSED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_ACKNOWLEDGE);
	CU_ASSERT_EQUAL(
		out.roce.aeth.syndrome, rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_INVALID_REQUEST));
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, pkt.roce.bth.psn.val);
	CU_ASSERT_EQUAL(rcd_qp_state(p.b->qp), RCD_QP_ERR);
	CU_ASSERT_EQUAL(p.sim.nodes[1].memory[0], 1);
	end();
}

/* Covers: Annex A19 resp_check_length() */
static void
invalid_requests(void)
{
	static const uint8_t wrong[][2] = { { 0, 0 }, { 4, 0 }, { 9, 0 }, { 1, 2 }, { 1, 3 } };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(wrong); i++) {
		begin_rc();
		check_refused_by_hand(flush_by_hand(wrong[i][0], wrong[i][1], 8));
	}
	begin_rc();
	check_refused_by_hand(
		flush_by_hand(RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_RANGE, RCD_MSG_MAX_BYTES + 1));
	begin_rc();
	check_refused_by_hand(atomic_write_by_hand(4, 8, 8));
	begin_rc();
	check_refused_by_hand(atomic_write_by_hand(0, 7, 8));
	begin_rc();
	check_refused_by_hand(atomic_write_by_hand(0, 16, 8));
	begin_rc();
	check_refused_by_hand(atomic_write_by_hand(0, 8, 7));
	/* With no resources for answers. */
	begin_with_reads(0);
	check_refused_by_hand(flush_by_hand(RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_RANGE, 8));
	begin_with_reads(0);
	check_refused_by_hand(atomic_write_by_hand(0, 8, 8));
}

/* Errors of the own side leave the wire alone. */
static void
local_errors(void)
{
	struct rcd_qp_init rc = default_init(RCD_QP_RC), uc = default_init(RCD_QP_UC);
	struct rcd_qp_attr none;

	memset(&p.sim, 0, sizeof(p.sim));
	none = sim_attr(&p.sim);
	none.max_rd_atomic = 0;
#define LOCAL(init, attr, status, ...)                                                             \
	do {                                                                                       \
		begin(init, attr);                                                                 \
		__VA_ARGS__;                                                                       \
		run();                                                                             \
		CU_ASSERT_TRUE(completed(0, 0, 0, status));                                        \
		CU_ASSERT_EQUAL(                                                                   \
			sent[0][RCD_OPCODE_RC_FLUSH] + sent[0][RCD_OPCODE_RC_ATOMIC_WRITE], 0);    \
		end();                                                                             \
	} while (0)
	LOCAL(&rc, NULL, RCD_WC_LOC_QP_OP_ERR, post_atomic_write(4, eight));
	LOCAL(&rc, NULL, RCD_WC_LOC_QP_OP_ERR, post_flush(0, 8, 0, RCD_SELECTIVITY_RANGE));
	LOCAL(&rc, NULL, RCD_WC_LOC_QP_OP_ERR, post_flush(0, 8, 5, RCD_SELECTIVITY_RANGE));
	LOCAL(&rc, NULL, RCD_WC_LOC_QP_OP_ERR, post_flush(0, 8, RCD_PLACEMENT_GLOBAL, 2));
	LOCAL(&rc, NULL, RCD_WC_LOC_LEN_ERR, post_global(0, RCD_MSG_MAX_BYTES + UINT64_C(1)));
	LOCAL(&rc, NULL, RCD_WC_LOC_LEN_ERR, post_global(0, UINT64_MAX));
	LOCAL(&rc, NULL, RCD_WC_LOC_QP_OP_ERR, post_global(0, 8)->flags |= RCD_SEND_INLINE);
	LOCAL(&rc, NULL, RCD_WC_LOC_QP_OP_ERR, post_global(0, 8)->sge_count = SIM_SGE_MAX + 1);
	LOCAL(&rc, &none, RCD_WC_LOC_QP_OP_ERR, post_global(0, 8));
	LOCAL(&rc, &none, RCD_WC_LOC_QP_OP_ERR, post_atomic_write(0, eight));
	LOCAL(&uc, NULL, RCD_WC_LOC_QP_OP_ERR, post_global(0, 8));
	LOCAL(&uc, NULL, RCD_WC_LOC_QP_OP_ERR, post_atomic_write(0, eight));
	/* Numbers between those of opcodes. */
	for (uint8_t opcode = RCD_WR_SEND_WITH_INV + 1; opcode < RCD_WR_FLUSH; opcode++)
		LOCAL(&rc, NULL, RCD_WC_LOC_QP_OP_ERR,
			post(p.a, RCD_WR_SEND, 0, 8, 0)->opcode = opcode);
#undef LOCAL
}

static void
check_answer(const struct rcd_pkt *pkt)
{
	struct rcd_tx_pkt out;

	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY);
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, pkt->roce.bth.psn.val);
	CU_ASSERT_EQUAL(out.payload_len, 0);
	CU_ASSERT_EQUAL(
		out.roce.aeth.syndrome, rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID));
}

/*
 * What the application stored meanwhile stays.
 *
 * Covers: Annex A19 rcd_reply_duplicate()
 */
static void
duplicates_are_answered_and_not_executed(void)
{
	struct rcd_pkt pkt, other;
	struct rcd_tx_pkt out;

	begin_rc();
	pkt = atomic_write_by_hand(64, 8, 8);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
	check_answer(&pkt);
	CU_ASSERT_EQUAL(memcmp(p.sim.nodes[1].memory + 64, eight, 8), 0);
	memset(p.sim.nodes[1].memory + 64, 0, 8);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_DUPLICATE);
	check_answer(&pkt);
	CU_ASSERT_EQUAL(p.sim.nodes[1].memory[64], 0);
	/* Of another request than was executed there: nothing. */
	other = pkt;
	other.roce.reth.va = 72;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &other, 1), RCD_RX_STALE);
	other = pkt;
	other.roce.bth.opcode = RCD_OPCODE_RC_FLUSH;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &other, 1), RCD_RX_STALE);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 1, &out));
	pkt = flush_by_hand(RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_RANGE, 8);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
	check_answer(&pkt);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_DUPLICATE);
	check_answer(&pkt);
	/* One that asks for more than was looked at then is not promised it. */
	other = pkt;
	other.roce.reth.dma_len = 16;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &other, 1), RCD_RX_STALE);
	other = pkt;
	other.roce.feth.placement = RCD_PLACEMENT_ALL;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &other, 1), RCD_RX_STALE);
	other = pkt;
	other.roce.feth.selectivity = RCD_SELECTIVITY_REGION;
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &other, 1), RCD_RX_STALE);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 1, &out));
	end();
}

/* What the host says of atomics. */
static int order;

static int
say_order(void *arg, void *user, const uint8_t *base)
{
	(void)arg;
	CU_ASSERT_PTR_EQUAL(user, p.b->init.arg);
	CU_ASSERT_PTR_EQUAL(base, p.sim.nodes[1].memory + 64);
	return order;
}

/* What tells of data that is still on its way to its place waits until it is there. */
static void
what_must_not_overtake(void)
{
	static const uint8_t opcodes[] = { RCD_OPCODE_RC_ATOMIC_WRITE, RCD_OPCODE_RC_COMPARE_SWAP,
		RCD_OPCODE_RC_FETCH_ADD };
	/* Of a byte that nobody names. */
	struct rcd_mr_foreign foreign = { .start = 1, .len = 1, .order = say_order };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(opcodes); i++) {
		struct rcd_tx_pkt out;
		struct rcd_pkt pkt;
		uint8_t before[8];

		begin_rc();
		rcd_mr_table_set_foreign(p.sim.nodes[1].mrs, &foreign);
		memcpy(before, p.sim.nodes[1].memory + 64, 8);
		pkt = atomic_write_by_hand(64, 8, i == 0 ? 8 : 0);
		pkt.roce.bth.opcode = opcodes[i];
		pkt.roce.atomiceth =
			(struct rcd_atomiceth){ .va = 64, .rkey = p.key[1], .swap_or_add = 1 };
		memcpy(&pkt.roce.atomiceth.compare, before, 8);
		order = -EAGAIN;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_OUT_OF_SEQUENCE);
		CU_ASSERT_EQUAL(memcmp(p.sim.nodes[1].memory + 64, before, 8), 0);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
		CU_ASSERT_EQUAL(out.roce.aeth.syndrome,
			rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_PSN_SEQUENCE));
		order = 0;
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_EXECUTED);
		CU_ASSERT_NOT_EQUAL(memcmp(p.sim.nodes[1].memory + 64, before, 8), 0);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
		order = -EFAULT;
		pkt.roce.bth.psn = rcd_psn_add(pkt.roce.bth.psn, 1);
		CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &pkt, 1), RCD_RX_REFUSED);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
		CU_ASSERT_EQUAL(out.roce.aeth.syndrome,
			rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_REMOTE_ACCESS));
		end();
	}
}

/* The kernel's rxe does not count FLUSHes: one too many is asked for again. */
static void
more_flushes_than_agreed(void)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_qp_attr attr;
	struct rcd_pkt first, second;
	struct rcd_tx_pkt out;

	begin_with_reads(1);
	first = flush_by_hand(RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_RANGE, 8);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &first, 1), RCD_RX_EXECUTED);
	second = flush_by_hand(RCD_PLACEMENT_GLOBAL, RCD_SELECTIVITY_RANGE, 8);
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &second, 1), RCD_RX_OUT_OF_SEQUENCE);
	check_answer(&first);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_EQUAL(
		out.roce.aeth.syndrome, rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_PSN_SEQUENCE));
	CU_ASSERT_EQUAL(out.roce.bth.psn.val, second.roce.bth.psn.val);
	CU_ASSERT_FALSE(rcd_qp_tx_next(p.b->qp, 1, &out));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.b->qp, &second, 1), RCD_RX_EXECUTED);
	check_answer(&second);
	end();

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.max_rd_atomic = 8;
	attr.max_dest_rd_atomic = 2;
	begin(&init, &attr);
	for (uint32_t i = 0; i < 20; i++)
		post_global(64 * i, 64);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 20);
	CU_ASSERT_TRUE(completed(0, 19, 19, RCD_WC_SUCCESS));
	end();
	/* Nor is what comes behind them refused. */
	begin(&init, &attr);
	for (uint32_t i = 0; i < 20; i++)
		i % 3 ? post_global(64 * i, 64) : post_atomic_write(64 * i, eight);
	run();
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 20);
	CU_ASSERT_TRUE(completed(0, 19, 19, RCD_WC_SUCCESS));
	end();
	/* All do count ATOMIC WRITEs. */
	begin(&init, &attr);
	for (uint32_t i = 0; i < 3; i++)
		post_atomic_write(64 * i, eight);
	run();
	CU_ASSERT_TRUE(completed(0, 2, 2, RCD_WC_REM_INV_REQ_ERR));
	end();
	/* Nor does a requester of ours send more than its peer has room for. */
	attr.max_rd_atomic = 2;
	begin(&init, &attr);
	for (uint32_t i = 0; i < 20; i++)
		i % 2 ? post_global(64 * i, 64) : post_atomic_write(64 * i, eight);
	run();
	CU_ASSERT_TRUE(completed(0, 19, 19, RCD_WC_SUCCESS));
	CU_ASSERT_EQUAL(counter(0, RCD_COUNTER_RETRANSMITTED_PKTS), 0);
	end();
}

/* An answer for a, which is waiting for it. */
static struct rcd_pkt
answer_by_hand(uint8_t opcode, uint16_t payload_len)
{
	struct rcd_pkt pkt = nak_by_hand(rcd_psn(0));
	struct rcd_qp_attr attr;

	rcd_qp_query(p.a->qp, &attr);
	pkt.roce.bth.opcode = opcode;
	pkt.roce.bth.psn = rcd_psn_sub(attr.sq_psn, 1);
	pkt.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	pkt.payload_len = payload_len;
	return pkt;
}

static void
answers_that_are_none(void)
{
	static const struct {
		uint8_t opcode;
		uint16_t payload_len;
	} wrong[] = {
		{ RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY, 8 },
		{ RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, 0 },
		{ RCD_OPCODE_RC_ATOMIC_ACKNOWLEDGE, 0 },
	};

	for (size_t i = 0; i < 2 * RCD_ARRAY_COUNT(wrong); i++) {
		struct rcd_tx_pkt out;
		struct rcd_pkt pkt;

		begin_rc();
		i % 2 ? post_global(0, 8) : post_atomic_write(0, eight);
		rcd_qp_posted(p.a->qp);
		CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
		pkt = answer_by_hand(wrong[i / 2].opcode, wrong[i / 2].payload_len);
		rcd_qp_rx(p.a->qp, &pkt, 1);
		CU_ASSERT_TRUE(completed(0, 0, 0, RCD_WC_BAD_RESP_ERR));
		CU_ASSERT_EQUAL(memcmp(p.sim.nodes[0].memory, "\0\x0b\x16", 3), 0);
		end();
	}
	/* An acknowledge says that the answer was lost, not that there is none. */
	begin_rc();
	post_global(0, 8);
	rcd_qp_posted(p.a->qp);
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;

	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 1, &out));
	pkt = answer_by_hand(RCD_OPCODE_RC_ACKNOWLEDGE, 0);
	rcd_qp_rx(p.a->qp, &pkt, 1);
	CU_ASSERT_EQUAL(p.sim.nodes[0].cqe_count, 0);
	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, 2, &out));
	CU_ASSERT_EQUAL(out.roce.bth.opcode, RCD_OPCODE_RC_FLUSH);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(write_flush_atomic_write),
		RCD_TEST(what_a_flush_can_name),
		RCD_TEST(a_region_that_was_cut),
		RCD_TEST(fence_waits_for_a_flush),
		RCD_TEST(rights_of_a_flush),
		RCD_TEST(rights_of_an_atomic_write),
		RCD_TEST(invalid_requests),
		RCD_TEST(local_errors),
		RCD_TEST(duplicates_are_answered_and_not_executed),
		RCD_TEST(what_must_not_overtake),
		RCD_TEST(more_flushes_than_agreed),
		RCD_TEST(answers_that_are_none),
	};

	return rcd_tap_run("qp_placement", tests, RCD_ARRAY_COUNT(tests));
}
