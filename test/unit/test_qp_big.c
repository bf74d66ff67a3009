/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: messages of 2^31 bytes, the longest there are, and not one byte more. Method: both regions
 * are 1024 mappings of the same 2 MiB in a row, so that nothing that big has to be there; MTU 4096,
 * half a million packets each. With an MTU of 256 they take half of all PSNs: those packets go from
 * one queue pair to the other without a link.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "sim.h"

#define BIG  (UINT64_C(1) << 31)
#define UNIT (UINT64_C(1) << 21)

/* Packets of the longest message with the smallest MTU. */
#define FAR_PACKETS (UINT32_C(1) << 23)

enum {
	PD = 1,
	FAR_MTU = 256,
	BEHIND = 2, /**< small WRITEs behind it */
};

#define START UINT64_C(0x100000000)

static struct sim sim;
static struct sim_qp *a, *b;
static uint8_t *mapped[2]; /**< by the first test, for all */
static struct rcd_key key[2];

/* Packets without a link: when, and which one of each is lost, counted from 1. */
static uint64_t far_ns;
static uint32_t far_lost[2];

/* One byte more than 2^31, in pieces that are all the same memory. */
static uint8_t *
map_big(void)
{
	uint8_t *base = mmap(NULL, BIG + UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("big", 0);

	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, UNIT), 0);
	CU_ASSERT_TRUE_FATAL(base != MAP_FAILED);
	for (uint64_t at = 0; at <= BIG; at += UNIT)
		CU_ASSERT_TRUE_FATAL(
			mmap(base + at, UNIT, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) != MAP_FAILED);
	close(fd);
	return base;
}

static void
begin_mtu(uint16_t mtu)
{
	struct rcd_qp_init init = { .type = RCD_QP_RC,
		.pd = PD,
		.sq_depth = 4,
		.max_send_sge = 2,
		.max_recv_sge = 1,
		.max_rd_atomic = 1,
		.port_mtu_bytes = 4096 };
	struct rcd_qp_attr attr;

	sim_init(&sim, 3, 64, 0);
	attr = sim_attr(&sim);
	attr.path_mtu_bytes = mtu;
	attr.timeout = 18; /* the link's queue is as long as the message */
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
	for (int node = 0; node < 2; node++) {
		struct rcd_mr_attr region = { .pd = PD,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
			.start = START,
			.len = BIG + 1 };

		sim.nodes[node].out.gbps = 400;
		if (mapped[node] == NULL)
			mapped[node] = map_big();
		region.base = mapped[node];
		CU_ASSERT_EQUAL(rcd_mr_register(sim.nodes[node].mrs, &region, &key[node]), 0);
		for (uint64_t i = 0; i < UNIT; i += 8)
			memcpy(mapped[node] + i, &(uint64_t){ i * 3 + (uint64_t)node }, 8);
	}
	a = sim_qp_create(&sim.nodes[0], &init);
	b = sim_qp_create(&sim.nodes[1], &init);
	sim_connect(a, b, &attr, &attr);
}

static void
begin(void)
{
	begin_mtu(4096);
}

static void
move(enum rcd_wr_opcode opcode, uint32_t extra, enum rcd_wc_status status)
{
	a->sq.sges[0][0] = (struct rcd_sge){ START, (uint32_t)(BIG - 100), key[0] };
	a->sq.sges[0][1] = (struct rcd_sge){ START + BIG - 100, 100 + extra, key[0] };
	a->sq.wrs[0] = (struct rcd_send_wr){ .opcode = (uint8_t)opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 2,
		.remote = { .va = START, .rkey = key[1] } };
	a->sq.posted = 1;
	CU_ASSERT_TRUE(sim_run(&sim, UINT64_C(1000000000000)));
	CU_ASSERT_EQUAL(sim.nodes[0].cqe_count, 1);
	CU_ASSERT_EQUAL(sim.nodes[0].cqes[0].status, status);
	if (status == RCD_WC_SUCCESS) {
		CU_ASSERT_EQUAL(sim.nodes[0].cqes[0].byte_len, BIG);
		CU_ASSERT_EQUAL(memcmp(mapped[0], mapped[1], UNIT), 0);
	}
	sim_fini(&sim);
}

static void
write_of_2_to_the_31(void)
{
	begin();
	move(RCD_WR_RDMA_WRITE, 0, RCD_WC_SUCCESS);
}

static void
read_of_2_to_the_31(void)
{
	begin();
	move(RCD_WR_RDMA_READ, 0, RCD_WC_SUCCESS);
}

/* Covers: IBTA 10.8.2 req_check_wr() */
static void
one_byte_more(void)
{
	begin();
	move(RCD_WR_RDMA_WRITE, 1, RCD_WC_LOC_LEN_ERR);
}

/* Post a request of one piece. */
static void
far_post(enum rcd_wr_opcode opcode, uint32_t len)
{
	uint32_t number = a->sq.posted++;

	a->sq.sges[number][0] = (struct rcd_sge){ START, len, key[0] };
	a->sq.wrs[number] = (struct rcd_send_wr){ .wr_id = number,
		.opcode = (uint8_t)opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.remote = { .va = START, .rkey = key[1] } };
}

/* As it comes to the other one. */
static struct rcd_pkt
far_pkt(const struct sim_qp *to, const struct rcd_tx_pkt *out)
{
	struct rcd_av av = sim_av(to->node);

	return (struct rcd_pkt){ .sgid = av.dgid,
		.dgid = av.sgid,
		.roce = out->roce,
		.payload = out->pieces[0].base,
		.payload_len = (uint16_t)out->payload_len };
}

/* What one has to send goes to the other at once. @return packets */
static uint32_t
far_carry(struct sim_qp *from, struct sim_qp *to, uint32_t most)
{
	struct rcd_tx_pkt out;
	uint32_t count = 0;

	for (; count < most && rcd_qp_tx_next(from->qp, far_ns, &out); count++) {
		struct rcd_pkt pkt = far_pkt(to, &out);
		uint32_t *lost = &far_lost[from->node->number];

		if (*lost == 0 || --*lost > 0)
			rcd_qp_rx(to->qp, &pkt, far_ns);
	}
	return count;
}

/* All that is sent until nothing is left to do: one acknowledge for a window. @return packets */
static uint32_t
far_run(void)
{
	uint32_t all = 0, some;
	uint64_t deadline;

	do {
		far_ns += 1000;
		some = far_carry(a, b, 1024);
		some += far_carry(b, a, 64);
		all += some;
		deadline = rcd_qp_next_deadline(a->qp);
		if (some == 0 && deadline != 0) {
			far_ns = deadline;
			rcd_qp_expire(a->qp, far_ns);
		}
	} while ((some > 0 || deadline != 0) && all < 2 * FAR_PACKETS);
	return all;
}

/* A message in half of all PSNs, or of fewer bytes, and the receive request for it. */
static void
far_begin(enum rcd_wr_opcode opcode, uint32_t len)
{
	far_ns = 1;
	far_lost[0] = far_lost[1] = 0;
	begin_mtu(FAR_MTU);
	b->rq.sges[0][0] = (struct rcd_sge){ START, len, key[1] };
	b->rq.wrs[0] = (struct rcd_recv_wr){ .sge_count = 1 };
	b->rq.posted = 1;
	far_post(opcode, len);
}

/* Carry on to the end. @param again  requests that are sent again */
static void
far_end(uint32_t again)
{
	/* One in eight is more than enough for acknowledges. */
	CU_ASSERT_TRUE(far_run() < FAR_PACKETS + FAR_PACKETS / 8);
	CU_ASSERT_EQUAL_FATAL(sim.nodes[0].cqe_count, a->sq.posted);
	for (uint32_t i = 0; i < a->sq.posted; i++) {
		CU_ASSERT_EQUAL(sim.nodes[0].cqes[i].wr_id, i);
		CU_ASSERT_EQUAL(sim.nodes[0].cqes[i].status, RCD_WC_SUCCESS);
	}
	CU_ASSERT_EQUAL(
		rcd_counter_get(&sim.nodes[0].counters, RCD_COUNTER_RETRANSMITTED_PKTS), again);
	CU_ASSERT_EQUAL(sim.nodes[1].cqe_count, a->sq.wrs[0].opcode == RCD_WR_SEND);
	CU_ASSERT_EQUAL(memcmp(mapped[0], mapped[1], UNIT), 0);
	sim_fini(&sim);
}

/* A message, and others behind it. */
static void
far_move(enum rcd_wr_opcode opcode, uint32_t len)
{
	far_begin(opcode, len);
	for (uint32_t i = 0; i < BEHIND; i++)
		far_post(RCD_WR_RDMA_WRITE, 8);
	far_end(0);
}

static void
write_of_half_the_psns(void)
{
	far_move(RCD_WR_RDMA_WRITE, (uint32_t)BIG);
}

static void
send_of_half_the_psns(void)
{
	far_move(RCD_WR_SEND, (uint32_t)BIG);
}

/* One PSN less, and an acknowledge of what is behind it: more than half are behind its first. */
static void
acknowledged_with_what_follows(void)
{
	far_move(RCD_WR_RDMA_WRITE, (uint32_t)BIG - FAR_MTU);
}

/* With all the PSNs outstanding that there may be (IBTA 9.7.1). */
static void
read_of_half_the_psns(void)
{
	far_move(RCD_WR_RDMA_READ, (uint32_t)BIG);
}

/* A response in the middle, and the last one: those that are missing are asked for again. */
static void
a_response_is_lost(void)
{
	far_begin(RCD_WR_RDMA_READ, (uint32_t)BIG);
	far_post(RCD_WR_RDMA_WRITE, 8);
	far_lost[1] = FAR_PACKETS / 2;
	far_end(1);
}

/* By itself after the timeout, one packet is asked for, which tells that it was lost. */
static void
a_read_is_lost(void)
{
	far_begin(RCD_WR_RDMA_READ, (uint32_t)BIG);
	far_lost[0] = 1;
	far_end(2);
}

/* All the PSNs are in use; what comes at their start and at their end is neither late nor stale. */
static void
nothing_beside_half_the_psns(void)
{
	struct rcd_tx_pkt out;
	struct rcd_pkt pkt;
	uint8_t bitmap[4] = { 0 };

	far_begin(RCD_WR_RDMA_READ, (uint32_t)BIG);
	sim_agree_sack(a);
	far_post(RCD_WR_RDMA_WRITE, (uint32_t)BIG);
	CU_ASSERT_TRUE(rcd_qp_tx_next(a->qp, 1, &out));
	CU_ASSERT_EQUAL(out.roce.reth.dma_len, BIG);
	CU_ASSERT_FALSE(rcd_qp_tx_next(a->qp, 1, &out));
	pkt = far_pkt(a, &out);
	pkt.payload = bitmap;
	pkt.payload_len = sizeof(bitmap);
	pkt.roce.bth.opcode = RCD_OPCODE_SACK;
	pkt.roce.sacketh.seen = pkt.roce.bth.psn;
	CU_ASSERT_EQUAL(rcd_qp_rx(a->qp, &pkt, 2), RCD_RX_EXECUTED);
	CU_ASSERT_FALSE(rcd_qp_tx_next(a->qp, 2, &out));
	pkt.payload = mapped[1];
	pkt.payload_len = FAR_MTU;
	pkt.roce.bth.opcode = RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST;
	pkt.roce.bth.psn = rcd_psn_add(pkt.roce.bth.psn, FAR_PACKETS - 1);
	/* No pool to keep it: what is missing before it is asked for again. */
	rcd_qp_rx(a->qp, &pkt, 3);
	CU_ASSERT_TRUE(rcd_qp_tx_next(a->qp, 3, &out));
	CU_ASSERT_EQUAL(out.roce.reth.dma_len, BIG);
	CU_ASSERT_FALSE(rcd_qp_tx_next(a->qp, 3, &out));
	pkt.roce.bth.psn = rcd_psn_add(pkt.roce.bth.psn, 1);
	CU_ASSERT_EQUAL(rcd_qp_rx(a->qp, &pkt, 3), RCD_RX_STALE);
	CU_ASSERT_EQUAL(sim.nodes[0].cqe_count, 0);
	sim_fini(&sim);
}

/* The responder's side: the oldest PSN that may come again, and the next one. */
static void
half_the_psns_again(void)
{
	struct rcd_pkt first, again;
	struct rcd_tx_pkt out;

	far_begin(RCD_WR_RDMA_READ, (uint32_t)BIG);
	CU_ASSERT_TRUE(rcd_qp_tx_next(a->qp, 1, &out));
	first = far_pkt(b, &out);
	CU_ASSERT_EQUAL(rcd_qp_rx(b->qp, &first, 1), RCD_RX_EXECUTED);
	CU_ASSERT_TRUE(rcd_qp_tx_next(b->qp, 1, &out));
	CU_ASSERT_TRUE(rcd_psn_eq(out.roce.bth.psn, first.roce.bth.psn));
	CU_ASSERT_EQUAL(rcd_qp_rx(b->qp, &first, 1), RCD_RX_DUPLICATE);
	CU_ASSERT_TRUE(rcd_qp_tx_next(b->qp, 1, &out));
	CU_ASSERT_TRUE(rcd_psn_eq(out.roce.bth.psn, first.roce.bth.psn));
	again = first;
	again.roce.bth.psn = rcd_psn_add(first.roce.bth.psn, FAR_PACKETS - 1);
	again.roce.reth.va += BIG - FAR_MTU;
	again.roce.reth.dma_len = FAR_MTU;
	CU_ASSERT_EQUAL(rcd_qp_rx(b->qp, &again, 1), RCD_RX_DUPLICATE);
	again.roce.bth.psn = rcd_psn_add(again.roce.bth.psn, 1);
	again.roce.bth.opcode = RCD_OPCODE_RC_RDMA_WRITE_ONLY;
	again.payload = mapped[0];
	again.payload_len = FAR_MTU;
	CU_ASSERT_EQUAL(rcd_qp_rx(b->qp, &again, 1), RCD_RX_EXECUTED);
	sim_fini(&sim);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(write_of_2_to_the_31),
		RCD_TEST(read_of_2_to_the_31),
		RCD_TEST(one_byte_more),
		RCD_TEST(write_of_half_the_psns),
		RCD_TEST(send_of_half_the_psns),
		RCD_TEST(acknowledged_with_what_follows),
		RCD_TEST(read_of_half_the_psns),
		RCD_TEST(a_response_is_lost),
		RCD_TEST(a_read_is_lost),
		RCD_TEST(nothing_beside_half_the_psns),
		RCD_TEST(half_the_psns_again),
	};

	return rcd_tap_run("qp_big", tests, RCD_ARRAY_COUNT(tests));
}
