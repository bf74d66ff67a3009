/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: nothing is acknowledged or completed before a copy that it depends on was made, a copy that
 * fails is an error for both sides, and a client that lies about copies harms itself alone. Method:
 * the test makes the copies of a client itself, one by one, and looks after each what is to be
 * seen; so the order of events is the test's, and time plays no part.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "copyq.h"
#include "rcd_qp.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"

#define CLIENTS  16
#define WORK     640    /**< units of a poll at most, as in test_polls.c */
#define HIDDEN   140000 /**< completions: more than was ever looked at at once, twice */
#define QUIET_MS 30     /**< for how long nothing is to be seen */

static void
no_queue_no_copies(void)
{
	struct rcd_ctrl_copy_rep rep;
	struct node node;
	uint32_t made;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT_EQUAL(reg_raw(&node, &node, 64, &made), -EPERM);
	CU_ASSERT_EQUAL(
		rcd_client_call(&node.client, RCD_CTRL_COPY_OPEN, NULL, &rep, NULL, NULL), 0);
	CU_ASSERT_EQUAL(
		rcd_client_call(&node.client, RCD_CTRL_COPY_OPEN, NULL, &rep, NULL, NULL), -EBUSY);
	CU_ASSERT_EQUAL(reg_raw(&node, &node, 64, &made), 0);
	node_close(&node);
}

static void
write_waits(void)
{
	struct rcd_send_wr flush = { .opcode = RCD_WR_FLUSH,
		.flags = RCD_SEND_SIGNALED,
		.flush = { .placement = RCD_PLACEMENT_GLOBAL, .len = 4096 } };
	struct rcd_cq_slot slot;

	setup();
	flush.flush.va = (uintptr_t)memory;
	flush.flush.rkey.val = key;
	fill(peer.memory, 4096, 1);
	memset(memory, 0, 4096);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_RDMA_WRITE, peers(4096), (uintptr_t)memory, key), 0);
	CU_ASSERT_EQUAL(rcd_cl_post_send(&peer.qp, &flush), 0);
	rcd_cl_ring(&peer.qp);
	CU_ASSERT(jobs(1));
	/* Nothing is acknowledged before it is there, nor is a FLUSH of it answered. */
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(filled(memory, 4096, 1));
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.opcode, RCD_WC_FLUSH);
	teardown();
}

static void
receive_waits(void)
{
	struct rcd_cq_slot slot;

	setup();
	fill(peer.memory, 10000, 2);
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 5), 0);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_SEND_WITH_IMM, peers(10000), 0, 0), 0);
	CU_ASSERT(jobs(3));
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, QUIET_MS), -ETIMEDOUT);
	make(0);
	make(0);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, QUIET_MS), -ETIMEDOUT);
	make(0);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.wr_id, 5);
	CU_ASSERT_EQUAL(slot.byte_len, 10000);
	CU_ASSERT_EQUAL(slot.imm, 0x1234);
	CU_ASSERT(filled(memory, 10000, 2));
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	teardown();
}

static void
read_and_atomic_wait(void)
{
	struct rcd_cq_slot slot;
	uint64_t val = 100;

	setup();
	fill(memory, 10000, 3);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_RDMA_READ, peers(10000), (uintptr_t)memory, key), 0);
	CU_ASSERT(jobs(3));
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(filled(peer.memory, 10000, 3));
	memcpy(memory + 64, &val, 8);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_FETCH_ADD, peers(8), (uintptr_t)memory + 64, key), 0);
	CU_ASSERT(jobs(1));
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	memcpy(&val, peer.memory, 8);
	CU_ASSERT_EQUAL(val, 100);
	memcpy(&val, memory + 64, 8);
	CU_ASSERT_EQUAL(val, 107);
	/* Ours, into memory that is copied: its completion waits for what came. */
	fill(peer.memory, 5000, 4);
	CU_ASSERT_EQUAL(
		post(&copied.qp, RCD_WR_RDMA_READ, ours(5000), (uintptr_t)peer.memory, peer.mr.key),
		0);
	CU_ASSERT(jobs(2));
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(make_until(&copied, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(filled(memory, 5000, 4));
	teardown();
}

static void
send_waits(void)
{
	struct rcd_cq_slot slot;

	setup();
	fill(memory, 10000, 5);
	CU_ASSERT_EQUAL(node_recv(&peer, 0, LEN, 6), 0);
	CU_ASSERT_EQUAL(post(&copied.qp, RCD_WR_SEND, ours(10000), 0, 0), 0);
	CU_ASSERT(jobs(3));
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(filled(peer.memory, 10000, 5));
	CU_ASSERT_EQUAL(make_until(&copied, &slot), RCD_WC_SUCCESS);
	teardown();
}

/* Two queue pairs, one completion queue: order is kept, and who needs no copy is held no longer. */
static void
one_queue_for_two(void)
{
	struct rcd_cq_slot slot;

	setup();
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 1), 0);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0), 0);
	CU_ASSERT(jobs(1));
	/* The other one's needs no copy, is carried out, and is shown behind the first. */
	CU_ASSERT_EQUAL(
		post(&second, RCD_WR_RDMA_WRITE,
			(struct rcd_sge){ (uintptr_t)copied.memory, 100, { copied.mr.key } },
			(uintptr_t)peer.memory + 4096, peer.mr.key),
		0);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, QUIET_MS), -ETIMEDOUT);
	make(0);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.wr_id, 1);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.qpn, second.qpn);
	teardown();
}

/* Traffic that never pauses does not hold completions for ever. */
static void
always_something_out(void)
{
	struct rcd_cq_slot slot;
	uint32_t got = 0;

	setup();
	for (uint32_t i = 0; i < 60; i++)
		MUST(post_recv(&copied.qp, ours(LEN), i) == 0);
	MUST(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0) == 0);
	for (uint32_t i = 0; i < 50; i++) {
		MUST(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0) == 0);
		/* One more is out whenever one is made. */
		CU_ASSERT_FATAL(jobs(2));
		make(0);
		if (node_wait(&copied, &slot, QUIET_MS) == RCD_WC_SUCCESS)
			CU_ASSERT_EQUAL(slot.wr_id, got++);
	}
	CU_ASSERT(got >= 40);
	teardown();
}

static void
failed_receive(void)
{
	struct rcd_cq_slot slot;

	setup();
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 1), 0);
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 2), 0);
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 3), 0);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0), 0);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0), 0);
	CU_ASSERT(jobs(2));
	make(EFAULT);
	/* The first did not arrive, the second came behind it, the third was never used. */
	CU_ASSERT_EQUAL(make_until(&copied, &slot), RCD_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(slot.wr_id, 1);
	CU_ASSERT_EQUAL(make_until(&copied, &slot), RCD_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(slot.wr_id, 2);
	CU_ASSERT_EQUAL(make_until(&copied, &slot), RCD_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(slot.wr_id, 3);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_REM_OP_ERR);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_WR_FLUSH_ERR);
	teardown();
}

static void
failed_write_and_read(void)
{
	struct rcd_cq_slot slot;

	setup();
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_RDMA_WRITE, peers(100), (uintptr_t)memory, key), 0);
	CU_ASSERT(jobs(1));
	make(EFAULT);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_REM_ACCESS_ERR);
	/* The other one of both goes on. */
	CU_ASSERT_EQUAL(
		post(&second, RCD_WR_RDMA_READ, ours(5000), (uintptr_t)peer.memory, peer.mr.key),
		0);
	CU_ASSERT(jobs(2));
	make(0);
	make(EFAULT);
	CU_ASSERT_EQUAL(make_until(&copied, &slot), RCD_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(slot.qpn, second.qpn);
	teardown();
}

static void
begins_anew(void)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_RESET };
	struct rcd_cq_slot slot;

	setup();
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 1), 0);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0), 0);
	CU_ASSERT_EQUAL(post(&copied.qp, RCD_WR_SEND, ours(100), 0, 0), 0);
	CU_ASSERT_EQUAL(post_recv(&second, ours(LEN), 2), 0);
	CU_ASSERT_EQUAL(post(&peer_second, RCD_WR_SEND, peers(200), 0, 0), 0);
	CU_ASSERT(jobs(2));
	CU_ASSERT_EQUAL(rcd_cl_qp_modify(&copied.qp, &attr, RCD_QP_ATTR_STATE), 0);
	/* Of its former life nothing is ever seen. */
	CU_ASSERT_EQUAL(make_until(&copied, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.qpn, second.qpn);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, QUIET_MS), -ETIMEDOUT);
	teardown();
}

/* The copy that it waited for is nobody's, and never made: that must not keep it from sending. */
static void
sends_after_reset(void)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_RESET };
	struct rcd_sge sge;
	struct rcd_cq_slot slot;

	setup();
	sge = (struct rcd_sge){ (uintptr_t)copied.memory, 100, { copied.mr.key } };
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_RDMA_WRITE, peers(100), (uintptr_t)memory, key), 0);
	CU_ASSERT(jobs(1));
	CU_ASSERT_EQUAL(rcd_cl_qp_modify(&peer.qp, &attr, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_cl_qp_modify(&copied.qp, &attr, RCD_QP_ATTR_STATE), 0);
	node_join(&copied, &peer, RCD_QP_RC, 1);
	CU_ASSERT_EQUAL(post_recv(&peer.qp, peers(100), 1), 0);
	CU_ASSERT_EQUAL(post(&copied.qp, RCD_WR_SEND, sge, 0, 0), 0);
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	teardown();
}

/* However many are hidden, nothing is seen of a queue pair that began anew, or went. */
static void
hides_many(bool destroy)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_RESET };
	struct rcd_sge sge;
	struct rcd_cq_slot slot;

	setup();
	MUST(rcd_cl_cq_resize(&copied.cq, 2 * HIDDEN) == 0);
	sge = (struct rcd_sge){ (uintptr_t)copied.memory, 8, { copied.mr.key } };
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 1), 0);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0), 0);
	CU_ASSERT(jobs(1));
	for (uint32_t i = 0; i < HIDDEN; i++)
		while (post(&second, RCD_WR_RDMA_WRITE, sge, (uintptr_t)peer.memory, peer.mr.key) !=
			0)
			usleep(10);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(destroy ? rcd_cl_destroy(&copied.client, RCD_CTRL_QP_DESTROY, second.handle)
				: rcd_cl_qp_modify(&second, &attr, RCD_QP_ATTR_STATE),
		0);
	CU_ASSERT_EQUAL(make_until(&copied, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.qpn, copied.qp.qpn);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, QUIET_MS), -ETIMEDOUT);
	teardown();
}

/* A client that says it consumed what it was not shown yet, of a queue that moves. */
static void
ahead(void)
{
	struct rcd_ctrl_cq_resize_req resize = { .depth = HIDDEN };
	struct rcd_ctrl_cq_rep rep;
	struct rcd_sge sge;

	setup();
	resize.handle = copied.cq.handle;
	sge = (struct rcd_sge){ (uintptr_t)copied.memory, 8, { copied.mr.key } };
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 1), 0);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0), 0);
	CU_ASSERT(jobs(1));
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(
			post(&second, RCD_WR_RDMA_WRITE, sge, (uintptr_t)peer.memory, peer.mr.key),
			0);
	/* Done, and hidden behind the receive that waits for its copy. */
	for (uint64_t end = now_ms() + FOREVER_MS;
		rcd_shm_load(&second.sq.shm->consumer) != 4 && now_ms() < end;)
		usleep(1000);
	CU_ASSERT_EQUAL(rcd_shm_load(&second.sq.shm->consumer), 4);
	rcd_shm_store(&copied.cq.shm->consumer, 4);
	MUST(rcd_client_call(&copied.client, RCD_CTRL_CQ_RESIZE, &resize, &rep, NULL, NULL) == 0);
	CU_ASSERT(rig_engine(&rig, "longest_step_work") < 10000);
	teardown();
}

static void
many_hidden(void)
{
	hides_many(false);
	hides_many(true);
}

/* Many clients say at once that hundreds of copies are done, and are always asleep. */
static void
many_at_once(void)
{
	struct {
		struct node copied, peer;
		struct rcd_copyq *queue;
		uint8_t *memory;
		uint32_t key;
	} all[CLIENTS];
	long long budgets = rig_engine(&rig, "poll_budget_client");
	struct rcd_cq_slot slot;

	for (int i = 0; i < CLIENTS; i++) {
		setup();
		all[i].copied = copied;
		all[i].peer = peer;
		all[i].queue = queue;
		all[i].memory = memory;
		all[i].key = key;
	}
	for (int i = 0; i < CLIENTS; i++) {
		peer = all[i].peer;
		CU_ASSERT_EQUAL(post(&all[i].peer.qp, RCD_WR_RDMA_WRITE, peers(LEN),
					(uintptr_t)all[i].memory, all[i].key),
			0);
	}
	for (int i = 0; i < CLIENTS; i++) {
		queue = all[i].queue;
		CU_ASSERT(jobs(LEN / 4096));
	}
	for (int i = 0; i < CLIENTS; i++) {
		rcd_shm_store(&all[i].queue->asleep, 1);
		rcd_shm_store(&all[i].queue->done, rcd_shm_load(&all[i].queue->posted));
	}
	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT_NOT_EQUAL(node_wait(&all[i].peer, &slot, FOREVER_MS), -ETIMEDOUT);
	printf("# largest poll: %lld units\n", rig_engine(&rig, "longest_poll_work"));
	CU_ASSERT(rig_engine(&rig, "longest_poll_work") <= WORK);
	CU_ASSERT(rig_engine(&rig, "poll_budget_client") > budgets);
	for (int i = 0; i < CLIENTS; i++) {
		node_close(&all[i].copied);
		node_close(&all[i].peer);
		free(all[i].memory);
	}
}

static void
goes_with_jobs_out(void)
{
	struct rcd_ctrl_key mr;
	struct rcd_cq_slot slot;

	setup();
	mr.key = key;
	mr.reserved = 0;
	CU_ASSERT_EQUAL(post_recv(&copied.qp, ours(LEN), 1), 0);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_SEND, peers(100), 0, 0), 0);
	CU_ASSERT_EQUAL(post(&copied.qp, RCD_WR_SEND, ours(10000), 0, 0), 0);
	CU_ASSERT_EQUAL(
		post(&peer_second, RCD_WR_RDMA_WRITE, peers(3000), (uintptr_t)memory, key), 0);
	CU_ASSERT(jobs(2));
	CU_ASSERT_EQUAL(rcd_cl_destroy(&copied.client, RCD_CTRL_QP_DESTROY, copied.qp.handle), 0);
	CU_ASSERT_EQUAL(
		rcd_client_call(&copied.client, RCD_CTRL_MR_DEREG, &mr, NULL, NULL, NULL), 0);
	/* What the other one had under way arrives; what comes behind it finds no region. */
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(
		post(&peer_second, RCD_WR_RDMA_WRITE, peers(3000), (uintptr_t)memory, key), 0);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&copied.client, RCD_CTRL_QP_DESTROY, second.handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&copied.client, RCD_CTRL_CQ_DESTROY, copied.cq.handle), 0);
	teardown();
}

static long long
statistic(const char *counter)
{
	char *answer = rig_admin(rig.socket, "statistic roce0");
	long long count = rig_number(answer, counter);

	free(answer);
	return count;
}

/* More comes than there is room for: it is dropped and comes again, and none is lost. */
static void
no_room(void)
{
	long long dropped = statistic("rx_drop_copy_busy");
	struct rcd_cq_slot slot;

	setup();
	for (uint32_t i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(
			post(&peer.qp, RCD_WR_RDMA_WRITE, peers(LEN), (uintptr_t)memory, key), 0);
	for (uint32_t i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(
			post(&peer_second, RCD_WR_RDMA_WRITE, peers(LEN), (uintptr_t)memory, key),
			0);
	CU_ASSERT(jobs(600));
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, QUIET_MS), -ETIMEDOUT);
	CU_ASSERT(statistic("rx_drop_copy_busy") > dropped);
	CU_ASSERT(rcd_shm_load(&queue->posted) - done <= RCD_COPYQ_JOBS);
	fill(peer.memory, LEN, 6);
	for (uint32_t i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_RDMA_WRITE, peers(LEN), (uintptr_t)memory, key), 0);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(filled(memory, LEN, 6));
	teardown();
}

/* An index that can't be: its queue pairs with copies fail, and others know nothing of it. */
static void
lies(void)
{
	struct rcd_cq_slot slot;

	setup();
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_RDMA_WRITE, peers(100), (uintptr_t)memory, key), 0);
	CU_ASSERT(jobs(1));
	rcd_shm_store(&queue->done, 77777);
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, FOREVER_MS), RCD_WC_REM_ACCESS_ERR);
	/* What needs no copies goes on. */
	CU_ASSERT_EQUAL(
		post(&second, RCD_WR_RDMA_WRITE,
			(struct rcd_sge){ (uintptr_t)copied.memory, 100, { copied.mr.key } },
			(uintptr_t)peer.memory, peer.mr.key),
		0);
	for (int i = 0; i < 3 && node_wait(&copied, &slot, FOREVER_MS) != RCD_WC_SUCCESS; i++)
		continue;
	CU_ASSERT_EQUAL(slot.qpn, second.qpn);
	CU_ASSERT_EQUAL(
		post(&second, RCD_WR_RDMA_WRITE, ours(100), (uintptr_t)peer.memory, peer.mr.key),
		0);
	CU_ASSERT_NOT_EQUAL(node_wait(&copied, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	teardown();
}

/* All of the queue is the client's to write. */
static void
scribbles(void)
{
	struct rcd_sequence sequence = { 88172645463325252ull };
	struct honest honest;

	setup();
	honest = honest_start(&rig);
	for (int round = 0; round < 300; round++) {
		post(&peer.qp, RCD_WR_RDMA_WRITE, peers(5000), (uintptr_t)memory, key);
		post(&peer_second, RCD_WR_RDMA_READ, peers(5000), (uintptr_t)memory, key);
		post(&copied.qp, RCD_WR_SEND, ours(5000), 0, 0);
		for (size_t i = 0; i < offsetof(struct rcd_copyq, arena) / 8; i++)
			((volatile uint64_t *)(void *)queue)[i] = rcd_sequence_next(&sequence);
		rcd_shm_store(&queue->done,
			rcd_shm_load(&queue->posted) -
				(uint32_t)(rcd_sequence_next(&sequence) % 3));
		usleep(200);
	}
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	teardown();
}

/* Regions of one client in no order: each is found by its address, and none that has gone. */
static void
many_regions(void)
{
	enum {
		REGIONS = 300,
		BYTES = 64
	};
	uint32_t keys[REGIONS];
	struct rcd_cq_slot slot;

	setup();
	for (uint32_t i = 0; i < REGIONS; i++)
		MUST(reg_raw(&copied, memory + i * BYTES, BYTES, &keys[i]) == 0);
	/* Some go, and others come, all over the list. */
	for (uint32_t i = 0; i < REGIONS; i++) {
		uint32_t at = i * 77 % REGIONS;
		struct rcd_ctrl_key gone = { .key = keys[at] };

		if (i % 3 == 0)
			continue;
		CU_ASSERT_EQUAL(
			rcd_client_call(&copied.client, RCD_CTRL_MR_DEREG, &gone, NULL, NULL, NULL),
			0);
		if (i % 3 == 1)
			MUST(reg_raw(&copied, memory + at * BYTES, BYTES, &keys[at]) == 0);
		else
			keys[at] = 0;
	}
	fill(peer.memory, BYTES, 9);
	for (uint32_t i = 0; i < REGIONS; i++) {
		if (keys[i] == 0)
			continue;
		memset(memory + i * BYTES, 0, BYTES);
		CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_RDMA_WRITE, peers(BYTES),
					(uintptr_t)memory + i * BYTES, keys[i]),
			0);
		CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
		CU_ASSERT(filled(memory + i * BYTES, BYTES, 9));
	}
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S5 copies of many clients stay in the budget of a poll", many_at_once },
		{ "S2 copied memory needs a client that makes the copies", no_queue_no_copies },
		{ "S5 a WRITE is acknowledged when it is in place", write_waits },
		{ "S5 a receive completes when it is in place", receive_waits },
		{ "S5 READs and atomics wait for their copies", read_and_atomic_wait },
		{ "S5 a SEND leaves when its payload is there", send_waits },
		{ "S5 completions keep their order", one_queue_for_two },
		{ "S5 completions come while copies are always out", always_something_out },
		{ "S5 a receive that fails is an error for both", failed_receive },
		{ "S5 a WRITE or READ that fails is an error", failed_write_and_read },
		{ "S5 nothing of a former life completes", begins_anew },
		{ "H7 a queue pair sends again after RESET", sends_after_reset },
		{ "S5 nothing of a former life completes, however much it was", many_hidden },
		{ "F4 a queue moves whose client is ahead of it", ahead },
		{ "S5 objects go with copies out", goes_with_jobs_out },
		{ "S5 copies that are out are bounded", no_room },
		{ "S5 an impossible index harms its writer", lies },
		{ "S5 a queue of nonsense harms its writer", scribbles },
		{ "S8 hundreds of regions come and go", many_regions },
		{ "S5 nothing is left", copyq_ends },
	};

	/* Copies are waited for as long as a busy machine takes: 2 s, eight times. */
	node_timeout = 19;
	copyq_begins();
	return rcd_tap_run("copyq", tests, sizeof(tests) / sizeof(tests[0]));
}
