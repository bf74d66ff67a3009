/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no request keeps the control thread from others. Method: requests that clear or enter many
 * pages, several at a time, against an engine of the test's own, which says how many units of work
 * its largest step did. No verdict here is about time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

static struct rig rig;

/** Units of the control thread's largest step with four clients: each has a slice of 256. */
#define STEP_MOST 1100

/* Each page that the kernel is asked for is a unit, also a hole or one never written. */
static void
memory_of_holes(void)
{
	enum {
		LEN = 32 << 20,
		SLICE = 256
	};
	struct rcd_ctrl_mem_req req = { .len = LEN, .writable = 1 };
	struct rcd_ctrl_handle rep;
	struct rcd_ctrl_fds fds = { .count = 1 };
	struct stat stat;
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") < SLICE);
	fds.fds[0] = memfd_create("holes", 0);
	MUST(fds.fds[0] >= 0 && ftruncate(fds.fds[0], LEN) == 0);
	MUST(pwrite(fds.fds[0], "x", 1, LEN / 2) == 1);
	CU_ASSERT_EQUAL(rcd_client_call(&a.client, RCD_CTRL_MEM_ADD, &req, &rep, &fds, NULL), 0);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") >= SLICE);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") <= STEP_MOST);
	/* A hole stays one. */
	MUST(fstat(fds.fds[0], &stat) == 0);
	CU_ASSERT(stat.st_blocks < LEN / 512 / 2);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_MEM_DEL, rep.handle), 0);
	rcd_ctrl_fds_close(&fds);
	node_close(&a);
}

/* Nobody has more than half of a core by way of the control thread, where others wait for it. */
static void
asked_without_end(void)
{
	struct rcd_ctrl_mem_req req = { .len = 32 << 20, .writable = 1 };
	uint64_t deadline = now_ms() + FOREVER_MS;
	struct rcd_ctrl_fds fds = { .count = 1 };
	struct rcd_ctrl_handle rep;
	struct node a;

	if (sysconf(_SC_NPROCESSORS_ONLN) > 2) {
		rcd_tap_skip("there are cores for everybody");
		return;
	}
	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	fds.fds[0] = memfd_create("holes", 0);
	MUST(fds.fds[0] >= 0 && ftruncate(fds.fds[0], (off_t)req.len) == 0);
	while (rig_engine(&rig, "control_rests") == 0 && now_ms() < deadline) {
		for (int i = 0; i < 10; i++) {
			MUST(rcd_client_call(&a.client, RCD_CTRL_MEM_ADD, &req, &rep, &fds, NULL) ==
				0);
			MUST(rcd_cl_destroy(&a.client, RCD_CTRL_MEM_DEL, rep.handle) == 0);
		}
	}
	CU_ASSERT(rig_engine(&rig, "control_rests") > 0);
	rcd_ctrl_fds_close(&fds);
	node_close(&a);
}

/* What an open context costs is counted; requests in a row, of 8 units each, have their share. */
static void
contexts_and_connections(void)
{
	enum {
		REQUESTS = 200,
		OPEN_UNITS = 64
	};
	struct rcd_ctrl_msg msg = { .hdr = { .op = RCD_CTRL_CM_CREATE } };
	struct rcd_ctrl_handle channel;
	struct rcd_ctrl_fds fds;
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") >= OPEN_UNITS);
	MUST(rcd_client_call(&a.client, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &channel, NULL, &fds) ==
		0);
	msg.body.cm_create_req = (struct rcd_ctrl_cm_create_req){
		.channel = channel.handle, .space = 0x0106, .qp_type = RCD_QP_RC
	};
	/* Not all at once: a client that takes no replies is one to go. */
	for (int sent = 0; sent < REQUESTS; sent += 20) {
		struct rcd_ctrl_msg reply;
		struct rcd_ctrl_fds none;

		rig_halt(&rig);
		for (int i = 0; i < 20; i++)
			MUST(rcd_ctrl_send(a.client.sock, &msg, rcd_ctrl_req_len(msg.hdr.op), NULL,
				     0) == 0);
		MUST(kill(rig.pid, SIGCONT) == 0);
		for (int i = 0; i < 20; i++) {
			MUST(rcd_ctrl_recv(a.client.sock, &reply, sizeof(reply), &none, 0) > 0);
			CU_ASSERT_EQUAL(reply.hdr.status, 0);
		}
	}
	/* Sixteen requests are a turn. */
	CU_ASSERT(rig_engine(&rig, "longest_step_work") >= 16 * 8);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") <= STEP_MOST);
	rcd_ctrl_fds_close(&fds);
	node_close(&a);
}

/* Queues of 64 MiB, one after another, in three connections; others greet meanwhile. */
static void
large_queues(void)
{
	enum {
		DEPTH = 1 << 20,
		CLIENTS = 3,
		ROUNDS = 2
	};
	struct honest honest = honest_start(&rig);
	struct rcd_client greeting;
	struct node nodes[CLIENTS];
	struct rcd_ctrl_msg msg = { .hdr = { .op = RCD_CTRL_CQ_CREATE } };
	struct rcd_ctrl_fds fds;

	for (int i = 0; i < CLIENTS; i++)
		MUST(node_try_open(&nodes[i], rig.socket, "roce0") == 0);
	for (int round = 0; round < ROUNDS; round++) {
		msg.hdr.op = RCD_CTRL_CQ_CREATE;
		msg.body.cq_create_req =
			(struct rcd_ctrl_cq_req){ .depth = DEPTH, .channel = RCD_CTRL_NO_HANDLE };
		for (int i = 0; i < CLIENTS; i++)
			MUST(rcd_ctrl_send(nodes[i].client.sock, &msg, rcd_ctrl_req_len(msg.hdr.op),
				     NULL, 0) == 0);
		MUST(rcd_client_connect(&greeting, rig.socket) == 0);
		rcd_client_close(&greeting);
		for (int i = 0; i < CLIENTS; i++) {
			struct rcd_ctrl_msg reply;

			MUST(rcd_ctrl_recv(nodes[i].client.sock, &reply, sizeof(reply), &fds, 0) >
				0);
			CU_ASSERT_EQUAL(reply.hdr.status, 0);
			CU_ASSERT_EQUAL(reply.body.cq_create_rep.depth, DEPTH);
			CU_ASSERT_EQUAL(rcd_cl_destroy(&nodes[i].client, RCD_CTRL_CQ_DESTROY,
						reply.body.cq_create_rep.handle),
				0);
		}
	}
	/* One goes in the middle, and leaves nothing behind. */
	msg.hdr.op = RCD_CTRL_CQ_CREATE;
	msg.body.cq_create_req.depth = DEPTH;
	msg.body.cq_create_req.channel = RCD_CTRL_NO_HANDLE;
	MUST(rcd_ctrl_send(nodes[0].client.sock, &msg, rcd_ctrl_req_len(msg.hdr.op), NULL, 0) == 0);
	for (int i = 0; i < CLIENTS; i++)
		rcd_client_close(&nodes[i].client);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	printf("# largest step of the control thread: %lld units\n",
		rig_engine(&rig, "longest_step_work"));
	CU_ASSERT(rig_engine(&rig, "longest_step_work") > 0);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") <= STEP_MOST);
}

/* Memory of many pages is entered in pieces, and is all there. */
static void
large_memory(void)
{
	enum {
		LEN = 64 << 20
	};
	struct honest honest = honest_start(&rig);
	struct rcd_cq_slot slot;
	struct node a, b;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&a, LEN);
	node_memory(&b, LEN);
	node_join(&a, &b, RCD_QP_RC, 1);
	fill(a.memory, LEN, 1);
	MUST(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, LEN, 1) == 0);
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT(filled(b.memory, LEN, 1));
	/* Full of data, and registered once more: every page is entered. */
	{
		struct rcd_ctrl_mem_req req = { .len = LEN, .writable = 1 };
		struct rcd_ctrl_handle rep;
		struct rcd_ctrl_fds fds = { .count = 1 };
		int fd = memfd_create("large", 0);

		MUST(fd >= 0 && ftruncate(fd, LEN) == 0);
		MUST(posix_fallocate(fd, 0, LEN) == 0);
		for (int i = 0; i < 3; i++) {
			fds.fds[0] = fd;
			CU_ASSERT_EQUAL(rcd_client_call(&a.client, RCD_CTRL_MEM_ADD, &req, &rep,
						&fds, NULL),
				0);
			CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_MEM_DEL, rep.handle), 0);
		}
		close(fd);
	}
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") <= STEP_MOST);
	node_close(&a);
	node_close(&b);
}

/* Completions of two queue pairs that wait in one queue, which moves to another size and back. */
static void
long_queue(void)
{
	enum {
		DEPTH = 1 << 16,
		QPS = 2
	};
	struct rcd_ctrl_cq_req cq = { .depth = QPS * DEPTH, .channel = RCD_CTRL_NO_HANDLE };
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_ERR };
	struct rcd_cl_qp qps[QPS];
	uint32_t next[QPS] = { 0 };
	struct rcd_cq_slot slot;
	uint32_t right = 0;
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	MUST(rcd_cl_cq_create(&a.client, &cq, &a.cq) == 0);
	for (int i = 0; i < QPS; i++) {
		struct rcd_ctrl_qp_req req = { .pd = a.pd,
			.type = RCD_QP_UC,
			.send_cq = a.cq.handle,
			.recv_cq = a.cq.handle,
			.srq = RCD_CTRL_NO_HANDLE,
			.sq_depth = DEPTH,
			.rq_depth = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1 };

		MUST(rcd_cl_qp_create(&a.client, &req, &qps[i]) == 0);
		for (uint32_t k = 0; k < DEPTH; k++) {
			struct rcd_send_wr wr = { .wr_id = k, .opcode = RCD_WR_SEND };

			MUST(rcd_cl_post_send(&qps[i], &wr) == 0);
		}
		MUST(rcd_cl_qp_modify(&qps[i], &attr, RCD_QP_ATTR_STATE) == 0);
		rcd_cl_ring(&qps[i]);
	}
	/* All of them are there. */
	while (rcd_shm_load(&a.cq.shm->producer) != QPS * DEPTH)
		usleep(1000);
	CU_ASSERT_EQUAL(rcd_cl_cq_resize(&a.cq, 2 * QPS * DEPTH), 0);
	CU_ASSERT_EQUAL(rcd_cl_cq_resize(&a.cq, DEPTH), -EINVAL);
	CU_ASSERT_EQUAL(rcd_cl_cq_resize(&a.cq, QPS * DEPTH), 0);
	/* Each once, and in the order of its queue pair. */
	for (uint32_t i = 0; i < QPS * DEPTH; i++) {
		if (node_wait(&a, &slot, FOREVER_MS) != RCD_WC_WR_FLUSH_ERR)
			break;
		for (int k = 0; k < QPS; k++)
			right += slot.qpn == qps[k].qpn && slot.wr_id == next[k]++;
	}
	CU_ASSERT_EQUAL(right, QPS * DEPTH);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") <= STEP_MOST);
	node_close(&a);
}

/* A client takes back what it consumed, or says so of what never was. */
static void
never_completed(void)
{
	enum {
		DEPTH = 1 << 22
	};
	struct rcd_ctrl_cq_req req = { .depth = DEPTH, .channel = RCD_CTRL_NO_HANDLE };
	struct rcd_ctrl_cq_resize_req resize = { .depth = DEPTH };
	struct rcd_ctrl_cq_rep rep;
	struct rcd_cl_cq cq;
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	MUST(rcd_cl_cq_create(&a.client, &req, &cq) == 0);
	resize.handle = cq.handle;
	rcd_shm_store(&cq.shm->consumer, 0u - DEPTH);
	CU_ASSERT_EQUAL(
		rcd_client_call(&a.client, RCD_CTRL_CQ_RESIZE, &resize, &rep, NULL, NULL), -EINVAL);
	rcd_shm_store(&cq.shm->consumer, 0);
	CU_ASSERT_EQUAL(
		rcd_client_call(&a.client, RCD_CTRL_CQ_RESIZE, &resize, &rep, NULL, NULL), 0);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") <= STEP_MOST);
	node_close(&a);
}

static void
stop(void)
{
	CU_ASSERT_TRUE(rig_ends_well(&rig));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S16 holes in memory are counted, and looked at in small steps",
			memory_of_holes },
		{ "S16 a client that asks without end leaves the core to others",
			asked_without_end },
		{ "S16 contexts and connections are counted", contexts_and_connections },
		{ "S16 queues of many pages are made in small steps", large_queues },
		{ "S16 memory of many pages is entered in small steps", large_memory },
		{ "S16 a long queue of completions moves in small steps", long_queue },
		{ "F4 completions that never were are not copied", never_completed },
		{ "S16 the engine is as before", stop },
	};

	rig_start(&rig, NULL);
	return rcd_tap_run("rounds", tests, sizeof(tests) / sizeof(tests[0]));
}
