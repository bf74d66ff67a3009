/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Nodes for tests: clients with one queue pair each.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_sequence.h"
#include "rig.h"

#define TOLD_MAX 16 /* lines of one program */

int
node_try_open(struct node *node, const char *socket, const char *device)
{
	int err;

	memset(node, 0, sizeof(*node));
	node->channel = RCD_CTRL_NO_HANDLE;
	node->channel_fd = -1;
	err = rcd_client_connect(&node->client, socket);
	for (uint32_t i = 0; err == 0; i++) {
		struct rcd_ctrl_index_req req = { .index = i };

		err = rcd_client_call(
			&node->client, RCD_CTRL_DEVICE, &req, &node->device, NULL, NULL);
		if (err == 0 && strcmp(node->device.name, device) == 0)
			break;
	}
	if (err == 0)
		err = rcd_client_open(&node->client, node->device.index);
	if (err == 0) {
		struct rcd_ctrl_index_req req = { .index = 0 };

		err = rcd_client_call(&node->client, RCD_CTRL_GIDS, &req, &node->gids, NULL, NULL);
	}
	if (err != 0)
		rcd_client_close(&node->client);
	return err;
}

void
node_qp(struct node *node, uint32_t type, struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_qp_req req = {
		.pd = node->pd,
		.type = type,
		.send_cq = node->cq.handle,
		.recv_cq = node->cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = NODE_DEPTH,
		.rq_depth = type != RCD_QP_XRC_SEND ? NODE_DEPTH : 0,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 64,
	};

	MUST(rcd_cl_qp_create(&node->client, &req, qp) == 0);
}

void
node_open(struct node *node, const char *socket, const char *device, uint32_t type)
{
	struct rcd_ctrl_handle pd;
	struct rcd_ctrl_handle channel;
	struct rcd_ctrl_fds fds;
	struct rcd_ctrl_cq_req cq = { .depth = 4 * NODE_DEPTH, .cookie = 77 };

	MUST(node_try_open(node, socket, device) == 0);
	MUST(rcd_client_call(&node->client, RCD_CTRL_PD_CREATE, NULL, &pd, NULL, NULL) == 0);
	node->pd = pd.handle;
	MUST(rcd_client_call(&node->client, RCD_CTRL_CHANNEL_CREATE, NULL, &channel, NULL, &fds) ==
		0);
	MUST(fds.count == 1);
	node->channel = channel.handle;
	node->channel_fd = fds.fds[0];
	cq.channel = channel.handle;
	MUST(rcd_cl_cq_create(&node->client, &cq, &node->cq) == 0);
	node_qp(node, type, &node->qp);
}

void
node_close(struct node *node)
{
	if (node->memory != NULL) {
		rcd_cl_mr_dereg(&node->client, &node->mr);
		munmap(node->memory, node->memory_len);
	}
	if (node->channel_fd >= 0)
		close(node->channel_fd);
	rcd_client_close(&node->client);
	memset(node, 0, sizeof(*node));
}

void
node_memory(struct node *node, uint64_t len)
{
	struct rcd_cl_mr_attr attr = {
		.pd = node->pd, .access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE, .len = len
	};

	node->memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(node->memory != MAP_FAILED);
	node->memory_len = len;
	attr.addr = node->memory;
	attr.start = (uintptr_t)node->memory;
	MUST(rcd_cl_mr_reg(&node->client, &attr, &node->mr) == 0);
}

uint8_t
node_gid(const struct node *node, int v4)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	for (uint32_t i = 1; i < node->gids.count; i++) {
		const uint8_t *raw = node->gids.gids[i].raw;
		int is_v4 = memcmp(raw, mapped, sizeof(mapped)) == 0;

		if ((raw[0] | raw[10]) != 0 && is_v4 == v4)
			return (uint8_t)i;
	}
	return 0;
}

uint8_t node_timeout = NODE_TIMEOUT;

struct rcd_ctrl_qp_attr
node_attr(const struct node *node, const struct node *peer, int v4)
{
	struct rcd_ctrl_port_rep port, peer_port;
	struct rcd_ctrl_qp_attr attr = {
		.access = RCD_ACCESS_REMOTE,
		.qkey = 0x1234,
		.rq_psn = 1000,
		.sq_psn = 1000,
		.dest_qpn = peer->qp.qpn,
		.port = 1,
		.timeout = node_timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 8,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 8,
		.av = { .sgid_index = node_gid(node, v4), .hop_limit = 64 },
	};

	MUST(rcd_client_call((struct rcd_client *)(uintptr_t)&node->client, RCD_CTRL_PORT, NULL,
		     &port, NULL, NULL) == 0);
	MUST(rcd_client_call((struct rcd_client *)(uintptr_t)&peer->client, RCD_CTRL_PORT, NULL,
		     &peer_port, NULL, NULL) == 0);
	attr.path_mtu_bytes = port.active_mtu_bytes < peer_port.active_mtu_bytes
		? port.active_mtu_bytes
		: peer_port.active_mtu_bytes;
	memcpy(attr.av.dgid, peer->gids.gids[node_gid(peer, v4)].raw, 16);
	return attr;
}

int
node_connect(struct rcd_cl_qp *qp, uint32_t type, struct rcd_ctrl_qp_attr attr)
{
	bool ud = type == RCD_QP_UD;
	bool requester = type == RCD_QP_RC || type == RCD_QP_XRC_SEND;
	bool responder = type == RCD_QP_RC || type == RCD_QP_XRC_RECV;
	uint32_t init = RCD_QP_ATTR_STATE | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT |
		(ud ? RCD_QP_ATTR_QKEY : RCD_QP_ATTR_ACCESS);
	uint32_t rtr = RCD_QP_ATTR_STATE;
	uint32_t rts = RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQ_PSN;
	int err;

	if (!ud)
		rtr |= RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU | RCD_QP_ATTR_DEST_QPN |
			RCD_QP_ATTR_RQ_PSN;
	if (requester || responder)
		rts |= RCD_QP_ATTR_TIMEOUT;
	if (responder)
		rtr |= RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER;
	if (requester)
		rts |= RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY | RCD_QP_ATTR_MAX_RD_ATOMIC;
	attr.state = RCD_QP_INIT;
	err = rcd_cl_qp_modify(qp, &attr, init);
	attr.state = RCD_QP_RTR;
	if (err == 0)
		err = rcd_cl_qp_modify(qp, &attr, rtr);
	attr.state = RCD_QP_RTS;
	if (err == 0)
		err = rcd_cl_qp_modify(qp, &attr, rts);
	return err;
}

void
node_join(struct node *a, struct node *b, uint32_t type, int v4)
{
	MUST(node_connect(&a->qp, type, node_attr(a, b, v4)) == 0);
	MUST(node_connect(&b->qp, type, node_attr(b, a, v4)) == 0);
}

int
node_write(struct node *from, struct node *to, uint8_t opcode, uint64_t offset, uint32_t len,
	uint64_t wr_id)
{
	struct rcd_sge sge = {
		.addr = (uintptr_t)from->memory + offset, .len = len, .lkey = { from->mr.key }
	};
	struct rcd_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .va = to != NULL ? (uintptr_t)to->memory + offset : 0,
			.rkey = { to != NULL ? to->mr.key : 0 } },
	};
	int err = rcd_cl_post_send(&from->qp, &wr);

	if (err == 0)
		rcd_cl_ring(&from->qp);
	return err;
}

uint32_t
node_ah(struct node *from, const struct node *to, int v4)
{
	struct rcd_ctrl_ah_req req = { .pd = from->pd, .av = node_attr(from, to, v4).av };
	struct rcd_ctrl_handle ah;

	MUST(rcd_client_call(&from->client, RCD_CTRL_AH_CREATE, &req, &ah, NULL, NULL) == 0);
	return ah.handle;
}

int
node_datagram(struct node *from, const struct node *to, uint32_t ah, uint32_t len)
{
	struct rcd_sge sge = { (uintptr_t)from->memory, len, { from->mr.key } };
	struct rcd_send_wr wr = { .opcode = RCD_WR_SEND,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.ud = { .ah = ah, .qpn = { to->qp.qpn }, .qkey = { 0x1234 } } };
	int err = rcd_cl_post_send(&from->qp, &wr);

	if (err == 0)
		rcd_cl_ring(&from->qp);
	return err;
}

int
node_recv(struct node *node, uint64_t offset, uint32_t len, uint64_t wr_id)
{
	struct rcd_sge sge = {
		.addr = (uintptr_t)node->memory + offset, .len = len, .lkey = { node->mr.key }
	};
	struct rcd_recv_wr wr = { .wr_id = wr_id, .sge_count = 1, .sges = &sge };

	return rcd_cl_post_recv(&node->qp, &wr, false);
}

/* What a log needs to tell a fault from a machine that stood still; of many, the first. */
static void
rig_tell(const struct rcd_cq_slot *slot, uint64_t waited_ms)
{
	static uint32_t told;

	if (slot->status != RCD_WC_SUCCESS && told++ < TOLD_MAX)
		fprintf(stderr, "# completion %" PRIu64 ": status %u after %" PRIu64 " ms\n",
			slot->wr_id, slot->status, waited_ms);
}

int
node_wait(struct node *node, struct rcd_cq_slot *slot, int limit_ms)
{
	uint64_t begin = now_ms();

	for (uint32_t i = 1;; i++) {
		if (rcd_cl_poll(&node->cq, slot, 1) == 1) {
			rig_tell(slot, now_ms() - begin);
			return slot->status;
		}
		if (rcd_client_dead(&node->client))
			return -EIO;
		if (i % 256 != 0)
			continue;
		if (now_ms() - begin > (uint64_t)limit_ms)
			return -ETIMEDOUT;
		sched_yield();
	}
}

void
fill(uint8_t *memory, uint64_t len, uint32_t seed)
{
	struct rcd_sequence sequence = { seed };

	for (uint64_t i = 0; i < len; i++)
		memory[i] = (uint8_t)rcd_sequence_next(&sequence);
}

int
filled(const uint8_t *memory, uint64_t len, uint32_t seed)
{
	struct rcd_sequence sequence = { seed };

	for (uint64_t i = 0; i < len; i++)
		if (memory[i] != (uint8_t)rcd_sequence_next(&sequence))
			return 0;
	return 1;
}
