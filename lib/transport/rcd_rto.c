/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How long a requester waits for an answer: probes first, then the retransmission timeout.
 */
#include "rcd_qp_priv.h"

/* RFC 6298, 2.2 and 2.3: an eighth of the new, and a quarter of how far it is off. */
static void
rto_take(struct rcd_qp *qp, uint32_t rtt)
{
	uint32_t off;

	if (qp->rtt_ns == 0) {
		qp->rtt_ns = rtt;
		qp->rtt_var_ns = rtt / 2;
	} else {
		off = rtt > qp->rtt_ns ? rtt - qp->rtt_ns : qp->rtt_ns - rtt;
		qp->rtt_var_ns = qp->rtt_var_ns - qp->rtt_var_ns / 4 + off / 4;
		qp->rtt_ns = qp->rtt_ns - qp->rtt_ns / 8 + rtt / 8;
	}
	qp->probe_ns = 2 * qp->rtt_ns + 4 * qp->rtt_var_ns;
	if (qp->probe_ns < RCD_PROBE_NS)
		qp->probe_ns = RCD_PROBE_NS;
}

uint64_t
rcd_rto_round(const struct rcd_qp *qp)
{
	return qp->rtt_ns != 0 ? qp->rtt_ns : RCD_RTT_DEFAULT_NS;
}

uint64_t
rcd_rto_probe_after(const struct rcd_qp *qp)
{
	if (qp->rtt_ns != 0)
		return qp->probe_ns;
	/* The second is the oldest packet: what left before it is lost once that is answered. */
	return qp->hot.limited && qp->init.cc != &rcd_cc_none && qp->probes == 0
		? RCD_PROBE_FIRST_WINDOW_NS
		: RCD_PROBE_FIRST_NS;
}

void
rcd_rto_sample(struct rcd_qp *qp, uint64_t rtt_ns)
{
	if (rtt_ns <= RCD_RTT_MAX_NS)
		rto_take(qp, (uint32_t)rtt_ns);
}

/*
 * Karn: the answer to a packet that was probed for may be to the probe. But when nothing is
 * answered without one any more, it is the way that has become longer, and no other measure will
 * come.
 */
uint64_t
rcd_rto_measure(struct rcd_qp *qp, uint64_t now_ns)
{
	uint64_t rtt_ns = now_ns - qp->rtt_begin_ns;

	qp->rtt_begin_ns = 0;
	if (!qp->rtt_probed)
		qp->rtt_doubts = 0;
	else if (qp->rtt_ns != 0 && ++qp->rtt_doubts < RCD_RTT_DOUBTS)
		return 0;
	if (rtt_ns > RCD_RTT_MAX_NS)
		return 0;
	rto_take(qp, (uint32_t)rtt_ns);
	return rtt_ns;
}

/* @param from_ns  since when an answer is awaited */
static void
rto_set_deadline(struct rcd_qp *qp, uint64_t from_ns)
{
	uint64_t at = qp->rto_at;

	if (qp->probes < RCD_PROBES_MAX)
		at = from_ns + (rcd_rto_probe_after(qp) << qp->probes);
	qp->hot.rto_deadline = at < qp->rto_at ? at : qp->rto_at;
}

void
rcd_rto_arm(struct rcd_qp *qp, uint64_t now_ns)
{
	qp->hot.rto_deadline = 0;
	qp->probes = 0;
	if (qp->rto_ns == 0)
		return;
	qp->rto_at = now_ns + qp->rto_ns;
	rto_set_deadline(qp, now_ns);
}

/* Ask for an answer: of a READ for one packet, since the rest may be large, and on its way. */
static void
rto_probe(struct rcd_qp *qp, uint64_t now_ns)
{
	qp->hot.repair = true;
	qp->repair_probe = true;
	qp->rtt_probed = true;
	qp->probes++;
	rcd_qp_count(qp, RCD_COUNTER_TLP, 1);
	rto_set_deadline(qp, now_ns);
}

/* Congestion control's: the requester's own closes where much is lost, and a probe adds to that. */
static bool
rto_waits_for_window(const struct rcd_qp *qp)
{
	return qp->hot.limited && qp->gate->since_ns != 0 && qp->gate->by_window;
}

bool
rcd_rto_expire(struct rcd_qp *qp, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	bool follows;

	if (now_ns >= qp->rto_at) {
		hot->rto_deadline = 0;
		return true;
	}
	/*
	 * What was last asked for has a time of its own. When more was sent since, which asks for
	 * nothing, the next packet does: it is none that is sent again, and may be long in coming.
	 * While a window is closed none comes.
	 */
	follows = hot->since_ack_req > 0 && !rto_waits_for_window(qp);
	rto_set_deadline(qp, follows ? now_ns : qp->asked_ns);
	if (follows)
		hot->since_ack_req = RCD_ACK_REQ_EVERY;
	if (hot->rto_deadline <= now_ns)
		rto_probe(qp, now_ns);
	return false;
}
