/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connections: REQ, REP, RTU; REJ and MRA; DREQ and DREP (IBTA Vol. 1, 12.9).
 */
#include <errno.h>

#include "rcd_cm_priv.h"

/* Reasons of REJ that are given here; others are the host's (12.6.7.2). */
enum {
	REASON_TIMEOUT = 4,
	REASON_INVALID_COMM_ID = 6,
	REASON_STALE = 10,
	REASON_NO_RESOURCES = 3,
	REASON_CONSUMER = 28,
};

/** AP status of an APR: alternate paths are not supported (12.8.2). */
#define AP_NOT_SUPPORTED 2

/* A time that a peer asks for, within what we let it ask for. */
static uint64_t
cm_conn_peer_ns(uint64_t code, uint8_t most)
{
	return rcd_ack_timeout_ns(code < most ? (uint8_t)code : most);
}

/* Spec: IBTA 12.9.8.1 how long an answer may take: the peer's time and twice the network's */
static uint64_t
cm_conn_answer_ns(const struct rcd_cm_agent *agent, uint64_t code)
{
	return cm_conn_peer_ns(code, RCD_CM_TIMEOUT_MAX) + 2 * agent->conf.life_ns;
}

struct rcd_cm_conn *
rcd_cm_connect(struct rcd_cm_agent *agent, const struct rcd_cm_way *way,
	const struct rcd_cm_req *req, void *cookie, uint64_t now_ns)
{
	struct rcd_cm_conn *conn = rcd_cm_alloc(agent, way);
	struct rcd_cm msg = { .attr = RCD_CM_REQ, .req = *req };

	if (conn == NULL)
		return NULL;
	conn->cookie = cookie;
	RCD_CHECK(rcd_cm_step(conn, RCD_CM_STEP_REQ_SENT));
	conn->local_qpn = (uint32_t)req->local_qpn;
	conn->xrc = rcd_cm_req_is_xrc(req);
	conn->retry_count = (uint8_t)req->max_cm_retries;
	conn->timeout_ns = cm_conn_answer_ns(agent, req->remote_cm_response_timeout);
	msg.req.local_comm_id = conn->local_id;
	msg.req.local_ca_guid = rcd_cm_guid(agent->conf.guid, (uint8_t)req->local_ca_guid);
	rcd_cm_ask(conn, &msg, now_ns);
	return conn;
}

static void
cm_conn_build_rej(struct rcd_cm *msg, const struct rcd_cm_conn *conn, enum rcd_cm_about about,
	uint16_t reason)
{
	*msg = (struct rcd_cm){ .attr = RCD_CM_REJ };
	msg->rej.local_comm_id = conn->local_id;
	msg->rej.remote_comm_id = conn->remote_id;
	msg->rej.message_rejected = about;
	msg->rej.reason = reason;
}

/* Refuse what there is no connection for. @param local_id  ours, as the peer says; 0: none yet */
static void
cm_conn_refuse(struct rcd_cm_agent *agent, const struct rcd_cm_way *way, uint64_t local_id,
	uint64_t remote_id, enum rcd_cm_about about, uint16_t reason)
{
	struct rcd_cm msg = { .attr = RCD_CM_REJ };

	msg.rej.local_comm_id = local_id;
	msg.rej.remote_comm_id = remote_id;
	msg.rej.message_rejected = about;
	msg.rej.reason = reason;
	rcd_cm_send_once(agent, way, &msg);
}

/*
 * A REQ names a queue pair that the peer has in a connection. The peer may have forgotten that; or
 * the REQ is not the peer's. It is asked by a DREQ that names no queue pair: who has the connection
 * takes that for a mistake, and who has not answers with a DREP (12.9.8.4), with numbers that only
 * the peer has seen.
 */
static void
cm_conn_doubt(struct rcd_cm_conn *conn, uint64_t now_ns)
{
	struct rcd_cm msg = { .attr = RCD_CM_DREQ };

	if (conn->state != RCD_CM_STATE_ESTABLISHED ||
		(conn->doubted_ns != 0 && now_ns - conn->doubted_ns < RCD_CM_DOUBT_NS))
		return;
	conn->doubted_ns = now_ns;
	msg.dreq.local_comm_id = conn->local_id;
	msg.dreq.remote_comm_id = conn->remote_id;
	rcd_cm_send_once(conn->agent, &conn->way, &msg);
}

/* Spec: IBTA 12.9.8.3.1 what a repeated REQ is answered with */
static void
cm_conn_repeated_req(struct rcd_cm_conn *conn)
{
	conn->agent->counts.duplicates++;
	switch ((enum rcd_cm_state)conn->state) {
	case RCD_CM_STATE_REP_SENT:
		rcd_cm_repeat(conn);
		break;
	case RCD_CM_STATE_TIMEWAIT:
		/* Who was rejected by the peer has nothing to say. */
		if (conn->mad[0] != 0)
			rcd_cm_repeat(conn);
		break;
	case RCD_CM_STATE_AWAITS_REP:
		/* The host has not made up its mind. */
		if (conn->mad[0] != 0)
			rcd_cm_repeat(conn);
		else
			rcd_cm_delay(conn, conn->agent->conf.patience);
		break;
	case RCD_CM_STATE_FREE:
	case RCD_CM_STATE_REQ_SENT:
	case RCD_CM_STATE_AWAITS_RTU:
	case RCD_CM_STATE_ESTABLISHED:
	case RCD_CM_STATE_DREQ_SENT:
	case RCD_CM_STATE_AWAITS_DREP:
	case RCD_CM_STATE_SIDR_SENT:
	case RCD_CM_STATE_AWAITS_SIDR_REP:
		break;
	}
}

void
rcd_cm_rx_req(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns)
{
	const struct rcd_cm_req *req = &msg->req;
	struct rcd_cm_conn *conn = rcd_cm_find_remote(agent, req->local_comm_id, way, false);
	struct rcd_cm_conn *stale;
	uint16_t reason;

	if (conn != NULL) {
		cm_conn_repeated_req(conn);
		return;
	}
	if (!rcd_cm_rate_ok(agent, now_ns))
		return;
	/* Spec: IBTA 12.9.8.3.1 its queue pair is in a connection of ours: the peer forgot that */
	stale = rcd_cm_find_qpn(agent, req->local_qpn, way);
	if (stale != NULL) {
		agent->counts.stale++;
		cm_conn_refuse(agent, way, 0, req->local_comm_id, RCD_CM_ABOUT_REQ, REASON_STALE);
		cm_conn_doubt(stale, now_ns);
		return;
	}
	conn = rcd_cm_alloc(agent, way);
	if (conn == NULL) {
		agent->counts.dropped_full++;
		cm_conn_refuse(
			agent, way, 0, req->local_comm_id, RCD_CM_ABOUT_REQ, REASON_NO_RESOURCES);
		return;
	}
	RCD_CHECK(rcd_cm_step(conn, RCD_CM_STEP_REQ_CAME));
	conn->xrc = rcd_cm_req_is_xrc(req);
	conn->retry_count = (uint8_t)req->max_cm_retries;
	conn->timeout_ns = cm_conn_answer_ns(agent, req->local_cm_response_timeout);
	rcd_cm_know(conn, (uint32_t)req->local_comm_id, (uint32_t)req->local_qpn);
	conn->offered = rcd_cm_guid_offers(req->local_ca_guid);
	reason = rcd_cm_tell(conn, RCD_CM_EVENT_REQ, msg);
	if (reason == 0)
		return;
	if (reason != RCD_CM_DROP)
		cm_conn_refuse(agent, way, 0, req->local_comm_id, RCD_CM_ABOUT_REQ, reason);
	rcd_cm_step(conn, RCD_CM_STEP_REQ_DROPPED);
	rcd_cm_free(conn);
}

int
rcd_cm_reply(struct rcd_cm_conn *conn, const struct rcd_cm_rep *rep, uint64_t now_ns)
{
	struct rcd_cm msg = { .attr = RCD_CM_REP, .rep = *rep };

	if (!rcd_cm_step(conn, RCD_CM_STEP_REP_SENT))
		return -EINVAL;
	conn->local_qpn = rcd_cm_rep_qpn(rep, conn->xrc);
	msg.rep.local_comm_id = conn->local_id;
	msg.rep.remote_comm_id = conn->remote_id;
	msg.rep.local_ca_guid = rcd_cm_guid(conn->agent->conf.guid, (uint8_t)rep->local_ca_guid);
	rcd_cm_ask(conn, &msg, now_ns);
	return 0;
}

void
rcd_cm_rx_rep(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way)
{
	struct rcd_cm_conn *conn = rcd_cm_find(agent, msg->rep.remote_comm_id, way);

	if (conn == NULL) {
		agent->counts.dropped_nobody++;
		cm_conn_refuse(agent, way, msg->rep.remote_comm_id, msg->rep.local_comm_id,
			RCD_CM_ABOUT_REP, REASON_INVALID_COMM_ID);
		return;
	}
	if (rcd_cm_step(conn, RCD_CM_STEP_REP_CAME)) {
		rcd_cm_wake_at(conn, 0);
		rcd_cm_know(conn, (uint32_t)msg->rep.local_comm_id,
			rcd_cm_rep_qpn(&msg->rep, conn->xrc));
		conn->offered = rcd_cm_guid_offers(msg->rep.local_ca_guid);
		conn->mad[0] = 0;
		rcd_cm_tell(conn, RCD_CM_EVENT_REP, msg);
		return;
	}
	agent->counts.duplicates++;
	/* An RTU, a REJ or an MRA was lost; or a REP comes when all that was given up. */
	if (!conn->known)
		cm_conn_refuse(agent, way, msg->rep.remote_comm_id, msg->rep.local_comm_id,
			RCD_CM_ABOUT_REP, REASON_TIMEOUT);
	else if ((conn->state == RCD_CM_STATE_ESTABLISHED ||
			 conn->state == RCD_CM_STATE_AWAITS_RTU ||
			 conn->state == RCD_CM_STATE_TIMEWAIT) &&
		conn->mad[0] != 0)
		rcd_cm_repeat(conn);
}

int
rcd_cm_confirm(struct rcd_cm_conn *conn, const uint8_t *private_data, uint32_t len)
{
	struct rcd_cm msg = { .attr = RCD_CM_RTU };

	if (!rcd_cm_step(conn, RCD_CM_STEP_RTU_SENT))
		return -EINVAL;
	msg.rtu.local_comm_id = conn->local_id;
	msg.rtu.remote_comm_id = conn->remote_id;
	rcd_cm_put_private(msg.rtu.private_data, sizeof(msg.rtu.private_data), private_data, len);
	rcd_cm_send(conn, &msg);
	return 0;
}

void
rcd_cm_rx_rtu(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way)
{
	struct rcd_cm_conn *conn = rcd_cm_find(agent, msg->rtu.remote_comm_id, way);

	if (conn == NULL || conn->remote_id != msg->rtu.local_comm_id) {
		agent->counts.dropped_nobody++;
		return;
	}
	/* It has our number: it is there. What it is told later finds its own way. */
	conn->way.from_link = false;
	if (!rcd_cm_step(conn, RCD_CM_STEP_RTU_CAME)) {
		agent->counts.duplicates++;
		return;
	}
	rcd_cm_wake_at(conn, 0);
	rcd_cm_tell(conn, RCD_CM_EVENT_RTU, msg);
}

int
rcd_cm_heard(struct rcd_cm_conn *conn)
{
	if (!rcd_cm_step(conn, RCD_CM_STEP_RTU_CAME))
		return -EINVAL;
	rcd_cm_wake_at(conn, 0);
	rcd_cm_tell(conn, RCD_CM_EVENT_RTU, NULL);
	return 0;
}

static void
cm_conn_send_rej(struct rcd_cm_conn *conn, enum rcd_cm_step step, enum rcd_cm_about about,
	uint16_t reason, uint64_t now_ns)
{
	struct rcd_cm msg;

	cm_conn_build_rej(&msg, conn, about, reason);
	rcd_cm_send(conn, &msg);
	rcd_cm_timewait(conn, step, now_ns);
}

int
rcd_cm_reject(struct rcd_cm_conn *conn, uint16_t reason, const uint8_t *private_data, uint32_t len,
	uint64_t now_ns)
{
	bool req = conn->state == RCD_CM_STATE_AWAITS_REP;
	struct rcd_cm msg;

	if (!rcd_cm_may(conn, RCD_CM_STEP_REJ_SENT))
		return -EINVAL;
	cm_conn_build_rej(&msg, conn, req ? RCD_CM_ABOUT_REQ : RCD_CM_ABOUT_REP, reason);
	rcd_cm_put_private(msg.rej.private_data, sizeof(msg.rej.private_data), private_data, len);
	rcd_cm_send(conn, &msg);
	rcd_cm_timewait(conn, RCD_CM_STEP_REJ_SENT, now_ns);
	return 0;
}

/*
 * Whether a message can be the peer's: it has its own number of the connection too, once it has
 * told us. Before that it may have had none yet.
 */
static bool
cm_conn_knows(const struct rcd_cm_conn *conn, uint64_t remote_id)
{
	return !conn->known || conn->remote_id == remote_id ||
		(conn->state == RCD_CM_STATE_REP_SENT && remote_id == 0);
}

void
rcd_cm_rx_rej(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns)
{
	const struct rcd_cm_rej *rej = &msg->rej;
	/* Who gave up a REQ before our REP came does not know our ID. */
	struct rcd_cm_conn *conn = rej->remote_comm_id == 0
		? rcd_cm_find_remote(agent, rej->local_comm_id, way, false)
		: rcd_cm_find(agent, rej->remote_comm_id, way);

	if (conn == NULL || !cm_conn_knows(conn, rej->local_comm_id)) {
		agent->counts.dropped_nobody++;
		return;
	}
	if (!rcd_cm_timewait(conn, RCD_CM_STEP_REJ_CAME, now_ns)) {
		agent->counts.duplicates++;
		return;
	}
	/* It has nothing to say any more to who asks again. */
	conn->mad[0] = 0;
	rcd_cm_tell(conn, RCD_CM_EVENT_REJ, msg);
}

int
rcd_cm_delay(struct rcd_cm_conn *conn, uint8_t service_timeout)
{
	bool req = conn->state == RCD_CM_STATE_AWAITS_REP;
	struct rcd_cm msg = { .attr = RCD_CM_MRA };

	if (!rcd_cm_step(conn, RCD_CM_STEP_MRA_SENT))
		return -EINVAL;
	msg.mra.local_comm_id = conn->local_id;
	msg.mra.remote_comm_id = conn->remote_id;
	msg.mra.message_mraed = req ? RCD_CM_ABOUT_REQ : RCD_CM_ABOUT_REP;
	msg.mra.service_timeout = service_timeout & RCD_TIMER_CODE_MASK;
	rcd_cm_send(conn, &msg);
	return 0;
}

/* Spec: IBTA 12.6.6 the peer needs longer: the time to wait begins anew, and is longer */
void
rcd_cm_rx_mra(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns)
{
	struct rcd_cm_conn *conn = rcd_cm_find(agent, msg->mra.remote_comm_id, way);
	enum rcd_cm_about about;

	if (conn == NULL || !cm_conn_knows(conn, msg->mra.local_comm_id)) {
		agent->counts.dropped_nobody++;
		return;
	}
	about = conn->state == RCD_CM_STATE_REQ_SENT ? RCD_CM_ABOUT_REQ : RCD_CM_ABOUT_REP;
	if (msg->mra.message_mraed == about && rcd_cm_step(conn, RCD_CM_STEP_MRA_CAME))
		rcd_cm_wait(conn,
			now_ns + cm_conn_peer_ns(msg->mra.service_timeout, RCD_CM_MRA_MAX) +
				conn->timeout_ns);
	else
		agent->counts.duplicates++;
}

int
rcd_cm_disconnect(
	struct rcd_cm_conn *conn, const uint8_t *private_data, uint32_t len, uint64_t now_ns)
{
	struct rcd_cm msg = { .attr = RCD_CM_DREQ };

	/* Whose RTU is awaited may have sent it, and so be connected. */
	if (!rcd_cm_step(conn, RCD_CM_STEP_DREQ_SENT))
		return -EINVAL;
	msg.dreq.local_comm_id = conn->local_id;
	msg.dreq.remote_comm_id = conn->remote_id;
	msg.dreq.remote_qpn = conn->remote_qpn;
	rcd_cm_put_private(msg.dreq.private_data, sizeof(msg.dreq.private_data), private_data, len);
	rcd_cm_ask(conn, &msg, now_ns);
	return 0;
}

static void
cm_conn_build_drep(struct rcd_cm *msg, uint64_t local_id, uint64_t remote_id)
{
	*msg = (struct rcd_cm){ .attr = RCD_CM_DREP };
	msg->drep.local_comm_id = local_id;
	msg->drep.remote_comm_id = remote_id;
}

int
rcd_cm_disconnected(
	struct rcd_cm_conn *conn, const uint8_t *private_data, uint32_t len, uint64_t now_ns)
{
	struct rcd_cm msg;

	if (!rcd_cm_may(conn, RCD_CM_STEP_DREP_SENT))
		return -EINVAL;
	cm_conn_build_drep(&msg, conn->local_id, conn->remote_id);
	rcd_cm_put_private(msg.drep.private_data, sizeof(msg.drep.private_data), private_data, len);
	rcd_cm_send(conn, &msg);
	rcd_cm_timewait(conn, RCD_CM_STEP_DREP_SENT, now_ns);
	return 0;
}

void
rcd_cm_rx_dreq(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns)
{
	const struct rcd_cm_dreq *dreq = &msg->dreq;
	struct rcd_cm_conn *conn = rcd_cm_find(agent, dreq->remote_comm_id, way);
	struct rcd_cm drep;

	if (conn == NULL || conn->remote_id != dreq->local_comm_id) {
		/* Forgotten here: who asks shall not wait for it. */
		agent->counts.dropped_nobody++;
		cm_conn_build_drep(&drep, dreq->remote_comm_id, dreq->local_comm_id);
		rcd_cm_send_once(agent, way, &drep);
		return;
	}
	/* Spec: IBTA 12.6.9 it names our queue pair; one that does not is somebody's mistake */
	if (dreq->remote_qpn != conn->local_qpn && conn->state != RCD_CM_STATE_TIMEWAIT) {
		agent->counts.dropped_nobody++;
		return;
	}
	if (rcd_cm_step(conn, RCD_CM_STEP_DREQ_CAME)) {
		rcd_cm_wake_at(conn, 0);
		if (conn->released)
			rcd_cm_disconnected(conn, NULL, 0, now_ns);
		else
			rcd_cm_tell(conn, RCD_CM_EVENT_DREQ, msg);
		return;
	}
	cm_conn_build_drep(&drep, conn->local_id, conn->remote_id);
	/* Spec: IBTA 12.9.8.4 both at once: each answers the other */
	if (rcd_cm_timewait(conn, RCD_CM_STEP_DREP_CAME, now_ns)) {
		rcd_cm_send(conn, &drep);
		rcd_cm_tell(conn, RCD_CM_EVENT_DREP, msg);
		return;
	}
	agent->counts.duplicates++;
	if (conn->state == RCD_CM_STATE_TIMEWAIT)
		rcd_cm_send(conn, &drep);
}

void
rcd_cm_rx_drep(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way,
	uint64_t now_ns)
{
	struct rcd_cm_conn *conn = rcd_cm_find(agent, msg->drep.remote_comm_id, way);

	if (conn == NULL || conn->remote_id != msg->drep.local_comm_id) {
		agent->counts.dropped_nobody++;
		return;
	}
	if (conn->doubted_ns != 0 && rcd_cm_timewait(conn, RCD_CM_STEP_PEER_FORGOT, now_ns)) {
		/* The answer to our doubt: it has forgotten the connection. */
		rcd_cm_tell(conn, RCD_CM_EVENT_STALE, NULL);
		return;
	}
	if (!rcd_cm_timewait(conn, RCD_CM_STEP_DREP_CAME, now_ns)) {
		agent->counts.duplicates++;
		return;
	}
	rcd_cm_tell(conn, RCD_CM_EVENT_DREP, msg);
}

void
rcd_cm_rx_lap(struct rcd_cm_agent *agent, const struct rcd_cm *msg, const struct rcd_cm_way *way)
{
	struct rcd_cm apr = { .attr = RCD_CM_APR };

	apr.apr.local_comm_id = msg->lap.remote_comm_id;
	apr.apr.remote_comm_id = msg->lap.local_comm_id;
	apr.apr.ap_status = AP_NOT_SUPPORTED;
	rcd_cm_send_once(agent, way, &apr);
}

void
rcd_cm_give_up(struct rcd_cm_conn *conn, uint64_t now_ns)
{
	switch ((enum rcd_cm_state)conn->state) {
	case RCD_CM_STATE_REQ_SENT:
	case RCD_CM_STATE_REP_SENT:
		/* Spec: IBTA 12.9.8.1 the peer is told, so that it does not wait in its turn */
		cm_conn_send_rej(conn, RCD_CM_STEP_NO_ANSWER,
			conn->state == RCD_CM_STATE_REQ_SENT ? RCD_CM_ABOUT_OTHER
							     : RCD_CM_ABOUT_REP,
			REASON_TIMEOUT, now_ns);
		rcd_cm_tell(conn, RCD_CM_EVENT_TIMEOUT, NULL);
		return;
	case RCD_CM_STATE_DREQ_SENT:
		rcd_cm_timewait(conn, RCD_CM_STEP_DREP_CAME, now_ns);
		rcd_cm_tell(conn, RCD_CM_EVENT_DREP, NULL);
		return;
	case RCD_CM_STATE_SIDR_SENT:
		rcd_cm_timewait(conn, RCD_CM_STEP_NO_ANSWER, now_ns);
		rcd_cm_tell(conn, RCD_CM_EVENT_TIMEOUT, NULL);
		return;
	case RCD_CM_STATE_FREE:
	case RCD_CM_STATE_AWAITS_REP:
	case RCD_CM_STATE_AWAITS_RTU:
	case RCD_CM_STATE_ESTABLISHED:
	case RCD_CM_STATE_AWAITS_DREP:
	case RCD_CM_STATE_TIMEWAIT:
	case RCD_CM_STATE_AWAITS_SIDR_REP:
		return;
	}
}

void
rcd_cm_release(struct rcd_cm_conn *conn, uint64_t now_ns)
{
	struct rcd_cm_sidr_rep rep = { .status = 1 };

	conn->released = true;
	switch ((enum rcd_cm_state)conn->state) {
	case RCD_CM_STATE_REQ_SENT:
		cm_conn_send_rej(
			conn, RCD_CM_STEP_NO_ANSWER, RCD_CM_ABOUT_OTHER, REASON_TIMEOUT, now_ns);
		break;
	case RCD_CM_STATE_AWAITS_REP:
		cm_conn_send_rej(
			conn, RCD_CM_STEP_REJ_SENT, RCD_CM_ABOUT_REQ, REASON_CONSUMER, now_ns);
		break;
	case RCD_CM_STATE_AWAITS_RTU:
		cm_conn_send_rej(
			conn, RCD_CM_STEP_REJ_SENT, RCD_CM_ABOUT_REP, REASON_CONSUMER, now_ns);
		break;
	case RCD_CM_STATE_REP_SENT:
	case RCD_CM_STATE_ESTABLISHED:
		rcd_cm_disconnect(conn, NULL, 0, now_ns);
		break;
	case RCD_CM_STATE_AWAITS_DREP:
		rcd_cm_disconnected(conn, NULL, 0, now_ns);
		break;
	case RCD_CM_STATE_SIDR_SENT:
		rcd_cm_timewait(conn, RCD_CM_STEP_NO_ANSWER, now_ns);
		break;
	case RCD_CM_STATE_AWAITS_SIDR_REP:
		rcd_cm_sidr_reply(conn, &rep, now_ns);
		break;
	case RCD_CM_STATE_FREE:
	case RCD_CM_STATE_DREQ_SENT:
	case RCD_CM_STATE_TIMEWAIT:
		break;
	}
}
