/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a shared receive queue gets another depth with what is posted, in order, while messages
 * come; what a client may say of the new ring harms nobody. Method: the drop-in library, and bare
 * requests, on an embedded wire.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
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

/* Messages are on their way. */
static void
send_some(uint32_t count)
{
	struct ibv_sge sge = { (uintptr_t)a.memory, 8, a.mr->lkey };
	struct ibv_send_wr *bad;

	for (uint32_t i = 0; i < count; i++) {
		struct ibv_send_wr wr = { .sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED };

		MUST(ibv_post_send(from, &wr, &bad) == 0);
	}
}

static struct ibv_wc
completes(struct ibv_cq *cq)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	uint64_t end = now_ms() + FOREVER_MS;

	while (ibv_poll_cq(cq, 1, &wc) == 0 && now_ms() < end)
		;
	return wc;
}

/* They find receives, in the order of these. */
static void
hear(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct ibv_wc wc = completes(to->recv_cq);

		MUST(wc.status == IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc.wr_id, next_taken);
		next_taken++;
		MUST(completes(from->send_cq).status == IBV_WC_SUCCESS);
	}
}

/* One after the other. */
static void
take(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		send_some(1);
		hear(1);
	}
}

static int
resize(uint32_t depth)
{
	struct ibv_srq_attr attr = { .max_wr = depth };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static int
limit_to(uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int
change_both(uint32_t depth, uint32_t limit)
{
	struct ibv_srq_attr attr = { .max_wr = depth, .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
}

static bool
has(uint32_t depth, uint32_t limit)
{
	struct ibv_srq_attr attr;

	MUST(ibv_query_srq(srq, &attr) == 0);
	return attr.max_wr == depth && attr.srq_limit == limit;
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
	CU_ASSERT_TRUE(has(16, 0));
	CU_ASSERT_EQUAL(post(12), 0);
	CU_ASSERT_EQUAL(post(1), ENOMEM);
	take(3);
	CU_ASSERT_EQUAL(resize(8), EINVAL);
	CU_ASSERT_TRUE(has(16, 0));
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

/* Nobody waits for messages before it gets another ring. */
static void
while_messages_come(void)
{
	opens(64);
	CU_ASSERT_EQUAL(post(60), 0);
	for (uint32_t round = 0; round < RIG_TIMES(100); round++) {
		send_some(16);
		CU_ASSERT_EQUAL(resize(128), 0);
		CU_ASSERT_EQUAL(post(16), 0);
		send_some(16);
		CU_ASSERT_EQUAL(resize(256), 0);
		hear(32);
		send_some(16);
		CU_ASSERT_EQUAL(resize(64), 0);
		hear(16);
		CU_ASSERT_EQUAL(post(32), 0);
	}
	closes();
}

static void
its_limit(void)
{
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 12 };

	opens(4);
	CU_ASSERT_EQUAL(limit_to(12), EINVAL);
	CU_ASSERT_EQUAL(change_both(16, 99), EINVAL);
	CU_ASSERT_TRUE(has(4, 0));
	CU_ASSERT_EQUAL(change_both(16, 12), 0);
	CU_ASSERT_TRUE(has(16, 12));
	CU_ASSERT_EQUAL(resize(8), EINVAL);
	CU_ASSERT_EQUAL(resize(0), EINVAL);
	CU_ASSERT_EQUAL(resize(RCD_WQ_DEPTH_MAX + 1), EINVAL);
	CU_ASSERT_EQUAL(change_both(RCD_WQ_DEPTH_MAX + 1, 1), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &attr, 1 << 7), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &attr, 0), 0);
	CU_ASSERT_TRUE(has(16, 12));
	CU_ASSERT_EQUAL(change_both(8, 2), 0);
	CU_ASSERT_TRUE(has(8, 2));
	CU_ASSERT_EQUAL(change_both(2, 0), 0);
	CU_ASSERT_TRUE(has(2, 0));
	closes();
}

static bool
event_came(int wait_ms)
{
	struct pollfd ready = { .fd = b.context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&ready, 1, wait_ms) != 1)
		return false;
	MUST(ibv_get_async_event(b.context, &event) == 0);
	CU_ASSERT_EQUAL(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	CU_ASSERT_PTR_EQUAL(event.element.srq, srq);
	ibv_ack_async_event(&event);
	return true;
}

/* Armed before another ring comes, or with it. */
static void
its_event(void)
{
	opens(4);
	for (int with = 0; with < 2; with++) {
		CU_ASSERT_EQUAL(post(4), 0);
		CU_ASSERT_EQUAL(limit_to(with ? 4 : 3), 0);
		CU_ASSERT_EQUAL(with ? change_both(16, 3) : resize(16), 0);
		CU_ASSERT_EQUAL(post(4), 0);
		take(5);
		CU_ASSERT_TRUE(has(16, 3));
		CU_ASSERT_FALSE(event_came(0));
		take(1);
		CU_ASSERT_TRUE(event_came(FOREVER_MS));
		CU_ASSERT_TRUE(has(16, 0));
		take(2);
		CU_ASSERT_EQUAL(resize(4), 0);
	}
	closes();
}

static int
ask(struct node *node, enum rcd_ctrl_op op, uint32_t handle, uint32_t depth,
	struct rcd_ctrl_srq_rep *rep)
{
	struct rcd_ctrl_srq_resize_req resize_req = { .handle = handle, .depth = depth };
	struct rcd_ctrl_srq_switch_req switch_req = { .handle = handle };

	return op == RCD_CTRL_SRQ_RESIZE
		? rcd_client_call(&node->client, op, &resize_req, rep, NULL, NULL)
		: rcd_client_call(&node->client, op, &switch_req, NULL, NULL, NULL);
}

/* A ring with so many posted, of a queue that has taken none. @return what taking it says */
static int
offer(struct node *node, struct rcd_ctrl_srq_switch_req req, uint32_t depth, uint32_t posted)
{
	struct rcd_ctrl_srq_rep rep;
	struct rcd_shm_wq *ring;

	MUST(ask(node, RCD_CTRL_SRQ_RESIZE, req.handle, depth, &rep) == 0);
	CU_ASSERT_EQUAL(rep.depth, depth);
	ring = (struct rcd_shm_wq *)(void *)((uint8_t *)node->client.shm + rep.indices);
	rcd_shm_store(&ring->producer, posted);
	return rcd_client_call(&node->client, RCD_CTRL_SRQ_SWITCH, &req, NULL, NULL, NULL);
}

/* Rings that were never taken, are taken twice, or have more in them than they hold. */
static void
what_a_client_says(void)
{
	struct rcd_ctrl_srq_req req = { .depth = 4, .max_sge = 1 };
	struct rcd_ctrl_srq_switch_req offered = { .handle = 0 };
	struct rcd_ctrl_srq_modify_req limit = { .limit = 64 };
	struct rcd_ctrl_srq_rep rep, old;
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
	offered.handle = old.handle;
	CU_ASSERT_EQUAL(offer(&node, offered, 64, 65), -EINVAL);
	CU_ASSERT_EQUAL(offer(&node, offered, 64, 0u - 1), -EINVAL);
	offered.limit = 65; /* not to be set */
	CU_ASSERT_EQUAL(offer(&node, offered, 64, 64), 0);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle, 0, NULL), -EINVAL);
	/* What was refused is not kept for later. */
	offered.set_limit = 1;
	CU_ASSERT_EQUAL(offer(&node, offered, 64, 64), -EINVAL);
	CU_ASSERT_EQUAL(ask(&node, RCD_CTRL_SRQ_SWITCH, old.handle, 0, NULL), -EINVAL);
	offered.limit = UINT32_MAX;
	CU_ASSERT_EQUAL(offer(&node, offered, 64, 64), -EINVAL);
	offered = (struct rcd_ctrl_srq_switch_req){ .handle = old.handle, .set_limit = 2 };
	CU_ASSERT_EQUAL(offer(&node, offered, 64, 64), -EINVAL);
	offered = (struct rcd_ctrl_srq_switch_req){ .handle = old.handle, .reserved = 1 };
	CU_ASSERT_EQUAL(offer(&node, offered, 64, 64), -EINVAL);
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
		RCD_TEST(while_messages_come),
		RCD_TEST(its_limit),
		RCD_TEST(its_event),
		RCD_TEST(what_a_client_says),
	};
	int err;

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	err = rcd_tap_run("srq", tests, sizeof(tests) / sizeof(tests[0]));
	return rig_stop(&rig, FOREVER_MS) == 0 ? err : 1;
}
