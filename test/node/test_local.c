/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a program that has an engine in it transfers by its own queue pairs what a client would,
 * is told what went wrong, and is held to the same limits.
 * Method: an engine that the test steps and polls itself, opened on both ends of an embedded wire;
 * memory of both is compared byte for byte, and the audit looks at the engine behind each test.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "local_rig.h"
#include "rcd_admin.h"
#include "rcd_clock.h"
#include "rcd_number.h"
#include "rcd_tap.h"
#include "rcd_wr.h"

#define LONG 100000

static struct side a, b;

static void
begin(enum rcd_qp_type type)
{
	local_begin(NULL);
	side_pair(&a, &b, type);
}

static void
end(void)
{
	local_audit();
	side_close(&a);
	side_close(&b);
	local_end();
}

static void
post(struct side *side, const struct rcd_send_wr *wr)
{
	CU_ASSERT_EQUAL(rcd_local_post_send(side->qp, wr, NULL), 0);
	rcd_local_ring(side->qp);
}

static void
post_recv(struct side *side, uint64_t offset, uint32_t len)
{
	struct rcd_sge sge = { (uintptr_t)side->memory + offset, len, side->key };
	const struct rcd_recv_wr wr = { .wr_id = offset, .sge_count = 1, .sges = &sge };

	CU_ASSERT_EQUAL(rcd_local_post_recv(side->qp, &wr), 0);
}

static void
rc_moves_bytes(void)
{
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;

	begin(RCD_QP_RC);
	bytes_fill(a.memory, LONG, 1);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, LONG);
	post(&a, &wr);
	CU_ASSERT_EQUAL(rcd_local_qp_sends(a.qp), 1);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.opcode, RCD_WC_RDMA_WRITE);
	CU_ASSERT_EQUAL(rcd_local_qp_sends(a.qp), 0);
	CU_ASSERT(bytes_filled(b.memory, LONG, 1));
	/* And back, beside it. */
	bytes_fill(b.memory + LONG, LONG, 2);
	wr = side_wr(&a, &b, RCD_WR_RDMA_READ, &sge, LONG, LONG);
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(bytes_filled(a.memory + LONG, LONG, 2));
	CU_ASSERT(bytes_filled(a.memory, LONG, 1));
	/* A message with immediate data. */
	post_recv(&b, 0, 5000);
	CU_ASSERT_EQUAL(rcd_local_qp_recvs(b.qp), 1);
	bytes_fill(a.memory, 4321, 3);
	wr = side_wr(&a, &b, RCD_WR_SEND_WITH_IMM, &sge, 0, 4321);
	wr.imm = 0xabcd;
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(side_wait(&b, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.byte_len, 4321);
	CU_ASSERT_EQUAL(slot.imm, 0xabcd);
	CU_ASSERT_EQUAL(rcd_local_qp_recvs(b.qp), 0);
	CU_ASSERT(bytes_filled(b.memory, 4321, 3));
	end();
}

static void
atomics_and_inline(void)
{
	uint64_t value = 40, original;
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;
	uint8_t word[24];

	begin(RCD_QP_RC);
	memcpy(b.memory, &value, sizeof(value));
	wr = side_wr(&a, &b, RCD_WR_FETCH_ADD, &sge, 0, 8);
	wr.remote.compare_or_add = 2;
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	memcpy(&original, a.memory, sizeof(original));
	memcpy(&value, b.memory, sizeof(value));
	CU_ASSERT_EQUAL(original, 40);
	CU_ASSERT_EQUAL(value, 42);
	wr = side_wr(&a, &b, RCD_WR_COMPARE_SWAP, &sge, 0, 8);
	wr.remote.compare_or_add = 42;
	wr.remote.swap = 7;
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	memcpy(&original, a.memory, sizeof(original));
	memcpy(&value, b.memory, sizeof(value));
	CU_ASSERT_EQUAL(original, 42);
	CU_ASSERT_EQUAL(value, 7);
	/* Copied when it is posted. */
	bytes_fill(word, sizeof(word), 9);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 64, 0);
	wr.flags |= RCD_SEND_INLINE;
	wr.inline_data = word;
	wr.inline_len = sizeof(word);
	post(&a, &wr);
	memset(word, 0, sizeof(word));
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(bytes_filled(b.memory + 64, sizeof(word), 9));
	end();
}

/* Several requests are rung for once, and none before. */
static void
bursts(void)
{
	struct rcd_cq_slot slots[SIDE_DEPTH];
	struct rcd_send_wr wr;
	struct rcd_sge sge;
	int taken = 0;

	begin(RCD_QP_RC);
	bytes_fill(a.memory, SIDE_DEPTH * 512, 4);
	for (uint32_t i = 0; i < SIDE_DEPTH; i++) {
		wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, i * 512, 512);
		CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), 0);
	}
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), -ENOMEM);
	for (int i = 0; i < 20; i++)
		local_turn();
	CU_ASSERT_EQUAL(rcd_local_poll_cq(a.cq, slots, SIDE_DEPTH), 0);
	rcd_local_ring(a.qp);
	LOCAL_UNTIL(rcd_local_qp_sends(a.qp) == 0);
	CU_ASSERT_EQUAL(rcd_local_poll_cq(a.cq, slots, 10), 10);
	taken = 10 + rcd_local_poll_cq(a.cq, slots + 10, SIDE_DEPTH);
	CU_ASSERT_EQUAL_FATAL(taken, SIDE_DEPTH);
	for (uint32_t i = 0; i < SIDE_DEPTH; i++)
		CU_ASSERT(slots[i].status == RCD_WC_SUCCESS && slots[i].wr_id == i * 512);
	CU_ASSERT(bytes_filled(b.memory, SIDE_DEPTH * 512, 4));
	end();
}

static void
uc_moves_bytes(void)
{
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;

	begin(RCD_QP_UC);
	bytes_fill(a.memory, LONG, 5);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE_WITH_IMM, &sge, 0, LONG);
	wr.imm = 5;
	post_recv(&b, 0, 0);
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(side_wait(&b, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.imm, 5);
	CU_ASSERT(bytes_filled(b.memory, LONG, 5));
	end();
}

static void
datagrams(void)
{
	struct rcd_ctrl_av av;
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;
	uint32_t ah;

	begin(RCD_QP_UD);
	av = side_attr(&a, b.gids.gids[b.gid].raw, 0).av;
	CU_ASSERT_EQUAL(rcd_local_ah_create(a.local, a.pd + 1, &av, &ah), -ENOENT);
	av.sgid_index = 100;
	CU_ASSERT_EQUAL(rcd_local_ah_create(a.local, a.pd, &av, &ah), -EINVAL);
	av.sgid_index = a.gid;
	CU_ASSERT_EQUAL_FATAL(side_ah(&a, &av, &ah), 0);
	post_recv(&b, 0, 1064);
	bytes_fill(a.memory, 1000, 6);
	wr = side_wr(&a, &b, RCD_WR_SEND, &sge, 0, 1000);
	wr.ud.ah = ah;
	wr.ud.qpn.val = rcd_local_qp_num(b.qp);
	wr.ud.qkey.val = 0x1234;
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(side_wait(&b, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.byte_len, 1000 + RCD_GRH_LEN);
	CU_ASSERT_EQUAL(slot.src_qpn, rcd_local_qp_num(a.qp));
	CU_ASSERT(bytes_filled(b.memory + RCD_GRH_LEN, 1000, 6));
	CU_ASSERT_EQUAL(rcd_local_pd_destroy(a.local, a.pd), -EBUSY);
	CU_ASSERT_EQUAL(rcd_local_ah_destroy(a.local, a.pd, ah), 0);
	CU_ASSERT_EQUAL(rcd_local_ah_destroy(a.local, a.pd, ah), -ENOENT);
	end();
}

/* Each is refused with an error, and changes nothing. */
static void
bad_arguments(void)
{
	struct rcd_local_qp_conf conf = { .type = RCD_QP_RC };
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_RTS };
	struct rcd_local *other = NULL;
	struct rcd_local_qp *qp = NULL;
	struct rcd_local_cq *cq = NULL;
	struct rcd_sge sges[8];
	struct rcd_send_wr wr;
	struct rcd_recv_wr recv = { .sge_count = 3, .sges = sges };
	struct rcd_key key;

	begin(RCD_QP_RC);
	CU_ASSERT_EQUAL(rcd_local_open(engine, "w2", -1, &other), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_open(engine, "w0", 7, &other), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_lcore(a.local), 0);
	CU_ASSERT_EQUAL(rcd_local_cq_create(a.local, 0, 0, &cq), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_cq_create(a.local, UINT32_MAX, 0, &cq), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_mr_reg(a.local, a.pd, NULL, 1, 0, &key), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_mr_reg(a.local, a.pd, a.memory, UINT64_MAX, 0, &key), -EINVAL);
	CU_ASSERT_EQUAL(
		rcd_local_mr_reg(a.local, a.pd, (void *)(UINTPTR_MAX - 9), 20, 0, &key), -EINVAL);
	CU_ASSERT_EQUAL(
		rcd_local_mr_reg(a.local, a.pd, a.memory, 9, RCD_ACCESS_NULL, &key), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_mr_reg(a.local, a.pd, a.memory, 9, RCD_ACCESS_REMOTE_WRITE, &key),
		-EINVAL);
	CU_ASSERT_EQUAL(rcd_local_mr_reg(a.local, a.pd + 1, a.memory, 9, 0, &key), -ENOENT);
	CU_ASSERT_EQUAL(rcd_local_mr_dereg(a.local, (struct rcd_key){ 0 }), -ENOENT);
	CU_ASSERT_EQUAL(rcd_local_pd_destroy(a.local, a.pd), -EBUSY);
	CU_ASSERT_EQUAL(rcd_local_pd_destroy(a.local, 77), -ENOENT);
	CU_ASSERT_EQUAL(rcd_local_cq_destroy(a.cq), -EBUSY);
	CU_ASSERT_EQUAL(rcd_local_qp_create(a.local, &conf, &qp), -EINVAL);
	conf.send_cq = a.cq;
	conf.recv_cq = b.cq;
	CU_ASSERT_EQUAL(rcd_local_qp_create(a.local, &conf, &qp), -EINVAL);
	conf.recv_cq = a.cq;
	conf.sq_depth = UINT32_MAX;
	CU_ASSERT_EQUAL(rcd_local_qp_create(a.local, &conf, &qp), -EINVAL);
	conf.sq_depth = 0;
	conf.type = (enum rcd_qp_type)9;
	CU_ASSERT_EQUAL(rcd_local_qp_create(a.local, &conf, &qp), -EINVAL);
	conf.type = RCD_QP_RC;
	conf.pd = 99;
	CU_ASSERT_EQUAL(rcd_local_qp_create(a.local, &conf, &qp), -ENOENT);
	/* One in RESET, without a receive queue. */
	conf.pd = a.pd;
	CU_ASSERT_EQUAL_FATAL(rcd_local_qp_create(a.local, &conf, &qp), 0);
	CU_ASSERT_EQUAL(rcd_local_qp_modify(qp, &attr, RCD_QP_ATTR_STATE), -EINVAL);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, sges, 0, 8);
	CU_ASSERT_EQUAL(rcd_local_post_send(qp, &wr, NULL), -EINVAL);
	recv.sge_count = 0;
	CU_ASSERT_EQUAL(rcd_local_post_recv(qp, &recv), -EINVAL);
	rcd_local_qp_destroy(qp);
	/* One that could. */
	recv.sge_count = 3;
	CU_ASSERT_EQUAL(rcd_local_post_recv(a.qp, &recv), -EINVAL);
	wr.sge_count = 5;
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), -EINVAL);
	wr.sge_count = 1;
	wr.sges = NULL;
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), -EINVAL);
	wr.flags = RCD_SEND_INLINE;
	wr.inline_len = 65;
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), -EINVAL);
	wr.opcode = 200;
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), -EINVAL);
	CU_ASSERT_EQUAL(rcd_local_qp_sends(a.qp), 0);
	end();
}

static void
few(struct rcd_engine_conf *conf)
{
	conf->quota.qps = 4;
	conf->quota.mrs = 3;
	conf->quota.pds = 2;
	conf->quota.cqs = 2;
	conf->quota.ahs = 1;
	conf->clients = 3;
}

/* What is used up is refused, and is to be had again when something was given back. */
static void
quotas(void)
{
	struct rcd_local_qp *qps[3];
	struct rcd_local_cq *cqs[2];
	struct rcd_key keys[3];
	struct rcd_local *third, *fourth;
	struct rcd_ctrl_av av;
	uint32_t ah, pd;

	local_begin(few);
	side_pair(&a, &b, RCD_QP_RC);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(side_qp(&a, RCD_QP_UD, &qps[i]), 0);
	CU_ASSERT_EQUAL(side_qp(&a, RCD_QP_RC, &qps[0]), -ENOMEM);
	rcd_local_qp_destroy(qps[0]);
	CU_ASSERT_EQUAL(side_qp(&a, RCD_QP_RC, &qps[0]), 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(rcd_local_mr_reg(a.local, a.pd, a.memory, 64, 0, &keys[i]), 0);
	CU_ASSERT_EQUAL(rcd_local_mr_reg(a.local, a.pd, a.memory, 64, 0, &keys[2]), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_local_mr_dereg(a.local, keys[0]), 0);
	CU_ASSERT_EQUAL(rcd_local_mr_reg(a.local, a.pd, a.memory, 64, 0, &keys[0]), 0);
	CU_ASSERT_EQUAL(rcd_local_pd_create(a.local, &pd), 0);
	CU_ASSERT_EQUAL(rcd_local_pd_create(a.local, &pd), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_local_cq_create(a.local, 8, 0, &cqs[0]), 0);
	CU_ASSERT_EQUAL(rcd_local_cq_create(a.local, 8, 0, &cqs[1]), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_local_cq_destroy(cqs[0]), 0);
	CU_ASSERT_EQUAL(rcd_local_cq_create(a.local, 8, 0, &cqs[0]), 0);
	av = side_attr(&a, b.gids.gids[b.gid].raw, 0).av;
	CU_ASSERT_EQUAL(side_ah(&a, &av, &ah), 0);
	CU_ASSERT_EQUAL(side_ah(&a, &av, &ah), -ENOMEM);
	/* Another one has its own; there may be three. */
	CU_ASSERT_EQUAL(rcd_local_open(engine, "w0", 0, &third), 0);
	CU_ASSERT_EQUAL(rcd_local_pd_create(third, &pd), 0);
	CU_ASSERT_EQUAL(rcd_local_open(engine, "w0", 0, &fourth), -EUSERS);
	rcd_local_close(third);
	CU_ASSERT_EQUAL(rcd_local_open(engine, "w0", 0, &third), 0);
	rcd_local_close(third);
	end();
}

/* A peer that nobody knows is asked for; each call returns at once, until it is given up. */
static void
waits_for_neighbours(void)
{
	static const uint8_t nobody[16] = { [10] = 0xff, [11] = 0xff, 10, 9, 0, 77 };
	struct rcd_ctrl_qp_attr attr;
	struct rcd_ctrl_av av;
	uint32_t waited = 0, ah;
	int err;

	local_begin(NULL);
	side_open(&a, "w0", RCD_QP_RC);
	attr = side_attr(&a, nobody, 5);
	CU_ASSERT_EQUAL(side_to(a.qp, RCD_QP_RC, attr, RCD_QP_INIT), 0);
	attr.state = RCD_QP_RTR;
	while ((err = rcd_local_qp_modify(a.qp, &attr,
			RCD_QP_ATTR_STATE | RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU |
				RCD_QP_ATTR_DEST_QPN | RCD_QP_ATTR_RQ_PSN |
				RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER)) ==
			-EINPROGRESS &&
		waited++ < 1000) {
		rcd_clock_advance(100000000);
		local_turn();
	}
	CU_ASSERT_EQUAL(err, -ETIMEDOUT);
	CU_ASSERT(waited > 0);
	CU_ASSERT_EQUAL(rcd_local_qp_state(a.qp), RCD_QP_INIT);
	/* It waits for another one now, and goes. */
	av = attr.av;
	av.dgid[15] = 78;
	CU_ASSERT_EQUAL(rcd_local_ah_create(a.local, a.pd, &av, &ah), -EINPROGRESS);
	side_close(&a);
	for (int i = 0; i < 100; i++) {
		rcd_clock_advance(100000000);
		local_turn();
	}
	local_end();
}

static uint8_t
state_of(struct side *side)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_STATE_COUNT };

	CU_ASSERT_EQUAL(rcd_local_qp_query(side->qp, &attr), 0);
	return attr.state;
}

/* Where it waits another call goes on; from where it can't it changes nothing. */
static void
connects_from_where_it_is(void)
{
	struct rcd_ctrl_qp_attr attr, failed = { .state = RCD_QP_ERR };
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;

	local_begin(NULL);
	side_open(&a, "w0", RCD_QP_RC);
	side_open(&b, "w1", RCD_QP_RC);
	attr = side_attr(&a, b.gids.gids[b.gid].raw, rcd_local_qp_num(b.qp));
	/* Nobody has asked for that neighbour yet. */
	CU_ASSERT_EQUAL(rcd_local_qp_connect(a.qp, &attr), -EINPROGRESS);
	CU_ASSERT_EQUAL(state_of(&a), RCD_QP_INIT);
	CU_ASSERT_EQUAL(rcd_local_qp_connect(a.qp, &attr), -EINPROGRESS);
	CU_ASSERT_EQUAL(side_connect(a.qp, attr), 0);
	CU_ASSERT_EQUAL(state_of(&a), RCD_QP_RTS);
	/* From a state between, that somebody else led it to. */
	attr = side_attr(&b, a.gids.gids[a.gid].raw, rcd_local_qp_num(a.qp));
	CU_ASSERT_EQUAL(side_to(b.qp, RCD_QP_RC, attr, RCD_QP_INIT), 0);
	CU_ASSERT_EQUAL(side_to(b.qp, RCD_QP_RC, attr, RCD_QP_RTR), 0);
	CU_ASSERT_EQUAL(side_connect(b.qp, attr), 0);
	bytes_fill(a.memory, 3000, 12);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, 3000);
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(bytes_filled(b.memory, 3000, 12));
	/* ERR has no way out but RESET. */
	CU_ASSERT_EQUAL(rcd_local_qp_modify(b.qp, &failed, RCD_QP_ATTR_STATE), 0);
	CU_ASSERT_EQUAL(rcd_local_qp_connect(b.qp, &attr), -EINVAL);
	CU_ASSERT_EQUAL(state_of(&b), RCD_QP_ERR);
	CU_ASSERT_EQUAL(side_to(b.qp, RCD_QP_RC, attr, RCD_QP_RESET), 0);
	CU_ASSERT_EQUAL(side_connect(b.qp, attr), 0);
	CU_ASSERT_EQUAL(state_of(&b), RCD_QP_RTS);
	end();
}

static bool
told(struct side *side, uint32_t type, uint32_t of, uint64_t cookie)
{
	struct rcd_ctrl_event event;
	bool found = false;

	while (rcd_local_event(side->local, &event))
		found |= event.type == type && event.of == of && event.cookie == cookie;
	return found;
}

/* What befalls a queue pair is told with its cookie; the other is in ERR by its completion. */
static void
tells_of_errors(void)
{
	struct rcd_cq_slot slot;
	struct rcd_ctrl_qp_attr attr;
	struct rcd_send_wr wr;
	struct rcd_sge sge;

	begin(RCD_QP_RC);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, 100);
	wr.remote.rkey.val ^= 0x100;
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(rcd_local_qp_state(a.qp), RCD_QP_ERR);
	LOCAL_UNTIL(told(&b, RCD_EVENT_QP_ACCESS_ERR, RCD_CTRL_EVENT_QP, 0x9b));
	CU_ASSERT_EQUAL(rcd_local_qp_query(b.qp, &attr), 0);
	CU_ASSERT_EQUAL(attr.state, RCD_QP_ERR);
	/* Receives that are posted in ERR come back, also when nobody looks for them any more. */
	for (int i = 0; i < 10; i++) {
		rcd_clock_advance(10000000);
		local_turn();
	}
	post_recv(&b, 0, 100);
	CU_ASSERT_EQUAL(side_wait(&b, &slot), RCD_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(rcd_local_qp_recvs(b.qp), 0);
	/* And it goes on from RESET. */
	CU_ASSERT_EQUAL(side_to(a.qp, RCD_QP_RC, attr, RCD_QP_RESET), 0);
	CU_ASSERT_EQUAL(side_to(b.qp, RCD_QP_RC, attr, RCD_QP_RESET), 0);
	side_join(&a, &b);
	bytes_fill(a.memory, 3000, 8);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, 3000);
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(bytes_filled(b.memory, 3000, 8));
	end();
}

/* Nothing of a device that has gone is touched, and all of it is refused. */
static void
device_goes(void)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_ERR };
	struct rcd_ctrl_port_rep port;
	struct rcd_recv_wr recv = { .sge_count = 0 };
	struct rcd_local_qp *qp;
	struct rcd_local_cq *cq;
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_key key;
	struct rcd_sge sge;
	uint32_t pd;

	begin(RCD_QP_RC);
	CU_ASSERT_EQUAL(rcd_local_port(a.local, &port), 0);
	CU_ASSERT_EQUAL(port.state, RCD_PORT_ACTIVE);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, LONG);
	post(&a, &wr);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "w0"), 0);
	CU_ASSERT(told(&a, RCD_EVENT_DEVICE_FATAL, RCD_CTRL_EVENT_DEVICE, 0));
	CU_ASSERT_EQUAL(rcd_local_port(a.local, &port), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_pd_create(a.local, &pd), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_mr_reg(a.local, a.pd, a.memory, 9, 0, &key), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_cq_create(a.local, 8, 0, &cq), -ENODEV);
	CU_ASSERT_EQUAL(side_qp(&a, RCD_QP_RC, &qp), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_qp_modify(a.qp, &attr, RCD_QP_ATTR_STATE), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_post_recv(a.qp, &recv), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_poll_cq(a.cq, &slot, 1), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_qp_state(a.qp), RCD_QP_ERR);
	rcd_local_ring(a.qp);
	local_turn();
	local_audit();
	/* One by one, or all at once: the other end of the wire went with this one. */
	rcd_local_qp_destroy(a.qp);
	CU_ASSERT_EQUAL(rcd_local_cq_destroy(a.cq), 0);
	side_close(&a);
	CU_ASSERT_EQUAL(rcd_local_post_recv(b.qp, &recv), -ENODEV);
	side_close(&b);
	local_audit();
	/* They come again. */
	local_add("w0", "w1", "10.9.0.1/24");
	local_add("w1", "w0", "10.9.0.2/24");
	side_pair(&a, &b, RCD_QP_RC);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, LONG);
	post(&a, &wr);
	CU_ASSERT_EQUAL(side_wait(&a, &slot), RCD_WC_SUCCESS);
	end();
}

static void
engine_goes_first(void)
{
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;

	begin(RCD_QP_RC);
	wr = side_wr(&a, &b, RCD_WR_RDMA_WRITE, &sge, 0, LONG);
	post(&a, &wr);
	local_end();
	CU_ASSERT_EQUAL(rcd_local_post_send(a.qp, &wr, NULL), -ENODEV);
	rcd_local_ring(a.qp);
	CU_ASSERT_EQUAL(rcd_local_poll_cq(b.cq, &slot, 1), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_mr_dereg(a.local, a.key), -ENODEV);
	CU_ASSERT_EQUAL(rcd_local_qp_sends(a.qp), 0);
	CU_ASSERT(told(&b, RCD_EVENT_DEVICE_FATAL, RCD_CTRL_EVENT_DEVICE, 0));
	rcd_local_qp_destroy(b.qp);
	side_close(&a);
	side_close(&b);
}

/* Listings have it like any client, by this process's number. */
static void
is_shown(void)
{
	char answer[16384], wanted[40];
	ssize_t len;
	int fd;

	begin(RCD_QP_RC);
	fd = rcd_admin(engine, NULL, NULL, "{\"op\":\"resource\",\"kind\":\"qp\"}");
	CU_ASSERT_FATAL(fd >= 0);
	len = pread(fd, answer, sizeof(answer) - 1, 0);
	answer[len > 0 ? len : 0] = '\0';
	close(fd);
	snprintf(wanted, sizeof(wanted), "\"lqpn\":%u,\"pid\":%d", rcd_local_qp_num(a.qp),
		(int)getpid());
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, wanted));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\"state\":\"RTS\""));
	end();
}

static const struct rcd_test tests[] = {
	RCD_TEST(rc_moves_bytes),
	RCD_TEST(atomics_and_inline),
	RCD_TEST(bursts),
	RCD_TEST(uc_moves_bytes),
	RCD_TEST(datagrams),
	RCD_TEST(bad_arguments),
	RCD_TEST(quotas),
	RCD_TEST(waits_for_neighbours),
	RCD_TEST(connects_from_where_it_is),
	RCD_TEST(tells_of_errors),
	RCD_TEST(device_goes),
	RCD_TEST(engine_goes_first),
	RCD_TEST(is_shown),
};

int
main(void)
{
	local_eal("0");
	return rcd_tap_run("local", tests, sizeof(tests) / sizeof(tests[0]));
}
