/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The agent: its making, what comes in, and the passing of time.
 */
#include "rcd_cm_priv.h"

#include <stdlib.h>

struct rcd_cm_agent *
rcd_cm_agent_create(const struct rcd_cm_conf *conf)
{
	struct rcd_cm_agent *agent;
	uint32_t buckets;

	if (conf->connections < 1 || conf->connections > UINT32_C(1) << RCD_CM_INDEX_BITS)
		return NULL;
	buckets = rcd_power_up(conf->connections);
	agent = calloc(1, sizeof(*agent) + conf->connections * sizeof(agent->conns[0]));
	if (agent == NULL)
		return NULL;
	agent->conf = *conf;
	agent->bucket_mask = buckets - 1;
	agent->next_tid = conf->first_tid;
	agent->by_id = calloc(buckets, sizeof(agent->by_id[0]));
	agent->by_qpn = calloc(buckets, sizeof(agent->by_qpn[0]));
	if (agent->by_id == NULL || agent->by_qpn == NULL ||
		rcd_heap_reserve(&agent->timers, conf->connections) != 0) {
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
	rcd_heap_fini(&agent->timers);
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

uint64_t
rcd_cm_next_deadline(const struct rcd_cm_agent *agent)
{
	const struct rcd_heap_entry *first = rcd_heap_first(&agent->timers);

	return first != NULL ? first->key : 0;
}

void
rcd_cm_expire(struct rcd_cm_agent *agent, uint64_t now_ns, uint32_t most)
{
	for (uint32_t i = 0; i < most; i++) {
		struct rcd_heap_entry *first = rcd_heap_first(&agent->timers);
		struct rcd_cm_conn *conn;

		if (first == NULL || first->key > now_ns)
			break;
		conn = RCD_OWNER(first, struct rcd_cm_conn, timer);

		if (rcd_cm_may(conn, RCD_CM_STEP_TIMEWAIT_OVER)) {
			rcd_cm_tell(conn, RCD_CM_EVENT_GONE, NULL);
			rcd_cm_step(conn, RCD_CM_STEP_TIMEWAIT_OVER);
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
	rcd_cm_set_attr_mod(&msg, hdr.attr_mod);
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

uint8_t
rcd_cm_offered(const struct rcd_cm_conn *conn)
{
	return conn->offered;
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
