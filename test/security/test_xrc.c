/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: XRC domains join clients that may share, and nobody else, and what one of them does, or its
 * end, costs the others nothing that is theirs. Method: an engine of the test's own; members of a
 * domain by a file in a folder of the test, a peer that sends to them, strangers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rcd_bytes.h"
#include "rcd_tap.h"
#include "rig.h"

enum {
	NOBODY = 65534,
	DEPTH = 16,
	BYTES = 4096,
	LEN = 100,
	MANY = 20000, /**< more than a client may have of anything here */
};

static struct rig rig;
static char path[] = "/tmp/rcd_test_xrc.XXXXXX";

/* A client with a queue in a domain. */
struct member {
	struct node node;
	uint32_t xrcd;
	struct rcd_cl_srq srq;
	uint32_t number;
};

static int
join_by(struct rcd_client *client, int fd, uint32_t flags, uint32_t *xrcd)
{
	struct rcd_ctrl_xrcd_req req = { .flags = flags };
	struct rcd_ctrl_fds fds = { .fds = { fd }, .count = 1 };
	struct rcd_ctrl_handle rep = { .handle = 0 };
	int err = rcd_client_call(client, RCD_CTRL_XRCD_OPEN, &req, &rep, &fds, NULL);

	*xrcd = rep.handle;
	return err;
}

static int
join(struct rcd_client *client, uint32_t flags, uint32_t *xrcd)
{
	int fd = open(path, O_RDONLY);
	int err;

	MUST(fd >= 0);
	err = join_by(client, fd, flags, xrcd);
	close(fd);
	return err;
}

static int
make_queue(struct member *member)
{
	struct rcd_ctrl_xsrq_req req = {
		.srq = { .pd = member->node.pd, .depth = DEPTH, .max_sge = 1 },
		.xrcd = member->xrcd,
		.cq = member->node.cq.handle
	};

	return rcd_cl_xsrq_create(&member->node.client, &req, &member->srq, &member->number);
}

static void
member_open(struct member *member)
{
	node_open(&member->node, rig.socket, "roce0", RCD_QP_RC);
	node_memory(&member->node, BYTES);
	MUST(join(&member->node.client, RCD_CTRL_O_CREAT, &member->xrcd) == 0);
	MUST(make_queue(member) == 0);
}

static void
member_recv(struct member *member, uint64_t wr_id)
{
	struct rcd_sge sge = { (uintptr_t)member->node.memory, BYTES, { member->node.mr.key } };
	struct rcd_recv_wr wr = { .wr_id = wr_id, .sge_count = 1, .sges = &sge };

	MUST(rcd_cl_post_srq_recv(&member->srq, &wr) == 0);
}

/* @param qpn  0: a new one */
static int
target_of(struct member *member, uint32_t qpn, struct rcd_cl_qp *target)
{
	struct rcd_ctrl_xqp_req req = { .xrcd = member->xrcd, .qpn = qpn };
	struct rcd_ctrl_xqp_rep rep = { .qpn = 0 };
	int err = rcd_client_call(&member->node.client,
		qpn == 0 ? RCD_CTRL_XQP_CREATE : RCD_CTRL_XQP_OPEN, &req, &rep, NULL, NULL);

	*target = (struct rcd_cl_qp){
		.client = &member->node.client, .handle = rep.handle, .qpn = rep.qpn, .target = true
	};
	return err;
}

static void
sender_open(struct node *sender)
{
	node_open(sender, rig.socket, "roce1", RCD_QP_XRC_SEND);
	node_memory(sender, BYTES);
	fill(sender->memory, BYTES, 7);
}

/* A sender, connected with a target that the member makes. */
static void
sender_join(struct node *sender, struct member *member, struct rcd_cl_qp *target)
{
	struct rcd_ctrl_qp_attr attr;

	sender_open(sender);
	MUST(target_of(member, 0, target) == 0);
	attr = node_attr(&member->node, sender, 1);
	MUST(node_connect(target, RCD_QP_XRC_RECV, attr) == 0);
	attr = node_attr(sender, &member->node, 1);
	attr.dest_qpn = target->qpn;
	attr.rnr_retry = 7;
	MUST(node_connect(&sender->qp, RCD_QP_XRC_SEND, attr) == 0);
}

/* @param to  whose memory is written; NULL: SEND. @return the status */
static int
send_to(struct node *sender, uint32_t srqn, const struct member *to)
{
	struct rcd_sge sge = { (uintptr_t)sender->memory, LEN, { sender->mr.key } };
	struct rcd_send_wr wr = {
		.opcode = to != NULL ? RCD_WR_RDMA_WRITE : RCD_WR_SEND,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .srqn = srqn },
	};
	struct rcd_cq_slot slot;

	if (to != NULL) {
		wr.remote.va = (uintptr_t)to->node.memory;
		wr.remote.rkey.val = to->node.mr.key;
	}
	MUST(rcd_cl_post_send(&sender->qp, &wr) == 0);
	rcd_cl_ring(&sender->qp);
	return node_wait(sender, &slot, FOREVER_MS);
}

static bool
receives(struct member *member, struct node *sender)
{
	struct rcd_cq_slot slot;

	memset(member->node.memory, 0, BYTES);
	member_recv(member, 5);
	return send_to(sender, member->number, NULL) == RCD_WC_SUCCESS &&
		node_wait(&member->node, &slot, FOREVER_MS) == RCD_WC_SUCCESS && slot.wr_id == 5 &&
		slot.byte_len == LEN && filled(member->node.memory, LEN, 7);
}

/* A target that one client made delivers to queues and memory of another, each with its keys. */
static void
a_target_for_two_clients(void)
{
	struct member a, b;
	struct rcd_cl_qp target;
	struct node sender;

	member_open(&a);
	member_open(&b);
	sender_join(&sender, &a, &target);
	CU_ASSERT_NOT_EQUAL(a.number, b.number);
	CU_ASSERT_TRUE(receives(&a, &sender));
	CU_ASSERT_TRUE(receives(&b, &sender));
	memset(b.node.memory, 0, BYTES);
	CU_ASSERT_EQUAL(send_to(&sender, b.number, &b), RCD_WC_SUCCESS);
	CU_ASSERT_TRUE(filled(b.node.memory, LEN, 7));
	/* The key of one is none of the other. */
	memset(a.node.memory, 0, BYTES);
	CU_ASSERT_EQUAL(send_to(&sender, b.number, &a), RCD_WC_REM_ACCESS_ERR);
	CU_ASSERT_FALSE(filled(a.node.memory, LEN, 7));
	node_close(&sender);
	node_close(&a.node);
	node_close(&b.node);
}

/* Who made a target goes; it is there until the last has gone who has it open. */
static void
a_target_outlives_its_maker(void)
{
	struct rcd_cl_qp target, shared;
	struct member a, b, c;
	struct node sender;

	member_open(&a);
	member_open(&b);
	sender_join(&sender, &a, &target);
	CU_ASSERT_EQUAL(target_of(&b, target.qpn, &shared), 0);
	CU_ASSERT_EQUAL(shared.qpn, target.qpn);
	CU_ASSERT_TRUE(receives(&a, &sender));
	node_close(&a.node);
	CU_ASSERT_TRUE(rig_contexts(&rig, 2, FOREVER_MS));
	CU_ASSERT_TRUE(receives(&b, &sender));
	/* Its queue went with it. */
	CU_ASSERT_EQUAL(send_to(&sender, a.number, NULL), RCD_WC_REM_INV_REQ_ERR);
	/* With the last one the domain goes: the file stands for a new one. */
	node_close(&b.node);
	CU_ASSERT_TRUE(rig_contexts(&rig, 1, FOREVER_MS));
	member_open(&c);
	CU_ASSERT_EQUAL(target_of(&c, target.qpn, &shared), -ENOENT);
	node_close(&c.node);
	node_close(&sender);
}

/* Another user that has the file open is in a domain of its own. */
static void
another_user(void)
{
	struct rcd_cl_qp target, taken;
	struct member a, stranger;
	struct node sender;
	int fd = open(path, O_RDONLY);

	if (getuid() != 0) {
		rcd_tap_skip("needs root, to become another user");
		return;
	}
	member_open(&a);
	sender_join(&sender, &a, &target);
	MUST(seteuid(NOBODY) == 0);
	node_open(&stranger.node, rig.socket, "roce0", RCD_QP_RC);
	MUST(seteuid(0) == 0);
	CU_ASSERT_EQUAL(join_by(&stranger.node.client, fd, 0, &stranger.xrcd), -EAGAIN);
	CU_ASSERT_EQUAL(join_by(&stranger.node.client, fd, RCD_CTRL_O_CREAT, &stranger.xrcd), 0);
	CU_ASSERT_EQUAL(make_queue(&stranger), 0);
	CU_ASSERT_EQUAL(target_of(&stranger, target.qpn, &taken), -ENOENT);
	/* Nor does the peer reach the stranger by a target of the first. */
	CU_ASSERT_EQUAL(send_to(&sender, stranger.number, NULL), RCD_WC_REM_INV_REQ_ERR);
	node_close(&stranger.node);
	node_close(&sender);
	node_close(&a.node);
	close(fd);
}

static void
what_is_no_file(void)
{
	struct rcd_client *client;
	int fds[4], pair[2];
	struct node node;
	uint32_t xrcd, own;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	client = &node.client;
	MUST(pipe(pair) == 0);
	fds[0] = pair[0];
	fds[1] = eventfd(0, 0);
	fds[2] = open("/dev/null", O_RDONLY);
	fds[3] = client->sock;
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(join_by(client, fds[i], RCD_CTRL_O_CREAT, &xrcd), -EINVAL);
	CU_ASSERT_EQUAL(join(client, 0, &xrcd), -EAGAIN);
	CU_ASSERT_EQUAL(join(client, RCD_CTRL_O_CREAT | RCD_CTRL_O_EXCL, &xrcd), 0);
	CU_ASSERT_EQUAL(join(client, RCD_CTRL_O_CREAT | RCD_CTRL_O_EXCL, &own), -EINVAL);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, xrcd), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, xrcd), -ENOENT);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(pair[1]);
	node_close(&node);
}

/* Each thing names others by numbers, and each of those may be wrong. */
static void
numbers_that_are_not_ones_own(void)
{
	struct rcd_ctrl_qp_modify_req modify = { .mask = RCD_QP_ATTR_STATE };
	struct rcd_ctrl_qp_attr attr;
	struct rcd_cl_qp target, taken;
	struct member a, own, b;
	struct rcd_ctrl_handle rep;

	member_open(&a);
	MUST(target_of(&a, 0, &target) == 0);
	node_open(&b.node, rig.socket, "roce0", RCD_QP_RC);
	b.xrcd = a.xrcd;
	CU_ASSERT_EQUAL(make_queue(&b), -ENOENT);
	CU_ASSERT_EQUAL(target_of(&b, target.qpn, &taken), -ENOENT);
	CU_ASSERT_EQUAL(target_of(&b, 0, &taken), -ENOENT);
	modify.handle = rep.handle = target.handle;
	CU_ASSERT_EQUAL(
		rcd_client_call(&b.node.client, RCD_CTRL_XQP_MODIFY, &modify, NULL, NULL, NULL),
		-ENOENT);
	CU_ASSERT_EQUAL(
		rcd_client_call(&b.node.client, RCD_CTRL_XQP_QUERY, &rep, &attr, NULL, NULL),
		-ENOENT);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&b.node.client, RCD_CTRL_XQP_CLOSE, target.handle), -ENOENT);
	/* In a domain of its own it finds neither, nor a queue pair that is no target. */
	CU_ASSERT_EQUAL(
		rcd_client_call(&b.node.client, RCD_CTRL_XRCD_CREATE, NULL, &rep, NULL, NULL), 0);
	b.xrcd = rep.handle;
	CU_ASSERT_EQUAL(target_of(&b, target.qpn, &taken), -ENOENT);
	CU_ASSERT_EQUAL(target_of(&b, b.node.qp.qpn, &taken), -ENOENT);
	own = b;
	own.node.cq.handle = 4000;
	CU_ASSERT_EQUAL(make_queue(&own), -ENOENT);
	own = b;
	own.node.pd = 4000;
	CU_ASSERT_EQUAL(make_queue(&own), -ENOENT);
	node_close(&b.node);
	node_close(&a.node);
}

static void
what_is_in_use_stays(void)
{
	struct rcd_cl_qp target;
	struct rcd_client *client;
	struct member a;

	member_open(&a);
	client = &a.node.client;
	MUST(target_of(&a, 0, &target) == 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, a.xrcd), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_CQ_DESTROY, a.node.cq.handle), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XQP_CLOSE, target.handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, a.xrcd), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_SRQ_DESTROY, a.srq.handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, a.xrcd), 0);
	node_close(&a.node);
}

/* A member that takes no completions loses its own queue; the target goes on for the others. */
static void
a_member_that_takes_nothing(void)
{
	struct rcd_ctrl_cq_req small = { .depth = 2, .channel = RCD_CTRL_NO_HANDLE };
	struct rcd_cl_qp target;
	struct member a, b;
	struct node sender;
	struct rcd_cl_cq cq;

	member_open(&a);
	member_open(&b);
	MUST(rcd_cl_cq_create(&b.node.client, &small, &cq) == 0);
	MUST(rcd_cl_destroy(&b.node.client, RCD_CTRL_SRQ_DESTROY, b.srq.handle) == 0);
	b.node.cq.handle = cq.handle;
	MUST(make_queue(&b) == 0);
	sender_join(&sender, &a, &target);
	for (int i = 0; i < 8; i++)
		member_recv(&b, 1);
	/* One more than there is room for: it was received, and has nowhere to be told. */
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(send_to(&sender, b.number, NULL), RCD_WC_SUCCESS);
	CU_ASSERT_TRUE(receives(&a, &sender));
	node_close(&sender);
	node_close(&b.node);
	node_close(&a.node);
}

/* All that there is, and then the end of who has it. */
static void
as_many_as_there_are(void)
{
	struct rcd_cl_qp target;
	struct rcd_ctrl_handle rep;
	struct member a, b;
	int err = 0;
	int count;

	member_open(&a);
	member_open(&b);
	for (count = 0; count < MANY && err == 0; count++)
		err = make_queue(&a);
	CU_ASSERT_EQUAL(err, -ENOMEM);
	err = target_of(&a, 0, &target);
	for (count = 0; count < MANY && err == 0; count++)
		err = target_of(&a, target.qpn, &target);
	CU_ASSERT_TRUE(count > 100 && count < MANY);
	for (err = 0, count = 0; count < MANY && err == 0; count++)
		err = rcd_client_call(&a.node.client, RCD_CTRL_XRCD_CREATE, NULL, &rep, NULL, NULL);
	CU_ASSERT_EQUAL(err, -ENOMEM);
	node_close(&a.node);
	CU_ASSERT_TRUE(rig_contexts(&rig, 1, FOREVER_MS));
	CU_ASSERT_EQUAL(target_of(&b, 0, &target), 0);
	node_close(&b.node);
}

/* Queues come and go while a peer sends to them without end. */
static void
queues_go_under_fire(void)
{
	struct rcd_cl_qp target;
	struct member a, b;
	struct node sender;

	for (int round = 0; round < RIG_TIMES(30); round++) {
		struct rcd_sge sge;
		struct rcd_send_wr wr = { .opcode = RCD_WR_SEND, .sge_count = 1, .sges = &sge };

		member_open(&a);
		member_open(&b);
		sender_join(&sender, &a, &target);
		sge = (struct rcd_sge){ (uintptr_t)sender.memory, BYTES, { sender.mr.key } };
		for (int i = 0; i < DEPTH; i++)
			member_recv(&b, 1);
		wr.remote.srqn = b.number;
		for (int i = 0; i < 64; i++)
			MUST(rcd_cl_post_send(&sender.qp, &wr) == 0);
		rcd_cl_ring(&sender.qp);
		if (round % 2 == 0)
			MUST(rcd_cl_destroy(&b.node.client, RCD_CTRL_SRQ_DESTROY, b.srq.handle) ==
				0);
		node_close(&b.node);
		node_close(&a.node);
		node_close(&sender);
	}
}

static void
engine_ends_well(void)
{
	CU_ASSERT_TRUE(rig_ends_well(&rig));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(a_target_for_two_clients),
		RCD_TEST(a_target_outlives_its_maker),
		RCD_TEST(another_user),
		RCD_TEST(what_is_no_file),
		RCD_TEST(numbers_that_are_not_ones_own),
		RCD_TEST(what_is_in_use_stays),
		RCD_TEST(a_member_that_takes_nothing),
		RCD_TEST(as_many_as_there_are),
		RCD_TEST(queues_go_under_fire),
		RCD_TEST(engine_ends_well),
	};
	int fd = mkstemp(path);
	int failed;

	MUST(fd >= 0);
	close(fd);
	rig_start(&rig, NULL);
	failed = rcd_tap_run("xrc", tests, RCD_ARRAY_COUNT(tests));
	unlink(path);
	return failed;
}
