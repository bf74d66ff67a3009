/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets for groups of many members do not fill a poll of an lcore, nobody else waits for
 * them, and members get them in order. Method: as many members as a group may have, and as many
 * packets as the engine takes at once: it is stopped while they are posted. Nothing here is about
 * time.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rcd_mcast.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

#define MEMBERS RCD_MCAST_QPS_MAX
#define PACKETS 64
#define QKEY    0x1234

/**
 * Units of the largest poll: 32 for groups, and one packet's 56 members twice beyond that; 256 for
 * what packets cause, 128 for clients, 64 timers, and packets of the honest pair.
 */
#define WORK_MOST 640

static struct rig rig;

/* 239.1.2.3 */
static const uint8_t group[16] = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, 2, 3 };

/* All queue pairs of a client are in the group, each with room for all packets. */
static void
join_group(struct node *node, struct rcd_cl_qp *qps)
{
	struct rcd_ctrl_cq_req cq = { .depth = MEMBERS * PACKETS, .channel = RCD_CTRL_NO_HANDLE };
	struct rcd_sge sge;

	node_open(node, rig.socket, "roce1", RCD_QP_UD);
	node_memory(node, 4096);
	MUST(rcd_cl_cq_create(&node->client, &cq, &node->cq) == 0);
	sge = (struct rcd_sge){ (uintptr_t)node->memory, 4096, { node->mr.key } };
	for (int i = 0; i < MEMBERS; i++) {
		struct rcd_ctrl_mcast_req req;

		node_qp(node, RCD_QP_UD, &qps[i]);
		MUST(node_connect(&qps[i], RCD_QP_UD, node_attr(node, node, 1)) == 0);
		for (uint32_t k = 0; k < PACKETS; k++) {
			struct rcd_recv_wr wr = { .wr_id = k, .sges = &sge, .sge_count = 1 };

			MUST(rcd_cl_post_recv(&qps[i], &wr, false) == 0);
		}
		req = (struct rcd_ctrl_mcast_req){ .qp = qps[i].handle };
		memcpy(req.group, group, sizeof(group));
		MUST(rcd_client_call(
			     &node->client, RCD_CTRL_MCAST_ATTACH, &req, NULL, NULL, NULL) == 0);
	}
}

/* A client with a queue pair and an address handle of the group. */
static uint32_t
open_sender(struct node *node)
{
	struct rcd_ctrl_ah_req req = { .av = { .hop_limit = 64 } };
	struct rcd_ctrl_handle rep;

	node_open(node, rig.socket, "roce0", RCD_QP_UD);
	MUST(node_connect(&node->qp, RCD_QP_UD, node_attr(node, node, 1)) == 0);
	req.pd = node->pd;
	req.av.sgid_index = node_gid(node, 1);
	memcpy(req.av.dgid, group, sizeof(group));
	MUST(rcd_client_call(&node->client, RCD_CTRL_AH_CREATE, &req, &rep, NULL, NULL) == 0);
	return rep.handle;
}

static void
many_members(void)
{
	struct honest honest = honest_start(&rig);
	static uint32_t next[MEMBERS];
	struct rcd_cl_qp qps[MEMBERS];
	struct node members, sender;
	uint32_t ah = open_sender(&sender);
	struct rcd_cq_slot slot;
	uint32_t right = 0;

	join_group(&members, qps);
	rig_halt(&rig);
	for (uint32_t i = 0; i < PACKETS; i++) {
		struct rcd_send_wr wr = { .wr_id = i,
			.opcode = RCD_WR_SEND,
			.ud = { .ah = ah, .qpn = { RCD_QPN_MULTICAST }, .qkey = { QKEY } } };

		MUST(rcd_cl_post_send(&sender.qp, &wr) == 0);
	}
	rcd_cl_ring(&sender.qp);
	MUST(kill(rig.pid, SIGCONT) == 0);
	for (uint32_t i = 0; i < MEMBERS * PACKETS; i++) {
		if (node_wait(&members, &slot, FOREVER_MS) != RCD_WC_SUCCESS)
			break;
		for (int k = 0; k < MEMBERS; k++)
			right += qps[k].qpn == slot.qpn && slot.wr_id == next[k]++;
	}
	CU_ASSERT_EQUAL(right, MEMBERS * PACKETS);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	printf("# largest poll: %lld units; budgets of all reached: %lld\n",
		rig_engine(&rig, "longest_poll_work"), rig_engine(&rig, "poll_budget_all"));
	CU_ASSERT(rig_engine(&rig, "longest_poll_work") <= WORK_MOST);
	CU_ASSERT(rig_engine(&rig, "poll_budget_all") > 0);
	node_close(&members);
	node_close(&sender);
}

static void
stop(void)
{
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S8 packets for a group of many members", many_members },
		{ "S8 the engine is as before", stop },
	};

	rig_start(&rig, NULL);
	return rcd_tap_run("groups", tests, sizeof(tests) / sizeof(tests[0]));
}
