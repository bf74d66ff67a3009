/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completer of RC: acknowledges, responses and NAKs to completions, and the decision to send again.
 *
 * What is outstanding is one range of PSNs, from psn_una to psn_next, cut into the records of the
 * work requests. Every answer first acknowledges what stands before it.
 */
#include <errno.h>

#include "rcd_gate_loss.h"
#include "rcd_qp_priv.h"

/* The oldest outstanding request made progress. */
static void
comp_note_progress(struct rcd_qp *qp, struct rcd_psn una, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint32_t packets = (uint32_t)rcd_psn_diff(una, hot->psn_una);
	uint64_t rtt_ns = 0;

	if (packets == 0)
		return;
	if (qp->rtt_begin_ns != 0 && rcd_psn_before(qp->rtt_psn, una))
		rtt_ns = rcd_rto_measure(qp, now_ns);
	hot->psn_una = una;
	hot->retry_left = qp->attr.retry_cnt;
	qp->gap_tries = 0;
	qp->ahead_count = 0;
	hot->rnr_left = qp->attr.rnr_retry;
	if (qp->again_valid && rcd_psn_before(qp->again_psn, una))
		qp->again_valid = false;
	if (rcd_psn_eq(una, hot->psn_next))
		hot->rto_deadline = 0;
	else
		rcd_rto_arm(qp, now_ns);
	/* More than was sent again is there: it was kept. */
	if (qp->repaired && rcd_psn_before(qp->repair_end, una)) {
		qp->repaired = false;
		qp->repair_steps = 0;
	}
	if (hot->window != RCD_REQ_WINDOW)
		rcd_recover_acked(qp, packets);
	if (hot->limited)
		rcd_gate_acked(qp, packets, rtt_ns, now_ns);
	if (qp->sack != NULL)
		rcd_sack_progress(qp, rcd_psn_sub(una, packets), now_ns);
}

/*
 * Acknowledges all PSNs before `end`, as far as no data is awaited for them.
 *
 * @return whether a READ or atomic stopped it: its responses are missing
 */
static bool
comp_acknowledge(struct rcd_qp *qp, struct rcd_psn end, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	bool read = false;

	while (hot->sq_head != hot->sq_next && hot->state != RCD_QP_ERR) {
		struct rcd_sq_rec *rec = rcd_sq_rec(qp, hot->sq_head);
		uint32_t packets = rcd_rec_packets(qp, hot->sq_head);
		struct rcd_psn rec_end = rcd_psn_add(rcd_rec_psn(rec), packets);
		bool whole = rcd_psn_diff(end, rec_end) >= 0;

		if (packets == 0) {
			/* Local and done; or failed, and now its turn. */
			bool failed = hot->sq_failed != 0 && hot->sq_head == qp->sq_fail;

			rcd_qp_complete_head(
				qp, failed ? (enum rcd_wc_status)hot->sq_failed : RCD_WC_SUCCESS);
			continue;
		}
		/* Not from the start of the record: that may be half of all PSNs away, or more. */
		if (!rcd_psn_before(hot->psn_una, end))
			break;
		read = rcd_wr_is_read(rcd_rec_opcode(rec));
		if (read) {
			if (rcd_psn_before(hot->psn_una, rcd_rec_psn(rec)))
				comp_note_progress(qp, rcd_rec_psn(rec), now_ns);
			break;
		}
		if (rcd_psn_before(hot->psn_una, whole ? rec_end : end))
			comp_note_progress(qp, whole ? rec_end : end, now_ns);
		if (!whole)
			break;
		rcd_qp_complete_head(qp, RCD_WC_SUCCESS);
	}
	/* What is acknowledged is the client's again, and must not be sent again. */
	rcd_req_skip_acked(qp);
	return read;
}

/* Takes the queue pair down because the oldest request failed. */
static enum rcd_rx_verdict
comp_fail_head(struct rcd_qp *qp, enum rcd_wc_status status)
{
	if (qp->hot.sq_head != qp->hot.sq_next)
		rcd_qp_complete_head(qp, status);
	else
		rcd_qp_error(qp, 0);
	return RCD_RX_EXECUTED;
}

static void
comp_note_again(struct rcd_qp *qp, uint64_t now_ns)
{
	qp->again_psn = qp->hot.psn_una;
	qp->again_ns = now_ns;
	qp->again_valid = true;
	qp->rtt_begin_ns = 0;
	qp->repaired = false;
	rcd_qp_count(qp, RCD_COUNTER_COMPLETER_RETRY_ERR, 1);
	if (qp->hot.limited) {
		rcd_gate_lost(qp, now_ns);
		rcd_gate_keep_loss(qp);
	}
}

static void
comp_send_again(struct rcd_qp *qp, uint64_t now_ns)
{
	comp_note_again(qp, now_ns);
	rcd_req_go_back(qp, qp->hot.psn_una);
	if (qp->sack != NULL)
		rcd_sack_forget(qp);
}

/* The packet at psn_una, alone; of a READ all that is missing. */
static void
comp_send_oldest(struct rcd_qp *qp, uint64_t now_ns)
{
	comp_note_again(qp, now_ns);
	qp->hot.repair = true;
	qp->repair_probe = false;
}

/*
 * Something is missing at psn_una. A peer that keeps what comes early needs that packet alone, one
 * that does not needs all behind it as well: which it is shows in what it acknowledges, and is
 * remembered for a while. What is missing before any round trip is known under congestion control
 * is most of a first window, which hole by hole would take as many round trips.
 */
static void
comp_repair(struct rcd_qp *qp, uint64_t now_ns)
{
	if (qp->peer_drops > 0)
		qp->peer_drops--;
	else if (!qp->hot.limited || qp->rtt_ns != 0) {
		comp_send_oldest(qp, now_ns);
		return;
	}
	rcd_recover_dropped(qp);
	comp_send_again(qp, now_ns);
}

/* Whether what was sent again alone is acknowledged, and nothing of what went before behind it. */
static bool
comp_repaired_alone(const struct rcd_qp *qp)
{
	return qp->repaired && qp->sack == NULL && rcd_psn_eq(qp->hot.psn_una, qp->repair_end) &&
		rcd_psn_before(qp->repair_end, qp->repair_high);
}

/* The peer kept nothing behind the gap, or nothing came there: all of it goes again. */
static void
comp_give_up_repair(struct rcd_qp *qp, uint64_t now_ns)
{
	if (!qp->repair_probe)
		qp->peer_drops = RCD_PEER_DROPS;
	qp->repair_steps = 0;
	comp_send_again(qp, now_ns);
}

void
rcd_comp_retry(struct rcd_qp *qp, uint64_t now_ns, enum rcd_wc_status status)
{
	struct rcd_qp_hot *hot = &qp->hot;

	if (rcd_psn_eq(hot->psn_una, hot->psn_next))
		return;
	/* Spec: IBTA 9.7.6.1.3 a count of 7 means seven times, not without end */
	if (hot->retry_left == 0) {
		rcd_qp_count(qp, RCD_COUNTER_RETRY_EXCEEDED_ERR, 1);
		comp_fail_head(qp, status);
		return;
	}
	hot->retry_left--;
	rcd_recover_timeout(qp);
	if (hot->limited)
		rcd_gate_loss_timeout(qp->gate);
	comp_send_again(qp, now_ns);
}

/*
 * Something is missing at psn_una: send again at once, unless that was done less than a round trip
 * ago and this is an echo of the same loss.
 *
 * The peer answers, so the path is not what retry_cnt is there to give up on: on a network that
 * loses and reorders much, seven would be spent by one unlucky packet. A peer that never gets any
 * further is given up on all the same.
 */
static void
comp_retry_gap(struct rcd_qp *qp, uint64_t now_ns)
{
	uint64_t rtt_ns = rcd_rto_round(qp);

	if (rcd_psn_eq(qp->hot.psn_una, qp->hot.psn_next))
		return;
	if (qp->again_valid && rcd_psn_eq(qp->again_psn, qp->hot.psn_una) &&
		now_ns - qp->again_ns < rtt_ns + rtt_ns / 2)
		return;
	if (qp->attr.retry_cnt == 0 || qp->gap_tries >= RCD_GAP_TRIES) {
		rcd_comp_retry(qp, now_ns, RCD_WC_RETRY_EXC_ERR);
		return;
	}
	qp->gap_tries++;
	comp_repair(qp, now_ns);
}

/*
 * A response came and not the one that is missing. After it was asked for again, what was under way
 * goes on for as long as the network holds it; only a PSN that is not above the last one is from
 * the answer to that request, or late.
 */
static void
comp_retry_read(struct rcd_qp *qp, struct rcd_psn psn, uint64_t now_ns)
{
	bool asked = qp->again_valid && rcd_psn_eq(qp->again_psn, qp->hot.psn_una);
	bool onward = rcd_psn_before(qp->ahead_psn, psn);

	qp->ahead_psn = psn;
	if (!asked || !onward)
		comp_retry_gap(qp, now_ns);
}

static enum rcd_rx_verdict
comp_rx_rnr_nak(struct rcd_qp *qp, uint8_t timer, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;

	rcd_qp_count(qp, RCD_COUNTER_RCVD_RNR_ERR, 1);
	/* An echo of the same refusal while waiting does not count again. */
	if (hot->wait_until > now_ns)
		return RCD_RX_EXECUTED;
	if (qp->attr.rnr_retry != 7) {
		if (hot->rnr_left == 0) {
			rcd_qp_count(qp, RCD_COUNTER_RETRY_RNR_EXCEEDED_ERR, 1);
			return comp_fail_head(qp, RCD_WC_RNR_RETRY_EXC_ERR);
		}
		hot->rnr_left--;
	}
	hot->wait_until = now_ns + rcd_rnr_timer_ns(timer);
	hot->rto_deadline = 0;
	qp->rtt_begin_ns = 0;
	rcd_req_go_back(qp, hot->psn_una);
	if (qp->sack != NULL)
		rcd_sack_forget(qp);
	return RCD_RX_EXECUTED;
}

static enum rcd_rx_verdict
comp_rx_nak(struct rcd_qp *qp, const struct rcd_roce *roce, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;

	/* What it names must be the oldest now: all before it was received. */
	if (!rcd_psn_eq(hot->psn_una, roce->bth.psn))
		return RCD_RX_STALE;
	switch ((enum rcd_nak)rcd_aeth_value(roce->aeth.syndrome)) {
	case RCD_NAK_PSN_SEQUENCE:
		rcd_qp_count(qp, RCD_COUNTER_RCVD_SEQ_ERR, 1);
		/* During an RNR wait it says nothing new (rxe sends it behind an RNR NAK). */
		if (hot->wait_until > now_ns || (qp->sack != NULL && rcd_sack_knows(qp)))
			return RCD_RX_EXECUTED;
		if (comp_repaired_alone(qp) && ++qp->repair_steps >= RCD_REPAIR_STEPS)
			comp_give_up_repair(qp, now_ns);
		else
			comp_retry_gap(qp, now_ns);
		return RCD_RX_EXECUTED;
	case RCD_NAK_INVALID_REQUEST:
		return comp_fail_head(qp, RCD_WC_REM_INV_REQ_ERR);
	case RCD_NAK_REMOTE_ACCESS:
		return comp_fail_head(qp, RCD_WC_REM_ACCESS_ERR);
	case RCD_NAK_REMOTE_OPERATION:
		return comp_fail_head(qp, RCD_WC_REM_OP_ERR);
	case RCD_NAK_INVALID_RD_REQUEST:
		break;
	}
	return RCD_RX_STALE;
}

/* Spec: IBTA 9.7.5.1, 9.7.5.2 an ACK covers all before it; over an unanswered READ it is a NAK */
static enum rcd_rx_verdict
comp_rx_acknowledge(struct rcd_qp *qp, const struct rcd_roce *roce, uint64_t now_ns)
{
	enum rcd_aeth_kind kind = rcd_aeth_kind(roce->aeth.syndrome);
	struct rcd_psn psn = roce->bth.psn;

	if (comp_acknowledge(qp, kind == RCD_AETH_ACK ? rcd_psn_add(psn, 1) : psn, now_ns)) {
		comp_retry_gap(qp, now_ns);
		return RCD_RX_EXECUTED;
	}
	if (qp->hot.state == RCD_QP_ERR)
		return RCD_RX_EXECUTED;
	switch (kind) {
	case RCD_AETH_ACK:
		if (rcd_psn_eq(rcd_psn_add(psn, 1), qp->repair_end) && comp_repaired_alone(qp))
			comp_give_up_repair(qp, now_ns);
		return RCD_RX_EXECUTED;
	case RCD_AETH_RNR_NAK:
		if (!rcd_psn_eq(qp->hot.psn_una, psn))
			return RCD_RX_STALE;
		return comp_rx_rnr_nak(qp, rcd_aeth_value(roce->aeth.syndrome), now_ns);
	case RCD_AETH_NAK:
		return comp_rx_nak(qp, roce, now_ns);
	case RCD_AETH_RESERVED:
		break;
	}
	return RCD_RX_STALE;
}

/*
 * Whether the opcode fits the place of the response: the last PSN of a READ ends it, and so does
 * that of a part that was asked for again.
 */
static bool
comp_response_fits(const struct rcd_pkt *pkt, bool atomic, bool last, uint32_t expected_len)
{
	uint8_t opcode = pkt->roce.bth.opcode;
	enum rcd_op op = (enum rcd_op)rcd_opcode_info(opcode)->op;

	if (atomic)
		return op == RCD_OP_ATOMIC_RESPONSE;
	return op != RCD_OP_ATOMIC_RESPONSE && (rcd_opcode_ends(opcode) || !last) &&
		pkt->payload_len == expected_len;
}

/* A READ or atomic has what it asked for, or a part of it. @return false when it can't be stored */
static bool
comp_store_response(
	struct rcd_qp *qp, const struct rcd_pkt *pkt, bool atomic, uint32_t offset, uint32_t len)
{
	const uint8_t *src = pkt->payload;
	uint8_t original[RCD_ATOMIC_LEN];

	if (atomic) {
		/* The result lies in the application's memory as a number of its own. */
		memcpy(original, &pkt->roce.atomicacketh.original, sizeof(original));
		src = original;
	}
	return rcd_sg_scatter(qp, qp->read.wr.sges, qp->read.wr.sge_count, offset, src, len) == 0;
}

/* The response for psn_una. */
static enum rcd_rx_verdict
comp_take_response(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint32_t number = hot->sq_head;
	const struct rcd_sq_rec *rec = rcd_sq_rec(qp, number);
	uint32_t packet = (uint32_t)rcd_psn_diff(hot->psn_una, rcd_rec_psn(rec));
	bool atomic = rcd_wr_is_atomic(rcd_rec_opcode(rec));
	bool empty = rcd_wr_is_empty_read(rcd_rec_opcode(rec));
	bool last = packet + 1 == rcd_rec_packets(qp, number);
	uint32_t offset = packet << hot->mtu_shift;
	uint32_t expected = empty ? 0 : last ? rec->len - offset : hot->mtu;

	if (!comp_response_fits(pkt, atomic, last, expected))
		return comp_fail_head(qp, RCD_WC_BAD_RESP_ERR);
	if (!empty && !rcd_req_load(qp, &qp->read, number))
		return RCD_RX_EXECUTED;
	if (!empty && !comp_store_response(qp, pkt, atomic, offset, expected))
		return comp_fail_head(qp, RCD_WC_LOC_PROT_ERR);
	comp_note_progress(qp, rcd_psn_add(hot->psn_una, 1), now_ns);
	if (hot->limited && rcd_gate_end_part(qp))
		hot->reads_out--;
	if (last) {
		hot->reads_out--;
		rcd_qp_complete_head(qp, RCD_WC_SUCCESS);
		/* Local operations behind it are done: they were waiting for their turn. */
		comp_acknowledge(qp, hot->psn_una, now_ns);
	}
	rcd_req_skip_acked(qp);
	return RCD_RX_EXECUTED;
}

/* Responses that were kept and whose turn it is now. */
static void
comp_drain_answers(struct rcd_qp *qp, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint32_t count = qp->answers.count;

	while (qp->answers.first != NULL && hot->state != RCD_QP_ERR &&
		!rcd_psn_before(hot->psn_una, qp->answers.first->roce.bth.psn)) {
		struct rcd_kept *kept = rcd_reorder_take(&qp->answers);
		struct rcd_pkt pkt = { .roce = kept->roce,
			.payload = kept->payload,
			.payload_len = kept->payload_len };

		if (comp_acknowledge(qp, rcd_psn_add(kept->roce.bth.psn, 1), now_ns) &&
			rcd_psn_eq(kept->roce.bth.psn, hot->psn_una))
			comp_take_response(qp, &pkt, now_ns);
		rcd_reorder_put(qp->init.reorder, kept);
	}
	/*
	 * The next hole, and not what is left of one that is being filled. The last of all is
	 * there, and nothing more comes to tell of it; or as much as tells of one is behind it
	 * already.
	 */
	if (qp->answers.first != NULL && qp->answers.count < count &&
		(rcd_psn_eq(rcd_psn_add(qp->answers.last->roce.bth.psn, 1), hot->psn_next) ||
			qp->answers.count >= RCD_AHEAD_MAX))
		comp_retry_gap(qp, now_ns);
}

/*
 * A response is missing. It may be late: those behind it are kept, so that nothing is lost by
 * waiting for a while. When it is not, it is asked for before time is up.
 */
static enum rcd_rx_verdict
comp_rx_ahead(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	struct rcd_psn psn = pkt->roce.bth.psn;
	bool kept = rcd_reorder_keep(qp->init.reorder, &qp->answers, pkt);
	bool last = rcd_psn_eq(rcd_psn_add(psn, 1), qp->hot.psn_next);

	if (!kept || last || ++qp->ahead_count >= RCD_AHEAD_MAX)
		comp_retry_read(qp, psn, now_ns);
	return kept ? RCD_RX_KEPT : RCD_RX_STALE;
}

/* The response for psn_una, and what was kept behind it. */
static enum rcd_rx_verdict
comp_rx_in_turn(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	const struct rcd_qp_hot *hot = &qp->hot;
	uint8_t reads_out = hot->reads_out;
	uint32_t count = qp->answers.count;
	bool probed = qp->probes > 0 && rcd_opcode_ends(pkt->roce.bth.opcode);
	enum rcd_rx_verdict verdict = comp_take_response(qp, pkt, now_ns);

	if (qp->answers.first != NULL)
		comp_drain_answers(qp, now_ns);
	/*
	 * A probe was answered, and more was asked for with it. When nothing had come behind it the
	 * answer to the READ itself was lost; else the rest of a hole was, or the next responses
	 * are on their way.
	 */
	if (probed && hot->reads_out == reads_out && qp->answers.count == count &&
		hot->state != RCD_QP_ERR)
		comp_send_oldest(qp, now_ns);
	return verdict;
}

static enum rcd_rx_verdict
comp_rx_response(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_psn psn = pkt->roce.bth.psn;

	/* Spec: IBTA 9.7.5.1 a response acknowledges what was asked before it */
	if (!comp_acknowledge(qp, rcd_psn_add(psn, 1), now_ns)) {
		/* A response where a SEND or WRITE is outstanding, which is acknowledged now. */
		return hot->state == RCD_QP_ERR ? RCD_RX_EXECUTED : RCD_RX_STALE;
	}
	if (hot->state == RCD_QP_ERR)
		return RCD_RX_EXECUTED;
	if (!rcd_psn_eq(psn, hot->psn_una))
		return comp_rx_ahead(qp, pkt, now_ns);
	return comp_rx_in_turn(qp, pkt, now_ns);
}

/*
 * It leaves ahead of responses to READs, and says nothing of those. Where nothing is kept of what
 * is out, or nothing may be sent again, it says what the NAK would that it stands for: that the
 * oldest is missing. Once of each: many SACKs tell of it, and it is sent again one time.
 */
static enum rcd_rx_verdict
comp_rx_sack(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	if (!rcd_sack_fits(qp, pkt->roce.bth.psn, now_ns))
		return RCD_RX_STALE;
	rcd_sack_take_seen(qp, &pkt->roce.sacketh, now_ns);
	comp_acknowledge(qp, pkt->roce.bth.psn, now_ns);
	if (qp->hot.state == RCD_QP_ERR)
		return RCD_RX_EXECUTED;
	if (rcd_sack_take_bitmap(qp, pkt, now_ns) &&
		rcd_psn_eq(pkt->roce.bth.psn, qp->hot.psn_una) && rcd_sack_is_blind(qp) &&
		!(qp->again_valid && rcd_psn_eq(qp->again_psn, qp->hot.psn_una)))
		comp_retry_gap(qp, now_ns);
	return RCD_RX_EXECUTED;
}

/*
 * A response to what is complete: dropped. Of a READ that was asked for again it shows that the
 * peer lives, which is what retries are there to find out (IBTA 9.7.6.1.3): one that paces its
 * responses may take many timeouts for those, and answers what is outstanding behind them. As many
 * as were asked for again count so, and not a single one more.
 */
static enum rcd_rx_verdict
comp_rx_late(struct rcd_qp *qp, enum rcd_op op)
{
	if (op == RCD_OP_READ_RESPONSE && qp->late_due > 0) {
		qp->late_due--;
		qp->hot.retry_left = qp->attr.retry_cnt;
	}
	return RCD_RX_STALE;
}

enum rcd_rx_verdict
rcd_comp_rx(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_psn psn = pkt->roce.bth.psn;
	enum rcd_op op = (enum rcd_op)rcd_opcode_info(pkt->roce.bth.opcode)->op;
	bool acknowledge = op == RCD_OP_ACKNOWLEDGE;

	if (op == RCD_OP_SACK)
		return comp_rx_sack(qp, pkt, now_ns);

	/*
	 * Outside what is outstanding: late, or from nowhere. A NAK may name what comes next, when
	 * what it was made for arrived before it left: it acknowledges everything.
	 */
	if (rcd_psn_eq(psn, hot->psn_next) && !rcd_psn_eq(psn, hot->psn_una) && acknowledge &&
		pkt->roce.aeth.syndrome == rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_PSN_SEQUENCE))
		return comp_rx_acknowledge(qp, &pkt->roce, now_ns);
	if (rcd_psn_before(psn, hot->psn_una))
		return comp_rx_late(qp, op);
	if (!rcd_psn_before(psn, hot->psn_next))
		return RCD_RX_STALE;
	if (acknowledge)
		return comp_rx_acknowledge(qp, &pkt->roce, now_ns);
	return comp_rx_response(qp, pkt, now_ns);
}
