/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: memory that is reached by copies behaves as any other to a program, with every kind of
 * queue pair; and where a page of it is gone, the queue pair that needed it ends with the right
 * status, and nothing else. Method: the drop-in library on an embedded wire, one side with copied
 * memory and one without; bytes are compared.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

#define HALF ((uint32_t)SIDE_LEN / 2) /**< what is sent from; the rest is received into */
#define GRH  40
#define IMM  0x12345678

static struct rig rig;
static struct side copied, plain;

/** A queue pair of a side, and how it reaches its peer. */
struct way {
	struct side *side;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /**< UD */
	struct ibv_srq *srq;
};

static void
setup(void)
{
	setenv("ROCADE_MR", "copy", 1);
	side_open(&copied, "roce0");
	setenv("ROCADE_MR", "share", 1);
	side_open(&plain, "roce1");
	unsetenv("ROCADE_MR");
	side_join(&copied, &plain);
}

static void
teardown(void)
{
	side_close(&copied);
	side_close(&plain);
}

/* Queue pairs of a kind on both sides, joined. @param shared  they receive by shared queues */
static void
open_ways(enum ibv_qp_type type, bool shared, struct way *a, struct way *b)
{
	struct way *ways[2] = { a, b };

	*a = (struct way){ .side = &copied };
	*b = (struct way){ .side = &plain };
	for (int i = 0; i < 2; i++) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 1 } };

		if (shared) {
			ways[i]->srq = ibv_create_srq(ways[i]->side->pd, &init);
			MUST(ways[i]->srq != NULL);
		}
		ways[i]->qp = side_new_qp(ways[i]->side, type, ways[i]->srq);
	}
	side_join_qps(a->side, a->qp, b->side, b->qp);
	for (int i = 0; type == IBV_QPT_UD && i < 2; i++)
		ways[i]->ah = side_ah(ways[i]->side, ways[1 - i]->side, 0);
}

static void
close_way(struct way *way)
{
	if (way->ah != NULL)
		CU_ASSERT_EQUAL(ibv_destroy_ah(way->ah), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(way->qp), 0);
	if (way->srq != NULL)
		CU_ASSERT_EQUAL(ibv_destroy_srq(way->srq), 0);
}

static void
receive(const struct way *way, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)way->side->memory + HALF, HALF, way->side->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	CU_ASSERT_EQUAL(way->srq != NULL ? ibv_post_srq_recv(way->srq, &wr, &bad)
					 : ibv_post_recv(way->qp, &wr, &bad),
		0);
}

/* Post something from a side's first half to the other's second. */
static void
post(const struct way *from, const struct way *to, enum ibv_wr_opcode opcode, uint32_t len,
	unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)from->side->memory, len, from->side->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 77,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED | flags,
		.imm_data = htonl(IMM) };
	struct ibv_send_wr *bad;

	if (from->ah != NULL) {
		wr.wr.ud.ah = from->ah;
		wr.wr.ud.remote_qpn = to->qp->qp_num;
		wr.wr.ud.remote_qkey = SIDE_QKEY;
	} else if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		wr.wr.rdma.remote_addr = (uintptr_t)to->side->memory + HALF;
		wr.wr.rdma.rkey = to->side->mr->rkey;
	}
	CU_ASSERT_EQUAL(ibv_post_send(from->qp, &wr, &bad), 0);
}

/* The next completion of a side. @return its status; -1: none came */
static int
next(const struct side *side, struct ibv_wc *wc)
{
	uint64_t end = now_ms() + FOREVER_MS;

	while (now_ms() < end)
		if (ibv_poll_cq(side->cq, 1, wc) == 1)
			return (int)wc->status;
	return -1;
}

/* A message goes from a way to another, and arrives as it was. */
static void
message(const struct way *from, const struct way *to, enum ibv_wr_opcode opcode, uint32_t len,
	unsigned int flags)
{
	static uint32_t seed;
	uint32_t head = from->ah != NULL ? GRH : 0;
	struct ibv_wc wc;

	fill(from->side->memory, HALF, ++seed);
	memset(to->side->memory + HALF, 0, HALF);
	receive(to, seed);
	post(from, to, opcode, len, flags);
	CU_ASSERT_EQUAL(next(from->side, &wc), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.wr_id, 77);
	CU_ASSERT_EQUAL_FATAL(next(to->side, &wc), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.wr_id, seed);
	CU_ASSERT_EQUAL(wc.byte_len, len + head);
	CU_ASSERT_EQUAL(wc.qp_num, to->qp->qp_num);
	CU_ASSERT_EQUAL((wc.wc_flags & IBV_WC_GRH) != 0, head != 0);
	CU_ASSERT_EQUAL((wc.wc_flags & IBV_WC_WITH_IMM) != 0, opcode != IBV_WR_SEND);
	if (opcode != IBV_WR_SEND)
		CU_ASSERT_EQUAL(ntohl(wc.imm_data), IMM);
	if (head != 0)
		CU_ASSERT_EQUAL(wc.src_qp, from->qp->qp_num);
	CU_ASSERT(memcmp(to->side->memory + HALF + head, from->side->memory, len) == 0);
	/* Nothing behind it. */
	for (uint32_t i = head + len; i < HALF; i++)
		if (to->side->memory[HALF + i] != 0) {
			CU_FAIL("a byte behind the message was written");
			break;
		}
}

/* All sizes and operations that a kind of queue pair knows, both ways. */
static void
messages(enum ibv_qp_type type, bool shared)
{
	static const uint32_t lens[] = { 0, 1, 63, 1000, 1024, 1025, 4000 };
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE_WITH_IMM };
	struct way a, b;

	setup();
	open_ways(type, shared, &a, &b);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (size_t op = 0; op < sizeof(ops) / sizeof(ops[0]); op++) {
			if (type == IBV_QPT_UD &&
				(lens[i] > 1024 || ops[op] == IBV_WR_RDMA_WRITE_WITH_IMM))
				continue;
			message(&a, &b, ops[op], lens[i], 0);
			message(&b, &a, ops[op], lens[i], 0);
			if (lens[i] > SIDE_INLINE)
				continue;
			message(&a, &b, ops[op], lens[i], IBV_SEND_INLINE);
			message(&b, &a, ops[op], lens[i], IBV_SEND_INLINE);
		}
	}
	close_way(&a);
	close_way(&b);
	teardown();
}

static void
of_rc(void)
{
	messages(IBV_QPT_RC, false);
}

static void
of_uc(void)
{
	messages(IBV_QPT_UC, false);
}

static void
of_ud(void)
{
	messages(IBV_QPT_UD, false);
}

static void
by_shared_queues(void)
{
	messages(IBV_QPT_RC, true);
	messages(IBV_QPT_UD, true);
}

static enum ibv_qp_state
state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CU_ASSERT_EQUAL(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/*
 * The pages of one half are gone. Their addresses stay taken: into a hole goes what the process
 * maps next, a stack or what a sanitizer needs, and data would arrive there.
 */
static void
lose(uint32_t offset)
{
	MUST(mmap(copied.memory + offset, HALF, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED);
}

/* The queue pairs beside it have the same memory and the same completion queues, and go on. */
static void
others_go_on(uint32_t lost)
{
	struct way a = { .side = &copied, .qp = copied.qp };
	struct way b = { .side = &plain, .qp = plain.qp };
	struct ibv_wc wc;

	CU_ASSERT_EQUAL(state_of(a.qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(state_of(b.qp), IBV_QPS_RTS);
	if (lost == 0) {
		post(&b, &a, IBV_WR_RDMA_WRITE, 1000, 0);
		CU_ASSERT_EQUAL(next(&plain, &wc), IBV_WC_SUCCESS);
		CU_ASSERT(memcmp(copied.memory + HALF, plain.memory, 1000) == 0);
	} else {
		post(&a, &b, IBV_WR_RDMA_WRITE, 1000, 0);
		CU_ASSERT_EQUAL(next(&copied, &wc), IBV_WC_SUCCESS);
		CU_ASSERT(memcmp(plain.memory + HALF, copied.memory, 1000) == 0);
	}
	/* And nobody was told of anything else. */
	CU_ASSERT_EQUAL(ibv_poll_cq(copied.cq, 1, &wc), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(plain.cq, 1, &wc), 0);
}

/* Who armed a queue for what is solicited alone is told of errors too. */
static void
is_woken(const struct side *side)
{
	struct pollfd ready = { .fd = side->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *cq_context;

	CU_ASSERT_EQUAL_FATAL(poll(&ready, 1, FOREVER_MS), 1);
	CU_ASSERT_EQUAL(ibv_get_cq_event(side->channel, &cq, &cq_context), 0);
	ibv_ack_cq_events(cq, 1);
}

/*
 * What is to be sent is gone.
 *
 * Covers: IBTA 11.4.2 ucopy_take_turn_to_errors()
 */
static void
nothing_to_send(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_wc wc;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct way a, b;

		setup();
		open_ways(types[i], false, &a, &b);
		receive(&b, 5);
		lose(0);
		CU_ASSERT_EQUAL(ibv_req_notify_cq(copied.cq, 1), 0);
		post(&a, &b, IBV_WR_SEND, 1000, 0);
		is_woken(&copied);
		post(&a, &b, IBV_WR_SEND, 1000, 0);
		CU_ASSERT_EQUAL(next(&copied, &wc), IBV_WC_LOC_PROT_ERR);
		CU_ASSERT_EQUAL(wc.qp_num, a.qp->qp_num);
		CU_ASSERT_EQUAL(next(&copied, &wc), IBV_WC_WR_FLUSH_ERR);
		/* The peer has not heard of it. */
		CU_ASSERT_EQUAL(state_of(b.qp), IBV_QPS_RTS);
		others_go_on(0);
		close_way(&a);
		close_way(&b);
		teardown();
	}
}

/* The first has its memory, the second has not, and the third comes too late. */
static void
one_of_three(void)
{
	struct way a, b;
	struct ibv_wc wc;

	setup();
	open_ways(IBV_QPT_RC, false, &a, &b);
	for (uint64_t i = 0; i < 3; i++)
		receive(&b, i);
	lose(HALF);
	fill(copied.memory, HALF, 9);
	post(&a, &b, IBV_WR_SEND, HALF, 0);
	/* It begins in what is there, so that a packet or two can go. */
	copied.memory += HALF - 2048;
	post(&a, &b, IBV_WR_SEND, 3000, 0);
	copied.memory -= HALF - 2048;
	post(&a, &b, IBV_WR_SEND, HALF, 0);
	CU_ASSERT_EQUAL(next(&copied, &wc), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(next(&copied, &wc), IBV_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(next(&copied, &wc), IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(next(&plain, &wc), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.byte_len, HALF);
	/* But where the second has begun. */
	CU_ASSERT(memcmp(plain.memory + HALF + 2048, copied.memory + 2048, HALF - 2048) == 0);
	CU_ASSERT_EQUAL(state_of(a.qp), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(state_of(b.qp), IBV_QPS_RTS);
	others_go_on(HALF);
	close_way(&a);
	close_way(&b);
	teardown();
}

/* A peer READs what is gone: it is told, and does not ask for ever. */
static void
nothing_to_read(void)
{
	struct way a, b;
	struct ibv_wc wc;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 78,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	setup();
	open_ways(IBV_QPT_RC, false, &a, &b);
	lose(HALF);
	sge = (struct ibv_sge){ (uintptr_t)plain.memory, 3000, plain.mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)copied.memory + HALF - 1500;
	wr.wr.rdma.rkey = copied.mr->rkey;
	CU_ASSERT_EQUAL(ibv_post_send(b.qp, &wr, &bad), 0);
	CU_ASSERT_EQUAL(next(&plain, &wc), IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(wc.wr_id, 78);
	CU_ASSERT_EQUAL(state_of(a.qp), IBV_QPS_ERR);
	others_go_on(HALF);
	close_way(&a);
	close_way(&b);
	teardown();
}

/* Where it is to arrive is gone. */
static void
nowhere_to_receive(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_wc wc;

	for (size_t i = 0; i < 2 * sizeof(types) / sizeof(types[0]); i++) {
		enum ibv_qp_type type = types[i / 2];
		bool shared = i % 2 == 1;
		struct way a, b;

		if (shared && type == IBV_QPT_UC)
			continue;
		setup();
		open_ways(type, shared, &a, &b);
		receive(&a, 5);
		receive(&a, 6);
		lose(HALF);
		post(&b, &a, IBV_WR_SEND, 900, 0);
		CU_ASSERT_EQUAL(next(&copied, &wc), IBV_WC_LOC_PROT_ERR);
		CU_ASSERT_EQUAL(wc.wr_id, 5);
		CU_ASSERT_EQUAL(wc.qp_num, a.qp->qp_num);
		/* A shared queue keeps what this one did not take. */
		if (!shared) {
			CU_ASSERT_EQUAL(next(&copied, &wc), IBV_WC_WR_FLUSH_ERR);
			CU_ASSERT_EQUAL(wc.wr_id, 6);
		}
		CU_ASSERT_EQUAL(state_of(a.qp), IBV_QPS_ERR);
		/* Who was promised that it arrives hears that it did not. */
		CU_ASSERT_EQUAL(
			next(&plain, &wc), type == IBV_QPT_RC ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS);
		others_go_on(HALF);
		close_way(&a);
		close_way(&b);
		teardown();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S5 copied memory and reliable connections", of_rc },
		{ "S5 copied memory and unreliable connections", of_uc },
		{ "S5 copied memory and datagrams", of_ud },
		{ "S5 copied memory and shared receive queues", by_shared_queues },
		{ "S5 a page that is gone is not sent", nothing_to_send },
		{ "S5 what was sent before a page that is gone arrives", one_of_three },
		{ "S5 a page that is gone is not read", nothing_to_read },
		{ "S5 a page that is gone receives nothing", nowhere_to_receive },
	};
	int status;

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	status = rcd_tap_run("copied", tests, sizeof(tests) / sizeof(tests[0]));
	return rig_stop(&rig, FOREVER_MS) != 0 ? 1 : status;
}
