/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: connections of XRC go from an initiator to a target, and to nobody else. Method: lives of
 * connections between two hosts, asked for through rcd_cma_serve(); messages are looked at, and
 * some changed, on their way.
 */
#include <errno.h>
#include <string.h>

#include "cma_ask.h"
#include "rcd_mad.h"
#include "rcd_number.h"
#include "rcd_qp.h"
#include "rcd_tap.h"

#define PORT          7174
#define INITIATOR_QPN 17
#define TARGET_QPN    23
#define FOREIGN_QPN   99

/** Reasons of REJ. */
#define REASON_SERVICE_ID 8
#define REASON_TRANSPORT  9

static struct cma_host host, far;
static struct cma_host_client alice, bob;

static void
setup(void)
{
	cma_host_open_with(&host, "near", "10.0.0.1", &alice, 1000);
	cma_host_open_with(&far, "far", "10.0.0.9", &bob, 1001);
}

static void
teardown(void)
{
	cma_host_client_end(&bob);
	cma_host_deliver(&host, &far);
	cma_host_client_end(&alice);
	cma_host_close(&host);
	far.mad_count = 0;
	cma_host_close(&far);
}

static int
listen_to(uint8_t qp_type)
{
	uint32_t listener = cma_ask_create(&bob, qp_type);

	CU_ASSERT_EQUAL(cma_ask_bind_as(&bob, &bob, listener, "0.0.0.0", PORT), 0);
	return cma_ask_of_pair(&bob, RCD_CTRL_CM_LISTEN, listener, 4);
}

/* One that has its route, to the far listener. */
static uint32_t
resolved(uint8_t qp_type)
{
	uint32_t id = cma_ask_create(&alice, qp_type);

	cma_req.cm_resolve_addr_req.id = id;
	cma_req.cm_resolve_addr_req.dst = cma_host_addr("10.0.0.9", PORT);
	CU_ASSERT_EQUAL(cma_ask(&alice, RCD_CTRL_CM_RESOLVE_ADDR), 0);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_RESOLVE_ROUTE, id), 0);
	return id;
}

/* CM_CONNECT or CM_ACCEPT. */
static int
say(struct cma_host_client *client, enum rcd_ctrl_op op, uint32_t id, uint32_t qpn)
{
	struct rcd_ctrl_cm_param_req *req = &cma_req.cm_connect_req;

	req->id = id;
	req->qpn = qpn;
	req->param.responder_resources = 4;
	req->param.initiator_depth = 2;
	req->param.retry_count = 7;
	req->param.rnr_retry_count = 6;
	return cma_ask(client, op);
}

/* The first message that a host has sent and nobody has. */
static struct rcd_cm
on_its_way(const struct cma_host *from)
{
	struct rcd_cm msg;
	struct rcd_mad mad;

	CU_ASSERT_FATAL(from->mad_count > 0);
	CU_ASSERT_EQUAL_FATAL(rcd_mad_parse(from->mads[0], RCD_MAD_LEN, &mad), RCD_VERDICT_OK);
	CU_ASSERT_FATAL(rcd_cm_parse(from->mads[0] + RCD_MAD_HDR_LEN, mad.attr_id, &msg));
	return msg;
}

/* It says something else. */
static void
change(struct cma_host *from, const struct rcd_cm *msg)
{
	rcd_cm_build(from->mads[0] + RCD_MAD_HDR_LEN, msg);
}

static void
ends_that_connect(void)
{
	enum {
		PEER = RCD_QP_ATTR_STATE | RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU |
			RCD_QP_ATTR_DEST_QPN | RCD_QP_ATTR_RQ_PSN,
		SENDS = RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQ_PSN | RCD_QP_ATTR_TIMEOUT,
	};
	const struct rcd_ctrl_cm_attr_rep *rep = &cma_rep.cm_qp_attr_rep;
	struct rcd_cm msg;
	uint32_t id, child;

	setup();
	CU_ASSERT_EQUAL(listen_to(RCD_QP_XRC_RECV), 0);
	id = resolved(RCD_QP_XRC_SEND);
	CU_ASSERT_EQUAL(say(&alice, RCD_CTRL_CM_CONNECT, id, INITIATOR_QPN), 0);
	msg = on_its_way(&host);
	CU_ASSERT_EQUAL(msg.attr, RCD_CM_REQ);
	CU_ASSERT_EQUAL(msg.req.transport_service_type, 3);
	CU_ASSERT_EQUAL(msg.req.extended_transport_type, 1);
	CU_ASSERT_EQUAL(msg.req.local_qpn, INITIATOR_QPN);
	CU_ASSERT_EQUAL(msg.req.initiator_depth, 2);
	CU_ASSERT_EQUAL(msg.req.responder_resources, 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL_FATAL(cma_ask_event(&bob), RCD_CMA_EVENT_CONNECT_REQUEST);
	child = cma_rep.cm_event_rep.id;
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.qpn, INITIATOR_QPN);
	CU_ASSERT_EQUAL(say(&bob, RCD_CTRL_CM_ACCEPT, child, TARGET_QPN), 0);
	/* A target is where RD would have its EE context. */
	msg = on_its_way(&far);
	CU_ASSERT_EQUAL(msg.attr, RCD_CM_REP);
	CU_ASSERT_EQUAL(msg.rep.local_eecn, TARGET_QPN);
	CU_ASSERT_EQUAL(msg.rep.local_qpn, 0);
	CU_ASSERT_EQUAL(msg.rep.srq, 1);
	CU_ASSERT_EQUAL(msg.rep.initiator_depth, 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_CONNECT_RESPONSE);
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.qpn, TARGET_QPN);

	CU_ASSERT_EQUAL(cma_ask_of_pair(&alice, RCD_CTRL_CM_QP_ATTR, id, RCD_QP_RTR), 0);
	CU_ASSERT_EQUAL(rep->mask, PEER);
	CU_ASSERT_EQUAL(rep->attr.dest_qpn, TARGET_QPN);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&alice, RCD_CTRL_CM_QP_ATTR, id, RCD_QP_RTS), 0);
	CU_ASSERT_EQUAL(rep->mask,
		SENDS | RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY | RCD_QP_ATTR_MAX_RD_ATOMIC);
	CU_ASSERT_EQUAL(rep->attr.retry_cnt, 7);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&bob, RCD_CTRL_CM_QP_ATTR, child, RCD_QP_RTR), 0);
	CU_ASSERT_EQUAL(
		rep->mask, PEER | RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER);
	CU_ASSERT_EQUAL(rep->attr.dest_qpn, INITIATOR_QPN);
	CU_ASSERT_EQUAL(rep->attr.max_dest_rd_atomic, 4);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&bob, RCD_CTRL_CM_QP_ATTR, child, RCD_QP_RTS), 0);
	CU_ASSERT_EQUAL(rep->mask, SENDS);

	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_ESTABLISH, id), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&bob), RCD_CMA_EVENT_ESTABLISHED);
	/* Each names the other's queue pair, or is not believed. */
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_DISCONNECT, id), 0);
	msg = on_its_way(&host);
	CU_ASSERT_EQUAL(msg.attr, RCD_CM_DREQ);
	CU_ASSERT_EQUAL(msg.dreq.remote_qpn, TARGET_QPN);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&bob), RCD_CMA_EVENT_DISCONNECTED);
	CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_DISCONNECTED);
	teardown();
}

static void
ends_that_do_not(void)
{
	setup();
	CU_ASSERT_EQUAL(listen_to(RCD_QP_XRC_SEND), -EINVAL);
	CU_ASSERT_EQUAL(say(&alice, RCD_CTRL_CM_CONNECT, resolved(RCD_QP_XRC_RECV), INITIATOR_QPN),
		-EINVAL);
	/* Queue pairs of others, as with any service. */
	host.foreign_qpn = FOREIGN_QPN;
	CU_ASSERT_EQUAL(
		say(&alice, RCD_CTRL_CM_CONNECT, resolved(RCD_QP_XRC_SEND), FOREIGN_QPN), -EINVAL);
	teardown();
}

static void
targets_of_others(void)
{
	uint32_t child;

	setup();
	CU_ASSERT_EQUAL(listen_to(RCD_QP_XRC_RECV), 0);
	CU_ASSERT_EQUAL(
		say(&alice, RCD_CTRL_CM_CONNECT, resolved(RCD_QP_XRC_SEND), INITIATOR_QPN), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL_FATAL(cma_ask_event(&bob), RCD_CMA_EVENT_CONNECT_REQUEST);
	child = cma_rep.cm_event_rep.id;
	far.foreign_qpn = FOREIGN_QPN;
	CU_ASSERT_EQUAL(say(&bob, RCD_CTRL_CM_ACCEPT, child, FOREIGN_QPN), -EINVAL);
	CU_ASSERT_EQUAL(say(&bob, RCD_CTRL_CM_ACCEPT, child, TARGET_QPN), 0);
	teardown();
}

static void
requests_of_another_service(void)
{
	/* What is listened to, and what a REQ that comes there asks for. */
	static const struct {
		uint8_t listener;
		uint8_t service, extended;
		int told; /* 0: the listener; else the reason */
	} rows[] = {
		{ RCD_QP_XRC_RECV, 3, 1, 0 },
		{ RCD_QP_RC, 0, 0, 0 },
		{ RCD_QP_RC, 0, 1, 0 },
		{ RCD_QP_RC, 1, 0, REASON_TRANSPORT },
		{ RCD_QP_UC, 1, 0, 0 },
		{ RCD_QP_UC, 0, 0, REASON_TRANSPORT },
		{ RCD_QP_RC, 3, 1, REASON_TRANSPORT },
		{ RCD_QP_UC, 3, 1, REASON_TRANSPORT },
		{ RCD_QP_XRC_RECV, 0, 0, REASON_TRANSPORT },
		{ RCD_QP_XRC_RECV, 0, 1, REASON_TRANSPORT },
		{ RCD_QP_XRC_RECV, 1, 1, REASON_TRANSPORT },
		{ RCD_QP_XRC_RECV, 2, 0, REASON_TRANSPORT },
		{ RCD_QP_XRC_RECV, 2, 1, REASON_TRANSPORT },
		{ RCD_QP_XRC_RECV, 3, 0, REASON_TRANSPORT },
		{ RCD_QP_XRC_RECV, 3, 2, REASON_TRANSPORT },
		{ RCD_QP_XRC_RECV, 3, 7, REASON_TRANSPORT },
		{ RCD_QP_RC, 2, 0, REASON_TRANSPORT },
		{ RCD_QP_RC, 3, 0, REASON_TRANSPORT },
		{ RCD_QP_RC, 3, 7, REASON_TRANSPORT },
		{ RCD_QP_UD, 3, 1, REASON_SERVICE_ID },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		struct rcd_cm msg;

		setup();
		CU_ASSERT_EQUAL(listen_to(rows[i].listener), 0);
		CU_ASSERT_EQUAL(
			say(&alice, RCD_CTRL_CM_CONNECT, resolved(RCD_QP_RC), INITIATOR_QPN), 0);
		msg = on_its_way(&host);
		msg.req.transport_service_type = rows[i].service & 3u;
		msg.req.extended_transport_type = rows[i].extended & 7u;
		change(&host, &msg);
		cma_host_deliver(&host, &far);
		CU_ASSERT_EQUAL(cma_ask_event(&bob),
			rows[i].told == 0 ? RCD_CMA_EVENT_CONNECT_REQUEST : -1);
		if (rows[i].told != 0) {
			CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_REJECTED);
			CU_ASSERT_EQUAL(cma_rep.cm_event_rep.status, rows[i].told);
			CU_ASSERT_EQUAL(bob.quota.used[RCD_RESOURCE_CM_CONNECTIONS], 0);
		}
		teardown();
	}
}

/* A REP that names its queue pair where the other service has it names none. */
static void
a_target_in_the_wrong_place(void)
{
	struct rcd_cm msg;
	uint32_t id;

	setup();
	CU_ASSERT_EQUAL(listen_to(RCD_QP_XRC_RECV), 0);
	id = resolved(RCD_QP_XRC_SEND);
	CU_ASSERT_EQUAL(say(&alice, RCD_CTRL_CM_CONNECT, id, INITIATOR_QPN), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL_FATAL(cma_ask_event(&bob), RCD_CMA_EVENT_CONNECT_REQUEST);
	CU_ASSERT_EQUAL(say(&bob, RCD_CTRL_CM_ACCEPT, cma_rep.cm_event_rep.id, TARGET_QPN), 0);
	msg = on_its_way(&far);
	msg.rep.local_qpn = TARGET_QPN;
	msg.rep.local_eecn = 0;
	change(&far, &msg);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_CONNECT_RESPONSE);
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.qpn, 0);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&alice, RCD_CTRL_CM_QP_ATTR, id, RCD_QP_RTR), -EINVAL);
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(ends_that_connect),
		RCD_TEST(ends_that_do_not),
		RCD_TEST(targets_of_others),
		RCD_TEST(requests_of_another_service),
		RCD_TEST(a_target_in_the_wrong_place),
	};

	return rcd_tap_run("cma_xrc", tests, RCD_ARRAY_COUNT(tests));
}
