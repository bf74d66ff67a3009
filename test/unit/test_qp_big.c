/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: messages of 2^31 bytes, the longest there are, and not one byte more. Method: both regions
 * are 1024 mappings of the same 2 MiB in a row, so that nothing that big has to be there; MTU 4096,
 * half a million packets each.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "sim.h"

#define BIG  (UINT64_C(1) << 31)
#define UNIT (UINT64_C(1) << 21)

enum {
	PD = 1
};

static struct sim sim;
static struct sim_qp *a, *b;
static uint8_t *mapped[2]; /**< by the first test, for all */
static struct rcd_key key[2];

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
begin(void)
{
	struct rcd_qp_init init = { .type = RCD_QP_RC,
		.pd = PD,
		.sq_depth = 2,
		.max_send_sge = 2,
		.max_rd_atomic = 1,
		.port_mtu_bytes = 4096 };
	struct rcd_qp_attr attr;

	sim_init(&sim, 3, 64, 0);
	attr = sim_attr(&sim);
	attr.path_mtu_bytes = 4096;
	attr.timeout = 18; /* the link's queue is as long as the message */
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
	for (int node = 0; node < 2; node++) {
		struct rcd_mr_attr region = { .pd = PD,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
			.start = 0x100000000,
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
move(enum rcd_wr_opcode opcode, uint32_t extra, enum rcd_wc_status status)
{
	a->sq.sges[0][0] = (struct rcd_sge){ 0x100000000, (uint32_t)(BIG - 100), key[0] };
	a->sq.sges[0][1] = (struct rcd_sge){ 0x100000000 + BIG - 100, 100 + extra, key[0] };
	a->sq.wrs[0] = (struct rcd_send_wr){ .opcode = (uint8_t)opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 2,
		.remote = { .va = 0x100000000, .rkey = key[1] } };
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

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(write_of_2_to_the_31),
		RCD_TEST(read_of_2_to_the_31),
		RCD_TEST(one_byte_more),
	};

	return rcd_tap_run("qp_big", tests, RCD_ARRAY_COUNT(tests));
}
