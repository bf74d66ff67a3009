/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: connections that share a context come and go in any order, with connection management and
 * requests that wait, and nothing of one that went is used again. Method: an engine of the test's
 * own; connections that speak the control protocol themselves. What is freed and used shows under
 * the address sanitizer; the rules that prevent it show everywhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_cm.h"
#include "rcd_tap.h"
#include "rig.h"

#define QUIET_MS 1000 /**< in which an event would have come */

static struct rig rig;

/* Wait until the engine has so many connections, the question's own with them. */
static bool
clients_become(long long count)
{
	uint64_t deadline = now_ms() + FOREVER_MS;

	while (rig_engine(&rig, "clients") != count)
		if (now_ms() > deadline)
			return false;
		else
			usleep(1000);
	return true;
}

/* An identifier of a connection. @param channel set: where its events wait */
static uint32_t
cm_id(struct rcd_client *client, uint32_t *channel)
{
	struct rcd_ctrl_cm_create_req req = { .space = RCD_CMA_SPACE_TCP, .qp_type = RCD_QP_RC };
	struct rcd_ctrl_handle rep;
	struct rcd_ctrl_fds fds;

	MUST(rcd_client_call(client, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &rep, NULL, &fds) == 0);
	rcd_ctrl_fds_close(&fds);
	*channel = req.channel = rep.handle;
	MUST(rcd_client_call(client, RCD_CTRL_CM_CREATE, &req, &rep, NULL, NULL) == 0);
	return rep.handle;
}

static int
next_event(struct rcd_client *client, uint32_t channel, int limit_ms)
{
	struct rcd_ctrl_cm_event_rep event;

	return rig_cm_event(client, channel, &event, limit_ms);
}

static void
listen_on(struct rcd_client *client, uint16_t port)
{
	struct rcd_ctrl_cm_addr_req bind = { .addr = rig_addr(2, port) };
	struct rcd_ctrl_cm_pair listen = { .second = 16 };
	uint32_t channel;

	bind.id = listen.id = cm_id(client, &channel);
	MUST(rcd_client_call(client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL) == 0);
	MUST(rcd_client_call(client, RCD_CTRL_CM_LISTEN, &listen, NULL, NULL, NULL) == 0);
}

/* A request for a connection to a port. @return the event that ends it, or it lives: -1 */
static int
ask_for(uint16_t port, int limit_ms)
{
	struct rcd_ctrl_cm_resolve_req resolve = { .timeout_ms = 1000, .dst = rig_addr(2, port) };
	struct rcd_ctrl_cm_param_req connect = { .id = 0 };
	struct rcd_ctrl_handle handle = { .handle = 0 };
	struct node node;
	uint32_t channel;
	int event;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	resolve.id = handle.handle = connect.id = cm_id(&node.client, &channel);
	connect.qpn = node.qp.qpn;
	MUST(rcd_client_call(&node.client, RCD_CTRL_CM_RESOLVE_ADDR, &resolve, NULL, NULL, NULL) ==
		0);
	MUST(next_event(&node.client, channel, FOREVER_MS) == 0);
	MUST(rcd_client_call(&node.client, RCD_CTRL_CM_RESOLVE_ROUTE, &handle, NULL, NULL, NULL) ==
		0);
	MUST(next_event(&node.client, channel, FOREVER_MS) == 2);
	MUST(rcd_client_call(&node.client, RCD_CTRL_CM_CONNECT, &connect, NULL, NULL, NULL) == 0);
	event = next_event(&node.client, channel, limit_ms);
	node_close(&node);
	return event;
}

static void
importer_with_identifiers(void)
{
	struct rcd_client importer;
	struct node opener;
	uint32_t index;

	node_open(&opener, rig.socket, "roce0", RCD_QP_RC);
	MUST(rcd_client_connect(&importer, rig.socket) == 0);
	listen_on(&importer, 7471);
	CU_ASSERT_EQUAL(rcd_client_import(&importer, opener.client.seg_fd, &index), -EINVAL);
	/* The opener goes; whoever had the identifiers has them still, or nobody has. */
	node_close(&opener);
	CU_ASSERT_TRUE(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_NOT_EQUAL(ask_for(7471, QUIET_MS), 8);
	rcd_client_close(&importer);
	/* Rejected: nobody listens any more. */
	CU_ASSERT_TRUE(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_EQUAL(ask_for(7471, FOREVER_MS), 8);
}

/* What an importer asks for belongs to the context, and stays with it. */
static void
identifiers_of_an_importer(void)
{
	struct rcd_client importer;
	struct node opener;
	uint32_t index;

	node_open(&opener, rig.socket, "roce0", RCD_QP_RC);
	MUST(rcd_client_connect(&importer, rig.socket) == 0);
	MUST(rcd_client_import(&importer, opener.client.seg_fd, &index) == 0);
	listen_on(&importer, 7472);
	close(opener.client.sock);
	opener.client.sock = -1;
	/* The importer, and who asks. */
	CU_ASSERT_TRUE(clients_become(2));
	CU_ASSERT_TRUE(rig_contexts(&rig, 1, FOREVER_MS));
	CU_ASSERT_EQUAL(ask_for(7472, QUIET_MS), -1);
	rcd_client_close(&importer);
	CU_ASSERT_TRUE(rig_contexts(&rig, 0, FOREVER_MS));
	node_close(&opener);
}

/* Ask for a neighbour that is not there, and don't wait for the answer. */
static void
park(struct node *node, uint8_t last)
{
	struct rcd_ctrl_msg msg = { .hdr = { .op = RCD_CTRL_AH_CREATE, .number = 1000 } };

	msg.body.ah_create_req.pd = node->pd;
	msg.body.ah_create_req.av.sgid_index = node_gid(node, 1);
	memcpy(msg.body.ah_create_req.av.dgid, rig_addr(last, 0).addr, 16);
	MUST(rcd_ctrl_send(
		     node->client.sock, &msg, rcd_ctrl_req_len(RCD_CTRL_AH_CREATE), NULL, 0) == 0);
}

/*
 * The opener's reply can't be delivered, so that it goes within the round of those that wait, and
 * its importer has the context.
 */
static void
opener_goes_while_others_wait(void)
{
	struct honest honest = honest_start(&rig);
	struct rcd_client importer;
	struct node opener, other;
	uint32_t index;

	/* Nobody comes between the importer and its opener in the list of connections. */
	MUST(rig_contexts(&rig, 2, FOREVER_MS));
	node_open(&other, rig.socket, "roce0", RCD_QP_RC);
	MUST(rcd_client_connect(&importer, rig.socket) == 0);
	node_open(&opener, rig.socket, "roce0", RCD_QP_RC);
	MUST(rcd_client_import(&importer, opener.client.seg_fd, &index) == 0);
	park(&opener, 77);
	MUST(shutdown(opener.client.sock, SHUT_RD) == 0);
	usleep(500000);
	park(&other, 78);
	/* The honest pair, two of these, and who asks. */
	CU_ASSERT_TRUE(clients_become(5));
	/* Of the three connections the opener's has gone, and its importer has the context. */
	CU_ASSERT_TRUE(rig_contexts(&rig, 4, FOREVER_MS));
	close(importer.sock);
	importer.sock = -1;
	CU_ASSERT_TRUE(rig_contexts(&rig, 3, FOREVER_MS));
	rcd_client_close(&importer);
	node_close(&opener);
	node_close(&other);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
}

static void
engine_ends_well(void)
{
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S3 an importer that has CM identifiers of its own is refused",
			importer_with_identifiers },
		{ "S3 an importer's CM identifiers stay with the context",
			identifiers_of_an_importer },
		{ "S4 an opener goes while its importer and others wait",
			opener_goes_while_others_wait },
		{ "S3 S4 the engine ends well", engine_ends_well },
	};

	rig_start(&rig, NULL);
	return rcd_tap_run("contexts", tests, sizeof(tests) / sizeof(tests[0]));
}
