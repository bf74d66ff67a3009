/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Selective acknowledgement: bits of what the peer has, and what is lost by the order of time. The
 * packets themselves are built and sent by the requester (rcd_req.c), and kept by the responder
 * (rcd_resp.c).
 *
 * A packet is lost when one that was sent after it has come (RFC 8985); it is sent again, and may
 * then be lost again by the same rule, so once in a round trip. Each packet that comes costs no
 * more than a walk over the window.
 */
#include "rcd_sack.h"

#include <errno.h>

#include "rcd_qp_priv.h"

/* Ticks that a time may be old, at most, so that others can be before and behind it. */
#define TICKS_MAX (UINT32_MAX / 4)

/* Packets that are sent again without progress: as if NAKs had asked for all of a window. */
#define TRIES_MAX (RCD_GAP_TRIES * RCD_SACK_PSNS)

/* Sixteenths of a round trip that packets may overtake others by, at most. */
#define PATIENCE_MAX 16

/* Round trips with losses, and with nothing sent again in vain, after which it is one less. */
#define CALM_ROUNDS 16

static uint32_t *
sack_sent_at(struct rcd_sack *sack, struct rcd_psn psn)
{
	return &sack->sent[psn.val % RCD_SACK_PSNS];
}

static uint32_t
sack_ticks(uint64_t now_ns)
{
	return (uint32_t)(now_ns >> RCD_SACK_TICK_SHIFT);
}

/* Whether what is kept of a PSN is of it, and not of one that uses its place. */
static bool
sack_tracks(const struct rcd_qp *qp, struct rcd_psn psn)
{
	return rcd_psn_before(psn, qp->hot.psn_next) &&
		rcd_psn_span(psn, qp->hot.psn_next) <= RCD_SACK_PSNS &&
		!rcd_psn_before(psn, qp->sack->blind);
}

/* A request is kept, and told of when it is near enough. */
static void
sack_keep(struct rcd_qp *qp, struct rcd_psn psn)
{
	if (rcd_psn_diff(psn, qp->hot.epsn) < RCD_SACK_PSNS)
		rcd_sack_bits_set(&qp->sack->kept, psn, true);
}

int
rcd_qp_set_sack(struct rcd_qp *qp, void *mem)
{
	struct rcd_sack *sack = mem;

	if (!rcd_qp_is_reliable(qp) || qp->hot.state < RCD_QP_INIT || qp->hot.state > RCD_QP_SQD ||
		qp->sack != NULL)
		return -EINVAL;
	memset(sack, 0, sizeof(*sack));
	qp->sack = sack;
	/* The peer may be given its memory a moment later. */
	qp->nak_beside = RCD_NAKS_BESIDE;
	qp->hot.nak_spared = false;
	rcd_sack_start(qp);
	/* The peer is told of what was kept before it was known. */
	for (const struct rcd_kept *kept = qp->kept.first; kept != NULL; kept = kept->next)
		sack_keep(qp, kept->roce.bth.psn);
	return 0;
}

void
rcd_sack_start(struct rcd_qp *qp)
{
	qp->sack->floor = qp->hot.psn_una;
	qp->sack->blind = qp->sack->scan = qp->hot.psn_next;
}

size_t
rcd_qp_sack_size(void)
{
	return sizeof(struct rcd_sack);
}

/* Whether the copy that was sent last may still be on its way. */
static bool
sack_may_come(const struct rcd_qp *qp, struct rcd_psn psn, uint64_t now_ns)
{
	uint32_t ago = sack_ticks(now_ns) - *sack_sent_at(qp->sack, psn);

	return ago <= rcd_rto_probe_after(qp) >> RCD_SACK_TICK_SHIFT;
}

void
rcd_sack_sent(struct rcd_qp *qp, struct rcd_psn psn, bool again, uint64_t now_ns)
{
	struct rcd_sack *sack = qp->sack;

	sack->last_psn = psn;
	if (rcd_psn_diff(psn, qp->hot.psn_una) >= RCD_SACK_PSNS) {
		sack->blind = rcd_psn_add(psn, 1);
		return;
	}
	/* Of three copies nobody can tell which came. */
	if (again && rcd_sack_bits_test(&sack->again, psn))
		rcd_gate_keep_loss(qp);
	rcd_sack_bits_set(&sack->doubt, psn, again && sack_may_come(qp, psn, now_ns));
	*sack_sent_at(sack, psn) = sack_ticks(now_ns);
	rcd_sack_bits_set(&sack->again, psn, again);
	if (again)
		return;
	rcd_sack_bits_set(&sack->held, psn, false);
	rcd_sack_bits_set(&sack->repair, psn, false);
}

void
rcd_sack_forget(struct rcd_qp *qp)
{
	struct rcd_sack *sack = qp->sack;

	memset(&sack->held, 0, sizeof(sack->held));
	sack->floor = qp->hot.psn_una;
	sack->newest_valid = false;
	qp->hot.sack_holes = false;
}

/* A packet is known to have come: those that were sent before it, and have not, may be lost. */
static void
sack_came(struct rcd_qp *qp, struct rcd_psn psn, uint64_t now_ns)
{
	struct rcd_sack *sack = qp->sack;
	uint32_t at = *sack_sent_at(sack, psn);
	int32_t later = (int32_t)(at - sack->newest);

	/* Sooner than the network can be is the answer to an earlier copy of it. */
	if (rcd_sack_bits_test(&sack->doubt, psn) && sack_ticks(now_ns) - at < sack->base)
		return;
	if (sack->newest_valid &&
		(later < 0 || (later == 0 && !rcd_psn_before(sack->newest_psn, psn))))
		return;
	sack->newest_valid = true;
	sack->newest = at;
	sack->newest_psn = psn;
	sack->scan = sack->floor;
	qp->hot.sack_holes = true;
}

void
rcd_sack_progress(struct rcd_qp *qp, struct rcd_psn from, uint64_t now_ns)
{
	const struct rcd_sq_rec *head = rcd_sq_rec(qp, qp->hot.sq_head);
	struct rcd_psn una = qp->hot.psn_una;
	struct rcd_psn last = rcd_psn_sub(una, 1);
	struct rcd_sack *sack = qp->sack;

	sack->tries = 0;
	if (rcd_psn_before(sack->floor, una))
		sack->floor = una;
	/* As far as what is kept of them. */
	if (rcd_psn_diff(una, sack->blind) > RCD_SACK_PSNS)
		sack->blind = rcd_psn_sub(una, RCD_SACK_PSNS);
	/* Times are of no use to what is sent much later. */
	if (rcd_psn_eq(una, qp->hot.psn_next)) {
		rcd_sack_forget(qp);
		return;
	}
	/* Responses to a READ say nothing of requests, and may be all that comes for long. */
	if (rcd_wr_is_read(rcd_rec_opcode(head)) && rcd_psn_before(rcd_rec_psn(head), una)) {
		sack->newest_valid &= sack_ticks(now_ns) - sack->newest < TICKS_MAX;
		return;
	}
	/* The hole that was filled, and the last of what was sent in order. */
	if (sack_tracks(qp, from))
		sack_came(qp, from, now_ns);
	if (sack_tracks(qp, last))
		sack_came(qp, last, now_ns);
	/* It had this one, and drops all that it keeps when it has no receive request. */
	if (sack_tracks(qp, una) && rcd_sack_bits_test(&sack->held, una))
		rcd_sack_forget(qp);
}

/* How long a packet may be late before one that was sent after it says that it is lost. */
static uint32_t
sack_patience(const struct rcd_sack *sack)
{
	return sack->base / 16 * sack->patience;
}

static bool
sack_is_lost(struct rcd_sack *sack, struct rcd_psn psn)
{
	int32_t before = (int32_t)(sack->newest - *sack_sent_at(sack, psn));
	int32_t patience = (int32_t)sack_patience(sack);

	if (!sack->newest_valid || rcd_sack_bits_test(&sack->held, psn))
		return false;
	/* Nothing was sent since that could say more. */
	if (rcd_psn_eq(sack->newest_psn, sack->last_psn))
		patience = 0;
	return before > patience ||
		(before == 0 && patience == 0 && rcd_psn_before(psn, sack->newest_psn));
}

bool
rcd_sack_is_blind(const struct rcd_qp *qp)
{
	return qp->attr.retry_cnt == 0 || !sack_tracks(qp, qp->hot.psn_una);
}

bool
rcd_sack_knows(struct rcd_qp *qp)
{
	struct rcd_psn una = qp->hot.psn_una;
	struct rcd_sack *sack = qp->sack;

	if (qp->attr.retry_cnt == 0 || !sack_tracks(qp, una) || rcd_psn_before(una, sack->floor))
		return false;
	return rcd_sack_bits_test(&sack->repair, una) || sack_is_lost(sack, una);
}

/* A packet that came twice was sent again for nothing: it was only late. */
static void
sack_note_twice(struct rcd_qp *qp, struct rcd_psn seen)
{
	struct rcd_sack *sack = qp->sack;

	if (!rcd_sack_bits_test(&sack->repair, seen) ||
		!(rcd_psn_before(seen, sack->floor) || rcd_sack_bits_test(&sack->held, seen)))
		return;
	rcd_sack_bits_set(&sack->repair, seen, false);
	rcd_qp_count(qp, RCD_COUNTER_SPURIOUS, 1);
	if (!rcd_psn_before(seen, sack->loss_from) && --sack->loss_repairs == 0 && qp->hot.limited)
		rcd_gate_undo(qp);
	sack->calm = 0;
	if (sack->patience < PATIENCE_MAX)
		sack->patience++;
}

void
rcd_sack_take_seen(struct rcd_qp *qp, const struct rcd_sacketh *sacketh, uint64_t now_ns)
{
	struct rcd_sack *sack = qp->sack;
	uint32_t delay = sacketh->delay_ns >> RCD_SACK_TICK_SHIFT;
	uint32_t took;

	if (!sack_tracks(qp, sacketh->seen))
		return;
	sack_note_twice(qp, sacketh->seen);
	took = sack_ticks(now_ns) - *sack_sent_at(sack, sacketh->seen);
	if (!rcd_sack_bits_test(&sack->again, sacketh->seen) && took > delay) {
		if (sack->base == 0 || took - delay < sack->base)
			sack->base = took - delay;
		rcd_rto_sample(qp, (uint64_t)took << RCD_SACK_TICK_SHIFT);
	}
	sack_came(qp, sacketh->seen, now_ns);
}

/* Bits for the PSNs from @p psn on. */
static void
sack_take_word(struct rcd_qp *qp, struct rcd_psn psn, uint32_t word, uint64_t now_ns)
{
	struct rcd_sack *sack = qp->sack;

	for (word &= ~(uint32_t)rcd_sack_bits_word(&sack->held, psn); word != 0; word &= word - 1) {
		struct rcd_psn one = rcd_psn_add(psn, (uint32_t)__builtin_ctz(word));

		/* Those behind it are not tracked either. */
		if (!rcd_psn_before(one, qp->hot.psn_next))
			return;
		if (!sack_tracks(qp, one))
			continue;
		rcd_sack_bits_set(&sack->held, one, true);
		rcd_recover_came(qp, 1);
		sack_came(qp, one, now_ns);
	}
}

bool
rcd_sack_fits(const struct rcd_qp *qp, struct rcd_psn expected, uint64_t now_ns)
{
	return !rcd_psn_before(expected, qp->hot.psn_una) &&
		rcd_psn_diff(expected, qp->hot.psn_next) <= 0 && qp->hot.wait_until <= now_ns;
}

bool
rcd_sack_take_bitmap(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns)
{
	struct rcd_psn expected = pkt->roce.bth.psn;
	bool any = false;

	if (rcd_psn_before(qp->sack->floor, expected))
		qp->sack->floor = expected;
	for (uint32_t i = 0; i + 4 <= pkt->payload_len && i < RCD_SACK_BITMAP_MAX_LEN; i += 4) {
		uint32_t word = rcd_get_le32(pkt->payload + i);
		struct rcd_psn psn = rcd_psn_add(expected, 1 + 8 * i);

		any |= word != 0 &&
			rcd_psn_before(
				rcd_psn_add(psn, (uint32_t)__builtin_ctz(word)), qp->hot.psn_next);
		sack_take_word(qp, psn, word, now_ns);
	}
	return any;
}

/*
 * Whether there is a packet with this PSN. If not, it is in the middle of a READ, or of a part of
 * one: of its end.
 */
static bool
sack_is_packet(struct rcd_qp *qp, struct rcd_psn psn, struct rcd_psn *end)
{
	uint32_t number = rcd_req_find(qp, psn);
	const struct rcd_sq_rec *rec = rcd_sq_rec(qp, number);
	struct rcd_psn part;

	*end = rcd_psn_add(rcd_rec_psn(rec), rcd_rec_packets(qp, number));
	if (!rcd_wr_is_read(rcd_rec_opcode(rec)) || rcd_psn_eq(psn, rcd_rec_psn(rec)))
		return true;
	if (rcd_gate_find_part(qp, psn, &part) && rcd_psn_before(part, *end))
		*end = part;
	return rcd_psn_eq(psn, *end);
}

/* The next that is lost, from where the last walk ended. @return false: there is none */
static bool
sack_find_lost(struct rcd_qp *qp)
{
	struct rcd_sack *sack = qp->sack;
	struct rcd_psn end = qp->hot.psn_tx;

	/* What is first sent is sent in the order of PSNs: behind it all is newer. */
	if (!rcd_sack_bits_test(&sack->again, sack->newest_psn) &&
		rcd_psn_before(sack->newest_psn, end))
		end = sack->newest_psn;
	/* A request that failed has no packets any more. */
	if (qp->hot.sq_failed != 0) {
		struct rcd_psn failed = rcd_rec_psn(rcd_sq_rec(qp, qp->sq_fail));

		end = rcd_psn_before(failed, end) ? failed : end;
	}
	if (rcd_psn_before(sack->scan, sack->floor))
		sack->scan = sack->floor;
	if (rcd_psn_before(sack->scan, sack->blind))
		sack->scan = sack->blind;
	while (rcd_psn_before(sack->scan, end)) {
		uint64_t missing = ~rcd_sack_bits_word(&sack->held, sack->scan);
		struct rcd_psn behind;

		sack->scan = rcd_psn_add(
			sack->scan, missing == 0 ? 64 : (uint32_t)__builtin_ctzll(missing));
		if (missing == 0 || !rcd_psn_before(sack->scan, end))
			continue;
		if (!sack_tracks(qp, sack->scan))
			return false;
		if (!sack_is_lost(sack, sack->scan))
			sack->scan = rcd_psn_add(sack->scan, 1);
		else if (sack_is_packet(qp, sack->scan, &behind))
			return true;
		else
			sack->scan = behind;
	}
	return false;
}

/*
 * Something is lost: congestion control is told once in a round trip. Of what is sent again for a
 * loss each packet is counted, whenever that is.
 */
static void
sack_note_loss(struct rcd_qp *qp, struct rcd_psn psn, uint64_t now_ns)
{
	struct rcd_sack *sack = qp->sack;
	uint32_t ticks = sack_ticks(now_ns);
	bool fresh = now_ns - sack->loss_ns >= rcd_rto_round(qp);
	bool recent = qp->hot.window == RCD_REQ_WINDOW ||
		ticks - *sack_sent_at(sack, psn) < ticks - sack->cut;

	sack->loss_repairs++;
	rcd_qp_count(qp, RCD_COUNTER_SACK_REPAIR, 1);
	qp->rtt_begin_ns = 0;
	if (rcd_recover_lost(qp, fresh, recent))
		sack->cut = ticks;
	if (!fresh)
		return;
	sack->loss_ns = now_ns;
	if (sack->patience > 0 && ++sack->calm >= CALM_ROUNDS) {
		sack->calm = 0;
		sack->patience--;
	}
	rcd_qp_count(qp, RCD_COUNTER_COMPLETER_RETRY_ERR, 1);
	if (!qp->hot.limited || !rcd_gate_lost(qp, now_ns))
		return;
	sack->loss_from = qp->hot.psn_una;
	/* Sent again by what was told, and not known to be so in vain. */
	sack->loss_repairs = rcd_sack_bits_count(&sack->repair, qp->hot.psn_una, qp->hot.psn_next);
}

bool
rcd_sack_next(struct rcd_qp *qp, uint64_t now_ns, struct rcd_psn *psn)
{
	struct rcd_qp_hot *hot = &qp->hot;
	struct rcd_sack *sack = qp->sack;

	hot->sack_holes = (hot->state == RCD_QP_RTS || hot->state == RCD_QP_SQD) &&
		qp->attr.retry_cnt > 0 && sack_find_lost(qp);
	if (!hot->sack_holes)
		return false;
	/* What comes next from the peer lets more of them leave, or a probe does. */
	if (now_ns - sack->loss_ns < rcd_rto_round(qp) && rcd_recover_holds(qp))
		return false;
	*psn = sack->scan;
	sack->scan = rcd_psn_add(sack->scan, 1);
	/* A peer that lives and never gets any further is left to the timeout. */
	if (sack->tries >= TRIES_MAX) {
		hot->sack_holes = false;
		return false;
	}
	sack->tries++;
	if (rcd_psn_eq(*psn, hot->psn_una) && rcd_sack_bits_test(&sack->repair, *psn)) {
		if (qp->gap_tries >= RCD_GAP_TRIES)
			return false;
		qp->gap_tries++;
	}
	rcd_sack_bits_set(&sack->repair, *psn, true);
	sack_note_loss(qp, *psn, now_ns);
	return true;
}

void
rcd_sack_note(struct rcd_qp *qp, const struct rcd_bth *bth, uint64_t now_ns)
{
	struct rcd_sack *sack = qp->sack;

	sack->seen = bth->psn;
	sack->seen_ns = now_ns;
	/*
	 * It came before: who sent it again in vain learns that. A READ is asked for again because
	 * of its responses, which come again.
	 */
	if (rcd_psn_before(bth->psn, qp->hot.epsn) &&
		rcd_opcode_info(bth->opcode)->op <= RCD_OP_RDMA_WRITE)
		qp->hot.sack_pending = true;
}

/* Whether it is kept already, and SACKs say so. */
static bool
sack_is_told(const struct rcd_qp *qp, struct rcd_psn psn)
{
	return rcd_psn_span(qp->hot.epsn, psn) < RCD_SACK_PSNS &&
		rcd_sack_bits_test(&qp->sack->kept, psn);
}

/*
 * Who sends again what is kept, and not what is missing, may not hear SACKs: he has no memory for
 * it, say. The next holes he is told of by NAKs as well.
 */
void
rcd_sack_ahead(struct rcd_qp *qp, const struct rcd_bth *bth, bool kept, bool onward)
{
	struct rcd_sack *sack = qp->sack;

	if (kept)
		sack_keep(qp, bth->psn);
	else if (qp->hot.nak_spared && !qp->hot.nak_pending && sack_is_told(qp, bth->psn))
		qp->nak_beside = RCD_NAKS_BESIDE;
	if (!onward || bth->ack_req || ++sack->since >= RCD_SACK_EVERY)
		qp->hot.sack_pending = true;
	if (!onward)
		qp->hot.hole_untold = true;
}

void
rcd_sack_take_kept(struct rcd_qp *qp, struct rcd_psn psn)
{
	rcd_sack_bits_set(&qp->sack->kept, psn, false);
}

void
rcd_sack_drop_kept(struct rcd_qp *qp)
{
	memset(&qp->sack->kept, 0, sizeof(qp->sack->kept));
	qp->hot.sack_pending = qp->hot.hole_untold = false;
}

/* Of what is kept behind the expected one. @return bytes; 0: nothing, or only too far ahead */
static uint32_t
sack_build_bitmap(struct rcd_qp *qp)
{
	struct rcd_psn epsn = qp->hot.epsn;
	uint32_t last =
		qp->kept.first != NULL ? rcd_psn_span(epsn, qp->kept.last->roce.bth.psn) : 0;
	uint32_t len = 0;

	for (uint32_t i = 0; i < RCD_SACK_BITMAP_MAX_LEN && 8 * i < last; i += 4) {
		uint32_t word =
			(uint32_t)rcd_sack_bits_word(&qp->sack->kept, rcd_psn_add(epsn, 1 + 8 * i));

		rcd_put_le32(qp->sack->bitmap + i, word);
		if (word != 0)
			len = i + 4;
	}
	return len;
}

/*
 * A NAK says no more of a hole than that there is one. It is not spared where it leaves behind
 * responses: who waits for those may not know what to do with the SACK yet.
 */
static void
sack_spare_nak(struct rcd_qp *qp)
{
	struct rcd_qp_hot *hot = &qp->hot;

	if (hot->nak_spared && hot->reply_count == 0 && qp->again.next == qp->again.end &&
		hot->nak_syndrome == rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_PSN_SEQUENCE))
		hot->nak_pending = false;
}

void
rcd_sack_build(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt)
{
	struct rcd_sack *sack = qp->sack;
	uint64_t delay_ns = now_ns - sack->seen_ns;
	uint32_t len = sack_build_bitmap(qp);

	qp->hot.sack_pending = qp->hot.hole_untold = false;
	sack->since = 0;
	rcd_qp_start_pkt(qp, pkt, RCD_OPCODE_SACK, qp->hot.epsn);
	pkt->roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	pkt->roce.aeth.msn = rcd_psn(qp->hot.messages);
	pkt->roce.sacketh.seen = sack->seen;
	pkt->roce.sacketh.delay_ns = delay_ns < UINT32_MAX ? (uint32_t)delay_ns : UINT32_MAX;
	if (len > 0) {
		sack_spare_nak(qp);
	} else {
		len = 4;
		rcd_put_le32(sack->bitmap, 0);
	}
	pkt->payload_len = len;
	pkt->pieces[0] = (struct rcd_piece){ sack->bitmap, len };
	pkt->piece_count = 1;
	rcd_qp_count(qp, RCD_COUNTER_SENT_PKTS, 1);
}
