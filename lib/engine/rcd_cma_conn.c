/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connections and datagram services of identifiers: what clients ask for becomes messages of the
 * agent, and what the agent tells becomes events. Values that go into messages are the kernel's.
 */
#include <errno.h>

#include "rcd_cma.h"

#define RESPONSE_TIMEOUT 18 /**< code: 1.07 s; the kernel's 20 makes a lost message cost 4 s */
#define CM_RETRIES       15
#define ACK_TIMEOUT      17 /**< code: 0.5 s */
#define ACK_DELAY        15 /**< code: what ibv_query_device() says too */
#define MIN_RNR_TIMER    12 /**< code: 0.64 ms; the kernel's 0 means 655 ms */
#define HOP_LIMIT        64
#define LID_PERMISSIVE   0xffff /**< there are no LIDs on RoCE */
#define FULL_PKEY        0xffff

/** Reasons of REJ (IBTA Vol. 1, 12.6.7.2). */
enum {
	REASON_NO_QP = 1,
	REASON_INVALID_SERVICE_ID = 8,
	REASON_TRANSPORT = 9,
	REASON_PATH_MTU = 26,
	REASON_CONSUMER = 28,
};

/** Status of SIDR_REP (12.11.2.2). */
enum {
	SIDR_SUPPORTED = 0,
	SIDR_NOT_SUPPORTED = 1,
	SIDR_REFUSED = 2,
};

/** Masks of struct ibv_qp_attr, and states. */
enum {
	VERBS_STATE = 1 << 0,
	VERBS_ACCESS = 1 << 3,
	VERBS_PKEY_INDEX = 1 << 4,
	VERBS_PORT = 1 << 5,
	VERBS_QKEY = 1 << 6,
	VERBS_AV = 1 << 7,
	VERBS_PATH_MTU = 1 << 8,
	VERBS_TIMEOUT = 1 << 9,
	VERBS_RETRY_CNT = 1 << 10,
	VERBS_RNR_RETRY = 1 << 11,
	VERBS_RQ_PSN = 1 << 12,
	VERBS_MAX_RD_ATOMIC = 1 << 13,
	VERBS_MIN_RNR_TIMER = 1 << 15,
	VERBS_SQ_PSN = 1 << 16,
	VERBS_MAX_DEST_RD_ATOMIC = 1 << 17,
	VERBS_DEST_QPN = 1 << 20,
	VERBS_INIT = 1,
	VERBS_RTR = 2,
	VERBS_RTS = 3,
};

static struct rcd_cma *
cma_of(const struct rcd_cmid *id)
{
	return id->session->engine->cma;
}

static uint8_t
mtu_code(uint32_t bytes)
{
	uint8_t code = 1;

	while (bytes > 256 && code < 5) {
		bytes /= 2;
		code++;
	}
	return code;
}

static uint8_t
at_most(uint8_t val, uint8_t most)
{
	return val < most ? val : most;
}

/* The header of RDMA CM, and the user's data behind it. @return 0 or -EINVAL when it is too long */
static int
put_private(const struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *param, uint8_t *dst,
	size_t room)
{
	struct rcd_cma_hdr hdr = {
		.ip_version = id->dst.family,
		.port = id->src.port,
		.src = rcd_cma_gid(&id->src),
		.dst = rcd_cma_gid(&id->dst),
	};

	if (param->private_len > room - RCD_CMA_HDR_LEN)
		return -EINVAL;
	rcd_cma_hdr_build(dst, &hdr);
	memcpy(dst + RCD_CMA_HDR_LEN, param->private_data, param->private_len);
	return 0;
}

static void
take_param(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *param)
{
	id->qpn = param->qpn & 0xffffff;
	id->responder_resources = param->responder_resources;
	id->initiator_depth = param->initiator_depth;
	if (param->qkey != 0 || id->qkey == 0)
		id->qkey = param->qkey != 0 ? param->qkey : RCD_CMA_UDP_QKEY;
}

/* Where the identifier's messages go: to the peer's address, by its own. */
static void
set_way(struct rcd_cmid *id)
{
	id->way = (struct rcd_cm_way){
		.local = id->dev->gids->entries[id->sgid_index].gid,
		.remote = rcd_cma_gid(&id->dst),
		/* Paths of connections differ, so that they spread over links and queues. */
		.flow_label = (rcd_cma_random(cma_of(id)) & 0xfffff) | 1,
		.dev = id->dev->serial,
		.tclass = id->tos,
		.hop_limit = HOP_LIMIT,
	};
}

static int
connect_datagram(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *param)
{
	struct rcd_cm_sidr_req req = {
		.pkey = FULL_PKEY,
		.service_id =
			rcd_cma_service_id((enum rcd_cma_space)id->space, id->dst.port),
	};
	int err = put_private(id, param, req.private_data, sizeof(req.private_data));

	if (err != 0)
		return err;
	id->conn = rcd_cm_sidr(cma_of(id)->agent, &id->way, &req, RESPONSE_TIMEOUT, CM_RETRIES, id,
		rcd_clock_ns());
	return id->conn != NULL ? 0 : -ENOMEM;
}

static int
connect_reliable(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *param)
{
	struct rcd_cm_req req = {
		.service_id =
			rcd_cma_service_id((enum rcd_cma_space)id->space, id->dst.port),
		.local_qpn = id->qpn,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.remote_cm_response_timeout = RESPONSE_TIMEOUT,
		.transport_service_type = id->qp_type == RCD_CTRL_QP_UC,
		.end_to_end_flow_control = param->flow_control != 0,
		.starting_psn = id->psn,
		.local_cm_response_timeout = RESPONSE_TIMEOUT,
		.retry_count = id->retry_count,
		.pkey = FULL_PKEY,
		.path_mtu = mtu_code(id->path_mtu_bytes),
		.rnr_retry_count = id->rnr_retry_count,
		.max_cm_retries = CM_RETRIES,
		.srq = param->srq != 0,
		.primary_local_lid = LID_PERMISSIVE,
		.primary_remote_lid = LID_PERMISSIVE,
		.primary_local_gid = id->way.local,
		.primary_remote_gid = id->way.remote,
		.primary_flow_label = id->way.flow_label,
		.primary_traffic_class = id->tos,
		.primary_hop_limit = HOP_LIMIT,
		.primary_local_ack_timeout = id->timeout,
	};
	int err = put_private(id, param, req.private_data, sizeof(req.private_data));

	if (err != 0)
		return err;
	id->conn = rcd_cm_connect(cma_of(id)->agent, &id->way, &req, id, rcd_clock_ns());
	return id->conn != NULL ? 0 : -ENOMEM;
}

int
rcd_cmid_connect(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *param)
{
	int err;

	if (id->state != RCD_CMA_ROUTE_RESOLVED)
		return -EINVAL;
	take_param(id, param);
	id->psn = rcd_cma_random(cma_of(id)) & 0xffffff;
	id->timeout = id->ack_timeout != 0 ? id->ack_timeout : ACK_TIMEOUT;
	id->retry_count = at_most(param->retry_count, 7);
	id->rnr_retry_count = at_most(param->rnr_retry_count, 7);
	set_way(id);
	err = id->qp_type == RCD_CTRL_QP_UD ? connect_datagram(id, param)
					    : connect_reliable(id, param);
	if (err == 0)
		id->state = RCD_CMA_CONNECT;
	return err;
}

static int
accept_datagram(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *param)
{
	struct rcd_cm_sidr_rep rep = {
		.status = SIDR_SUPPORTED,
		.qpn = id->qpn,
		.service_id =
			rcd_cma_service_id((enum rcd_cma_space)id->space, id->src.port),
		.qkey = id->qkey,
	};

	if (param->private_len > sizeof(rep.private_data))
		return -EINVAL;
	memcpy(rep.private_data, param->private_data, param->private_len);
	return rcd_cm_sidr_reply(id->conn, &rep, rcd_clock_ns());
}

int
rcd_cmid_accept(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *param)
{
	struct rcd_cm_rep rep = {
		.local_qpn = param->qpn & 0xffffff,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.target_ack_delay = ACK_DELAY,
		.end_to_end_flow_control = param->flow_control != 0,
		.rnr_retry_count = at_most(param->rnr_retry_count, 7),
		.srq = param->srq != 0,
	};

	if (id->state != RCD_CMA_CONNECT || id->conn == NULL)
		return -EINVAL;
	take_param(id, param);
	if (id->qp_type == RCD_CTRL_QP_UD)
		return accept_datagram(id, param);
	if (param->private_len > sizeof(rep.private_data))
		return -EINVAL;
	memcpy(rep.private_data, param->private_data, param->private_len);
	rep.starting_psn = id->psn;
	return rcd_cm_reply(id->conn, &rep, rcd_clock_ns());
}

int
rcd_cmid_establish(struct rcd_cmid *id)
{
	int err;

	if (id->state != RCD_CMA_CONNECT || id->conn == NULL || !id->agreed)
		return -EINVAL;
	err = rcd_cm_confirm(id->conn, NULL, 0);
	id->agreed = false;
	return err;
}

int
rcd_cmid_reject(struct rcd_cmid *id, const struct rcd_ctrl_cm_reject_req *req)
{
	uint16_t reason = req->reason != 0 ? req->reason : REASON_CONSUMER;
	struct rcd_cm_sidr_rep rep = { .status = SIDR_REFUSED };
	int err;

	if (id->state != RCD_CMA_CONNECT || id->conn == NULL)
		return -EINVAL;
	if (id->qp_type == RCD_CTRL_QP_UD) {
		if (req->private_len > sizeof(rep.private_data))
			return -EINVAL;
		memcpy(rep.private_data, req->private_data, req->private_len);
		err = rcd_cm_sidr_reply(id->conn, &rep, rcd_clock_ns());
	} else {
		if (req->private_len > RCD_CM_REJ_PRIVATE_LEN)
			return -EINVAL;
		err = rcd_cm_reject(
			id->conn, reason, req->private_data, req->private_len, rcd_clock_ns());
	}
	if (err == 0)
		id->state = RCD_CMA_DISCONNECT;
	return err;
}

int
rcd_cmid_disconnect(struct rcd_cmid *id)
{
	/* Whose peer has disconnected, and was told that we know, is done. */
	if (id->state == RCD_CMA_DISCONNECT)
		return 0;
	if (id->state != RCD_CMA_CONNECT || id->conn == NULL)
		return -EINVAL;
	/* In other states there is nothing to end: it is not an error, as with the kernel. */
	rcd_cm_disconnect(id->conn, NULL, 0, rcd_clock_ns());
	return 0;
}

int
rcd_cmid_heard(struct rcd_cmid *id)
{
	return id->conn != NULL ? rcd_cm_heard(id->conn) : -EINVAL;
}

static void
av_of(const struct rcd_cmid *id, struct rcd_ctrl_av *av)
{
	*av = (struct rcd_ctrl_av){
		.flow_label = id->way.flow_label,
		.sgid_index = (uint8_t)id->sgid_index,
		.tclass = id->way.tclass,
		.hop_limit = HOP_LIMIT,
	};
	memcpy(av->dgid, id->way.remote.raw, RCD_GID_LEN);
}

static void
attr_init(const struct rcd_cmid *id, struct rcd_ctrl_cm_attr_rep *rep)
{
	rep->mask = VERBS_STATE | VERBS_PKEY_INDEX | VERBS_PORT;
	rep->attr.port = 1;
	if (id->qp_type == RCD_CTRL_QP_UD) {
		rep->mask |= VERBS_QKEY;
		rep->attr.qkey = id->qkey != 0 ? id->qkey : RCD_CMA_UDP_QKEY;
		return;
	}
	rep->mask |= VERBS_ACCESS;
	if (id->conn == NULL)
		return;
	rep->attr.access = RCD_ACCESS_REMOTE_WRITE;
	if (id->responder_resources > 0)
		rep->attr.access |= RCD_ACCESS_REMOTE_READ | RCD_ACCESS_REMOTE_ATOMIC;
}

static void
attr_rtr(const struct rcd_cmid *id, struct rcd_ctrl_cm_attr_rep *rep)
{
	rep->mask = VERBS_STATE;
	if (id->qp_type == RCD_CTRL_QP_UD)
		return;
	rep->mask |= VERBS_AV | VERBS_PATH_MTU | VERBS_DEST_QPN | VERBS_RQ_PSN;
	av_of(id, &rep->attr.av);
	rep->attr.path_mtu_bytes = id->path_mtu_bytes;
	rep->attr.dest_qpn = id->remote_qpn;
	rep->attr.rq_psn = id->remote_psn;
	if (id->qp_type != RCD_CTRL_QP_RC)
		return;
	rep->mask |= VERBS_MAX_DEST_RD_ATOMIC | VERBS_MIN_RNR_TIMER;
	rep->attr.max_dest_rd_atomic = at_most(id->responder_resources, RCD_QP_RD_ATOMIC_MAX);
	rep->attr.min_rnr_timer = MIN_RNR_TIMER;
}

static void
attr_rts(const struct rcd_cmid *id, struct rcd_ctrl_cm_attr_rep *rep)
{
	rep->mask = VERBS_STATE | VERBS_SQ_PSN;
	rep->attr.sq_psn = id->psn;
	if (id->qp_type != RCD_CTRL_QP_RC)
		return;
	rep->mask |= VERBS_TIMEOUT | VERBS_RETRY_CNT | VERBS_RNR_RETRY | VERBS_MAX_RD_ATOMIC;
	rep->attr.timeout = id->timeout;
	rep->attr.retry_cnt = id->retry_count;
	rep->attr.rnr_retry = id->rnr_retry_count;
	rep->attr.max_rd_atomic = at_most(id->initiator_depth, RCD_QP_RD_ATOMIC_MAX);
}

int
rcd_cmid_qp_attr(const struct rcd_cmid *id, uint32_t state, struct rcd_ctrl_cm_attr_rep *rep)
{
	if (id->dev == NULL)
		return -EINVAL;
	rep->attr.state = (uint8_t)state;
	switch (state) {
	case VERBS_INIT:
		attr_init(id, rep);
		return 0;
	case VERBS_RTR:
		if (id->qp_type != RCD_CTRL_QP_UD && id->remote_qpn == 0)
			return -EINVAL;
		attr_rtr(id, rep);
		return 0;
	case VERBS_RTS:
		attr_rts(id, rep);
		return 0;
	default:
		return -EINVAL;
	}
}

/* What the agent tells. */

static struct rcd_cma_event *
event_of(struct rcd_cmid *id, enum rcd_cma_event_type type, int status)
{
	return rcd_cma_event(id, type, status);
}

static void
post_private(struct rcd_cma_event *event, const uint8_t *data, size_t len)
{
	if (event == NULL)
		return;
	event->rep.private_len = (uint8_t)len;
	memcpy(event->rep.private_data, data, len);
	rcd_cma_event_post(event);
}

static void
post(struct rcd_cmid *id, enum rcd_cma_event_type type, int status)
{
	post_private(event_of(id, type, status), NULL, 0);
}

static void
set_addr(struct rcd_ctrl_cm_addr *addr, const struct rcd_gid *gid, uint16_t port)
{
	*addr = (struct rcd_ctrl_cm_addr){
		.port = port,
		.family = rcd_gid_is_ipv4(gid) ? 4 : 6,
	};
	memcpy(addr->addr, gid->raw, RCD_GID_LEN);
}

static struct rcd_dev *
dev_of(const struct rcd_cma *cma, const struct rcd_cm_way *way)
{
	for (uint32_t i = 0; i < RCD_DEVS_MAX; i++)
		if (cma->engine->devs[i] != NULL && cma->engine->devs[i]->serial == way->dev)
			return cma->engine->devs[i];
	return NULL;
}

/*
 * A request finds its listener. @return NULL: none; full is set when its backlog is
 */
static struct rcd_cmid *
request(struct rcd_cma *cma, struct rcd_cm_conn *conn, uint64_t service_id, const uint8_t *data,
	bool datagram, bool *full)
{
	const struct rcd_cm_way *way = rcd_cm_conn_way(conn);
	struct rcd_dev *dev = dev_of(cma, way);
	struct rcd_cmid *listener, *id;
	enum rcd_cma_space space;
	struct rcd_cma_hdr hdr;
	uint16_t port;

	*full = false;
	if (dev == NULL || !rcd_cma_service_parse(service_id, &space, &port) ||
		!rcd_cma_hdr_parse(data, &hdr) || rcd_dev_gid_find(dev, &hdr.dst) < 0)
		return NULL;
	listener = rcd_cma_port_find(cma, dev, space, port, &hdr.dst);
	if (listener == NULL || (listener->qp_type == RCD_CTRL_QP_UD) != datagram)
		return NULL;
	if (listener->waiting >= listener->backlog) {
		*full = true;
		return NULL;
	}
	id = rcd_cmid_child(listener);
	if (id == NULL) {
		*full = true;
		return NULL;
	}
	set_addr(&id->src, &hdr.dst, port);
	set_addr(&id->dst, &hdr.src, hdr.port);
	id->dev = dev;
	id->sgid_index = rcd_dev_gid_find(dev, &way->local);
	id->way = *way;
	id->conn = conn;
	rcd_cm_set_cookie(conn, id);
	return id;
}

/* Tell the listener of a request. @return 0, or RCD_CM_DROP when there is no room */
static uint16_t
tell_request(struct rcd_cmid *id, struct rcd_cma_event *event, const uint8_t *data, size_t len)
{
	struct rcd_cmid *listener = id->listener;

	if (event == NULL) {
		id->conn = NULL;
		rcd_cmid_destroy(id);
		return RCD_CM_DROP;
	}
	event->of = listener;
	event->rep.listen = listener->handle;
	event->rep.id = id->handle;
	listener->waiting++;
	post_private(event, data + RCD_CMA_HDR_LEN, len - RCD_CMA_HDR_LEN);
	return 0;
}

static uint16_t
no_listener(struct rcd_cma *cma, const struct rcd_cm_conn *conn, bool full, uint16_t reason)
{
	const struct rcd_dev *dev = dev_of(cma, rcd_cm_conn_way(conn));

	if (!full)
		return reason;
	if (dev != NULL)
		rcd_counter_add(&dev->counters[cma->engine->lcore_count],
			RCD_COUNTER_CM_RX_DROP_BACKLOG, 1);
	return RCD_CM_DROP;
}

static uint16_t
on_req(struct rcd_cma *cma, struct rcd_cm_conn *conn, const struct rcd_cm_req *req)
{
	struct rcd_cma_event *event;
	struct rcd_cmid *id;
	bool full;

	if (req->transport_service_type > 1)
		return REASON_TRANSPORT;
	id = request(cma, conn, req->service_id, req->private_data, false, &full);
	if (id == NULL)
		return no_listener(cma, conn, full, REASON_INVALID_SERVICE_ID);
	id->path_mtu_bytes = UINT32_C(128) << req->path_mtu;
	if (req->path_mtu < 1 || req->path_mtu > 5 || id->path_mtu_bytes > id->dev->path_mtu) {
		id->conn = NULL;
		rcd_cmid_destroy(id);
		return REASON_PATH_MTU;
	}
	id->qp_type = req->transport_service_type == 1 ? RCD_CTRL_QP_UC : RCD_CTRL_QP_RC;
	id->remote_qpn = (uint32_t)req->local_qpn;
	id->remote_psn = (uint32_t)req->starting_psn;
	id->psn = rcd_cma_random(cma) & 0xffffff;
	/* What the peer can initiate we respond to, and the other way round. */
	id->responder_resources = (uint8_t)req->initiator_depth;
	id->initiator_depth = (uint8_t)req->responder_resources;
	id->retry_count = (uint8_t)req->retry_count;
	id->rnr_retry_count = (uint8_t)req->rnr_retry_count;
	id->timeout = id->ack_timeout != 0 ? id->ack_timeout
					   : (uint8_t)req->primary_local_ack_timeout;
	id->way.flow_label = (uint32_t)req->primary_flow_label;
	id->way.tclass = (uint8_t)req->primary_traffic_class;
	event = event_of(id, RCD_CMA_EVENT_CONNECT_REQUEST, 0);
	if (event != NULL) {
		event->rep.qpn = id->remote_qpn;
		event->rep.responder_resources = id->responder_resources;
		event->rep.initiator_depth = id->initiator_depth;
		event->rep.flow_control = (uint8_t)req->end_to_end_flow_control;
		event->rep.retry_count = id->retry_count;
		event->rep.rnr_retry_count = id->rnr_retry_count;
		event->rep.srq = (uint8_t)req->srq;
	}
	return tell_request(id, event, req->private_data, sizeof(req->private_data));
}

static uint16_t
on_sidr_req(struct rcd_cma *cma, struct rcd_cm_conn *conn, const struct rcd_cm_sidr_req *req)
{
	struct rcd_cma_event *event;
	struct rcd_cmid *id;
	bool full;

	id = request(cma, conn, req->service_id, req->private_data, true, &full);
	if (id == NULL)
		return no_listener(cma, conn, full, SIDR_NOT_SUPPORTED);
	id->path_mtu_bytes = id->dev->path_mtu;
	event = event_of(id, RCD_CMA_EVENT_CONNECT_REQUEST, 0);
	if (event != NULL)
		av_of(id, &event->rep.av);
	return tell_request(id, event, req->private_data, sizeof(req->private_data));
}

static void
on_rep(struct rcd_cmid *id, const struct rcd_cm_rep *rep)
{
	struct rcd_cma_event *event = event_of(id, RCD_CMA_EVENT_CONNECT_RESPONSE, 0);

	id->remote_qpn = (uint32_t)rep->local_qpn;
	id->remote_psn = (uint32_t)rep->starting_psn;
	id->responder_resources = (uint8_t)rep->initiator_depth;
	id->initiator_depth = (uint8_t)rep->responder_resources;
	id->rnr_retry_count = (uint8_t)rep->rnr_retry_count;
	id->agreed = true;
	if (event == NULL)
		return;
	event->rep.qpn = id->remote_qpn;
	event->rep.responder_resources = id->responder_resources;
	event->rep.initiator_depth = id->initiator_depth;
	event->rep.flow_control = (uint8_t)rep->end_to_end_flow_control;
	event->rep.rnr_retry_count = id->rnr_retry_count;
	event->rep.srq = (uint8_t)rep->srq;
	post_private(event, rep->private_data, sizeof(rep->private_data));
}

static void
on_sidr_rep(struct rcd_cmid *id, const struct rcd_cm_sidr_rep *rep)
{
	struct rcd_cma_event *event;

	if (rep->status != SIDR_SUPPORTED) {
		id->state = RCD_CMA_DISCONNECT;
		event = event_of(id, RCD_CMA_EVENT_UNREACHABLE, (int)rep->status);
		post_private(event, rep->private_data, sizeof(rep->private_data));
		return;
	}
	id->remote_qpn = (uint32_t)rep->qpn;
	id->remote_qkey = (uint32_t)rep->qkey;
	event = event_of(id, RCD_CMA_EVENT_ESTABLISHED, 0);
	if (event == NULL)
		return;
	event->rep.qpn = id->remote_qpn;
	event->rep.qkey = id->remote_qkey;
	av_of(id, &event->rep.av);
	post_private(event, rep->private_data, sizeof(rep->private_data));
}

/* The connection ends, by whomever. */
static void
on_end(struct rcd_cmid *id, enum rcd_cma_event_type type, int status)
{
	if (id->state != RCD_CMA_CONNECT)
		return;
	id->state = RCD_CMA_DISCONNECT;
	post(id, type, status);
}

static void
on_gone(struct rcd_cmid *id)
{
	id->conn = NULL;
	/* Of a datagram service only the question is over. */
	if (id->qp_type != RCD_CTRL_QP_UD)
		post(id, RCD_CMA_EVENT_TIMEWAIT_EXIT, 0);
}

uint16_t
rcd_cma_on_event(void *arg, struct rcd_cm_conn *conn, enum rcd_cm_event event,
	const struct rcd_cm *msg)
{
	struct rcd_cma *cma = arg;
	struct rcd_cmid *id = rcd_cm_cookie(conn);

	if (event == RCD_CM_EVENT_REQ)
		return on_req(cma, conn, &msg->req);
	if (event == RCD_CM_EVENT_SIDR_REQ)
		return on_sidr_req(cma, conn, &msg->sidr_req);
	if (id == NULL)
		return 0;
	switch (event) {
	case RCD_CM_EVENT_REQ:
	case RCD_CM_EVENT_SIDR_REQ:
		break;
	case RCD_CM_EVENT_REP:
		on_rep(id, &msg->rep);
		break;
	case RCD_CM_EVENT_RTU:
		post(id, RCD_CMA_EVENT_ESTABLISHED, 0);
		break;
	case RCD_CM_EVENT_REJ:
		id->state = RCD_CMA_DISCONNECT;
		post_private(event_of(id, RCD_CMA_EVENT_REJECTED, (int)msg->rej.reason),
			msg->rej.private_data, sizeof(msg->rej.private_data));
		break;
	case RCD_CM_EVENT_DREQ:
		/* The peer need not wait for the client to look. */
		rcd_cm_disconnected(conn, NULL, 0, rcd_clock_ns());
		on_end(id, RCD_CMA_EVENT_DISCONNECTED, 0);
		break;
	case RCD_CM_EVENT_DREP:
	case RCD_CM_EVENT_STALE:
		on_end(id, RCD_CMA_EVENT_DISCONNECTED, 0);
		break;
	case RCD_CM_EVENT_TIMEOUT:
		on_end(id, RCD_CMA_EVENT_UNREACHABLE, -ETIMEDOUT);
		break;
	case RCD_CM_EVENT_SIDR_REP:
		on_sidr_rep(id, &msg->sidr_rep);
		break;
	case RCD_CM_EVENT_GONE:
		on_gone(id);
		break;
	}
	return 0;
}
