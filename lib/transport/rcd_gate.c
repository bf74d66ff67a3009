/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The gate of a queue pair whose sending is limited.
 */
#include "rcd_gate_flight.h"
#include "rcd_gate_loss.h"
#include "rcd_qp_priv.h"

/*
 * A part of a READ is asked for when the window has room for a quarter of itself, or for so many
 * packets if that is more; half of it is enough.
 */
#define PART_STEPS   4
#define PART_PACKETS 4

/* Longest time between two packets that are sent again: shorter than a timeout. */
#define REPAIR_GAP_NS 500000

/*
 * Where packets were lost of late a window asks for so many acknowledges, until so many packets
 * have come: with one in a window, who loses it or the packet that asks waits for a probe. Without
 * SACK each loss costs a round trip as it is, and a peer may take long for an acknowledge.
 */
#define ASK_PARTS   2
#define ASK_PACKETS 1024

/* What is used of a window falls by this part of itself with each acknowledge, if it is no more. */
#define USED_FALLS 8

/* Most packets that pass unasked: of any window hot.pass holds as many. */
#define PASS_MAX 64

/* A byte at one kilobit per second. */
#define BYTE_KBPS_NS UINT64_C(8000000)

/* The only writer of a number that others look at. */
#define GATE_SEE(field, val) __atomic_store_n(&(field), (val), __ATOMIC_RELAXED)

/* What passed unasked is charged now. */
static void
gate_settle(struct rcd_qp *qp)
{
	if (qp->hot.passed == 0)
		return;
	if (rcd_qp_is_reliable(qp))
		qp->gate->flight += qp->hot.passed;
	qp->gate->asks = false;
	qp->hot.passed = 0;
}

/*
 * Of late half of the window was not used, nor is it now: that is not what holds back. Who fills it
 * all at once then asks when it closes.
 */
static bool
gate_is_roomy(const struct rcd_gate *gate)
{
	uint32_t half = gate->seen.window / 2;

	return gate->used < half && gate->flight < half;
}

static uint16_t
gate_ask_every(const struct rcd_qp *qp)
{
	uint32_t packet_bytes = qp->hot.mtu + RCD_GATE_PACKET_BYTES;
	uint32_t every;

	if (qp->sack == NULL || qp->gate->lossy == 0 || gate_is_roomy(qp->gate))
		return RCD_ACK_REQ_EVERY;
	every = qp->gate->seen.window / (ASK_PARTS * packet_bytes);
	/* Of a window of less than that each asks. */
	return (uint16_t)(every < RCD_ACK_REQ_EVERY ? every : RCD_ACK_REQ_EVERY);
}

static void
gate_ask(struct rcd_qp *qp)
{
	struct rcd_gate *gate = qp->gate;
	uint32_t window = qp->init.cc->window(&gate->cc);

	/* Before it asks, which what passed would answer. */
	gate_settle(qp);
	if (window < gate->seen.window)
		qp->hot.pass = 0;
	GATE_SEE(gate->seen.window, window);
	GATE_SEE(gate->seen.rate_kbps, qp->init.cc->rate(&gate->cc));
	/* It closed behind packets of which the last was to be followed, and asked for nothing. */
	gate->asks = qp->hot.since_ack_req > 0;
	qp->hot.ask_every = gate_ask_every(qp);
}

/* The first time that there is a clock. */
static void
gate_begin(struct rcd_qp *qp, uint64_t now_ns)
{
	if (qp->gate->begun)
		return;
	qp->gate->begun = true;
	qp->init.cc->init(
		&qp->gate->cc, &qp->gate->params, qp->hot.mtu + RCD_GATE_PACKET_BYTES, now_ns);
	gate_ask(qp);
}

void
rcd_gate_reset(struct rcd_qp *qp)
{
	if (qp->gate != NULL)
		*qp->gate = (struct rcd_gate){
			.params = qp->gate->params,
			.seen.window = RCD_CC_NO_WINDOW,
		};
	rcd_gate_limit(qp);
}

/* A burst is made up for when it was not used: a timer is late, or there was nothing to send. */
void
rcd_gate_limit(struct rcd_qp *qp)
{
	struct rcd_gate *gate = qp->gate;
	uint32_t kbps = qp->attr.rate_kbps;
	bool limited = gate != NULL && (kbps != 0 || qp->init.cc != &rcd_cc_none);
	bool of_responses = limited && (kbps != 0 || qp->init.cc->of_responses);

	/* Bytes are counted for a window only while something limits: what is under way is past. */
	if (gate != NULL && (!limited || !qp->hot.limited))
		rcd_gate_flush(qp);
	qp->hot.limited = limited;
	qp->hot.replies_limited = of_responses;
	qp->hot.held = false;
	qp->hot.pass = 0;
	qp->hot.ask_every = RCD_ACK_REQ_EVERY;
	if (gate == NULL)
		return;
	/* It stands where the old rate would have let a probe leave: it is looked at anew. */
	if (qp->hot.rto_deadline != 0 && qp->hot.rto_deadline == gate->rate_ns)
		qp->hot.rto_deadline = 1;
	gate->rate_kbps = kbps;
	gate->rate_ns = gate->rate_rest = 0;
	gate->credit_ns = RCD_CC_CREDIT_NS;
	if (kbps != 0 && qp->attr.burst_bytes != 0)
		gate->credit_ns = qp->attr.burst_bytes * BYTE_KBPS_NS / kbps;
	GATE_SEE(gate->seen.limit_kbps, kbps);
}

/* When the next may leave: what the algorithm does not hear of it does not hold back. */
static uint64_t
gate_next(const struct rcd_qp *qp, bool response)
{
	const struct rcd_gate *gate = qp->gate;

	if ((response && !qp->init.cc->of_responses) || gate->next_ns < gate->rate_ns)
		return gate->rate_ns;
	return gate->next_ns;
}

/* What was held back passes, or is no more. */
static void
gate_release(struct rcd_qp *qp, uint64_t now_ns)
{
	struct rcd_gate *gate = qp->gate;
	uint64_t held_ns = now_ns - gate->since_ns;

	if (gate->since_ns == 0)
		return;
	gate->since_ns = 0;
	if (gate->by_window) {
		rcd_qp_count(qp, RCD_COUNTER_CC_WINDOW_LIMITED, held_ns);
		GATE_SEE(gate->seen.window_ns, gate->seen.window_ns + held_ns);
	} else {
		rcd_qp_count(qp, RCD_COUNTER_CC_PACING_LIMITED, held_ns);
		GATE_SEE(gate->seen.pace_ns, gate->seen.pace_ns + held_ns);
	}
}

static void
gate_hold(struct rcd_qp *qp, bool by_window, uint64_t next_ns, uint64_t now_ns)
{
	struct rcd_gate *gate = qp->gate;

	if (gate->since_ns != 0 && gate->by_window != by_window)
		gate_release(qp, now_ns);
	if (gate->since_ns == 0)
		gate->since_ns = now_ns;
	gate->by_window = by_window;
	gate->held_ns = next_ns;
	qp->hot.held = !by_window;
}

void
rcd_gate_flush(struct rcd_qp *qp)
{
	if (qp->gate == NULL)
		return;
	qp->hot.pass = 0;
	qp->hot.passed = 0;
	qp->gate->flight = 0;
	qp->gate->part_count = 0;
	qp->hot.held = false;
	qp->gate->since_ns = 0;
}

static bool
gate_paced(struct rcd_qp *qp, bool response, uint64_t now_ns)
{
	uint64_t next_ns = gate_next(qp, response);

	if (now_ns >= next_ns)
		return false;
	gate_hold(qp, false, next_ns, now_ns);
	return true;
}

bool
rcd_gate_paced(struct rcd_qp *qp, uint64_t now_ns)
{
	qp->gate->now_ns = now_ns;
	return gate_paced(qp, false, now_ns);
}

bool
rcd_gate_defers(struct rcd_qp *qp, uint64_t now_ns)
{
	uint64_t next_ns = gate_next(qp, false);

	if (now_ns >= next_ns)
		return false;
	qp->rto_at += next_ns - now_ns;
	qp->hot.rto_deadline = next_ns;
	return true;
}

/* Whether responses to READs are in the window: an algorithm that paces them has the peer do it. */
static bool
gate_counts_reads(const struct rcd_qp *qp)
{
	return qp->gate->seen.window != RCD_CC_NO_WINDOW && !qp->init.cc->of_responses;
}

static uint64_t
gate_read_bytes(const struct rcd_qp *qp, uint32_t len)
{
	return len + (uint64_t)rcd_packets(qp, len) * RCD_GATE_PACKET_BYTES;
}

/* Room that is worth a request for a part of a READ, of which so much is left. */
static uint64_t
gate_step(const struct rcd_qp *qp, uint64_t left)
{
	uint64_t window = qp->gate->seen.window;
	uint64_t least = PART_PACKETS * (uint64_t)(qp->hot.mtu + RCD_GATE_PACKET_BYTES);
	uint64_t step = window / PART_STEPS > least ? window / PART_STEPS : least;

	if (step > window / 2)
		step = window / 2;
	return step < left ? step : left;
}

/*
 * Whether the window lets the next request pass. A packet passes as long as there is any room; a
 * READ that is asked for the first time needs some for its responses, unless nothing is under way.
 */
static bool
gate_fits(struct rcd_qp *qp)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	const struct rcd_sq_rec *rec = rcd_sq_rec(qp, hot->sq_tx);
	enum rcd_wr_opcode opcode = rcd_rec_opcode(rec);
	uint64_t flight;
	uint32_t offset;

	if (rcd_wr_is_read(opcode) && (opcode != RCD_WR_RDMA_READ || !gate_counts_reads(qp)))
		return true;
	/* No less than what is on its way: most windows are not full, and that is all. */
	if (opcode != RCD_WR_RDMA_READ && qp->gate->flight < qp->gate->seen.window)
		return true;
	flight = rcd_gate_flight(qp);
	if (flight >= qp->gate->seen.window)
		return false;
	if (opcode != RCD_WR_RDMA_READ || flight == 0 || !rcd_psn_eq(hot->psn_tx, hot->psn_next))
		return true;
	offset = (uint32_t)rcd_psn_diff(hot->psn_tx, rcd_rec_psn(rec)) << hot->mtu_shift;
	return qp->gate->seen.window - flight >=
		gate_step(qp, gate_read_bytes(qp, rec->len - offset));
}

/* What is asked for again is of one request, as a duplicate has to be (IBTA 9.7.5.1). */
uint32_t
rcd_gate_part(struct rcd_qp *qp, uint32_t left)
{
	struct rcd_gate *gate = qp->gate;
	const struct rcd_qp_hot *hot = &qp->hot;
	uint64_t flight, room;
	uint32_t packets = rcd_packets(qp, left);
	struct rcd_psn end;

	if (!rcd_psn_eq(hot->psn_tx, hot->psn_next)) {
		if (rcd_gate_find_part(qp, rcd_psn_add(hot->psn_tx, 1), &end) &&
			(uint32_t)rcd_psn_diff(end, hot->psn_tx) < packets)
			return (uint32_t)rcd_psn_diff(end, hot->psn_tx) << hot->mtu_shift;
		return left;
	}
	if (!gate_counts_reads(qp))
		return left;
	flight = rcd_gate_flight(qp);
	room = gate->seen.window > flight ? gate->seen.window - flight : 0;
	if (gate_read_bytes(qp, left) <= room || packets == 1)
		return left;
	room /= hot->mtu + RCD_GATE_PACKET_BYTES;
	if (room == 0)
		room = 1;
	if (room >= packets)
		return left;
	RCD_CHECK(!rcd_gate_is_full(qp));
	gate->parts[(gate->part_first + gate->part_count++) % RCD_GATE_PARTS] =
		rcd_psn_add(hot->psn_tx, (uint32_t)room);
	return (uint32_t)room << hot->mtu_shift;
}

/*
 * How many packets pass unasked: as long as all is new, nothing is paced, and the window has room
 * for them however long they are. What is answered with data is asked about. What the peer keeps
 * counts here: it may turn out not to.
 */
static uint32_t
gate_pass(const struct rcd_qp *qp)
{
	const struct rcd_gate *gate = qp->gate;
	uint32_t room;

	if ((gate->losing && gate->heavy) || gate->rate_kbps != 0 || gate->seen.rate_kbps != 0 ||
		!gate_counts_reads(qp) || !rcd_psn_eq(qp->hot.psn_tx, qp->hot.psn_next) ||
		gate->flight >= gate->seen.window)
		return 0;
	room = (gate->seen.window - gate->flight) / (qp->hot.mtu + RCD_GATE_PACKET_BYTES);
	return room < PASS_MAX ? room : PASS_MAX;
}

bool
rcd_gate_open(struct rcd_qp *qp, uint64_t now_ns)
{
	gate_begin(qp, now_ns);
	gate_settle(qp);
	if (rcd_gate_paced(qp, now_ns))
		return false;
	if (rcd_qp_is_reliable(qp) && qp->gate->seen.window != RCD_CC_NO_WINDOW &&
		!qp->gate->asks && !gate_fits(qp)) {
		gate_hold(qp, true, 0, now_ns);
		return false;
	}
	gate_release(qp, now_ns);
	qp->hot.held = false;
	if (!rcd_wr_is_read(rcd_rec_opcode(rcd_sq_rec(qp, qp->hot.sq_tx))))
		qp->hot.pass = (uint16_t)gate_pass(qp);
	return true;
}

/*
 * Packet conservation in a flood of losses: in a round trip no more is sent again than the window
 * holds, however much is known to be missing.
 */
static void
gate_pace_repair(const struct rcd_qp *qp, uint32_t bytes)
{
	struct rcd_gate *gate = qp->gate;
	uint64_t kbps;

	if (gate->seen.window == RCD_CC_NO_WINDOW || !gate->losing || !gate->heavy)
		return;
	kbps = gate->seen.window * BYTE_KBPS_NS / rcd_rto_round(qp) + 1;
	rcd_cc_pace(&gate->repair_ns, bytes, kbps < UINT32_MAX ? (uint32_t)kbps : UINT32_MAX,
		gate->now_ns);
	if (gate->repair_ns > gate->now_ns + REPAIR_GAP_NS)
		gate->repair_ns = gate->now_ns + REPAIR_GAP_NS;
	if (gate->next_ns < gate->repair_ns)
		gate->next_ns = gate->repair_ns;
}

/* So many bytes leave now of a queue pair that has a rate: in the long run no more than that. */
static void
gate_pace(struct rcd_gate *gate, uint32_t bytes)
{
	uint64_t spent = bytes * BYTE_KBPS_NS + gate->rate_rest;
	uint64_t earliest = gate->now_ns > gate->credit_ns ? gate->now_ns - gate->credit_ns : 0;

	if (gate->rate_ns < earliest)
		gate->rate_ns = earliest;
	gate->rate_ns += spent / gate->rate_kbps;
	gate->rate_rest = (uint32_t)(spent % gate->rate_kbps);
}

/* A packet that takes so many bytes, and did not pass unasked. */
static void
gate_charge(struct rcd_qp *qp, const struct rcd_tx_pkt *pkt, bool fresh, uint32_t bytes)
{
	struct rcd_gate *gate = qp->gate;
	bool frame = qp->hot.type == RCD_QP_RAW;
	enum rcd_op op = (enum rcd_op)rcd_opcode_info(pkt->roce.bth.opcode)->op;
	bool response = !fresh && !frame && rcd_opcode_is_response(pkt->roce.bth.opcode);
	/* A request for data has so much come into the network. */
	bool reads = op == RCD_OP_RDMA_READ && gate_counts_reads(qp);

	if (response && pkt->payload_len == 0)
		return;
	gate_release(qp, gate->now_ns);
	qp->hot.held = false;
	if (gate->rate_kbps != 0)
		gate_pace(gate, bytes);
	if (response && !qp->init.cc->of_responses)
		return;
	if (reads)
		bytes = (uint32_t)gate_read_bytes(qp, pkt->roce.reth.dma_len);
	gate->next_ns = gate->now_ns;
	if (gate->seen.rate_kbps != 0)
		gate->next_ns = qp->init.cc->send_at(&gate->cc, bytes, gate->now_ns);
	if (!fresh && !response)
		gate_pace_repair(qp, bytes);
	if (gate->next_ns > gate->now_ns)
		gate_ask(qp);
	gate->asks = false;
	if (fresh && rcd_qp_is_reliable(qp) && (op <= RCD_OP_RDMA_WRITE || reads))
		gate->flight += bytes;
}

void
rcd_gate_charge(struct rcd_qp *qp, const struct rcd_tx_pkt *pkt, bool fresh)
{
	bool frame = qp->hot.type == RCD_QP_RAW;
	uint32_t bytes = pkt->payload_len + (frame ? RCD_GATE_FRAME_BYTES : RCD_GATE_PACKET_BYTES);

	if (!fresh || qp->hot.pass == 0) {
		gate_charge(qp, pkt, fresh, bytes);
		return;
	}
	qp->hot.pass--;
	qp->hot.passed += bytes;
}

bool
rcd_gate_enter(struct rcd_qp *qp, uint64_t now_ns)
{
	gate_begin(qp, now_ns);
	qp->gate->now_ns = now_ns;
	/* An acknowledge waits behind responses, which it would declare lost. */
	return !((qp->again.next != qp->again.end || qp->hot.reply_count > 0) &&
		gate_paced(qp, true, now_ns));
}

/*
 * Whether answers wait at the peer, and not in the network: behind responses to READs that no
 * window is for, or for the answer to the oldest request, a FLUSH or an atomic. Responses in the
 * window are what it is to hold back, wherever they wait.
 */
static bool
gate_waits_at_peer(struct rcd_qp *qp)
{
	enum rcd_wr_opcode opcode;

	if (qp->hot.reads_out == 0)
		return false;
	opcode = rcd_rec_opcode(rcd_sq_rec(qp, qp->hot.sq_head));
	return !gate_counts_reads(qp) || (opcode != RCD_WR_RDMA_READ && rcd_wr_is_read(opcode));
}

void
rcd_gate_acked(struct rcd_qp *qp, uint32_t packets, uint64_t rtt_ns, uint64_t now_ns)
{
	struct rcd_gate *gate = qp->gate;
	uint32_t left = rcd_psn_span(qp->hot.psn_una, qp->hot.psn_next);
	struct rcd_cc_ack ack = { .now_ns = now_ns };

	gate_settle(qp);
	/* Its part of all that is outstanding: the sum comes out, whatever single packets had. */
	ack.flight = ack.bytes = gate->flight;
	/* The last acknowledge of a burst sees but its end. */
	gate->used -= gate->used / USED_FALLS;
	if (gate->used < ack.flight)
		gate->used = ack.flight;
	if (left != 0)
		ack.bytes = (uint32_t)((uint64_t)gate->flight * packets / (left + packets));
	if (gate_waits_at_peer(qp))
		gate->read_ns = now_ns;
	if (rtt_ns != 0 && now_ns - rtt_ns > gate->read_ns) {
		ack.rtt_ns = (uint32_t)rtt_ns;
		if (qp->init.away_ns != NULL)
			ack.away_ns = __atomic_load_n(qp->init.away_ns, __ATOMIC_RELAXED);
	}
	gate->flight -= ack.bytes;
	rcd_gate_loss_came(gate, packets);
	gate->lossy -= packets < gate->lossy ? packets : gate->lossy;
	if (gate->losing && !rcd_psn_before(qp->hot.psn_una, gate->loss_end))
		gate->losing = false;
	gate_begin(qp, now_ns);
	/* Nothing new of a window that is hardly used, nor does it close. */
	if (ack.rtt_ns == 0 && gate_counts_reads(qp) && ack.flight < gate->seen.window / 2)
		return;
	qp->init.cc->on_ack(&gate->cc, &ack);
	gate_ask(qp);
}

/*
 * One burst leaves many holes, repaired one after the other: what is missing of all that was under
 * way is one loss, which may turn out to be a heavy one.
 */
bool
rcd_gate_lost(struct rcd_qp *qp, uint64_t now_ns)
{
	struct rcd_gate *gate = qp->gate;
	bool heavy = rcd_gate_loss_take(qp, now_ns);
	bool again = gate->losing;

	if (again && (!heavy || gate->heavy || now_ns - gate->loss_ns < rcd_rto_round(qp)))
		return false;
	gate->losing = true;
	gate->heavy = heavy;
	gate->lossy = ASK_PACKETS;
	qp->hot.pass = 0;
	gate->loss_end = qp->hot.psn_next;
	gate->loss_ns = now_ns;
	GATE_SEE(gate->seen.losses, gate->seen.losses + 1);
	gate_begin(qp, now_ns);
	if (!again) {
		gate->before = gate->cc;
		gate->undo = true;
	}
	qp->init.cc->on_loss(&gate->cc, heavy, now_ns);
	gate_ask(qp);
	return !again;
}

void
rcd_gate_undo(struct rcd_qp *qp)
{
	struct rcd_gate *gate = qp->gate;

	if (!gate->undo)
		return;
	gate->undo = false;
	/* What is lost next is a loss of its own. */
	gate->losing = false;
	qp->init.cc->undo(&gate->cc, &gate->before);
	gate_ask(qp);
}

void
rcd_gate_keep_loss(struct rcd_qp *qp)
{
	if (qp->gate != NULL)
		qp->gate->undo = false;
}

static void
gate_note_congestion(struct rcd_qp *qp, uint64_t now_ns)
{
	rcd_gate_keep_loss(qp);
	qp->init.cc->on_cnp(&qp->gate->cc, now_ns);
	gate_ask(qp);
}

void
rcd_gate_cnp(struct rcd_qp *qp, uint64_t now_ns)
{
	gate_begin(qp, now_ns);
	GATE_SEE(qp->gate->seen.cnps, qp->gate->seen.cnps + 1);
	rcd_qp_count(qp, RCD_COUNTER_CNP_HANDLED, 1);
	gate_note_congestion(qp, now_ns);
}

void
rcd_gate_marked(struct rcd_qp *qp, uint64_t now_ns)
{
	if (gate_counts_reads(qp))
		gate_note_congestion(qp, now_ns);
}
