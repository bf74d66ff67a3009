/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: messages of connection management that are not the peer's, or not what a peer should ask
 * for, end nothing and hold nothing for long. Method: one agent; messages to it by hand, those that
 * it sends looked at; time by hand. The host does what a test says.
 */
#include "rcd_cm_agent.h"
#include "rcd_tap.h"

#define ROOM 64
#define SENT 16

/* The agent and what it did. */
static struct {
	struct rcd_cm_agent *agent;
	uint64_t now_ns;
	struct rcd_cm sent[SENT];
	uint32_t sent_count;
	struct rcd_cm_conn *first; /* of the connections that were asked for */
	uint32_t asked, established, ended;
	uint64_t netns; /* that messages come from */
} side;

static void
on_send(void *arg, const struct rcd_cm_way *way, const uint8_t *mad)
{
	(void)arg;
	(void)way;
	CU_ASSERT_EQUAL(mad[0], RCD_MAD_BASE_VERSION);
	CU_ASSERT_TRUE_FATAL(side.sent_count < SENT);
	CU_ASSERT_TRUE(rcd_cm_parse(
		mad + RCD_MAD_HDR_LEN, rcd_get_be16(mad + 16), &side.sent[side.sent_count++]));
}

static uint16_t
on_event(void *arg, struct rcd_cm_conn *conn, enum rcd_cm_event event, const struct rcd_cm *msg)
{
	(void)arg;
	(void)msg;
	if (event == RCD_CM_EVENT_REQ) {
		if (side.asked++ == 0)
			side.first = conn;
		return 0;
	}
	if (event == RCD_CM_EVENT_RTU)
		side.established++;
	else if (event != RCD_CM_EVENT_GONE)
		side.ended++;
	if (event == RCD_CM_EVENT_DREQ)
		CU_ASSERT_EQUAL(rcd_cm_disconnected(conn, NULL, 0, side.now_ns), 0);
	return 0;
}

static void
begin(void)
{
	static const struct rcd_cm_ops ops = { .send = on_send, .event = on_event };

	memset(&side, 0, sizeof(side));
	side.now_ns = 1000000000;
	side.agent = rcd_cm_agent_create(&(struct rcd_cm_conf){ .connections = ROOM,
		.secret = 12345,
		.life_ns = 1000000,
		.patience = 19,
		.ops = &ops });
	CU_ASSERT_PTR_NOT_NULL_FATAL(side.agent);
}

static void
end(void)
{
	rcd_cm_agent_destroy(side.agent);
}

/* A message that comes from the peer's address. */
static void
hand(const struct rcd_cm *msg)
{
	struct rcd_mad hdr = { .base_version = RCD_MAD_BASE_VERSION,
		.mgmt_class = RCD_MAD_CLASS_CM,
		.class_version = RCD_CM_CLASS_VERSION,
		.method = RCD_CM_METHOD_SEND,
		.attr_id = (uint16_t)msg->attr };
	struct rcd_cm_way way = {
		.netns = side.netns, .remote = { { [15] = 1 } }, .local = { { [15] = 2 } }
	};
	uint8_t mad[RCD_MAD_LEN];

	rcd_mad_build(mad, &hdr);
	rcd_cm_build(mad + RCD_MAD_HDR_LEN, msg);
	rcd_cm_rx(side.agent, mad, &way, side.now_ns);
}

/* The message that was sent last, which is forgotten. Its attribute is 0: there was none. */
static struct rcd_cm
caught(void)
{
	return side.sent_count > 0 ? side.sent[--side.sent_count] : (struct rcd_cm){ .attr = 0 };
}

/* A connection of the peer's queue pair 77 by its ID 5, established. @return our ID */
static uint32_t
established_one(void)
{
	struct rcd_cm req = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = 5, .local_qpn = 77, .max_cm_retries = 1 } };
	struct rcd_cm rtu = { .attr = RCD_CM_RTU };
	struct rcd_cm_rep rep = { .local_qpn = 9 };
	struct rcd_cm reply;

	hand(&req);
	CU_ASSERT_EQUAL(rcd_cm_reply(side.first, &rep, side.now_ns), 0);
	reply = caught();
	CU_ASSERT_EQUAL(reply.attr, RCD_CM_REP);
	rtu.rtu.local_comm_id = 5;
	rtu.rtu.remote_comm_id = reply.rep.local_comm_id;
	hand(&rtu);
	CU_ASSERT_EQUAL(side.established, 1);
	return (uint32_t)reply.rep.local_comm_id;
}

/* A REQ of that queue pair by another ID: refused, and the peer is asked. */
static void
stale_req(uint32_t our_id)
{
	struct rcd_cm req = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = 6, .local_qpn = 77, .max_cm_retries = 1 } };
	struct rcd_cm reply;

	hand(&req);
	CU_ASSERT_EQUAL_FATAL(side.sent_count, 2);
	reply = caught();
	CU_ASSERT_EQUAL(reply.attr, RCD_CM_DREQ);
	CU_ASSERT_EQUAL(reply.dreq.local_comm_id, our_id);
	CU_ASSERT_EQUAL(reply.dreq.remote_comm_id, 5);
	CU_ASSERT_EQUAL(reply.dreq.remote_qpn, 0);
	reply = caught();
	CU_ASSERT_EQUAL(reply.attr, RCD_CM_REJ);
	CU_ASSERT_EQUAL(reply.rej.remote_comm_id, 6);
	CU_ASSERT_EQUAL(reply.rej.reason, 10);
	/* Once more at once: the peer is not flooded with our doubt. */
	hand(&req);
	CU_ASSERT_EQUAL(side.sent_count, 1);
	CU_ASSERT_EQUAL(caught().attr, RCD_CM_REJ);
	CU_ASSERT_EQUAL(side.ended, 0);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(side.agent)->stale, 2);
}

/*
 * Two peers of one address and one queue pair, each in a network namespace of its own: the second
 * is no repetition, none has forgotten anything, and none ends the other's connection.
 */
static void
equal_peers(void)
{
	struct rcd_cm req = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = 5, .local_qpn = 77, .max_cm_retries = 1 } };
	struct rcd_cm dreq = { .attr = RCD_CM_DREQ };

	begin();
	dreq.dreq.remote_comm_id = established_one();
	dreq.dreq.local_comm_id = 5;
	dreq.dreq.remote_qpn = 9;
	side.netns = 7;
	hand(&req);
	CU_ASSERT_EQUAL(side.asked, 2);
	CU_ASSERT_EQUAL(side.sent_count, 0);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(side.agent)->stale, 0);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(side.agent)->duplicates, 0);
	hand(&dreq);
	CU_ASSERT_EQUAL(side.ended, 0);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(side.agent)->dropped_nobody, 1);
	side.netns = 0;
	hand(&dreq);
	CU_ASSERT_EQUAL(side.ended, 1);
	end();
}

/*
 * The peer was started anew and uses the same queue pair again.
 *
 * Covers: IBTA 12.9.8.3.1 rcd_cm_rx_req()
 */
static void
stale_connection(void)
{
	struct rcd_cm drep = { .attr = RCD_CM_DREP };
	struct rcd_cm req = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = 6, .local_qpn = 77, .max_cm_retries = 1 } };

	begin();
	drep.drep.remote_comm_id = established_one();
	drep.drep.local_comm_id = 5;
	stale_req((uint32_t)drep.drep.remote_comm_id);
	hand(&drep);
	CU_ASSERT_EQUAL(side.ended, 1);
	/* Asked once more, it is a new one. */
	hand(&req);
	CU_ASSERT_EQUAL(side.asked, 2);
	end();
}

/* Somebody else names the queue pair of a peer that lives. Covers: IBTA 12.6.9 rcd_cm_rx_dreq() */
static void
stale_req_of_another(void)
{
	struct rcd_cm drep = { .attr = RCD_CM_DREP };
	struct rcd_cm rej = { .attr = RCD_CM_REJ };
	struct rcd_cm dreq = { .attr = RCD_CM_DREQ };
	uint32_t our_id;

	begin();
	our_id = established_one();
	/* Nobody was asked yet, so there is nothing to answer. */
	drep.drep.remote_comm_id = our_id;
	drep.drep.local_comm_id = 5;
	hand(&drep);
	CU_ASSERT_EQUAL(side.ended, 0);
	stale_req(our_id);
	/* Messages of somebody who guesses our number, and not the peer's. */
	drep.drep.local_comm_id = 4;
	hand(&drep);
	rej.rej.remote_comm_id = our_id;
	rej.rej.local_comm_id = 4;
	hand(&rej);
	rej.rej.local_comm_id = 0;
	hand(&rej);
	/* Both numbers and not our queue pair: as we ask ourselves. */
	dreq.dreq.remote_comm_id = our_id;
	dreq.dreq.local_comm_id = 5;
	hand(&dreq);
	CU_ASSERT_EQUAL(side.sent_count, 0);
	CU_ASSERT_EQUAL(side.ended, 0);
	/* The peer itself. */
	dreq.dreq.remote_qpn = 9;
	hand(&dreq);
	CU_ASSERT_EQUAL(caught().attr, RCD_CM_DREP);
	CU_ASSERT_EQUAL(side.ended, 1);
	end();
}

/* Both sides end a connection at once. Covers: IBTA 12.9.8.4 rcd_cm_rx_dreq() */
static void
both_end_at_once(void)
{
	struct rcd_cm dreq = { .attr = RCD_CM_DREQ };
	struct rcd_cm reply;

	begin();
	dreq.dreq.remote_comm_id = established_one();
	dreq.dreq.local_comm_id = 5;
	dreq.dreq.remote_qpn = 9;
	CU_ASSERT_EQUAL(rcd_cm_disconnect(side.first, NULL, 0, side.now_ns), 0);
	CU_ASSERT_EQUAL(caught().attr, RCD_CM_DREQ);
	hand(&dreq);
	reply = caught();
	CU_ASSERT_EQUAL(reply.attr, RCD_CM_DREP);
	CU_ASSERT_EQUAL(reply.drep.remote_comm_id, 5);
	CU_ASSERT_EQUAL(side.ended, 1);
	end();
}

/* A REQ that nobody has confirmed says nothing of the queue pair that it names. */
static void
half_open_holds_no_queue_pair(void)
{
	struct rcd_cm req = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = 5, .local_qpn = 77, .max_cm_retries = 1 } };

	begin();
	hand(&req);
	req.req.local_comm_id = 6;
	hand(&req);
	CU_ASSERT_EQUAL(side.sent_count, 0);
	CU_ASSERT_EQUAL(side.asked, 2);
	end();
}

/*
 * T8: who was rejected after its REP has nothing to repeat.
 *
 * Covers: IBTA 12.9.8.3.1 cm_conn_repeated_req()
 */
static void
req_again_after_rej(void)
{
	struct rcd_cm req = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = 5, .local_qpn = 77, .max_cm_retries = 1 } };
	struct rcd_cm rej = { .attr = RCD_CM_REJ };
	struct rcd_cm_rep rep = { .local_qpn = 9 };

	begin();
	hand(&req);
	CU_ASSERT_EQUAL(rcd_cm_reply(side.first, &rep, side.now_ns), 0);
	rej.rej.remote_comm_id = caught().rep.local_comm_id;
	rej.rej.local_comm_id = 5;
	hand(&rej);
	CU_ASSERT_EQUAL(side.ended, 1);
	hand(&req);
	CU_ASSERT_EQUAL(side.sent_count, 0);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(side.agent)->duplicates, 1);
	end();
}

/*
 * Low 4: what a peer asks for in its REQ and MRAs, at their longest, ends all the same.
 *
 * Covers: IBTA 12.9.8.1 rcd_cm_give_up()
 */
static void
patience_with_peers_ends(void)
{
	struct rcd_cm req = { .attr = RCD_CM_REQ,
		.req = { .local_comm_id = 5,
			.local_qpn = 77,
			.local_cm_response_timeout = 31,
			.max_cm_retries = 15 } };
	struct rcd_cm mra = { .attr = RCD_CM_MRA,
		.mra = { .message_mraed = 1, .service_timeout = 31 } };
	struct rcd_cm_rep rep = { .local_qpn = 9 };
	uint64_t begin_ns;

	begin();
	begin_ns = side.now_ns;
	hand(&req);
	CU_ASSERT_EQUAL(rcd_cm_reply(side.first, &rep, side.now_ns), 0);
	mra.mra.remote_comm_id = caught().rep.local_comm_id;
	mra.mra.local_comm_id = 5;
	for (int i = 0; i < 1000 && side.ended == 0; i++) {
		uint64_t next_ns = rcd_cm_next_deadline(side.agent);

		/* At most what an MRA of the kernel asks for, and a time of our own. */
		CU_ASSERT(next_ns - side.now_ns < UINT64_C(80000000000));
		side.now_ns += UINT64_C(1000000000);
		rcd_cm_expire(side.agent, side.now_ns, ROOM);
		side.sent_count = 0;
		if (side.ended == 0)
			hand(&mra);
	}
	CU_ASSERT_EQUAL(side.ended, 1);
	CU_ASSERT(side.now_ns - begin_ns <= UINT64_C(181000000000));
	end();
}

/* Many whose time has come at once are not all looked at in one step, and none is forgotten. */
static void
many_at_once_are_not_one_step(void)
{
	struct rcd_cm req = { .attr = RCD_CM_REQ, .req = { .max_cm_retries = 15 } };
	struct rcd_cm_rep rep = { .local_qpn = 9 };
	uint32_t steps = 0;

	begin();
	for (uint32_t i = 0; i < 10; i++) {
		req.req.local_comm_id = 100 + i;
		req.req.local_qpn = 200 + i;
		side.asked = 0;
		hand(&req);
		CU_ASSERT_EQUAL(rcd_cm_reply(side.first, &rep, side.now_ns), 0);
	}
	side.now_ns = rcd_cm_next_deadline(side.agent);
	while (rcd_cm_next_deadline(side.agent) == side.now_ns && steps < 10) {
		side.sent_count = 0;
		rcd_cm_expire(side.agent, side.now_ns, 3);
		CU_ASSERT(side.sent_count > 0 && side.sent_count <= 3);
		steps++;
	}
	CU_ASSERT_EQUAL(steps, 4);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S11 a peer that has forgotten a connection says so itself", stale_connection },
		{ "S11 a REQ of another's queue pair ends nothing", stale_req_of_another },
		{ "equal_peers", equal_peers },
		{ "both sides end a connection at once", both_end_at_once },
		{ "S11 a REQ alone holds no queue pair", half_open_holds_no_queue_pair },
		{ "T8 a REQ again after a REJ is not answered", req_again_after_rej },
		{ "low 4 a peer's timeouts are bounded", patience_with_peers_ends },
		RCD_TEST(many_at_once_are_not_one_step),
	};

	return rcd_tap_run("cm_peer", tests, sizeof(tests) / sizeof(tests[0]));
}
