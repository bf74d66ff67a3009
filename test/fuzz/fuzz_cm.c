/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no sequence of CM messages and of what hosts do makes an agent touch what is not its own,
 * tell of a connection that is gone, or keep one for ever. Method: a libFuzzer target; the input is
 * a program of MADs, of which the IDs are often those that the agent knows, calls of the host, and
 * time that passes.
 */
#include <stdlib.h>

#include "rcd_check.h"
#include "rcd_cm_agent.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ROOM = 6, /* of the agent */
	STEPS = 200,
	REMOTE_IDS = 4,
	BODY_BYTES = 160, /* of a message, at most from the input */
};

struct input {
	const uint8_t *data;
	size_t left;
};

static struct {
	struct rcd_cm_agent *agent;
	struct rcd_cm_conn *conns[ROOM]; /* that the host holds */
	uint32_t sent_ids[8];            /* our own IDs, as they were sent last */
	uint32_t sent_count;
	uint64_t now_ns;
	uint32_t mood; /* what the host says to requests */
	struct rcd_cm_way way;
} rig;

static uint32_t
take(struct input *in, size_t bytes)
{
	uint32_t val = 0;

	for (; bytes > 0 && in->left > 0; bytes--, in->left--)
		val = val << 8 | *in->data++;
	return val;
}

static void
on_send(void *arg, const struct rcd_cm_way *way, const uint8_t *mad)
{
	(void)arg;
	RCD_CHECK(rcd_gid_eq(&way->remote, &rig.way.remote));
	rig.sent_ids[rig.sent_count++ % 8] = rcd_get_be32(mad + RCD_MAD_HDR_LEN);
}

static void
hold(struct rcd_cm_conn *conn)
{
	uint32_t i = 0;

	if (conn == NULL)
		return;
	while (i < ROOM && rig.conns[i] != NULL)
		i++;
	RCD_CHECK(i < ROOM);
	rig.conns[i] = conn;
	rcd_cm_set_cookie(conn, &rig.conns[i]);
}

static uint16_t
on_event(void *arg, struct rcd_cm_conn *conn, enum rcd_cm_event event, const struct rcd_cm *msg)
{
	static const uint16_t answers[] = { 0, 0, 0, 8, RCD_CM_DROP };
	struct rcd_cm_conn **held = rcd_cm_cookie(conn);
	uint16_t answer;

	(void)arg;
	(void)msg;
	if (event == RCD_CM_EVENT_REQ || event == RCD_CM_EVENT_SIDR_REQ) {
		RCD_CHECK(held == NULL);
		answer = answers[rig.mood % 5];
		if (answer == 0)
			hold(conn);
		return answer;
	}
	RCD_CHECK(held != NULL && *held == conn);
	if (event == RCD_CM_EVENT_GONE)
		*held = NULL;
	return 0;
}

/* A message whose IDs are often known ones, and whose other bytes are the input's. */
static void
feed(struct input *in)
{
	uint8_t mad[RCD_MAD_LEN] = { 0 };
	struct rcd_mad hdr = {
		.base_version = RCD_MAD_BASE_VERSION,
		.mgmt_class = RCD_MAD_CLASS_CM,
		.class_version = RCD_CM_CLASS_VERSION,
		.method = RCD_CM_METHOD_SEND,
		.attr_id = (uint16_t)(RCD_CM_REQ + take(in, 1) % 12),
	};
	uint8_t *body = mad + RCD_MAD_HDR_LEN;
	uint32_t how = take(in, 1);
	uint32_t bytes = take(in, 1) % BODY_BYTES;

	if (how == 255)
		hdr.method = (uint8_t)take(in, 1);
	if (how == 254)
		hdr.mgmt_class = (uint8_t)take(in, 1);
	rcd_mad_build(mad, &hdr);
	for (uint32_t i = 0; i < bytes; i++)
		body[i] = (uint8_t)take(in, 1);
	if (how & 1)
		rcd_put_be32(body, 1 + how % REMOTE_IDS);
	if (how & 2)
		rcd_put_be32(body + 4, rig.sent_ids[how / 4 % 8]);
	/* The peer's queue pair of a REQ, and a short time to wait. */
	if ((how & 4) && hdr.attr_id == RCD_CM_REQ)
		rcd_put_be32(body + 32, (1 + how % 3) << 8);
	rcd_cm_rx(rig.agent, mad, &rig.way, rig.now_ns);
}

static void
ask(struct input *in)
{
	uint32_t qpn = take(in, 1);
	uint32_t timeout = take(in, 1);
	struct rcd_cm_req req = {
		.local_qpn = qpn,
		.remote_cm_response_timeout = timeout & 31,
		.transport_service_type = timeout >> 5 & 3,
		.extended_transport_type = 1,
		.max_cm_retries = take(in, 1) & 15,
	};
	struct rcd_cm_sidr_req sidr = { .service_id = 1 };

	if (req.local_qpn & 1)
		hold(rcd_cm_connect(rig.agent, &rig.way, &req, NULL, rig.now_ns));
	else
		hold(rcd_cm_sidr(rig.agent, &rig.way, &sidr,
			(uint8_t)req.remote_cm_response_timeout, (uint8_t)req.max_cm_retries, NULL,
			rig.now_ns));
}

/* Anything that a host may say, in any state: what does not fit is refused. */
static void
act(struct rcd_cm_conn *conn, uint32_t what)
{
	static const uint8_t private_data[300];
	struct rcd_cm_rep rep = { .local_qpn = 5, .local_eecn = 6 };
	struct rcd_cm_sidr_rep sidr = { .qpn = 5 };

	if (conn == NULL)
		return;
	switch (what % 9) {
	case 0:
		rcd_cm_reply(conn, &rep, rig.now_ns);
		break;
	case 1:
		rcd_cm_confirm(conn, private_data, 224);
		break;
	case 2:
		rcd_cm_reject(conn, 28, private_data, 300, rig.now_ns);
		break;
	case 3:
		rcd_cm_delay(conn, (uint8_t)what);
		break;
	case 4:
		rcd_cm_heard(conn);
		break;
	case 5:
		rcd_cm_disconnect(conn, private_data, 10, rig.now_ns);
		break;
	case 6:
		rcd_cm_disconnected(conn, NULL, 0, rig.now_ns);
		break;
	case 7:
		rcd_cm_sidr_reply(conn, &sidr, rig.now_ns);
		break;
	default:
		rcd_cm_release(conn, rig.now_ns);
		break;
	}
}

static void
pass(uint64_t ns)
{
	rig.now_ns += ns;
	rcd_cm_expire(rig.agent, rig.now_ns, UINT32_MAX);
	RCD_CHECK(rcd_cm_next_deadline(rig.agent) == 0 ||
		rcd_cm_next_deadline(rig.agent) > rig.now_ns);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rcd_cm_ops ops = { .send = on_send, .event = on_event };
	const struct rcd_cm_conf conf = {
		.connections = ROOM,
		.req_rate = 100,
		.secret = 0x1234567,
		.life_ns = 1000000,
		.patience = 10,
		.ops = &ops,
	};
	struct input in = { data, size };

	memset(&rig, 0, sizeof(rig));
	rig.way = (struct rcd_cm_way){
		.local = { { [15] = 1 } }, .remote = { { [15] = 2 } }, .hop_limit = 64
	};
	rig.now_ns = 1;
	rig.agent = rcd_cm_agent_create(&conf);
	RCD_CHECK(rig.agent != NULL);
	for (int i = 0; i < STEPS && in.left > 0; i++) {
		uint32_t what = take(&in, 1);

		rig.mood = what / 8;
		switch (what % 8) {
		case 0:
		case 1:
		case 2:
			feed(&in);
			break;
		case 3:
			ask(&in);
			break;
		case 4:
		case 5:
			act(rig.conns[what / 8 % ROOM], take(&in, 1));
			break;
		case 6:
			pass((uint64_t)take(&in, 2) * 1000);
			break;
		default:
			pass(UINT64_C(1) << take(&in, 1) % 40);
			break;
		}
		RCD_CHECK(rcd_cm_agent_used(rig.agent) <= ROOM);
	}
	/* Whatever state they are in, released connections come to their end. */
	for (uint32_t i = 0; i < ROOM; i++)
		if (rig.conns[i] != NULL)
			rcd_cm_release(rig.conns[i], rig.now_ns);
	for (int i = 0; i < 100 && rcd_cm_agent_used(rig.agent) > 0; i++)
		pass(UINT64_C(1) << 50);
	RCD_CHECK(rcd_cm_agent_used(rig.agent) == 0);
	rcd_cm_agent_destroy(rig.agent);
	return 0;
}
