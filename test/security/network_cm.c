/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests for connections from the network, some of them the peer's.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "network.h"
#include "rcd_tap.h"

/* A listener on p0. @return its channel */
static uint32_t
listen_here(struct node *node, uint16_t port)
{
	struct rcd_ctrl_cm_create_req create = { .space = RCD_CMA_SPACE_TCP };
	struct rcd_ctrl_cm_addr_req bind = { .addr = { .port = port, .family = 4 } };
	struct rcd_ctrl_cm_pair listen = { .second = 16 };
	struct rcd_gid here = link_gid(78, 0, 1);
	struct rcd_ctrl_handle rep;
	struct rcd_ctrl_fds fds;

	MUST(rcd_client_call(&node->client, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &rep, NULL, &fds) ==
		0);
	create.channel = rep.handle;
	MUST(rcd_client_call(&node->client, RCD_CTRL_CM_CREATE, &create, &rep, NULL, NULL) == 0);
	bind.id = listen.id = rep.handle;
	memcpy(bind.addr.addr, here.raw, 16);
	MUST(rcd_client_call(&node->client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL) == 0);
	MUST(rcd_client_call(&node->client, RCD_CTRL_CM_LISTEN, &listen, NULL, NULL, NULL) == 0);
	return create.channel;
}

/* A REQ of a queue pair of the peer. */
static void
send_req(uint16_t port, uint32_t comm_id, uint32_t qpn)
{
	struct rcd_gid from = link_gid(78, 0, 2), to = link_gid(78, 0, 1);
	struct rcd_path path = link_path(&from, &to, far.peer_mac, engine_mac, 0);
	struct rcd_cma_hdr hdr = { .ip_version = 4, .port = 40000, .src = from, .dst = to };
	struct rcd_cm msg = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = comm_id,
			.service_id = rcd_cma_service_id(RCD_CMA_SPACE_TCP, port),
			.local_qpn = qpn,
			.remote_cm_response_timeout = 20,
			.local_cm_response_timeout = 20,
			.pkey = RCD_PKEY_DEFAULT,
			.path_mtu = 3,
			.max_cm_retries = 15,
			.primary_local_gid = from,
			.primary_remote_gid = to } };

	rcd_cma_hdr_build(msg.req.private_data, &hdr);
	link_cm(&far, &path, &msg);
}

/* Identifiers of all clients. */
static int
count_ids(void)
{
	char *answer = rig_admin(rig.socket, "resource cm_id");
	int count = rig_count(answer, "\"cm-idn\"");

	free(answer);
	return count;
}

void
requests_of_nobody(void)
{
	struct rcd_gid from = link_gid(78, 0, 2), to = link_gid(78, 0, 1);
	struct rcd_path path = link_path(&from, &to, far.peer_mac, engine_mac, 0);
	struct rcd_ctrl_cm_param_req accept = { .id = 0 };
	struct rcd_ctrl_cm_event_rep event;
	struct rcd_cm rtu = { .attr = RCD_CM_RTU };
	uint64_t deadline = now_ms() + FOREVER_MS;
	long long stale, dreqs, sent;
	struct node node;
	uint32_t channel;
	uint8_t plain, tagged;

	open_node(&node, RCD_QP_RC, &plain, &tagged);
	channel = listen_here(&node, 7471);
	send_req(7471, 5, 0x4242);
	CU_ASSERT_EQUAL_FATAL(rig_cm_event(&node.client, channel, &event, FOREVER_MS), 4);
	accept.id = event.id;
	accept.qpn = node.qp.qpn;
	MUST(rcd_client_call(&node.client, RCD_CTRL_CM_ACCEPT, &accept, NULL, NULL, NULL) == 0);
	while (__atomic_load_n(&far.rep_id, __ATOMIC_SEQ_CST) == 0 && now_ms() < deadline)
		usleep(1000);
	rtu.rtu.local_comm_id = 5;
	rtu.rtu.remote_comm_id = __atomic_load_n(&far.rep_id, __ATOMIC_SEQ_CST);
	link_cm(&far, &path, &rtu);
	CU_ASSERT_EQUAL_FATAL(rig_cm_event(&node.client, channel, &event, FOREVER_MS), 9);
	stale = counter("cm_rx_drop_stale");
	dreqs = counter("cm_tx_dreq");
	for (uint32_t i = 0; i < 200; i++)
		send_req(7471, 100 + i, 0x4242);
	stale = settles("cm_rx_drop_stale") - (stale > 0 ? stale : 0);
	CU_ASSERT(stale > 20);
	/* The peer was asked, but not for each. */
	dreqs = counter("cm_tx_dreq") - (dreqs > 0 ? dreqs : 0);
	CU_ASSERT(dreqs >= 1 && dreqs <= 3);
	sent = counter("cm_rx_req");
	for (uint32_t i = 0; i < 2000; i++) {
		send_req(9, 1000 + i, 0x10000 + i);
		if (i % 50 == 49)
			usleep(5000);
	}
	CU_ASSERT(settles("cm_rx_req") - sent > 200);
	/* The listener, and the connection: nothing is left of the others, and nobody was told. */
	CU_ASSERT_EQUAL(rig_cm_event(&node.client, channel, &event, 200), -1);
	CU_ASSERT_EQUAL(count_ids(), 2);
	node_close(&node);
}
