/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames of raw packets.
 */
#include "frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

enum {
	TYPE_AT = 12,
	UDP = 17,
};

void
frames_make(uint8_t *frame, uint32_t len, uint16_t type, uint8_t what)
{
	static const uint8_t macs[] = { 0x03, 0, 0, 0, 0, 9, 0x02, 0, 0, 0, 0, 8 };

	memset(frame, what, len);
	memcpy(frame, macs, sizeof(macs) < len ? sizeof(macs) : len);
	if (len >= TYPE_AT + 2)
		rcd_put_be16(frame + TYPE_AT, type);
}

void
frames_make_udp(uint8_t *frame, uint32_t len, uint16_t port)
{
	static const uint8_t ip[] = { 0x45, 0, 0, 0, 0, 1, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0,
		0, 2 };

	frames_make(frame, len, 0x0800, 5);
	memcpy(frame + 14, ip, sizeof(ip));
	rcd_put_be16(frame + 16, (uint16_t)(len - 14));
	rcd_put_be16(frame + 34, 1000);
	rcd_put_be16(frame + 36, port);
	rcd_put_be16(frame + 38, (uint16_t)(len - 34));
	rcd_put_be16(frame + 40, 0);
}

bool
frames_are_of_link(const uint8_t *frame)
{
	uint16_t type = rcd_get_be16(frame + TYPE_AT);

	return type == 0x0806 || (type == 0x86dd && frame[20] != UDP);
}

struct rcd_ctrl_flow_req
frames_flow_of(const struct rcd_cl_qp *qp, uint8_t kind)
{
	return (struct rcd_ctrl_flow_req){ .qp = qp->handle, .kind = kind };
}

struct rcd_ctrl_flow_req
frames_flow_of_type(const struct rcd_cl_qp *qp, uint16_t type)
{
	struct rcd_ctrl_flow_req req = frames_flow_of(qp, RCD_FLOW_NORMAL);

	rcd_put_be16(req.value.ether_type, type);
	rcd_put_be16(req.mask.ether_type, 0xffff);
	return req;
}

int
frames_flow_create(struct node *node, const struct rcd_ctrl_flow_req *req, uint32_t *handle)
{
	struct rcd_ctrl_handle rep = { 0 };
	int err = rcd_client_call(&node->client, RCD_CTRL_FLOW_CREATE, req, &rep, NULL, NULL);

	if (handle != NULL)
		*handle = rep.handle;
	return err;
}

int
frames_to_state(struct rcd_cl_qp *qp, uint8_t state)
{
	struct rcd_ctrl_qp_attr attr = { .state = state, .port = 1 };

	return rcd_cl_qp_modify(
		qp, &attr, RCD_QP_ATTR_STATE | (state == RCD_QP_INIT ? RCD_QP_ATTR_PORT : 0));
}

void
frames_ready(struct rcd_cl_qp *qp)
{
	for (uint8_t state = RCD_QP_INIT; state <= RCD_QP_RTS; state++)
		MUST(frames_to_state(qp, state) == 0);
}

void
frames_open(struct node *node, const char *socket, const char *device, uint32_t len)
{
	node_open(node, socket, device, RCD_QP_RAW);
	node_memory(node, len);
	frames_ready(&node->qp);
}

int
frames_post(struct node *node, uint32_t len, uint8_t flags)
{
	struct rcd_sge sge = { (uintptr_t)node->memory, len, { node->mr.key } };
	struct rcd_send_wr wr = { .opcode = RCD_WR_SEND,
		.flags = RCD_SEND_SIGNALED | flags,
		.sge_count = 1,
		.sges = &sge };
	int err = rcd_cl_post_send(&node->qp, &wr);

	if (err == 0)
		rcd_cl_ring(&node->qp);
	return err;
}

int
frames_send(struct node *node, uint32_t len, uint8_t flags)
{
	struct rcd_cq_slot slot;

	MUST(frames_post(node, len, flags) == 0);
	return node_wait(node, &slot, FOREVER_MS);
}

void
frames_set(const char *socket, const char *what)
{
	for (int i = 0; i < 2; i++) {
		char line[64];
		char *answer;

		snprintf(line, sizeof(line), "link set roce%d %s", i, what);
		answer = rig_admin(socket, line);
		MUST(answer != NULL);
		free(answer);
	}
}
