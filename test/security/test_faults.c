/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what a client does to memory that it shares with the engine is its own affair, also when it
 * gives the memory back before the engine looks, or leaves. Method: clients that take memory away
 * from under a transfer, return it at once, and others that get its addresses next; a client that
 * keeps the files of its segment.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_bytes.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "takers.h"

#define LEN    (UINT64_C(4) << 20)
#define ROUNDS 8
#define TICKS  60 /**< milliseconds of some rounds of the control thread */

static struct rig rig;

static uint32_t
share(struct node *node, int fd)
{
	struct rcd_ctrl_mem_req req = { .len = LEN, .writable = 1 };
	struct rcd_ctrl_fds fds = { .fds = { fd }, .count = 1 };
	struct rcd_ctrl_handle rep;

	MUST(rcd_client_call(&node->client, RCD_CTRL_MEM_ADD, &req, &rep, &fds, NULL) == 0);
	return rep.handle;
}

static void
give_back(struct node *node, uint32_t mem)
{
	struct rcd_ctrl_handle req = { .handle = mem };

	MUST(rcd_client_call(&node->client, RCD_CTRL_MEM_DEL, &req, NULL, NULL, NULL) == 0);
}

static uint32_t
region_of(struct node *node, uint32_t mem)
{
	struct rcd_ctrl_mr_req req;
	struct rcd_ctrl_mr_rep rep;

	memset(&req, 0, sizeof(req));
	req.pd = node->pd;
	req.access = RCD_ACCESS_LOCAL_WRITE;
	req.start = LEN;
	req.len = LEN;
	req.extent_count = 1;
	req.extents[0].len = LEN;
	req.extents[0].mem = mem;
	MUST(rcd_client_call(&node->client, RCD_CTRL_MR_REG, &req, &rep, NULL, NULL) == 0);
	return rep.key;
}

/* A pair with memory of its own. */
static void
join(struct node *a, struct node *b)
{
	node_open(a, rig.socket, "roce0", RCD_QP_RC);
	node_open(b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(a, 4096);
	node_memory(b, 4096);
	node_join(a, b, RCD_QP_RC, 1);
}

/* A fault, and its addresses are free again before the engine's next tick. */
static void
fault_and_return(struct node *from, struct node *to, int fd)
{
	struct rcd_sge sge = { .addr = LEN, .len = 64 };
	struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge };
	struct rcd_ctrl_key key;
	struct rcd_cq_slot slot;
	uint32_t mem;

	MUST(ftruncate(fd, LEN) == 0);
	mem = share(from, fd);
	key.key = region_of(from, mem);
	MUST(ftruncate(fd, 0) == 0);
	sge.lkey.val = key.key;
	wr.remote.va = (uintptr_t)to->memory;
	wr.remote.rkey.val = to->mr.key;
	MUST(rcd_cl_post_send(&from->qp, &wr) == 0);
	rcd_cl_ring(&from->qp);
	node_wait(from, &slot, 3000);
	MUST(rcd_client_call(&from->client, RCD_CTRL_MR_DEREG, &key, NULL, NULL, NULL) == 0);
	give_back(from, mem);
}

/* Not listed as long as there are none. */
static long long
offences(void)
{
	long long count = rig_engine(&rig, "client_bad_memory");

	return count < 0 ? 0 : count;
}

/* Others get these addresses for their memory, and for their segment. */
static void
others_are_not_blamed(void)
{
	int fd = memfd_create("t", 0);
	int good = memfd_create("good", 0);
	long long before;
	int wrong = 0;

	rig_start(&rig, NULL);
	MUST(fd >= 0 && good >= 0 && ftruncate(good, LEN) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct node from, to, a, b, opened;
		struct rcd_cq_slot slot;
		uint32_t mem;

		before = offences();
		join(&a, &b);
		join(&from, &to);
		fault_and_return(&from, &to, fd);
		/* In half of the rounds a region's addresses, else a segment's. */
		mem = i % 2 ? share(&a, good) : 0;
		MUST(node_try_open(&opened, rig.socket, "roce1") == 0);
		if (i % 2 == 0)
			mem = share(&a, good);
		usleep(TICKS * 1000);
		wrong += rcd_client_check(&opened.client);
		wrong += rcd_client_check(&a.client);
		MUST(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 64, 1) == 0);
		wrong += node_wait(&a, &slot, FOREVER_MS) != 0;
		/* Who did it is counted, though it was gone when the engine looked. */
		for (uint64_t end = now_ms() + FOREVER_MS; offences() <= before && now_ms() < end;)
			usleep(1000);
		CU_ASSERT_EQUAL(offences(), before + 1);
		give_back(&a, mem);
		node_close(&opened);
		node_close(&a);
		node_close(&b);
		node_close(&from);
		node_close(&to);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	close(fd);
	close(good);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

static void
no_pages_are_kept(void)
{
	struct keeper keeper;

	rig_start(&rig, NULL);
	keeper_open(&keeper, rig.socket);
	CU_ASSERT(keeper_bytes(&keeper) >= 12 << 20);
	rcd_client_close(&keeper.client);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_EQUAL(keeper_bytes(&keeper), 0);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "H1 a fault is not blamed on who has the addresses next", others_are_not_blamed },
		{ "H3 no pages of a segment outlive its session", no_pages_are_kept },
	};

	return rcd_tap_run("faults", tests, RCD_ARRAY_COUNT(tests));
}
