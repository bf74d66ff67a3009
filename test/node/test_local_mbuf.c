/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: an mbuf of the program's own that goes with a request is freed once, when the request is
 * complete, however it comes to that, and never before.
 * Method: a mempool of the test's, which counts: after each poll while the peer has acknowledged
 * nothing, and when all is over. Peers that don't acknowledge are queue pairs in INIT.
 */
#include <errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string.h>

#include "local_rig.h"
#include "rcd_clock.h"
#include "rcd_number.h"
#include "rcd_tap.h"
#include "rcd_wr.h"

#define MBUFS 255
#define LEN   1500 /**< of data: two packets */

/** Four times the time of side_timeout, which is as long as a resend may be put off. */
#define RESEND_NS UINT64_C(8589934592)

static struct side a, b;
static struct rte_mempool *pool;
static struct rcd_local_pool *regions;

/* Mbufs that somebody has. */
static uint32_t
out(void)
{
	return rte_mempool_in_use_count(pool);
}

static void
few_requests(struct rcd_engine_conf *conf)
{
	conf->quota.mrs = 64;
}

static void
begin(enum rcd_qp_type type)
{
	local_begin(few_requests);
	side_pair(&a, &b, type);
	CU_ASSERT_EQUAL_FATAL(rcd_local_pool_reg(a.local, a.pd, pool, 0, &regions), 0);
	CU_ASSERT_EQUAL_FATAL(out(), 0);
}

static void
end(void)
{
	CU_ASSERT_EQUAL(out(), 0);
	rcd_local_pool_dereg(regions);
	local_audit();
	side_close(&a);
	side_close(&b);
	local_end();
	CU_ASSERT_EQUAL(out(), 0);
}

/* A WRITE of an mbuf, to a place by its number. @return as rcd_local_post_send() */
static int
write_mbuf(uint32_t number, uint8_t flags)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	struct rcd_sge sge;
	struct rcd_send_wr wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, number * LEN, 0);
	int err;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mbuf);
	bytes_fill((uint8_t *)rte_pktmbuf_append(mbuf, LEN), LEN, number);
	CU_ASSERT_EQUAL_FATAL(rcd_local_pool_sges(regions, mbuf, &sge, 1), 1);
	wr.flags = flags;
	err = rcd_local_post_send(a.qp, &wr, mbuf);
	if (err != 0)
		rte_pktmbuf_free(mbuf);
	return err;
}

static void
write_mbufs(uint32_t count, uint8_t flags)
{
	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT_EQUAL(write_mbuf(i, flags), 0);
	rcd_local_ring(a.qp);
}

static void
check_bytes(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT(bytes_filled(b.memory + i * LEN, LEN, i));
}

/* The peer is there and takes nothing yet. */
static void
deafen(void)
{
	struct rcd_ctrl_qp_attr attr = side_attr(&b, a.gids.gids[a.gid].raw, 0);

	CU_ASSERT_EQUAL_FATAL(side_to(b.qp, RCD_QP_RC, attr, RCD_QP_RESET), 0);
	CU_ASSERT_EQUAL_FATAL(side_to(b.qp, RCD_QP_RC, attr, RCD_QP_INIT), 0);
}

static void
freed_by_the_acknowledge(void)
{
	const uint8_t *dgid;
	struct rcd_cq_slot slot;

	begin(RCD_QP_RC);
	deafen();
	write_mbufs(20, RCD_SEND_SIGNALED);
	for (int i = 0; i < 200; i++) {
		local_turn();
		CU_ASSERT_EQUAL(out(), 20);
	}
	CU_ASSERT_EQUAL(rcd_local_qp_sends(a.qp), 20);
	CU_ASSERT_EQUAL(rcd_local_poll_cq(a.cq, &slot, 1), 0);
	/* It hears them now, when they are sent again. */
	dgid = a.gids.gids[a.gid].raw;
	CU_ASSERT_EQUAL(
		side_to(b.qp, RCD_QP_RC, side_attr(&b, dgid, rcd_local_qp_num(a.qp)), RCD_QP_RTR),
		0);
	rcd_clock_advance(RESEND_NS);
	for (uint32_t i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(slot.wr_id, i * LEN);
		CU_ASSERT(out() <= 19 - i);
	}
	check_bytes(20);
	end();
}

/* So many that each place of the queue is used again, and of which few are told. */
static void
freed_unsignaled(void)
{
	struct rcd_cq_slot slot;
	uint32_t posted = 0;

	begin(RCD_QP_RC);
	while (posted < 10 * SIDE_DEPTH) {
		while (posted < 10 * SIDE_DEPTH && write_mbuf(posted % 100, 0) == 0)
			posted++;
		rcd_local_ring(a.qp);
		CU_ASSERT(out() <= SIDE_DEPTH);
		local_turn();
	}
	LOCAL_UNTIL(rcd_local_qp_sends(a.qp) == 0);
	CU_ASSERT_EQUAL(out(), 0);
	CU_ASSERT_EQUAL(rcd_local_poll_cq(a.cq, &slot, 1), 0);
	check_bytes(100);
	end();
}

/* What is posted and was not rung for is not complete, and a full queue takes none. */
static void
taken_if_posted(void)
{
	struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_WRITE };
	struct rte_mbuf *mbuf;

	begin(RCD_QP_RC);
	for (uint32_t i = 0; i < SIDE_DEPTH; i++)
		CU_ASSERT_EQUAL(write_mbuf(i, 0), 0);
	CU_ASSERT_EQUAL(write_mbuf(0, 0), -ENOMEM);
	CU_ASSERT_EQUAL(out(), SIDE_DEPTH);
	/* Nor is one that is refused. */
	mbuf = rte_pktmbuf_alloc(pool);
	wr.sge_count = 5;
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, mbuf), -EINVAL);
	CU_ASSERT_EQUAL(out(), SIDE_DEPTH + 1);
	rte_pktmbuf_free(mbuf);
	for (int i = 0; i < 20; i++)
		local_turn();
	CU_ASSERT_EQUAL(out(), SIDE_DEPTH);
	rcd_local_ring(a.qp);
	LOCAL_UNTIL(out() == 0);
	check_bytes(SIDE_DEPTH);
	end();
}

/* Some with mbufs, some without, and some of several segments. */
static void
segments_and_none(void)
{
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sges[4];
	struct rte_mbuf *head;

	begin(RCD_QP_RC);
	bytes_fill(a.memory, 5000, 44);
	head = rte_pktmbuf_alloc(pool);
	for (uint32_t i = 0; i < 3; i++) {
		struct rte_mbuf *mbuf = i == 0 ? head : rte_pktmbuf_alloc(pool);

		memcpy(rte_pktmbuf_append(mbuf, 1000), a.memory + i * 1000, 1000);
		if (i > 0)
			CU_ASSERT_EQUAL(rte_pktmbuf_chain(head, mbuf), 0);
	}
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, sges, 0, 3000);
	CU_ASSERT_EQUAL(rcd_local_pool_sges(regions, head, sges, 2), -EMSGSIZE);
	wr.sge_count = (uint8_t)rcd_local_pool_sges(regions, head, sges, 4);
	CU_ASSERT_EQUAL(wr.sge_count, 3);
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, head), 0);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, sges, 3000, 2000);
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), 0);
	CU_ASSERT_EQUAL(out(), 3);
	rcd_local_ring(a.qp);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(out(), 0);
	CU_ASSERT(bytes_filled(b.memory, 5000, 44));
	end();
}

/* Sent is complete, where nothing is acknowledged. */
static void
freed_when_sent(void)
{
	struct rcd_cq_slot slot;

	begin(RCD_QP_UC);
	write_mbufs(30, 0);
	CU_ASSERT_EQUAL(write_mbuf(30, RCD_SEND_SIGNALED), 0);
	rcd_local_ring(a.qp);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(out(), 0);
	LOCAL_UNTIL(bytes_filled(b.memory + 30 * LEN, LEN, 30));
	check_bytes(31);
	end();
}

static void
freed_by_the_flush(void)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_ERR };
	struct rcd_cq_slot slot;

	begin(RCD_QP_RC);
	deafen();
	write_mbufs(20, 0);
	local_turn();
	CU_ASSERT_EQUAL(out(), 20);
	CU_ASSERT_EQUAL(rcd_local_qp_modify(a.qp, &attr, RCD_QP_ATTR_STATE), 0);
	for (uint32_t i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(out(), 0);
	/* And those that come later. */
	write_mbufs(3, 0);
	LOCAL_UNTIL(out() == 0);
	end();
}

/* By a peer that refuses the second, and by one that never answers. */
static void
freed_with_an_error(void)
{
	struct rcd_cq_slot slot;
	struct rte_mbuf *mbuf;
	struct rcd_send_wr wr;
	struct rcd_sge sge;

	begin(RCD_QP_RC);
	CU_ASSERT_EQUAL(write_mbuf(0, RCD_SEND_SIGNALED), 0);
	mbuf = rte_pktmbuf_alloc(pool);
	rte_pktmbuf_append(mbuf, LEN);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, 0);
	CU_ASSERT_EQUAL(rcd_local_pool_sges(regions, mbuf, &sge, 1), 1);
	wr.remote.rkey.val ^= 0x100;
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, mbuf), 0);
	write_mbufs(5, 0);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_WR_FLUSH_ERR);
	end();
	begin(RCD_QP_RC);
	deafen();
	write_mbufs(2, 0);
	for (int i = 0; i < 5000 && rcd_local_qp_state(a.qp) == RCD_QP_RTS; i++) {
		CU_ASSERT_EQUAL(out(), 2);
		rcd_clock_advance(RESEND_NS / 100);
		local_turn();
	}
	CU_ASSERT_EQUAL(rcd_local_qp_state(a.qp), RCD_QP_ERR);
	LOCAL_UNTIL(out() == 0);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_RETRY_EXC_ERR);
	end();
}

/* With what was not rung for, in both ways to forget. */
static void
freed_when_forgotten(void)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_RESET };

	begin(RCD_QP_RC);
	deafen();
	write_mbufs(10, 0);
	local_turn();
	CU_ASSERT_EQUAL(write_mbuf(10, 0), 0);
	CU_ASSERT_EQUAL(out(), 11);
	CU_ASSERT_EQUAL(rcd_local_qp_modify(a.qp, &attr, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(out(), 0);
	CU_ASSERT_EQUAL(rcd_local_qp_sends(a.qp), 0);
	/* Its numbers begin anew. */
	CU_ASSERT_EQUAL_FATAL(side_to(b.qp, RCD_QP_RC, attr, RCD_QP_RESET), 0);
	side_join(&a, &b);
	write_mbufs(20, 0);
	LOCAL_UNTIL(out() == 0);
	check_bytes(20);
	deafen();
	write_mbufs(10, 0);
	local_turn();
	CU_ASSERT_EQUAL(write_mbuf(10, 0), 0);
	CU_ASSERT_EQUAL(out(), 11);
	rcd_local_qp_destroy(a.qp);
	CU_ASSERT_EQUAL(out(), 0);
	for (int i = 0; i < 20; i++)
		local_turn();
	end();
}

/* A device, an open device, an engine: each with requests that nobody acknowledged. */
static void
freed_with_the_rest(void)
{
	begin(RCD_QP_RC);
	deafen();
	write_mbufs(20, 0);
	local_turn();
	CU_ASSERT_EQUAL(out(), 20);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "w0"), 0);
	CU_ASSERT_EQUAL(out(), 0);
	CU_ASSERT_EQUAL(write_mbuf(0, 0), -ENODEV);
	CU_ASSERT_EQUAL(out(), 0);
	end();
	begin(RCD_QP_RC);
	deafen();
	write_mbufs(20, 0);
	local_turn();
	rcd_local_pool_dereg(regions);
	CU_ASSERT_EQUAL(out(), 20);
	side_close(&a);
	CU_ASSERT_EQUAL(out(), 0);
	side_close(&b);
	local_end();
	begin(RCD_QP_RC);
	deafen();
	write_mbufs(20, 0);
	local_turn();
	CU_ASSERT_EQUAL(out(), 20);
	local_end();
	CU_ASSERT_EQUAL(out(), 0);
	rcd_local_pool_dereg(regions);
	side_close(&a);
	side_close(&b);
	CU_ASSERT_EQUAL(out(), 0);
}

/* A completion queue that overflows loses completions, and no mbufs; it is told. */
static void
freed_by_an_overflow(void)
{
	struct rcd_ctrl_event event = { .cookie = 0 };
	struct rcd_local_qp_conf conf = {
		.type = RCD_QP_RC, .sq_depth = SIDE_DEPTH, .max_send_sge = 1
	};
	struct rcd_local_cq *cq;

	begin(RCD_QP_RC);
	rcd_local_qp_destroy(a.qp);
	CU_ASSERT_EQUAL(rcd_local_cq_create(a.local, 4, 0x4444, &cq), 0);
	conf.pd = a.pd;
	conf.send_cq = conf.recv_cq = cq;
	CU_ASSERT_EQUAL(rcd_local_qp_create(a.local, &conf, &a.qp), 0);
	CU_ASSERT_EQUAL(
		side_to(b.qp, RCD_QP_RC, side_attr(&b, b.gids.gids[0].raw, 0), RCD_QP_RESET), 0);
	side_join(&a, &b);
	write_mbufs(30, RCD_SEND_SIGNALED);
	LOCAL_UNTIL(out() == 0);
	LOCAL_UNTIL(rcd_local_event(a.local, &event) && event.type == RCD_EVENT_CQ_ERR);
	CU_ASSERT_EQUAL(event.cookie, 0x4444);
	CU_ASSERT_EQUAL(rcd_local_qp_state(a.qp), RCD_QP_ERR);
	end();
}

/* Keys are of the pool's own memory, and regions are counted. */
static void
pools_are_registered(void)
{
	struct rte_mempool *foreign = rte_pktmbuf_pool_create("foreign", 15, 0, 0, 2048, 0);
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(foreign);
	struct rcd_local_pool *again[64];
	struct rcd_key key;
	uint8_t byte[1];
	int count = 0;

	begin(RCD_QP_RC);
	CU_ASSERT_EQUAL(rcd_local_pool_key(regions, byte, 1, &key), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_pool_key(regions, NULL, 1, &key), -EINVAL);
	rte_pktmbuf_append(mbuf, 100);
	CU_ASSERT_EQUAL(rcd_local_pool_sges(regions, mbuf, &(struct rcd_sge){ 0 }, 1), -EINVAL);
	rte_pktmbuf_free(mbuf);
	CU_ASSERT_EQUAL(rcd_local_pool_reg(a.local, a.pd + 1, pool, 0, &again[0]), -ENOENT);
	while (count < 64 && rcd_local_pool_reg(a.local, a.pd, pool, 0, &again[count]) == 0)
		count++;
	/* One key is that of the side's memory, one that of its pool. */
	CU_ASSERT(count > 0 && count <= 62);
	while (count > 0)
		rcd_local_pool_dereg(again[--count]);
	CU_ASSERT_EQUAL(rcd_local_pool_reg(a.local, a.pd, foreign, 0, &again[0]), 0);
	rcd_local_pool_dereg(again[0]);
	rte_mempool_free(foreign);
	end();
}

/* What lies between two parts of a pool is of no region. */
static void
parts_have_keys(void)
{
	static _Alignas(4096) uint8_t memory[10 * 4096];
	struct rte_mempool *parts = rte_mempool_create_empty("parts", 64, 512, 0, 0, 0, 0);
	struct rcd_local_pool *made;
	struct rcd_key low, high, key;

	CU_ASSERT_PTR_NOT_NULL_FATAL(parts);
	begin(RCD_QP_RC);
	CU_ASSERT_EQUAL(rcd_local_pool_reg(a.local, a.pd, parts, 0, &made), -EINVAL);
	/* The last first; the first two are neighbours. */
	for (int i = 0; i < 3; i++) {
		static const int pages[] = { 8, 2, 0 };

		CU_ASSERT(rte_mempool_populate_iova(parts, (char *)memory + pages[i] * 4096,
				  RTE_BAD_IOVA, 2 * 4096, NULL, NULL) > 0);
	}
	CU_ASSERT_EQUAL_FATAL(rcd_local_pool_reg(a.local, a.pd, parts, 0, &made), 0);
	CU_ASSERT_EQUAL(rcd_local_pool_key(made, memory, 4 * 4096, &low), 0);
	CU_ASSERT_EQUAL(rcd_local_pool_key(made, memory + 8 * 4096, 2 * 4096, &high), 0);
	CU_ASSERT_NOT_EQUAL(low.val, high.val);
	CU_ASSERT_EQUAL(rcd_local_pool_key(made, memory + 4095, 2, &key), 0);
	CU_ASSERT_EQUAL(key.val, low.val);
	CU_ASSERT_EQUAL(rcd_local_pool_key(made, memory + 4 * 4096 - 1, 2, &key), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_pool_key(made, memory + 5 * 4096, 1, &key), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_pool_key(made, memory + 8 * 4096 - 1, 1, &key), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_pool_key(made, memory + sizeof(memory) - 1, 2, &key), -EINVAL);
	rcd_local_pool_dereg(made);
	end();
	rte_mempool_free(parts);
}

/* Once a FLUSH behind it is answered an mbuf's data is placed, and an ATOMIC WRITE can say so. */
static void
flush_and_atomic_write(void)
{
	struct rcd_send_wr wr = { .opcode = RCD_WR_FLUSH,
		.flags = RCD_SEND_SIGNALED,
		.flush = { .placement = RCD_PLACEMENT_GLOBAL } };
	struct rcd_cq_slot slot;

	begin(RCD_QP_RC);
	CU_ASSERT_EQUAL(write_mbuf(0, 0), 0);
	wr.flush.va = (uintptr_t)b.memory;
	wr.flush.rkey = b.key;
	wr.flush.len = LEN;
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), 0);
	rcd_local_ring(a.qp);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.opcode, RCD_WC_FLUSH);
	CU_ASSERT_EQUAL(out(), 0);
	CU_ASSERT(bytes_filled(b.memory, LEN, 0));
	wr.opcode = RCD_WR_ATOMIC_WRITE;
	wr.atomic_write.va = (uintptr_t)b.memory + LEN / 8 * 8;
	wr.atomic_write.rkey = b.key;
	bytes_fill(wr.atomic_write.bytes, 8, 5);
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), 0);
	rcd_local_ring(a.qp);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.opcode, RCD_WC_ATOMIC_WRITE);
	CU_ASSERT(bytes_filled(b.memory + LEN / 8 * 8, 8, 5));
	end();
}

static const struct rcd_test tests[] = {
	RCD_TEST(freed_by_the_acknowledge),
	RCD_TEST(freed_unsignaled),
	RCD_TEST(taken_if_posted),
	RCD_TEST(segments_and_none),
	RCD_TEST(freed_when_sent),
	RCD_TEST(freed_by_the_flush),
	RCD_TEST(freed_with_an_error),
	RCD_TEST(freed_when_forgotten),
	RCD_TEST(freed_with_the_rest),
	RCD_TEST(freed_by_an_overflow),
	RCD_TEST(pools_are_registered),
	RCD_TEST(parts_have_keys),
	RCD_TEST(flush_and_atomic_write),
};

int
main(void)
{
	/* Nothing is sent again, or given up, but where the clock is put ahead. */
	side_timeout = 19;
	local_eal("0");
	pool = rte_pktmbuf_pool_create("program", MBUFS, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
	if (pool == NULL)
		return 1;
	return rcd_tap_run("local_mbuf", tests, sizeof(tests) / sizeof(tests[0]));
}
