/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: device memory is the client's own, whatever lengths and offsets it asks for, however it
 * treats the file that it is in, and whenever it goes; what it leaves, the next one finds cleared.
 * Method: requests as a hostile client makes them, at the edges of 2^64, and RDMA WRITE of a peer.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_bytes.h"
#include "rcd_cl_dm.h"
#include "rcd_cl_dmabuf.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "takers.h"

#define LEN    UINT64_C(10000) /**< no whole number of pages */
#define ALL    (RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE | RCD_ACCESS_ZERO_BASED)
#define NONE   77u /**< a handle that nothing has */
#define ROUNDS 200

static struct rig rig;

static int
alloc(struct node *node, uint64_t len, struct rcd_ctrl_dm_rep *rep)
{
	struct rcd_ctrl_dm_req req = { .len = len };

	return rcd_client_call(&node->client, RCD_CTRL_DM_ALLOC, &req, rep, NULL, NULL);
}

static int
reg(struct node *node, uint32_t dm, uint64_t offset, uint64_t len, uint32_t *key)
{
	struct rcd_ctrl_dm_mr_req req = {
		.pd = node->pd, .dm = dm, .access = ALL, .offset = offset, .len = len
	};

	return rcd_cl_dm_reg(&node->client, &req, key);
}

static int
by_handle(struct node *node, enum rcd_ctrl_op op, uint32_t handle)
{
	return rcd_cl_destroy(&node->client, op, handle);
}

static uint8_t *
bytes_of(const struct node *node, const struct rcd_ctrl_dm_rep *dm)
{
	return (uint8_t *)node->client.shm + dm->offset;
}

static void
lengths_at_the_edges(void)
{
	const uint64_t page = 4096;
	struct rcd_ctrl_dm_rep dm;
	struct node node;

	MUST(node_try_open(&node, rig.socket, "roce0") == 0);
	const struct {
		uint64_t len;
		int err;
	} edges[] = {
		{ 0, -EINVAL },
		{ UINT64_MAX, -ENOMEM },
		{ UINT64_MAX - page + 2, -ENOMEM },
		{ UINT64_C(1) << 63, -ENOMEM },
		{ node.device.max_dm_size + 1, -ENOMEM },
		{ node.device.max_dm_size, 0 },
		{ 1, 0 },
	};

	CU_ASSERT_TRUE(node.device.max_dm_size >= page);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(edges); i++) {
		int err = alloc(&node, edges[i].len, &dm);

		CU_ASSERT_EQUAL(err, edges[i].err);
		if (err != 0)
			continue;
		CU_ASSERT_EQUAL(dm.len, edges[i].len);
		CU_ASSERT_EQUAL(dm.offset % page, 0);
		CU_ASSERT_EQUAL(by_handle(&node, RCD_CTRL_DM_FREE, dm.handle), 0);
	}
	node_close(&node);
}

static void
regions_at_the_edges(void)
{
	static const struct {
		uint64_t offset, len;
		int err;
	} edges[] = {
		{ 0, LEN, 0 },
		{ LEN, 0, 0 },
		{ LEN - 1, 1, 0 },
		{ 0, LEN + 1, -EINVAL },
		{ 1, LEN, -EINVAL },
		{ LEN + 1, 0, -EINVAL },
		{ LEN, 1, -EINVAL },
		{ UINT64_MAX, 2, -EINVAL },
		{ 2, UINT64_MAX, -EINVAL },
		{ UINT64_MAX - 4095, 4096 + LEN, -EINVAL },
		{ UINT64_C(1) << 63, UINT64_C(1) << 63, -EINVAL },
	};
	struct rcd_ctrl_dm_mr_req wrong;
	struct rcd_ctrl_dm_rep dm;
	struct node node, other;
	uint32_t key;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	node_open(&other, rig.socket, "roce0", RCD_QP_RC);
	MUST(alloc(&node, LEN, &dm) == 0);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(edges); i++) {
		struct rcd_ctrl_key gone;
		int err = reg(&node, dm.handle, edges[i].offset, edges[i].len, &key);

		if (err != edges[i].err)
			printf("# case %zu: %d instead of %d\n", i, err, edges[i].err);
		CU_ASSERT_EQUAL(err, edges[i].err);
		if (err != 0)
			continue;
		CU_ASSERT_EQUAL(by_handle(&node, RCD_CTRL_DM_FREE, dm.handle), -EBUSY);
		gone = (struct rcd_ctrl_key){ .key = key };
		CU_ASSERT_EQUAL(
			rcd_client_call(&node.client, RCD_CTRL_MR_DEREG, &gone, NULL, NULL, NULL),
			0);
	}
	CU_ASSERT_EQUAL(reg(&node, NONE, 0, 1, &key), -ENOENT);
	/* What one has, another can't name. */
	CU_ASSERT_EQUAL(reg(&other, dm.handle, 0, 1, &key), -ENOENT);
	CU_ASSERT_EQUAL(by_handle(&other, RCD_CTRL_DM_FREE, dm.handle), -ENOENT);
	wrong = (struct rcd_ctrl_dm_mr_req){
		.pd = NONE, .dm = dm.handle, .access = ALL, .len = LEN
	};
	CU_ASSERT_EQUAL(rcd_cl_dm_reg(&node.client, &wrong, &key), -ENOENT);
	wrong.pd = node.pd;
	wrong.access = RCD_ACCESS_LOCAL_WRITE;
	CU_ASSERT_EQUAL(rcd_cl_dm_reg(&node.client, &wrong, &key), -EINVAL);
	wrong.access = ALL | RCD_ACCESS_NULL;
	CU_ASSERT_EQUAL(rcd_cl_dm_reg(&node.client, &wrong, &key), -EINVAL);
	wrong.access = ALL | RCD_ACCESS_FLUSH_PERSISTENT;
	CU_ASSERT_EQUAL(rcd_cl_dm_reg(&node.client, &wrong, &key), -EOPNOTSUPP);
	CU_ASSERT_EQUAL(by_handle(&node, RCD_CTRL_DM_FREE, dm.handle), 0);
	CU_ASSERT_EQUAL(by_handle(&node, RCD_CTRL_DM_FREE, dm.handle), -ENOENT);
	node_close(&node);
	node_close(&other);
}

/* A pair: one with memory, the other with device memory and a region of its first bytes. */
static uint32_t
join(struct node *from, struct node *to, struct rcd_ctrl_dm_rep *dm, uint64_t len)
{
	uint32_t key;

	node_open(from, rig.socket, "roce0", RCD_QP_RC);
	node_open(to, rig.socket, "roce1", RCD_QP_RC);
	node_memory(from, 2 * LEN);
	fill(from->memory, 2 * LEN, 5);
	node_join(from, to, RCD_QP_RC, 1);
	MUST(alloc(to, LEN, dm) == 0);
	MUST(reg(to, dm->handle, 0, len, &key) == 0);
	return key;
}

static int
write_to(struct node *from, uint64_t va, uint32_t len, uint32_t key)
{
	struct rcd_sge sge = {
		.addr = (uintptr_t)from->memory, .len = len, .lkey = { from->mr.key }
	};
	struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .va = va, .rkey = { key } } };

	MUST(rcd_cl_post_send(&from->qp, &wr) == 0);
	rcd_cl_ring(&from->qp);
	return 0;
}

static void
peers_reach_the_region_alone(void)
{
	struct rcd_ctrl_dm_rep dm;
	struct rcd_cq_slot slot;
	struct node from, to;
	uint32_t key = join(&from, &to, &dm, LEN - 100);
	int behind = 0;

	write_to(&from, 0, LEN - 100, key);
	CU_ASSERT_EQUAL(node_wait(&from, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(bytes_of(&to, &dm), from.memory, LEN - 100), 0);
	write_to(&from, 1, LEN - 100, key);
	CU_ASSERT_EQUAL(node_wait(&from, &slot, FOREVER_MS), RCD_WC_REM_ACCESS_ERR);
	for (uint64_t i = LEN - 100; i < LEN; i++)
		behind += bytes_of(&to, &dm)[i];
	CU_ASSERT_EQUAL(behind, 0);
	node_close(&from);
	node_close(&to);
}

static void
what_was_there_is_cleared(void)
{
	struct rcd_ctrl_dm_rep dm;
	struct node node;
	int left = 0;

	MUST(node_try_open(&node, rig.socket, "roce0") == 0);
	for (int round = 0; round < 2; round++) {
		MUST(alloc(&node, LEN, &dm) == 0);
		for (uint64_t i = 0; i < LEN; i++)
			left += bytes_of(&node, &dm)[i];
		memset(bytes_of(&node, &dm), 0xee, LEN);
		MUST(by_handle(&node, RCD_CTRL_DM_FREE, dm.handle) == 0);
	}
	CU_ASSERT_EQUAL(left, 0);
	node_close(&node);
}

/* Sealed: it can't be cut. Holes are filled again, and cost the client its own bytes alone. */
static void
a_client_punches_holes(void)
{
	struct rcd_ctrl_dm_rep dm;
	struct node from, to;
	uint32_t key = join(&from, &to, &dm, LEN);
	int fd = to.client.seg_fd;

	CU_ASSERT_EQUAL(ftruncate(fd, 0), -1);
	CU_ASSERT_EQUAL(errno, EPERM);
	for (int i = 0; i < ROUNDS; i++) {
		struct rcd_cq_slot slot;

		write_to(&from, 0, LEN, key);
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)dm.offset,
			(off_t)LEN);
		CU_ASSERT_EQUAL(node_wait(&from, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	}
	node_close(&from);
	node_close(&to);
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
}

/* Killed while a peer writes there. */
static void
a_client_dies(void)
{
	struct node from, to;
	long long limit;

	for (int round = 0; round < 3; round++) {
		int ready[2];
		pid_t pid;
		char byte;

		MUST(pipe(ready) == 0);
		pid = fork();
		MUST(pid >= 0);
		if (pid == 0) {
			struct rcd_ctrl_dm_rep dm;
			uint32_t key = join(&from, &to, &dm, LEN);

			for (int i = 0;; i++) {
				struct rcd_cq_slot slot;

				write_to(&from, 0, LEN, key);
				if (node_wait(&from, &slot, FOREVER_MS) != RCD_WC_SUCCESS)
					_exit(1);
				if (i == 0 && write(ready[1], "", 1) != 1)
					_exit(1);
			}
		}
		CU_ASSERT_EQUAL(read(ready[0], &byte, 1), 1);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[0]);
		close(ready[1]);
	}
	CU_ASSERT_TRUE(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_EQUAL(use_of(&rig, "\"of\":\"all\"", "dm_bytes", &limit), 0);
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
}

/* A forked child has memory of its own in its parent's context, and nothing of its parent's. */
static void
a_child_has_its_own(void)
{
	struct rcd_cl_dm dm;
	struct node node;
	int status;
	pid_t pid;

	MUST(node_try_open(&node, rig.socket, "roce0") == 0);
	MUST(setenv("ROCADE_SOCKET", rig.socket, 1) == 0);
	MUST(rcd_cl_dm_alloc(&node.client, LEN, &dm) == 0);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		uint32_t word = 7, wrong = 0;
		struct rcd_cl_dm own;

		wrong |= rcd_cl_dm_write(&dm, 0, &word, sizeof(word)) != -EIO;
		wrong |= rcd_cl_dm_free(&dm) != -EIO;
		if (rcd_cl_dm_alloc(&node.client, LEN, &own) != 0)
			_exit(2);
		wrong |= rcd_cl_dm_write(&own, 4, &word, sizeof(word)) != 0;
		word = 0;
		wrong |= rcd_cl_dm_read(&own, 4, &word, sizeof(word)) != 0 || word != 7;
		wrong |= rcd_cl_dm_free(&own) != 0;
		_exit((int)wrong);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_EQUAL(rcd_cl_dm_free(&dm), 0);
	node_close(&node);
}

/* A page of this process's own at an address. */
static uint8_t *
own_page_at(void *at)
{
	uint8_t *page = mmap(at, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	MUST(page == at);
	return page;
}

static bool
is_mapped(uint8_t *page)
{
	unsigned char there;

	return mincore(page, 4096, &there) == 0;
}

/*
 * A forked child has nothing of its parent's mapped, and may have anything else at these addresses:
 * it keeps that while it takes down what it inherited.
 */
static void
a_child_takes_down_what_it_inherited(void)
{
	struct rcd_cl_mr_attr attr = { .access = ALL, .len = LEN };
	int fd = memfd_create("buffer", MFD_CLOEXEC);
	struct rcd_cl_dmabuf buf;
	struct node node, other;
	int status;
	pid_t pid;

	MUST(fd >= 0 && ftruncate(fd, 3 * 4096) == 0);
	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	MUST(node_try_open(&other, rig.socket, "roce0") == 0);
	attr.pd = node.pd;
	MUST(rcd_cl_dmabuf_reg(&node.client, &attr, fd, 0, &buf) == 0);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		uint8_t *in_buffer = own_page_at(buf.mapping);
		uint8_t *in_segment = own_page_at(other.client.shm);

		if (rcd_cl_dmabuf_dereg(&node.client, &buf) != -EIO || !is_mapped(in_buffer))
			_exit(1);
		rcd_client_close(&other.client);
		_exit(is_mapped(in_segment) ? 0 : 2);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	CU_ASSERT_EQUAL(rcd_cl_dmabuf_dereg(&node.client, &buf), 0);
	close(fd);
	node_close(&other);
	node_close(&node);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "lengths at the edges of 2^64", lengths_at_the_edges },
		{ "regions at the edges of 2^64, and of another's memory", regions_at_the_edges },
		{ "peers reach the region alone", peers_reach_the_region_alone },
		{ "what was there is cleared", what_was_there_is_cleared },
		{ "a client punches holes under it", a_client_punches_holes },
		{ "a client dies while it is written to", a_client_dies },
		{ "a forked child has its own", a_child_has_its_own },
		{ "a forked child takes down what it inherited",
			a_child_takes_down_what_it_inherited },
	};
	int failed;

	rig_start(&rig, NULL);
	failed = rcd_tap_run("dm", tests, RCD_ARRAY_COUNT(tests));
	return rig_ends_well(&rig) ? failed : 1;
}
