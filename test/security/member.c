/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Members of XRC domains, by requests of their own.
 */
#include "member.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_wr.h"

#define SEED 7

void
member_file(char *path)
{
	int fd = mkstemp(path);

	MUST(fd >= 0);
	close(fd);
}

int
member_join_by(struct rcd_client *client, int fd, uint32_t flags, uint32_t *xrcd)
{
	struct rcd_ctrl_xrcd_req req = { .flags = flags };
	struct rcd_ctrl_fds fds = { .fds = { fd }, .count = 1 };
	struct rcd_ctrl_handle rep = { .handle = 0 };
	int err = rcd_client_call(client, RCD_CTRL_XRCD_OPEN, &req, &rep, &fds, NULL);

	*xrcd = rep.handle;
	return err;
}

int
member_join(struct rcd_client *client, const char *path, uint32_t flags, uint32_t *xrcd)
{
	int fd = open(path, O_RDONLY);
	int err;

	MUST(fd >= 0);
	err = member_join_by(client, fd, flags, xrcd);
	close(fd);
	return err;
}

int
member_queue(struct member *member)
{
	struct rcd_ctrl_xsrq_req req = {
		.srq = { .pd = member->node.pd, .depth = MEMBER_DEPTH, .max_sge = 1 },
		.xrcd = member->xrcd,
		.cq = member->node.cq.handle
	};

	return rcd_cl_xsrq_create(&member->node.client, &req, &member->srq, &member->number);
}

void
member_open(struct member *member, const struct rig *rig, const char *device, const char *path)
{
	node_open(&member->node, rig->socket, device, RCD_QP_RC);
	node_memory(&member->node, MEMBER_BYTES);
	MUST(member_join(&member->node.client, path, RCD_CTRL_O_CREAT, &member->xrcd) == 0);
	MUST(member_queue(member) == 0);
}

void
member_recv(struct member *member, uint64_t wr_id)
{
	struct rcd_sge sge = { (uintptr_t)member->node.memory, MEMBER_BYTES,
		{ member->node.mr.key } };
	struct rcd_recv_wr wr = { .wr_id = wr_id, .sge_count = 1, .sges = &sge };

	MUST(rcd_cl_post_srq_recv(&member->srq, &wr) == 0);
}

int
member_target(struct member *member, uint32_t qpn, struct rcd_cl_qp *target)
{
	struct rcd_ctrl_xqp_req req = { .xrcd = member->xrcd, .qpn = qpn };
	struct rcd_ctrl_xqp_rep rep = { .qpn = 0 };
	int err = rcd_client_call(&member->node.client,
		qpn == 0 ? RCD_CTRL_XQP_CREATE : RCD_CTRL_XQP_OPEN, &req, &rep, NULL, NULL);

	*target = (struct rcd_cl_qp){
		.client = &member->node.client, .handle = rep.handle, .qpn = rep.qpn, .target = true
	};
	return err;
}

void
member_sender_open(struct node *sender, const struct rig *rig, const char *device)
{
	node_open(sender, rig->socket, device, RCD_QP_XRC_SEND);
	node_memory(sender, MEMBER_BYTES);
	fill(sender->memory, MEMBER_BYTES, SEED);
}

void
member_connect(struct member *member, struct rcd_cl_qp *target, struct node *sender)
{
	struct rcd_ctrl_qp_attr attr = node_attr(&member->node, sender, 1);

	MUST(node_connect(target, RCD_QP_XRC_RECV, attr) == 0);
	attr = node_attr(sender, &member->node, 1);
	attr.dest_qpn = target->qpn;
	attr.rnr_retry = 7;
	MUST(node_connect(&sender->qp, RCD_QP_XRC_SEND, attr) == 0);
}

int
member_send(struct node *sender, uint32_t srqn, const struct member *to)
{
	struct rcd_sge sge = { (uintptr_t)sender->memory, MEMBER_LEN, { sender->mr.key } };
	struct rcd_send_wr wr = {
		.opcode = to != NULL ? RCD_WR_RDMA_WRITE : RCD_WR_SEND,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .srqn = srqn },
	};
	struct rcd_cq_slot slot;

	if (to != NULL) {
		wr.remote.va = (uintptr_t)to->node.memory;
		wr.remote.rkey.val = to->node.mr.key;
	}
	MUST(rcd_cl_post_send(&sender->qp, &wr) == 0);
	rcd_cl_ring(&sender->qp);
	return node_wait(sender, &slot, FOREVER_MS);
}

bool
member_receives(struct member *member, struct node *sender)
{
	struct rcd_cq_slot slot;

	memset(member->node.memory, 0, MEMBER_BYTES);
	member_recv(member, 5);
	return member_send(sender, member->number, NULL) == RCD_WC_SUCCESS &&
		node_wait(&member->node, &slot, FOREVER_MS) == RCD_WC_SUCCESS && slot.wr_id == 5 &&
		slot.byte_len == MEMBER_LEN && filled(member->node.memory, MEMBER_LEN, SEED);
}
