/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Regions on demand, for tests.
 */
#include "demand.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct rig rig;
struct side here, there;
struct ibv_mr *mr;
uint8_t *at;
static uint32_t seed;

uint8_t *
map(void *where, size_t len, int prot)
{
	uint8_t *got = mmap(where, len, prot,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (where != NULL ? MAP_FIXED : 0), -1,
		0);

	MUST(got != MAP_FAILED);
	return got;
}

void
setup(void)
{
	side_open(&here, "roce0");
	side_open(&there, "roce1");
	side_join(&here, &there);
	at = map(NULL, LEN, PROT_NONE);
	mr = ibv_reg_mr(here.pd, at, LEN, ALL);
	MUST(mr != NULL);
}

void
teardown(void)
{
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	munmap(at, LEN);
	side_close(&here);
	side_close(&there);
}

void
begin_anew(void)
{
	struct ibv_wc wc;

	/* One error for one operation, and nothing is said of it to the side that did nothing. */
	CU_ASSERT_EQUAL(ibv_poll_cq(there.cq, 1, &wc), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(here.cq, 1, &wc), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(here.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(there.qp), 0);
	here.qp = side_new_qp(&here, IBV_QPT_RC, NULL);
	there.qp = side_new_qp(&there, IBV_QPT_RC, NULL);
	side_join(&here, &there);
}

int
reach(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t len, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)there.memory, len, there.mr->lkey };

	return side_operate(there.qp, opcode, sge, addr, rkey);
}

void
is_written(const uint8_t *to, const uint8_t *found, uint32_t len, uint32_t rkey)
{
	fill(there.memory, len, ++seed);
	CU_ASSERT_EQUAL_FATAL(reach(IBV_WR_RDMA_WRITE, (uintptr_t)to, len, rkey), IBV_WC_SUCCESS);
	CU_ASSERT(memcmp(found, there.memory, len) == 0);
}

void
is_read(const uint8_t *from, const uint8_t *has, uint32_t len, uint32_t rkey)
{
	memset(there.memory, 0xee, len);
	CU_ASSERT_EQUAL_FATAL(reach(IBV_WR_RDMA_READ, (uintptr_t)from, len, rkey), IBV_WC_SUCCESS);
	CU_ASSERT(memcmp(has, there.memory, len) == 0);
}

void
is_refused(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey)
{
	CU_ASSERT_EQUAL_FATAL(reach(opcode, addr, 8, rkey), IBV_WC_REM_ACCESS_ERR);
	begin_anew();
}

int
demand_run(const char *name, const struct rcd_test *tests, size_t count)
{
	int status;

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	status = rcd_tap_run(name, tests, count);
	return rig_stop(&rig, FOREVER_MS) != 0 ? 1 : status;
}
