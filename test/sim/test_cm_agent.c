/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: connection management ends well, whatever the network does to its messages.
 * Method: two agents in virtual time with a link that loses, repeats and reorders by a seed; hosts
 * that accept, refuse, delay, disconnect and walk away at random. Checked: nobody is told anything
 * after the end or twice, both sides come to an end, nothing is left; without loss every accepted
 * connection is established on both sides. Then single situations by hand, and noise.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chance.h"
#include "rcd_cm_agent.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"

enum {
	CONNS = 24,   /* of a scenario */
	ROOM = 64,    /* of an agent */
	FLIGHT = 512, /* messages under way */
	SEEDS = 3000,
	TIMEOUT = 14, /* 67 ms */
	RETRIES = 15,
	PATIENCE = 19, /* 2.1 s */
};

/* What a host knows of a connection. */
struct host_conn {
	struct rcd_cm_conn *conn; /* NULL: gone */
	bool established, ended, released;
	uint64_t act_ns; /* when it does something next */
};

struct node {
	struct rcd_cm_agent *agent;
	struct rcd_gid gid;
	struct host_conn conns[4 * CONNS];
	uint32_t count, established, ended, gone;
};

static struct {
	struct node nodes[2];
	struct {
		uint64_t at_ns;
		uint32_t to;
		uint8_t mad[RCD_MAD_LEN];
	} flight[FLIGHT];
	uint32_t flight_count;
	uint64_t now_ns;
	struct rcd_sequence rng;
	double loss, repeat;
	bool quiet;            /* hosts only accept */
	uint16_t answer;       /* what the host says to REQ and SIDR_REQ */
	uint64_t hesitates_ns; /* how long a host thinks about those, if not at random */
} net;

static uint64_t
random64(void)
{
	return rcd_sequence_next(&net.rng);
}

static bool
chance(double probability)
{
	return chance_falls(&net.rng, probability);
}

static void
launch(uint32_t to, const uint8_t *mad)
{
	if (net.flight_count == FLIGHT)
		return;
	net.flight[net.flight_count].at_ns = net.now_ns + 1000 + random64() % 40000;
	net.flight[net.flight_count].to = to;
	memcpy(net.flight[net.flight_count++].mad, mad, RCD_MAD_LEN);
}

static void
on_send(void *arg, const struct rcd_cm_way *way, const uint8_t *mad)
{
	uint32_t from = (uint32_t)((struct node *)arg - net.nodes);

	CU_ASSERT_TRUE(rcd_gid_eq(&way->remote, &net.nodes[1 - from].gid));
	/* Strangers are answered where they wrote from; who has a connection is looked for. */
	if (net.quiet && mad[17] == RCD_CM_REP)
		CU_ASSERT_TRUE(way->from_link);
	if (net.quiet && mad[17] == RCD_CM_DREQ)
		CU_ASSERT_FALSE(way->from_link);
	if (chance(net.loss))
		return;
	launch(1 - from, mad);
	while (chance(net.repeat))
		launch(1 - from, mad);
}

static struct host_conn *
host_add(struct node *node, struct rcd_cm_conn *conn)
{
	struct host_conn *host = &node->conns[node->count++ % (4 * CONNS)];

	*host = (struct host_conn){ .conn = conn };
	rcd_cm_set_cookie(conn, host);
	return host;
}

static void
host_end(struct node *node, struct host_conn *host)
{
	CU_ASSERT_FALSE(host->ended);
	host->ended = true;
	node->ended++;
}

static uint16_t
on_event(void *arg, struct rcd_cm_conn *conn, enum rcd_cm_event event, const struct rcd_cm *msg)
{
	struct node *node = arg;
	struct host_conn *host = rcd_cm_cookie(conn);

	(void)msg;
	if (event == RCD_CM_EVENT_REQ || event == RCD_CM_EVENT_SIDR_REQ) {
		CU_ASSERT_PTR_NULL(host);
		if (net.answer != 0)
			return net.answer;
		host = host_add(node, conn);
		host->act_ns = net.now_ns +
			(net.hesitates_ns != 0 ? net.hesitates_ns : random64() % 2000000);
		return 0;
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(host);
	CU_ASSERT_PTR_EQUAL(host->conn, conn);
	CU_ASSERT_TRUE(!host->released || event == RCD_CM_EVENT_GONE);
	switch (event) {
	case RCD_CM_EVENT_REP:
		CU_ASSERT_FALSE(host->ended);
		if (net.quiet || chance(0.5)) {
			CU_ASSERT_EQUAL(rcd_cm_confirm(conn, NULL, 0), 0);
			host->established = true;
			node->established++;
		}
		host->act_ns = net.now_ns + random64() % 2000000;
		break;
	case RCD_CM_EVENT_RTU:
		CU_ASSERT_FALSE(host->ended || host->established);
		host->established = true;
		node->established++;
		host->act_ns = net.now_ns + random64() % 2000000;
		break;
	case RCD_CM_EVENT_DREQ:
		CU_ASSERT_FALSE(host->ended);
		CU_ASSERT_EQUAL(rcd_cm_disconnected(conn, NULL, 0, net.now_ns), 0);
		host_end(node, host);
		break;
	case RCD_CM_EVENT_REJ:
	case RCD_CM_EVENT_DREP:
	case RCD_CM_EVENT_TIMEOUT:
	case RCD_CM_EVENT_STALE:
	case RCD_CM_EVENT_SIDR_REP:
		host_end(node, host);
		break;
	case RCD_CM_EVENT_GONE:
		CU_ASSERT_TRUE(host->ended || host->released);
		host->conn = NULL;
		node->gone++;
		break;
	case RCD_CM_EVENT_REQ:
	case RCD_CM_EVENT_SIDR_REQ:
		break;
	}
	return 0;
}

static const struct rcd_cm_ops ops = { .send = on_send, .event = on_event };

/* The host's own steps: whatever fits the state, sometimes leaving. */
static void
act(struct node *node, struct host_conn *host)
{
	struct rcd_cm_rep rep = { .local_qpn = random64() & 0xffffff,
		.local_eecn = random64() & 0xffffff };
	struct rcd_cm_sidr_rep sidr = { .qpn = 5, .qkey = 7 };
	struct rcd_cm_conn *conn = host->conn;

	host->act_ns = 0;
	if (!net.quiet && chance(0.1)) {
		host->released = true;
		rcd_cm_release(conn, net.now_ns);
		return;
	}
	switch (rcd_cm_conn_state(conn)) {
	case RCD_CM_STATE_AWAITS_REP:
		if (!net.quiet && chance(0.2)) {
			CU_ASSERT_EQUAL(rcd_cm_reject(conn, 28, NULL, 0, net.now_ns), 0);
			host_end(node, host);
		} else if (!net.quiet && chance(0.3)) {
			CU_ASSERT_EQUAL(rcd_cm_delay(conn, 15), 0);
			host->act_ns = net.now_ns + random64() % 100000000;
		} else {
			CU_ASSERT_EQUAL(rcd_cm_reply(conn, &rep, net.now_ns), 0);
		}
		break;
	case RCD_CM_STATE_AWAITS_RTU:
		if (chance(0.3)) {
			CU_ASSERT_EQUAL(rcd_cm_reject(conn, 28, NULL, 0, net.now_ns), 0);
			host_end(node, host);
		} else {
			CU_ASSERT_EQUAL(rcd_cm_confirm(conn, NULL, 0), 0);
			host->established = true;
			node->established++;
			host->act_ns = net.now_ns + random64() % 2000000;
		}
		break;
	case RCD_CM_STATE_ESTABLISHED:
		CU_ASSERT_EQUAL(rcd_cm_disconnect(conn, NULL, 0, net.now_ns), 0);
		break;
	case RCD_CM_STATE_AWAITS_SIDR_REP:
		CU_ASSERT_EQUAL(rcd_cm_sidr_reply(conn, &sidr, net.now_ns), 0);
		host_end(node, host);
		break;
	case RCD_CM_STATE_FREE:
	case RCD_CM_STATE_REQ_SENT:
	case RCD_CM_STATE_REP_SENT:
	case RCD_CM_STATE_DREQ_SENT:
	case RCD_CM_STATE_AWAITS_DREP:
	case RCD_CM_STATE_TIMEWAIT:
	case RCD_CM_STATE_SIDR_SENT:
		break;
	}
}

static uint64_t
earliest(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static struct rcd_cm_way
way_of(uint32_t node)
{
	return (struct rcd_cm_way){ .local = net.nodes[node].gid,
		.remote = net.nodes[1 - node].gid };
}

static void
deliver(uint32_t i)
{
	uint32_t to = net.flight[i].to;
	struct rcd_cm_way way = way_of(to);
	uint8_t mad[RCD_MAD_LEN];

	way.from_link = true;
	memcpy(mad, net.flight[i].mad, sizeof(mad));
	net.flight[i] = net.flight[--net.flight_count];
	rcd_cm_rx(net.nodes[to].agent, mad, &way, net.now_ns);
}

/* Until nothing is to come. @return whether it came to that */
static bool
run(void)
{
	for (uint32_t steps = 0; steps < 1000000; steps++) {
		uint64_t next = 0;

		for (uint32_t i = 0; i < net.flight_count; i++)
			next = earliest(next, net.flight[i].at_ns);
		for (uint32_t n = 0; n < 2; n++) {
			next = earliest(next, rcd_cm_next_deadline(net.nodes[n].agent));
			for (uint32_t i = 0; i < 4 * CONNS; i++)
				if (net.nodes[n].conns[i].conn != NULL)
					next = earliest(next, net.nodes[n].conns[i].act_ns);
		}
		if (next == 0)
			return true;
		net.now_ns = next > net.now_ns ? next : net.now_ns;
		for (uint32_t i = 0; i < net.flight_count; i++) {
			if (net.flight[i].at_ns <= net.now_ns) {
				deliver(i);
				break;
			}
		}
		for (uint32_t n = 0; n < 2; n++) {
			rcd_cm_expire(
				net.nodes[n].agent, net.now_ns, 1 + (uint32_t)(random64() % 4));
			for (uint32_t i = 0; i < 4 * CONNS; i++) {
				struct host_conn *host = &net.nodes[n].conns[i];

				if (host->conn != NULL && host->act_ns != 0 &&
					host->act_ns <= net.now_ns)
					act(&net.nodes[n], host);
			}
		}
	}
	return false;
}

static void
begin(uint64_t seed, double loss, double repeat, uint32_t room)
{
	memset(&net, 0, sizeof(net));
	net.rng = (struct rcd_sequence){ seed };
	net.loss = loss;
	net.repeat = repeat;
	net.now_ns = 1000000000;
	for (uint32_t n = 0; n < 2; n++) {
		struct rcd_cm_conf conf = { .connections = room,
			.secret = random64(),
			.guid = n + 1,
			.life_ns = 1000000,
			.patience = PATIENCE,
			.ops = &ops,
			.arg = &net.nodes[n] };

		net.nodes[n].gid.raw[15] = (uint8_t)(n + 1);
		net.nodes[n].agent = rcd_cm_agent_create(&conf);
		CU_ASSERT_PTR_NOT_NULL_FATAL(net.nodes[n].agent);
	}
}

static void
end(void)
{
	for (uint32_t n = 0; n < 2; n++)
		rcd_cm_agent_destroy(net.nodes[n].agent);
}

static struct host_conn *
connect_one(uint32_t node, uint32_t qpn)
{
	struct rcd_cm_req req = { .local_qpn = qpn,
		.transport_service_type =
			qpn % 2 != 0 ? RCD_CM_SERVICE_EXTENDED : RCD_CM_SERVICE_RC,
		.extended_transport_type = RCD_CM_EXTENDED_XRC,
		.remote_cm_response_timeout = TIMEOUT,
		.local_cm_response_timeout = TIMEOUT,
		.max_cm_retries = RETRIES };
	struct rcd_cm_way way = way_of(node);
	struct rcd_cm_conn *conn =
		rcd_cm_connect(net.nodes[node].agent, &way, &req, NULL, net.now_ns);

	return conn != NULL ? host_add(&net.nodes[node], conn) : NULL;
}

static void
all_is_over(const char *what, uint64_t seed)
{
	bool ran = run();
	bool empty = rcd_cm_agent_used(net.nodes[0].agent) == 0 &&
		rcd_cm_agent_used(net.nodes[1].agent) == 0;

	if (!ran || !empty)
		printf("# %s, seed %llu: %s, left %u and %u\n", what, (unsigned long long)seed,
			ran ? "ran" : "no end", rcd_cm_agent_used(net.nodes[0].agent),
			rcd_cm_agent_used(net.nodes[1].agent));
	CU_ASSERT_TRUE_FATAL(ran);
	CU_ASSERT_TRUE_FATAL(empty);
	for (uint32_t n = 0; n < 2; n++)
		CU_ASSERT_EQUAL(net.nodes[n].gone, net.nodes[n].count);
}

/* Covers: IBTA 12.9.8.3.1 cm_conn_repeated_req() */
static void
whatever_happens(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed, seed % 4 * 0.15, seed % 3 * 0.1, ROOM);
		for (uint32_t i = 0; i < CONNS; i++) {
			struct rcd_cm_sidr_req req = { .service_id = 7 };
			struct rcd_cm_way way = way_of(i % 2);

			if (i % 5 == 4)
				host_add(&net.nodes[i % 2],
					rcd_cm_sidr(net.nodes[i % 2].agent, &way, &req, TIMEOUT,
						RETRIES, NULL, net.now_ns));
			else
				connect_one(i % 2, 100 + i);
		}
		all_is_over("random", seed);
		end();
	}
}

static void
without_loss_all_connect(void)
{
	begin(1, 0, 0, ROOM);
	net.quiet = true;
	for (uint32_t i = 0; i < CONNS; i++)
		CU_ASSERT_PTR_NOT_NULL_FATAL(connect_one(0, 100 + i));
	all_is_over("quiet", 1);
	for (uint32_t n = 0; n < 2; n++)
		CU_ASSERT_EQUAL(net.nodes[n].established, CONNS);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[0].agent)->sent_again, 0);
	end();
}

/* Covers: IBTA 12.9.8.1 cm_conn_answer_ns() */
static void
nobody_there(void)
{
	uint64_t begin_ns;

	begin(1, 1, 0, ROOM);
	begin_ns = net.now_ns;
	connect_one(0, 1);
	all_is_over("nobody", 1);
	CU_ASSERT_EQUAL(net.nodes[0].ended, 1);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[0].agent)->sent_again, RETRIES);
	/* Sixteen times 67 ms, twice the network, and the timewait. */
	CU_ASSERT(net.now_ns - begin_ns > 16 * UINT64_C(67000000));
	CU_ASSERT(net.now_ns - begin_ns < 16 * UINT64_C(72000000));
	end();
}

static void
no_room(void)
{
	begin(1, 0, 0, 4);
	net.quiet = true;
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_PTR_NOT_NULL(connect_one(0, i));
	CU_ASSERT_PTR_NULL(connect_one(0, 4));
	all_is_over("room", 1);
	end();
	/* And on the other side. */
	begin(1, 0, 0, 4);
	rcd_cm_agent_destroy(net.nodes[0].agent);
	net.nodes[0].agent = rcd_cm_agent_create(&(struct rcd_cm_conf){
		.connections = 64, .life_ns = 1000000, .ops = &ops, .arg = &net.nodes[0] });
	net.quiet = true;
	for (uint32_t i = 0; i < 10; i++)
		connect_one(0, i);
	all_is_over("full", 1);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[1].agent)->dropped_full, 6);
	CU_ASSERT_EQUAL(net.nodes[1].established, 4);
	end();
}

static void
refused_by_the_host(void)
{
	begin(1, 0, 0, ROOM);
	net.answer = 8;
	connect_one(0, 1);
	all_is_over("refused", 1);
	CU_ASSERT_EQUAL(net.nodes[0].ended, 1);
	CU_ASSERT_EQUAL(net.nodes[1].count, 0);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[0].agent)->received[RCD_CM_REJ], 1);
	end();
}

/*
 * Two seconds, when the requester gives up after one: when it asks again it is told to wait.
 *
 * Covers: IBTA 12.6.6 rcd_cm_rx_mra()
 */
static void
host_that_hesitates(void)
{
	begin(1, 0, 0, ROOM);
	net.quiet = true;
	net.hesitates_ns = UINT64_C(2000000000);
	connect_one(0, 1);
	all_is_over("hesitant", 1);
	CU_ASSERT_EQUAL(net.nodes[0].established, 1);
	CU_ASSERT_EQUAL(net.nodes[1].established, 1);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[0].agent)->received[RCD_CM_MRA], 1);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[0].agent)->sent_again, 1);
	end();
}

/* Nobody is told anything, and nothing is kept; who asks goes on asking. */
static void
dropped_by_the_host(void)
{
	begin(1, 0, 0, ROOM);
	net.answer = RCD_CM_DROP;
	connect_one(0, 1);
	all_is_over("dropped", 1);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[1].agent)->received[RCD_CM_REQ], RETRIES + 1);
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[1].agent)->sent[RCD_CM_REJ], 0);
	CU_ASSERT_EQUAL(net.nodes[1].count, 0);
	end();
}

/* A message by hand to node 1, from node 0. */
static void
hand(const struct rcd_cm *msg)
{
	struct rcd_mad hdr = { .base_version = 1,
		.mgmt_class = RCD_MAD_CLASS_CM,
		.class_version = RCD_CM_CLASS_VERSION,
		.method = RCD_CM_METHOD_SEND,
		.attr_id = (uint16_t)msg->attr };
	struct rcd_cm_way way = way_of(1);
	uint8_t mad[RCD_MAD_LEN];

	rcd_mad_build(mad, &hdr);
	rcd_cm_build(mad + RCD_MAD_HDR_LEN, msg);
	rcd_cm_rx(net.nodes[1].agent, mad, &way, net.now_ns);
}

/* The last message that is under way, which is taken away. */
static struct rcd_cm
caught(void)
{
	struct rcd_cm msg = { .attr = 0 };

	if (net.flight_count == 0)
		return msg;
	net.flight_count--;
	CU_ASSERT_TRUE(rcd_cm_parse(net.flight[net.flight_count].mad + RCD_MAD_HDR_LEN,
		rcd_get_be16(net.flight[net.flight_count].mad + 16), &msg));
	return msg;
}

static void
answers_to_strangers(void)
{
	struct rcd_cm msg, reply;

	begin(1, 0, 0, ROOM);
	msg = (struct rcd_cm){ .attr = RCD_CM_REP,
		.rep = { .local_comm_id = 5, .remote_comm_id = 99 } };
	hand(&msg);
	reply = caught();
	CU_ASSERT_EQUAL(reply.attr, RCD_CM_REJ);
	CU_ASSERT_EQUAL(reply.rej.remote_comm_id, 5);
	CU_ASSERT_EQUAL(reply.rej.reason, 6);
	msg = (struct rcd_cm){ .attr = RCD_CM_DREQ,
		.dreq = { .local_comm_id = 5, .remote_comm_id = 99 } };
	hand(&msg);
	reply = caught();
	CU_ASSERT_EQUAL(reply.attr, RCD_CM_DREP);
	CU_ASSERT_EQUAL(reply.drep.local_comm_id, 99);
	CU_ASSERT_EQUAL(reply.drep.remote_comm_id, 5);
	msg = (struct rcd_cm){ .attr = RCD_CM_LAP,
		.lap = { .local_comm_id = 5, .remote_comm_id = 99 } };
	hand(&msg);
	reply = caught();
	CU_ASSERT_EQUAL(reply.attr, RCD_CM_APR);
	CU_ASSERT_EQUAL(reply.apr.ap_status, 2);
	for (int attr = RCD_CM_MRA; attr <= RCD_CM_APR; attr++) {
		if (attr == RCD_CM_REP || attr == RCD_CM_DREQ || attr == RCD_CM_LAP ||
			attr == RCD_CM_SIDR_REQ)
			continue;
		memset(&msg, 0x11, sizeof(msg));
		msg.attr = (enum rcd_cm_attr)attr;
		hand(&msg);
		CU_ASSERT_EQUAL(net.flight_count, 0);
	}
	CU_ASSERT_EQUAL(rcd_cm_agent_used(net.nodes[1].agent), 0);
	end();
}

static void
more_than_the_rate(void)
{
	struct rcd_cm req = { .attr = RCD_CM_REQ };

	begin(1, 0, 0, 4096);
	rcd_cm_agent_destroy(net.nodes[1].agent);
	net.nodes[1].agent = rcd_cm_agent_create(&(struct rcd_cm_conf){ .connections = 4096,
		.req_rate = 10,
		.life_ns = 1000,
		.ops = &ops,
		.arg = &net.nodes[1] });
	net.answer = 28;
	for (uint32_t i = 0; i < 100; i++) {
		req.req.local_comm_id = i;
		req.req.local_qpn = i;
		hand(&req);
		net.flight_count = 0;
	}
	CU_ASSERT_EQUAL(rcd_cm_agent_counts(net.nodes[1].agent)->dropped_rate, 90);
	net.now_ns += 1000000001;
	hand(&req);
	CU_ASSERT_EQUAL(net.flight_count, 1);
	end();
}

/* Messages that fit no state, with numbers that do exist: nothing but their counts may happen. */
static void
noise(void)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		begin(seed, 0, 0, ROOM);
		for (uint32_t i = 0; i < 8; i++)
			connect_one(0, i);
		for (uint32_t i = 0; i < 400; i++) {
			uint8_t mad[RCD_MAD_LEN];
			uint32_t to = (uint32_t)(random64() % 2);
			struct rcd_cm_way way = way_of(to);

			if (net.flight_count > 0 && chance(0.3)) {
				memcpy(mad, net.flight[random64() % net.flight_count].mad,
					sizeof(mad));
			} else {
				for (uint32_t k = 0; k < sizeof(mad); k++)
					mad[k] = (uint8_t)random64();
				memcpy(mad, "\x01\x07\x02\x03", 4);
				mad[16] = 0;
			}
			if (chance(0.7))
				mad[17] = (uint8_t)(0x10 + random64() % 12);
			if (chance(0.3))
				mad[random64() % RCD_MAD_LEN] ^= (uint8_t)(1 << random64() % 8);
			rcd_cm_rx(net.nodes[to].agent, mad, &way, net.now_ns);
			net.flight_count = net.flight_count > 64 ? 64 : net.flight_count;
		}
		CU_ASSERT(rcd_cm_agent_used(net.nodes[1].agent) <= ROOM);
		end();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(whatever_happens),
		RCD_TEST(without_loss_all_connect),
		RCD_TEST(nobody_there),
		RCD_TEST(no_room),
		RCD_TEST(refused_by_the_host),
		RCD_TEST(host_that_hesitates),
		RCD_TEST(dropped_by_the_host),
		RCD_TEST(answers_to_strangers),
		RCD_TEST(more_than_the_rate),
		RCD_TEST(noise),
	};

	return rcd_tap_run("cm_agent", tests, sizeof(tests) / sizeof(tests[0]));
}
