/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Endpoints: an identifier that is resolved or bound, with its queue pair, in one call.
 */
#include "rcd_rm.h"

#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 2000

static int
rm_ep_make_passive(struct rcd_rm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->base, res->ai_src_addr) != 0)
		return -1;
	if (attr == NULL)
		return 0;
	/* Those that it accepts get a queue pair like this. */
	id->qp_init_attr = malloc(sizeof(*attr));
	if (id->qp_init_attr == NULL)
		return rcd_rm_ret(-ENOMEM);
	*id->qp_init_attr = *attr;
	id->qp_init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	id->ep_pd = pd;
	return 0;
}

static int
rm_ep_make_active(struct rcd_rm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->base, res->ai_src_addr, res->ai_dst_addr, TIMEOUT_MS) != 0 ||
		rdma_resolve_route(&id->base, TIMEOUT_MS) != 0)
		return -1;
	if (attr != NULL) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		if (rdma_create_qp(&id->base, pd, attr) != 0)
			return -1;
	}
	if (res->ai_connect_len > sizeof(id->connect_data))
		return rcd_rm_ret(-EINVAL);
	if (res->ai_connect_len > 0)
		memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
	id->connect_len = (uint8_t)res->ai_connect_len;
	return 0;
}

int
rdma_create_ep(struct rdma_cm_id **given, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *base;
	int err;

	if (given == NULL || res == NULL)
		return rcd_rm_ret(-EINVAL);
	if (rcd_rm_id_create(NULL, &base, NULL, (enum rdma_port_space)res->ai_port_space,
		    (enum ibv_qp_type)res->ai_qp_type) != 0)
		return -1;
	if (res->ai_flags & RAI_PASSIVE)
		err = rm_ep_make_passive(rcd_rm_id(base), res, pd, attr);
	else
		err = rm_ep_make_active(rcd_rm_id(base), res, pd, attr);
	if (err != 0) {
		err = errno;
		rdma_destroy_ep(base);
		errno = err;
		return -1;
	}
	*given = base;
	return 0;
}

void
rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp != NULL)
		rdma_destroy_qp(id);
	if (id->srq != NULL)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

int
rdma_get_request(struct rdma_cm_id *base, struct rdma_cm_id **given)
{
	struct rcd_rm_id *listener = rcd_rm_id(base);
	struct rdma_cm_event *event;
	int err = 0;

	if (given == NULL || !listener->sync)
		return rcd_rm_ret(-EINVAL);
	if (base->event != NULL) {
		rdma_ack_cm_event(base->event);
		base->event = NULL;
	}
	if (rdma_get_cm_event(base->channel, &event) != 0)
		return -1;
	if (event->status != 0 || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		err = event->status < 0 ? event->status : -EINVAL;
		rdma_ack_cm_event(event);
		return rcd_rm_ret(err);
	}
	if (listener->qp_init_attr != NULL) {
		struct ibv_qp_init_attr attr = *listener->qp_init_attr;

		if (rdma_create_qp(event->id, listener->ep_pd, &attr) != 0)
			err = -errno;
	}
	if (err != 0) {
		struct rdma_cm_id *refused = event->id;

		rdma_ack_cm_event(event);
		rdma_destroy_id(refused);
		return rcd_rm_ret(err);
	}
	*given = event->id;
	(*given)->event = event;
	return 0;
}
