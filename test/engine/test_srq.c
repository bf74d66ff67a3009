/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a shared receive queue gets another depth with what is posted, in order, while messages
 * come; what a client may say of the new ring harms nobody. Method: the drop-in library, and bare
 * requests, on an embedded wire.
 */
#include <errno.h>
#include <stdlib.h>

#include "rcd_limits.h"
#include "rcd_shm.h"
#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

static struct rig rig;
static struct side a, b;
static struct ibv_qp *from, *to;
static struct ibv_srq *srq;
static uint64_t next_posted, next_taken;

static void
opens(uint32_t depth)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = depth, .max_sge = 1 } };

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	srq = ibv_create_srq(b.pd, &init);
	MUST(srq != NULL);
	from = side_new_qp(&a, IBV_QPT_RC, NULL);
	to = side_new_qp(&b, IBV_QPT_RC, srq);
	side_join_qps(&a, from, &b, to);
	next_posted = next_taken = 0;
}

static void
closes(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(from), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(to), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	side_close(&a);
	side_close(&b);
}

/* @return what the last post said */
static int
post(uint32_t count)
{
	struct ibv_sge sge = { (uintptr_t)b.memory, 8, b.mr->lkey };
	int err = 0;

	for (uint32_t i = 0; i < count && err == 0; i++) {
		struct ibv_recv_wr wr = { .wr_id = next_posted, .sg_list = &sge, .num_sge = 1 };
		struct ibv_recv_wr *bad;

		err = ibv_post_srq_recv(srq, &wr, &bad);
		next_posted += err == 0;
	}
	return err;
}

/* Messages that find receives, in the order of these. */
static void
take(uint32_t count)
{
	struct ibv_sge sge = { (uintptr_t)a.memory, 8, a.mr->lkey };

	for (uint32_t i = 0; i < count; i++) {
		uint64_t end = now_ms() + FOREVER_MS;
		struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

		MUST(side_operate(from, IBV_WR_SEND, sge, 0, 0) == IBV_WC_SUCCESS);
		while (ibv_poll_cq(to->recv_cq, 1, &wc) == 0 && now_ms() < end)
			;
		CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc.wr_id, next_taken);
		next_taken++;
	}
}

static int
resize(uint32_t depth)
{
	struct ibv_srq_attr attr = { .max_wr = depth };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static uint32_t
depth_now(void)
{
	struct ibv_srq_attr attr;

	MUST(ibv_query_srq(srq, &attr) == 0);
	return attr.max_wr;
}

static void
grows_and_shrinks(void)
{
	opens(4);
	CU_ASSERT_EQUAL(post(3), 0);
	take(2);
	CU_ASSERT_EQUAL(post(3), 0);
	CU_ASSERT_EQUAL(post(1), ENOMEM);
	/* Four wait, of numbers that lie elsewhere in a ring of 16. */
	CU_ASSERT_EQUAL(resize(9), 0);
	CU_ASSERT_EQUAL(depth_now(), 16);
	CU_ASSERT_EQUAL(post(12), 0);
	CU_ASSERT_EQUAL(post(1), ENOMEM);
	take(3);
	CU_ASSERT_EQUAL(resize(8), EINVAL);
	CU_ASSERT_EQUAL(depth_now(), 16);
	take(7);
	CU_ASSERT_EQUAL(resize(8), 0);
	CU_ASSERT_EQUAL(post(2), 0);
	CU_ASSERT_EQUAL(post(1), ENOMEM);
	take(8);
	for (uint32_t round = 0; round < 50; round++) {
		CU_ASSERT_EQUAL(post(5), 0);
		take(2);
		CU_ASSERT_EQUAL(resize(round % 2 == 0 ? 32 : 8), 0);
		take(3);
	}
	closes();
}

static void
its_limit(void)
{
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 12 };

	opens(4);
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	CU_ASSERT_EQUAL(resize(8), EINVAL);
	CU_ASSERT_EQUAL(resize(0), EINVAL);
	CU_ASSERT_EQUAL(resize(RCD_WQ_DEPTH_MAX + 1), EINVAL);
	CU_ASSERT_EQUAL(depth_now(), 16);
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &attr, 1 << 7), EINVAL);
	closes();
}

static int
ask(struct node *node, enum rcd_ctrl_op op, uint32_t handle, uint32_t depth,
	struct rcd_ctrl_srq_rep *rep)
{
	struct rcd_ctrl_srq_resize_req resize_req = { .handle = handle, .depth = depth };
	struct rcd_ctrl_handle switch_req = { .handle = handle };

	return op == RCD_CTRL_SRQ_RESIZE
		? rcd_client_call(&node->client, op, &resize_req, rep, NULL, NULL)
		: rcd_client_call(&node->client, op, &switch_req, NULL, NULL, NULL);
}

/* Rings that were never taken, are taken twice, or have more in them than they hold. */
static void
what_a_client_says(void)
{
	struct rcd_ctrl_srq_req req = { .depth = 4, .max_sge = 1 };
	struct rcd_ctrl_srq_modify_req limit = { .limit = 64 };
	struct rcd_ctrl_srq_rep rep, old;
	struct rcd_shm_wq *ring;
	struct node node;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	req.pd = node.pd;
	MUST(rcd_client_call(&node.client, RCD_CTRL_SRQ_CREATE, &req, &old, NULL, NULL) == 0);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle, 0, NULL), -EINVAL);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle + 1, 0, NULL), -ENOENT);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_RESIZE, old.handle + 1, 8, &rep), -ENOENT);
	/* Of any number of rings one is kept: more than all of them would not fit. */
	for (uint32_t i = 0; i < 500; i++)
		MUST(ask(&node, RCD_CTRL_SRQ_RESIZE, old.handle, RCD_WQ_DEPTH_MAX, &rep) == 0);
	MUST(ask(&node, RCD_CTRL_SRQ_RESIZE, old.handle, 64, &rep) == 0);
	CU_ASSERT_EQUAL(rep.depth, 64);
	ring = (struct rcd_shm_wq *)(void *)((uint8_t *)node.client.shm + rep.indices);
	rcd_shm_store(&ring->producer, 65);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle, 0, NULL), -EINVAL);
	rcd_shm_store(&ring->producer, 0u - 1);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle, 0, NULL), -EINVAL);
	rcd_shm_store(&ring->producer, 64);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle, 0, NULL), 0);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle, 0, NULL), -EINVAL);
	/* The limit was set behind the request for a ring, which is too small for it now. */
	MUST(ask(&node, RCD_CTRL_SRQ_RESIZE, old.handle, 32, &rep) == 0);
	limit.handle = old.handle;
	CU_ASSERT_EQUAL(
		rcd_client_call(&node.client, RCD_CTRL_SRQ_MODIFY, &limit, NULL, NULL, NULL), 0);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle, 0, NULL), -EINVAL);
	/* One ring that waits goes with its queue, one with its context. */
	CU_ASSERT_EQUAL(rcd_cl_destroy(&node.client, RCD_CTRL_SRQ_DESTROY, old.handle), 0);
	MUST(rcd_client_call(&node.client, RCD_CTRL_SRQ_CREATE, &req, &old, NULL, NULL) == 0);
	MUST(ask(&node, RCD_CTRL_SRQ_RESIZE, old.handle, 32, &rep) == 0);
	node_close(&node);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(grows_and_shrinks),
		RCD_TEST(its_limit),
		RCD_TEST(what_a_client_says),
	};
	int err;

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	err = rcd_tap_run("srq", tests, sizeof(tests) / sizeof(tests[0]));
	return rig_stop(&rig, FOREVER_MS) == 0 ? err : 1;
}
