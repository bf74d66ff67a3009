/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a rate is of the queue pair alone that it was given to. Who asks for the smallest one, for
 * all queue pairs that it can have and again and again, holds up nobody else, and leaves nothing
 * behind. Method: requests as a hostile client makes them, beside an honest pair. The smallest rate
 * is a kilobit per second, so that what is held back would take hours.
 */
#include <errno.h>

#include "rcd_bytes.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

enum {
	LEN = 64 * 1024,
	PAIRS = 64, /**< of queue pairs between two sessions */
	CHANGES = 2000,
	NONE = 77777, /**< a handle that nothing has */
};

static struct rig rig;
static struct node a, b;

static int
set_rate(struct rcd_cl_qp *qp, uint32_t kbps, uint32_t burst_bytes, uint32_t more)
{
	struct rcd_ctrl_qp_attr attr = { .rate_kbps = kbps, .burst_bytes = burst_bytes };

	return rcd_cl_qp_modify(qp, &attr, RCD_QP_ATTR_RATE | more);
}

static void
open_both(uint32_t type)
{
	node_open(&a, rig.socket, "roce0", type);
	node_open(&b, rig.socket, "roce1", type);
	node_memory(&a, LEN);
	node_memory(&b, LEN);
	node_join(&a, &b, type, 1);
}

static void
close_both(void)
{
	node_close(&a);
	node_close(&b);
}

static void
what_is_refused(void)
{
	static const uint32_t others[] = { RCD_QP_ATTR_DEST_QPN, RCD_QP_ATTR_SQ_PSN,
		RCD_QP_ATTR_QKEY, RCD_QP_ATTR_PATH_MTU, UINT32_C(1) << 26, UINT32_C(1) << 31 };
	struct rcd_ctrl_qp_modify_req req = {
		.handle = NONE, .mask = RCD_QP_ATTR_RATE, .attr = { .rate_kbps = 1 }
	};
	struct rcd_ctrl_qp_attr to = { .state = RCD_QP_ERR };
	struct rcd_ctrl_handle own;
	struct rcd_ctrl_qp_attr now;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT_EQUAL(
		rcd_client_call(&a.client, RCD_CTRL_QP_MODIFY, &req, NULL, NULL, NULL), -ENOENT);
	CU_ASSERT_EQUAL(set_rate(&a.qp, 1, 0, 0), -EINVAL);
	CU_ASSERT_EQUAL(set_rate(&a.qp, 0, UINT32_MAX, 0), -EINVAL);
	node_close(&a);
	open_both(RCD_QP_RC);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(others); i++)
		CU_ASSERT_EQUAL(set_rate(&a.qp, 1, 0, others[i]), -EINVAL);
	own.handle = a.qp.handle;
	CU_ASSERT_EQUAL(rcd_client_call(&a.client, RCD_CTRL_QP_QUERY, &own, &now, NULL, NULL), 0);
	CU_ASSERT_EQUAL(now.rate_kbps, 0);
	CU_ASSERT_EQUAL(set_rate(&a.qp, UINT32_MAX, UINT32_MAX, 0), 0);
	CU_ASSERT_EQUAL(rcd_cl_qp_modify(&a.qp, &to, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(set_rate(&a.qp, 1, 0, 0), -EINVAL);
	close_both();
}

/* Two sessions, and requests of all of their queue pairs that wait. Both arrays have PAIRS */
static void
hold_all(struct rcd_cl_qp *of_a, struct rcd_cl_qp *of_b)
{
	const struct rcd_cl_qp first_a = a.qp, first_b = b.qp;

	for (uint32_t i = 0; i < PAIRS; i++) {
		node_qp(&a, RCD_QP_RC, &of_a[i]);
		node_qp(&b, RCD_QP_RC, &of_b[i]);
		a.qp = of_a[i];
		b.qp = of_b[i];
		node_join(&a, &b, RCD_QP_RC, 1);
		CU_ASSERT_EQUAL(set_rate(&a.qp, 1, 0, 0), 0);
		CU_ASSERT_EQUAL(set_rate(&b.qp, 1, i, 0), 0);
		for (uint32_t k = 0; k < 8; k++)
			CU_ASSERT_EQUAL(
				node_write(&a, &b, k % 2 ? RCD_WR_RDMA_READ : RCD_WR_RDMA_WRITE, 0,
					LEN, k),
				0);
		of_a[i] = a.qp;
		of_b[i] = b.qp;
	}
	a.qp = first_a;
	b.qp = first_b;
}

/* Destroyed, reset, failed, or left to the end of the session, while hours are left to wait. */
static void
all_wait(void)
{
	static struct rcd_cl_qp of_a[PAIRS], of_b[PAIRS];
	struct honest honest = honest_start(&rig);
	struct rcd_cq_slot slot;

	open_both(RCD_QP_RC);
	hold_all(of_a, of_b);
	/* Nor does it hold up the session's own that has none. */
	CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, LEN, 99), 0);
	do
		MUST(node_wait(&a, &slot, FOREVER_MS) >= 0);
	while (slot.qpn != a.qp.qpn);
	CU_ASSERT_EQUAL(slot.wr_id, 99);
	CU_ASSERT_EQUAL(slot.status, RCD_WC_SUCCESS);
	for (uint32_t i = 0; i < PAIRS; i++) {
		struct rcd_ctrl_qp_attr to = { .state = i % 4 == 1 ? RCD_QP_RESET : RCD_QP_ERR };

		if (i % 4 == 0) {
			CU_ASSERT_EQUAL(
				rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, of_a[i].handle), 0);
		} else if (i % 4 < 3) {
			CU_ASSERT_EQUAL(rcd_cl_qp_modify(&of_a[i], &to, RCD_QP_ATTR_STATE), 0);
		}
	}
	close_both();
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	CU_ASSERT_TRUE(rig_contexts(&rig, 0, FOREVER_MS));
}

/* Of both ends, while requests and answers are on their way. */
static void
a_flood_of_changes(void)
{
	static const uint32_t rates[] = { 0, UINT32_MAX, 1, 100000, 0, 0, 1000000 };
	struct honest honest = honest_start(&rig);
	struct rcd_cq_slot slot;

	open_both(RCD_QP_RC);
	for (uint32_t i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(
			node_write(&a, &b, i % 2 ? RCD_WR_RDMA_READ : RCD_WR_RDMA_WRITE, 0, LEN, i),
			0);
	for (uint32_t i = 0; i < RIG_TIMES(CHANGES); i++)
		CU_ASSERT_EQUAL(set_rate(i % 2 ? &a.qp : &b.qp, rates[i % RCD_ARRAY_COUNT(rates)],
					i * 7777777u, 0),
			0);
	CU_ASSERT_EQUAL(set_rate(&a.qp, 0, 0, 0), 0);
	CU_ASSERT_EQUAL(set_rate(&b.qp, 0, 0, 0), 0);
	for (uint32_t i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(slot.wr_id, i);
	}
	close_both();
	CU_ASSERT_EQUAL(honest_end(honest), 0);
}

/* Who answers READs at such a rate costs its peer that queue pair, and no more. */
static void
a_peer_that_hardly_answers(void)
{
	struct rcd_cq_slot slot;

	node_timeout = NODE_TIMEOUT_SHORT;
	open_both(RCD_QP_RC);
	node_timeout = NODE_TIMEOUT;
	CU_ASSERT_EQUAL(set_rate(&b.qp, 1, 0, 0), 0);
	CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_READ, 0, LEN, 1), 0);
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_RETRY_EXC_ERR);
	close_both();
}

static void
the_engine_is_as_before(void)
{
	CU_ASSERT_TRUE(rig_ends_well(&rig));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_is_refused),
		RCD_TEST(all_wait),
		RCD_TEST(a_flood_of_changes),
		RCD_TEST(a_peer_that_hardly_answers),
		RCD_TEST(the_engine_is_as_before),
	};

	rig_start(&rig, NULL);
	return rcd_tap_run("rates", tests, RCD_ARRAY_COUNT(tests));
}
