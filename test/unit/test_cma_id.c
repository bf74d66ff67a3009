/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: identifiers of the CM service go through their states as librdmacm's do: what each state
 * permits, what becomes of resolutions, requests, groups and devices, who is charged, and that
 * nothing is left. Method: a table of states and requests, walked cell by cell; then situations on
 * one host, and connections between two, with a clock of the test's own.
 */
#include <errno.h>
#include <string.h>

#include "cma_host.h"
#include "gid_text.h"
#include "rcd_bytes.h"
#include "rcd_tap.h"

#define PORT    7174
#define SECONDS UINT64_C(1000000000)

static struct cma_host host, far;
static struct cma_host_client alice, bob;

static void
setup(void)
{
	cma_host_open_with(&host, "one", "10.0.0.1", &alice, 1000);
	cma_host_address(&host, "fd00::1", 64, 0);
}

static void
teardown(void)
{
	cma_host_client_end(&alice);
	cma_host_close(&host);
}

static int
connect_by(struct rcd_cmid *id, uint32_t qpn)
{
	struct rcd_ctrl_cm_param_req asked = { .qpn = qpn, .param = { .retry_count = 7 } };

	return rcd_cmid_connect(id, id->client->owner, &asked);
}

/* Bring a new one to a state, as far as requests do that. */
static struct rcd_cmid *
in_state(enum rcd_cma_state state, uint8_t qp_type)
{
	struct rcd_cmid *id = cma_host_id(
		&alice, qp_type == RCD_QP_UD ? RCD_CMA_SPACE_UDP : RCD_CMA_SPACE_TCP, qp_type);
	int err = 0;

	host.neighbour = state == RCD_CMA_ADDR_QUERY ? -EAGAIN : 0;
	if (state == RCD_CMA_BOUND)
		err = cma_host_bind(id, "10.0.0.1", 0);
	else if (state == RCD_CMA_LISTEN)
		err = rcd_cmid_listen(id, &alice, 1);
	else if (state != RCD_CMA_IDLE)
		err = cma_host_resolve(id, "10.0.0.9", PORT);
	if (err == 0 && (state == RCD_CMA_ROUTE_RESOLVED || state >= RCD_CMA_CONNECT))
		err = rcd_cmid_resolve_route(id);
	if (err == 0 && state >= RCD_CMA_CONNECT)
		err = connect_by(id, 17);
	if (err == 0 && state == RCD_CMA_DEVICE_REMOVAL)
		rcd_cma_dev_gone(host.cma, id->dev);
	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT_EQUAL(id->state, state);
	host.mad_count = 0;
	return id;
}

enum request {
	BIND,
	LISTEN,
	RESOLVE_ADDR,
	RESOLVE_ROUTE,
	CONNECT,
	ACCEPT,
	ESTABLISH,
	DISCONNECT,
	QP_ATTR,
	JOIN,
	REQUESTS,
};

static int
request(struct rcd_cmid *id, enum request what)
{
	struct rcd_ctrl_cm_param_req asked = { .qpn = 17 };
	struct rcd_ctrl_cm_attr_rep attr = { .mask = 0 };
	uint32_t handle;

	switch (what) {
	case BIND:
		return cma_host_bind(id, "10.0.0.1", 0);
	case LISTEN:
		return rcd_cmid_listen(id, &alice, 1);
	case RESOLVE_ADDR:
		return cma_host_resolve(id, "10.0.0.9", PORT);
	case RESOLVE_ROUTE:
		return rcd_cmid_resolve_route(id);
	case CONNECT:
		return connect_by(id, 17);
	case ACCEPT:
		return rcd_cmid_accept(id, id->client->owner, &asked);
	case ESTABLISH:
		return rcd_cmid_establish(id);
	case DISCONNECT:
		return rcd_cmid_disconnect(id);
	case QP_ATTR:
		return rcd_cmid_qp_attr(id, 1, &attr);
	case JOIN:
		return cma_host_join(id, "239.1.2.3", &handle);
	case REQUESTS:
		break;
	}
	return -1;
}

static void
every_request_in_every_state(void)
{
	/* Whether it is permitted, of RC; joins are of UD. */
	static const char permits[][REQUESTS + 1] = {
		[RCD_CMA_IDLE] = "yyy-------",
		[RCD_CMA_BOUND] = "-yy-----yy",
		[RCD_CMA_LISTEN] = "----------",
		[RCD_CMA_ADDR_QUERY] = "--------y-",
		[RCD_CMA_ADDR_RESOLVED] = "---y----yy",
		[RCD_CMA_ROUTE_RESOLVED] = "----y---yy",
		[RCD_CMA_CONNECT] = "-------yy-",
		[RCD_CMA_DISCONNECT] = "",
		[RCD_CMA_DEVICE_REMOVAL] = "----------",
	};

	for (int state = 0; state <= RCD_CMA_DEVICE_REMOVAL; state++) {
		/* It takes a peer to get there. */
		if (state == RCD_CMA_DISCONNECT)
			continue;
		for (int what = 0; what < REQUESTS; what++) {
			struct rcd_cmid *id;
			int err;

			setup();
			id = in_state(
				(enum rcd_cma_state)state, what == JOIN ? RCD_QP_UD : RCD_QP_RC);
			err = request(id, (enum request)what);
			CU_ASSERT_EQUAL(err, permits[state][what] == 'y' ? 0 : -EINVAL);
			host.mad_count = 0;
			teardown();
		}
	}
}

static void
resolutions(void)
{
	static const struct {
		int first; /**< what is known of the neighbour at once */
		int later; /**< at the next look */
		bool late; /**< ...which is behind its patience */
		int event; /**< -1: none yet */
		int status;
	} rows[] = {
		{ 0, 0, false, RCD_CMA_EVENT_ADDR_RESOLVED, 0 },
		{ -ETIMEDOUT, 0, false, RCD_CMA_EVENT_ADDR_ERROR, -ETIMEDOUT },
		{ -ENETUNREACH, 0, false, RCD_CMA_EVENT_ADDR_ERROR, -ENETUNREACH },
		{ -ENOMEM, 0, false, RCD_CMA_EVENT_ADDR_ERROR, -ENOMEM },
		{ -EAGAIN, 0, false, RCD_CMA_EVENT_ADDR_RESOLVED, 0 },
		{ -EAGAIN, 0, true, RCD_CMA_EVENT_ADDR_RESOLVED, 0 },
		{ -EAGAIN, -EAGAIN, false, -1, 0 },
		{ -EAGAIN, -EAGAIN, true, RCD_CMA_EVENT_ADDR_ERROR, -ETIMEDOUT },
		{ -EAGAIN, -ETIMEDOUT, false, RCD_CMA_EVENT_ADDR_ERROR, -ETIMEDOUT },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rcd_ctrl_cm_event_rep rep = { .status = 0 };
		struct rcd_cmid *id;

		setup();
		host.neighbour = rows[i].first;
		id = cma_host_id(&alice, RCD_CMA_SPACE_TCP, RCD_QP_RC);
		CU_ASSERT_EQUAL(cma_host_resolve(id, "10.0.0.9", PORT), 0);
		if (rows[i].first == -EAGAIN)
			CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), -1);
		host.neighbour = rows[i].later;
		if (rows[i].late)
			cma_host_pass(&host, 2 * SECONDS + SECONDS / 100);
		else
			cma_host_neighbours(&host);
		CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), rows[i].event);
		CU_ASSERT_EQUAL(rep.status, rows[i].status);
		CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), -1);
		CU_ASSERT_EQUAL(host.asked, 1 + (rows[i].first == -EAGAIN));
		/* Told once: nothing is left of it. */
		if (rows[i].event >= 0) {
			cma_host_neighbours(&host);
			cma_host_pass(&host, 3 * SECONDS);
			CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), -1);
			CU_ASSERT_EQUAL(host.asked, 1 + (rows[i].first == -EAGAIN));
		}
		teardown();
	}
}

static void
a_device_goes(void)
{
	struct rcd_ctrl_cm_query_rep query = { .device = 0 };
	struct rcd_ctrl_cm_event_rep rep;
	struct rcd_cmid *id, *waits, *idle;
	uint32_t group;

	setup();
	id = in_state(RCD_CMA_ADDR_RESOLVED, RCD_QP_UD);
	CU_ASSERT_EQUAL(cma_host_join(id, "239.1.2.3", &group), 0);
	CU_ASSERT_EQUAL(host.joined, 1);
	waits = in_state(RCD_CMA_ADDR_QUERY, RCD_QP_RC);
	idle = in_state(RCD_CMA_IDLE, RCD_QP_RC);
	while (cma_host_event(&alice, &rep) >= 0)
		continue;
	CU_ASSERT_EQUAL(rcd_cmid_count(host.cma, host.devs[0].serial), 2);
	rcd_cma_dev_gone(host.cma, host.devs[0].serial);
	host.devs[0].name = NULL;
	CU_ASSERT_EQUAL(host.left, 1);
	CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), RCD_CMA_EVENT_DEVICE_REMOVAL);
	CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), RCD_CMA_EVENT_DEVICE_REMOVAL);
	CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), -1);
	CU_ASSERT_EQUAL(waits->state, RCD_CMA_DEVICE_REMOVAL);
	CU_ASSERT_EQUAL(idle->state, RCD_CMA_IDLE);
	rcd_cmid_query(id, &query);
	CU_ASSERT_EQUAL(query.device, RCD_CTRL_NO_HANDLE);
	/* Nobody asks for a neighbour of it any more. */
	host.asked = 0;
	cma_host_neighbours(&host);
	cma_host_pass(&host, 3 * SECONDS);
	CU_ASSERT_EQUAL(host.asked, 0);
	teardown();
}

/* Two hosts, and a listener on the far one. */
static struct rcd_cmid *
setup_two(uint32_t backlog, uint8_t qp_type)
{
	struct rcd_cmid *listener;

	setup();
	cma_host_open_with(&far, "far", "10.0.0.9", &bob, 1001);
	listener = cma_host_id(
		&bob, qp_type == RCD_QP_UD ? RCD_CMA_SPACE_UDP : RCD_CMA_SPACE_TCP, qp_type);
	CU_ASSERT_EQUAL(cma_host_bind(listener, "0.0.0.0", PORT), 0);
	CU_ASSERT_EQUAL(rcd_cmid_listen(listener, &bob, backlog), 0);
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

static void
connections(void)
{
	struct rcd_ctrl_cm_param_req yes = { .qpn = 23 };
	struct rcd_ctrl_cm_event_rep rep;
	struct rcd_cmid *id, *child;

	setup_two(1, RCD_QP_RC);
	id = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
	host.foreign_qpn = 99;
	CU_ASSERT_EQUAL(connect_by(id, 99), -EINVAL);
	CU_ASSERT_EQUAL(connect_by(id, 17), 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_CM_CONNECTIONS], 1);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), RCD_CMA_EVENT_CONNECT_REQUEST);
	CU_ASSERT_EQUAL(rep.qpn, 17);
	child = rcd_cmid_get(bob.cma, rep.id);
	CU_ASSERT_PTR_NOT_NULL_FATAL(child);
	CU_ASSERT_EQUAL(child->dst.port, id->src.port);
	CU_ASSERT_EQUAL(rcd_cmid_accept(child, &bob, &yes), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&alice, &rep), RCD_CMA_EVENT_CONNECT_RESPONSE);
	CU_ASSERT_EQUAL(rep.qpn, 23);
	CU_ASSERT_EQUAL(rcd_cmid_establish(id), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), RCD_CMA_EVENT_ESTABLISHED);
	CU_ASSERT_EQUAL(rcd_cmid_disconnect(id), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), RCD_CMA_EVENT_DISCONNECTED);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&alice, &rep), RCD_CMA_EVENT_DISCONNECTED);
	/* Told of once; what is left is the wait for late packets, which ends. */
	CU_ASSERT_EQUAL(rcd_cmid_disconnect(child), 0);
	CU_ASSERT_EQUAL(rcd_cma_connections(far.cma), 1);
	cma_host_now_ns += 600 * SECONDS;
	rcd_cma_tick(far.cma, cma_host_now_ns);
	rcd_cma_tick(host.cma, cma_host_now_ns);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), RCD_CMA_EVENT_TIMEWAIT_EXIT);
	CU_ASSERT_EQUAL(rcd_cma_connections(far.cma), 0);
	CU_ASSERT_EQUAL(bob.quota.used[RCD_RESOURCE_CM_CONNECTIONS], 0);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_CM_CONNECTIONS], 0);
	teardown_two();
}

/* Whether a client's connection says that the peer's queue pair has selective acknowledgement. */
static bool
offered(struct cma_host *at, const struct cma_host_client *client, const struct rcd_cmid *id,
	uint32_t remote_qpn)
{
	const void *owner = rcd_cma_offered(at->cma, remote_qpn, &id->way, RCD_CM_OFFERS_SACK);

	CU_ASSERT_TRUE(owner == NULL || owner == client->cma->owner);
	return owner != NULL;
}

/* Each says what its own device does: a queue pair that is made ready before the REP leaves knows
 * of it, and nobody knows it of a queue pair that is not the connection's. */
static void
what_peers_offer(void)
{
	struct rcd_ctrl_cm_param_req yes = { .qpn = 23 };
	struct rcd_ctrl_cm_event_rep rep;
	struct rcd_cmid *id, *child;

	for (int mask = 0; mask < 4; mask++) {
		setup_two(1, RCD_QP_RC);
		host.devs[0].sack = mask & 1;
		far.devs[0].sack = mask & 2;
		id = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
		CU_ASSERT_EQUAL(connect_by(id, 17), 0);
		CU_ASSERT_FALSE(offered(&host, &alice, id, 23));
		cma_host_deliver(&host, &far);
		CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), RCD_CMA_EVENT_CONNECT_REQUEST);
		child = rcd_cmid_get(bob.cma, rep.id);
		CU_ASSERT_PTR_NOT_NULL_FATAL(child);
		CU_ASSERT_EQUAL(offered(&far, &bob, child, 17), (mask & 1) != 0);
		CU_ASSERT_FALSE(offered(&far, &bob, child, 18));
		CU_ASSERT_EQUAL(rcd_cmid_accept(child, &bob, &yes), 0);
		CU_ASSERT_EQUAL(offered(&far, &bob, child, 17), (mask & 1) != 0);
		cma_host_deliver(&host, &far);
		CU_ASSERT_EQUAL(
			cma_host_event_of_peer(&alice, &rep), RCD_CMA_EVENT_CONNECT_RESPONSE);
		CU_ASSERT_EQUAL(offered(&host, &alice, id, 23), (mask & 2) != 0);
		CU_ASSERT_EQUAL(rcd_cmid_establish(id), 0);
		CU_ASSERT_EQUAL(offered(&host, &alice, id, 23), (mask & 2) != 0);
		teardown_two();
	}
}

/* That of the program; without one that of the device, which the peer hears of and takes. */
static void
traffic_classes(void)
{
	static const struct {
		int given; /* -1: none */
		uint8_t ours, has;
	} rows[] = { { -1, 0, 0 }, { -1, 104, 104 }, { -1, 255, 255 }, { 0, 104, 0 },
		{ 40, 104, 40 }, { 40, 0, 40 } };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		struct rcd_ctrl_cm_set_req set = { .option = RCD_CTRL_CM_TOS };
		struct rcd_ctrl_cm_query_rep query = { .device = 0 };
		struct rcd_ctrl_cm_event_rep rep;
		struct rcd_cmid *id, *child;
		struct rcd_ctrl_av av;

		setup_two(1, RCD_QP_RC);
		host.devs[0].tos = rows[i].ours;
		far.devs[0].tos = 1;
		id = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
		set.value = (uint32_t)rows[i].given;
		if (rows[i].given >= 0)
			CU_ASSERT_EQUAL(rcd_cmid_set(id, &set), 0);
		rcd_cmid_query(id, &query);
		CU_ASSERT_EQUAL(query.av.tclass, rows[i].has);
		CU_ASSERT_EQUAL(connect_by(id, 17), 0);
		CU_ASSERT_EQUAL(host.ways[0].tclass, rows[i].has);
		rcd_cmid_av(id, &av);
		CU_ASSERT_EQUAL(av.tclass, rows[i].has);
		cma_host_deliver(&host, &far);
		CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), RCD_CMA_EVENT_CONNECT_REQUEST);
		child = rcd_cmid_get(bob.cma, rep.id);
		CU_ASSERT_PTR_NOT_NULL_FATAL(child);
		rcd_cmid_av(child, &av);
		CU_ASSERT_EQUAL(av.tclass, rows[i].has);
		teardown_two();
	}
}

/* Likewise of groups. */
static void
traffic_classes_of_groups(void)
{
	struct rcd_ctrl_cm_set_req set = { .option = RCD_CTRL_CM_TOS, .value = 40 };
	struct rcd_ctrl_cm_event_rep rep;
	uint32_t handle;

	setup();
	host.devs[0].tos = 104;
	for (int given = 0; given < 2; given++) {
		struct rcd_cmid *id = cma_host_id(&alice, RCD_CMA_SPACE_UDP, RCD_QP_UD);

		CU_ASSERT_EQUAL(cma_host_bind(id, "10.0.0.1", 0), 0);
		if (given)
			CU_ASSERT_EQUAL(rcd_cmid_set(id, &set), 0);
		CU_ASSERT_EQUAL(cma_host_join(id, "239.1.2.3", &handle), 0);
		CU_ASSERT_EQUAL(cma_host_event(&alice, &rep), RCD_CMA_EVENT_MULTICAST_JOIN);
		CU_ASSERT_EQUAL(rep.av.tclass, given ? 40 : 104);
	}
	teardown();
}

static void
refusals(void)
{
	struct rcd_ctrl_cm_event_rep rep;
	struct rcd_cmid *listener, *id;

	/* Nobody listens. */
	listener = setup_two(1, RCD_QP_RC);
	rcd_cmid_destroy(listener);
	id = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
	CU_ASSERT_EQUAL(connect_by(id, 17), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&alice, &rep), RCD_CMA_EVENT_REJECTED);
	CU_ASSERT_EQUAL(rep.status, 8);
	CU_ASSERT_EQUAL(id->state, RCD_CMA_DISCONNECT);
	teardown_two();
	/* The address that it was sent to is gone when it is looked at; the peer names another. */
	setup_two(1, RCD_QP_RC);
	id = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
	CU_ASSERT_EQUAL(connect_by(id, 17), 0);
	host.ways[0].remote = gid_text("10.0.0.7");
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), -1);
	teardown_two();
	/* The path is too wide for the far device. */
	setup_two(1, RCD_QP_RC);
	far.devs[0].path_mtu_bytes = 512;
	id = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
	CU_ASSERT_EQUAL(connect_by(id, 17), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&alice, &rep), RCD_CMA_EVENT_REJECTED);
	CU_ASSERT_EQUAL(rep.status, 26);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), -1);
	teardown_two();
	/* A listener that goes refuses what it has not seen. */
	listener = setup_two(1, RCD_QP_RC);
	id = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
	CU_ASSERT_EQUAL(connect_by(id, 17), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(rcd_cmid_destroy(listener), 1);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&alice, &rep), RCD_CMA_EVENT_REJECTED);
	teardown_two();
}

static void
a_backlog_is_full(void)
{
	struct rcd_ctrl_cm_event_rep rep;
	struct rcd_cmid *ids[2];

	setup_two(1, RCD_QP_RC);
	for (int i = 0; i < 2; i++)
		ids[i] = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(connect_by(ids[i], 17 + (uint32_t)i), 0);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(far.counts[RCD_COUNTER_CM_RX_DROP_BACKLOG], 1);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), RCD_CMA_EVENT_CONNECT_REQUEST);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), -1);
	/* There is room for the other, who asks again. */
	cma_host_now_ns += 10 * SECONDS;
	rcd_cma_tick(host.cma, cma_host_now_ns);
	cma_host_deliver(&host, &far);
	CU_ASSERT_EQUAL(cma_host_event_of_peer(&bob, &rep), RCD_CMA_EVENT_CONNECT_REQUEST);
	teardown_two();
}

static void
mads_wait_for_a_neighbour(void)
{
	struct rcd_cmid *id;

	setup();
	id = in_state(RCD_CMA_ROUTE_RESOLVED, RCD_QP_RC);
	host.sending = -EAGAIN;
	CU_ASSERT_EQUAL(connect_by(id, 17), 0);
	CU_ASSERT_EQUAL(host.cma->parked_count, 1);
	cma_host_neighbours(&host);
	CU_ASSERT_EQUAL(host.cma->parked_count, 1);
	host.sending = 0;
	cma_host_neighbours(&host);
	CU_ASSERT_EQUAL(host.cma->parked_count, 0);
	CU_ASSERT_EQUAL(host.mad_count, 1);
	/* One that can't be sent at all does not wait, and not for ever. */
	host.sending = -EAGAIN;
	cma_host_pass(&host, 10 * SECONDS);
	CU_ASSERT(host.cma->parked_count > 0);
	host.sending = -ENODEV;
	cma_host_neighbours(&host);
	CU_ASSERT_EQUAL(host.cma->parked_count, 0);
	host.sending = -EAGAIN;
	cma_host_pass(&host, 10 * SECONDS);
	CU_ASSERT(host.cma->parked_count > 0);
	host.sending = 0;
	host.mad_count = 0;
	rcd_alarms_run(&host.alarms, cma_host_now_ns + 2 * SECONDS, UINT32_MAX);
	CU_ASSERT_EQUAL(host.cma->parked_count, 0);
	cma_host_neighbours(&host);
	CU_ASSERT_EQUAL(host.mad_count, 0);
	host.sending = 0;
	teardown();
}

static void
what_a_client_leaves(void)
{
	struct rcd_cmid *id;

	setup();
	id = in_state(RCD_CMA_CONNECT, RCD_QP_RC);
	CU_ASSERT_PTR_NOT_NULL(id);
	cma_host_client_end(&alice);
	/* Its user has the connection until that is over. */
	CU_ASSERT_EQUAL(host.book.used[RCD_RESOURCE_CM_CONNECTIONS], 1);
	CU_ASSERT_EQUAL(host.book.used[RCD_RESOURCE_CM_IDS], 0);
	cma_host_now_ns += 600 * SECONDS;
	rcd_cma_tick(host.cma, cma_host_now_ns);
	CU_ASSERT_EQUAL(host.book.used[RCD_RESOURCE_CM_CONNECTIONS], 0);
	CU_ASSERT(LIST_EMPTY(&host.cma->rests));
	cma_host_close(&host);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(every_request_in_every_state),
		RCD_TEST(resolutions),
		RCD_TEST(a_device_goes),
		RCD_TEST(connections),
		RCD_TEST(what_peers_offer),
		RCD_TEST(traffic_classes),
		RCD_TEST(traffic_classes_of_groups),
		RCD_TEST(refusals),
		RCD_TEST(a_backlog_is_full),
		RCD_TEST(mads_wait_for_a_neighbour),
		RCD_TEST(what_a_client_leaves),
	};

	return rcd_tap_run("cma_id", tests, sizeof(tests) / sizeof(tests[0]));
}
