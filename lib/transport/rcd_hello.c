/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Marks and HELLOs. Each side finds out by itself: it knows its peer when that has answered a HELLO
 * with the nonce of this life, and answers HELLOs without keeping anything. So a late, repeated or
 * forged one costs a packet, and to a peer that marks.
 */
#include "rcd_hello.h"

#include <errno.h>

#include "rcd_cm.h"
#include "rcd_qp_priv.h"

/* 2^32 by the golden ratio: neighbours end far from each other, whatever their distance. */
#define SPREAD UINT32_C(0x9e3779b1)

#define MARK_REQUEST 0x20
#define MARKS        31 /**< of requests, and as many of answers */

void
rcd_hello_reset(struct rcd_qp *qp)
{
	memset(&qp->hello, 0, sizeof(qp->hello));
}

static uint32_t
hello_seed(const struct rcd_gid *from, struct rcd_qpn dest_qpn)
{
	uint32_t folded = 0;

	for (uint32_t i = 0; i < sizeof(from->raw); i += 4)
		folded ^= rcd_get_be32(from->raw + i);
	return folded * SPREAD ^ dest_qpn.val << 8;
}

int
rcd_qp_find_peer(struct rcd_qp *qp, uint64_t nonce)
{
	if (!rcd_qp_is_reliable(qp) || qp->hot.state < RCD_QP_RTR || qp->hot.state > RCD_QP_SQD ||
		qp->hot.marks || qp->sack != NULL)
		return -EINVAL;
	qp->hello.nonce = nonce;
	qp->hello.tx_seed = hello_seed(&qp->attr.av.sgid, qp->attr.dest_qpn);
	qp->hello.rx_seed = hello_seed(&qp->attr.av.dgid, qp->init.qpn);
	qp->hot.marks = qp->hot.looks = true;
	return 0;
}

bool
rcd_qp_found_peer(const struct rcd_qp *qp)
{
	return qp->hello.agreed && qp->sack == NULL && qp->hot.state <= RCD_QP_SQD;
}

uint8_t
rcd_hello_mark(uint32_t seed, uint8_t opcode, struct rcd_psn psn)
{
	uint32_t mixed = (psn.val ^ seed) * SPREAD;
	uint8_t mark = (uint8_t)(1 + (mixed >> 27) % MARKS);

	return rcd_opcode_is_request(opcode) ? mark | MARK_REQUEST : mark;
}

/* What an answer has instead of the nonce that it answers: nobody makes it by writing that back. */
static uint64_t
hello_answer(uint64_t nonce)
{
	return ~(nonce << 32 | nonce >> 32);
}

/* The host lends memory. When it can't hear of that now, the next packet asks again. */
static void
hello_tell(struct rcd_qp *qp)
{
	const struct rcd_qp_ops *ops = qp->hot.ops;

	qp->hot.looks = ops->agreed != NULL && !ops->agreed(qp->hot.arg);
}

/*
 * Whether a packet says something new: an RNR NAK that comes again and again has the same mark, and
 * so has what a network makes of it.
 */
static bool
hello_is_ahead(struct rcd_hello *hello, const struct rcd_bth *bth)
{
	bool answer = rcd_opcode_is_response(bth->opcode);

	if (hello->any[answer] && !rcd_psn_before(hello->last[answer], bth->psn))
		return false;
	hello->any[answer] = true;
	hello->last[answer] = bth->psn;
	return true;
}

void
rcd_hello_note(struct rcd_qp *qp, const struct rcd_bth *bth)
{
	struct rcd_hello *hello = &qp->hello;

	/* A NAK is taken, too, and may have been the end. */
	if (qp->hot.state > RCD_QP_SQD)
		return;
	if (hello->agreed) {
		hello_tell(qp);
		return;
	}
	if (!hello_is_ahead(hello, bth))
		return;
	if (bth->mark != rcd_hello_mark(hello->rx_seed, bth->opcode, bth->psn)) {
		hello->row = 0;
		return;
	}
	if (hello->row < UINT16_MAX)
		hello->row++;
	hello->passed |= hello->row >= RCD_HELLO_ROW;
	/* In a row, so that a peer which marks no more is not asked again. */
	if (hello->tries < RCD_HELLO_TRIES && hello->row >= RCD_HELLO_ROW &&
		hello->row >= (uint32_t)RCD_HELLO_ROW << hello->tries) {
		hello->tries++;
		qp->hot.hello_due = true;
	}
}

enum rcd_rx_verdict
rcd_hello_rx(struct rcd_qp *qp, const struct rcd_roce *roce)
{
	struct rcd_hello *hello = &qp->hello;

	if (!(roce->helloeth.offers & RCD_CM_OFFERS_SACK))
		return RCD_RX_STALE;
	if (roce->bth.opcode == RCD_OPCODE_HELLO) {
		if (hello->answers >= RCD_HELLO_ANSWERS)
			return RCD_RX_STALE;
		/* It leaves when the peer's marks were enough here as well. */
		hello->asked = roce->helloeth.nonce;
		qp->hot.hello_asked = true;
		return RCD_RX_HELLO;
	}
	if (hello->agreed || hello->tries == 0 ||
		roce->helloeth.nonce != hello_answer(hello->nonce))
		return RCD_RX_STALE;
	hello->agreed = true;
	qp->hot.hello_due = false;
	hello_tell(qp);
	return RCD_RX_HELLO;
}

static void
hello_build(struct rcd_qp *qp, struct rcd_tx_pkt *pkt, uint8_t opcode, uint64_t nonce)
{
	rcd_qp_start_pkt(qp, pkt, opcode, rcd_psn(0));
	pkt->roce.helloeth = (struct rcd_helloeth){ RCD_CM_OFFERS_SACK, nonce };
	rcd_qp_count(qp, RCD_COUNTER_TX_HELLO, 1);
}

bool
rcd_hello_next(struct rcd_qp *qp, struct rcd_tx_pkt *pkt)
{
	struct rcd_hello *hello = &qp->hello;

	if (!hello->passed)
		return false;
	if (qp->hot.hello_due) {
		qp->hot.hello_due = false;
		hello_build(qp, pkt, RCD_OPCODE_HELLO, hello->nonce);
		return true;
	}
	if (qp->hot.hello_asked) {
		qp->hot.hello_asked = false;
		hello->answers++;
		hello_build(qp, pkt, RCD_OPCODE_HELLO_ACK, hello_answer(hello->asked));
		return true;
	}
	return false;
}
