/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connecting, accepting, refusing, disconnecting; a queue pair of the identifier follows.
 */
#include "rcd_rm.h"

#include <string.h>

#define RETRIES_MOST 7 /**< when the application says nothing */

/* @return 0, or -EINVAL for more than the device has */
static int
rm_conn_take_depths(struct rcd_rm_id *id, const struct rdma_conn_param *param)
{
	uint8_t most = id->device->max_rd_atomic;

	if (param == NULL || param->responder_resources == RDMA_MAX_RESP_RES)
		id->responder_resources = rcd_rm_at_most(id->responder_resources, most);
	else if (param->responder_resources <= most)
		id->responder_resources = param->responder_resources;
	else
		return -EINVAL;
	if (param == NULL || param->initiator_depth == RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = rcd_rm_at_most(id->initiator_depth, most);
	else if (param->initiator_depth <= most)
		id->initiator_depth = param->initiator_depth;
	else
		return -EINVAL;
	return 0;
}

/* @return 0, or -EINVAL for more private data than any message has room for */
static int
rm_conn_fill(const struct rcd_rm_id *id, const struct rdma_conn_param *param,
	struct rcd_ctrl_cm_param_req *req)
{
	const struct rdma_cm_id *base = &id->base;
	size_t len = id->connect_len;

	*req = (struct rcd_ctrl_cm_param_req){
		.id = id->handle,
		.param = { .responder_resources = id->responder_resources,
			.initiator_depth = id->initiator_depth,
			.retry_count = RETRIES_MOST,
			.rnr_retry_count = RETRIES_MOST,
			.ece_vendor_id = id->local_ece.vendor_id,
			.ece_options = id->local_ece.options },
	};
	if (base->qp != NULL) {
		req->qpn = base->qp->qp_num;
		req->param.srq = base->qp->srq != NULL;
	} else if (param != NULL) {
		req->qpn = param->qp_num;
		req->param.srq = param->srq;
	}
	if (param != NULL) {
		req->param.flow_control = param->flow_control;
		req->param.retry_count = param->retry_count;
		req->param.rnr_retry_count = param->rnr_retry_count;
		if (param->private_data != NULL)
			len += param->private_data_len;
	}
	if (len > sizeof(req->param.private_data))
		return -EINVAL;
	memcpy(req->param.private_data, id->connect_data, id->connect_len);
	if (len > id->connect_len)
		memcpy(req->param.private_data + id->connect_len, param->private_data,
			param->private_data_len);
	req->param.private_len = (uint8_t)len;
	return 0;
}

int
rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_ctrl_cm_param_req req;
	int err = 0;

	if (id->device == NULL || (base->qp == NULL && param == NULL))
		return rcd_rm_ret(-EINVAL);
	id->responder_resources = id->initiator_depth = id->device->max_rd_atomic;
	if (base->qp_type != IBV_QPT_UD)
		err = rm_conn_take_depths(id, param);
	if (err == 0)
		err = rm_conn_fill(id, param, &req);
	if (err == 0)
		err = rcd_rm_call(id, RCD_CTRL_CM_CONNECT, &req, NULL);
	if (err != 0)
		return rcd_rm_ret(err);
	id->connect_len = 0;
	return rcd_rm_complete(id);
}

int
rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	struct rcd_ctrl_cm_param_req req;
	bool datagram = base->qp_type == IBV_QPT_UD;
	int err;

	rcd_rm_look(id);
	if (id->device == NULL)
		return rcd_rm_ret(-EINVAL);
	err = datagram ? 0 : rm_conn_take_depths(id, param);
	if (err == 0 && base->qp != NULL && !datagram)
		err = rcd_rm_qp_to_rts(id);
	if (err == 0)
		err = rm_conn_fill(id, param, &req);
	if (err == 0)
		err = rcd_rm_call(id, RCD_CTRL_CM_ACCEPT, &req, NULL);
	if (err != 0) {
		rcd_rm_qp_error(id);
		return rcd_rm_ret(err);
	}
	return datagram ? 0 : rcd_rm_complete(id);
}

int
rdma_establish(struct rdma_cm_id *base)
{
	/* With a queue pair of its own the library does it. */
	if (base->qp != NULL)
		return rcd_rm_ret(-EINVAL);
	return rcd_rm_ret(rcd_rm_call_handle(rcd_rm_id(base), RCD_CTRL_CM_ESTABLISH, NULL));
}

static int
rm_conn_reject(
	struct rdma_cm_id *base, uint16_t reason, const void *private_data, uint8_t private_len)
{
	struct rcd_ctrl_cm_reject_req req = { .id = rcd_rm_id(base)->handle, .reason = reason };

	rcd_rm_look(rcd_rm_id(base));
	if (private_data != NULL) {
		if (private_len > sizeof(req.private_data))
			return rcd_rm_ret(-EINVAL);
		memcpy(req.private_data, private_data, private_len);
		req.private_len = private_len;
	}
	return rcd_rm_ret(rcd_rm_call(rcd_rm_id(base), RCD_CTRL_CM_REJECT, &req, NULL));
}

int
rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return rm_conn_reject(id, 0, private_data, private_data_len);
}

int
rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	/* Reason 35: the vendor's options are not supported. */
	return rm_conn_reject(id, 35, private_data, private_data_len);
}

int
rdma_notify(struct rdma_cm_id *base, enum ibv_event_type event)
{
	int err = event == IBV_EVENT_COMM_EST
		? rcd_rm_call_handle(rcd_rm_id(base), RCD_CTRL_CM_HEARD, NULL)
		: 0;

	/* What was known already is no error. */
	return rcd_rm_ret(err == -EINVAL ? 0 : err);
}

int
rdma_disconnect(struct rdma_cm_id *base)
{
	struct rcd_rm_id *id = rcd_rm_id(base);
	int err = rcd_rm_qp_error(id);

	if (err == 0)
		err = rcd_rm_call_handle(id, RCD_CTRL_CM_DISCONNECT, NULL);
	return err != 0 ? rcd_rm_ret(err) : rcd_rm_complete(id);
}

int
rdma_set_local_ece(struct rdma_cm_id *base, struct ibv_ece *ece)
{
	if (base == NULL || base->qp != NULL || ece == NULL || ece->vendor_id == 0 ||
		ece->vendor_id > 0xffffff || ece->comp_mask != 0)
		return rcd_rm_ret(-EINVAL);
	rcd_rm_id(base)->local_ece = *ece;
	return 0;
}

int
rdma_get_remote_ece(struct rdma_cm_id *base, struct ibv_ece *ece)
{
	if (base == NULL || base->qp != NULL || ece == NULL)
		return rcd_rm_ret(-EINVAL);
	*ece = rcd_rm_id(base)->remote_ece;
	return 0;
}
