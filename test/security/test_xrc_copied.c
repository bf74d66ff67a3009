/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a target of XRC reaches memory that its members copy, of one member at a time, and nothing
 * that one of them does with its copies, or leaves undone, costs another one more than the target
 * that they share. Method: an engine of the test's own; two members of a domain whose copies the
 * test makes, one by one, and who sends to them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copyq.h"
#include "member.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"

#define QUIET_MS 30 /**< for how long nothing is to be seen */

/** A member with memory that it copies. */
struct copier {
	struct member member;
	struct rcd_copyq *queue;
	uint32_t done;
	uint8_t *memory;
	uint32_t key;
};

static char path[] = "/tmp/rcd_test_xrc_copied.XXXXXX";
static struct copier a, b;
static struct node sender;
static struct rcd_cl_qp target;
static struct copier *current;

/* Copies are this one's from now on. */
static void
with(struct copier *copier)
{
	if (current != NULL)
		current->done = done;
	current = copier;
	queue = copier->queue;
	done = copier->done;
}

static void
copier_open(struct copier *copier, bool copies_first)
{
	struct rcd_client *client = &copier->member.node.client;
	struct rcd_ctrl_copy_rep rep;

	copier->done = 0;
	copier->memory = malloc(LEN);
	MUST(copier->memory != NULL);
	if (copies_first) {
		node_open(&copier->member.node, rig.socket, "roce0", RCD_QP_RC);
		node_memory(&copier->member.node, MEMBER_BYTES);
	} else {
		member_open(&copier->member, &rig, "roce0", path);
	}
	MUST(rcd_client_call(client, RCD_CTRL_COPY_OPEN, NULL, &rep, NULL, NULL) == 0);
	copier->queue = (struct rcd_copyq *)(void *)((uint8_t *)client->shm + rep.offset);
	MUST(reg_raw(&copier->member.node, copier->memory, LEN, &copier->key) == 0);
	if (!copies_first)
		return;
	MUST(member_join(client, path, RCD_CTRL_O_CREAT, &copier->member.xrcd) == 0);
	MUST(member_queue(&copier->member) == 0);
}

/* Both, and a sender that is connected with a target of the first. */
static void
both(void)
{
	copier_open(&a, false);
	/* There before anybody in its domain has copies, or behind that: it is the same. */
	MUST(member_target(&a.member, 0, &target) == 0);
	copier_open(&b, true);
	node_open(&sender, rig.socket, "roce1", RCD_QP_XRC_SEND);
	node_memory(&sender, LEN);
	member_connect(&a.member, &target, &sender);
	with(&a);
}

static void
leave(struct copier *copier)
{
	node_close(&copier->member.node);
	free(copier->memory);
	if (current == copier)
		current = NULL;
}

static void
all_leave(void)
{
	node_close(&sender);
	leave(&a);
	leave(&b);
}

/* Ask something of a member, by its queue. */
static void
ask(uint8_t opcode, const struct copier *of, uint32_t len)
{
	struct rcd_sge sge = { (uintptr_t)sender.memory, len, { sender.mr.key } };
	struct rcd_send_wr wr = { .opcode = opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.imm = 0x1234,
		.remote = { .va = (uintptr_t)of->memory,
			.rkey = { of->key },
			.compare_or_add = 7,
			.srqn = of->member.number } };

	MUST(rcd_cl_post_send(&sender.qp, &wr) == 0);
	rcd_cl_ring(&sender.qp);
}

static void
receive(struct copier *copier, uint64_t wr_id)
{
	struct rcd_sge sge = { (uintptr_t)copier->memory, LEN, { copier->key } };
	struct rcd_recv_wr wr = { .wr_id = wr_id, .sge_count = 1, .sges = &sge };

	MUST(rcd_cl_post_srq_recv(&copier->member.srq, &wr) == 0);
}

static int
state_of(const struct member *member, const struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_handle req = { .handle = qp->handle };
	struct rcd_ctrl_qp_attr attr;

	MUST(rcd_client_call((struct rcd_client *)(uintptr_t)&member->node.client,
		     RCD_CTRL_XQP_QUERY, &req, &attr, NULL, NULL) == 0);
	return attr.state;
}

/* Somebody else to send. */
static void
connect_anew(struct copier *copier, struct rcd_cl_qp *to)
{
	node_close(&sender);
	node_open(&sender, rig.socket, "roce1", RCD_QP_XRC_SEND);
	node_memory(&sender, LEN);
	member_connect(&copier->member, to, &sender);
}

/* Another target is as good as new. */
static void
goes_on(struct copier *copier)
{
	struct rcd_cl_qp fresh;
	struct rcd_cq_slot slot;

	MUST(member_target(&copier->member, 0, &fresh) == 0);
	connect_anew(copier, &fresh);
	with(copier);
	fill(sender.memory, 5000, 3);
	memset(copier->memory, 0, 5000);
	ask(RCD_WR_RDMA_WRITE, copier, 5000);
	CU_ASSERT_EQUAL(make_until(&sender, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(filled(copier->memory, 5000, 3));
}

static void
nothing_before_it_is_in_place(void)
{
	static const uint8_t writes[] = { RCD_WR_RDMA_WRITE, RCD_WR_SEND,
		RCD_WR_RDMA_WRITE_WITH_IMM };
	struct rcd_cq_slot slot;

	both();
	for (uint8_t i = 0; i < sizeof(writes); i++) {
		bool told = writes[i] != RCD_WR_RDMA_WRITE;

		fill(sender.memory, 3000, i + 1u);
		memset(a.memory, 0, 3000);
		if (told)
			receive(&a, 40u + i);
		ask(writes[i], &a, 3000);
		CU_ASSERT(jobs(1));
		CU_ASSERT_EQUAL(node_wait(&sender, &slot, QUIET_MS), -ETIMEDOUT);
		CU_ASSERT_EQUAL(node_wait(&a.member.node, &slot, 1), -ETIMEDOUT);
		CU_ASSERT_EQUAL(make_until(&sender, &slot), RCD_WC_SUCCESS);
		CU_ASSERT(filled(a.memory, 3000, i + 1u));
		if (!told)
			continue;
		CU_ASSERT_EQUAL(make_until(&a.member.node, &slot), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(slot.wr_id, 40u + i);
		CU_ASSERT_EQUAL(slot.qpn, target.qpn);
	}
	fill(a.memory, LEN, 9);
	ask(RCD_WR_RDMA_READ, &a, LEN);
	CU_ASSERT(jobs(1));
	CU_ASSERT_EQUAL(node_wait(&sender, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(make_until(&sender, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(filled(sender.memory, LEN, 9));
	memset(a.memory, 0, 8);
	ask(RCD_WR_FETCH_ADD, &a, 8);
	CU_ASSERT(jobs(1));
	CU_ASSERT_EQUAL(make_until(&sender, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(a.memory[0], 7);
	all_leave();
}

/* What is for another member waits until the first one is done. */
static void
one_member_at_a_time(void)
{
	static const uint8_t asked[] = { RCD_WR_RDMA_WRITE, RCD_WR_RDMA_READ };
	struct rcd_cq_slot slot;

	both();
	for (size_t i = 0; i < sizeof(asked); i++) {
		fill(a.memory, 3000, 1);
		fill(b.memory, 3000, 2);
		fill(sender.memory, 3000, 3);
		ask(asked[i], &a, 3000);
		CU_ASSERT(jobs(1));
		ask(asked[i], &b, 3000);
		CU_ASSERT_EQUAL(node_wait(&sender, &slot, QUIET_MS), -ETIMEDOUT);
		with(&b);
		CU_ASSERT_EQUAL(rcd_shm_load(&queue->posted), done);
		with(&a);
		CU_ASSERT_EQUAL(make_until(&sender, &slot), RCD_WC_SUCCESS);
		with(&b);
		CU_ASSERT_EQUAL(make_until(&sender, &slot), RCD_WC_SUCCESS);
		CU_ASSERT(asked[i] != RCD_WR_RDMA_WRITE || filled(b.memory, 3000, 3));
		CU_ASSERT(asked[i] != RCD_WR_RDMA_READ || filled(sender.memory, 3000, 2));
		with(&a);
	}
	all_leave();
}

static void
a_copy_that_fails(void)
{
	static const struct {
		uint8_t opcode;
		int status;
	} rows[] = { { RCD_WR_RDMA_WRITE, RCD_WC_REM_ACCESS_ERR },
		{ RCD_WR_RDMA_READ, RCD_WC_REM_ACCESS_ERR }, { RCD_WR_SEND, RCD_WC_REM_OP_ERR } };
	struct rcd_cq_slot slot;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		both();
		receive(&a, 5);
		ask(rows[i].opcode, &a, 3000);
		CU_ASSERT(jobs(1));
		make(EFAULT);
		CU_ASSERT_EQUAL(make_until(&sender, &slot), rows[i].status);
		CU_ASSERT_EQUAL(state_of(&a.member, &target), RCD_QP_ERR);
		if (rows[i].opcode == RCD_WR_SEND) {
			CU_ASSERT_EQUAL(make_until(&a.member.node, &slot), RCD_WC_LOC_PROT_ERR);
			CU_ASSERT_EQUAL(slot.wr_id, 5);
		}
		goes_on(&b);
		goes_on(&a);
		all_leave();
	}
}

/* It makes none of its copies, and goes: the shared target is gone, and nothing else. */
static void
a_member_that_copies_nothing(void)
{
	static const uint8_t asked[] = { RCD_WR_RDMA_WRITE, RCD_WR_RDMA_READ, RCD_WR_SEND,
		RCD_WR_FETCH_ADD };
	struct rcd_cl_qp shared;
	struct rcd_cq_slot slot;

	for (size_t i = 0; i < sizeof(asked); i++) {
		both();
		MUST(member_target(&b.member, target.qpn, &shared) == 0);
		receive(&a, 5);
		ask(asked[i], &a, asked[i] == RCD_WR_FETCH_ADD ? 8 : 3000);
		CU_ASSERT(jobs(1));
		leave(&a);
		CU_ASSERT(rig_contexts(&rig, 2, FOREVER_MS));
		/* It has not been told that anything was done. */
		CU_ASSERT(node_wait(&sender, &slot, FOREVER_MS) > RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(state_of(&b.member, &shared), RCD_QP_ERR);
		goes_on(&b);
		node_close(&sender);
		leave(&b);
	}
}

/* More is asked for than there is room for, and who is to copy it goes. */
static void
nobody_waits_for_who_is_gone(void)
{
	struct rcd_cl_qp shared;
	struct rcd_cq_slot slot;

	both();
	MUST(member_target(&b.member, target.qpn, &shared) == 0);
	for (uint32_t i = 0; i < 4; i++)
		ask(RCD_WR_RDMA_READ, &a, LEN);
	CU_ASSERT(jobs(200));
	CU_ASSERT_EQUAL(node_wait(&sender, &slot, QUIET_MS), -ETIMEDOUT);
	leave(&a);
	CU_ASSERT(rig_contexts(&rig, 2, FOREVER_MS));
	CU_ASSERT(node_wait(&sender, &slot, FOREVER_MS) > RCD_WC_SUCCESS);
	goes_on(&b);
	node_close(&sender);
	leave(&b);
}

/* A target begins anew, or goes: what it had under way is no success of anybody's. */
static void
a_target_that_goes(void)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_RESET };
	struct rcd_cq_slot slot;

	for (int close = 0; close <= 1; close++) {
		both();
		receive(&a, 5);
		ask(RCD_WR_SEND, &a, 3000);
		ask(RCD_WR_RDMA_WRITE, &a, 3000);
		CU_ASSERT(jobs(1));
		CU_ASSERT_EQUAL(close ? rcd_cl_destroy(&a.member.node.client, RCD_CTRL_XQP_CLOSE,
						target.handle)
				      : rcd_cl_qp_modify(&target, &attr, RCD_QP_ATTR_STATE),
			0);
		CU_ASSERT_NOT_EQUAL(make_until(&a.member.node, &slot), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(slot.wr_id, 5);
		goes_on(&a);
		goes_on(&b);
		all_leave();
	}
}

/* A target waited for room of a member that copies nothing: begun anew it is another one's. */
static void
a_target_that_waited(void)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_RESET };
	struct rcd_cl_qp waiting;
	struct rcd_cq_slot slot;

	both();
	for (uint32_t i = 0; i < 4; i++)
		ask(RCD_WR_RDMA_READ, &a, LEN);
	CU_ASSERT(jobs(200));
	MUST(member_target(&b.member, 0, &waiting) == 0);
	connect_anew(&b, &waiting);
	ask(RCD_WR_RDMA_READ, &a, 3000);
	CU_ASSERT_EQUAL(node_wait(&sender, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(rcd_cl_qp_modify(&waiting, &attr, RCD_QP_ATTR_STATE), 0);
	connect_anew(&b, &waiting);
	with(&b);
	fill(b.memory, 3000, 4);
	ask(RCD_WR_RDMA_READ, &b, 3000);
	CU_ASSERT_EQUAL(make_until(&sender, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(filled(sender.memory, 3000, 4));
	all_leave();
}

/* An index that can't be: of who says that, all copies fail. */
static void
a_member_that_lies(void)
{
	struct rcd_cq_slot slot;

	both();
	ask(RCD_WR_RDMA_WRITE, &a, 3000);
	CU_ASSERT(jobs(1));
	rcd_shm_store(&queue->done, done + 5000);
	CU_ASSERT(node_wait(&sender, &slot, FOREVER_MS) > RCD_WC_SUCCESS);
	goes_on(&b);
	/* A new target reaches nothing of it either, and that is an error like any other. */
	ask(RCD_WR_RDMA_WRITE, &a, 3000);
	CU_ASSERT(node_wait(&sender, &slot, FOREVER_MS) > RCD_WC_SUCCESS);
	goes_on(&b);
	ask(RCD_WR_RDMA_READ, &a, 3000);
	CU_ASSERT(node_wait(&sender, &slot, FOREVER_MS) > RCD_WC_SUCCESS);
	goes_on(&b);
	all_leave();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(nothing_before_it_is_in_place),
		RCD_TEST(one_member_at_a_time),
		RCD_TEST(a_copy_that_fails),
		RCD_TEST(a_member_that_copies_nothing),
		RCD_TEST(nobody_waits_for_who_is_gone),
		RCD_TEST(a_target_that_goes),
		RCD_TEST(a_target_that_waited),
		RCD_TEST(a_member_that_lies),
		{ "nothing_is_left", copyq_ends },
	};
	int failed;

	/* Copies are waited for as long as a busy machine takes: 2 s, eight times. */
	node_timeout = 19;
	member_file(path);
	copyq_begins();
	failed = rcd_tap_run("xrc_copied", tests, RCD_ARRAY_COUNT(tests));
	unlink(path);
	return failed;
}
