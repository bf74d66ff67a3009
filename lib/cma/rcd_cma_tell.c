/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the agent tells of connections and datagram services: requests find their listeners, and
 * all becomes events of identifiers.
 */
#include "rcd_cma_tell.h"

#include <errno.h>
#include <string.h>

#include "rcd_cma_client.h"
#include "rcd_cma_event.h"
#include "rcd_number.h"
#include "rcd_thread.h"

/** Reasons of REJ (IBTA Vol. 1, 12.6.7.2). */
enum {
	REASON_INVALID_SERVICE_ID = 8,
	REASON_TRANSPORT = 9,
	REASON_PATH_MTU = 26,
};

static void
cma_tell_post_private(struct rcd_cma_event *event, const uint8_t *data, size_t len)
{
	if (event == NULL)
		return;
	event->rep.param.private_len = (uint8_t)len;
	memcpy(event->rep.param.private_data, data, len);
	rcd_cma_event_post(event);
}

static void
cma_tell_set_addr(struct rcd_ctrl_cm_addr *addr, const struct rcd_gid *gid, uint16_t port)
{
	*addr = (struct rcd_ctrl_cm_addr){
		.port = port,
		.family = rcd_gid_is_ipv4(gid) ? 4 : 6,
	};
	memcpy(addr->addr, gid->raw, RCD_GID_LEN);
}

/*
 * A request finds its listener. @return NULL: none; full is set when its backlog is
 */
static struct rcd_cmid *
cma_tell_new_id(struct rcd_cma *cma, struct rcd_cm_conn *conn, uint64_t service_id,
	const uint8_t *data, bool datagram, bool *full)
{
	const struct rcd_cm_way *way = rcd_cm_conn_way(conn);
	struct rcd_cma_dev dev;
	struct rcd_cmid *listener, *id;
	enum rcd_cma_space space;
	struct rcd_cma_hdr hdr;
	uint16_t port;
	int at;

	*full = false;
	if (!rcd_cma_dev(cma, way->dev, &dev) ||
		!rcd_cma_service_parse(service_id, &space, &port) ||
		!rcd_cma_hdr_parse(data, &hdr) || rcd_gid_table_find(dev.gids, &hdr.dst) < 0)
		return NULL;
	/* The address that the request came to may be gone since. */
	at = rcd_gid_table_find(dev.gids, &way->local);
	if (at < 0)
		return NULL;
	listener = rcd_cma_port_find(cma, &dev, space, port, &hdr.dst);
	if (listener == NULL || (listener->qp_type == RCD_QP_UD) != datagram)
		return NULL;
	if (listener->waiting >= listener->backlog) {
		*full = true;
		return NULL;
	}
	id = rcd_cmid_child(listener);
	if (id == NULL || rcd_cma_account_charge(listener->client->account) != 0) {
		if (id != NULL)
			rcd_cmid_destroy(id);
		*full = true;
		return NULL;
	}
	cma_tell_set_addr(&id->src, &hdr.dst, port);
	cma_tell_set_addr(&id->dst, &hdr.src, hdr.port);
	id->dev = dev.serial;
	id->sgid_index = at;
	id->way = *way;
	id->conn = conn;
	rcd_cm_set_cookie(conn, id);
	rcd_cm_set_owner(conn, listener->client->account);
	return id;
}

/* A request is refused after all, and the agent forgets it without another word. */
static void
cma_tell_forget(struct rcd_cmid *id)
{
	rcd_cma_account_uncharge(rcd_cm_owner(id->conn));
	id->conn = NULL;
	rcd_cmid_destroy(id);
}

/* Tell the listener of a request. @return 0, or RCD_CM_DROP when there is no room */
static uint16_t
cma_tell_request(struct rcd_cmid *id, struct rcd_cma_event *event, const uint8_t *data, size_t len)
{
	struct rcd_cmid *listener = id->listener;

	if (event == NULL) {
		cma_tell_forget(id);
		return RCD_CM_DROP;
	}
	event->of = listener;
	event->rep.listen = listener->handle;
	event->rep.id = id->handle;
	listener->waiting++;
	cma_tell_post_private(event, data + RCD_CMA_HDR_LEN, len - RCD_CMA_HDR_LEN);
	return 0;
}

static uint16_t
cma_tell_no_listener(
	struct rcd_cma *cma, const struct rcd_cm_conn *conn, bool full, uint16_t reason)
{
	if (!full)
		return reason;
	cma->ops->count(cma->arg, rcd_cm_conn_way(conn)->dev, RCD_COUNTER_CM_RX_DROP_BACKLOG, 1);
	return RCD_CM_DROP;
}

/* What fits on the device. @return 0: it has gone */
static uint32_t
cma_tell_path_mtu_bytes(const struct rcd_cmid *id)
{
	struct rcd_cma_dev dev;

	return rcd_cma_dev(id->client->cma, id->dev, &dev) ? dev.path_mtu_bytes : 0;
}

/*
 * The transport service that a REQ asks for, extended ones too (IBTA Vol. 1, 12.6.5).
 *
 * @param qp_type  set: the passive side's. @return false: there is none such here
 */
static bool
cma_tell_service(const struct rcd_cm_req *req, uint8_t *qp_type)
{
	if (rcd_cm_req_is_xrc(req))
		*qp_type = RCD_QP_XRC_RECV;
	else if (req->transport_service_type == RCD_CM_SERVICE_UC)
		*qp_type = RCD_QP_UC;
	else
		*qp_type = RCD_QP_RC;
	return *qp_type != RCD_QP_RC || req->transport_service_type == RCD_CM_SERVICE_RC;
}

static uint16_t
cma_tell_on_req(struct rcd_cma *cma, struct rcd_cm_conn *conn, const struct rcd_cm_req *req)
{
	struct rcd_cma_event *event;
	struct rcd_cmid *id;
	uint8_t qp_type;
	bool full;

	if (!cma_tell_service(req, &qp_type))
		return REASON_TRANSPORT;
	id = cma_tell_new_id(cma, conn, req->service_id, req->private_data, false, &full);
	if (id == NULL)
		return cma_tell_no_listener(cma, conn, full, REASON_INVALID_SERVICE_ID);
	/* Who listens made a queue pair of one service, or will. */
	if (qp_type != id->qp_type) {
		cma_tell_forget(id);
		return REASON_TRANSPORT;
	}
	id->path_mtu_bytes = rcd_mtu_bytes(req->path_mtu);
	if (id->path_mtu_bytes == 0 || id->path_mtu_bytes > cma_tell_path_mtu_bytes(id)) {
		cma_tell_forget(id);
		return REASON_PATH_MTU;
	}
	id->remote_qpn = (uint32_t)req->local_qpn;
	id->remote_psn = (uint32_t)req->starting_psn;
	id->psn = rcd_cma_random(cma) & 0xffffff;
	/* What the peer can initiate we respond to, and the other way round. */
	id->responder_resources = (uint8_t)req->initiator_depth;
	id->initiator_depth = (uint8_t)req->responder_resources;
	id->retry_count = (uint8_t)req->retry_count;
	id->rnr_retry_count = (uint8_t)req->rnr_retry_count;
	id->timeout =
		id->ack_timeout != 0 ? id->ack_timeout : (uint8_t)req->primary_local_ack_timeout;
	id->way.flow_label = (uint32_t)req->primary_flow_label;
	id->way.tclass = (uint8_t)req->primary_traffic_class;
	event = rcd_cma_event(id, RCD_CMA_EVENT_CONNECT_REQUEST, 0);
	if (event != NULL) {
		event->rep.qpn = id->remote_qpn;
		event->rep.param.responder_resources = id->responder_resources;
		event->rep.param.initiator_depth = id->initiator_depth;
		event->rep.param.flow_control = (uint8_t)req->end_to_end_flow_control;
		event->rep.param.retry_count = id->retry_count;
		event->rep.param.rnr_retry_count = id->rnr_retry_count;
		event->rep.param.srq = (uint8_t)req->srq;
		event->rep.param.ece_vendor_id = (uint32_t)req->vendor_id;
		event->rep.param.ece_options = req->vendor_options;
	}
	return cma_tell_request(id, event, req->private_data, sizeof(req->private_data));
}

static uint16_t
cma_tell_on_sidr_req(
	struct rcd_cma *cma, struct rcd_cm_conn *conn, const struct rcd_cm_sidr_req *req)
{
	struct rcd_cma_event *event;
	struct rcd_cmid *id;
	bool full;

	id = cma_tell_new_id(cma, conn, req->service_id, req->private_data, true, &full);
	if (id == NULL)
		return cma_tell_no_listener(cma, conn, full, RCD_CMA_SIDR_NOT_SUPPORTED);
	id->path_mtu_bytes = cma_tell_path_mtu_bytes(id);
	event = rcd_cma_event(id, RCD_CMA_EVENT_CONNECT_REQUEST, 0);
	if (event != NULL)
		rcd_cmid_av(id, &event->rep.av);
	return cma_tell_request(id, event, req->private_data, sizeof(req->private_data));
}

static void
cma_tell_on_rep(struct rcd_cmid *id, const struct rcd_cm_rep *rep)
{
	struct rcd_cma_event *event;

	if (!rcd_cmid_step(id, RCD_CM_STEP_REP_CAME))
		return;
	event = rcd_cma_event(id, RCD_CMA_EVENT_CONNECT_RESPONSE, 0);
	id->remote_qpn = rcd_cm_rep_qpn(rep, id->qp_type == RCD_QP_XRC_SEND);
	id->remote_psn = (uint32_t)rep->starting_psn;
	id->responder_resources = (uint8_t)rep->initiator_depth;
	id->initiator_depth = (uint8_t)rep->responder_resources;
	id->rnr_retry_count = (uint8_t)rep->rnr_retry_count;
	if (event == NULL)
		return;
	event->rep.qpn = id->remote_qpn;
	event->rep.param.responder_resources = id->responder_resources;
	event->rep.param.initiator_depth = id->initiator_depth;
	event->rep.param.flow_control = (uint8_t)rep->end_to_end_flow_control;
	event->rep.param.rnr_retry_count = id->rnr_retry_count;
	event->rep.param.srq = (uint8_t)rep->srq;
	event->rep.param.ece_vendor_id = rcd_cm_rep_vendor_id(rep);
	event->rep.param.ece_options = rep->vendor_options;
	cma_tell_post_private(event, rep->private_data, sizeof(rep->private_data));
}

static void
cma_tell_on_sidr_rep(struct rcd_cmid *id, const struct rcd_cm_sidr_rep *rep)
{
	struct rcd_cma_event *event;

	if (rep->status != RCD_CMA_SIDR_SUPPORTED) {
		rcd_cmid_step(id, RCD_CM_STEP_SIDR_NO_CAME);
		event = rcd_cma_event(id, RCD_CMA_EVENT_UNREACHABLE, (int)rep->status);
		cma_tell_post_private(event, rep->private_data, sizeof(rep->private_data));
		return;
	}
	if (!rcd_cmid_step(id, RCD_CM_STEP_SIDR_REP_CAME))
		return;
	event = rcd_cma_event(id, RCD_CMA_EVENT_ESTABLISHED, 0);
	if (event == NULL)
		return;
	event->rep.qpn = (uint32_t)rep->qpn;
	event->rep.qkey = (uint32_t)rep->qkey;
	rcd_cmid_av(id, &event->rep.av);
	cma_tell_post_private(event, rep->private_data, sizeof(rep->private_data));
}

/* Nothing but an event, if the step is one that is possible. */
static void
cma_tell_on(struct rcd_cmid *id, enum rcd_cm_step step, enum rcd_cma_event_type type, int status)
{
	if (rcd_cmid_step(id, step))
		rcd_cma_event_tell(id, type, status);
}

static void
cma_tell_on_gone(struct rcd_cmid *id)
{
	id->conn = NULL;
	/* Of a datagram service only the question is over. */
	if (id->qp_type != RCD_QP_UD)
		cma_tell_on(id, RCD_CM_STEP_TIMEWAIT_OVER, RCD_CMA_EVENT_TIMEWAIT_EXIT, 0);
}

uint16_t
rcd_cma_on_event(
	void *arg, struct rcd_cm_conn *conn, enum rcd_cm_event event, const struct rcd_cm *msg)
{
	struct rcd_cma *cma = arg;
	struct rcd_cmid *id = rcd_cm_cookie(conn);

	RCD_ON_CONTROL();
	if (event == RCD_CM_EVENT_REQ)
		return cma_tell_on_req(cma, conn, &msg->req);
	if (event == RCD_CM_EVENT_SIDR_REQ)
		return cma_tell_on_sidr_req(cma, conn, &msg->sidr_req);
	if (event == RCD_CM_EVENT_GONE)
		rcd_cma_account_uncharge(rcd_cm_owner(conn));
	if (id == NULL)
		return 0;
	switch (event) {
	case RCD_CM_EVENT_REQ:
	case RCD_CM_EVENT_SIDR_REQ:
		break;
	case RCD_CM_EVENT_REP:
		cma_tell_on_rep(id, &msg->rep);
		break;
	case RCD_CM_EVENT_RTU:
		cma_tell_on(id, RCD_CM_STEP_RTU_CAME, RCD_CMA_EVENT_ESTABLISHED, 0);
		break;
	case RCD_CM_EVENT_REJ:
		rcd_cmid_step(id, RCD_CM_STEP_REJ_CAME);
		cma_tell_post_private(
			rcd_cma_event(id, RCD_CMA_EVENT_REJECTED, (int)msg->rej.reason),
			msg->rej.private_data, sizeof(msg->rej.private_data));
		break;
	case RCD_CM_EVENT_DREQ:
		/* The peer need not wait for the client to look. */
		rcd_cm_disconnected(conn, NULL, 0, rcd_cma_now_ns(cma));
		cma_tell_on(id, RCD_CM_STEP_DREP_SENT, RCD_CMA_EVENT_DISCONNECTED, 0);
		break;
	case RCD_CM_EVENT_DREP:
		cma_tell_on(id, RCD_CM_STEP_DREP_CAME, RCD_CMA_EVENT_DISCONNECTED, 0);
		break;
	case RCD_CM_EVENT_STALE:
		cma_tell_on(id, RCD_CM_STEP_PEER_FORGOT, RCD_CMA_EVENT_DISCONNECTED, 0);
		break;
	case RCD_CM_EVENT_TIMEOUT:
		cma_tell_on(id, RCD_CM_STEP_NO_ANSWER, RCD_CMA_EVENT_UNREACHABLE, -ETIMEDOUT);
		break;
	case RCD_CM_EVENT_SIDR_REP:
		cma_tell_on_sidr_rep(id, &msg->sidr_rep);
		break;
	case RCD_CM_EVENT_GONE:
		cma_tell_on_gone(id);
		break;
	}
	return 0;
}
