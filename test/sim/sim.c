/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The simulator: events in a heap, links, and hosts for queue pairs.
 */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>

#include "chance.h"
#include "frame.h"
#include "rcd_bits.h"
#include "rcd_bring_up.h"
#include "rcd_check.h"

/* Completions of a flush at once, and how long until the next piece. */
#define FLUSH_PIECE 3
#define FLUSH_NS    500

/* How long a frame may have to wait in a port for those before it. */
#define PORT_QUEUE_NS 20000

/** Something that will happen. */
struct sim_event {
	struct rcd_heap_entry entry; /**< by its time, ns */
	void (*call)(void *arg);
	void *arg;
	struct sim_node *node; /**< a frame arrives there */
	uint8_t *frame;
	uint32_t frame_len;
};

uint32_t
sim_below(struct rcd_sequence *rng, uint32_t limit)
{
	return limit == 0 ? 0 : (uint32_t)(rcd_sequence_next(rng) % limit);
}

bool
sim_chance(struct rcd_sequence *rng, double probability)
{
	return chance_falls(rng, probability);
}

static void
push(struct sim *sim, uint64_t at_ns, struct sim_event event)
{
	struct sim_event *queued = malloc(sizeof(*queued));

	RCD_CHECK(queued != NULL);
	if (sim->events.count == sim->events.capacity)
		RCD_CHECK(rcd_heap_reserve(&sim->events, 2 * sim->events.count + 256) == 0);
	*queued = event;
	rcd_heap_set(&sim->events, &queued->entry, at_ns);
}

/* The caller frees it. */
static struct sim_event *
pop(struct sim *sim)
{
	struct rcd_heap_entry *first = rcd_heap_first(&sim->events);

	rcd_heap_del(&sim->events, first);
	return RCD_OWNER(first, struct sim_event, entry);
}

static void
drop(struct sim_event *event)
{
	free(event->frame);
	free(event);
}

void
sim_at(struct sim *sim, uint64_t at_ns, void (*call)(void *arg), void *arg)
{
	push(sim, at_ns, (struct sim_event){ .call = call, .arg = arg });
}

static int
fetch_send(void *arg, uint32_t number, struct rcd_send_wr *wr)
{
	struct sim_qp *qp = arg;
	struct rcd_send_wr from;

	if ((int32_t)(qp->sq.posted - number) <= 0)
		return -EAGAIN;
	from = qp->sq.wrs[number % SIM_QUEUE_MAX];
	if (from.sge_count > 0 && from.sge_count <= wr->sge_max)
		memcpy(wr->sges, qp->sq.sges[number % SIM_QUEUE_MAX],
			from.sge_count * sizeof(wr->sges[0]));
	if (from.inline_len > 0 && from.inline_len <= wr->inline_max)
		memcpy(wr->inline_data, qp->sq.inlines[number % SIM_QUEUE_MAX], from.inline_len);
	from.sges = wr->sges;
	from.sge_max = wr->sge_max;
	from.inline_data = wr->inline_data;
	from.inline_max = wr->inline_max;
	*wr = from;
	return 0;
}

static int
fetch_from(struct sim_recv_queue *queue, uint32_t number, struct rcd_recv_wr *wr)
{
	const struct rcd_recv_wr *from = &queue->wrs[number % SIM_QUEUE_MAX];

	if ((int32_t)(queue->posted - number) <= 0)
		return -EAGAIN;
	wr->wr_id = from->wr_id;
	wr->sge_count = from->sge_count;
	if (from->sge_count > 0 && from->sge_count <= wr->sge_max)
		memcpy(wr->sges, queue->sges[number % SIM_QUEUE_MAX],
			from->sge_count * sizeof(wr->sges[0]));
	return 0;
}

static int
fetch_recv(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	struct sim_qp *qp = arg;

	return fetch_from(&qp->rq, number, wr);
}

static int
fetch_srq(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	struct sim_node *node = arg;

	return fetch_from(&node->srq_queue, number, wr);
}

static uint32_t
available_srq(void *arg, uint32_t number)
{
	struct sim_node *node = arg;

	return node->srq_queue.posted - number;
}

static int
fetch_xsrq(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	struct sim_xsrq *xsrq = arg;

	return fetch_from(&xsrq->queue, number, wr);
}

static uint32_t
available_xsrq(void *arg, uint32_t number)
{
	struct sim_xsrq *xsrq = arg;

	return xsrq->queue.posted - number;
}

static void
complete_on(struct sim_node *node, const struct rcd_cqe *cqe)
{
	RCD_CHECK(node->cqe_count < SIM_CQES_MAX);
	node->cqes[node->cqe_count++] = *cqe;
	if (node->on_cqe != NULL)
		node->on_cqe(node->on_cqe_arg, node, cqe);
}

static void
complete(void *arg, const struct rcd_cqe *cqe)
{
	struct sim_qp *qp = arg;

	complete_on(qp->node, cqe);
}

static void
complete_xsrq(void *arg, const struct rcd_cqe *cqe)
{
	struct sim_xsrq *xsrq = arg;

	complete_on(xsrq->node, cqe);
}

static void
note_event(struct sim_node *node, enum rcd_event event, uint32_t qp)
{
	if (node->event_count == SIM_EVENTS_MAX)
		return;
	node->events[node->event_count].event = event;
	node->events[node->event_count++].qp = qp;
}

static void
qp_event(void *arg, enum rcd_event event)
{
	struct sim_qp *qp = arg;

	note_event(qp->node, event, (uint32_t)(qp - qp->node->qps));
}

static void
srq_event(void *arg, enum rcd_event event)
{
	note_event(arg, event, UINT32_MAX);
}

static void
xsrq_event(void *arg, enum rcd_event event)
{
	struct sim_xsrq *xsrq = arg;

	note_event(xsrq->node, event, UINT32_MAX);
}

static bool
qp_agreed(void *arg)
{
	struct sim_qp *qp = arg;

	RCD_CHECK(qp->sack == NULL && rcd_qp_found_peer(qp->qp));
	if (qp->busy > 0) {
		qp->busy--;
		return false;
	}
	sim_agree_sack(qp);
	return true;
}

static const struct rcd_qp_ops qp_ops = {
	.fetch_send = fetch_send,
	.fetch_recv = fetch_recv,
	.complete = complete,
	.event = qp_event,
	.agreed = qp_agreed,
};

static const struct rcd_srq_ops srq_ops = {
	.fetch = fetch_srq,
	.available = available_srq,
	.event = srq_event,
};

static const struct rcd_srq_ops xsrq_ops = {
	.fetch = fetch_xsrq,
	.available = available_xsrq,
	.event = xsrq_event,
	.complete = complete_xsrq,
};

uint32_t
sim_xsrq_add(struct sim_node *node, uint32_t index, uint32_t pd)
{
	struct sim_xsrq *xsrq = &node->xsrqs[index];
	uint32_t number = rcd_xrc_number(&node->xrc, (uint32_t)rcd_sequence_next(&node->sim->rng));

	xsrq->node = node;
	rcd_srq_init(&xsrq->srq, SIM_QUEUE_MAX, SIM_SGE_MAX, &xsrq_ops, xsrq);
	rcd_xrc_add(&node->xrc, &xsrq->srq, number, node->mrs, pd);
	return number;
}

void
sim_init(struct sim *sim, uint64_t seed, size_t memory_len, uint32_t kept)
{
	memset(sim, 0, sizeof(*sim));
	sim->rng.state = seed;
	sim->now_ns = 1000;
	for (uint32_t i = 0; i < 2; i++) {
		struct sim_node *node = &sim->nodes[i];

		node->sim = sim;
		node->peer = &sim->nodes[1 - i];
		node->number = i;
		node->memory = calloc(1, memory_len);
		node->memory_len = memory_len;
		node->mrs = rcd_mr_table_create(6, rcd_sequence_next(&sim->rng));
		node->ahs = rcd_ah_table_create(8);
		node->reorder = kept > 0 ? rcd_reorder_pool_create(kept) : NULL;
		if (node->reorder != NULL)
			sim_hold_frames(node);
		RCD_CHECK(node->memory != NULL && node->mrs != NULL && node->ahs != NULL);
		node->out.delay_ns = 5000;
		rcd_srq_init(&node->srq, SIM_QUEUE_MAX, SIM_SGE_MAX, &srq_ops, node);
	}
}

void
sim_fini(struct sim *sim)
{
	while (rcd_heap_first(&sim->events) != NULL)
		drop(pop(sim));
	rcd_heap_fini(&sim->events);
	for (uint32_t i = 0; i < 2; i++) {
		struct sim_node *node = &sim->nodes[i];

		for (uint32_t k = 0; k < node->qp_count; k++) {
			rcd_qp_fini(node->qps[k].qp);
			free(node->qps[k].qp);
			free(node->qps[k].sack);
		}
		rcd_reorder_pool_destroy(node->reorder);
		rcd_ah_table_destroy(node->ahs);
		rcd_mr_table_destroy(node->mrs);
		free(node->memory);
	}
}

struct sim_qp *
sim_qp_create(struct sim_node *node, const struct rcd_qp_init *init)
{
	struct sim_qp *qp = &node->qps[node->qp_count];

	RCD_CHECK(node->qp_count < SIM_QPS_MAX);
	qp->node = node;
	qp->init = *init;
	qp->init.qpn.val = 0x100 * (node->number + 1) + node->qp_count;
	qp->init.mrs = init->type == RCD_QP_XRC_RECV ? NULL : node->mrs;
	qp->init.xrc = init->type == RCD_QP_XRC_RECV ? &node->xrc : NULL;
	qp->init.ahs = node->ahs;
	qp->init.reorder = node->reorder;
	qp->init.counters = &node->counters;
	qp->init.ops = &qp_ops;
	qp->init.arg = qp;
	size_t size = rcd_qp_size(&qp->init);
	void *mem = aligned_alloc(64, (size + 63) & ~(size_t)63);

	qp->qp = rcd_qp_init(mem, &qp->init);
	RCD_CHECK(qp->qp != NULL);
	node->qp_count++;
	return qp;
}

struct rcd_av
sim_av(const struct sim_node *node)
{
	return (struct rcd_av){
		.sgid = frame_gid(node->number),
		.dgid = frame_gid(1 - node->number),
		.hop_limit = 64,
	};
}

struct rcd_qp_attr
sim_attr(struct sim *sim)
{
	return (struct rcd_qp_attr){
		.access = RCD_ACCESS_REMOTE,
		.port = 1,
		.qkey = { 0x1234 },
		.path_mtu_bytes = 1024,
		.timeout = 8,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.sq_psn = rcd_psn((uint32_t)rcd_sequence_next(&sim->rng)),
	};
}

static void
connect_one(struct sim_qp *qp, const struct sim_qp *to, struct rcd_qp_attr attr, struct rcd_psn psn)
{
	attr.av = sim_av(qp->node);
	attr.rq_psn = psn;
	attr.dest_qpn = to->init.qpn;
	rcd_bring_up(qp->qp, qp->init.type, attr, RCD_QP_RTS);
}

void
sim_connect(struct sim_qp *a, struct sim_qp *b, const struct rcd_qp_attr *ab,
	const struct rcd_qp_attr *ba)
{
	connect_one(a, b, *ab, ba->sq_psn);
	connect_one(b, a, *ba, ab->sq_psn);
}

static bool
loses(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct sim_link *link = &node->out;
	uint32_t *count = node->shared_frames != NULL ? node->shared_frames : &node->out_frames;
	uint32_t frame = (*count)++;

	if (link->cut_ns != 0 && sim->now_ns >= link->cut_ns)
		return true;
	if (frame < link->loss_mask_frames)
		return link->loss_mask >> frame & 1;
	return sim_chance(&sim->rng, link->loss);
}

static void
deliver_later(struct sim_node *node, uint8_t *frame, uint32_t len, uint64_t depart_ns)
{
	struct sim *sim = node->sim;
	struct sim_link *link = &node->out;
	uint64_t at_ns = depart_ns + link->delay_ns;

	if (link->jitter_ns > 0)
		at_ns += rcd_sequence_next(&sim->rng) % link->jitter_ns;
	if (sim_chance(&sim->rng, link->reorder))
		at_ns += link->delay_ns + sim_below(&sim->rng, 20000);
	if (sim_chance(&sim->rng, link->mark))
		frame_mark(frame);
	if (sim_chance(&sim->rng, link->corrupt)) {
		uint32_t bit = sim_below(&sim->rng, 8 * (len - RCD_ETH_LEN));

		frame[RCD_ETH_LEN + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	push(sim, at_ns,
		(struct sim_event){ .node = node->peer, .frame = frame, .frame_len = len });
}

/* The ICRC does not cover them. Frames are untagged, by IPv4. */
static void
change_mark(struct sim_node *node, uint8_t *frame)
{
	uint8_t *at = frame + RCD_ETH_LEN + RCD_IPV4_LEN + RCD_UDP_LEN + RCD_BTH_ECN_OFFSET;
	uint8_t mark = *at & RCD_BTH_MARK_MASK;

	node->out_mark = mark;
	if (node->out.marks == SIM_MARKS_SCRAMBLE)
		mark = (uint8_t)sim_below(&node->sim->rng, RCD_BTH_MARK_MASK + 1);
	else if (node->out.marks == SIM_MARKS_ECHO)
		mark = node->peer->out_mark;
	*at = (uint8_t)((*at & ~RCD_BTH_MARK_MASK) | mark);
}

static void
transmit(struct sim_node *node, const struct rcd_tx_pkt *pkt)
{
	struct sim *sim = node->sim;
	struct sim_link *link = &node->out;
	uint64_t depart_ns = sim->now_ns;
	bool lost = loses(node);
	uint8_t *frame = malloc(FRAME_MAX);
	uint32_t len;

	RCD_CHECK(frame != NULL);
	if (sim->trace != NULL)
		sim->trace(sim, node, pkt, lost);
	len = frame_build(frame, pkt);
	change_mark(node, frame);
	if (link->gbps > 0) {
		if (node->out_free_ns > depart_ns)
			depart_ns = node->out_free_ns;
		depart_ns += (uint64_t)((len + FRAME_WIRE_BYTES) * 8 / link->gbps);
		node->out_free_ns = depart_ns;
	}
	if (lost) {
		free(frame);
		return;
	}
	if (sim_chance(&sim->rng, link->duplicate)) {
		uint8_t *copy = malloc(len);

		memcpy(copy, frame, len);
		deliver_later(node, copy, len, depart_ns);
	}
	deliver_later(node, frame, len, depart_ns);
}

static void
tick(void *arg)
{
	struct sim_qp *qp = arg;
	uint64_t deadline = rcd_qp_next_deadline(qp->qp);

	/* Lazily: a deadline that moved on is looked at again when it comes. */
	qp->timer_ns = 0;
	if (deadline != 0 && deadline <= qp->node->sim->now_ns)
		rcd_qp_expire(qp->qp, qp->node->sim->now_ns);
}

static void
port_drained(void *arg)
{
	struct sim_qp *qp = arg;

	/* What it holds back is taken by the pump after this event. */
	qp->waits_for_port = false;
}

static void
flush_on(void *arg)
{
	struct sim_qp *qp = arg;

	/* The next piece is taken after this event. */
	qp->waits_to_flush = false;
}

static void
flush(struct sim_qp *qp)
{
	if (qp->waits_to_flush)
		return;
	rcd_qp_flush(qp->qp, FLUSH_PIECE);
	if (!rcd_qp_flushing(qp->qp))
		return;
	qp->waits_to_flush = true;
	sim_at(qp->node->sim, qp->node->sim->now_ns + FLUSH_NS, flush_on, qp);
}

static void
pump(struct sim_qp *qp)
{
	struct sim *sim = qp->node->sim;
	struct rcd_tx_pkt pkt;
	uint64_t deadline;

	/* A port takes no more than so much; then it has to drain. */
	while (qp->node->out_free_ns <= sim->now_ns + PORT_QUEUE_NS) {
		if (rcd_qp_tx_next(qp->qp, sim->now_ns, &pkt))
			transmit(qp->node, &pkt);
		else if (!rcd_qp_tx_paused(qp->qp))
			break;
	}
	if (qp->node->out_free_ns > sim->now_ns + PORT_QUEUE_NS && !qp->waits_for_port) {
		qp->waits_for_port = true;
		sim_at(sim, qp->node->out_free_ns - PORT_QUEUE_NS / 2, port_drained, qp);
	}
	deadline = rcd_qp_next_deadline(qp->qp);
	if (deadline != 0 && (qp->timer_ns == 0 || deadline < qp->timer_ns)) {
		qp->timer_ns = deadline;
		sim_at(sim, deadline < sim->now_ns ? sim->now_ns : deadline, tick, qp);
	}
}

void
sim_kick(struct sim *sim)
{
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < sim->nodes[i].qp_count; k++) {
			rcd_qp_posted(sim->nodes[i].qps[k].qp);
			pump(&sim->nodes[i].qps[k]);
			flush(&sim->nodes[i].qps[k]);
		}
	}
}

static void
receive(struct sim_node *node, const uint8_t *frame, uint32_t len)
{
	struct sim *sim = node->sim;
	struct rcd_pkt pkt;
	enum rcd_verdict verdict = rcd_pkt_parse(frame, len, &pkt);

	sim->delivered++;
	if (verdict == RCD_VERDICT_OK && !rcd_pkt_icrc_ok(&pkt))
		verdict = RCD_VERDICT_ICRC;
	rcd_verdict_count(&node->counters, verdict, len);
	if (verdict == RCD_VERDICT_ICRC)
		sim->bad_icrc++;
	else if (verdict != RCD_VERDICT_OK)
		sim->wrong_verdicts++;
	if (verdict != RCD_VERDICT_OK)
		return;
	for (uint32_t i = 0; i < node->qp_count; i++) {
		if (node->qps[i].init.qpn.val == pkt.roce.bth.dest_qpn.val)
			rcd_qp_rx(node->qps[i].qp, &pkt, sim->now_ns);
	}
}

bool
sim_run(struct sim *sim, uint64_t limit_ns)
{
	sim_kick(sim);
	while (rcd_heap_first(&sim->events) != NULL) {
		uint64_t at_ns = rcd_heap_first(&sim->events)->key;

		if (at_ns > limit_ns)
			return false;
		sim->now_ns = at_ns;
		/* A burst: all that comes at this moment, and only then what follows from it. */
		while (rcd_heap_first(&sim->events) != NULL &&
			rcd_heap_first(&sim->events)->key == at_ns) {
			struct sim_event *event = pop(sim);

			sim->arriving = &event->frame;
			if (event->frame != NULL)
				receive(event->node, event->frame, event->frame_len);
			else
				event->call(event->arg);
			sim->arriving = NULL;
			drop(event);
		}
		sim_kick(sim);
	}
	return true;
}
