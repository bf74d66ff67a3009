/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a queue pair that is destroyed has left to send. It has its turns as before; here is only
 * looked how far it has come.
 */
#include "rcd_drain.h"

#include "rcd_lcore.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_turn.h"

/*
 * Others may have the core, or the port, for some milliseconds: then they are no measure, and so
 * many polls have to do. An lcore that nobody polls has no more time than the longest.
 */
#define DRAIN_NS      5000000
#define DRAIN_POLLS   16
#define DRAIN_MOST_NS 100000000

/* @return whether all that was posted, or is on its way from the client's memory, is out */
static bool
drain_is_out(const struct rcd_hqp *hqp)
{
	return hqp->staged == 0 && (int32_t)(hqp->drain_end - rcd_qp_sq_out(hqp->qp)) <= 0;
}

static bool
drain_is_late(const struct rcd_lcore *lcore, const struct rcd_hqp *hqp)
{
	uint64_t ns = lcore->now_ns - hqp->drain_begin_ns;

	return ns > DRAIN_MOST_NS ||
		(ns > DRAIN_NS && (uint32_t)lcore->polls - hqp->drain_poll >= DRAIN_POLLS);
}

/* @return false: it is nothing that a client may have posted */
static bool
drain_begin(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	uint32_t end = rcd_shm_load(&hqp->sq_shm->producer);

	if (end - rcd_qp_sq_done(hqp->qp) > hqp->sq_mask + 1)
		return false;
	hqp->draining = true;
	hqp->drain_end = end;
	hqp->drain_poll = (uint32_t)lcore->polls;
	hqp->drain_begin_ns = lcore->now_ns;
	/* Its doorbell may not have been looked at. */
	if (!drain_is_out(hqp))
		rcd_turn_begin(&lcore->turns, &hqp->turn);
	return true;
}

bool
rcd_drain_waits(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	RCD_ON_LCORE(lcore);
	if (hqp->faulty || rcd_qp_state(hqp->qp) != RCD_QP_RTS)
		return false;
	if (!hqp->draining && !drain_begin(lcore, hqp))
		return false;
	if (drain_is_out(hqp) || drain_is_late(lcore, hqp))
		return false;
	/* Who was asked for a packet and had none has no turn: it waits for a peer or a rate. */
	return hqp->staged > 0 || hqp->turn.list != NULL;
}
