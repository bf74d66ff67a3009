/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How much may be under way while losses are repaired: a window in packets. What is sent again, and
 * when, is decided by rcd_comp.c and rcd_sack.c.
 */
#include "rcd_qp_priv.h"

/* A smaller window than this is that of a timeout, of which nothing is answered yet. */
#define WINDOW_LEAST 2

/*
 * One packet in so many may be lost for the path's own reasons, and a few always: what is more is
 * too much under way.
 */
#define LOST_SHARE 8
#define LOST_LEAST 4

/* Of what was under way to a peer that keeps nothing as much came as one part in this. */
#define CAME_SHARE 4

/* Packets acknowledged for which the window grows by one, once it is where losses ended. */
#define GROW_EVERY 8

void
rcd_recover_reset(struct rcd_qp *qp)
{
	qp->hot.window = RCD_REQ_WINDOW;
	qp->recovery = (struct rcd_recovery){ .goal = RCD_REQ_WINDOW };
}

/* Packets that may be under way, of those that there are. */
static uint32_t
recover_flight(const struct rcd_qp *qp)
{
	uint32_t all = rcd_psn_span(qp->hot.psn_una, qp->hot.psn_next);

	return all < qp->hot.window ? all : qp->hot.window;
}

/* Too much was under way: half of it from now on. */
static void
recover_halve(struct rcd_qp *qp, uint32_t flight)
{
	uint32_t half = flight / 2;

	/* One algorithm is enough. */
	if (qp->init.cc != &rcd_cc_none)
		return;
	qp->hot.window = (uint16_t)(half > WINDOW_LEAST ? half : WINDOW_LEAST);
	qp->recovery.goal = qp->hot.window;
	qp->recovery.rest = 0;
}

void
rcd_recover_timeout(struct rcd_qp *qp)
{
	qp->hot.window = 1;
	qp->recovery.rest = 0;
}

void
rcd_recover_acked(struct rcd_qp *qp, uint32_t packets)
{
	struct rcd_qp_hot *hot = &qp->hot;
	uint32_t window = hot->window;

	/* After a timeout, and no other sign that it is too much. */
	if (rcd_psn_eq(hot->psn_una, hot->psn_next) && qp->recovery.goal == RCD_REQ_WINDOW) {
		rcd_recover_reset(qp);
		return;
	}
	rcd_recover_came(qp, packets);
	if (packets > RCD_REQ_WINDOW)
		packets = RCD_REQ_WINDOW;
	if (window < qp->recovery.goal) {
		window += packets;
	} else {
		packets += qp->recovery.rest;
		window += packets / GROW_EVERY;
		qp->recovery.rest = packets % GROW_EVERY;
	}
	if (window >= RCD_REQ_WINDOW)
		rcd_recover_reset(qp);
	else
		hot->window = (uint16_t)window;
}

void
rcd_recover_dropped(struct rcd_qp *qp)
{
	int32_t came = rcd_psn_diff(qp->hot.psn_una, qp->again_psn);
	uint32_t flight = recover_flight(qp);

	if (qp->hot.window >= WINDOW_LEAST && came >= 0 && (uint32_t)came < flight / CAME_SHARE)
		recover_halve(qp, flight);
}

bool
rcd_recover_lost(struct rcd_qp *qp, bool fresh, bool recent)
{
	uint32_t flight = recover_flight(qp);
	uint32_t most = flight / LOST_SHARE;

	if (fresh)
		qp->recovery.lost = qp->recovery.under_way = 0;
	qp->recovery.under_way++;
	qp->recovery.lost += recent;
	if (qp->recovery.lost < (most > LOST_LEAST ? most : LOST_LEAST))
		return false;
	qp->recovery.lost = 0;
	recover_halve(qp, flight);
	return true;
}

void
rcd_recover_came(struct rcd_qp *qp, uint32_t packets)
{
	uint16_t left = qp->recovery.under_way;

	qp->recovery.under_way = packets < left ? (uint16_t)(left - packets) : 0;
}

bool
rcd_recover_holds(const struct rcd_qp *qp)
{
	return qp->hot.window < RCD_REQ_WINDOW && qp->recovery.under_way >= qp->hot.window;
}
