/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The agent: a pool of connections, the tables that find them, their timers, and MADs in and out.
 */
#include "rcd_cm_priv.h"

#include <stdlib.h>

#define INDEX_BITS 16

/* Peers choose the numbers: without the secret they could choose them for one chain. */
static uint32_t
hash(const struct rcd_cm_agent *agent, uint64_t number, const struct rcd_gid *gid)
{
	uint64_t mixed = number ^ agent->conf.secret;

	for (size_t i = 0; i < sizeof(gid->raw); i += 8)
		mixed = (mixed ^ rcd_get_be64(gid->raw + i)) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(mixed >> 32);
}

struct rcd_cm_agent *
rcd_cm_agent_create(const struct rcd_cm_conf *conf)
{
	struct rcd_cm_agent *agent;
	uint32_t buckets = 1;

	if (conf->connections < 1 || conf->connections > UINT32_C(1) << INDEX_BITS)
		return NULL;
	while (buckets < conf->connections)
		buckets *= 2;
	agent = calloc(1, sizeof(*agent) + conf->connections * sizeof(agent->conns[0]));
	if (agent == NULL)
		return NULL;
	agent->conf = *conf;
	agent->bucket_mask = buckets - 1;
	agent->next_tid = conf->first_tid;
	agent->by_id = calloc(buckets, sizeof(agent->by_id[0]));
	agent->by_qpn = calloc(buckets, sizeof(agent->by_qpn[0]));
	agent->heap = calloc(conf->connections, sizeof(agent->heap[0]));
	if (agent->by_id == NULL || agent->by_qpn == NULL || agent->heap == NULL) {
		rcd_cm_agent_destroy(agent);
		return NULL;
	}
	return agent;
}

void
rcd_cm_agent_destroy(struct rcd_cm_agent *agent)
{
	if (agent == NULL)
		return;
	free(agent->by_id);
	free(agent->by_qpn);
	free(agent->heap);
	free(agent);
}

uint32_t
rcd_cm_agent_used(const struct rcd_cm_agent *agent)
{
	return agent->used;
}

const struct rcd_cm_counts *
rcd_cm_agent_counts(const struct rcd_cm_agent *agent)
{
	return &agent->counts;
}

struct rcd_cm_conn *
rcd_cm_alloc(struct rcd_cm_agent *agent, const struct rcd_cm_way *way)
{
	struct rcd_cm_conn *conn = agent->free;
	uint16_t generation;
	uint32_t index;

	if (conn != NULL)
		agent->free = conn->next;
	else if (agent->fresh < agent->conf.connections)
		conn = &agent->conns[agent->fresh++];
	else
		return NULL;
	agent->used++;
	generation = (uint16_t)(conn->generation + 1);
	index = (uint32_t)(conn - agent->conns);
	*conn = (struct rcd_cm_conn){
		.agent = agent,
		.generation = generation,
		.local_id =
			(index | (uint32_t)generation << INDEX_BITS) ^ (uint32_t)agent->conf.secret,
		.way = *way,
		.place = RCD_CM_NOWHERE,
	};
	return conn;
}

static void
unlink_peer(struct rcd_cm_conn *conn)
{
	struct rcd_cm_agent *agent = conn->agent;
	struct rcd_cm_conn **at =
		&agent->by_id[hash(agent, conn->remote_id, &conn->way.remote) & agent->bucket_mask];

	while (*at != conn)
		at = &(*at)->next_id;
	*at = conn->next_id;
	at = &agent->by_qpn[hash(agent, conn->remote_qpn, &conn->way.remote) & agent->bucket_mask];
	while (*at != conn)
		at = &(*at)->next_qpn;
	*at = conn->next_qpn;
	conn->known = false;
}

void
rcd_cm_know(struct rcd_cm_conn *conn, uint32_t remote_id, uint32_t remote_qpn)
{
	struct rcd_cm_agent *agent = conn->agent;
	struct rcd_cm_conn **id, **qpn;

	RCD_CHECK(!conn->known);
	conn->remote_id = remote_id;
	conn->remote_qpn = remote_qpn;
	conn->known = true;
	id = &agent->by_id[hash(agent, remote_id, &conn->way.remote) & agent->bucket_mask];
	conn->next_id = *id;
	*id = conn;
	qpn = &agent->by_qpn[hash(agent, remote_qpn, &conn->way.remote) & agent->bucket_mask];
	conn->next_qpn = *qpn;
	*qpn = conn;
}

void
rcd_cm_free(struct rcd_cm_conn *conn)
{
	struct rcd_cm_agent *agent = conn->agent;

	rcd_cm_wake_at(conn, 0);
	if (conn->known)
		unlink_peer(conn);
	conn->state = RCD_CM_STATE_FREE;
	conn->next = agent->free;
	agent->free = conn;
	agent->used--;
}

struct rcd_cm_conn *
rcd_cm_find(struct rcd_cm_agent *agent, uint64_t local_id, const struct rcd_gid *remote)
{
	uint32_t index =
		((uint32_t)local_id ^ (uint32_t)agent->conf.secret) & ((1u << INDEX_BITS) - 1);
	struct rcd_cm_conn *conn;

	if (index >= agent->conf.connections)
		return NULL;
	conn = &agent->conns[index];
	return conn->state != RCD_CM_STATE_FREE && conn->local_id == local_id &&
			rcd_gid_eq(&conn->way.remote, remote)
		? conn
		: NULL;
}

struct rcd_cm_conn *
rcd_cm_find_remote(
	struct rcd_cm_agent *agent, uint64_t remote_id, const struct rcd_gid *remote, bool sidr)
{
	struct rcd_cm_conn *conn =
		agent->by_id[hash(agent, remote_id, remote) & agent->bucket_mask];

	while (conn != NULL &&
		(conn->remote_id != remote_id || conn->sidr != sidr ||
			!rcd_gid_eq(&conn->way.remote, remote)))
		conn = conn->next_id;
	return conn;
}

/*
 * Whether the peer is known to have agreed to this connection of its queue pair: it has answered a
 * message of ours, and so has seen our ID. A REQ alone may be anybody's.
 */
static bool
holds_qp(const struct rcd_cm_conn *conn)
{
	switch ((enum rcd_cm_state)conn->state) {
	case RCD_CM_STATE_AWAITS_RTU:
	case RCD_CM_STATE_ESTABLISHED:
	case RCD_CM_STATE_DREQ_SENT:
	case RCD_CM_STATE_AWAITS_DREP:
		return conn->remote_qpn != 0;
	case RCD_CM_STATE_FREE:
	case RCD_CM_STATE_REQ_SENT:
	case RCD_CM_STATE_AWAITS_REP:
	case RCD_CM_STATE_REP_SENT:
	case RCD_CM_STATE_TIMEWAIT:
	case RCD_CM_STATE_SIDR_SENT:
	case RCD_CM_STATE_AWAITS_SIDR_REP:
		return false;
	}
	return false;
}

struct rcd_cm_conn *
rcd_cm_find_qpn(struct rcd_cm_agent *agent, uint64_t remote_qpn, const struct rcd_gid *remote)
{
	struct rcd_cm_conn *conn =
		agent->by_qpn[hash(agent, remote_qpn, remote) & agent->bucket_mask];

	while (conn != NULL &&
		(conn->remote_qpn != remote_qpn || conn->sidr || !holds_qp(conn) ||
			!rcd_gid_eq(&conn->way.remote, remote)))
		conn = conn->next_qpn;
	return conn;
}

/* A binary heap by deadline. */

static void
heap_put(struct rcd_cm_agent *agent, uint32_t place, struct rcd_cm_conn *conn)
{
	agent->heap[place] = conn;
	conn->place = place;
}

static void
heap_settle(struct rcd_cm_agent *agent, uint32_t place)
{
	struct rcd_cm_conn *conn = agent->heap[place];

	while (place > 0 && conn->deadline_ns < agent->heap[(place - 1) / 2]->deadline_ns) {
		heap_put(agent, place, agent->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child + 1 < agent->heap_count &&
			agent->heap[child + 1]->deadline_ns < agent->heap[child]->deadline_ns)
			child++;
		if (child >= agent->heap_count ||
			conn->deadline_ns <= agent->heap[child]->deadline_ns)
			break;
		heap_put(agent, place, agent->heap[child]);
		place = child;
	}
	heap_put(agent, place, conn);
}

void
rcd_cm_wake_at(struct rcd_cm_conn *conn, uint64_t at_ns)
{
	struct rcd_cm_agent *agent = conn->agent;
	uint32_t place = conn->place;

	conn->deadline_ns = at_ns;
	if (at_ns != 0) {
		if (place == RCD_CM_NOWHERE)
			heap_put(agent, place = agent->heap_count++, conn);
		heap_settle(agent, place);
	} else if (place != RCD_CM_NOWHERE) {
		conn->place = RCD_CM_NOWHERE;
		if (place != --agent->heap_count) {
			heap_put(agent, place, agent->heap[agent->heap_count]);
			heap_settle(agent, place);
		}
	}
}

uint64_t
rcd_cm_next_deadline(const struct rcd_cm_agent *agent)
{
	return agent->heap_count > 0 ? agent->heap[0]->deadline_ns : 0;
}

static void
build_mad(uint8_t *mad, const struct rcd_cm *msg, uint64_t tid)
{
	struct rcd_mad hdr = {
		.base_version = RCD_MAD_BASE_VERSION,
		.mgmt_class = RCD_MAD_CLASS_CM,
		.class_version = RCD_CM_CLASS_VERSION,
		.method = RCD_CM_METHOD_SEND,
		.tid = tid,
		.attr_id = (uint16_t)msg->attr,
	};

	rcd_mad_build(mad, &hdr);
	rcd_cm_build(mad + RCD_MAD_HDR_LEN, msg);
}

void
rcd_cm_send_once(struct rcd_cm_agent *agent, const struct rcd_cm_way *way, const struct rcd_cm *msg)
{
	uint8_t mad[RCD_MAD_LEN];

	build_mad(mad, msg, agent->next_tid++);
	agent->counts.sent[msg->attr]++;
	agent->conf.ops->send(agent->conf.arg, way, mad);
}

void
rcd_cm_send(struct rcd_cm_conn *conn, const struct rcd_cm *msg)
{
	struct rcd_cm_agent *agent = conn->agent;

	build_mad(conn->mad, msg, agent->next_tid++);
	agent->counts.sent[msg->attr]++;
	agent->conf.ops->send(agent->conf.arg, &conn->way, conn->mad);
}

void
rcd_cm_repeat(struct rcd_cm_conn *conn)
{
	struct rcd_cm_agent *agent = conn->agent;

	agent->counts.sent_again++;
	agent->conf.ops->send(agent->conf.arg, &conn->way, conn->mad);
}

void
rcd_cm_ask(struct rcd_cm_conn *conn, const struct rcd_cm *msg, uint64_t now_ns)
{
	conn->retries = conn->retry_count;
	conn->limit_ns = now_ns + RCD_CM_ASK_NS;
	rcd_cm_wait(conn, now_ns + conn->timeout_ns);
	rcd_cm_send(conn, msg);
}

void
rcd_cm_wait(struct rcd_cm_conn *conn, uint64_t at_ns)
{
	rcd_cm_wake_at(conn, at_ns < conn->limit_ns ? at_ns : conn->limit_ns);
}

uint16_t
rcd_cm_tell(struct rcd_cm_conn *conn, enum rcd_cm_event event, const struct rcd_cm *msg)
{
	if (conn->released && event != RCD_CM_EVENT_GONE)
		return 0;
	return conn->agent->conf.ops->event(conn->agent->conf.arg, conn, event, msg);
}

void
rcd_cm_timewait(struct rcd_cm_conn *conn, uint64_t now_ns)
{
	conn->state = RCD_CM_STATE_TIMEWAIT;
	rcd_cm_wake_at(conn, now_ns + 4 * conn->agent->conf.life_ns + 1);
}

void
rcd_cm_expire(struct rcd_cm_agent *agent, uint64_t now_ns)
{
	while (agent->heap_count > 0 && agent->heap[0]->deadline_ns <= now_ns) {
		struct rcd_cm_conn *conn = agent->heap[0];

		if (conn->state == RCD_CM_STATE_TIMEWAIT) {
			rcd_cm_tell(conn, RCD_CM_EVENT_GONE, NULL);
			rcd_cm_free(conn);
		} else if (conn->retries > 0 && now_ns < conn->limit_ns) {
			conn->retries--;
			rcd_cm_wait(conn, now_ns + conn->timeout_ns);
			rcd_cm_repeat(conn);
		} else {
			rcd_cm_wake_at(conn, 0);
			rcd_cm_give_up(conn, now_ns);
		}
	}
}

bool
rcd_cm_rate_ok(struct rcd_cm_agent *agent, uint64_t now_ns)
{
	if (now_ns - agent->rate_ns >= 1000000000) {
		agent->rate_ns = now_ns;
		agent->req_count = 0;
	}
	if (agent->conf.req_rate != 0 && agent->req_count >= agent->conf.req_rate) {
		agent->counts.dropped_rate++;
		return false;
	}
	agent->req_count++;
	return true;
}

void
rcd_cm_rx(struct rcd_cm_agent *agent, const uint8_t *mad, const struct rcd_cm_way *way,
	uint64_t now_ns)
{
	struct rcd_mad hdr;
	struct rcd_cm msg;

	if (rcd_mad_parse(mad, RCD_MAD_LEN, &hdr) != RCD_VERDICT_OK ||
		hdr.mgmt_class != RCD_MAD_CLASS_CM || hdr.class_version != RCD_CM_CLASS_VERSION ||
		hdr.method != RCD_CM_METHOD_SEND ||
		!rcd_cm_parse(mad + RCD_MAD_HDR_LEN, hdr.attr_id, &msg)) {
		agent->counts.dropped_class++;
		return;
	}
	agent->counts.received[msg.attr]++;
	switch (msg.attr) {
	case RCD_CM_REQ:
		rcd_cm_rx_req(agent, &msg, way, now_ns);
		break;
	case RCD_CM_MRA:
		rcd_cm_rx_mra(agent, &msg, way, now_ns);
		break;
	case RCD_CM_REJ:
		rcd_cm_rx_rej(agent, &msg, way, now_ns);
		break;
	case RCD_CM_REP:
		rcd_cm_rx_rep(agent, &msg, way);
		break;
	case RCD_CM_RTU:
		rcd_cm_rx_rtu(agent, &msg, way);
		break;
	case RCD_CM_DREQ:
		rcd_cm_rx_dreq(agent, &msg, way, now_ns);
		break;
	case RCD_CM_DREP:
		rcd_cm_rx_drep(agent, &msg, way, now_ns);
		break;
	case RCD_CM_SIDR_REQ:
		rcd_cm_rx_sidr_req(agent, &msg, way, now_ns);
		break;
	case RCD_CM_SIDR_REP:
		rcd_cm_rx_sidr_rep(agent, &msg, way, now_ns);
		break;
	case RCD_CM_LAP:
		rcd_cm_rx_lap(agent, &msg, way);
		break;
	case RCD_CM_APR:
		agent->counts.dropped_nobody++;
		break;
	}
}

enum rcd_cm_state
rcd_cm_conn_state(const struct rcd_cm_conn *conn)
{
	return (enum rcd_cm_state)conn->state;
}

void *
rcd_cm_cookie(const struct rcd_cm_conn *conn)
{
	return conn->cookie;
}

void
rcd_cm_set_cookie(struct rcd_cm_conn *conn, void *cookie)
{
	conn->cookie = cookie;
}

void *
rcd_cm_owner(const struct rcd_cm_conn *conn)
{
	return conn->owner;
}

void
rcd_cm_set_owner(struct rcd_cm_conn *conn, void *owner)
{
	conn->owner = owner;
}

const struct rcd_cm_way *
rcd_cm_conn_way(const struct rcd_cm_conn *conn)
{
	return &conn->way;
}
