/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: completions of a program's queue pairs come to a node of its own: each once, in order, more
 * than a walk takes, and as long as there is a device; nodes that would go on with what is no more,
 * or on another lcore, are refused.
 *
 * Method: queue pairs on the embedded wire, each end on an lcore of its own, with a graph that the
 * test walks.
 *
 *     rocade_poll
 *     rocade_cq-a ── test_done        and likewise with rocade_cq-b
 */
#include <errno.h>
#include <rte_common.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <rte_lcore.h>
#include <stdio.h>
#include <string.h>

#include "local_rig.h"
#include "rcd_clock.h"
#include "rcd_cq_slot.h"
#include "rcd_engine.h"
#include "rcd_limits.h"
#include "rcd_node.h"
#include "rcd_node_cq.h"
#include "rcd_number.h"
#include "rcd_poll.h"
#include "rcd_tap.h"

#define DONE_MAX 4096

static struct side a, b;
static struct rte_graph *graphs[2];
static const char *const names[2] = { "graph-a", "graph-b" };

/* What test_done was given. */
static struct {
	uint32_t count, calls, failed;
	uint64_t wr_ids[DONE_MAX];
} done;

static uint16_t
done_process(struct rte_graph *of, struct rte_node *node, void **objs, uint16_t count)
{
	(void)of;
	(void)node;
	done.calls++;
	for (uint16_t i = 0; i < count; i++) {
		const struct rcd_cq_slot *slot = objs[i];

		if (done.count < DONE_MAX)
			done.wr_ids[done.count] = slot->wr_id;
		done.failed += slot->status != RCD_WC_SUCCESS;
		done.count++;
	}
	return count;
}

static struct rte_node_register done_reg = { .name = "test_done", .process = done_process };

RTE_NODE_REGISTER(done_reg)

/* A graph of an lcore's work, and of a queue's completions. @return whether it was made */
static bool
create(uint32_t index)
{
	const char *patterns[] = { "rocade_poll", index == 0 ? "rocade_cq-a" : "rocade_cq-b" };
	struct rte_graph_param param = { .socket_id = (int)rte_socket_id(),
		.nb_node_patterns = RTE_DIM(patterns),
		.node_patterns = patterns };

	if (rte_graph_create(names[index], &param) == RTE_GRAPH_ID_INVALID)
		return false;
	graphs[index] = rte_graph_lookup(names[index]);
	return true;
}

static void
destroy(uint32_t index)
{
	CU_ASSERT_EQUAL(rte_graph_destroy(rte_graph_from_name(names[index])), 0);
	graphs[index] = NULL;
}

static int
add(struct side *side, const char *name, const char *next)
{
	return rcd_node_cq_add(&(struct rcd_node_cq_conf){
		.cq = side != NULL ? side->cq : NULL, .name = name, .next = next });
}

static void
walk(void)
{
	for (uint32_t i = 0; i < RTE_DIM(graphs); i++)
		if (graphs[i] != NULL)
			rte_graph_walk(graphs[i]);
}

static void
refused(void)
{
	char name[RTE_NODE_NAMESIZE];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - sizeof("rocade_cq-") + 1] = '\0';
	CU_ASSERT_EQUAL(add(NULL, "a", "test_done"), -EINVAL);
	CU_ASSERT_EQUAL(add(&a, NULL, "test_done"), -EINVAL);
	CU_ASSERT_EQUAL(add(&a, "", "test_done"), -EINVAL);
	CU_ASSERT_EQUAL(add(&a, "a", NULL), -EINVAL);
	CU_ASSERT_EQUAL(add(&a, name, "test_done"), -EINVAL);
	CU_ASSERT_EQUAL(add(&a, "a", "nowhere"), -ENODEV);
	CU_ASSERT_EQUAL(rcd_node_cq_del("a"), -ENOENT);
	CU_ASSERT_EQUAL(rcd_node_cq_del(""), -ENOENT);
	CU_ASSERT_EQUAL(rcd_node_cq_del(name), -ENOENT);
	/* The longest. */
	name[strlen(name) - 1] = '\0';
	CU_ASSERT_EQUAL(add(&a, name, "test_done"), 0);
	CU_ASSERT_EQUAL(add(&a, "a", "test_done"), -EEXIST);
	CU_ASSERT_EQUAL(add(&b, name, "test_done"), -EEXIST);
	CU_ASSERT_EQUAL(rcd_node_cq_del(name), 0);
	CU_ASSERT_EQUAL(rcd_node_cq_del(name), -ENOENT);
}

/* A graph of nobody, or of the lcore that the queue is not on, is not made. */
static void
bound(void)
{
	const uint32_t lcores[] = { rcd_local_cq_lcore(a.cq), rcd_local_cq_lcore(b.cq) };

	CU_ASSERT_EQUAL(lcores[0], rcd_local_lcore(a.local));
	CU_ASSERT_NOT_EQUAL_FATAL(lcores[0], lcores[1]);
	CU_ASSERT_EQUAL_FATAL(add(&a, "a", "test_done"), 0);
	CU_ASSERT_EQUAL_FATAL(add(&b, "b", "test_done"), 0);
	for (uint32_t i = 0; i < 2; i++) {
		CU_ASSERT(!create(i));
		CU_ASSERT_EQUAL(
			rcd_node_bind(names[i], rcd_engine_lcore(engine, 1 - lcores[i])), 0);
		CU_ASSERT(!create(i));
		CU_ASSERT_EQUAL(rcd_node_unbind(names[i]), 0);
		CU_ASSERT_EQUAL(rcd_node_bind(names[i], rcd_engine_lcore(engine, lcores[i])), 0);
		CU_ASSERT_FATAL(create(i));
	}
	/* The graphs do. */
	local_polls = false;
	local_also = walk;
}

/* What a graph holds is not taken from under it. */
static void
held(void)
{
	CU_ASSERT_EQUAL(rcd_node_cq_del("a"), -EBUSY);
	CU_ASSERT_EQUAL(rcd_node_cq_del("b"), -EBUSY);
	CU_ASSERT_EQUAL(rcd_local_cq_destroy(a.cq), -EBUSY);
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(rcd_node_unbind(names[i]), -EBUSY);
}

static void
post(struct side *from, struct side *to, uint64_t wr_id)
{
	struct rcd_sge sge;
	struct rcd_send_wr wr = side_wr(from, to, RCD_WR_RDMA_WRITE, &sge, 0, 64);

	wr.wr_id = wr_id;
	CU_ASSERT_EQUAL_FATAL(rcd_local_post_send(from->qp, &wr, NULL), 0);
}

/* Each completion once, in the order of its queue, whichever that is. */
static void
delivered(void)
{
	uint64_t next[2] = { 0, 0 };

	for (uint64_t round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < SIDE_DEPTH; i++) {
			post(&a, &b, round * SIDE_DEPTH + i);
			post(&b, &a, 1000000 + round * SIDE_DEPTH + i);
		}
		rcd_local_ring(a.qp);
		rcd_local_ring(b.qp);
		LOCAL_UNTIL(done.count >= 2 * SIDE_DEPTH * (round + 1));
	}
	CU_ASSERT_EQUAL(done.count, 2 * SIDE_DEPTH * 20);
	CU_ASSERT_EQUAL(done.failed, 0);
	for (uint32_t i = 0; i < RTE_MIN(done.count, (uint32_t)DONE_MAX); i++) {
		uint64_t which = done.wr_ids[i] / 1000000;

		CU_ASSERT_EQUAL_FATAL(done.wr_ids[i] % 1000000, next[which]);
		next[which]++;
	}
	CU_ASSERT_EQUAL(rte_graph_node_get_by_name(names[0], "rocade_cq-a")->total_objs, next[0]);
	CU_ASSERT_EQUAL(rte_graph_node_get_by_name(names[1], "rocade_cq-b")->total_objs, next[1]);
}

/* What a walk does not take waits in the queue, and none is lost. */
static void
more_than_a_walk(void)
{
	struct rcd_local_qp *more[6], *first = a.qp;
	uint32_t before, most = 0, turns = 0;

	for (size_t i = 0; i < RTE_DIM(more); i++) {
		CU_ASSERT_EQUAL_FATAL(side_qp(&a, RCD_QP_RC, &more[i]), 0);
		/* Flushed at once: they complete in a round or two. */
		CU_ASSERT_EQUAL_FATAL(
			side_connect(more[i], side_attr(&a, b.gids.gids[b.gid].raw, 0x777)), 0);
	}
	before = done.count;
	done.failed = 0;
	for (size_t i = 0; i < RTE_DIM(more); i++) {
		const struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_ERR };

		a.qp = more[i];
		for (uint64_t j = 0; j < SIDE_DEPTH; j++)
			post(&a, &b, j);
		rcd_local_ring(a.qp);
		CU_ASSERT_EQUAL(rcd_local_qp_modify(more[i], &attr, RCD_QP_ATTR_STATE), 0);
	}
	a.qp = first;
	/* All are complete before one is taken. */
	for (int i = 0; i < 50; i++)
		rcd_lcore_poll(rcd_engine_lcore(engine, rcd_local_lcore(a.local)), rcd_clock_ns(),
			RCD_BURST_MAX);
	while (done.count - before < RTE_DIM(more) * SIDE_DEPTH && turns++ < 1000) {
		uint32_t was = done.count;

		local_turn();
		most = RTE_MAX(most, done.count - was);
	}
	CU_ASSERT_EQUAL(most, RTE_GRAPH_BURST_SIZE);
	CU_ASSERT_EQUAL(done.failed, RTE_DIM(more) * SIDE_DEPTH);
	for (int i = 0; i < 20; i++)
		local_turn();
	CU_ASSERT_EQUAL(done.count - before, RTE_DIM(more) * SIDE_DEPTH);
	for (size_t i = 0; i < RTE_DIM(more); i++)
		rcd_local_qp_destroy(more[i]);
}

/* A device that goes ends nothing but its own. */
static void
device_gone(void)
{
	struct rcd_ctrl_event event = { .type = 0 };
	uint32_t before;

	post(&a, &b, 7);
	rcd_local_ring(a.qp);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "w0"), 0);
	before = done.count;
	for (int i = 0; i < 20; i++)
		local_turn();
	CU_ASSERT_EQUAL(done.count, before);
	rcd_local_qp_destroy(a.qp);
	CU_ASSERT_EQUAL(rcd_local_cq_destroy(a.cq), -EBUSY);
	while (rcd_local_event(a.local, &event) && event.type != RCD_EVENT_DEVICE_FATAL)
		;
	CU_ASSERT_EQUAL(event.type, RCD_EVENT_DEVICE_FATAL);
}

/* A node without a queue has nothing to give, and can have one again. */
static void
given_again(void)
{
	uint32_t before = done.count;

	destroy(1);
	destroy(0);
	CU_ASSERT_EQUAL(rcd_node_cq_del("b"), 0);
	CU_ASSERT_FATAL(create(1));
	CU_ASSERT_EQUAL(add(&b, "b", "test_done"), -EBUSY);
	walk();
	destroy(1);
	CU_ASSERT_EQUAL(done.count, before);
	CU_ASSERT_EQUAL(add(&b, "b", "test_done"), 0);
	CU_ASSERT(create(1));
	walk();
	destroy(1);
	CU_ASSERT_EQUAL(rcd_node_cq_del("a"), 0);
	CU_ASSERT_EQUAL(rcd_node_cq_del("b"), 0);
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(rcd_node_unbind(names[i]), 0);
	local_also = NULL;
	local_polls = true;
}

static void
begun(void)
{
	/* There are workers, and this thread polls for them. */
	local_polls = true;
	local_begin(NULL);
	CU_ASSERT_EQUAL_FATAL(rcd_engine_lcore_count(engine), 2);
	side_pair(&a, &b, RCD_QP_RC);
}

static void
ended(void)
{
	side_close(&a);
	side_close(&b);
	local_end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(begun),
		RCD_TEST(refused),
		RCD_TEST(bound),
		RCD_TEST(held),
		RCD_TEST(delivered),
		RCD_TEST(more_than_a_walk),
		RCD_TEST(device_gone),
		RCD_TEST(given_again),
		RCD_TEST(ended),
	};

	local_eal("0@0,1@0,2@0");
	return rcd_tap_run("graph_cq", tests, RTE_DIM(tests));
}
