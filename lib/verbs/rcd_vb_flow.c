/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Flows of raw packets: from the verbs' specifications to a key and a mask, which is all that the
 * engine knows of them.
 */
#include "rcd_vb.h"

#include <string.h>

#define PROTO_TCP 6
#define PROTO_UDP 17

/* Layers that a flow has said something of, once each. */
enum {
	LAYER_ETH = 1 << 0,
	LAYER_IP = 1 << 1,
	LAYER_L4 = 1 << 2,
	LAYER_DROP = 1 << 3,
	LAYER_COUNT = 1 << 4,
};

/* Fields of the verbs are in network order, as those of the key. */
#define FLOW_TAKE(req, field, spec, verbs_field)                                                   \
	do {                                                                                       \
		memcpy(&(req)->value.field, &(spec)->val.verbs_field,                              \
			sizeof((spec)->val.verbs_field));                                          \
		memcpy(&(req)->mask.field, &(spec)->mask.verbs_field,                              \
			sizeof((spec)->mask.verbs_field));                                         \
	} while (0)

/* A specification of a layer means frames that have it. */
#define FLOW_NEED(req, field, number) ((req)->value.field = (number), (req)->mask.field = 0xff)

static void
vb_flow_take_eth(struct rcd_ctrl_flow_req *req, const struct ibv_flow_spec_eth *spec)
{
	FLOW_TAKE(req, dst_mac, spec, dst_mac);
	FLOW_TAKE(req, src_mac, spec, src_mac);
	FLOW_TAKE(req, ether_type, spec, ether_type);
	FLOW_TAKE(req, vlan_tag, spec, vlan_tag);
	if (spec->mask.vlan_tag != 0)
		FLOW_NEED(req, tagged, 1);
}

static void
vb_flow_take_ipv4(struct rcd_ctrl_flow_req *req, const struct ibv_flow_spec_ipv4 *spec)
{
	FLOW_NEED(req, version, 4);
	FLOW_TAKE(req, src_ip, spec, src_ip);
	FLOW_TAKE(req, dst_ip, spec, dst_ip);
}

static void
vb_flow_take_ipv4_ext(struct rcd_ctrl_flow_req *req, const struct ibv_flow_spec_ipv4_ext *spec)
{
	FLOW_NEED(req, version, 4);
	FLOW_TAKE(req, src_ip, spec, src_ip);
	FLOW_TAKE(req, dst_ip, spec, dst_ip);
	FLOW_TAKE(req, proto, spec, proto);
	FLOW_TAKE(req, tos, spec, tos);
	FLOW_TAKE(req, ttl, spec, ttl);
	FLOW_TAKE(req, ip_flags, spec, flags);
}

static void
vb_flow_take_ipv6(struct rcd_ctrl_flow_req *req, const struct ibv_flow_spec_ipv6 *spec)
{
	FLOW_NEED(req, version, 6);
	FLOW_TAKE(req, src_ip, spec, src_ip);
	FLOW_TAKE(req, dst_ip, spec, dst_ip);
	FLOW_TAKE(req, flow_label, spec, flow_label);
	FLOW_TAKE(req, proto, spec, next_hdr);
	FLOW_TAKE(req, tos, spec, traffic_class);
	FLOW_TAKE(req, ttl, spec, hop_limit);
}

static void
vb_flow_take_l4(
	struct rcd_ctrl_flow_req *req, const struct ibv_flow_spec_tcp_udp *spec, uint8_t proto)
{
	FLOW_NEED(req, l4, proto);
	FLOW_TAKE(req, src_port, spec, src_port);
	FLOW_TAKE(req, dst_port, spec, dst_port);
}

/* Of each kind of specification, how long it is, and of which layer. @return 0: none of ours */
static uint16_t
vb_flow_spec_len(enum ibv_flow_spec_type type, unsigned int *layer)
{
	switch ((int)type) {
	case IBV_FLOW_SPEC_ETH:
		*layer = LAYER_ETH;
		return sizeof(struct ibv_flow_spec_eth);
	case IBV_FLOW_SPEC_IPV4:
		*layer = LAYER_IP;
		return sizeof(struct ibv_flow_spec_ipv4);
	case IBV_FLOW_SPEC_IPV4_EXT:
		*layer = LAYER_IP;
		return sizeof(struct ibv_flow_spec_ipv4_ext);
	case IBV_FLOW_SPEC_IPV6:
		*layer = LAYER_IP;
		return sizeof(struct ibv_flow_spec_ipv6);
	case IBV_FLOW_SPEC_TCP:
	case IBV_FLOW_SPEC_UDP:
		*layer = LAYER_L4;
		return sizeof(struct ibv_flow_spec_tcp_udp);
	case IBV_FLOW_SPEC_ACTION_DROP:
		*layer = LAYER_DROP;
		return sizeof(struct ibv_flow_spec_action_drop);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		*layer = LAYER_COUNT;
		return sizeof(struct ibv_flow_spec_counter_action);
	}
	return 0;
}

static void
vb_flow_take_spec(struct rcd_ctrl_flow_req *req, const struct ibv_flow_spec *spec)
{
	switch ((int)spec->hdr.type) {
	case IBV_FLOW_SPEC_ETH:
		vb_flow_take_eth(req, &spec->eth);
		break;
	case IBV_FLOW_SPEC_IPV4:
		vb_flow_take_ipv4(req, &spec->ipv4);
		break;
	case IBV_FLOW_SPEC_IPV4_EXT:
		vb_flow_take_ipv4_ext(req, &spec->ipv4_ext);
		break;
	case IBV_FLOW_SPEC_IPV6:
		vb_flow_take_ipv6(req, &spec->ipv6);
		break;
	case IBV_FLOW_SPEC_TCP:
		vb_flow_take_l4(req, &spec->tcp_udp, PROTO_TCP);
		break;
	case IBV_FLOW_SPEC_UDP:
		vb_flow_take_l4(req, &spec->tcp_udp, PROTO_UDP);
		break;
	case IBV_FLOW_SPEC_ACTION_DROP:
		req->drop = 1;
		break;
	}
}

/* @param counters  set if it is to have such @return 0 or an errno value */
static int
vb_flow_take_specs(struct rcd_ctrl_flow_req *req, const struct ibv_flow_attr *attr,
	struct ibv_counters **counters)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);
	unsigned int seen = 0;

	for (unsigned int i = 0; i < attr->num_of_specs; i++) {
		struct ibv_flow_spec spec = { { { 0 } } };
		unsigned int layer = 0;
		uint16_t len;

		/* One may be anywhere, and shorter than the longest. */
		memcpy(&spec.hdr, at, sizeof(spec.hdr));
		len = vb_flow_spec_len(spec.hdr.type, &layer);
		if (len == 0)
			return EOPNOTSUPP;
		if (spec.hdr.size != len || (seen & layer))
			return EINVAL;
		memcpy(&spec, at, len);
		vb_flow_take_spec(req, &spec);
		if (layer == LAYER_COUNT && (*counters = spec.flow_count.counters) == NULL)
			return EINVAL;
		seen |= layer;
		at += len;
	}
	return 0;
}

static int
vb_flow_check(const struct ibv_qp *qp, const struct ibv_flow_attr *attr, uint8_t *kind)
{
	if (attr->comp_mask != 0 || attr->port != 1)
		return EINVAL;
	/* Datagrams are RoCE, which is in no flow. */
	if (qp->qp_type != IBV_QPT_RAW_PACKET)
		return qp->qp_type == IBV_QPT_UD ? EOPNOTSUPP : EINVAL;
	if (attr->flags != 0)
		return EOPNOTSUPP;
	switch ((int)attr->type) {
	case IBV_FLOW_ATTR_NORMAL:
		*kind = RCD_FLOW_NORMAL;
		return 0;
	case IBV_FLOW_ATTR_ALL_DEFAULT:
		*kind = RCD_FLOW_ALL;
		break;
	case IBV_FLOW_ATTR_MC_DEFAULT:
		*kind = RCD_FLOW_MULTICAST;
		break;
	case IBV_FLOW_ATTR_SNIFFER:
		/* Whether the device may show the packets of others, the engine knows. */
		*kind = RCD_FLOW_SNIFFER;
		break;
	default:
		return EINVAL;
	}
	return attr->num_of_specs == 0 ? 0 : EINVAL;
}

struct ibv_flow *
rcd_vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct rcd_ctrl_flow_req req = { .qp = qp->handle, .priority = attr->priority };
	struct ibv_counters *counters = NULL;
	struct rcd_ctrl_handle rep;
	struct rcd_vb_flow *flow;
	int err = vb_flow_check(qp, attr, &req.kind);

	if (err == 0)
		err = vb_flow_take_specs(&req, attr, &counters);
	if (err == 0 && counters != NULL && counters->context != qp->context)
		err = EINVAL;
	if (err != 0) {
		errno = err;
		return NULL;
	}
	flow = rcd_vb_new(qp->context, sizeof(*flow));
	if (flow == NULL)
		return NULL;
	err = rcd_client_call(
		rcd_vb_client(qp->context), RCD_CTRL_FLOW_CREATE, &req, &rep, NULL, NULL);
	if (err != 0) {
		rcd_vb_free(qp->context, flow);
		errno = -err;
		return NULL;
	}
	flow->flow = (struct ibv_flow){ .context = qp->context, .handle = rep.handle };
	flow->counters = (struct rcd_vb_counters *)(void *)counters;
	rcd_vb_counters_enter(flow);
	return &flow->flow;
}

int
rcd_vb_destroy_flow(struct ibv_flow *flow)
{
	struct rcd_vb_context *vb = rcd_vb_context(flow->context);
	struct rcd_ctrl_handle req = { .handle = flow->handle };
	struct rcd_ctrl_flow_counts counts = { 0 };
	int err;

	pthread_mutex_lock(&vb->flow_lock);
	err = rcd_client_call(&vb->client, RCD_CTRL_FLOW_DESTROY, &req, &counts, NULL, NULL);
	/* With its queue pair it is gone already. */
	if (err == -EIO || err == -ENOENT)
		err = 0;
	if (err == 0)
		rcd_vb_counters_leave((struct rcd_vb_flow *)(void *)flow, &counts);
	pthread_mutex_unlock(&vb->flow_lock);
	if (err == 0)
		rcd_vb_free(flow->context, flow);
	return -err;
}
