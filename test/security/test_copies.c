/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: memory that is reached by copies is reached by nobody but the program that registered it,
 * and a page of it that never comes stalls that program and nobody else. Method: an engine of the
 * test's own; hostile programs in processes of their own, each joined with a node of this one;
 * another pair that must go on all the while. What is right about copies is compared byte by byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

#define LEN   65536u
#define FIXED ((uint8_t *)UINT64_C(0x200000000000)) /**< where nothing else ever lies */
#define ALL   (RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE)

static struct rig rig;
static struct node honest_a, honest_b;
static const char *self;

/* What a program of another process tells of itself. */
struct shared {
	uint32_t qpn;
	uint32_t peer_qpn;
	uint32_t key;
	uint32_t fine_key;
	const uint8_t *addr;
	uint32_t stage; /**< atomic */
	int err[4];
};

static struct shared *shared;

static void
set_stage(uint32_t stage)
{
	__atomic_store_n(&shared->stage, stage, __ATOMIC_SEQ_CST);
}

static bool
wait_stage(uint32_t stage)
{
	uint64_t deadline = now_ms() + FOREVER_MS;

	while (__atomic_load_n(&shared->stage, __ATOMIC_SEQ_CST) < stage && now_ms() < deadline)
		usleep(2000);
	return __atomic_load_n(&shared->stage, __ATOMIC_SEQ_CST) >= stage;
}

/* Join a node with a queue pair of another process on a device. */
static void
join_with(struct node *node, const char *device, uint32_t qpn)
{
	struct node peer;

	MUST(node_try_open(&peer, rig.socket, device) == 0);
	peer.qp.qpn = qpn;
	MUST(node_connect(&node->qp, RCD_QP_RC, node_attr(node, &peer, 1)) == 0);
	rcd_client_close(&peer.client);
}

static int
reg_copied(struct node *node, uint8_t *at, uint64_t len, struct rcd_cl_mr *mr)
{
	struct rcd_cl_mr_attr attr = {
		.pd = node->pd, .access = ALL, .addr = at, .len = len, .start = (uintptr_t)at
	};
	int err;

	setenv("ROCADE_MR", "copy", 1);
	err = rcd_cl_mr_reg(&node->client, &attr, mr);
	unsetenv("ROCADE_MR");
	return err;
}

/* Post one WRITE of a node into memory of its peer. */
static void
post_write(struct node *node, const uint8_t *at, uint32_t len, uint32_t key)
{
	struct rcd_sge sge = { (uintptr_t)node->memory, len, { node->mr.key } };
	struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .va = (uintptr_t)at, .rkey = { key } } };

	MUST(rcd_cl_post_send(&node->qp, &wr) == 0);
	rcd_cl_ring(&node->qp);
}

/* The pair that has nothing to do with it transfers, and new ones may come. */
static void
others_go_on(void)
{
	struct rcd_cq_slot slot;
	struct node fresh;
	static uint32_t round;

	for (int i = 0; i < 10; i++) {
		fill(honest_a.memory, LEN, ++round);
		CU_ASSERT_EQUAL_FATAL(
			node_write(&honest_a, &honest_b, RCD_WR_RDMA_WRITE, 0, LEN, round), 0);
		CU_ASSERT_EQUAL_FATAL(node_wait(&honest_a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		CU_ASSERT(filled(honest_b.memory, LEN, round));
	}
	node_open(&fresh, rig.socket, "roce0", RCD_QP_RC);
	node_close(&fresh);
}

static uint8_t *
map_fixed(void)
{
	uint8_t *at = mmap(FIXED, LEN, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	MUST(at == FIXED);
	return at;
}

/* What is executed in the place of a client: has memory where that one had some. */
static int
victim(int ready, int go)
{
	uint8_t *at = map_fixed();
	char byte;

	fill(at, LEN, 9);
	if (write(ready, "r", 1) != 1 || read(go, &byte, 1) != 1)
		return 2;
	return filled(at, LEN, 9) ? 0 : 1;
}

/* Registers copied memory, and leaves another program in its place; a child keeps the session. */
static void
become_victim(int ready, int go)
{
	char ready_text[16], go_text[16];
	struct rcd_cl_mr mr;
	struct node node;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	join_with(&node, "roce1", shared->peer_qpn);
	MUST(reg_copied(&node, map_fixed(), LEN, &mr) == 0);
	shared->qpn = node.qp.qpn;
	shared->key = mr.key;
	/* Not by fork(): the library would close the session in the child. */
	if (syscall(SYS_fork) == 0) {
		set_stage(1);
		pause();
		_exit(0);
	}
	snprintf(ready_text, sizeof(ready_text), "%d", ready);
	snprintf(go_text, sizeof(go_text), "%d", go);
	execl(self, self, "victim", ready_text, go_text, NULL);
	_exit(3);
}

static void
executed_program(void)
{
	int ready[2], go[2], status = -1;
	struct rcd_cq_slot slot;
	struct node node;
	pid_t pid;
	char byte;

	MUST(pipe(ready) == 0 && pipe(go) == 0);
	memset(shared, 0, sizeof(*shared));
	node_open(&node, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&node, LEN);
	shared->peer_qpn = node.qp.qpn;
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		become_victim(ready[1], go[0]);
	}
	setpgid(pid, pid);
	MUST(wait_stage(1));
	node_timeout = NODE_TIMEOUT_SHORT; /* its tries are waited for */
	join_with(&node, "roce0", shared->qpn);
	node_timeout = NODE_TIMEOUT;
	MUST(read(ready[0], &byte, 1) == 1);
	fill(node.memory, LEN, 10);
	post_write(&node, FIXED, 4096, shared->key);
	CU_ASSERT_NOT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	MUST(write(go[1], "g", 1) == 1);
	MUST(waitpid(pid, &status, 0) == pid);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	kill(-pid, SIGKILL); /* who kept the session */
	others_go_on();
	node_close(&node);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
}

/* A page whose fault nobody answers. @return NULL where that can't be had */
static uint8_t *
map_stuck(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	uint8_t *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	range.range.start = (uintptr_t)page;
	range.range.len = 4096;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) != 0 ||
		ioctl(uffd, UFFDIO_REGISTER, &range) != 0)
		return NULL;
	return page;
}

/*
 * A client with two copied regions, one of which never comes. Stage 1: ready; 2: it shall take
 * everything down while the copy waits; 3: it has.
 */
static void
be_stuck(void)
{
	struct rcd_cl_mr stuck, fine;
	struct node node;
	uint8_t *page = map_stuck();

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	join_with(&node, "roce1", shared->peer_qpn);
	if (page == NULL || reg_copied(&node, page, 4096, &stuck) != 0 ||
		reg_copied(&node, map_fixed(), LEN, &fine) != 0) {
		set_stage(4);
		_exit(0);
	}
	shared->qpn = node.qp.qpn;
	shared->addr = page;
	shared->key = stuck.key;
	shared->fine_key = fine.key;
	set_stage(1);
	MUST(wait_stage(2));
	shared->err[0] = rcd_cl_mr_dereg(&node.client, &fine);
	shared->err[1] = rcd_cl_mr_dereg(&node.client, &stuck);
	shared->err[2] = rcd_cl_destroy(&node.client, RCD_CTRL_QP_DESTROY, node.qp.handle);
	shared->err[3] = rcd_cl_destroy(&node.client, RCD_CTRL_CQ_DESTROY, node.cq.handle);
	set_stage(3);
	pause();
}

/* A node whose peer works, and then has a copy to make that never ends. @return -1: not here */
static pid_t
start_stuck(struct node *node)
{
	struct rcd_cq_slot slot;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	node_open(node, rig.socket, "roce1", RCD_QP_RC);
	node_memory(node, LEN);
	shared->peer_qpn = node->qp.qpn;
	pid = fork();
	if (pid == 0) {
		be_stuck();
		_exit(0);
	}
	MUST(wait_stage(1));
	if (shared->stage == 4) {
		waitpid(pid, NULL, 0);
		node_close(node);
		rcd_tap_skip("userfaultfd is not allowed here");
		return -1;
	}
	node_timeout = NODE_TIMEOUT_SHORT; /* its tries are waited for */
	join_with(node, "roce0", shared->qpn);
	node_timeout = NODE_TIMEOUT;
	post_write(node, FIXED, 4096, shared->fine_key);
	MUST(node_wait(node, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
	post_write(node, shared->addr, 4096, shared->key);
	return pid;
}

static void
page_that_never_comes(void)
{
	struct rcd_cq_slot slot;
	struct node node;
	pid_t pid = start_stuck(&node);

	if (pid < 0)
		return;
	/* Tried again until it is given up: as if the network were gone. */
	others_go_on();
	CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_RETRY_EXC_ERR);
	/* Its session ends like any other. */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	node_close(&node);
	CU_ASSERT(rig_contexts(&rig, 2, FOREVER_MS));
	others_go_on();
}

static void
objects_of_a_stuck_copy(void)
{
	struct node node;
	pid_t pid = start_stuck(&node);

	if (pid < 0)
		return;
	usleep(100000);
	set_stage(2);
	MUST(wait_stage(3));
	/* What is not being copied goes at once; what is can't go: it would be written later. */
	CU_ASSERT_EQUAL(shared->err[0], 0);
	CU_ASSERT_EQUAL(shared->err[1], -ETIMEDOUT);
	CU_ASSERT_EQUAL(shared->err[2], 0);
	CU_ASSERT_EQUAL(shared->err[3], 0);
	others_go_on();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	node_close(&node);
	others_go_on();
}

static void
end_beside_a_stuck_client(void)
{
	struct node node;
	pid_t pid = start_stuck(&node);

	if (pid < 0)
		return;
	usleep(100000);
	node_close(&honest_a);
	node_close(&honest_b);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
	node_close(&node);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int
main(int argc, char **argv)
{
	static const struct rcd_test tests[] = {
		{ "S2 a program executed in a client's place is not written", executed_program },
		{ "S5 a page that never comes stalls its own client", page_that_never_comes },
		{ "S5 objects go while a copy of theirs waits", objects_of_a_stuck_copy },
		{ "S5 the engine ends while a copy waits", end_beside_a_stuck_client },
	};
	int result;

	if (argc == 4 && strcmp(argv[1], "victim") == 0)
		return victim((int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10));
	self = argv[0];
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared != MAP_FAILED);
	rig_start(&rig, NULL);
	node_open(&honest_a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&honest_b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&honest_a, LEN);
	node_memory(&honest_b, LEN);
	node_join(&honest_a, &honest_b, RCD_QP_RC, 1);
	result = rcd_tap_run("copies", tests, sizeof(tests) / sizeof(tests[0]));
	if (honest_a.memory != NULL)
		rig_kill(&rig);
	return result;
}
