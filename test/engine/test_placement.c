/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: programs can use FLUSH and ATOMIC WRITE, in memory that is shared and in memory that is
 * reached by copies, are told truly what there is of it, and can ask for nonsense. Method: through
 * the drop-in library, on an embedded wire.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rcd_cl_mem.h"
#include "rcd_number.h"
#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

/* Numbers of rdma-core, which older headers have no names for. */
enum {
	FLUSH_GLOBAL = 1 << 0,
	FLUSH_PERSISTENT = 1 << 1,
	FLUSH_RANGE = 0,
	FLUSH_MR = 1,
	ACCESS_FLUSH_GLOBAL = 1 << 8,
	ACCESS_FLUSH_PERSISTENT = 1 << 9,
	WITH_FLUSH = 1 << 11,
	WC_FLUSH = 8,
};
#define CAP_FLUSH_GLOBAL     (UINT64_C(1) << 38)
#define CAP_FLUSH_PERSISTENT (UINT64_C(1) << 39)
#define CAP_ATOMIC_WRITE     (UINT64_C(1) << 40)

#define ALL_RIGHTS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
		ACCESS_FLUSH_GLOBAL)

/** Where programs that were built with newer headers look for it: behind all of older ones. */
struct newer_qp_ex {
	struct ibv_qp base;
	uint64_t comp_mask;
	uint64_t wr_id;
	unsigned int wr_flags;
	void (*functions[21])(void);
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va, size_t len,
		uint8_t placement, uint8_t selectivity);
};

static struct rig rig;
static struct side a, b;

static void
flush(struct ibv_qp_ex *qp, uint32_t rkey, const void *at, size_t len, uint8_t placement,
	uint8_t selectivity)
{
	((struct newer_qp_ex *)(void *)qp)
		->wr_flush(qp, rkey, (uintptr_t)at, len, placement, selectivity);
}

static struct ibv_qp_ex *
new_qp(struct side *side)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = side->pd,
		.send_ops_flags =
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | WITH_FLUSH };
	struct ibv_qp *qp = ibv_create_qp_ex(side->context, &init);

	MUST(qp != NULL);
	CU_ASSERT_EQUAL(ibv_destroy_qp(side->qp), 0);
	side->qp = qp;
	return ibv_qp_to_qp_ex(qp);
}

/* Two sides that are joined; b's queue pair gives its peer these rights. @return a's */
static struct ibv_qp_ex *
begin(unsigned int rights)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .qp_access_flags = rights };
	struct ibv_qp_ex *qp;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	CU_ASSERT_EQUAL(ibv_dereg_mr(b.mr), 0);
	b.mr = ibv_reg_mr(b.pd, b.memory, SIDE_LEN, ALL_RIGHTS);
	MUST(b.mr != NULL);
	qp = new_qp(&a);
	side_join(&a, &b);
	CU_ASSERT_EQUAL(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
	return qp;
}

static void
end(void)
{
	side_close(&a);
	side_close(&b);
}

static struct ibv_wc
wait_for_one(void)
{
	uint64_t until = now_ms() + FOREVER_MS;
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	while (ibv_poll_cq(a.cq, 1, &wc) == 0 && now_ms() < until)
		;
	return wc;
}

static void
what_the_device_says(void)
{
	struct ibv_device_attr_ex attr;

	side_open(&a, "roce0");
	CU_ASSERT_EQUAL(ibv_query_device_ex(a.context, NULL, &attr), 0);
	CU_ASSERT_NOT_EQUAL(attr.device_cap_flags_ex & CAP_FLUSH_GLOBAL, 0);
	CU_ASSERT_NOT_EQUAL(attr.device_cap_flags_ex & CAP_ATOMIC_WRITE, 0);
	CU_ASSERT_EQUAL(attr.device_cap_flags_ex & CAP_FLUSH_PERSISTENT, 0);
	CU_ASSERT_EQUAL((uint32_t)attr.device_cap_flags_ex, attr.orig_attr.device_cap_flags);
	side_close(&a);
}

/* A record, a FLUSH of it, and a word that says that it is there: one chain. */
static void
write_flush_atomic_write(void)
{
	struct ibv_qp_ex *qp = begin(ALL_RIGHTS);
	static const enum ibv_wc_opcode opcodes[] = { IBV_WC_RDMA_WRITE,
		(enum ibv_wc_opcode)WC_FLUSH, IBV_WC_ATOMIC_WRITE };

	for (uint64_t round = 1; round <= 200; round++) {
		fill(a.memory, 3000, (uint32_t)round);
		ibv_wr_start(qp);
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(qp, b.mr->rkey, (uintptr_t)b.memory);
		ibv_wr_set_sge(qp, a.mr->lkey, (uintptr_t)a.memory, 3000);
		flush(qp, b.mr->rkey, b.memory, 3000, FLUSH_GLOBAL,
			round % 2 ? FLUSH_RANGE : FLUSH_MR);
		ibv_wr_atomic_write(qp, b.mr->rkey, (uintptr_t)b.memory + 4096, &round);
		CU_ASSERT_EQUAL(ibv_wr_complete(qp), 0);
		for (int i = 0; i < 3; i++) {
			struct ibv_wc wc = wait_for_one();

			CU_ASSERT_EQUAL_FATAL(wc.status, IBV_WC_SUCCESS);
			CU_ASSERT_EQUAL(wc.opcode, opcodes[i]);
		}
		CU_ASSERT_EQUAL(*(volatile uint64_t *)(void *)(b.memory + 4096), round);
		CU_ASSERT_TRUE(filled(b.memory, 3000, (uint32_t)round));
	}
	end();
}

/* Nothing of it is copied later than a FLUSH is answered, or an ATOMIC WRITE. */
static void
in_memory_that_is_copied(void)
{
	setenv("ROCADE_MR", "copy", 1);
	write_flush_atomic_write();
	unsetenv("ROCADE_MR");
}

/* Post one, and see it fail; what comes behind it is flushed, and the engine goes on. */
static void
check_status(enum ibv_wc_status status)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(a.qp);
	uint64_t zero = 0;

	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, b.mr->rkey, (uintptr_t)b.memory, &zero);
	CU_ASSERT_EQUAL(ibv_wr_complete(qp), 0);
	CU_ASSERT_EQUAL(wait_for_one().status, status);
	CU_ASSERT_EQUAL(wait_for_one().status,
		status == IBV_WC_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	end();
}

static void
check_flush(unsigned int rights, uint32_t key_change, uint64_t offset, size_t len,
	uint8_t placement, uint8_t selectivity, enum ibv_wc_status status)
{
	struct ibv_qp_ex *qp = begin(rights);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	flush(qp, b.mr->rkey ^ key_change, b.memory + offset, len, placement, selectivity);
	check_status(status);
}

static void
what_is_refused(void)
{
	unsigned int rights = ALL_RIGHTS | ACCESS_FLUSH_PERSISTENT;
	struct ibv_qp_ex *qp;
	uint64_t one = 1;

	check_flush(rights, 0, 0, SIDE_LEN, FLUSH_GLOBAL, FLUSH_RANGE, IBV_WC_SUCCESS);
	check_flush(rights, 0, SIDE_LEN, 1, FLUSH_GLOBAL, FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR);
	check_flush(rights, 0, SIDE_LEN, 1, FLUSH_GLOBAL, FLUSH_MR, IBV_WC_SUCCESS);
	check_flush(rights, 0x100, 0, 8, FLUSH_GLOBAL, FLUSH_MR, IBV_WC_REM_ACCESS_ERR);
	check_flush(rights, 0, 0, 8, FLUSH_PERSISTENT, FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR);
	check_flush(IBV_ACCESS_REMOTE_WRITE, 0, 0, 8, FLUSH_GLOBAL, FLUSH_RANGE,
		IBV_WC_REM_INV_REQ_ERR);
	check_flush(rights, 0, 0, 8, 0, FLUSH_RANGE, IBV_WC_LOC_QP_OP_ERR);
	check_flush(rights, 0, 0, 8, 0xff, FLUSH_RANGE, IBV_WC_LOC_QP_OP_ERR);
	check_flush(rights, 0, 0, 8, FLUSH_GLOBAL, 0xff, IBV_WC_LOC_QP_OP_ERR);
	check_flush(rights, 0, 0, SIZE_MAX, FLUSH_GLOBAL, FLUSH_RANGE, IBV_WC_LOC_LEN_ERR);
	qp = begin(rights);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, b.mr->rkey, (uintptr_t)b.memory + 1, &one);
	check_status(IBV_WC_LOC_QP_OP_ERR);
	qp = begin(rights);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, b.mr->rkey, (uintptr_t)b.memory + SIDE_LEN, &one);
	check_status(IBV_WC_REM_ACCESS_ERR);
}

/* A window gives no more than its region does. */
static void
check_no_window(unsigned int access)
{
	struct ibv_mw_bind bind;
	struct ibv_mr *plain;
	struct ibv_mw *mw;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	plain = ibv_reg_mr(a.pd, a.memory, SIDE_LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	MUST(plain != NULL && mw != NULL);
	bind = (struct ibv_mw_bind){ .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { plain, (uintptr_t)a.memory, 64, access } };
	CU_ASSERT_EQUAL(ibv_bind_mw(a.qp, mw, &bind), 0);
	CU_ASSERT_EQUAL(wait_for_one().status, IBV_WC_MW_BIND_ERR);
	CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(plain), 0);
	end();
}

/* What nothing here can keep is not promised: by the library, nor by the engine to any client. */
static void
nothing_is_persistent(void)
{
	static struct node node;
	struct rcd_cl_mr mr;
	struct rcd_cl_mr_attr attr = { .access = RCD_ACCESS_LOCAL_WRITE |
			RCD_ACCESS_FLUSH_PERSISTENT };

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	CU_ASSERT_PTR_NULL(ibv_reg_mr(a.pd, a.memory, SIDE_LEN,
		IBV_ACCESS_LOCAL_WRITE | ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	errno = 0;
	CU_ASSERT_EQUAL(ibv_rereg_mr(a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				IBV_ACCESS_LOCAL_WRITE | ACCESS_FLUSH_PERSISTENT),
		IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	CU_ASSERT_EQUAL(ibv_rereg_mr(a.mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_EQUAL(errno, EINVAL);
	end();
	check_no_window(ACCESS_FLUSH_GLOBAL);
	check_no_window(ACCESS_FLUSH_PERSISTENT);

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	attr.pd = node.pd;
	attr.addr =
		mmap(NULL, SIDE_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	attr.len = SIDE_LEN;
	CU_ASSERT_EQUAL(rcd_cl_mr_reg(&node.client, &attr, &mr), -EOPNOTSUPP);
	attr.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_FLUSH_GLOBAL;
	CU_ASSERT_EQUAL(rcd_cl_mr_reg(&node.client, &attr, &mr), 0);
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&node.client, &mr), 0);
	node_close(&node);
	munmap(attr.addr, SIDE_LEN);
}

/* By structs there is no way to say what is wanted. */
static void
not_by_post_send(void)
{
	struct ibv_sge sge = { 0 };

	begin(ALL_RIGHTS);
	sge = (struct ibv_sge){ (uintptr_t)a.memory, 8, a.mr->lkey };
	CU_ASSERT_EQUAL(
		side_operate(a.qp, IBV_WR_ATOMIC_WRITE, sge, (uintptr_t)b.memory, b.mr->rkey), -1);
	CU_ASSERT_EQUAL(
		side_operate(a.qp, (enum ibv_wr_opcode)14, sge, (uintptr_t)b.memory, b.mr->rkey),
		-1);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_the_device_says),
		RCD_TEST(write_flush_atomic_write),
		RCD_TEST(in_memory_that_is_copied),
		RCD_TEST(what_is_refused),
		RCD_TEST(nothing_is_persistent),
		RCD_TEST(not_by_post_send),
	};
	int status;

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	status = rcd_tap_run("placement", tests, sizeof(tests) / sizeof(tests[0]));
	return rig_stop(&rig, FOREVER_MS) != 0 ? 1 : status;
}
