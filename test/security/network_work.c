/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Packets of the network that cause much work each. The engine is stopped while they come, so that
 * they are one burst to it, however fast this machine is.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "network.h"
#include "rcd_aeth.h"
#include "rcd_qp.h"
#include "rcd_tap.h"

/** Queue pairs, and what each has outstanding: as much as is allowed. */
#define QPS   60
#define DEPTH 512

/** Packets for a group, more than have their turn at once; members of it; packets to be refused. */
#define FOR_GROUP 40
#define MEMBERS   8
#define WRONG     50

/**
 * Units of the largest poll: received packets have 256, the last of them may end all requests of
 * one queue pair, a unit and a completion each; beside them what else a poll does.
 */
#define WORK_MOST (256 + 2 * DEPTH + 384)

static void
connect_and_post(struct node *node, uint8_t sgid_index, struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_qp_attr attr = node_attr(node, node, 1);
	struct rcd_gid peer = link_gid(78, 0, 2);
	struct rcd_ctrl_qp_req req = { .pd = node->pd,
		.type = RCD_QP_RC,
		.send_cq = node->cq.handle,
		.recv_cq = node->cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = DEPTH,
		.rq_depth = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };

	MUST(rcd_cl_qp_create(&node->client, &req, qp) == 0);
	attr.dest_qpn = 0x4242;
	attr.timeout = 24; /* a minute: nothing is sent twice */
	attr.av.sgid_index = sgid_index;
	memcpy(attr.av.dgid, peer.raw, 16);
	MUST(node_connect(qp, RCD_QP_RC, attr) == 0);
	for (uint32_t i = 0; i < DEPTH; i++) {
		struct rcd_send_wr wr = {
			.wr_id = i, .opcode = RCD_WR_RDMA_WRITE, .flags = RCD_SEND_SIGNALED
		};

		MUST(rcd_cl_post_send(qp, &wr) == 0);
	}
	rcd_cl_ring(qp);
}

/* The peer has got everything that a queue pair sent. */
static void
acknowledge(uint32_t qpn)
{
	struct rcd_gid from = link_gid(78, 0, 2), to = link_gid(78, 0, 1);
	struct rcd_path path = link_path(&from, &to, far.peer_mac, engine_mac, 0);
	struct rcd_roce ack = { .bth = { .opcode = RCD_OPCODE_RC_ACKNOWLEDGE,
					.pkey = { RCD_PKEY_DEFAULT },
					.psn = rcd_psn(1000 + DEPTH - 1),
					.dest_qpn = { qpn } },
		.aeth = { .syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, 31) } };

	link_roce(&far, &path, &ack, "", 0);
}

void
acknowledges_of_much(void)
{
	struct rcd_ctrl_cq_req cq = { .depth = QPS * DEPTH, .channel = RCD_CTRL_NO_HANDLE };
	static uint32_t next[QPS];
	struct rcd_cl_qp qps[QPS];
	struct rcd_cq_slot slot;
	uint8_t plain, tagged;
	uint32_t right = 0;
	struct node node;

	open_node(&node, RCD_QP_RC, &plain, &tagged);
	MUST(rcd_cl_cq_create(&node.client, &cq, &node.cq) == 0);
	for (int i = 0; i < QPS; i++)
		connect_and_post(&node, plain, &qps[i]);
	settles("sent_pkts");
	rig_halt(&rig);
	for (int i = 0; i < QPS; i++)
		acknowledge(qps[i].qpn);
	MUST(kill(rig.pid, SIGCONT) == 0);
	/* Each request completes, once and in the order of its queue. */
	for (uint32_t i = 0; i < QPS * DEPTH; i++) {
		if (node_wait(&node, &slot, FOREVER_MS) != RCD_WC_SUCCESS)
			break;
		for (int k = 0; k < QPS; k++)
			right += qps[k].qpn == slot.qpn && slot.wr_id == next[k]++;
	}
	CU_ASSERT_EQUAL(right, QPS * DEPTH);
	printf("# largest poll: %lld units; budgets of all reached: %lld\n",
		rig_engine(&rig, "longest_poll_work"), rig_engine(&rig, "poll_budget_all"));
	CU_ASSERT(rig_engine(&rig, "longest_poll_work") <= WORK_MOST);
	CU_ASSERT(rig_engine(&rig, "poll_budget_all") > 0);
	node_close(&node);
}

/* A receiver of datagrams, and members of a group beside it. */
static void
open_group(struct node *node, const struct rcd_gid *group)
{
	uint8_t plain, tagged;

	open_node(node, RCD_QP_UD, &plain, &tagged);
	MUST(node_connect(&node->qp, RCD_QP_UD, node_attr(node, node, 1)) == 0);
	for (int i = 0; i < MEMBERS; i++) {
		struct rcd_ctrl_mcast_req req;
		struct rcd_cl_qp member;

		node_qp(node, RCD_QP_UD, &member);
		MUST(node_connect(&member, RCD_QP_UD, node_attr(node, node, 1)) == 0);
		req = (struct rcd_ctrl_mcast_req){ .qp = member.handle };
		memcpy(req.group, group->raw, sizeof(req.group));
		MUST(rcd_client_call(
			     &node->client, RCD_CTRL_MCAST_ATTACH, &req, NULL, NULL, NULL) == 0);
	}
}

/* A datagram; its ICRC may be wrong. */
static void
datagram(const struct rcd_path *path, uint32_t qpn, bool wrong)
{
	struct rcd_roce roce = { .bth = { .opcode = RCD_OPCODE_UD_SEND_ONLY,
					 .pkey = { RCD_PKEY_DEFAULT },
					 .dest_qpn = { qpn } },
		.deth = { .qkey = { 0x1234 }, .src_qpn = { 0x4242 } } };
	uint8_t frame[256];
	size_t len = rcd_pkt_build(frame, path, &roce, 8);

	memcpy(frame + len, "12345678", 8);
	len = rcd_pkt_seal(frame, path, len, 8);
	if (wrong)
		frame[len - 1] ^= 0x55;
	link_send(&far, frame, len);
}

void
rest_behind_groups(void)
{
	struct rcd_gid from = link_gid(78, 0, 2), to = link_gid(78, 0, 1);
	struct rcd_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, 2, 3 } };
	struct rcd_path path = link_path(&from, &to, far.peer_mac, engine_mac, 0);
	struct rcd_path group_path = link_path(&from, &group, far.peer_mac, engine_mac, 0);
	struct rcd_ctrl_cq_req cq = { .depth = DEPTH * 2, .channel = RCD_CTRL_NO_HANDLE };
	long long wrong;
	struct node receiver, sender;
	struct rcd_cq_slot slot;
	struct rcd_cl_qp qp;
	uint8_t plain, tagged;
	struct rcd_sge sge;

	open_group(&receiver, &group);
	sge = (struct rcd_sge){ (uintptr_t)receiver.memory, 4096, { receiver.mr.key } };
	for (int i = 0; i < WRONG; i++) {
		struct rcd_recv_wr wr = { .wr_id = 77, .sges = &sge, .sge_count = 1 };

		MUST(rcd_cl_post_recv(&receiver.qp, &wr, false) == 0);
	}
	open_node(&sender, RCD_QP_RC, &plain, &tagged);
	MUST(rcd_cl_cq_create(&sender.client, &cq, &sender.cq) == 0);
	connect_and_post(&sender, plain, &qp);
	settles("sent_pkts");
	wrong = counter("rx_drop_icrc");
	rig_halt(&rig);
	for (int i = 0; i < FOR_GROUP; i++)
		datagram(&group_path, RCD_QPN_MULTICAST, false);
	acknowledge(qp.qpn);
	for (int i = 0; i < WRONG; i++)
		datagram(&path, receiver.qp.qpn, true);
	MUST(kill(rig.pid, SIGCONT) == 0);
	CU_ASSERT(grows("rx_drop_icrc", wrong, WRONG));
	CU_ASSERT_EQUAL(node_wait(&receiver, &slot, 0), -ETIMEDOUT);
	CU_ASSERT(rig_engine(&rig, "longest_poll_work") <= WORK_MOST);
	node_close(&receiver);
	node_close(&sender);
}
