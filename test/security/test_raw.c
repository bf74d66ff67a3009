/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: raw packets are for those who may have them, where the device has them; flows take nothing
 * from anybody and show nobody RoCE; and no frame, flow or end of one costs others anything.
 * Method: an engine of the test's own with the embedded wire; senders on one end, receivers with
 * flows on the other, an honest pair beside them.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frames.h"
#include "rcd_bytes.h"
#include "rcd_eth.h"
#include "rcd_limits.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"
#include "rig.h"

enum {
	NOBODY = 65534,
	MEMORY = 1 << 16,
	PLACE = 4608, /**< bytes for a frame */
	PLACES = 8,
	PLAIN = 64, /**< bytes of most frames */
	TYPE = FRAMES_TYPE,
	TYPE_AT = 12,
	UDP = 17,
	ROUNDS = 200,
	CLIENTS = 40,
	WORK_MOST =
		2000, /**< units: three budgets of 256, twice 40 copies of 9, and what is usual */
};

static struct rig rig;

/* With receives for some frames, each in a place of its own. */
static void
open_receiver(struct node *node)
{
	frames_open(node, rig.socket, "roce1", MEMORY);
	for (uint32_t i = 0; i < PLACES; i++)
		MUST(node_recv(node, i * PLACE, PLACE, i) == 0);
}

static void
lead(struct node *node, uint16_t type)
{
	struct rcd_ctrl_flow_req req = frames_flow_of_type(&node->qp, type);

	CU_ASSERT_EQUAL(frames_flow_create(node, &req, NULL), 0);
}

/* One frame of some bytes, and no error. */
static void
send_plain(struct node *node, uint16_t type, uint8_t what)
{
	frames_make(node->memory, PLAIN, type, what);
	MUST(frames_send(node, PLAIN, 0) == RCD_WC_SUCCESS);
}

/* The next frame that a node gets has this byte in it; it is received into again. */
static bool
arrives(struct node *node, uint8_t what, struct rcd_cq_slot *slot)
{
	const uint8_t *frame;
	bool of_link;

	do {
		if (node_wait(node, slot, FOREVER_MS) != RCD_WC_SUCCESS)
			return false;
		frame = node->memory + slot->wr_id * PLACE;
		of_link = frames_are_of_link(frame);
		what ^= of_link ? 0 : frame[PLAIN - 1];
		MUST(node_recv(node, slot->wr_id * PLACE, PLACE, slot->wr_id) == 0);
	} while (of_link);
	return what == 0;
}

static int
try_qp(struct node *node)
{
	struct rcd_ctrl_qp_req req = { .pd = node->pd,
		.type = RCD_QP_RAW,
		.send_cq = node->cq.handle,
		.recv_cq = node->cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = 1,
		.rq_depth = 1 };
	struct rcd_cl_qp qp;

	return rcd_cl_qp_create(&node->client, &req, &qp);
}

/* A device has none unless it is told to: and then those that are there go on. */
static void
where_there_are_none(void)
{
	struct rcd_ctrl_flow_req req;
	struct node node, late;

	node_open(&node, rig.socket, "roce1", RCD_QP_RC);
	CU_ASSERT_EQUAL(node.device.max_flows, 0);
	CU_ASSERT_EQUAL(try_qp(&node), -EOPNOTSUPP);
	node_close(&node);
	frames_set(rig.socket, "raw on");
	frames_open(&late, rig.socket, "roce1", MEMORY);
	CU_ASSERT_EQUAL(late.device.max_flows, RCD_FLOWS_CLIENT_MAX);
	req = frames_flow_of(&late.qp, RCD_FLOW_ALL);
	CU_ASSERT_EQUAL(frames_flow_create(&late, &req, NULL), 0);
	frames_set(rig.socket, "raw off");
	CU_ASSERT_EQUAL(try_qp(&late), -EOPNOTSUPP);
	CU_ASSERT_EQUAL(frames_flow_create(&late, &req, NULL), -EOPNOTSUPP);
	node_close(&late);
	frames_set(rig.socket, "raw on");
}

static void
who_has_no_right(void)
{
	struct rcd_ctrl_flow_req req;
	struct node node, stranger;

	if (getuid() != 0) {
		rcd_tap_skip("needs root, to become another user");
		return;
	}
	frames_open(&node, rig.socket, "roce1", MEMORY);
	req = frames_flow_of(&node.qp, RCD_FLOW_ALL);
	MUST(seteuid(NOBODY) == 0);
	node_open(&stranger, rig.socket, "roce1", RCD_QP_RC);
	CU_ASSERT_EQUAL(try_qp(&stranger), -EPERM);
	/* What it has given up since it connected, it has not. */
	CU_ASSERT_EQUAL(try_qp(&node), -EPERM);
	CU_ASSERT_EQUAL(frames_flow_create(&node, &req, NULL), -EPERM);
	MUST(seteuid(0) == 0);
	CU_ASSERT_EQUAL(try_qp(&node), 0);
	CU_ASSERT_EQUAL(frames_flow_create(&node, &req, NULL), 0);
	/* What it had not, it does not get by becoming another. */
	CU_ASSERT_EQUAL(try_qp(&stranger), -EPERM);
	node_close(&stranger);
	node_close(&node);
}

/* Each client has its own copy, and within one the flow that comes first has the frame. */
static void
a_copy_for_each_client(void)
{
	struct node sender, a, b;
	struct rcd_ctrl_flow_req req;
	struct rcd_cq_slot slot;
	struct rcd_cl_qp second;
	uint32_t handle;

	frames_open(&sender, rig.socket, "roce0", MEMORY);
	open_receiver(&a);
	open_receiver(&b);
	node_qp(&a, RCD_QP_RAW, &second);
	req = frames_flow_of_type(&second, TYPE);
	req.priority = 7;
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, NULL), 0);
	req = frames_flow_of_type(&a.qp, TYPE);
	req.priority = 3;
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, &handle), 0);
	req = frames_flow_of(&b.qp, RCD_FLOW_ALL);
	CU_ASSERT_EQUAL(frames_flow_create(&b, &req, NULL), 0);
	send_plain(&sender, TYPE, 11);
	CU_ASSERT_TRUE(arrives(&a, 11, &slot));
	CU_ASSERT_EQUAL(slot.byte_len, PLAIN);
	CU_ASSERT_EQUAL(slot.qpn, a.qp.qpn);
	CU_ASSERT_TRUE(arrives(&b, 11, &slot));
	/* Whoever drops it, drops it for itself. */
	req = frames_flow_of_type(&a.qp, TYPE);
	req.drop = 1;
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, NULL), 0);
	send_plain(&sender, TYPE, 12);
	send_plain(&sender, TYPE + 1, 13);
	CU_ASSERT_TRUE(arrives(&b, 12, &slot));
	CU_ASSERT_TRUE(arrives(&b, 13, &slot));
	lead(&a, TYPE + 1);
	send_plain(&sender, TYPE + 1, 14);
	CU_ASSERT_TRUE(arrives(&a, 14, &slot));
	CU_ASSERT_TRUE(arrives(&b, 14, &slot));
	node_close(&b);
	node_close(&a);
	node_close(&sender);
}

/* RoCE is in no flow, from whom ever it comes; nor is a queue pair reached by its number. */
static void
no_flow_has_roce(void)
{
	struct honest honest = honest_start(&rig);
	struct rcd_ctrl_flow_req req;
	struct node sender, node;
	struct rcd_cq_slot slot;

	frames_open(&sender, rig.socket, "roce0", MEMORY);
	open_receiver(&node);
	req = frames_flow_of(&node.qp, RCD_FLOW_NORMAL);
	CU_ASSERT_EQUAL(frames_flow_create(&node, &req, NULL), 0);
	for (uint8_t i = 0; i < 20; i++) {
		frames_make_udp(sender.memory, 100, 4791);
		CU_ASSERT_EQUAL(frames_send(&sender, 100, RCD_SEND_IP_CSUM), RCD_WC_SUCCESS);
		send_plain(&sender, TYPE, i);
		CU_ASSERT_TRUE(arrives(&node, i, &slot));
		CU_ASSERT_EQUAL(slot.byte_len, PLAIN);
	}
	node_close(&node);
	node_close(&sender);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
}

static void
numbers_that_are_not_ones_own(void)
{
	struct rcd_ctrl_flow_req req;
	struct node a, b;
	struct rcd_cl_qp other;
	uint32_t handle;

	frames_open(&a, rig.socket, "roce1", MEMORY);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_qp(&a, RCD_QP_UD, &other);
	req = frames_flow_of(&a.qp, RCD_FLOW_ALL);
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, &handle), 0);
	/* Of another client, with this number it has no queue pair, or one of another kind. */
	CU_ASSERT_EQUAL(frames_flow_create(&b, &req, NULL), -EINVAL);
	req.qp = 4000;
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, NULL), -ENOENT);
	req.qp = UINT32_MAX;
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, NULL), -ENOENT);
	req = frames_flow_of(&other, RCD_FLOW_ALL);
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, NULL), -EINVAL);
	for (int kind = RCD_FLOW_KIND_COUNT; kind < 256; kind++) {
		req = frames_flow_of(&a.qp, (uint8_t)kind);
		CU_ASSERT_EQUAL(frames_flow_create(&a, &req, NULL), -EINVAL);
	}
	req = frames_flow_of(&a.qp, RCD_FLOW_ALL);
	req.drop = 2;
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, NULL), -EINVAL);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&b.client, RCD_CTRL_FLOW_DESTROY, handle), -ENOENT);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&b.client, RCD_CTRL_FLOW_READ, handle), -ENOENT);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_FLOW_READ, UINT32_MAX), -ENOENT);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_FLOW_READ, handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_FLOW_DESTROY, UINT32_MAX), -ENOENT);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_FLOW_DESTROY, handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_FLOW_DESTROY, handle), -ENOENT);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_FLOW_READ, handle), -ENOENT);
	/* Nor is the next one's number that of one that ended with its queue pair. */
	node_qp(&a, RCD_QP_RAW, &other);
	req = frames_flow_of(&other, RCD_FLOW_ALL);
	CU_ASSERT_EQUAL(frames_flow_create(&a, &req, &handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, other.handle), 0);
	lead(&a, TYPE);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_FLOW_DESTROY, handle), -ENOENT);
	node_close(&b);
	node_close(&a);
}

/* A frame of any length is sent, or completes with an error; one of any length is received. */
static void
lengths_of_frames(void)
{
	static const uint32_t wrong[] = { 0, 1, 13, RCD_FRAME_MAX_BYTES + 1, 5000, MEMORY };
	static const uint32_t right[] = { 60, 61, 64, 1514, 4100 };
	struct node sender, node;
	struct rcd_cq_slot slot;

	frames_open(&sender, rig.socket, "roce0", MEMORY);
	frames_open(&node, rig.socket, "roce1", MEMORY);
	lead(&node, TYPE);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(wrong); i++) {
		frames_make(sender.memory, MEMORY, TYPE, 1);
		CU_ASSERT_EQUAL(frames_send(&sender, wrong[i], 0), RCD_WC_LOC_LEN_ERR);
		CU_ASSERT_EQUAL(frames_to_state(&sender.qp, RCD_QP_RTS), 0);
	}
	for (size_t i = 0; i < RCD_ARRAY_COUNT(right); i++) {
		MUST(node_recv(&node, 0, right[i], i) == 0);
		frames_make(sender.memory, MEMORY, TYPE, (uint8_t)i);
		/* This one is dropped: there is no room for it. */
		CU_ASSERT_EQUAL(frames_send(&sender, right[i] + 1, 0), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(frames_send(&sender, right[i], 0), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(slot.byte_len, right[i]);
		CU_ASSERT_EQUAL(memcmp(node.memory, sender.memory, right[i]), 0);
	}
	/* Ports exist that stop, for all, at a shorter one than Ethernet's: zeros go behind it. */
	for (uint32_t len = 14; len < RCD_ETH_MIN_LEN; len++) {
		memset(node.memory, 0xff, PLACE);
		MUST(node_recv(&node, 0, PLACE, 0) == 0);
		frames_make(sender.memory, len, TYPE, 0xff);
		CU_ASSERT_EQUAL(frames_send(&sender, len, 0), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		memset(sender.memory + len, 0, RCD_ETH_MIN_LEN - len);
		CU_ASSERT_EQUAL(slot.byte_len, RCD_ETH_MIN_LEN);
		CU_ASSERT_EQUAL(memcmp(node.memory, sender.memory, RCD_ETH_MIN_LEN), 0);
	}
	node_close(&node);
	node_close(&sender);
}

/* A queue pair that is there sends no more than its device can by now. */
static void
lengths_follow_the_mtu(void)
{
	struct node sender;

	frames_open(&sender, rig.socket, "roce0", MEMORY);
	frames_make(sender.memory, PLACE, TYPE, 1);
	CU_ASSERT_EQUAL(frames_send(&sender, 1519, 0), RCD_WC_SUCCESS);
	frames_set(rig.socket, "mtu 1500");
	CU_ASSERT_EQUAL(frames_send(&sender, 1518, 0), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(frames_send(&sender, 1519, 0), RCD_WC_LOC_LEN_ERR);
	frames_set(rig.socket, "mtu 4500");
	CU_ASSERT_EQUAL(frames_to_state(&sender.qp, RCD_QP_RTS), 0);
	CU_ASSERT_EQUAL(frames_send(&sender, 1519, 0), RCD_WC_SUCCESS);
	node_close(&sender);
}

/* Sums are put in where they were asked for, and told of where they are right. */
static void
sums_of_frames(void)
{
	struct node sender, node;
	struct rcd_cq_slot slot;

	frames_open(&sender, rig.socket, "roce0", MEMORY);
	open_receiver(&node);
	lead(&node, 0x0800);
	frames_make_udp(sender.memory, PLAIN, 53);
	CU_ASSERT_EQUAL(frames_send(&sender, PLAIN, RCD_SEND_IP_CSUM), RCD_WC_SUCCESS);
	CU_ASSERT_TRUE(arrives(&node, 5, &slot));
	CU_ASSERT_EQUAL(slot.flags, RCD_WC_IP_CSUM_OK);
	CU_ASSERT_NOT_EQUAL(rcd_get_be16(node.memory + slot.wr_id * PLACE + 40), 0);
	CU_ASSERT_EQUAL(frames_send(&sender, PLAIN, 0), RCD_WC_SUCCESS);
	CU_ASSERT_TRUE(arrives(&node, 5, &slot));
	CU_ASSERT_EQUAL(slot.flags, 0);
	/* Lengths that are no frame's: what can't be summed is left as it is. */
	for (uint32_t ip_len = 0; ip_len < 0x10000; ip_len += 0x101) {
		frames_make_udp(sender.memory, PLAIN, 53);
		rcd_put_be16(sender.memory + 16, (uint16_t)ip_len);
		CU_ASSERT_EQUAL(frames_send(&sender, PLAIN, RCD_SEND_IP_CSUM), RCD_WC_SUCCESS);
		CU_ASSERT_TRUE(arrives(&node, 5, &slot));
	}
	node_close(&node);
	node_close(&sender);
}

/* In a process of its own, with CAP_NET_RAW all the same. @return flows that another user gets */
static int
flows_of_another(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	struct rcd_ctrl_flow_req req;
	struct node node;
	pid_t pid = fork();
	int count = 0;
	int status;

	if (pid != 0) {
		MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		return WEXITSTATUS(status);
	}
	MUST(prctl(PR_SET_KEEPCAPS, 1) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	MUST(syscall(SYS_capget, &header, caps) == 0);
	caps[0].effective |= 1u << CAP_NET_RAW;
	MUST(syscall(SYS_capset, &header, caps) == 0);
	/* Else /proc says that the process is root's. */
	MUST(prctl(PR_SET_DUMPABLE, 1) == 0);
	frames_open(&node, rig.socket, "roce1", MEMORY);
	req = frames_flow_of(&node.qp, RCD_FLOW_NORMAL);
	while (frames_flow_create(&node, &req, NULL) == 0)
		count++;
	_exit(count);
}

/* One client has its part, one user as well, and they end with the queue pair. */
static void
as_many_as_there_are(void)
{
	struct rcd_ctrl_flow_req req;
	struct node a, b, c;
	int err = 0;
	int count;

	if (getuid() != 0) {
		rcd_tap_skip("needs root, to become another user");
		return;
	}
	frames_open(&a, rig.socket, "roce1", MEMORY);
	frames_open(&b, rig.socket, "roce1", MEMORY);
	frames_open(&c, rig.socket, "roce1", MEMORY);
	req = frames_flow_of(&a.qp, RCD_FLOW_NORMAL);
	for (count = 0; err == 0 && count < 1000; count++)
		err = frames_flow_create(&a, &req, NULL);
	CU_ASSERT_EQUAL(err, -ENOMEM);
	CU_ASSERT_EQUAL(count, RCD_FLOWS_CLIENT_MAX + 1);
	req = frames_flow_of(&b.qp, RCD_FLOW_NORMAL);
	for (err = 0; err == 0; count++)
		err = frames_flow_create(&b, &req, NULL);
	CU_ASSERT_EQUAL(count, RCD_FLOWS_USER_MAX + 2);
	req = frames_flow_of(&c.qp, RCD_FLOW_NORMAL);
	CU_ASSERT_EQUAL(frames_flow_create(&c, &req, NULL), -ENOMEM);
	CU_ASSERT_EQUAL(flows_of_another(), RCD_FLOWS_MAX - RCD_FLOWS_USER_MAX);
	CU_ASSERT_TRUE(rig_contexts(&rig, 3, FOREVER_MS));
	req = frames_flow_of(&c.qp, RCD_FLOW_NORMAL);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, a.qp.handle), 0);
	CU_ASSERT_EQUAL(frames_flow_create(&c, &req, NULL), 0);
	node_close(&b);
	CU_ASSERT_TRUE(rig_contexts(&rig, 2, FOREVER_MS));
	for (count = 1; count < RCD_FLOWS_CLIENT_MAX; count++)
		CU_ASSERT_EQUAL(frames_flow_create(&c, &req, NULL), 0);
	node_close(&c);
	node_close(&a);
}

/* A frame is as much work as there are copies of it: where it is sent, and where it comes to. */
static void
copies_are_work(void)
{
	static struct node nodes[CLIENTS + 1];
	struct rcd_cq_slot slot;

	for (int end = 0; end < 2; end++) {
		long long before;

		for (int i = 0; i <= CLIENTS; i++) {
			frames_open(&nodes[i], rig.socket,
				end == 0 || i == CLIENTS ? "roce0" : "roce1", MEMORY);
			frames_make(nodes[i].memory, PLACE, TYPE, 1);
			if (i < CLIENTS)
				lead(&nodes[i], TYPE);
		}
		before = rig_engine(&rig, "poll_budget_all");
		for (int i = 0; i < 20 * 16; i++)
			for (int k = end * CLIENTS; k <= CLIENTS; k++) {
				MUST(frames_post(&nodes[k], 4100, 0) == 0);
				for (int n = 0; i % 16 == 15 && n < 16; n++)
					MUST(node_wait(&nodes[k], &slot, FOREVER_MS) == 0);
			}
		CU_ASSERT(rig_engine(&rig, "poll_budget_all") > before);
		for (int i = 0; i <= CLIENTS; i++)
			node_close(&nodes[i]);
	}
	CU_ASSERT(rig_engine(&rig, "longest_poll_work") < WORK_MOST);
}

/* Flows of any bytes, and queue pairs, come and go while frames of any bytes come. */
static void
ends_while_frames_come(void)
{
	struct honest honest = honest_start(&rig);
	struct rcd_sequence sequence = { 77 };
	struct node sender, node, lasting;
	struct rcd_ctrl_flow_req req;
	struct rcd_cq_slot slot;
	uint32_t out = 0;

	frames_open(&sender, rig.socket, "roce0", MEMORY);
	frames_open(&node, rig.socket, "roce1", MEMORY);
	open_receiver(&lasting);
	for (uint32_t round = 0; round < RIG_TIMES(ROUNDS); round++) {
		struct rcd_cl_qp qp;
		uint32_t handle;

		node_qp(&node, RCD_QP_RAW, &qp);
		frames_ready(&qp);
		for (size_t i = 0; i < 200; i++)
			sender.memory[i] = (uint8_t)rcd_sequence_next(&sequence);
		for (int i = 0; i < 8; i++) {
			CU_ASSERT_EQUAL(
				frames_post(&sender, 14 + rcd_sequence_next(&sequence) % 180,
					rcd_sequence_next(&sequence) % 2 ? RCD_SEND_IP_CSUM : 0),
				0);
			out++;
		}
		req = frames_flow_of(&qp, (uint8_t)(rcd_sequence_next(&sequence) % 3));
		for (size_t i = 0; i < sizeof(req.mask); i++) {
			((uint8_t *)&req.mask)[i] = rcd_sequence_next(&sequence) % 16 == 0;
			((uint8_t *)&req.value)[i] = (uint8_t)rcd_sequence_next(&sequence);
		}
		CU_ASSERT_EQUAL(frames_flow_create(&node, &req, &handle), 0);
		req = frames_flow_of(&qp, RCD_FLOW_ALL);
		CU_ASSERT_EQUAL(frames_flow_create(&node, &req, NULL), 0);
		if (round % 2)
			CU_ASSERT_EQUAL(
				rcd_cl_destroy(&node.client, RCD_CTRL_FLOW_DESTROY, handle), 0);
		CU_ASSERT_EQUAL(rcd_cl_destroy(&node.client, RCD_CTRL_QP_DESTROY, qp.handle), 0);
		for (; out > 0; out--)
			CU_ASSERT_EQUAL(node_wait(&sender, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	}
	/* None of them is left to lead anywhere. */
	lead(&lasting, TYPE);
	send_plain(&sender, TYPE, 99);
	CU_ASSERT_TRUE(arrives(&lasting, 99, &slot));
	node_close(&lasting);
	node_close(&node);
	node_close(&sender);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
}

static void
the_engine_ends_well(void)
{
	CU_ASSERT_TRUE(rig_ends_well(&rig));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(where_there_are_none),
		RCD_TEST(who_has_no_right),
		RCD_TEST(a_copy_for_each_client),
		RCD_TEST(no_flow_has_roce),
		RCD_TEST(numbers_that_are_not_ones_own),
		RCD_TEST(lengths_of_frames),
		RCD_TEST(lengths_follow_the_mtu),
		RCD_TEST(sums_of_frames),
		RCD_TEST(as_many_as_there_are),
		RCD_TEST(copies_are_work),
		RCD_TEST(ends_while_frames_come),
		RCD_TEST(the_engine_ends_well),
	};

	rig_start(&rig, NULL);
	return rcd_tap_run("raw", tests, sizeof(tests) / sizeof(tests[0]));
}
