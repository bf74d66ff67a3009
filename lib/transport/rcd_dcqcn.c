/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * DCQCN (Zhu et al., SIGCOMM 2015, section 3.1 and figure 7), the sender's part: a rate that falls
 * when the peer notifies of marked packets, and rises again by the steps of QCN. The peer's part
 * are CNPs, which every queue pair sends.
 *
 * No timer runs: what fell due is made up for when a packet is sent or a notification comes, and a
 * rate that is that of the port again holds nothing back.
 *
 * Beyond the paper: a queue pair begins with a window that doubles until something is wrong, since
 * many that begin at the rate of the port fill any buffer before the first of them hears of it. A
 * loss soon after a notification counts as one, and for many losses the rate falls by a half.
 */
#include "rcd_cc.h"

#include <assert.h>
#include <stdbool.h>

#define WINDOW_MAX     (UINT32_C(1) << 21) /**< nothing more is in flight */
#define RTT_UNKNOWN_NS 100000              /**< until one was measured */
#define ONE            (UINT32_C(1) << 30) /**< of the estimate of congestion */
#define FAST_STEPS     5                   /**< of fast recovery (their F) */
#define COUNT_MAX      UINT8_MAX
#define DUE_MAX        512    /**< steps made up for at once: after that long, it is over */
#define MARKED_NS      500000 /**< so long after a notification a loss is congestion */
#define CNP_NS         25000  /**< peers notify half as often: nearer ones say nothing more */

struct dcqcn {
	uint64_t pace_ns;  /**< when the next packet may leave */
	uint64_t alpha_ns; /**< since when the estimate was not looked at */
	uint64_t rise_ns;  /**< since when the rate did not rise by time */
	uint64_t cut_ns;   /**< when it last fell */
	uint64_t cnp_ns;   /**< when the last notification came */
	uint32_t rate, target, line, floor, step, leap; /**< kb/s */
	uint32_t alpha;                                 /**< estimate of congestion, parts of ONE */
	uint32_t timer_ns;
	uint32_t window;           /**< bytes, to begin with */
	uint32_t rtt_ns;           /**< last measured round trip; 0: none */
	uint32_t sent, bytes;      /**< since the rate rose by bytes; until it does */
	uint8_t times, byte_times; /**< steps by either since it fell */
	uint8_t shift;
};

static_assert(sizeof(struct dcqcn) <= sizeof(struct rcd_cc), "state of an algorithm");

static struct dcqcn *
dcqcn_of(struct rcd_cc *cc)
{
	return (struct dcqcn *)(void *)cc->words;
}

static void
dcqcn_init(struct rcd_cc *cc, const struct rcd_cc_params *params, uint32_t packet_bytes,
	uint64_t now_ns)
{
	uint32_t line = params->dcqcn_line_mbps * 1000;
	uint32_t floor = params->dcqcn_floor_mbps * 1000;

	(void)packet_bytes;
	*dcqcn_of(cc) = (struct dcqcn){
		.alpha_ns = now_ns,
		.rise_ns = now_ns,
		.rate = line,
		.target = line,
		.line = line,
		.floor = floor < line ? floor : line,
		.step = params->dcqcn_step_mbps * 1000,
		.leap = params->dcqcn_leap_mbps * 1000,
		.alpha = ONE,
		.timer_ns = params->dcqcn_timer_us * 1000,
		.window = params->dcqcn_start_kb * 1024,
		.bytes = params->dcqcn_bytes_kb * 1024,
		.shift = (uint8_t)params->dcqcn_shift,
	};
}

/* One step up, by time or by bytes, whichever was counted. */
static void
dcqcn_rise(struct dcqcn *dcqcn)
{
	uint8_t most = dcqcn->times > dcqcn->byte_times ? dcqcn->times : dcqcn->byte_times;
	uint8_t least = dcqcn->times < dcqcn->byte_times ? dcqcn->times : dcqcn->byte_times;

	if (least > FAST_STEPS)
		dcqcn->target += dcqcn->leap;
	else if (most >= FAST_STEPS)
		dcqcn->target += dcqcn->step;
	if (dcqcn->target > dcqcn->line)
		dcqcn->target = dcqcn->line;
	dcqcn->rate = dcqcn->rate / 2 + dcqcn->target / 2 + (dcqcn->rate & dcqcn->target & 1);
	/* A half of what is left each time would never come to its end. */
	if (dcqcn->line - dcqcn->rate <= dcqcn->line / 1024)
		dcqcn->rate = dcqcn->line;
}

/* How often a timer fell due since; it counts on from there. */
static uint32_t
dcqcn_due(uint64_t *since_ns, uint32_t timer_ns, uint64_t now_ns)
{
	uint64_t due = (now_ns - *since_ns) / timer_ns;

	*since_ns += due * timer_ns;
	return due < DUE_MAX ? (uint32_t)due : DUE_MAX;
}

static void
dcqcn_advance(struct dcqcn *dcqcn, uint64_t now_ns)
{
	uint32_t due = dcqcn_due(&dcqcn->alpha_ns, dcqcn->timer_ns, now_ns);

	for (; due > 0 && dcqcn->alpha > 0; due--)
		dcqcn->alpha -=
			(dcqcn->alpha >> dcqcn->shift) + (dcqcn->alpha >> dcqcn->shift == 0);
	due = dcqcn_due(&dcqcn->rise_ns, dcqcn->timer_ns, now_ns);
	for (; due > 0 && dcqcn->rate < dcqcn->line; due--) {
		dcqcn->times += dcqcn->times < COUNT_MAX;
		dcqcn_rise(dcqcn);
	}
}

/*
 * The beginning is over, with a quarter of what its window makes: since the round trip was measured
 * the window doubled, and the queue made the way longer. Responses and UC have no window and no
 * round trip.
 */
static void
dcqcn_leave_start(struct dcqcn *dcqcn, uint32_t rtt_ns, uint64_t now_ns)
{
	uint64_t kbps;

	if (dcqcn->window == RCD_CC_NO_WINDOW || rtt_ns == 0)
		return;
	kbps = dcqcn->window * UINT64_C(2000000) / rtt_ns;
	dcqcn->window = RCD_CC_NO_WINDOW;
	dcqcn_advance(dcqcn, now_ns);
	if (kbps < dcqcn->floor)
		kbps = dcqcn->floor;
	if (kbps < dcqcn->rate)
		dcqcn->rate = dcqcn->target = (uint32_t)kbps;
}

/* @param share  by the half of so many parts of ONE; the estimate, if that is more */
static void
dcqcn_fall(struct dcqcn *dcqcn, uint32_t share, uint64_t now_ns)
{
	if (dcqcn->cut_ns != 0 && now_ns - dcqcn->cut_ns < CNP_NS)
		return;
	dcqcn_advance(dcqcn, now_ns);
	dcqcn->cut_ns = now_ns;
	dcqcn->target = dcqcn->rate;
	if (share < dcqcn->alpha)
		share = dcqcn->alpha;
	dcqcn->rate -= (uint32_t)((uint64_t)dcqcn->rate * share / ONE / 2);
	if (dcqcn->rate < dcqcn->floor)
		dcqcn->rate = dcqcn->floor;
	dcqcn->alpha += (ONE - dcqcn->alpha) >> dcqcn->shift;
	dcqcn->alpha_ns = dcqcn->rise_ns = now_ns;
	dcqcn->times = dcqcn->byte_times = 0;
	dcqcn->sent = 0;
}

static void
dcqcn_on_cnp(struct rcd_cc *cc, uint64_t now_ns)
{
	dcqcn_leave_start(dcqcn_of(cc), dcqcn_of(cc)->rtt_ns, now_ns);
	dcqcn_of(cc)->cnp_ns = now_ns;
	dcqcn_fall(dcqcn_of(cc), 0, now_ns);
}

/* For a packet that a path loses without marking any no queue is to blame. */
static void
dcqcn_on_loss(struct rcd_cc *cc, bool heavy, uint64_t now_ns)
{
	struct dcqcn *dcqcn = dcqcn_of(cc);

	if (heavy)
		dcqcn_leave_start(
			dcqcn, dcqcn->rtt_ns != 0 ? dcqcn->rtt_ns : RTT_UNKNOWN_NS, now_ns);
	if (heavy || (dcqcn->cnp_ns != 0 && now_ns - dcqcn->cnp_ns < MARKED_NS))
		dcqcn_fall(dcqcn, heavy ? ONE : 0, now_ns);
}

/*
 * As the rate was, and how far it had come on its way up. Times run on from now: what it would have
 * risen by meanwhile is not made up for.
 */
static void
dcqcn_undo(struct rcd_cc *cc, const struct rcd_cc *before)
{
	const struct dcqcn *old = (const struct dcqcn *)(const void *)before->words;
	struct dcqcn *dcqcn = dcqcn_of(cc);

	if (dcqcn->rate >= old->rate)
		return;
	dcqcn->rate = old->rate;
	dcqcn->target = old->target;
	dcqcn->window = old->window;
	dcqcn->cut_ns = old->cut_ns;
	dcqcn->times = old->times;
	dcqcn->byte_times = old->byte_times;
	dcqcn->sent = old->sent;
	if (old->alpha < dcqcn->alpha)
		dcqcn->alpha = old->alpha;
}

static void
dcqcn_on_ack(struct rcd_cc *cc, const struct rcd_cc_ack *ack)
{
	struct dcqcn *dcqcn = dcqcn_of(cc);

	if (ack->rtt_ns != 0)
		dcqcn->rtt_ns = ack->rtt_ns;
	if (dcqcn->window == RCD_CC_NO_WINDOW || ack->flight < dcqcn->window / 2)
		return;
	dcqcn->window += ack->bytes;
	if (dcqcn->window > WINDOW_MAX)
		dcqcn->window = RCD_CC_NO_WINDOW;
}

static uint64_t
dcqcn_send_at(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns)
{
	struct dcqcn *dcqcn = dcqcn_of(cc);

	if (dcqcn->rate == dcqcn->line)
		return now_ns;
	dcqcn_advance(dcqcn, now_ns);
	dcqcn->sent += bytes;
	if (dcqcn->sent >= dcqcn->bytes) {
		dcqcn->sent = 0;
		dcqcn->byte_times += dcqcn->byte_times < COUNT_MAX;
		dcqcn_rise(dcqcn);
	}
	return rcd_cc_pace(&dcqcn->pace_ns, bytes, dcqcn->rate, now_ns);
}

static uint32_t
dcqcn_window(const struct rcd_cc *cc)
{
	return ((const struct dcqcn *)(const void *)cc->words)->window;
}

static uint32_t
dcqcn_rate(const struct rcd_cc *cc)
{
	const struct dcqcn *dcqcn = (const struct dcqcn *)(const void *)cc->words;

	return dcqcn->rate == dcqcn->line ? 0 : dcqcn->rate;
}

const struct rcd_cc_ops rcd_cc_dcqcn = {
	.name = "dcqcn",
	.of_responses = true,
	.init = dcqcn_init,
	.on_cnp = dcqcn_on_cnp,
	.on_ack = dcqcn_on_ack,
	.on_loss = dcqcn_on_loss,
	.undo = dcqcn_undo,
	.send_at = dcqcn_send_at,
	.window = dcqcn_window,
	.rate = dcqcn_rate,
};
