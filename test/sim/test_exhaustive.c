/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no loss at the start of an exchange breaks it. Method: for a SEND, a WRITE, a READ and a
 * COMPARE_SWAP of a few packets each, for the four in a row, and for ATOMIC WRITE and FLUSH with a
 * WRITE between them, every subset of the first 12 packets is lost: of both directions together,
 * of the requester's and of the responder's alone; with and without a pool for packets out of
 * order, and selective acknowledgement; and all but the last of XRC as of RC. So is a READ that a
 * window has asked for in parts, alone and among others: each part that is asked for again must be
 * one that was asked for, or within one, as any responder has it. The retry count is 7,
 * so up to seven losses must be survived; with more the request may fail, cleanly and without
 * having been done twice.
 */
#include <stdio.h>

#include "rcd_tap.h"
#include "sim.h"
#include "window.h"

enum {
	FRAMES = 12,
	MEMORY = 4096,
	LEN = 700, /* three packets of 256 bytes */
	LONG = 1000,
	MTU = 256,
	SOURCE = 0,
	TARGET = 1024,
	RECV = 2048,
	COUNTER = 3072,
	RESULT = 3080,
	FLAG = 3088,
	PD = 1,
	RETRIES = 7,
};

enum exchange {
	EXCHANGE_SEND = 1 << 0,
	EXCHANGE_WRITE = 1 << 1,
	EXCHANGE_READ = 1 << 2,
	EXCHANGE_ATOMIC = 1 << 3,
	EXCHANGE_ALL = 15,
	EXCHANGE_PLACEMENT = 1 << 4,
	EXCHANGE_PARTS = 1 << 5, /* with EXCHANGE_READ: which is longer */
};

enum direction {
	BOTH,
	REQUESTS,
	RESPONSES,
};

static struct sim_reads reads;

static void
watch(const struct sim *sim, const struct sim_node *from, const struct rcd_tx_pkt *pkt, bool lost)
{
	(void)sim;
	(void)lost;
	if (from->number == 0)
		sim_reads_note(&reads, pkt, MTU);
}

static uint32_t
read_len(enum exchange exchange)
{
	return exchange & EXCHANGE_PARTS ? LONG : LEN;
}

/* Memory of a node: a pattern at SOURCE, zero elsewhere. */
static uint8_t
pattern(uint32_t node, uint32_t i)
{
	return (uint8_t)(i * 7 + node + 1);
}

static void
set_up_node(struct sim_node *node, struct rcd_key *key)
{
	struct rcd_mr_attr attr = {
		.pd = PD,
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
		.len = MEMORY,
		.base = node->memory,
	};

	CU_ASSERT_EQUAL_FATAL(rcd_mr_register(node->mrs, &attr, key), 0);
	for (uint32_t i = 0; i < LONG; i++)
		node->memory[SOURCE + i] = pattern(node->number, i);
}

static void
add(struct sim_qp *qp, enum rcd_wr_opcode opcode, uint64_t local, uint32_t len, uint64_t remote,
	struct rcd_key lkey, struct rcd_key rkey)
{
	uint32_t number = qp->sq.posted++;

	qp->sq.sges[number][0] = (struct rcd_sge){ local, len, lkey };
	qp->sq.wrs[number] = (struct rcd_send_wr){
		.wr_id = number,
		.opcode = (uint8_t)opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.remote = { .va = remote, .rkey = rkey, .compare_or_add = 0, .swap = 77 },
	};
}

/*
 * An ATOMIC WRITE, a WRITE over it, a FLUSH of both, and another one elsewhere: what is done a
 * second time shows, as the WRITE is gone.
 */
static void
add_placement(struct sim_qp *qp, struct rcd_key lkey, struct rcd_key rkey)
{
	struct rcd_send_wr *wrs = &qp->sq.wrs[qp->sq.posted];

	add(qp, RCD_WR_ATOMIC_WRITE, 0, 0, 0, lkey, rkey);
	wrs[0].atomic_write.va = FLAG;
	memset(wrs[0].atomic_write.bytes, 0x77, 8);
	add(qp, RCD_WR_RDMA_WRITE, SOURCE, 8, FLAG, lkey, rkey);
	add(qp, RCD_WR_FLUSH, 0, 0, 0, lkey, rkey);
	wrs[2].flush.va = FLAG;
	wrs[2].flush.placement = RCD_PLACEMENT_GLOBAL;
	wrs[2].flush.selectivity = RCD_SELECTIVITY_RANGE;
	wrs[2].flush.len = 8;
	add(qp, RCD_WR_ATOMIC_WRITE, 0, 0, 0, lkey, rkey);
	wrs[3].atomic_write.va = FLAG + 8;
	memset(wrs[3].atomic_write.bytes, 0x55, 8);
}

/* The counter goes from 0 to 77 once; a second time the comparison would fail and return 77. */
static bool
done_right(const struct sim *sim, enum exchange exchange)
{
	const uint8_t *a = sim->nodes[0].memory;
	const uint8_t *b = sim->nodes[1].memory;
	bool right = true;
	uint64_t counter, result;

	for (uint32_t i = 0; i < LEN; i++) {
		if (exchange & EXCHANGE_SEND)
			right &= b[RECV + i] == pattern(0, i);
		if (exchange & EXCHANGE_WRITE)
			right &= b[TARGET + i] == pattern(0, i);
	}
	for (uint32_t i = 0; i < read_len(exchange) && (exchange & EXCHANGE_READ); i++)
		right &= a[TARGET + i] == pattern(1, i);
	memcpy(&counter, b + COUNTER, 8);
	memcpy(&result, a + RESULT, 8);
	if (exchange & EXCHANGE_ATOMIC)
		right &= counter == 77 && result == 0;
	for (uint32_t i = 0; i < 8 && (exchange & EXCHANGE_PLACEMENT); i++)
		right &= b[FLAG + i] == pattern(0, i) && b[FLAG + 8 + i] == 0x55;
	return right;
}

static void
check(const struct sim *sim, enum exchange exchange, uint32_t mask, uint32_t posted, bool ended)
{
	const struct sim_node *a = &sim->nodes[0];
	const struct sim_node *b = &sim->nodes[1];
	bool failed = false;
	uint32_t recvs = 0;
	uint64_t result;

	CU_ASSERT_TRUE(ended);
	CU_ASSERT_EQUAL(a->cqe_count, posted);
	for (uint32_t i = 0; i < a->cqe_count; i++) {
		uint8_t status = a->cqes[i].status;

		CU_ASSERT_EQUAL(a->cqes[i].wr_id, i);
		CU_ASSERT_TRUE(failed ? status == RCD_WC_WR_FLUSH_ERR
				      : status == RCD_WC_SUCCESS || status == RCD_WC_RETRY_EXC_ERR);
		failed |= status != RCD_WC_SUCCESS;
	}
	for (uint32_t i = 0; i < b->cqe_count; i++)
		recvs += b->cqes[i].status == RCD_WC_SUCCESS;
	CU_ASSERT_TRUE(recvs <= 1);
	if (__builtin_popcount(mask) <= RETRIES)
		CU_ASSERT_FALSE(failed);
	if (!failed) {
		CU_ASSERT_TRUE(done_right(sim, exchange));
		CU_ASSERT_EQUAL(recvs, (exchange & EXCHANGE_SEND) != 0);
	}
	/* Whatever happened, the atomic was not done twice. */
	memcpy(&result, a->memory + RESULT, 8);
	CU_ASSERT_EQUAL(result, 0);
	CU_ASSERT_EQUAL(reads.wrong, 0);
	CU_ASSERT_TRUE(failed || !(exchange & EXCHANGE_PARTS) || reads.count > 1);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(a->qps[0].qp), 0);
	CU_ASSERT_EQUAL(rcd_qp_next_deadline(b->qps[0].qp), 0);
}

/* How an exchange is run. */
struct way {
	bool xrc;
	uint32_t window; /* packets; 0: any number */
};

static void
run_one(enum exchange exchange, enum direction direction, uint32_t mask, uint32_t kept,
	const struct way *way, bool sack)
{
	bool xrc = way->xrc;
	static struct sim sim;
	struct rcd_qp_init init = {
		.type = xrc ? RCD_QP_XRC_SEND : RCD_QP_RC,
		.pd = PD,
		.sq_depth = 8,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_rd_atomic = 2,
		.port_mtu_bytes = MTU,
		.cc = way->window > 0 ? sim_window(way->window) : NULL,
	};
	struct rcd_qp_attr attr;
	struct rcd_key key[2];
	struct sim_recv_queue *rq;
	struct sim_qp *a, *b;
	uint32_t shared = 0;
	uint32_t srqn = 0;

	sim_init(&sim, mask, MEMORY, kept);
	attr = sim_attr(&sim);
	sim.trace = watch;
	memset(&reads, 0, sizeof(reads));
	attr.path_mtu_bytes = MTU;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 2;
	attr.retry_cnt = RETRIES;
	attr.sq_psn = rcd_psn(0xfffffd);
	for (uint32_t node = 0; node < 2; node++) {
		set_up_node(&sim.nodes[node], &key[node]);
		if (direction == BOTH)
			sim.nodes[node].shared_frames = &shared;
		if (direction == BOTH || node == (direction == RESPONSES)) {
			sim.nodes[node].out.loss_mask = mask;
			sim.nodes[node].out.loss_mask_frames = FRAMES;
		}
	}
	a = sim_qp_create(&sim.nodes[0], &init);
	if (xrc) {
		init.type = RCD_QP_XRC_RECV;
		init.max_recv_sge = RCD_SGE_MAX;
		srqn = sim_xsrq_add(&sim.nodes[1], 0, PD);
	}
	b = sim_qp_create(&sim.nodes[1], &init);
	sim_connect(a, b, &attr, &attr);
	if (sack) {
		sim_agree_sack(a);
		sim_agree_sack(b);
	}
	if (exchange & EXCHANGE_SEND)
		add(a, RCD_WR_SEND, SOURCE, LEN, 0, key[0], key[1]);
	if (exchange & EXCHANGE_WRITE)
		add(a, RCD_WR_RDMA_WRITE, SOURCE, LEN, TARGET, key[0], key[1]);
	if (exchange & EXCHANGE_READ)
		add(a, RCD_WR_RDMA_READ, TARGET, read_len(exchange), SOURCE, key[0], key[1]);
	if (exchange & EXCHANGE_ATOMIC)
		add(a, RCD_WR_COMPARE_SWAP, RESULT, 8, COUNTER, key[0], key[1]);
	if (exchange & EXCHANGE_PLACEMENT)
		add_placement(a, key[0], key[1]);
	for (uint32_t i = 0; i < a->sq.posted; i++)
		a->sq.wrs[i].remote.srqn = srqn;
	rq = xrc ? &sim.nodes[1].xsrqs[0].queue : &b->rq;
	rq->sges[0][0] = (struct rcd_sge){ RECV, LEN, key[1] };
	rq->wrs[0].sge_count = 1;
	rq->posted = 1;
	check(&sim, exchange, mask, a->sq.posted, sim_run(&sim, 10 * UINT64_C(1000000000)));
	sim_fini(&sim);
}

static void
run_all_of(enum exchange exchange, struct way way)
{
	for (uint32_t mask = 0; mask < 1u << FRAMES; mask++) {
		for (int sack = 0; sack < 2; sack++) {
			run_one(exchange, BOTH, mask, 0, &way, sack);
			run_one(exchange, BOTH, mask, 16, &way, sack);
			run_one(exchange, REQUESTS, mask, 0, &way, sack);
			run_one(exchange, REQUESTS, mask, 16, &way, sack);
			run_one(exchange, RESPONSES, mask, 16, &way, sack);
		}
	}
}

static void
run_all(enum exchange exchange)
{
	run_all_of(exchange, (struct way){ 0 });
	/* XRC has no FLUSH here, and no ATOMIC WRITE. */
	if (!(exchange & EXCHANGE_PLACEMENT))
		run_all_of(exchange, (struct way){ .xrc = true });
}

static void
exchange_send(void)
{
	run_all(EXCHANGE_SEND);
}

static void
exchange_write(void)
{
	run_all(EXCHANGE_WRITE);
}

/* Covers: IBTA 9.7.5.1 reply_repeat_read() */
static void
exchange_read(void)
{
	run_all(EXCHANGE_READ);
}

/* Covers: IBTA 9.4.5 rcd_reply_duplicate() */
static void
compare_swap(void)
{
	run_all(EXCHANGE_ATOMIC);
}

static void
all_in_a_row(void)
{
	run_all(EXCHANGE_ALL);
}

/* Covers: Annex A19 rcd_reply_duplicate() */
static void
placement(void)
{
	run_all(EXCHANGE_PLACEMENT);
}

/* In parts of a packet and of two, of which two are under way. */
static void
read_in_parts(void)
{
	run_all_of(EXCHANGE_READ | EXCHANGE_PARTS, (struct way){ .window = 2 });
	run_all_of(EXCHANGE_READ | EXCHANGE_PARTS, (struct way){ .window = 3, .xrc = true });
}

/* One packet may be under way. */
static void
one_by_one(void)
{
	run_all_of(EXCHANGE_READ | EXCHANGE_PARTS, (struct way){ .window = 1 });
}

static void
parts_among_others(void)
{
	run_all_of(EXCHANGE_ALL | EXCHANGE_PARTS, (struct way){ .window = 2 });
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(exchange_send),
		RCD_TEST(exchange_write),
		RCD_TEST(exchange_read),
		RCD_TEST(compare_swap),
		RCD_TEST(all_in_a_row),
		RCD_TEST(placement),
		RCD_TEST(read_in_parts),
		RCD_TEST(one_by_one),
		RCD_TEST(parts_among_others),
	};

	return rcd_tap_run("exhaustive", tests, RCD_ARRAY_COUNT(tests));
}
