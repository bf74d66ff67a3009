/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connections of an agent: their pool, the tables that find them, their timers, and how they send
 * and tell. What a message means is not here.
 */
#include "rcd_cm_priv.h"

/* Peers choose the numbers: without the secret they could choose them for one chain. */
static uint32_t
cm_pool_hash(const struct rcd_cm_agent *agent, uint64_t number, const struct rcd_cm_way *way)
{
	uint64_t mixed = number ^ agent->conf.secret;

	mixed = (mixed ^ way->netns) * UINT64_C(0x9e3779b97f4a7c15);
	for (size_t i = 0; i < sizeof(way->remote.raw); i += 8)
		mixed = (mixed ^ rcd_get_be64(way->remote.raw + i)) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(mixed >> 32);
}

static bool
cm_pool_same_end(const struct rcd_cm_way *a, const struct rcd_cm_way *b)
{
	return a->netns == b->netns && rcd_gid_eq(&a->remote, &b->remote);
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
		.local_id = (index | (uint32_t)generation << RCD_CM_INDEX_BITS) ^
			(uint32_t)agent->conf.secret,
		.way = *way,
	};
	return conn;
}

static void
cm_pool_unlink_peer(struct rcd_cm_conn *conn)
{
	struct rcd_cm_agent *agent = conn->agent;
	struct rcd_cm_conn **at = &agent->by_id[cm_pool_hash(agent, conn->remote_id, &conn->way) &
		agent->bucket_mask];

	while (*at != conn)
		at = &(*at)->next_id;
	*at = conn->next_id;
	at = &agent->by_qpn[cm_pool_hash(agent, conn->remote_qpn, &conn->way) & agent->bucket_mask];
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
	id = &agent->by_id[cm_pool_hash(agent, remote_id, &conn->way) & agent->bucket_mask];
	conn->next_id = *id;
	*id = conn;
	qpn = &agent->by_qpn[cm_pool_hash(agent, remote_qpn, &conn->way) & agent->bucket_mask];
	conn->next_qpn = *qpn;
	*qpn = conn;
}

void
rcd_cm_free(struct rcd_cm_conn *conn)
{
	struct rcd_cm_agent *agent = conn->agent;

	rcd_cm_wake_at(conn, 0);
	if (conn->known)
		cm_pool_unlink_peer(conn);
	RCD_CHECK(conn->state == RCD_CM_STATE_FREE);
	conn->next = agent->free;
	agent->free = conn;
	agent->used--;
}

struct rcd_cm_conn *
rcd_cm_find(struct rcd_cm_agent *agent, uint64_t local_id, const struct rcd_cm_way *way)
{
	uint32_t index = ((uint32_t)local_id ^ (uint32_t)agent->conf.secret) &
		((1u << RCD_CM_INDEX_BITS) - 1);
	struct rcd_cm_conn *conn;

	if (index >= agent->conf.connections)
		return NULL;
	conn = &agent->conns[index];
	return conn->state != RCD_CM_STATE_FREE && conn->local_id == local_id &&
			cm_pool_same_end(&conn->way, way)
		? conn
		: NULL;
}

struct rcd_cm_conn *
rcd_cm_find_remote(
	struct rcd_cm_agent *agent, uint64_t remote_id, const struct rcd_cm_way *way, bool sidr)
{
	struct rcd_cm_conn *conn =
		agent->by_id[cm_pool_hash(agent, remote_id, way) & agent->bucket_mask];

	while (conn != NULL &&
		(conn->remote_id != remote_id || conn->sidr != sidr ||
			!cm_pool_same_end(&conn->way, way)))
		conn = conn->next_id;
	return conn;
}

/*
 * Whether the peer is known to have agreed to this connection of its queue pair: it has answered a
 * message of ours, and so has seen our ID. A REQ alone may be anybody's.
 */
static bool
cm_pool_holds_qp(const struct rcd_cm_conn *conn)
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
rcd_cm_find_qpn(struct rcd_cm_agent *agent, uint64_t remote_qpn, const struct rcd_cm_way *way)
{
	struct rcd_cm_conn *conn =
		agent->by_qpn[cm_pool_hash(agent, remote_qpn, way) & agent->bucket_mask];

	while (conn != NULL &&
		(conn->remote_qpn != remote_qpn || conn->sidr || !cm_pool_holds_qp(conn) ||
			!cm_pool_same_end(&conn->way, way)))
		conn = conn->next_qpn;
	return conn;
}

struct rcd_cm_conn *
rcd_cm_of_peer(struct rcd_cm_agent *agent, uint32_t remote_qpn, const struct rcd_cm_way *way)
{
	struct rcd_cm_conn *conn =
		agent->by_qpn[cm_pool_hash(agent, remote_qpn, way) & agent->bucket_mask];

	/* Also one that we have not agreed to yet: its queue pair is made ready before. */
	while (conn != NULL &&
		(conn->remote_qpn != remote_qpn || conn->sidr || conn->released ||
			(conn->state != RCD_CM_STATE_AWAITS_REP &&
				conn->state != RCD_CM_STATE_REP_SENT && !cm_pool_holds_qp(conn)) ||
			!cm_pool_same_end(&conn->way, way)))
		conn = conn->next_qpn;
	return conn;
}

void
rcd_cm_wake_at(struct rcd_cm_conn *conn, uint64_t at_ns)
{
	if (at_ns != 0)
		rcd_heap_set(&conn->agent->timers, &conn->timer, at_ns);
	else
		rcd_heap_del(&conn->agent->timers, &conn->timer);
}

static void
cm_pool_build_mad(uint8_t *mad, const struct rcd_cm *msg, uint64_t tid)
{
	struct rcd_mad hdr = {
		.base_version = RCD_MAD_BASE_VERSION,
		.mgmt_class = RCD_MAD_CLASS_CM,
		.class_version = RCD_CM_CLASS_VERSION,
		.method = RCD_CM_METHOD_SEND,
		.tid = tid,
		.attr_id = (uint16_t)msg->attr,
		.attr_mod = rcd_cm_attr_mod(msg),
	};

	rcd_mad_build(mad, &hdr);
	rcd_cm_build(mad + RCD_MAD_HDR_LEN, msg);
}

void
rcd_cm_send_once(struct rcd_cm_agent *agent, const struct rcd_cm_way *way, const struct rcd_cm *msg)
{
	uint8_t mad[RCD_MAD_LEN];

	cm_pool_build_mad(mad, msg, agent->next_tid++);
	agent->counts.sent[msg->attr]++;
	agent->conf.ops->send(agent->conf.arg, way, mad);
}

void
rcd_cm_send(struct rcd_cm_conn *conn, const struct rcd_cm *msg)
{
	struct rcd_cm_agent *agent = conn->agent;

	cm_pool_build_mad(conn->mad, msg, agent->next_tid++);
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

bool
rcd_cm_timewait(struct rcd_cm_conn *conn, enum rcd_cm_step step, uint64_t now_ns)
{
	if (!rcd_cm_step(conn, step))
		return false;
	RCD_CHECK(conn->state == RCD_CM_STATE_TIMEWAIT);
	rcd_cm_wake_at(conn, now_ns + 4 * conn->agent->conf.life_ns + 1);
	return true;
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
