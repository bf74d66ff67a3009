/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Attacks on an engine's time.
 */
#include "attacks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_mcast.h"
#include "rcd_qp.h"
#include "rig.h"

#define FLUSH_QPS   200
#define FLUSH_DEPTH 32768
#define BELL_QPS    8000
#define EVENT_CQS   4000

static void
tell(int ready)
{
	MUST(write(ready, "x", 1) == 1);
}

static struct rcd_ctrl_qp_req
small(const struct node *node, uint32_t type, uint32_t depth)
{
	return (struct rcd_ctrl_qp_req){ .pd = node->pd,
		.type = type,
		.send_cq = node->cq.handle,
		.recv_cq = node->cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = depth,
		.rq_depth = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
}

static void
to_error(struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_ERR };

	MUST(rcd_cl_qp_modify(qp, &attr, RCD_QP_ATTR_STATE) == 0);
}

/* Many queue pairs; those in ERR have long queues, full again as soon as they are empty. */
static void
ring_all(const char *socket, int ready, int count, uint32_t depth, bool failed)
{
	struct rcd_cl_qp *qps = calloc((size_t)count, sizeof(*qps));
	struct node a;

	MUST(qps != NULL);
	node_open(&a, socket, "roce0", RCD_QP_RC);
	for (int i = 0; i < count; i++) {
		struct rcd_ctrl_qp_req req = small(&a, RCD_QP_UC, depth);

		MUST(rcd_cl_qp_create(&a.client, &req, &qps[i]) == 0);
		if (failed)
			to_error(&qps[i]);
	}
	tell(ready);
	for (;;) {
		for (int i = 0; i < count; i++) {
			if (failed)
				rcd_shm_store(&qps[i].sq.shm->producer,
					rcd_shm_load(&qps[i].sq.shm->consumer) + depth);
			rcd_db_ring(a.client.shm, qps[i].handle);
		}
	}
}

static void
flushes(const char *socket, int ready)
{
	ring_all(socket, ready, FLUSH_QPS, FLUSH_DEPTH, true);
}

static void
bells(const char *socket, int ready)
{
	ring_all(socket, ready, BELL_QPS, 1, false);
}

/* Events that nobody reads. */
static void
events(const char *socket, int ready)
{
	struct node a;

	node_open(&a, socket, "roce0", RCD_QP_RC);
	for (int i = 0; i < EVENT_CQS; i++) {
		struct rcd_ctrl_cq_req cq = { .depth = 2, .channel = a.channel };
		struct rcd_ctrl_qp_req req = small(&a, RCD_QP_UD, 1);
		struct rcd_cl_cq made;
		struct rcd_cl_qp qp;

		MUST(rcd_cl_cq_create(&a.client, &cq, &made) == 0);
		req.send_cq = req.recv_cq = made.handle;
		rcd_cl_arm(&made, false);
		MUST(rcd_cl_qp_create(&a.client, &req, &qp) == 0);
		MUST(rcd_cl_post_recv(&qp, &(struct rcd_recv_wr){ .wr_id = 1 }, false) == 0);
		to_error(&qp);
	}
	tell(ready);
	pause();
}

/* Datagrams to a group that is as large as it may be, without end. */
static void
groups(const char *socket, int ready)
{
	static const uint8_t group[16] = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, 2, 4 };
	struct rcd_ctrl_ah_req ah = { .av = { .hop_limit = 64 } };
	struct rcd_ctrl_handle rep;
	struct node from, to;

	node_open(&from, socket, "roce0", RCD_QP_UD);
	node_open(&to, socket, "roce1", RCD_QP_UD);
	MUST(node_connect(&from.qp, RCD_QP_UD, node_attr(&from, &to, 1)) == 0);
	for (int i = 0; i < RCD_MCAST_QPS_MAX; i++) {
		struct rcd_ctrl_mcast_req req;
		struct rcd_cl_qp qp;

		node_qp(&to, RCD_QP_UD, &qp);
		MUST(node_connect(&qp, RCD_QP_UD, node_attr(&to, &from, 1)) == 0);
		req = (struct rcd_ctrl_mcast_req){ .qp = qp.handle };
		memcpy(req.group, group, sizeof(group));
		MUST(rcd_client_call(&to.client, RCD_CTRL_MCAST_ATTACH, &req, NULL, NULL, NULL) ==
			0);
	}
	ah.pd = from.pd;
	ah.av.sgid_index = node_gid(&from, 1);
	memcpy(ah.av.dgid, group, sizeof(group));
	MUST(rcd_client_call(&from.client, RCD_CTRL_AH_CREATE, &ah, &rep, NULL, NULL) == 0);
	tell(ready);
	for (;;) {
		struct rcd_send_wr wr = {
			.opcode = RCD_WR_SEND,
			.ud = { .ah = rep.handle, .qpn = { RCD_QPN_MULTICAST }, .qkey = { 0x1234 } }
		};

		while (rcd_cl_post_send(&from.qp, &wr) == 0) {
		}
		rcd_cl_ring(&from.qp);
	}
}

const struct attack attacks[] = {
	{ "flushes", flushes },
	{ "doorbells", bells },
	{ "events", events },
	{ "groups", groups },
	{ 0 },
};
