/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a request that was posted is not made into another one while it is out, and nothing that
 * changes at once in shared memory tells of data that is not in place. Method: a client whose
 * copies the test makes: what is out stays out until the test has written over it, or has looked.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "copyq.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rcd_wqe.h"

#define PIECES   32 /**< of a request at most */
#define QUIET_MS 30 /**< for how long nothing is to be seen */

/* A queue pair of the peer's with all that a client may ask for, joined to one of the other's. */
static void
add_big(struct rcd_cl_qp *big, struct rcd_cl_qp *other)
{
	struct rcd_ctrl_qp_req req = { .pd = peer.pd,
		.type = RCD_QP_RC,
		.send_cq = peer.cq.handle,
		.recv_cq = peer.cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = 64,
		.rq_depth = 64,
		.max_send_sge = PIECES,
		.max_recv_sge = PIECES,
		.max_inline = 512 };
	struct node a = copied, b = peer;

	MUST(rcd_cl_qp_create(&peer.client, &req, big) == 0);
	node_qp(&copied, RCD_QP_RC, other);
	a.qp = *other;
	b.qp = *big;
	node_join(&a, &b, RCD_QP_RC, 1);
}

/* Lists of full length leave elements that are valid behind those of the next request. */
static void
leave_pieces(struct rcd_cl_qp *big, struct rcd_cl_qp *other)
{
	struct rcd_sge theirs = { (uintptr_t)copied.memory, PIECES, { copied.mr.key } };
	struct rcd_sge sges[PIECES];
	struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_READ,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = PIECES,
		.sges = sges,
		.remote = { .va = (uintptr_t)copied.memory, .rkey = { copied.mr.key } } };
	struct rcd_recv_wr recv = { .sge_count = PIECES, .sges = sges };
	struct rcd_cq_slot slot;

	for (uint32_t i = 0; i < PIECES; i++)
		sges[i] = (struct rcd_sge){ (uintptr_t)peer.memory + 64 * i, 1, { peer.mr.key } };
	CU_ASSERT_EQUAL(rcd_cl_post_send(big, &wr), 0);
	rcd_cl_ring(big);
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(rcd_cl_post_recv(big, &recv, true), 0);
	CU_ASSERT_EQUAL(post(other, RCD_WR_SEND, theirs, 0, 0), 0);
	CU_ASSERT_EQUAL(node_wait(&peer, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(node_wait(&copied, &slot, FOREVER_MS), RCD_WC_SUCCESS);
}

/* A READ that is out becomes one whose data is in it, and its list as long as a slot can say. */
static void
written_over(void)
{
	static const uint8_t counts[] = { PIECES + 1, 64, UINT8_MAX };
	struct rcd_cl_qp big, other;
	struct rcd_cq_slot slot;

	for (size_t i = 0; i < sizeof(counts); i++) {
		struct rcd_sq_wqe *wqe;
		size_t last;

		setup();
		add_big(&big, &other);
		leave_pieces(&big, &other);
		fill(memory, 64, 1);
		memset(peer.memory, 0, 64);
		CU_ASSERT_EQUAL(post(&big, RCD_WR_RDMA_READ, peers(64), (uintptr_t)memory, key), 0);
		CU_ASSERT(jobs(1));
		last = (size_t)((big.sq.producer - 1) & big.sq.mask) * big.sq.stride;
		wqe = (struct rcd_sq_wqe *)(void *)(big.sq.slots + last);
		wqe->inline_len = 64;
		wqe->sge_count = counts[i];
		wqe->flags |= RCD_SEND_INLINE;
		CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(slot.qpn, big.qpn);
		teardown();
	}
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
}

/* A record, FLUSHed, and what says that it is there: in shared memory of the same client. */
static void
post_record(uint8_t commit)
{
	struct rcd_send_wr flush = { .opcode = RCD_WR_FLUSH,
		.flags = RCD_SEND_SIGNALED,
		.flush = { .placement = RCD_PLACEMENT_GLOBAL, .len = 4096 } };
	struct rcd_send_wr word = { .opcode = RCD_WR_ATOMIC_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.atomic_write = { .bytes = { 1, 2, 3, 4, 5, 6, 7, 8 } } };

	flush.flush.va = (uintptr_t)memory;
	flush.flush.rkey.val = key;
	word.atomic_write.va = (uintptr_t)copied.memory;
	word.atomic_write.rkey.val = copied.mr.key;
	fill(peer.memory, 4096, 1);
	memset(memory, 0, 4096);
	memset(copied.memory, 0, 4096);
	CU_ASSERT_EQUAL(post(&peer.qp, RCD_WR_RDMA_WRITE, peers(4096), (uintptr_t)memory, key), 0);
	CU_ASSERT_EQUAL(rcd_cl_post_send(&peer.qp, &flush), 0);
	if (commit == RCD_WR_ATOMIC_WRITE) {
		CU_ASSERT_EQUAL(rcd_cl_post_send(&peer.qp, &word), 0);
	} else {
		struct rcd_sge result = { (uintptr_t)peer.memory + 8192, 8, { peer.mr.key } };

		CU_ASSERT_EQUAL(
			post(&peer.qp, commit, result, (uintptr_t)copied.memory, copied.mr.key), 0);
	}
	rcd_cl_ring(&peer.qp);
	CU_ASSERT(jobs(1));
}

static const uint8_t commits[] = { RCD_WR_ATOMIC_WRITE, RCD_WR_FETCH_ADD };

static void
behind_a_copy(void)
{
	static const uint8_t zeros[8];
	struct rcd_cq_slot slot;

	for (size_t i = 0; i < sizeof(commits); i++) {
		setup();
		post_record(commits[i]);
		/* Long enough for what would overtake to do so; it must not, however long. */
		CU_ASSERT_EQUAL(node_wait(&peer, &slot, QUIET_MS), -ETIMEDOUT);
		CU_ASSERT_EQUAL(memcmp(copied.memory, zeros, 8), 0);
		for (int done_too = 0; done_too < 3; done_too++)
			CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_SUCCESS);
		CU_ASSERT(filled(memory, 4096, 1));
		CU_ASSERT_NOT_EQUAL(memcmp(copied.memory, zeros, 8), 0);
		teardown();
	}
}

/* The record never comes: nor does what says that it is there. */
static void
behind_a_copy_that_fails(void)
{
	static const uint8_t zeros[8];
	struct rcd_cq_slot slot;

	for (size_t i = 0; i < sizeof(commits); i++) {
		setup();
		post_record(commits[i]);
		make(EFAULT);
		CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_REM_ACCESS_ERR);
		CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(memcmp(copied.memory, zeros, 8), 0);
		teardown();
	}
}

/* A client that says of eight bytes that they lie in two places gets no half of them. */
static void
cut_in_two(void)
{
	struct rcd_send_wr word = { .opcode = RCD_WR_ATOMIC_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.atomic_write = { .bytes = { 1, 2, 3, 4, 5, 6, 7, 8 } } };
	struct rcd_ctrl_mr_req req = {
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE, .len = 8192, .extent_count = 2
	};
	struct rcd_ctrl_mr_rep rep;
	struct rcd_cq_slot slot;
	uint64_t at;

	setup();
	at = ((uintptr_t)memory + 4095) & ~UINT64_C(4095);
	req.pd = copied.pd;
	req.start = req.addr = at;
	req.extents[0] =
		(struct rcd_ctrl_extent){ .offset = at, .len = 4, .mem = RCD_CTRL_MEM_COPIED };
	req.extents[1] = (struct rcd_ctrl_extent){
		.offset = at + 4, .len = req.len - 4, .mem = RCD_CTRL_MEM_COPIED
	};
	MUST(rcd_client_call(&copied.client, RCD_CTRL_MR_REG, &req, &rep, NULL, NULL) == 0);
	word.atomic_write.va = at;
	word.atomic_write.rkey.val = rep.key;
	CU_ASSERT_EQUAL(rcd_cl_post_send(&peer.qp, &word), 0);
	rcd_cl_ring(&peer.qp);
	CU_ASSERT_EQUAL(make_until(&peer, &slot), RCD_WC_REM_ACCESS_ERR);
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "R1 a READ that is written over while it is out", written_over },
		{ "R2 what changes at once waits for copies", behind_a_copy },
		{ "R2 what changes at once does not come behind a copy that failed",
			behind_a_copy_that_fails },
		{ "R3 eight bytes are not cut in two", cut_in_two },
		{ "R1 nothing is left", copyq_ends },
	};

	/* Copies are waited for as long as a busy machine takes: 2 s, eight times. */
	node_timeout = 19;
	rig_start(&rig, NULL);
	return rcd_tap_run("outstanding", tests, sizeof(tests) / sizeof(tests[0]));
}
