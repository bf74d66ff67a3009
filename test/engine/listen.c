/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What programs hear of a device, for the tests that change it beneath them.
 *
 *   listen SOCKET DEVICE NODES 4|6 [GROUP...]
 *
 * Opens the device so often, each time with a queue pair for datagrams that joins all groups, says
 * "ready", and then what comes, a line each: "event NODE TYPE", "datagram NODE LENGTH". Each line
 * "GROUP LENGTH" of its input is a datagram that the first sends. It ends with its input.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"

#define NODES_MAX 8
#define MEMORY    65536
#define ROOM      8192 /* of a datagram */
#define RECEIVES  4
#define GRH       40 /* before each */

static struct node nodes[NODES_MAX];

static void
group_gid(const char *text, uint8_t *gid)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	if (inet_pton(AF_INET, text, gid + 12) != 1)
		MUST(inet_pton(AF_INET6, text, gid) == 1);
}

static void
begin(struct node *node, char *const *argv, int argc)
{
	node_open(node, argv[1], argv[2], RCD_QP_UD);
	node_memory(node, MEMORY);
	MUST(node_connect(&node->qp, RCD_QP_UD, node_attr(node, node, argv[4][0] == '4')) == 0);
	for (uint32_t i = 0; i < RECEIVES; i++)
		MUST(node_recv(node, ROOM + i * ROOM, ROOM, ROOM + i * ROOM) == 0);
	for (int i = 5; i < argc; i++) {
		struct rcd_ctrl_mcast_req req = { .qp = node->qp.handle };

		group_gid(argv[i], req.group);
		MUST(rcd_client_call(
			     &node->client, RCD_CTRL_MCAST_ATTACH, &req, NULL, NULL, NULL) == 0);
	}
}

static void
send_to(struct node *node, const char *group, uint32_t len, int v4)
{
	struct rcd_ctrl_ah_req req = { .pd = node->pd, .av = node_attr(node, node, v4).av };
	struct rcd_ctrl_handle ah;
	struct rcd_sge sge = { (uintptr_t)node->memory, len, { node->mr.key } };
	struct rcd_send_wr wr = { .opcode = RCD_WR_SEND,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.ud = { .qpn = { 0xffffff }, .qkey = { 0x1234 } } };

	group_gid(group, req.av.dgid);
	MUST(rcd_client_call(&node->client, RCD_CTRL_AH_CREATE, &req, &ah, NULL, NULL) == 0);
	wr.ud.ah = ah.handle;
	MUST(rcd_cl_post_send(&node->qp, &wr) == 0);
	rcd_cl_ring(&node->qp);
}

/* @return whether there was anything */
static int
look(int number)
{
	struct node *node = &nodes[number];
	struct rcd_ctrl_event event;
	struct rcd_cq_slot slot;
	int got = 0;

	while (recv(node->client.events_fd, &event, sizeof(event), MSG_DONTWAIT) == sizeof(event)) {
		printf("event %d %u\n", number, event.type);
		got = 1;
	}
	if (rcd_cl_poll(&node->cq, &slot, 1) != 1)
		return got;
	if (slot.status == RCD_WC_SUCCESS && slot.wr_id >= ROOM) {
		printf("datagram %d %u\n", number, slot.byte_len - GRH);
		node_recv(node, slot.wr_id, ROOM, slot.wr_id);
	}
	return 1;
}

int
main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int count = argc > 4 ? (int)strtol(argv[3], NULL, 10) : 0;
	char line[128], group[64];
	unsigned int len;

	MUST(count > 0 && count <= NODES_MAX);
	for (int i = 0; i < count; i++)
		begin(&nodes[i], argv, argc);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	for (;;) {
		int busy = 0;

		for (int i = 0; i < count; i++)
			busy |= look(i);
		if (poll(&input, 1, busy ? 0 : 5) <= 0)
			continue;
		if (fgets(line, sizeof(line), stdin) == NULL)
			return 0;
		MUST(sscanf(line, "%63s %u", group, &len) == 2 && len <= ROOM - GRH);
		send_to(&nodes[0], group, len, argv[4][0] == '4');
	}
}
