/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Flows: work requests as they are asked for, and what comes of them.
 */
#include "net_flow.h"

#include <errno.h>

#include "rcd_bits.h"

enum {
	PD = 1,
	SHIFTS = 4096, /* places of the pattern at which messages begin */
};

/* Of a message the pattern begins elsewhere than of those around it. */
static uint32_t
net_flow_shift(const struct net_flow *flow, uint32_t number)
{
	return (number * 40 + flow->asks->init.qpn.val * 1000) % SHIFTS;
}

static uint32_t
net_flow_place(const struct net_flow *flow, uint32_t number)
{
	return number % flow->init.outstanding * flow->init.size;
}

static int
net_flow_fetch_send(void *arg, uint32_t number, struct rcd_send_wr *wr)
{
	const struct net_flow *flow = arg;
	uint64_t from = net_flow_shift(flow, number);
	uint64_t to = net_flow_place(flow, number);

	if ((int32_t)(flow->posted - number) <= 0)
		return -EAGAIN;
	wr->wr_id = number;
	wr->opcode = flow->init.read ? RCD_WR_RDMA_READ : RCD_WR_RDMA_WRITE;
	wr->flags = RCD_SEND_SIGNALED;
	wr->sge_count = 1;
	wr->inline_len = 0;
	if (flow->init.read) {
		wr->sges[0] = (struct rcd_sge){ to, flow->init.size, flow->to_key };
		wr->remote.va = from;
		wr->remote.rkey = flow->from_key;
	} else {
		wr->sges[0] = (struct rcd_sge){ from, flow->init.size, flow->from_key };
		wr->remote.va = to;
		wr->remote.rkey = flow->to_key;
	}
	return 0;
}

/* The responder has no requests of its own, and nobody receives by SENDs. */
static int
net_flow_fetch_none(void *arg, uint32_t number, struct rcd_send_wr *wr)
{
	(void)arg;
	(void)number;
	(void)wr;
	return -EAGAIN;
}

static int
net_flow_fetch_recv(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	(void)arg;
	(void)number;
	(void)wr;
	return -EAGAIN;
}

static void
net_flow_event(void *arg, enum rcd_event event)
{
	(void)arg;
	(void)event;
}

/* @return whether one more is to be posted, now or later */
static bool
net_flow_goes_on(const struct net_flow *flow)
{
	if (flow->failed)
		return false;
	if (flow->init.messages == NET_ENDLESS)
		return flow->load->running > 0;
	return flow->posted < flow->init.messages;
}

static void
net_flow_post(struct net_flow *flow)
{
	flow->posted_ns[flow->posted++ % NET_OUTSTANDING_MAX] = flow->load->net->now_ns;
}

static void
net_flow_end(struct net_flow *flow)
{
	if (flow->init.messages != NET_ENDLESS && --flow->load->running == 0)
		flow->load->ended_ns = flow->load->net->now_ns;
}

static void
net_flow_note(struct net_flow *flow, uint32_t number)
{
	struct net_load *load = flow->load;

	flow->done++;
	flow->done_ns = load->net->now_ns;
	if (memcmp(flow->memory + net_flow_place(flow, number),
		    load->pattern + net_flow_shift(flow, number), flow->init.size) != 0)
		load->wrong++;
	if (flow->init.messages == NET_ENDLESS)
		return;
	if (load->took_count == load->took_capacity) {
		load->took_capacity = 2 * load->took_capacity + 1024;
		load->took_ns =
			realloc(load->took_ns, load->took_capacity * sizeof(load->took_ns[0]));
		RCD_CHECK(load->took_ns != NULL);
	}
	load->took_ns[load->took_count++] =
		flow->done_ns - flow->posted_ns[number % NET_OUTSTANDING_MAX];
}

/* Of the requester; the host lets it send afterwards. */
static void
net_flow_complete(void *arg, const struct rcd_cqe *cqe)
{
	struct net_flow *flow = arg;
	struct net *net = flow->load->net;

	if (flow->failed)
		return;
	if (cqe->recv || cqe->status != RCD_WC_SUCCESS) {
		flow->failed = true;
		net_flow_end(flow);
		return;
	}
	/* In order, once each. */
	RCD_CHECK(cqe->wr_id == flow->done);
	net_flow_note(flow, flow->done);
	if (flow->done == flow->init.messages)
		net_flow_end(flow);
	if (!net_flow_goes_on(flow))
		return;
	if (flow->init.pause_ns > 0)
		net_at(net, &flow->again,
			net->now_ns + rcd_sequence_next(&net->rng) % flow->init.pause_ns);
	else
		net_flow_post(flow);
}

/* Fill up what may be under way. */
static void
net_flow_again(struct net_event *event)
{
	struct net_flow *flow = RCD_OWNER(event, struct net_flow, again);

	while (flow->posted - flow->done < flow->init.outstanding && net_flow_goes_on(flow))
		net_flow_post(flow);
	net_qp_touch(flow->asks);
}

void
net_load_init(struct net_load *load, struct net *net, const struct rcd_cc_ops *cc,
	const struct rcd_cc_params *params)
{
	memset(load, 0, sizeof(*load));
	load->net = net;
	load->cc = cc;
	load->cc_params = *params;
	load->pattern_len = NET_SIZE_MAX + SHIFTS;
	load->pattern = malloc(load->pattern_len);
	RCD_CHECK(load->pattern != NULL);
	for (size_t i = 0; i < load->pattern_len; i += 8)
		rcd_put_be64(load->pattern + i, rcd_sequence_next(&net->rng));
}

void
net_load_fini(struct net_load *load)
{
	free(load->pattern);
	free(load->took_ns);
}

static struct rcd_key
net_flow_register(struct net_host *host, uint8_t *base, size_t len)
{
	struct rcd_mr_attr region = {
		.pd = PD,
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
		.len = len,
		.base = base,
	};
	struct rcd_key key;

	RCD_CHECK(rcd_mr_register(host->mrs, &region, &key) == 0);
	return key;
}

void
net_flow_init(struct net_flow *flow, struct net_load *load, struct net_host *from,
	struct net_host *to, const struct net_flow_init *init)
{
	static const struct rcd_qp_ops asking = {
		.fetch_send = net_flow_fetch_send,
		.fetch_recv = net_flow_fetch_recv,
		.complete = net_flow_complete,
		.event = net_flow_event,
	};
	static const struct rcd_qp_ops answering = {
		.fetch_send = net_flow_fetch_none,
		.fetch_recv = net_flow_fetch_recv,
		.complete = net_flow_complete,
		.event = net_flow_event,
	};
	struct rcd_qp_init qp_init = {
		.type = RCD_QP_RC,
		.pd = PD,
		.sq_depth = NET_OUTSTANDING_MAX,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_rd_atomic = RCD_QP_RD_ATOMIC_DEFAULT,
		.port_mtu_bytes = RCD_PATH_MTU_MAX_BYTES,
		.cc = init->plain ? &rcd_cc_none : load->cc,
		.cc_params = &load->cc_params,
		.arg = flow,
	};
	struct rcd_qp_attr attr = {
		.access = RCD_ACCESS_REMOTE,
		.path_mtu_bytes = init->mtu,
		.timeout = 10,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = RCD_QP_RD_ATOMIC_DEFAULT,
		.max_dest_rd_atomic = RCD_QP_RD_ATOMIC_DEFAULT,
		.min_rnr_timer = 1,
	};
	size_t len = (size_t)init->size * init->outstanding;
	struct net_qp *sends, *takes;

	RCD_CHECK(init->size <= NET_SIZE_MAX && init->outstanding <= NET_OUTSTANDING_MAX);
	memset(flow, 0, sizeof(*flow));
	flow->load = load;
	flow->init = *init;
	flow->memory = calloc(1, len);
	RCD_CHECK(flow->memory != NULL);
	flow->from_key = net_flow_register(from, load->pattern, load->pattern_len);
	flow->to_key = net_flow_register(to, flow->memory, len);
	qp_init.ops = init->read ? &answering : &asking;
	sends = net_qp_create(from, &qp_init);
	qp_init.ops = init->read ? &asking : &answering;
	takes = net_qp_create(to, &qp_init);
	flow->asks = init->read ? takes : sends;
	flow->answers = init->read ? sends : takes;
	takes->arrived = &flow->arrived;
	net_qp_connect(sends, takes, &attr);
	if (init->rate_kbps != 0)
		net_qp_set_rate(sends, init->rate_kbps);
	if (init->messages != NET_ENDLESS)
		load->running++;
	flow->again.call = net_flow_again;
	net_at(load->net, &flow->again, init->start_ns);
}

void
net_flow_fini(struct net_flow *flow)
{
	free(flow->memory);
	free(flow->arrived.values);
}
