/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connections and datagram services of identifiers: what clients ask for becomes messages of the
 * agent. Values that go into messages are the kernel's, but where a comment says otherwise.
 */
#include <errno.h>
#include <string.h>

#include "rcd_cm.h"
#include "rcd_cma_client.h"
#include "rcd_limits.h"
#include "rcd_mr.h"
#include "rcd_number.h"
#include "rcd_qp.h"
#include "rcd_thread.h"

#define RESPONSE_TIMEOUT 18 /**< code: 1.07 s; the kernel's 20 makes a lost message cost 4 s */
#define CM_RETRIES       15
#define ACK_TIMEOUT      17     /**< code: 0.5 s */
#define ACK_DELAY        15     /**< code: what ibv_query_device() says too */
#define MIN_RNR_TIMER    12     /**< code: 0.64 ms; the kernel's 0 means 655 ms */
#define LID_PERMISSIVE   0xffff /**< there are no LIDs on RoCE */
#define REASON_CONSUMER  28     /**< of REJ (IBTA Vol. 1, 12.6.7.2) */

static struct rcd_cma *
cma_conn_cma_of(const struct rcd_cmid *id)
{
	return id->client->cma;
}

static uint8_t
cma_conn_at_most(uint8_t val, uint8_t most)
{
	return val < most ? val : most;
}

/* The header of RDMA CM, and the user's data behind it. @return 0 or -EINVAL when it is too long */
static int
cma_conn_put_private(const struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *asked,
	uint8_t *dst, size_t room)
{
	struct rcd_cma_hdr hdr = {
		.ip_version = id->dst.family,
		.port = id->src.port,
		.src = rcd_cma_gid(&id->src),
		.dst = rcd_cma_gid(&id->dst),
	};

	if (asked->param.private_len > room - RCD_CMA_HDR_LEN)
		return -EINVAL;
	rcd_cma_hdr_build(dst, &hdr);
	memcpy(dst + RCD_CMA_HDR_LEN, asked->param.private_data, asked->param.private_len);
	return 0;
}

static void
cma_conn_take_param(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *asked)
{
	id->qpn = asked->qpn & 0xffffff;
	id->responder_resources = asked->param.responder_resources;
	id->initiator_depth = asked->param.initiator_depth;
	if (asked->qkey != 0 || id->qkey == 0)
		id->qkey = asked->qkey != 0 ? asked->qkey : RCD_CMA_UDP_QKEY;
}

/* Where the identifier's messages go: to the peer's address, by its own. */
static int
cma_conn_set_way(struct rcd_cmid *id)
{
	struct rcd_cma_dev dev;

	if (!rcd_cma_dev(cma_conn_cma_of(id), id->dev, &dev))
		return -EINVAL;
	id->way = (struct rcd_cm_way){
		.netns = dev.netns,
		.local = dev.gids->entries[id->sgid_index].gid,
		.remote = rcd_cma_gid(&id->dst),
		/* Paths of connections differ, so that they spread over links and queues. */
		.flow_label = (rcd_cma_random(cma_conn_cma_of(id)) & 0xfffff) | 1,
		.dev = dev.serial,
		.tclass = rcd_cmid_tclass(id, &dev),
		.hop_limit = RCD_HOP_LIMIT,
	};
	return 0;
}

/* What the peer of a connection is told that we can do. */
static uint8_t
cma_conn_offers(const struct rcd_cmid *id)
{
	struct rcd_cma_dev dev;

	return rcd_cma_dev(cma_conn_cma_of(id), id->dev, &dev) && dev.sack ? RCD_CM_OFFERS_SACK : 0;
}

static int
cma_conn_connect_datagram(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *asked)
{
	struct rcd_cm_sidr_req req = {
		.pkey = RCD_PKEY_DEFAULT,
		.service_id = rcd_cma_service_id((enum rcd_cma_space)id->space, id->dst.port),
	};
	int err = cma_conn_put_private(id, asked, req.private_data, sizeof(req.private_data));

	if (err != 0)
		return err;
	id->conn = rcd_cm_sidr(cma_conn_cma_of(id)->agent, &id->way, &req, RESPONSE_TIMEOUT,
		CM_RETRIES, id, rcd_cma_now_ns(cma_conn_cma_of(id)));
	return id->conn != NULL ? 0 : -ENOMEM;
}

static int
cma_conn_connect_reliable(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *asked)
{
	/* Its peer, a target, asks for nothing: what concerns that is left out. */
	bool xrc = id->qp_type == RCD_QP_XRC_SEND;
	struct rcd_cm_req req = {
		.service_id = rcd_cma_service_id((enum rcd_cma_space)id->space, id->dst.port),
		.local_ca_guid = cma_conn_offers(id),
		.local_qpn = id->qpn,
		.responder_resources = xrc ? 0 : asked->param.responder_resources,
		.initiator_depth = asked->param.initiator_depth,
		.remote_cm_response_timeout = RESPONSE_TIMEOUT,
		.transport_service_type = id->qp_type == RCD_QP_UC ? RCD_CM_SERVICE_UC
			: xrc                                      ? RCD_CM_SERVICE_EXTENDED
								   : RCD_CM_SERVICE_RC,
		.extended_transport_type = xrc ? RCD_CM_EXTENDED_XRC : 0,
		.end_to_end_flow_control = asked->param.flow_control != 0,
		.starting_psn = id->psn,
		.local_cm_response_timeout = RESPONSE_TIMEOUT,
		.retry_count = xrc ? 0 : id->retry_count,
		.pkey = RCD_PKEY_DEFAULT,
		.path_mtu = rcd_mtu_code(id->path_mtu_bytes),
		.rnr_retry_count = xrc ? 0 : id->rnr_retry_count,
		.max_cm_retries = CM_RETRIES,
		.srq = !xrc && asked->param.srq != 0,
		.primary_local_lid = LID_PERMISSIVE,
		.primary_remote_lid = LID_PERMISSIVE,
		.primary_local_gid = id->way.local,
		.primary_remote_gid = id->way.remote,
		.primary_flow_label = id->way.flow_label,
		.primary_traffic_class = id->way.tclass,
		.primary_hop_limit = RCD_HOP_LIMIT,
		.primary_local_ack_timeout = id->timeout,
		.vendor_id = asked->param.ece_vendor_id & 0xffffff,
		.vendor_options = asked->param.ece_options,
	};
	int err = cma_conn_put_private(id, asked, req.private_data, sizeof(req.private_data));

	if (err != 0)
		return err;
	id->conn = rcd_cm_connect(cma_conn_cma_of(id)->agent, &id->way, &req, id,
		rcd_cma_now_ns(cma_conn_cma_of(id)));
	return id->conn != NULL ? 0 : -ENOMEM;
}

/*
 * Nobody speaks for queue pairs of others: a peer that is asked for a connection of one takes that
 * as the end of the one that it has. Without a queue pair there is nothing to take.
 */
static bool
cma_conn_may_name(const struct rcd_cmid *id, const void *asker, uint32_t qpn)
{
	return (qpn & 0xffffff) == 0 || cma_conn_cma_of(id)->ops->has_qpn(asker, qpn & 0xffffff);
}

int
rcd_cmid_connect(struct rcd_cmid *id, const void *asker, const struct rcd_ctrl_cm_param_req *asked)
{
	struct rcd_cma_account *account = id->client->account;
	int err;

	RCD_ON_CONTROL();
	if (!rcd_cmid_may(id, RCD_CM_STEP_REQ_SENT) || id->qp_type == RCD_QP_XRC_RECV ||
		!cma_conn_may_name(id, asker, asked->qpn))
		return -EINVAL;
	err = rcd_cma_account_charge(account);
	if (err != 0)
		return err;
	cma_conn_take_param(id, asked);
	id->psn = rcd_cma_random(cma_conn_cma_of(id)) & 0xffffff;
	id->timeout = id->ack_timeout != 0 ? id->ack_timeout : ACK_TIMEOUT;
	id->retry_count = cma_conn_at_most(asked->param.retry_count, 7);
	id->rnr_retry_count = cma_conn_at_most(asked->param.rnr_retry_count, 7);
	err = cma_conn_set_way(id);
	if (err == 0)
		err = id->qp_type == RCD_QP_UD ? cma_conn_connect_datagram(id, asked)
					       : cma_conn_connect_reliable(id, asked);
	if (err != 0) {
		rcd_cma_account_uncharge(account);
		return err;
	}
	rcd_cm_set_owner(id->conn, account);
	rcd_cmid_step(
		id, id->qp_type == RCD_QP_UD ? RCD_CM_STEP_SIDR_REQ_SENT : RCD_CM_STEP_REQ_SENT);
	return 0;
}

static int
cma_conn_accept_datagram(struct rcd_cmid *id, const struct rcd_ctrl_cm_param_req *asked)
{
	struct rcd_cm_sidr_rep rep = {
		.status = RCD_CMA_SIDR_SUPPORTED,
		.qpn = id->qpn,
		.service_id = rcd_cma_service_id((enum rcd_cma_space)id->space, id->src.port),
		.qkey = id->qkey,
	};

	if (asked->param.private_len > sizeof(rep.private_data))
		return -EINVAL;
	memcpy(rep.private_data, asked->param.private_data, asked->param.private_len);
	return rcd_cm_sidr_reply(id->conn, &rep, rcd_cma_now_ns(cma_conn_cma_of(id)));
}

int
rcd_cmid_accept(struct rcd_cmid *id, const void *asker, const struct rcd_ctrl_cm_param_req *asked)
{
	/* A target has no queue of its own, and asks for nothing. */
	bool xrc = id->qp_type == RCD_QP_XRC_RECV;
	struct rcd_cm_rep rep = {
		.local_ca_guid = cma_conn_offers(id),
		.local_qpn = xrc ? 0 : asked->qpn & 0xffffff,
		.local_eecn = xrc ? asked->qpn & 0xffffff : 0,
		.responder_resources = asked->param.responder_resources,
		.initiator_depth = xrc ? 0 : asked->param.initiator_depth,
		.target_ack_delay = ACK_DELAY,
		.end_to_end_flow_control = asked->param.flow_control != 0,
		.rnr_retry_count = cma_conn_at_most(asked->param.rnr_retry_count, 7),
		.srq = xrc || asked->param.srq != 0,
		.vendor_options = asked->param.ece_options,
	};
	enum rcd_cm_step step =
		id->qp_type == RCD_QP_UD ? RCD_CM_STEP_SIDR_REP_SENT : RCD_CM_STEP_REP_SENT;

	RCD_ON_CONTROL();
	if (!rcd_cmid_may(id, step) || id->conn == NULL ||
		!cma_conn_may_name(id, asker, asked->qpn))
		return -EINVAL;
	cma_conn_take_param(id, asked);
	if (id->qp_type == RCD_QP_UD)
		return cma_conn_accept_datagram(id, asked);
	if (asked->param.private_len > sizeof(rep.private_data))
		return -EINVAL;
	memcpy(rep.private_data, asked->param.private_data, asked->param.private_len);
	rep.starting_psn = id->psn;
	rcd_cm_rep_set_vendor_id(&rep, asked->param.ece_vendor_id);
	return rcd_cm_reply(id->conn, &rep, rcd_cma_now_ns(cma_conn_cma_of(id)));
}

int
rcd_cmid_establish(struct rcd_cmid *id)
{
	RCD_ON_CONTROL();
	if (!rcd_cmid_may(id, RCD_CM_STEP_RTU_SENT) || id->conn == NULL)
		return -EINVAL;
	return rcd_cm_confirm(id->conn, NULL, 0);
}

int
rcd_cmid_reject(struct rcd_cmid *id, const struct rcd_ctrl_cm_reject_req *req)
{
	uint16_t reason = req->reason != 0 ? req->reason : REASON_CONSUMER;
	struct rcd_cm_sidr_rep rep = { .status = RCD_CMA_SIDR_REFUSED };
	enum rcd_cm_step step =
		id->qp_type == RCD_QP_UD ? RCD_CM_STEP_SIDR_NO_SENT : RCD_CM_STEP_REJ_SENT;
	int err;

	RCD_ON_CONTROL();
	if (!rcd_cmid_may(id, step) || id->conn == NULL)
		return -EINVAL;
	if (step == RCD_CM_STEP_SIDR_NO_SENT) {
		if (req->private_len > sizeof(rep.private_data))
			return -EINVAL;
		memcpy(rep.private_data, req->private_data, req->private_len);
		err = rcd_cm_sidr_reply(id->conn, &rep, rcd_cma_now_ns(cma_conn_cma_of(id)));
	} else {
		if (req->private_len > RCD_CM_REJ_PRIVATE_LEN)
			return -EINVAL;
		err = rcd_cm_reject(id->conn, reason, req->private_data, req->private_len,
			rcd_cma_now_ns(cma_conn_cma_of(id)));
	}
	if (err == 0)
		rcd_cmid_step(id, step);
	return err;
}

int
rcd_cmid_disconnect(struct rcd_cmid *id)
{
	RCD_ON_CONTROL();
	/* Refused, or ended by the peer, who was answered: nothing is left to send. */
	if (id->state == RCD_CMA_DISCONNECT)
		return 0;
	if (!rcd_cmid_may(id, RCD_CM_STEP_DREQ_SENT) || id->conn == NULL)
		return -EINVAL;
	rcd_cm_disconnect(id->conn, NULL, 0, rcd_cma_now_ns(cma_conn_cma_of(id)));
	return 0;
}

int
rcd_cmid_heard(struct rcd_cmid *id)
{
	RCD_ON_CONTROL();
	return id->conn != NULL ? rcd_cm_heard(id->conn) : -EINVAL;
}

uint8_t
rcd_cmid_tclass(const struct rcd_cmid *id, const struct rcd_cma_dev *dev)
{
	RCD_ON_CONTROL();
	return id->has_tos ? id->tos : dev->tos;
}

void
rcd_cmid_av(const struct rcd_cmid *id, struct rcd_ctrl_av *av)
{
	RCD_ON_CONTROL();
	*av = (struct rcd_ctrl_av){
		.flow_label = id->way.flow_label,
		.sgid_index = (uint8_t)id->sgid_index,
		.tclass = id->way.tclass,
		.hop_limit = RCD_HOP_LIMIT,
	};
	memcpy(av->dgid, id->way.remote.raw, RCD_GID_LEN);
}

static void
cma_conn_attr_init(const struct rcd_cmid *id, struct rcd_ctrl_cm_attr_rep *rep)
{
	rep->mask = RCD_QP_ATTR_STATE | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT;
	rep->attr.port = 1;
	if (id->qp_type == RCD_QP_UD) {
		rep->mask |= RCD_QP_ATTR_QKEY;
		rep->attr.qkey = id->qkey != 0 ? id->qkey : RCD_CMA_UDP_QKEY;
		return;
	}
	rep->mask |= RCD_QP_ATTR_ACCESS;
	if (id->conn == NULL)
		return;
	rep->attr.access = RCD_ACCESS_REMOTE_WRITE;
	if (id->responder_resources > 0)
		rep->attr.access |= RCD_ACCESS_REMOTE_READ | RCD_ACCESS_REMOTE_ATOMIC |
			RCD_ACCESS_FLUSH_GLOBAL | RCD_ACCESS_FLUSH_PERSISTENT;
}

static void
cma_conn_attr_rtr(const struct rcd_cmid *id, struct rcd_ctrl_cm_attr_rep *rep)
{
	rep->mask = RCD_QP_ATTR_STATE;
	if (id->qp_type == RCD_QP_UD)
		return;
	rep->mask |=
		RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU | RCD_QP_ATTR_DEST_QPN | RCD_QP_ATTR_RQ_PSN;
	rcd_cmid_av(id, &rep->attr.av);
	rep->attr.path_mtu_bytes = id->path_mtu_bytes;
	rep->attr.dest_qpn = id->remote_qpn;
	/* Each side says at which PSN the other is to begin (IBTA Vol. 1, 12.7.31). */
	rep->attr.rq_psn = id->psn;
	if (id->qp_type != RCD_QP_RC && id->qp_type != RCD_QP_XRC_RECV)
		return;
	rep->mask |= RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER;
	rep->attr.max_dest_rd_atomic =
		cma_conn_at_most(id->responder_resources, RCD_QP_RD_ATOMIC_MAX);
	rep->attr.min_rnr_timer = MIN_RNR_TIMER;
}

static void
cma_conn_attr_rts(const struct rcd_cmid *id, struct rcd_ctrl_cm_attr_rep *rep)
{
	rep->mask = RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQ_PSN;
	rep->attr.sq_psn = id->remote_psn;
	if (id->qp_type == RCD_QP_UC || id->qp_type == RCD_QP_UD)
		return;
	rep->mask |= RCD_QP_ATTR_TIMEOUT;
	rep->attr.timeout = id->timeout;
	if (id->qp_type == RCD_QP_XRC_RECV)
		return;
	rep->mask |= RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY | RCD_QP_ATTR_MAX_RD_ATOMIC;
	rep->attr.retry_cnt = id->retry_count;
	rep->attr.rnr_retry = id->rnr_retry_count;
	rep->attr.max_rd_atomic = cma_conn_at_most(id->initiator_depth, RCD_QP_RD_ATOMIC_MAX);
}

int
rcd_cmid_qp_attr(const struct rcd_cmid *id, uint32_t state, struct rcd_ctrl_cm_attr_rep *rep)
{
	RCD_ON_CONTROL();
	if (id->dev == RCD_CMA_NO_DEV)
		return -EINVAL;
	rep->attr.state = (uint8_t)state;
	switch (state) {
	case RCD_QP_INIT:
		cma_conn_attr_init(id, rep);
		return 0;
	case RCD_QP_RTR:
		if (id->qp_type != RCD_QP_UD && id->remote_qpn == 0)
			return -EINVAL;
		cma_conn_attr_rtr(id, rep);
		return 0;
	case RCD_QP_RTS:
		cma_conn_attr_rts(id, rep);
		return 0;
	default:
		return -EINVAL;
	}
}
