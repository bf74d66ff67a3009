/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How long a requester waits for an answer: probes first, then the retransmission timeout.
 */
#include "rcd_qp_priv.h"

static void
rto_set_deadline(struct rcd_qp *qp, uint64_t now_ns)
{
	uint64_t probe_ns = qp->rtt_ns == 0     ? RCD_PROBE_FIRST_NS
		: 2 * qp->rtt_ns > RCD_PROBE_NS ? 2 * (uint64_t)qp->rtt_ns
						: RCD_PROBE_NS;
	uint64_t at = now_ns + (probe_ns << qp->probes);

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

/* Ask for an answer. A READ is asked for once: it may be large, and on its way. */
static void
rto_probe(struct rcd_qp *qp, uint64_t now_ns)
{
	struct rcd_qp_hot *hot = &qp->hot;
	bool read = rcd_wr_is_read(rcd_rec_opcode(rcd_sq_rec(qp, hot->sq_head)));

	hot->repair = true;
	qp->repair_probe = true;
	qp->rtt_begin_ns = 0;
	qp->probes++;
	rto_set_deadline(qp, now_ns);
	if (read)
		hot->rto_deadline = qp->rto_at;
}

bool
rcd_rto_expire(struct rcd_qp *qp, uint64_t now_ns)
{
	if (now_ns < qp->rto_at) {
		rto_probe(qp, now_ns);
		return false;
	}
	qp->hot.rto_deadline = 0;
	return true;
}
