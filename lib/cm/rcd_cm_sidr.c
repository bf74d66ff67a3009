/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Datagram services: from a service ID to a queue pair and its Q_Key (IBTA Vol. 1, 12.11).
 */
#include <errno.h>

#include "rcd_cm_priv.h"

struct rcd_cm_conn *
rcd_cm_sidr(struct rcd_cm_agent *agent, const struct rcd_cm_way *way,
	const struct rcd_cm_sidr_req *req, uint8_t timeout, uint8_t retries, void *cookie,
	uint64_t now_ns)
{
	struct rcd_cm_conn *conn = rcd_cm_alloc(agent, way);
	struct rcd_cm msg = { .attr = RCD_CM_SIDR_REQ, .sidr_req = *req };

	if (conn == NULL)
		return NULL;
	conn->cookie = cookie;
	conn->sidr = true;
	RCD_CHECK(rcd_cm_step(conn, RCD_CM_STEP_SIDR_REQ_SENT));
	conn->retry_count = retries;
	conn->timeout_ns = rcd_ack_timeout_ns(timeout) + 2 * agent->conf.life_ns;
	msg.sidr_req.request_id = conn->local_id;
	rcd_cm_ask(conn, &msg, now_ns);
	return conn;
}

static void
cm_sidr_answer(struct rcd_cm *msg, const struct rcd_cm_sidr_rep *rep, uint64_t request_id)
{
	*msg = (struct rcd_cm){ .attr = RCD_CM_SIDR_REP, .sidr_rep = *rep };
	msg->sidr_rep.request_id = request_id;
}

void
rcd_cm_rx_sidr_req(struct rcd_cm_agent *agent, const struct rcd_cm *msg,
	const struct rcd_cm_way *way, uint64_t now_ns)
{
	const struct rcd_cm_sidr_req *req = &msg->sidr_req;
	struct rcd_cm_conn *conn = rcd_cm_find_remote(agent, req->request_id, way, true);
	struct rcd_cm_sidr_rep rep = { .service_id = req->service_id };
	struct rcd_cm reply;
	uint16_t status;

	if (conn != NULL) {
		agent->counts.duplicates++;
		if (conn->state == RCD_CM_STATE_TIMEWAIT)
			rcd_cm_repeat(conn);
		return;
	}
	if (!rcd_cm_rate_ok(agent, now_ns))
		return;
	conn = rcd_cm_alloc(agent, way);
	if (conn == NULL) {
		/* Who asks again may find room. */
		agent->counts.dropped_full++;
		return;
	}
	conn->sidr = true;
	RCD_CHECK(rcd_cm_step(conn, RCD_CM_STEP_SIDR_REQ_CAME));
	rcd_cm_know(conn, (uint32_t)req->request_id, 0);
	status = rcd_cm_tell(conn, RCD_CM_EVENT_SIDR_REQ, msg);
	if (status == 0)
		return;
	if (status != RCD_CM_DROP) {
		rep.status = status;
		cm_sidr_answer(&reply, &rep, req->request_id);
		rcd_cm_send_once(agent, way, &reply);
	}
	rcd_cm_step(conn, RCD_CM_STEP_REQ_DROPPED);
	rcd_cm_free(conn);
}

int
rcd_cm_sidr_reply(struct rcd_cm_conn *conn, const struct rcd_cm_sidr_rep *rep, uint64_t now_ns)
{
	enum rcd_cm_step step =
		rep->status == 0 ? RCD_CM_STEP_SIDR_REP_SENT : RCD_CM_STEP_SIDR_NO_SENT;
	struct rcd_cm msg;

	if (!rcd_cm_may(conn, step))
		return -EINVAL;
	cm_sidr_answer(&msg, rep, conn->remote_id);
	rcd_cm_send(conn, &msg);
	rcd_cm_timewait(conn, step, now_ns);
	return 0;
}

void
rcd_cm_rx_sidr_rep(struct rcd_cm_agent *agent, const struct rcd_cm *msg,
	const struct rcd_cm_way *way, uint64_t now_ns)
{
	struct rcd_cm_conn *conn = rcd_cm_find(agent, msg->sidr_rep.request_id, way);
	enum rcd_cm_step step =
		msg->sidr_rep.status == 0 ? RCD_CM_STEP_SIDR_REP_CAME : RCD_CM_STEP_SIDR_NO_CAME;

	if (conn == NULL || !rcd_cm_timewait(conn, step, now_ns)) {
		agent->counts.duplicates += conn != NULL;
		agent->counts.dropped_nobody += conn == NULL;
		return;
	}
	rcd_cm_tell(conn, RCD_CM_EVENT_SIDR_REP, msg);
}
