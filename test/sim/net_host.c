/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Hosts: frames to queue pairs, and queue pairs in turn to the NIC.
 */
#include "net_host.h"

#include "rcd_bits.h"
#include "rcd_bring_up.h"

/* Packets of a queue pair before the next one has its turn: 16 KiB with the largest MTU. */
#define TURN 4

/* Completions of a flush at once. */
#define FLUSH_PIECE 64

#define FIRST_QPN 0x100

/* @return when it has its core: now, or later */
static uint64_t
net_host_runs_at(const struct net_host *host)
{
	uint64_t now_ns = host->net->now_ns;
	uint64_t period_ns = host->init.run_ns + host->init.away_ns;
	uint64_t at_ns;

	if (host->init.away_ns == 0)
		return now_ns;
	/* Not all at the same time. */
	at_ns = (now_ns + host->number * period_ns / 3) % period_ns;
	return at_ns < host->init.run_ns ? now_ns : now_ns + period_ns - at_ns;
}

/* Whether it has not its core. It is woken then. */
static bool
net_host_is_away(struct net_host *host)
{
	uint64_t at_ns = net_host_runs_at(host);

	if (at_ns == host->net->now_ns)
		return false;
	net_at(host->net, &host->wake, at_ns);
	return true;
}

static void
net_qp_set_timer(struct net_qp *qp)
{
	uint64_t deadline = rcd_qp_next_deadline(qp->qp);
	uint64_t tick_ns = qp->host->init.tick_ns;

	if (deadline == 0) {
		net_cancel(qp->host->net, &qp->timer);
		return;
	}
	if (tick_ns > 0)
		deadline = (deadline + tick_ns - 1) / tick_ns * tick_ns;
	net_at(qp->host->net, &qp->timer, deadline);
}

static void
net_qp_set_ready(struct net_qp *qp)
{
	struct net_host *host = qp->host;

	if (qp->ready)
		return;
	qp->ready = true;
	qp->next = NULL;
	if (host->first == NULL)
		host->first = qp;
	else
		host->last->next = qp;
	host->last = qp;
}

/* @return whether there was something to send */
static bool
net_qp_send(struct net_qp *qp)
{
	struct net *net = qp->host->net;
	struct rcd_tx_pkt pkt;
	struct net_frame *frame;

	if (!rcd_qp_tx_next(qp->qp, net->now_ns, &pkt))
		return rcd_qp_tx_paused(qp->qp);
	frame = net_frame_get(net);
	frame->len = frame_build(frame->bytes, &pkt);
	net_port_send(&qp->host->nic, frame);
	return true;
}

/* One after the other, for as long as the NIC takes more. */
static void
net_host_pump(void *arg)
{
	struct net_host *host = arg;

	if (host->first == NULL || net_host_is_away(host))
		return;
	while (host->first != NULL && host->nic.queue.bytes < NET_NIC_BYTES) {
		struct net_qp *qp = host->first;
		bool more = true;

		host->first = qp->next;
		qp->ready = false;
		for (uint32_t i = 0; i < TURN && more && host->nic.queue.bytes < NET_NIC_BYTES; i++)
			more = net_qp_send(qp);
		while (rcd_qp_flushing(qp->qp))
			rcd_qp_flush(qp->qp, FLUSH_PIECE);
		if (more)
			net_qp_set_ready(qp);
		net_qp_set_timer(qp);
	}
}

void
net_qp_touch(struct net_qp *qp)
{
	rcd_qp_posted(qp->qp);
	net_qp_set_ready(qp);
	net_host_pump(qp->host);
}

static void
net_qp_expire(struct net_event *event)
{
	struct net_qp *qp = RCD_OWNER(event, struct net_qp, timer);
	uint64_t runs_ns = net_host_runs_at(qp->host);

	if (runs_ns > qp->host->net->now_ns) {
		net_at(qp->host->net, event, runs_ns);
		return;
	}
	rcd_qp_expire(qp->qp, qp->host->net->now_ns);
	net_qp_set_timer(qp);
	net_qp_touch(qp);
}

static void
net_host_take(struct net_host *host, struct net_frame *frame)
{
	struct rcd_pkt pkt;
	enum rcd_verdict verdict = rcd_pkt_parse(frame->bytes, frame->len, &pkt);
	struct net_qp *qp;
	uint32_t number;

	if (verdict == RCD_VERDICT_OK && !rcd_pkt_icrc_ok(&pkt))
		verdict = RCD_VERDICT_ICRC;
	number = verdict == RCD_VERDICT_OK ? pkt.roce.bth.dest_qpn.val - FIRST_QPN : UINT32_MAX;
	if (number >= host->qp_count) {
		host->wrong++;
		net_deliver(host->net, frame);
		return;
	}
	qp = host->qps[number];
	if (qp->arrived != NULL)
		*net_series_at(qp->arrived, host->net->now_ns) += pkt.payload_len;
	rcd_qp_rx(qp->qp, &pkt, host->net->now_ns);
	net_deliver(host->net, frame);
	net_qp_set_timer(qp);
	net_qp_set_ready(qp);
}

void
net_host_arrive(void *arg, struct net_frame *frame)
{
	struct net_host *host = arg;

	if (net_host_is_away(host)) {
		if (host->ring.frames == NET_RING_FRAMES)
			net_drop(host->net, frame, NET_RING);
		else
			net_queue_put(&host->ring, frame);
		return;
	}
	net_host_take(host, frame);
	net_host_pump(host);
}

static void
net_host_wake(struct net_event *event)
{
	struct net_host *host = RCD_OWNER(event, struct net_host, wake);
	struct net_frame *frame;

	while ((frame = net_queue_get(&host->ring)) != NULL)
		net_host_take(host, frame);
	net_host_pump(host);
}

void
net_host_init(struct net_host *host, struct net *net, uint32_t number,
	const struct net_host_init *init, const struct net_link *link)
{
	memset(host, 0, sizeof(*host));
	host->net = net;
	host->number = number;
	host->init = *init;
	host->away_ns = (uint32_t)init->away_ns;
	host->wake.call = net_host_wake;
	net_port_init(&host->nic, net, NULL, link);
	host->nic.drained = net_host_pump;
	host->nic.arg = host;
	host->mrs = rcd_mr_table_create(8, rcd_sequence_next(&net->rng));
	host->reorder = init->kept > 0 ? rcd_reorder_pool_create(init->kept) : NULL;
	RCD_CHECK(host->mrs != NULL && (init->kept == 0 || host->reorder != NULL));
}

void
net_host_clear(struct net_host *host)
{
	net_queue_clear(host->net, &host->nic.queue);
	net_queue_clear(host->net, &host->ring);
}

void
net_host_fini(struct net_host *host)
{
	for (uint32_t i = 0; i < host->qp_count; i++) {
		rcd_qp_fini(host->qps[i]->qp);
		free(host->qps[i]->qp);
		free(host->qps[i]->sack);
		free(host->qps[i]->gate);
		free(host->qps[i]);
	}
	rcd_reorder_pool_destroy(host->reorder);
	rcd_mr_table_destroy(host->mrs);
}

struct net_qp *
net_qp_create(struct net_host *host, const struct rcd_qp_init *init)
{
	struct net_qp *qp = calloc(1, sizeof(*qp));
	size_t size;

	RCD_CHECK(qp != NULL && host->qp_count < NET_QPS_MAX);
	qp->host = host;
	qp->timer.call = net_qp_expire;
	qp->init = *init;
	qp->init.qpn.val = FIRST_QPN + host->qp_count;
	qp->init.mrs = host->mrs;
	qp->init.reorder = host->reorder;
	qp->init.counters = &host->counters;
	qp->init.away_ns = host->away_ns > 0 ? &host->away_ns : NULL;
	size = rcd_qp_size(&qp->init);
	qp->qp = rcd_qp_init(aligned_alloc(64, (size + 63) & ~(size_t)63), &qp->init);
	RCD_CHECK(qp->qp != NULL);
	host->qps[host->qp_count++] = qp;
	return qp;
}

static void
net_qp_connect_one(
	struct net_qp *qp, const struct net_qp *to, struct rcd_qp_attr attr, const uint32_t *psns)
{
	attr.av = (struct rcd_av){
		.sgid = frame_gid(qp->host->number),
		.dgid = frame_gid(to->host->number),
		.hop_limit = 64,
	};
	attr.port = 1;
	attr.dest_qpn = to->init.qpn;
	attr.sq_psn = rcd_psn(psns[0]);
	attr.rq_psn = rcd_psn(psns[1]);
	rcd_bring_up(qp->qp, qp->init.type, attr, RCD_QP_RTS);
	if (!qp->host->init.sack || qp->host->reorder == NULL || to->host->reorder == NULL)
		return;
	qp->sack = malloc(rcd_qp_sack_size());
	RCD_CHECK(qp->sack != NULL && rcd_qp_set_sack(qp->qp, qp->sack) == 0);
}

void
net_qp_connect(struct net_qp *a, struct net_qp *b, const struct rcd_qp_attr *attr)
{
	struct rcd_sequence *rng = &a->host->net->rng;
	uint32_t psns[3] = { (uint32_t)rcd_sequence_next(rng), (uint32_t)rcd_sequence_next(rng) };

	psns[2] = psns[0];
	net_qp_connect_one(a, b, *attr, &psns[0]);
	net_qp_connect_one(b, a, *attr, &psns[1]);
}

void
net_qp_set_rate(struct net_qp *qp, uint32_t kbps)
{
	struct rcd_qp_attr attr = { .rate_kbps = kbps };

	qp->gate = calloc(1, rcd_qp_gate_size());
	RCD_CHECK(qp->gate != NULL);
	/* One with an algorithm has what it takes. */
	rcd_qp_set_gate(qp->qp, qp->gate);
	RCD_CHECK(rcd_qp_modify(qp->qp, &attr, RCD_QP_ATTR_RATE) == 0);
}
