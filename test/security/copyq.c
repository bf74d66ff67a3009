/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A client whose copies the test makes.
 */
#include "copyq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frames.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"

#define MASK (RCD_COPYQ_JOBS - 1)

struct rig rig;

struct node copied, peer;
struct rcd_cl_qp second, peer_second;
struct rcd_copyq *queue;
uint32_t done;
uint8_t *memory;
uint32_t key;

int
reg_raw(struct node *node, const void *at, uint64_t len, uint32_t *made)
{
	struct rcd_ctrl_mr_req req = { .pd = node->pd,
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
		.start = (uintptr_t)at,
		.len = len,
		.addr = (uintptr_t)at,
		.extent_count = 1 };
	struct rcd_ctrl_mr_rep rep;
	int err;

	req.extents[0] = (struct rcd_ctrl_extent){
		.offset = (uintptr_t)at, .len = len, .mem = RCD_CTRL_MEM_COPIED
	};
	err = rcd_client_call(&node->client, RCD_CTRL_MR_REG, &req, &rep, NULL, NULL);
	*made = err == 0 ? rep.key : 0;
	return err;
}

void
setup(void)
{
	struct rcd_ctrl_copy_rep rep;

	node_open(&copied, rig.socket, "roce0", RCD_QP_RC);
	node_open(&peer, rig.socket, "roce1", RCD_QP_RC);
	node_qp(&copied, RCD_QP_RC, &second);
	node_qp(&peer, RCD_QP_RC, &peer_second);
	node_memory(&copied, LEN);
	node_memory(&peer, LEN);
	MUST(rcd_client_call(&copied.client, RCD_CTRL_COPY_OPEN, NULL, &rep, NULL, NULL) == 0);
	queue = (struct rcd_copyq *)(void *)((uint8_t *)copied.client.shm + rep.offset);
	done = 0;
	memory = malloc(LEN);
	MUST(memory != NULL && reg_raw(&copied, memory, LEN, &key) == 0);
	node_join(&copied, &peer, RCD_QP_RC, 1);
	{
		struct node a = copied, b = peer;

		a.qp = second;
		b.qp = peer_second;
		node_join(&a, &b, RCD_QP_RC, 1);
	}
}

void
teardown(void)
{
	node_close(&copied);
	node_close(&peer);
	free(memory);
}

/* Wait for jobs. @return whether so many are there */
void
copyq_begins(void)
{
	rig_start(&rig, NULL);
	frames_set(rig.socket, "cc none");
}

void
copyq_ends(void)
{
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

bool
jobs(uint32_t count)
{
	uint64_t deadline = now_ms() + FOREVER_MS;

	while (rcd_shm_load(&queue->posted) - done < count && now_ms() < deadline)
		usleep(200);
	return rcd_shm_load(&queue->posted) - done >= count;
}

/* Make the oldest copy, or say that it failed. */
void
make(int status)
{
	struct rcd_copyq_job *job = &queue->jobs[done & MASK];
	uint8_t *at = (uint8_t *)(uintptr_t)job->addr;
	uint8_t *data = queue->arena + job->data;
	uint64_t val;

	switch ((enum rcd_copyq_op)job->op) {
	case RCD_COPYQ_NOTHING:
		break;
	case RCD_COPYQ_READ:
		memcpy(data, at, job->len);
		break;
	case RCD_COPYQ_WRITE:
		if (status == 0)
			memcpy(at, data, job->len);
		break;
	case RCD_COPYQ_ADD:
	case RCD_COPYQ_SWAP:
		memcpy(data, at, 8);
		memcpy(&val, at, 8);
		if (job->op == RCD_COPYQ_ADD)
			val += job->operand;
		else if (val == job->compare)
			val = job->operand;
		memcpy(at, &val, 8);
		break;
	}
	job->status = (uint32_t)status;
	rcd_shm_store(&queue->done, ++done);
}

/* Make copies until a completion comes. @return its status */
int
make_until(struct node *node, struct rcd_cq_slot *slot)
{
	uint64_t deadline = now_ms() + FOREVER_MS;
	int status;

	do {
		while (rcd_shm_load(&queue->posted) != done)
			make(0);
		status = node_wait(node, slot, 1);
	} while (status == -ETIMEDOUT && now_ms() < deadline);
	return status;
}

int
post(struct rcd_cl_qp *qp, uint8_t opcode, struct rcd_sge sge, uint64_t va, uint32_t rkey)
{
	struct rcd_send_wr wr = { .wr_id = va,
		.opcode = opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.imm = 0x1234,
		.remote = { .va = va, .rkey = { rkey }, .compare_or_add = 7 } };
	int err = rcd_cl_post_send(qp, &wr);

	if (err == 0)
		rcd_cl_ring(qp);
	return err;
}

struct rcd_sge
peers(uint32_t len)
{
	return (struct rcd_sge){ (uintptr_t)peer.memory, len, { peer.mr.key } };
}

struct rcd_sge
ours(uint32_t len)
{
	return (struct rcd_sge){ (uintptr_t)memory, len, { key } };
}

int
post_recv(struct rcd_cl_qp *qp, struct rcd_sge sge, uint64_t wr_id)
{
	struct rcd_recv_wr wr = { .wr_id = wr_id, .sge_count = 1, .sges = &sge };

	return rcd_cl_post_recv(qp, &wr, false);
}
