/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: requests of clients to the CM service are served as the protocol has them, whoever asks and
 * whatever is in them, and connections and datagram services carry what both sides say. Method: all
 * goes through rcd_cma_serve(); a table of requests about what nobody has, of lengths up to what
 * fits and beyond, and of attributes for each state and type; lives of connections between two
 * hosts.
 */
#include <errno.h>
#include <string.h>

#include "cma_ask.h"
#include "rcd_bytes.h"
#include "rcd_number.h"
#include "rcd_qp.h"
#include "rcd_tap.h"

#define PORT    7174
#define NOBODY  4711
#define SECONDS UINT64_C(1000000000)

/** What is said of a queue pair to two ends. */
#define ACTIVE_QPN  17
#define PASSIVE_QPN 23

static struct cma_host host, far;
static struct cma_host_client alice, bob;

static void
setup(void)
{
	cma_host_open_with(&host, "near", "10.0.0.1", &alice, 1000);
}

static void
teardown(void)
{
	cma_host_client_end(&alice);
	cma_host_close(&host);
}

static uint32_t
setup_two(uint8_t qp_type)
{
	uint32_t listener;

	setup();
	cma_host_open_with(&far, "far", "10.0.0.9", &bob, 1001);
	listener = cma_ask_create(&bob, qp_type);
	CU_ASSERT_EQUAL(cma_ask_bind_as(&bob, &bob, listener, "0.0.0.0", PORT), 0);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&bob, RCD_CTRL_CM_LISTEN, listener, 4), 0);
	return listener;
}

static void
teardown_two(void)
{
	cma_host_client_end(&bob);
	cma_host_deliver(&host, &far);
	teardown();
	far.mad_count = 0;
	cma_host_close(&far);
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

/* CM_CONNECT or CM_ACCEPT, with private data of bytes 1, 2, ... */
static int
with_data(
	struct cma_host_client *client, enum rcd_ctrl_op op, uint32_t id, uint32_t qpn, uint8_t len)
{
	struct rcd_ctrl_cm_param_req *req = &cma_req.cm_connect_req;

	req->id = id;
	req->qpn = qpn;
	req->param.responder_resources = 4;
	req->param.initiator_depth = 2;
	req->param.retry_count = 7;
	req->param.rnr_retry_count = 7;
	req->param.private_len = len;
	for (uint32_t i = 0; i < len && i < sizeof(req->param.private_data); i++)
		req->param.private_data[i] = (uint8_t)(i + 1);
	return cma_ask(client, op);
}

/* The request that the far listener is told of. */
static uint32_t
requested(void)
{
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL_FATAL(cma_ask_event(&bob), RCD_CMA_EVENT_CONNECT_REQUEST);
	return cma_rep.cm_event_rep.id;
}

/* A connection, as far as both have agreed. @param child  set to the far end */
static uint32_t
agreed(uint8_t qp_type, uint32_t *child)
{
	uint32_t id = resolved(qp_type);

	CU_ASSERT_EQUAL(with_data(&alice, RCD_CTRL_CM_CONNECT, id, ACTIVE_QPN, 0), 0);
	*child = requested();
	CU_ASSERT_EQUAL(with_data(&bob, RCD_CTRL_CM_ACCEPT, *child, PASSIVE_QPN, 0), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_CONNECT_RESPONSE);
	return id;
}

static void
what_nobody_has(void)
{
	static const struct {
		enum rcd_ctrl_op op;
		bool second; /**< names something that nobody has, too */
	} rows[] = {
		{ RCD_CTRL_CM_CHANNEL_DESTROY },
		{ RCD_CTRL_CM_EVENT },
		{ RCD_CTRL_CM_CREATE },
		{ RCD_CTRL_CM_DESTROY },
		{ RCD_CTRL_CM_MIGRATE },
		{ RCD_CTRL_CM_MIGRATE, true },
		{ RCD_CTRL_CM_BIND },
		{ RCD_CTRL_CM_RESOLVE_ADDR },
		{ RCD_CTRL_CM_RESOLVE_ROUTE },
		{ RCD_CTRL_CM_QUERY },
		{ RCD_CTRL_CM_LISTEN },
		{ RCD_CTRL_CM_CONNECT },
		{ RCD_CTRL_CM_ACCEPT },
		{ RCD_CTRL_CM_ESTABLISH },
		{ RCD_CTRL_CM_REJECT },
		{ RCD_CTRL_CM_DISCONNECT },
		{ RCD_CTRL_CM_HEARD },
		{ RCD_CTRL_CM_QP_ATTR },
		{ RCD_CTRL_CM_SET },
		{ RCD_CTRL_CM_JOIN },
		{ RCD_CTRL_CM_LEAVE },
		{ RCD_CTRL_CM_LEAVE, true },
	};
	static const uint32_t numbers[] = { NOBODY, 1, UINT32_MAX };

	setup();
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++)
		for (size_t k = 0; k < RCD_ARRAY_COUNT(numbers); k++) {
			uint32_t id = cma_ask_create(&alice, RCD_QP_UD);

			/* Number 0 is a channel's, and the first identifier's. */
			CU_ASSERT_EQUAL(id, 0);
			cma_req.cm_migrate_req.id = rows[i].second ? id : numbers[k];
			if (rows[i].second)
				cma_req.cm_migrate_req.second = numbers[k];
			CU_ASSERT_EQUAL(cma_ask(&alice, rows[i].op), -ENOENT);
			CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_DESTROY, id), 0);
		}
	teardown();
}

static void
channels(void)
{
	uint32_t first, second, id;

	setup();
	first = alice.channel;
	CU_ASSERT_EQUAL(cma_ask(&alice, RCD_CTRL_CM_CHANNEL_CREATE), 0);
	second = cma_rep.cm_channel_create_rep.handle;
	CU_ASSERT_NOT_EQUAL(first, second);
	CU_ASSERT_EQUAL(host.streams, 2);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_EVENT, first), -EAGAIN);
	id = resolved(RCD_QP_RC);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_CHANNEL_DESTROY, first), -EBUSY);
	/* Its events go along, in order; the bytes that tell of them are the client's to take. */
	CU_ASSERT_EQUAL(cma_ask_of_pair(&alice, RCD_CTRL_CM_MIGRATE, id, second), 0);
	CU_ASSERT_EQUAL(cma_rep.cm_migrate_rep.count, 2);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&alice, RCD_CTRL_CM_MIGRATE, id, second), 0);
	CU_ASSERT_EQUAL(cma_rep.cm_migrate_rep.count, 0);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_CHANNEL_DESTROY, first), 0);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_EVENT, first), -ENOENT);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_EVENT, second), 0);
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.event, RCD_CMA_EVENT_ADDR_RESOLVED);
	/* What has not been taken goes with its identifier. */
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_DESTROY, id), 0);
	CU_ASSERT_EQUAL(cma_rep.cm_destroy_rep.count, 1);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_EVENT, second), -EAGAIN);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_CHANNEL_DESTROY, second), 0);
	CU_ASSERT_EQUAL(host.streams, 0);
	teardown();
}

/* Two connections of a process share a client, and one of them may do more. */
static void
rights_are_of_who_asks(void)
{
	struct cma_host_client other = { .host = &far };
	uint32_t id;

	setup();
	memset(&far, 0, sizeof(far));
	far.privileged = true;
	far.foreign_qpn = 99;
	id = cma_ask_create(&alice, RCD_QP_RC);
	CU_ASSERT_EQUAL(cma_ask_bind_as(&alice, &alice, id, "10.0.0.1", 1), -EACCES);
	CU_ASSERT_EQUAL(cma_ask_bind_as(&alice, &other, id, "10.0.0.1", 1), 0);
	id = resolved(RCD_QP_RC);
	cma_req.cm_connect_req.id = id;
	cma_req.cm_connect_req.qpn = 99;
	CU_ASSERT_EQUAL(cma_ask_as(&alice, &other, RCD_CTRL_CM_CONNECT), -EINVAL);
	cma_req.cm_connect_req.id = id;
	cma_req.cm_connect_req.qpn = 99;
	CU_ASSERT_EQUAL(cma_ask(&alice, RCD_CTRL_CM_CONNECT), 0);
	host.mad_count = 0;
	teardown();
}

static void
spaces_and_types(void)
{
	static const struct {
		uint16_t space;
		uint8_t qp_type;
		int err;
	} rows[] = {
		{ RCD_CMA_SPACE_TCP, RCD_QP_RC, 0 },
		{ RCD_CMA_SPACE_TCP, RCD_QP_UC, 0 },
		{ RCD_CMA_SPACE_IPOIB, RCD_QP_UD, 0 },
		{ RCD_CMA_SPACE_IB, RCD_QP_RC, 0 },
		{ 0, RCD_QP_RC, -EPROTONOSUPPORT },
		{ 0xffff, RCD_QP_RC, -EPROTONOSUPPORT },
		{ RCD_CMA_SPACE_IB, RCD_QP_XRC_SEND, 0 },
		{ RCD_CMA_SPACE_IB, RCD_QP_XRC_RECV, 0 },
		{ RCD_CMA_SPACE_UDP, RCD_QP_GSI, -EPROTONOSUPPORT },
		{ RCD_CMA_SPACE_UDP, RCD_QP_RAW, -EPROTONOSUPPORT },
		{ RCD_CMA_SPACE_UDP, RCD_QP_TYPE_COUNT, -EPROTONOSUPPORT },
		{ RCD_CMA_SPACE_UDP, 255, -EPROTONOSUPPORT },
	};

	setup();
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		cma_req.cm_create_req.channel = alice.channel;
		cma_req.cm_create_req.space = rows[i].space;
		cma_req.cm_create_req.qp_type = rows[i].qp_type;
		CU_ASSERT_EQUAL(cma_ask(&alice, RCD_CTRL_CM_CREATE), rows[i].err);
	}
	teardown();
}

static void
options(void)
{
	static const struct {
		uint32_t option, value;
		uint8_t qp_type;
		int err;
	} rows[] = {
		{ RCD_CTRL_CM_TOS, 255, RCD_QP_RC, 0 },
		{ RCD_CTRL_CM_TOS, 256, RCD_QP_RC, -EINVAL },
		{ RCD_CTRL_CM_REUSEADDR, 1, RCD_QP_RC, 0 },
		{ RCD_CTRL_CM_AFONLY, 1, RCD_QP_RC, 0 },
		{ RCD_CTRL_CM_ACK_TIMEOUT, 31, RCD_QP_RC, 0 },
		{ RCD_CTRL_CM_ACK_TIMEOUT, 32, RCD_QP_RC, -EINVAL },
		{ RCD_CTRL_CM_ACK_TIMEOUT, 14, RCD_QP_UD, -EINVAL },
		{ RCD_CTRL_CM_ACK_TIMEOUT + 1, 0, RCD_QP_RC, -ENOSYS },
		{ UINT32_MAX, 0, RCD_QP_RC, -ENOSYS },
	};

	setup();
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		uint32_t id = cma_ask_create(&alice, rows[i].qp_type);

		cma_req.cm_set_req.id = id;
		cma_req.cm_set_req.option = rows[i].option;
		cma_req.cm_set_req.value = rows[i].value;
		CU_ASSERT_EQUAL(cma_ask(&alice, RCD_CTRL_CM_SET), rows[i].err);
	}
	teardown();
}

/* What fits into each message arrives, and a byte more is refused before anything is sent. */
static void
private_data_that_fits(void)
{
	static const struct {
		enum rcd_ctrl_op op;
		uint8_t qp_type;
		uint8_t most;
	} rows[] = {
		{ RCD_CTRL_CM_CONNECT, RCD_QP_RC, 56 },
		{ RCD_CTRL_CM_CONNECT, RCD_QP_UD, 180 },
		{ RCD_CTRL_CM_ACCEPT, RCD_QP_RC, 196 },
		{ RCD_CTRL_CM_ACCEPT, RCD_QP_UD, 136 },
		{ RCD_CTRL_CM_REJECT, RCD_QP_RC, 148 },
		{ RCD_CTRL_CM_REJECT, RCD_QP_UD, 136 },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		bool active = rows[i].op == RCD_CTRL_CM_CONNECT;
		struct cma_host_client *client = active ? &alice : &bob;
		uint8_t tries[] = { 255, RCD_CTRL_CM_PRIVATE_MAX, (uint8_t)(rows[i].most + 1),
			rows[i].most };
		uint32_t id;

		setup_two(rows[i].qp_type);
		id = resolved(rows[i].qp_type);
		if (!active) {
			CU_ASSERT_EQUAL(
				with_data(&alice, RCD_CTRL_CM_CONNECT, id, ACTIVE_QPN, 0), 0);
			id = requested();
		}
		for (size_t k = 0; k < RCD_ARRAY_COUNT(tries); k++) {
			int err;

			if (rows[i].op == RCD_CTRL_CM_REJECT) {
				cma_req.cm_reject_req.id = id;
				cma_req.cm_reject_req.private_len = tries[k];
				memset(cma_req.cm_reject_req.private_data, 1,
					tries[k] < 232 ? tries[k] : 232);
				err = cma_ask(client, rows[i].op);
			} else {
				err = with_data(client, rows[i].op, id, ACTIVE_QPN, tries[k]);
			}
			CU_ASSERT_EQUAL(err, tries[k] <= rows[i].most ? 0 : -EINVAL);
			CU_ASSERT_EQUAL(host.mad_count + far.mad_count, tries[k] <= rows[i].most);
		}
		cma_host_deliver(&host, &far);
		CU_ASSERT(cma_ask_event(active ? &bob : &alice) >= 0);
		CU_ASSERT_EQUAL(cma_rep.cm_event_rep.param.private_data[0], 1);
		CU_ASSERT_NOT_EQUAL(cma_rep.cm_event_rep.param.private_data[rows[i].most - 1], 0);
		CU_ASSERT_EQUAL(cma_rep.cm_event_rep.param.private_len, rows[i].most);
		teardown_two();
	}
}

static void
attributes_by_state(void)
{
	enum {
		UNKNOWN = RCD_QP_ATTR_STATE | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT,
		PEER = RCD_QP_ATTR_STATE | RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU |
			RCD_QP_ATTR_DEST_QPN | RCD_QP_ATTR_RQ_PSN,
		SENDS = RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQ_PSN,
	};
	static const struct {
		uint8_t qp_type;
		uint32_t state;
		int alone, together; /* mask, or -errno: without a peer, and with one */
	} rows[] = {
		{ RCD_QP_RC, RCD_QP_INIT, UNKNOWN | RCD_QP_ATTR_ACCESS,
			UNKNOWN | RCD_QP_ATTR_ACCESS },
		{ RCD_QP_RC, RCD_QP_RTR, -EINVAL,
			PEER | RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER },
		{ RCD_QP_RC, RCD_QP_RTS,
			SENDS | RCD_QP_ATTR_TIMEOUT | RCD_QP_ATTR_RETRY_CNT |
				RCD_QP_ATTR_RNR_RETRY | RCD_QP_ATTR_MAX_RD_ATOMIC,
			SENDS | RCD_QP_ATTR_TIMEOUT | RCD_QP_ATTR_RETRY_CNT |
				RCD_QP_ATTR_RNR_RETRY | RCD_QP_ATTR_MAX_RD_ATOMIC },
		{ RCD_QP_UC, RCD_QP_RTR, -EINVAL, PEER },
		{ RCD_QP_UC, RCD_QP_RTS, SENDS, SENDS },
		{ RCD_QP_UD, RCD_QP_INIT, UNKNOWN | RCD_QP_ATTR_QKEY, 0 },
		{ RCD_QP_UD, RCD_QP_RTR, RCD_QP_ATTR_STATE, 0 },
		{ RCD_QP_UD, RCD_QP_RTS, SENDS, 0 },
		{ RCD_QP_RC, RCD_QP_RESET, -EINVAL, -EINVAL },
		{ RCD_QP_RC, RCD_QP_ERR, -EINVAL, -EINVAL },
		{ RCD_QP_RC, UINT32_MAX, -EINVAL, -EINVAL },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++)
		for (int together = 0; together <= (rows[i].qp_type != RCD_QP_UD); together++) {
			const struct rcd_ctrl_qp_attr *attr = &cma_rep.cm_qp_attr_rep.attr;
			int wanted = together ? rows[i].together : rows[i].alone;
			uint32_t child, id;
			int got;

			setup_two(rows[i].qp_type);
			id = together ? agreed(rows[i].qp_type, &child) : resolved(rows[i].qp_type);
			got = cma_ask_of_pair(&alice, RCD_CTRL_CM_QP_ATTR, id, rows[i].state);
			CU_ASSERT_EQUAL(got == 0 ? (int)cma_rep.cm_qp_attr_rep.mask : got, wanted);
			if (got == 0)
				CU_ASSERT_EQUAL(attr->state, rows[i].state);
			if (got == 0 && rows[i].state == RCD_QP_RTR && together) {
				CU_ASSERT_EQUAL(attr->dest_qpn, PASSIVE_QPN);
				CU_ASSERT_EQUAL(attr->path_mtu_bytes, 1024);
				CU_ASSERT_EQUAL(attr->av.dgid[15], 9);
			}
			teardown_two();
		}
	/* Without a device there is nothing to say. */
	setup();
	CU_ASSERT_EQUAL(cma_ask_of_pair(&alice, RCD_CTRL_CM_QP_ATTR,
				cma_ask_create(&alice, RCD_QP_RC), RCD_QP_INIT),
		-EINVAL);
	teardown();
}

static void
both_ends_agree(void)
{
	uint32_t id, child, psn;

	setup_two(RCD_QP_RC);
	id = agreed(RCD_QP_RC, &child);
	/* What one can initiate the other responds to. */
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.param.responder_resources, 2);
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.param.initiator_depth, 4);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&alice, RCD_CTRL_CM_QP_ATTR, id, RCD_QP_RTR), 0);
	psn = cma_rep.cm_qp_attr_rep.attr.rq_psn;
	CU_ASSERT_EQUAL(cma_ask_of_pair(&bob, RCD_CTRL_CM_QP_ATTR, child, RCD_QP_RTS), 0);
	CU_ASSERT_EQUAL(cma_rep.cm_qp_attr_rep.attr.sq_psn, psn);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&bob, RCD_CTRL_CM_QP_ATTR, child, RCD_QP_RTR), 0);
	psn = cma_rep.cm_qp_attr_rep.attr.rq_psn;
	CU_ASSERT_EQUAL(cma_rep.cm_qp_attr_rep.attr.dest_qpn, ACTIVE_QPN);
	CU_ASSERT_EQUAL(cma_ask_of_pair(&alice, RCD_CTRL_CM_QP_ATTR, id, RCD_QP_RTS), 0);
	CU_ASSERT_EQUAL(cma_rep.cm_qp_attr_rep.attr.sq_psn, psn);
	/* A packet came before the RTU: it is established once. */
	CU_ASSERT_EQUAL(cma_ask_of(&bob, RCD_CTRL_CM_HEARD, child), 0);
	CU_ASSERT_EQUAL(cma_ask_event(&bob), RCD_CMA_EVENT_ESTABLISHED);
	CU_ASSERT_EQUAL(cma_ask_of(&bob, RCD_CTRL_CM_HEARD, child), -EINVAL);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_HEARD, id), -EINVAL);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_ESTABLISH, id), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&bob), -1);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_ESTABLISH, id), -EINVAL);
	/* Agreed to once, and refused no more. */
	CU_ASSERT_EQUAL(with_data(&bob, RCD_CTRL_CM_ACCEPT, child, PASSIVE_QPN, 0), -EINVAL);
	cma_req.cm_reject_req.id = child;
	CU_ASSERT_EQUAL(cma_ask(&bob, RCD_CTRL_CM_REJECT), -EINVAL);
	CU_ASSERT_EQUAL(cma_ask_of(&bob, RCD_CTRL_CM_DISCONNECT, child), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_DISCONNECTED);
	CU_ASSERT_EQUAL(cma_ask_event(&bob), RCD_CMA_EVENT_DISCONNECTED);
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_DISCONNECT, id), 0);
	teardown_two();
}

static void
refusals_say_why(void)
{
	static const struct {
		bool active; /**< who refuses */
		uint16_t reason;
		int told;
	} rows[] = { { false, 0, 28 }, { false, 35, 35 }, { true, 0, 28 } };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		struct cma_host_client *client = rows[i].active ? &alice : &bob;
		uint32_t id, child;

		setup_two(RCD_QP_RC);
		if (rows[i].active) {
			id = agreed(RCD_QP_RC, &child);
		} else {
			id = resolved(RCD_QP_RC);
			with_data(&alice, RCD_CTRL_CM_CONNECT, id, ACTIVE_QPN, 0);
			child = requested();
		}
		cma_req.cm_reject_req.id = rows[i].active ? id : child;
		cma_req.cm_reject_req.reason = rows[i].reason;
		CU_ASSERT_EQUAL(cma_ask(client, RCD_CTRL_CM_REJECT), 0);
		cma_host_deliver(&host, &far);
		CU_ASSERT_EQUAL(
			cma_ask_event(rows[i].active ? &bob : &alice), RCD_CMA_EVENT_REJECTED);
		CU_ASSERT_EQUAL(cma_rep.cm_event_rep.status, rows[i].told);
		CU_ASSERT_EQUAL(cma_ask_event(client), -1);
		teardown_two();
	}
}

static void
datagram_services(void)
{
	uint32_t id, child;

	setup_two(RCD_QP_UD);
	id = resolved(RCD_QP_UD);
	CU_ASSERT_EQUAL(with_data(&alice, RCD_CTRL_CM_CONNECT, id, ACTIVE_QPN, 0), 0);
	child = requested();
	/* There is no connection to confirm or to end. */
	CU_ASSERT_EQUAL(cma_ask_of(&alice, RCD_CTRL_CM_ESTABLISH, id), -EINVAL);
	cma_req.cm_accept_req.id = child;
	cma_req.cm_accept_req.qpn = PASSIVE_QPN;
	cma_req.cm_accept_req.qkey = 77;
	CU_ASSERT_EQUAL(cma_ask(&bob, RCD_CTRL_CM_ACCEPT), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_ESTABLISHED);
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.qpn, PASSIVE_QPN);
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.qkey, 77);
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.av.dgid[15], 9);
	/* Its question is forgotten without a word. */
	cma_host_pass(&host, 600 * SECONDS);
	CU_ASSERT_EQUAL(rcd_cma_connections(host.cma), 0);
	CU_ASSERT_EQUAL(cma_ask_event(&alice), -1);
	teardown_two();
	setup_two(RCD_QP_UD);
	id = resolved(RCD_QP_UD);
	CU_ASSERT_EQUAL(with_data(&alice, RCD_CTRL_CM_CONNECT, id, ACTIVE_QPN, 0), 0);
	cma_req.cm_reject_req.id = requested();
	CU_ASSERT_EQUAL(cma_ask(&bob, RCD_CTRL_CM_REJECT), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_UNREACHABLE);
	CU_ASSERT_EQUAL(cma_rep.cm_event_rep.status, RCD_CMA_SIDR_REFUSED);
	teardown_two();
}

static void
nobody_answers(void)
{
	static const uint8_t types[] = { RCD_QP_RC, RCD_QP_UD };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(types); i++) {
		uint32_t id;

		setup();
		id = resolved(types[i]);
		CU_ASSERT_EQUAL(with_data(&alice, RCD_CTRL_CM_CONNECT, id, ACTIVE_QPN, 0), 0);
		for (int s = 0; s < 300; s++) {
			cma_host_pass(&host, SECONDS);
			host.mad_count = 0;
		}
		CU_ASSERT_EQUAL(cma_ask_event(&alice), RCD_CMA_EVENT_UNREACHABLE);
		CU_ASSERT_EQUAL(cma_rep.cm_event_rep.status, -ETIMEDOUT);
		/* A time wait is told of where there was a connection to be. */
		CU_ASSERT_EQUAL(cma_ask_event(&alice),
			types[i] == RCD_QP_UD ? -1 : RCD_CMA_EVENT_TIMEWAIT_EXIT);
		CU_ASSERT_EQUAL(rcd_cma_connections(host.cma), 0);
		teardown();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_nobody_has),
		RCD_TEST(channels),
		RCD_TEST(rights_are_of_who_asks),
		RCD_TEST(spaces_and_types),
		RCD_TEST(options),
		RCD_TEST(private_data_that_fits),
		RCD_TEST(attributes_by_state),
		RCD_TEST(both_ends_agree),
		RCD_TEST(refusals_say_why),
		RCD_TEST(datagram_services),
		RCD_TEST(nobody_answers),
	};

	return rcd_tap_run("cma_serve", tests, RCD_ARRAY_COUNT(tests));
}
