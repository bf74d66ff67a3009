/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queue pairs: creation, the way of a packet in and out, and completions. What a packet means is
 * decided in the other files (rcd_qp_priv.h lists them).
 */
#include "rcd_qp_priv.h"

#include <assert.h>
#include <errno.h>

#include "rcd_bits.h"

#define SQ_DEPTH_MAX (UINT32_C(1) << 20)
#define FRAME_SHIFT  31

static_assert(sizeof(struct rcd_qp_hot) <= 128, "two cache lines, and a wire burst stays in L1");
static_assert(sizeof(struct rcd_sq_rec) == 16, "the largest part of an idle queue pair");

static const struct {
	const char *name;
	enum rcd_counter counter;
} verdict_info[RCD_RX_COUNT] = {
#define RCD_RX(symbol, count, text)                                                                \
	[RCD_RX_##symbol] = { .name = #symbol, .counter = RCD_COUNTER_##count },
#include "rcd_rx_verdict.def"
#undef RCD_RX
};

const char *
rcd_rx_verdict_name(enum rcd_rx_verdict verdict)
{
	RCD_CHECK(verdict < RCD_RX_COUNT);
	return verdict_info[verdict].name;
}

/* Where the parts of a queue pair lie behind its struct. */
struct layout {
	uint32_t sq_depth;
	size_t sq, resources, sges, gate, replies, inlines, size;
};

/*
 * Datagrams and frames have nobody who tells how they fare. UC has CNPs alone: what grows by
 * acknowledges would shrink by them for ever.
 */
static bool
qp_has_gate(const struct rcd_qp_init *init)
{
	return init->cc != NULL && init->cc != &rcd_cc_none && init->type != RCD_QP_UD &&
		init->type != RCD_QP_GSI && init->type != RCD_QP_RAW &&
		!(init->type == RCD_QP_UC && init->cc->by_acks);
}

static int
qp_make_layout(const struct rcd_qp_init *init, struct layout *layout)
{
	uint32_t sge_count = 3u * init->max_send_sge + init->max_recv_sge;

	if (init->sq_depth < 1 || init->sq_depth > SQ_DEPTH_MAX ||
		init->max_send_sge > RCD_SGE_MAX || init->max_recv_sge > RCD_SGE_MAX ||
		init->max_inline > RCD_INLINE_MAX || init->max_rd_atomic > RCD_QP_RD_ATOMIC_MAX ||
		(unsigned int)init->type >= RCD_QP_TYPE_COUNT || init->qpn.val > RCD_PSN_MASK ||
		(init->type == RCD_QP_XRC_RECV) != (init->xrc != NULL) ||
		(init->type == RCD_QP_RAW) != (init->frame_max != NULL))
		return -EINVAL;
	if (!rcd_mtu_valid(init->port_mtu_bytes, RCD_PATH_MTU_MAX_BYTES))
		return -EINVAL;
	layout->sq_depth = rcd_power_up(init->sq_depth);
	layout->sq = sizeof(struct rcd_qp);
	layout->resources = layout->sq + layout->sq_depth * sizeof(struct rcd_sq_rec);
	layout->sges = layout->resources + init->max_rd_atomic * sizeof(struct rcd_resp_resource);
	layout->gate = layout->sges + sge_count * sizeof(struct rcd_sge);
	layout->replies = layout->gate + (qp_has_gate(init) ? sizeof(struct rcd_gate) : 0);
	layout->inlines = layout->replies + init->max_rd_atomic;
	layout->size = layout->inlines + 2u * init->max_inline;
	return 0;
}

size_t
rcd_qp_size(const struct rcd_qp_init *init)
{
	struct layout layout;

	return qp_make_layout(init, &layout) == 0 ? layout.size : 0;
}

struct rcd_qp *
rcd_qp_init(void *mem, const struct rcd_qp_init *init)
{
	struct rcd_qp *qp = mem;
	uint8_t *base = mem;
	struct layout layout;
	struct rcd_sge *sges;

	if (qp_make_layout(init, &layout) != 0)
		return NULL;
	memset(mem, 0, layout.size);
	qp->init = *init;
	qp->hot.type = (uint8_t)init->type;
	qp->init.cc_params = NULL;
	if (qp_has_gate(init)) {
		qp->gate = (struct rcd_gate *)(void *)(base + layout.gate);
		if (init->cc_params != NULL)
			qp->gate->params = *init->cc_params;
	} else {
		qp->init.cc = &rcd_cc_none;
	}
	qp->sq = (struct rcd_sq_rec *)(void *)(base + layout.sq);
	qp->sq_mask = layout.sq_depth - 1;
	qp->resources = (struct rcd_resp_resource *)(void *)(base + layout.resources);
	qp->replies = base + layout.replies;
	sges = (struct rcd_sge *)(void *)(base + layout.sges);
	for (int i = 0; i < 2; i++) {
		qp->tx[i].wr.sges = sges + i * init->max_send_sge;
		qp->tx[i].wr.sge_max = init->max_send_sge;
		qp->tx[i].wr.inline_data = base + layout.inlines + i * init->max_inline;
		qp->tx[i].wr.inline_max = init->max_inline;
	}
	qp->read.wr.sges = sges + 2 * init->max_send_sge;
	qp->read.wr.sge_max = init->max_send_sge;
	qp->recv.sges = sges + 3 * init->max_send_sge;
	qp->recv.sge_max = init->max_recv_sge;
	qp->hot.ops = init->ops;
	qp->hot.arg = init->arg;
	qp->hot.counters = init->counters;
	qp->hot.mrs = init->mrs;
	rcd_qp_clear(qp);
	return qp;
}

size_t
rcd_qp_resources_size(uint8_t count)
{
	return count * (sizeof(struct rcd_resp_resource) + 1);
}

int
rcd_qp_set_resources(struct rcd_qp *qp, void *mem, uint8_t count)
{
	if (qp->hot.state > RCD_QP_INIT || count == 0 || count > RCD_QP_RD_ATOMIC_MAX)
		return -EINVAL;
	memset(mem, 0, rcd_qp_resources_size(count));
	qp->resources = mem;
	qp->replies = (uint8_t *)(qp->resources + count);
	qp->init.max_rd_atomic = count;
	return 0;
}

int
rcd_qp_move(struct rcd_qp *qp, struct rcd_counters *counters, struct rcd_reorder_pool *reorder,
	const uint32_t *away_ns)
{
	/* Nothing is kept before RTR. */
	if (qp->hot.state > RCD_QP_INIT)
		return -EINVAL;
	qp->hot.counters = qp->init.counters = counters;
	qp->init.reorder = reorder;
	qp->init.away_ns = away_ns;
	return 0;
}

void
rcd_qp_fini(struct rcd_qp *qp)
{
	rcd_qp_drop_kept(qp);
	rcd_reorder_drop(qp->init.reorder, &qp->answers);
}

void
rcd_qp_clear(struct rcd_qp *qp)
{
	struct rcd_qp_hot *hot = &qp->hot;

	rcd_qp_drop_kept(qp);
	rcd_reorder_drop(qp->init.reorder, &qp->answers);
	*hot = (struct rcd_qp_hot){
		.ops = hot->ops,
		.arg = hot->arg,
		.counters = hot->counters,
		.mrs = hot->mrs,
		.type = hot->type,
		.state = RCD_QP_RESET,
		.mtu = qp->init.port_mtu_bytes,
		/* A frame is one packet, however long it is. */
		.mtu_shift = hot->type == RCD_QP_RAW
			? FRAME_SHIFT
			: (uint8_t)__builtin_ctz(qp->init.port_mtu_bytes),
	};
	memset(&qp->attr, 0, sizeof(qp->attr));
	memset(qp->resources, 0, qp->init.max_rd_atomic * sizeof(qp->resources[0]));
	qp->tx[0].loaded = qp->tx[1].loaded = qp->read.loaded = false;
	qp->again_valid = qp->drained = qp->sent_unreliable = qp->gone = false;
	qp->gap_tries = 0;
	qp->ahead_count = 0;
	qp->late_due = 0;
	qp->repaired = false;
	qp->sack = NULL;
	rcd_recover_reset(qp);
	rcd_hello_reset(qp);
	qp->repair_steps = qp->peer_drops = qp->nak_beside = 0;
	qp->rtt_ns = qp->rtt_var_ns = 0;
	qp->rtt_doubts = 0;
	qp->rtt_begin_ns = 0;
	qp->rto_ns = 0;
	qp->resource_next = qp->reply_first = 0;
	qp->again = (struct rcd_reply_run){ .next = 0 };
	qp->recv_valid = qp->comm_est = qp->skip_message = false;
	qp->rq_next = 0;
	qp->cnp_ns = 0;
	rcd_gate_reset(qp);
}

void
rcd_qp_fail(struct rcd_qp *qp)
{
	if (qp->hot.state != RCD_QP_RESET)
		rcd_qp_error(qp, RCD_EVENT_QP_FATAL);
}

static bool
qp_service_matches(const struct rcd_qp *qp, uint8_t opcode)
{
	enum rcd_service service = (enum rcd_service)rcd_opcode_info(opcode)->service;

	switch ((enum rcd_qp_type)qp->hot.type) {
	case RCD_QP_RC:
		return service == RCD_SERVICE_RC || service == RCD_SERVICE_CNP ||
			(service == RCD_SERVICE_SACK && qp->sack != NULL) ||
			(service == RCD_SERVICE_HELLO && qp->hot.marks);
	case RCD_QP_UC:
		return service == RCD_SERVICE_UC || service == RCD_SERVICE_CNP;
	case RCD_QP_UD:
	case RCD_QP_GSI:
		return service == RCD_SERVICE_UD;
	case RCD_QP_RAW:
		return false;
	case RCD_QP_XRC_SEND:
	case RCD_QP_XRC_RECV:
		/* Spec: Annex A14 an initiator takes answers, a target requests */
		return service == RCD_SERVICE_CNP ||
			(service == RCD_SERVICE_HELLO && qp->hot.marks) ||
			((service == RCD_SERVICE_XRC ||
				 (service == RCD_SERVICE_SACK && qp->sack != NULL)) &&
				rcd_opcode_is_response(opcode) ==
					(qp->hot.type == RCD_QP_XRC_SEND));
	}
	return false;
}

/* Spec: IBTA 9.6 what every packet is checked for before its service looks at it */
static enum rcd_rx_verdict
qp_check_common(const struct rcd_qp *qp, const struct rcd_pkt *pkt)
{
	uint8_t state = qp->hot.state;
	uint8_t opcode = pkt->roce.bth.opcode;
	bool connected = !rcd_qp_is_datagram(qp);

	if (!qp_service_matches(qp, opcode))
		return RCD_RX_SERVICE;
	if (state < RCD_QP_RTR || state == RCD_QP_ERR)
		return RCD_RX_STATE;
	if (rcd_opcode_is_response(opcode) && state != RCD_QP_RTS && state != RCD_QP_SQD)
		return RCD_RX_STATE;
	/* Spec: IBTA 10.9.3 the same key, and one of the two a full member: ours always is */
	if ((pkt->roce.bth.pkey.val & 0x7fff) != (RCD_PKEY_DEFAULT & 0x7fff))
		return RCD_RX_PKEY;
	if (connected &&
		(!rcd_gid_eq(&pkt->sgid, &qp->attr.av.dgid) ||
			!rcd_gid_eq(&pkt->dgid, &qp->attr.av.sgid)))
		return RCD_RX_PATH;
	return RCD_RX_EXECUTED;
}

/* Spec: Annex A17 a receiver of a packet marked "congestion experienced" tells the sender */
static void
qp_note_congestion(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	if ((pkt->tclass & 3) != 3)
		return;
	rcd_qp_count(qp, RCD_COUNTER_RX_ECN_MARKED, 1);
	if (qp->cnp_ns != 0 && now_ns - qp->cnp_ns < RCD_CNP_INTERVAL_NS)
		return;
	qp->cnp_ns = now_ns;
	qp->hot.cnp_pending = true;
	if (qp->hot.limited && rcd_opcode_info(pkt->roce.bth.opcode)->op == RCD_OP_READ_RESPONSE)
		rcd_gate_marked(qp, now_ns);
}

static enum rcd_rx_verdict
qp_dispatch(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	enum rcd_rx_verdict verdict = qp_check_common(qp, pkt);

	if (verdict != RCD_RX_EXECUTED)
		return verdict;
	if (pkt->roce.bth.opcode == RCD_OPCODE_CNP) {
		if (qp->hot.limited)
			rcd_gate_cnp(qp, now_ns);
		return RCD_RX_CNP;
	}
	if (rcd_qp_is_datagram(qp))
		return rcd_ud_rx(qp, pkt);
	if (rcd_opcode_info(pkt->roce.bth.opcode)->service == RCD_SERVICE_HELLO)
		return rcd_hello_rx(qp, &pkt->roce);
	qp_note_congestion(qp, pkt, now_ns);
	if (rcd_opcode_is_response(pkt->roce.bth.opcode))
		return rcd_comp_rx(qp, pkt, now_ns);
	if (qp->hot.state == RCD_QP_RTR && !qp->comm_est) {
		/* Spec: IBTA 11.6.3 a packet came before the consumer moved to RTS */
		qp->comm_est = true;
		rcd_qp_raise(qp, RCD_EVENT_COMM_EST);
	}
	return rcd_qp_is_reliable(qp) ? rcd_resp_rx(qp, pkt, now_ns) : rcd_uc_rx(qp, pkt);
}

static inline enum rcd_rx_verdict
qp_count_rx(struct rcd_qp *qp, uint32_t len, enum rcd_rx_verdict verdict)
{
	rcd_qp_count(qp, RCD_COUNTER_RCVD_PKTS, 1);
	rcd_qp_count(qp, RCD_COUNTER_RCVD_BYTES, len);
	rcd_qp_count(qp, verdict_info[verdict].counter, 1);
	return verdict;
}

enum rcd_rx_verdict
rcd_qp_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	enum rcd_rx_verdict verdict = qp_dispatch(qp, pkt, now_ns);

	/* Of what was believed otherwise. */
	if (qp->hot.looks && verdict == RCD_RX_EXECUTED &&
		rcd_opcode_info(pkt->roce.bth.opcode)->service != RCD_SERVICE_SACK)
		rcd_hello_note(qp, &pkt->roce.bth);
	return qp_count_rx(qp, pkt->payload_len, verdict);
}

bool
rcd_qp_tells_gap(const struct rcd_qp *qp)
{
	const struct rcd_qp_hot *hot = &qp->hot;

	if (!hot->hole_untold || hot->cnp_pending || hot->hello_due ||
		(hot->hello_asked && qp->hello.passed))
		return false;
	return hot->sack_pending ||
		(hot->nak_pending && hot->reply_count == 0 && qp->again.next == qp->again.end);
}

enum rcd_rx_verdict
rcd_qp_rx_frame(struct rcd_qp *qp, const uint8_t *frame, uint32_t len, bool csum_ok)
{
	enum rcd_rx_verdict verdict = RCD_RX_SERVICE;

	if (qp->hot.type == RCD_QP_RAW)
		verdict = qp->hot.state < RCD_QP_RTR || qp->hot.state == RCD_QP_ERR
			? RCD_RX_STATE
			: rcd_frame_rx(qp, frame, len, csum_ok);
	return qp_count_rx(qp, len, verdict);
}

static void
qp_build_cnp(struct rcd_qp *qp, struct rcd_tx_pkt *pkt)
{
	qp->hot.cnp_pending = false;
	rcd_qp_start_pkt(qp, pkt, RCD_OPCODE_CNP, rcd_psn(0));
	pkt->roce.bth.becn = true;
	memset(&pkt->roce.cnp, 0, sizeof(pkt->roce.cnp));
	rcd_qp_count(qp, RCD_COUNTER_TX_CNP, 1);
}

static bool
qp_tx_next(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt)
{
	struct rcd_qp_hot *hot = &qp->hot;

	/* In ERR only what was answered before the error is told, and the error itself. */
	if (hot->state < RCD_QP_RTR || (hot->state == RCD_QP_ERR && !hot->nak_pending))
		return false;
	if (hot->cnp_pending) {
		qp_build_cnp(qp, pkt);
		return true;
	}
	if ((hot->hello_due || hot->hello_asked) && rcd_hello_next(qp, pkt))
		return true;
	/* Ahead of responses, which may take long. */
	if (hot->sack_pending) {
		rcd_sack_build(qp, now_ns, pkt);
		return true;
	}
	if (hot->replies_limited && !rcd_gate_enter(qp, now_ns))
		return false;
	if (rcd_reply_next(qp, pkt)) {
		if (hot->replies_limited)
			rcd_gate_charge(qp, pkt, false);
		return true;
	}
	return rcd_req_next(qp, now_ns, pkt);
}

bool
rcd_qp_tx_next(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt)
{
	struct rcd_bth *bth = &pkt->roce.bth;

	if (!qp_tx_next(qp, now_ns, pkt))
		return false;
	if (qp->hot.marks)
		bth->mark = rcd_hello_mark(qp->hello.tx_seed, bth->opcode, bth->psn);
	return true;
}

bool
rcd_qp_tx_paused(const struct rcd_qp *qp)
{
	return qp->hot.paused && qp->hot.state == RCD_QP_RTS;
}

uint64_t
rcd_qp_next_deadline(const struct rcd_qp *qp)
{
	uint64_t rto = qp->hot.rto_deadline;
	uint64_t wait = qp->hot.wait_until;

	/* Either holds by itself. */
	if (qp->hot.held && qp->gate->held_ns > wait)
		wait = qp->gate->held_ns;
	if (rto == 0 || (wait != 0 && wait < rto))
		return wait;
	return rto;
}

void
rcd_qp_expire(struct rcd_qp *qp, uint64_t now_ns)
{
	if (qp->hot.wait_until != 0 && now_ns >= qp->hot.wait_until)
		qp->hot.wait_until = 0;
	if (qp->hot.held && now_ns >= qp->gate->held_ns)
		qp->hot.held = false;
	if (qp->hot.rto_deadline != 0 && now_ns >= qp->hot.rto_deadline &&
		!(qp->hot.limited && rcd_gate_defers(qp, now_ns)) && rcd_rto_expire(qp, now_ns)) {
		rcd_qp_count(qp, RCD_COUNTER_RTO, 1);
		rcd_comp_retry(qp, now_ns, RCD_WC_RETRY_EXC_ERR);
	}
}

enum rcd_qp_type
rcd_qp_type(const struct rcd_qp *qp)
{
	return qp->init.type;
}

struct rcd_qpn
rcd_qp_qpn(const struct rcd_qp *qp)
{
	return qp->init.qpn;
}

enum rcd_qp_state
rcd_qp_state(const struct rcd_qp *qp)
{
	return (enum rcd_qp_state)__atomic_load_n(&qp->hot.state, __ATOMIC_RELAXED);
}

uint32_t
rcd_qp_kept(const struct rcd_qp *qp)
{
	return qp->kept.count + qp->answers.count;
}

uint32_t
rcd_qp_sq_done(const struct rcd_qp *qp)
{
	return __atomic_load_n(&qp->hot.sq_head, __ATOMIC_RELAXED);
}

uint32_t
rcd_qp_messages(const struct rcd_qp *qp)
{
	return __atomic_load_n(&qp->hot.messages, __ATOMIC_RELAXED);
}

bool
rcd_qp_peer(const struct rcd_qp *qp, struct rcd_gid *dgid, struct rcd_qpn *qpn)
{
	if (rcd_qp_state(qp) < RCD_QP_RTR)
		return false;
	*dgid = qp->attr.av.dgid;
	*qpn = qp->attr.dest_qpn;
	return true;
}

uint32_t
rcd_qp_rq_done(const struct rcd_qp *qp)
{
	return qp->rq_next - (qp->recv_valid && qp->init.srq == NULL && qp->init.xrc == NULL);
}

const char *
rcd_qp_cc_name(const struct rcd_qp *qp)
{
	return __atomic_load_n(&qp->init.cc, __ATOMIC_RELAXED)->name;
}

size_t
rcd_qp_gate_size(void)
{
	return sizeof(struct rcd_gate);
}

int
rcd_qp_set_gate(struct rcd_qp *qp, void *mem)
{
	if (qp->gate != NULL)
		return -EEXIST;
	qp->gate = memset(mem, 0, sizeof(*qp->gate));
	rcd_gate_reset(qp);
	return 0;
}

int
rcd_qp_set_cc(struct rcd_qp *qp, const struct rcd_cc_ops *cc, const struct rcd_cc_params *params)
{
	bool datagram = rcd_qp_is_datagram(qp) || qp->hot.type == RCD_QP_RAW;

	if (qp->hot.type == RCD_QP_UC && cc->by_acks)
		cc = &rcd_cc_none;
	if (qp->hot.state > RCD_QP_INIT || (cc != &rcd_cc_none && (datagram || qp->gate == NULL)))
		return -EINVAL;
	__atomic_store_n(&qp->init.cc, cc, __ATOMIC_RELAXED);
	if (qp->gate != NULL)
		qp->gate->params = *params;
	rcd_gate_reset(qp);
	return 0;
}

bool
rcd_qp_reacts(const struct rcd_qp *qp)
{
	return __atomic_load_n(&qp->init.cc, __ATOMIC_RELAXED) != &rcd_cc_none;
}

void
rcd_qp_limits(const struct rcd_qp *qp, struct rcd_qp_limits *limits)
{
	const struct rcd_qp_limits *seen;

	*limits = (struct rcd_qp_limits){ .window = RCD_CC_NO_WINDOW };
	if (qp->gate == NULL)
		return;
	seen = &qp->gate->seen;
	*limits = (struct rcd_qp_limits){
		.window = __atomic_load_n(&seen->window, __ATOMIC_RELAXED),
		.rate_kbps = __atomic_load_n(&seen->rate_kbps, __ATOMIC_RELAXED),
		.cnps = __atomic_load_n(&seen->cnps, __ATOMIC_RELAXED),
		.losses = __atomic_load_n(&seen->losses, __ATOMIC_RELAXED),
		.window_ns = __atomic_load_n(&seen->window_ns, __ATOMIC_RELAXED),
		.pace_ns = __atomic_load_n(&seen->pace_ns, __ATOMIC_RELAXED),
		.limit_kbps = __atomic_load_n(&seen->limit_kbps, __ATOMIC_RELAXED),
	};
}

void
rcd_qp_progress(const struct rcd_qp *qp, struct rcd_qp_progress *progress)
{
	progress->next_deadline = rcd_qp_next_deadline(qp);
	progress->sq_done = qp->hot.sq_head;
	progress->rq_done = rcd_qp_rq_done(qp);
	progress->state = (enum rcd_qp_state)qp->hot.state;
	progress->flushing = qp->hot.flushing;
}
