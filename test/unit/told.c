/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Congestion control that writes down what it is told.
 */
#include "told.h"

#include "rcd_aeth.h"
#include "rcd_tap.h"

struct told told;

static void
told_init(struct rcd_cc *cc, const struct rcd_cc_params *params, uint32_t packet_bytes,
	uint64_t now_ns)
{
	CU_ASSERT_EQUAL(cc->words[0], 0);
	CU_ASSERT_EQUAL(params->swift_gain, 7);
	told.inits++;
	told.packet_bytes = packet_bytes;
	told.init_ns = now_ns;
}

static void
told_cnp(struct rcd_cc *cc, uint64_t now_ns)
{
	(void)cc;
	(void)now_ns;
	told.cnps++;
}

static void
told_loss(struct rcd_cc *cc, bool heavy, uint64_t now_ns)
{
	(void)now_ns;
	cc->words[1]++;
	told.losses++;
	told.heavy += heavy;
}

static void
told_ack(struct rcd_cc *cc, const struct rcd_cc_ack *ack)
{
	(void)cc;
	CU_ASSERT_TRUE(ack->bytes <= ack->flight);
	told.acks++;
	told.acked += ack->bytes;
	told.rtts += ack->rtt_ns != 0;
	told.acked_away_ns = ack->away_ns;
	CU_ASSERT_TRUE(ack->rtt_ns != 0 || ack->away_ns == 0);
}

static void
told_undo(struct rcd_cc *cc, const struct rcd_cc *before)
{
	/* How many losses it was told of, in the state that is to come back. */
	CU_ASSERT_EQUAL(cc->words[1], told.losses);
	told.undone++;
	told.undone_to = before->words[1];
}

static uint64_t
told_send_at(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns)
{
	(void)cc;
	told.sent += bytes;
	return now_ns + told.gap_ns;
}

static uint32_t
told_window(const struct rcd_cc *cc)
{
	(void)cc;
	return told.window;
}

static uint32_t
told_rate(const struct rcd_cc *cc)
{
	(void)cc;
	return told.rate_kbps;
}

static struct rcd_cc_ops tell = {
	.name = "tell",
	.of_responses = true,
	.init = told_init,
	.on_cnp = told_cnp,
	.on_ack = told_ack,
	.on_loss = told_loss,
	.undo = told_undo,
	.send_at = told_send_at,
	.window = told_window,
	.rate = told_rate,
};

static void
told_begin(enum rcd_qp_type type, uint32_t window, uint64_t pace_ns, uint8_t max_rd_atomic)
{
	struct rcd_qp_init init = default_init(type);
	struct rcd_cc_params params;
	struct rcd_qp_attr attr;

	memset(&told, 0, sizeof(told));
	told.window = window;
	told.rate_kbps = TOLD_KBPS;
	told.gap_ns = pace_ns;
	init.cc = &tell;
	rcd_cc_params_init(&params);
	params.swift_gain = 7;
	init.cc_params = &params;
	init.away_ns = &told.away_ns;
	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	if (max_rd_atomic > 0)
		attr.max_rd_atomic = max_rd_atomic;
	begin(&init, &attr);
}

void
begin_told(enum rcd_qp_type type, uint32_t window, uint64_t pace_ns)
{
	tell.of_responses = true;
	told_begin(type, window, pace_ns, 0);
}

void
begin_told_reads(uint32_t window, uint8_t max_rd_atomic)
{
	tell.of_responses = false;
	told_begin(RCD_QP_RC, window, 0, max_rd_atomic);
}

struct rcd_pkt
ack_by_hand(struct rcd_psn last)
{
	struct rcd_pkt pkt = nak_by_hand(last);

	pkt.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	return pkt;
}

enum rcd_rx_verdict
congest(uint64_t now_ns)
{
	struct rcd_pkt cnp = nak_by_hand(rcd_psn(0));

	cnp.roce.bth.opcode = RCD_OPCODE_CNP;
	return rcd_qp_rx(p.a->qp, &cnp, now_ns);
}

void
miss(struct rcd_psn first, uint32_t number, uint64_t now_ns)
{
	struct rcd_pkt nak = nak_by_hand(rcd_psn_add(first, number));

	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &nak, now_ns), RCD_RX_EXECUTED);
}

void
tell_sack(struct rcd_psn expected, struct rcd_psn seen, uint32_t bits, uint64_t now_ns)
{
	uint8_t bitmap[4];
	struct rcd_pkt sack;

	rcd_put_le32(bitmap, bits);
	sack = sack_by_hand(expected, seen, bitmap, sizeof(bitmap));
	CU_ASSERT_EQUAL(rcd_qp_rx(p.a->qp, &sack, now_ns), RCD_RX_EXECUTED);
}

struct rcd_psn
send_all(uint64_t now_ns)
{
	struct rcd_psn first;
	struct rcd_tx_pkt out;

	CU_ASSERT_TRUE(rcd_qp_tx_next(p.a->qp, now_ns, &out));
	first = out.roce.bth.psn;
	while (rcd_qp_tx_next(p.a->qp, now_ns, &out))
		continue;
	return first;
}
