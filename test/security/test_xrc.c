/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: XRC domains join clients that may share, and nobody else, and what one of them does, or its
 * end, costs the others nothing that is theirs. Method: an engine of the test's own; members of a
 * domain by a file in a folder of the test, a peer that sends to them, strangers.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "member.h"
#include "rcd_bytes.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"

enum {
	NOBODY = 65534,
	MANY = 20000, /**< more than a client may have of anything here */
};

/** Times that a target can be open. */
#define OPENS 256

/** Bytes of memory that is taken away. */
#define TAKEN (UINT64_C(2) << 20)

static struct rig rig;
static char path[] = "/tmp/rcd_test_xrc.XXXXXX";

static int
join(struct rcd_client *client, uint32_t flags, uint32_t *xrcd)
{
	return member_join(client, path, flags, xrcd);
}

static void
open_member(struct member *member)
{
	member_open(member, &rig, "roce0", path);
}

/* A sender, connected with a target that the member makes. */
static void
sender_join(struct node *sender, struct member *member, struct rcd_cl_qp *target)
{
	member_sender_open(sender, &rig, "roce1");
	MUST(member_target(member, 0, target) == 0);
	member_connect(member, target, sender);
}

/* Whether an event comes, behind others. */
static bool
told(const struct member *member, uint32_t type)
{
	struct pollfd wait = { .fd = member->node.client.events_fd, .events = POLLIN };
	struct rcd_ctrl_event event;

	while (poll(&wait, 1, FOREVER_MS) == 1 &&
		rcd_ctrl_recv_event(wait.fd, &event) == sizeof(event))
		if (event.type == type)
			return true;
	return false;
}

/* A target that one client made delivers to queues and memory of another, each with its keys. */
static void
a_target_for_two_clients(void)
{
	struct member a, b;
	struct rcd_cl_qp target;
	struct node sender;

	open_member(&a);
	open_member(&b);
	sender_join(&sender, &a, &target);
	CU_ASSERT_NOT_EQUAL(a.number, b.number);
	CU_ASSERT_TRUE(member_receives(&a, &sender));
	CU_ASSERT_TRUE(member_receives(&b, &sender));
	memset(b.node.memory, 0, MEMBER_BYTES);
	CU_ASSERT_EQUAL(member_send(&sender, b.number, &b), RCD_WC_SUCCESS);
	CU_ASSERT_TRUE(filled(b.node.memory, MEMBER_LEN, 7));
	/* The key of one is none of the other. */
	memset(a.node.memory, 0, MEMBER_BYTES);
	CU_ASSERT_EQUAL(member_send(&sender, b.number, &a), RCD_WC_REM_ACCESS_ERR);
	CU_ASSERT_FALSE(filled(a.node.memory, MEMBER_LEN, 7));
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

	open_member(&a);
	open_member(&b);
	sender_join(&sender, &a, &target);
	CU_ASSERT_EQUAL(member_target(&b, target.qpn, &shared), 0);
	CU_ASSERT_EQUAL(shared.qpn, target.qpn);
	CU_ASSERT_TRUE(member_receives(&a, &sender));
	node_close(&a.node);
	CU_ASSERT_TRUE(rig_contexts(&rig, 2, FOREVER_MS));
	CU_ASSERT_TRUE(member_receives(&b, &sender));
	/* Its queue went with it. */
	CU_ASSERT_EQUAL(member_send(&sender, a.number, NULL), RCD_WC_REM_INV_REQ_ERR);
	/* With the last one the domain goes: the file stands for a new one. */
	node_close(&b.node);
	CU_ASSERT_TRUE(rig_contexts(&rig, 1, FOREVER_MS));
	open_member(&c);
	CU_ASSERT_EQUAL(member_target(&c, target.qpn, &shared), -ENOENT);
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
	open_member(&a);
	sender_join(&sender, &a, &target);
	MUST(seteuid(NOBODY) == 0);
	node_open(&stranger.node, rig.socket, "roce0", RCD_QP_RC);
	MUST(seteuid(0) == 0);
	CU_ASSERT_EQUAL(member_join_by(&stranger.node.client, fd, 0, &stranger.xrcd), -EAGAIN);
	CU_ASSERT_EQUAL(
		member_join_by(&stranger.node.client, fd, RCD_CTRL_O_CREAT, &stranger.xrcd), 0);
	CU_ASSERT_EQUAL(member_queue(&stranger), 0);
	CU_ASSERT_EQUAL(member_target(&stranger, target.qpn, &taken), -ENOENT);
	/* Nor does the peer reach the stranger by a target of the first. */
	CU_ASSERT_EQUAL(member_send(&sender, stranger.number, NULL), RCD_WC_REM_INV_REQ_ERR);
	node_close(&stranger.node);
	node_close(&sender);
	node_close(&a.node);
	close(fd);
}

static void
what_is_no_file(void)
{
	struct rcd_ctrl_xrcd_req reserved = { .flags = RCD_CTRL_O_CREAT, .reserved = 1 };
	struct rcd_ctrl_fds file = { .fds = { open(path, O_RDONLY) }, .count = 1 };
	int by_name = open(path, O_PATH);
	struct rcd_ctrl_handle rep;
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
		CU_ASSERT_EQUAL(member_join_by(client, fds[i], RCD_CTRL_O_CREAT, &xrcd), -EINVAL);
	/* Nobody was asked whether the file may be read. */
	CU_ASSERT_EQUAL(member_join_by(client, by_name, RCD_CTRL_O_CREAT, &xrcd), -EBADF);
	CU_ASSERT_EQUAL(join(client, RCD_CTRL_O_CREAT | 4, &xrcd), -EINVAL);
	CU_ASSERT_EQUAL(
		rcd_client_call(client, RCD_CTRL_XRCD_OPEN, &reserved, &rep, &file, NULL), -EINVAL);
	CU_ASSERT_EQUAL(join(client, 0, &xrcd), -EAGAIN);
	CU_ASSERT_EQUAL(join(client, RCD_CTRL_O_CREAT | RCD_CTRL_O_EXCL, &xrcd), 0);
	CU_ASSERT_EQUAL(join(client, RCD_CTRL_O_CREAT | RCD_CTRL_O_EXCL, &own), -EINVAL);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, xrcd), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, xrcd), -ENOENT);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(pair[1]);
	close(by_name);
	close(file.fds[0]);
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

	open_member(&a);
	MUST(member_target(&a, 0, &target) == 0);
	node_open(&b.node, rig.socket, "roce0", RCD_QP_RC);
	b.xrcd = a.xrcd;
	CU_ASSERT_EQUAL(member_queue(&b), -ENOENT);
	CU_ASSERT_EQUAL(member_target(&b, target.qpn, &taken), -ENOENT);
	CU_ASSERT_EQUAL(member_target(&b, 0, &taken), -ENOENT);
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
	CU_ASSERT_EQUAL(member_target(&b, target.qpn, &taken), -ENOENT);
	CU_ASSERT_EQUAL(member_target(&b, b.node.qp.qpn, &taken), -ENOENT);
	own = b;
	own.node.cq.handle = 4000;
	CU_ASSERT_EQUAL(member_queue(&own), -ENOENT);
	own = b;
	own.node.pd = 4000;
	CU_ASSERT_EQUAL(member_queue(&own), -ENOENT);
	node_close(&b.node);
	node_close(&a.node);
}

static void
what_is_in_use_stays(void)
{
	struct rcd_cl_qp target;
	struct rcd_client *client;
	struct member a;

	open_member(&a);
	client = &a.node.client;
	MUST(member_target(&a, 0, &target) == 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, a.xrcd), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_CQ_DESTROY, a.node.cq.handle), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XQP_CLOSE, target.handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, a.xrcd), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_SRQ_DESTROY, a.srq.handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(client, RCD_CTRL_XRCD_CLOSE, a.xrcd), 0);
	node_close(&a.node);
}

/* What it receives is told by a completion queue of its own. */
static void
a_queue_for_targets_alone(void)
{
	struct rcd_ctrl_qp_req req = { .sq_depth = 1, .max_send_sge = 1 };
	struct rcd_cl_qp qp;
	struct member a;

	open_member(&a);
	req.pd = a.node.pd;
	req.send_cq = req.recv_cq = a.node.cq.handle;
	req.srq = a.srq.handle;
	for (req.type = RCD_QP_RC; req.type <= RCD_QP_UD; req.type++)
		CU_ASSERT_EQUAL(rcd_cl_qp_create(&a.node.client, &req, &qp), -EINVAL);
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

	open_member(&a);
	open_member(&b);
	MUST(rcd_cl_cq_create(&b.node.client, &small, &cq) == 0);
	MUST(rcd_cl_destroy(&b.node.client, RCD_CTRL_SRQ_DESTROY, b.srq.handle) == 0);
	b.node.cq.handle = cq.handle;
	MUST(member_queue(&b) == 0);
	sender_join(&sender, &a, &target);
	for (int i = 0; i < 8; i++)
		member_recv(&b, 1);
	/* One more than there is room for: it was received, and has nowhere to be told. */
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(member_send(&sender, b.number, NULL), RCD_WC_SUCCESS);
	CU_ASSERT_TRUE(told(&b, RCD_EVENT_CQ_ERR));
	CU_ASSERT_TRUE(told(&b, RCD_EVENT_SRQ_ERR));
	CU_ASSERT_TRUE(rig_engine(&rig, "cq_overrun") > 0);
	CU_ASSERT_TRUE(member_receives(&a, &sender));
	node_close(&sender);
	node_close(&b.node);
	node_close(&a.node);
}

/* A receive into memory that a client takes away. */
static void
recv_into_nothing(struct member *member)
{
	struct rcd_ctrl_mem_req mem = { .len = TAKEN, .writable = 1 };
	struct rcd_ctrl_fds fds = { .fds = { memfd_create("xrc", 0) }, .count = 1 };
	struct rcd_client *client = &member->node.client;
	struct rcd_sge sge = { .addr = TAKEN, .len = MEMBER_BYTES };
	struct rcd_recv_wr wr = { .sge_count = 1, .sges = &sge };
	struct rcd_ctrl_mr_req req;
	struct rcd_ctrl_handle handle;
	struct rcd_ctrl_mr_rep rep;

	MUST(fds.fds[0] >= 0 && ftruncate(fds.fds[0], TAKEN) == 0);
	MUST(rcd_client_call(client, RCD_CTRL_MEM_ADD, &mem, &handle, &fds, NULL) == 0);
	memset(&req, 0, sizeof(req));
	req.pd = member->node.pd;
	req.access = RCD_ACCESS_LOCAL_WRITE;
	req.start = req.len = TAKEN;
	req.extent_count = 1;
	req.extents[0].len = TAKEN;
	req.extents[0].mem = handle.handle;
	MUST(rcd_client_call(client, RCD_CTRL_MR_REG, &req, &rep, NULL, NULL) == 0);
	MUST(ftruncate(fds.fds[0], 0) == 0);
	close(fds.fds[0]);
	sge.lkey.val = rep.key;
	MUST(rcd_cl_post_srq_recv(&member->srq, &wr) == 0);
}

/* A member that takes memory away loses its queue, and the target goes on for the others. */
static void
a_member_that_takes_memory_away(void)
{
	struct rcd_cl_qp target;
	struct member a, b;
	struct node sender;

	open_member(&a);
	open_member(&b);
	sender_join(&sender, &a, &target);
	recv_into_nothing(&b);
	CU_ASSERT_EQUAL(member_send(&sender, b.number, NULL), RCD_WC_SUCCESS);
	CU_ASSERT_TRUE(told(&b, RCD_EVENT_SRQ_ERR));
	CU_ASSERT_TRUE(member_receives(&a, &sender));
	node_close(&sender);
	node_close(&b.node);
	node_close(&a.node);
}

/* The file of a domain is the inode, whatever its name stands for by now. */
static void
a_file_that_goes(void)
{
	struct node node;
	struct member a;
	uint32_t xrcd;
	int old, fd;

	open_member(&a);
	old = open(path, O_RDONLY);
	MUST(old >= 0 && unlink(path) == 0);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
	MUST(fd >= 0);
	close(fd);
	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT_EQUAL(join(&node.client, 0, &xrcd), -EAGAIN);
	CU_ASSERT_EQUAL(member_join_by(&node.client, old, 0, &xrcd), 0);
	/* Who made the domain has gone; then everybody has. */
	node_close(&a.node);
	MUST(rig_contexts(&rig, 1, FOREVER_MS));
	CU_ASSERT_EQUAL(member_join_by(&node.client, old, 0, &xrcd), 0);
	node_close(&node);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT_EQUAL(member_join_by(&node.client, old, 0, &xrcd), -EAGAIN);
	node_close(&node);
	close(old);
}

/* All that there is, and then the end of who has it. */
static void
as_many_as_there_are(void)
{
	struct rcd_cl_qp target, other;
	struct rcd_ctrl_handle rep;
	struct member a, b;
	int err = 0;
	int count;

	open_member(&a);
	open_member(&b);
	for (count = 0; count < MANY && err == 0; count++)
		err = member_queue(&a);
	CU_ASSERT_EQUAL(err, -ENOMEM);
	MUST(member_target(&a, 0, &target) == 0);
	for (err = 0, count = 0; count < MANY && err == 0; count++)
		err = member_target(&a, target.qpn, &other);
	CU_ASSERT_EQUAL(err, -ENOMEM);
	CU_ASSERT_EQUAL(count, OPENS);
	CU_ASSERT_EQUAL(member_target(&b, target.qpn, &other), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.node.client, RCD_CTRL_XQP_CLOSE, target.handle), 0);
	CU_ASSERT_EQUAL(member_target(&b, target.qpn, &other), 0);
	for (err = 0, count = 0; count < MANY && err == 0; count++)
		err = member_target(&a, 0, &other);
	CU_ASSERT_EQUAL(err, -ENOMEM);
	for (err = 0, count = 0; count < MANY && err == 0; count++)
		err = rcd_client_call(&a.node.client, RCD_CTRL_XRCD_CREATE, NULL, &rep, NULL, NULL);
	CU_ASSERT_EQUAL(err, -ENOMEM);
	node_close(&a.node);
	CU_ASSERT_TRUE(rig_contexts(&rig, 1, FOREVER_MS));
	/* That target has one who has it open, as before; all others are gone. */
	CU_ASSERT_EQUAL(member_target(&b, target.qpn, &other), 0);
	CU_ASSERT_EQUAL(member_target(&b, 0, &target), 0);
	node_close(&b.node);
}

/* Queues come and go while a peer sends to them without end. */
static void
queues_go_under_fire(void)
{
	struct rcd_cl_qp target;
	struct member a, b;
	struct rcd_cq_slot slot;
	int status;
	struct node sender;

	for (int round = 0; round < RIG_TIMES(30); round++) {
		struct rcd_sge sge;
		struct rcd_send_wr wr = { .opcode = RCD_WR_SEND, .sge_count = 1, .sges = &sge };

		open_member(&a);
		open_member(&b);
		sender_join(&sender, &a, &target);
		sge = (struct rcd_sge){ (uintptr_t)sender.memory, MEMBER_BYTES, { sender.mr.key } };
		for (int i = 0; i < MEMBER_DEPTH; i++)
			member_recv(&b, 1);
		wr.remote.srqn = b.number;
		for (int i = 0; i < 64; i++)
			MUST(rcd_cl_post_send(&sender.qp, &wr) == 0);
		rcd_cl_ring(&sender.qp);
		if (round % 2 == 0)
			MUST(rcd_cl_destroy(&b.node.client, RCD_CTRL_SRQ_DESTROY, b.srq.handle) ==
				0);
		node_close(&b.node);
		/*
		 * There are fewer receives than messages: one of them finds no queue, or memory of
		 * b's that went before it.
		 */
		status = node_wait(&sender, &slot, FOREVER_MS);
		CU_ASSERT_TRUE(status == RCD_WC_REM_INV_REQ_ERR ||
			(round % 2 != 0 && status == RCD_WC_REM_OP_ERR));
		node_close(&a.node);
		node_close(&sender);
	}
}

/* An engine that is stopped while members of a domain receive. */
static void
an_engine_stops(void)
{
	struct rcd_send_wr wr = { .opcode = RCD_WR_SEND, .sge_count = 1 };
	struct rcd_cl_qp target, shared;
	struct member a, b;
	struct node sender;
	struct rcd_sge sge;

	open_member(&a);
	open_member(&b);
	sender_join(&sender, &a, &target);
	MUST(member_target(&b, target.qpn, &shared) == 0);
	sge = (struct rcd_sge){ (uintptr_t)sender.memory, MEMBER_BYTES, { sender.mr.key } };
	wr.sges = &sge;
	wr.remote.srqn = b.number;
	for (int i = 0; i < MEMBER_DEPTH; i++)
		member_recv(&b, 1);
	for (int i = 0; i < 64; i++)
		MUST(rcd_cl_post_send(&sender.qp, &wr) == 0);
	rcd_cl_ring(&sender.qp);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
	node_close(&sender);
	node_close(&b.node);
	node_close(&a.node);
	rig_start(&rig, NULL);
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
		RCD_TEST(a_queue_for_targets_alone),
		RCD_TEST(a_member_that_takes_nothing),
		RCD_TEST(a_member_that_takes_memory_away),
		RCD_TEST(a_file_that_goes),
		RCD_TEST(as_many_as_there_are),
		RCD_TEST(queues_go_under_fire),
		RCD_TEST(an_engine_stops),
		RCD_TEST(engine_ends_well),
	};
	int failed;

	member_file(path);
	rig_start(&rig, NULL);
	failed = rcd_tap_run("xrc", tests, RCD_ARRAY_COUNT(tests));
	unlink(path);
	return failed;
}
