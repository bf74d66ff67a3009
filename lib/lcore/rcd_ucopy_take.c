/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What becomes of copies: jobs that the client has done are taken back, packets that waited for
 * their payload go out, completions are shown, and those whose data did not arrive are errors.
 */
#include "rcd_ucopy.h"

#include <errno.h>
#include <linux/futex.h>
#include <rte_branch_prediction.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rcd_budget.h"
#include "rcd_copyq.h"
#include "rcd_counter.h"
#include "rcd_host.h"
#include "rcd_late.h"
#include "rcd_lclient.h"
#include "rcd_lcore.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_tx.h"
#include "rcd_wqe.h"

#define MASK      (RCD_COPYQ_JOBS - 1)
#define HELD_MASK (RCD_UCOPY_HELD - 1)

#define STARVED_AT_ONCE  16 /**< queue pairs that go on when there is room again */
#define GATES_AT_ONCE    16 /**< completion queues of which more is shown */
#define RELEASED_AT_ONCE 64 /**< queue pairs that go on when there is nobody to wait for */
#define LOOKS_PER_UNIT   32 /**< jobs, or completions, that are looked at one behind the other */

/* A target without jobs may have the next ones for another client. @return whether it is one */
static bool
ucopy_take_part(struct rcd_hqp *hqp)
{
	if (hqp->target == NULL || hqp->copies > 0)
		return false;
	hqp->ucopy = NULL;
	return true;
}

/* Its jobs, still out, are nobody's. @return units of work */
static uint32_t
ucopy_take_orphan(struct rcd_ucopy *ucopy, struct rcd_hqp *hqp)
{
	uint32_t i;

	for (i = ucopy->taken; hqp->copies > 0 && i != ucopy->posted; i++) {
		struct rcd_ujob *job = &ucopy->jobs[i & MASK];

		if (job->hqp != hqp)
			continue;
		job->hqp = NULL;
		hqp->copies--;
	}
	hqp->copies = hqp->blocks = hqp->staged = 0;
	ucopy_take_part(hqp);
	return (i - ucopy->taken + ucopy->held_count) / LOOKS_PER_UNIT;
}

static struct rcd_cq_slot *
ucopy_take_slot_of(const struct rcd_hcq *cq, uint32_t index)
{
	return &cq->slots[index & cq->mask];
}

/* What a queue pair completed behind this job never happened. @return how much it was */
static uint32_t
ucopy_take_turn_to_errors(
	struct rcd_ucopy *ucopy, const struct rcd_hqp *hqp, uint32_t job, uint8_t status)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ucopy->held_count; i++) {
		const struct rcd_uheld *held = &ucopy->held[(ucopy->held_first + i) & HELD_MASK];

		if (held->hqp != hqp || (int32_t)(held->after - job) <= 0)
			continue;
		ucopy_take_slot_of(held->cq, held->index)->status = status;
		/* Spec: IBTA 11.4.2 an error wakes those who wait for solicited completions */
		held->cq->held_solicited = true;
		status = RCD_WC_WR_FLUSH_ERR;
		count++;
	}
	return count;
}

/* @return units of work */
static uint32_t
ucopy_take_fail(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy, const struct rcd_ujob *job)
{
	struct rcd_hqp *hqp = job->hqp;
	struct rcd_qp_copy late = job->late;
	/* Unreliable sends are complete by now, and were turned into errors. */
	bool of_packet = job->writes || (late.own && hqp->reliable);
	uint32_t units = ucopy_take_turn_to_errors(ucopy, hqp, ucopy->taken, RCD_WC_LOC_PROT_ERR);

	late.told = units > 0;
	rcd_counter_add(rcd_lcore_counters(lcore, hqp->lport), RCD_COUNTER_COPY_FAILED, 1);
	units += ucopy_take_orphan(ucopy, hqp);
	if (of_packet)
		rcd_qp_copy_failed(hqp->qp, &late);
	else
		hqp->faulty = true;
	rcd_turn_end(&hqp->turn);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	rcd_lcore_touch(lcore, hqp);
	return units;
}

static void
ucopy_take_finish(struct rcd_lcore *lcore, struct rcd_ujob *job)
{
	struct rcd_hqp *hqp = job->hqp;

	hqp->copies--;
	if (job->staged != NULL)
		hqp->staged--;
	if (job->original != NULL) {
		uint64_t original;

		memcpy(&original, job->original, sizeof(original));
		rcd_qp_atomic_done(hqp->qp, job->late.psn, original);
	}
	hqp->blocks -= job->blocks;
	/* What it waits for may be the end of all of them. */
	if (!ucopy_take_part(hqp) && (!job->blocks || hqp->blocks > 0))
		return;
	rcd_turn_end(&hqp->turn);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	rcd_lcore_touch(lcore, hqp);
}

/* @return units of work; 0: its packet can't go now */
static uint32_t
ucopy_take_one(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy)
{
	struct rcd_ujob *job = &ucopy->jobs[ucopy->taken & MASK];
	uint32_t status =
		__atomic_load_n(&ucopy->queue->jobs[ucopy->taken & MASK].status, __ATOMIC_RELAXED);
	bool staged = job->staged != NULL;
	bool failed = ucopy->broken || status != 0;
	uint32_t units = 1;

	/* What is read of a region that went is lost on the way: when it is sent again, if ever,
	 * the transport finds that it is gone. */
	if (job->hqp != NULL && status == ECANCELED && !job->writes && job->hqp->reliable &&
		!ucopy->broken) {
		ucopy->lost = true;
		failed = false;
	}
	if (job->hqp != NULL && failed) {
		units += ucopy_take_fail(lcore, ucopy, job);
	} else if (job->hqp != NULL) {
		if (staged && !ucopy->lost && !rcd_tx_staged(lcore, job->hqp, job->staged))
			return 0;
		ucopy_take_finish(lcore, job);
	}
	if (staged)
		ucopy->lost = false;
	ucopy->staged_count -= staged;
	ucopy->tail = job->end;
	ucopy->taken++;
	return units;
}

/* All of a completion queue up to its next gate is shown. */
static void
ucopy_take_open_gate(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy, struct rcd_hcq *cq)
{
	TAILQ_REMOVE(&ucopy->gated, cq, gated_link);
	cq->solicited |= cq->held_solicited;
	if (cq->gated_twice) {
		cq->gated_twice = false;
		cq->gate_at = cq->next_gate_at;
		cq->gate_after = cq->next_gate_after;
		TAILQ_INSERT_TAIL(&ucopy->gated, cq, gated_link);
	} else {
		cq->gated = cq->held_solicited = false;
	}
	rcd_host_dirty(lcore, cq);
}

/* Whether all jobs are done that the first gate waits for. */
static bool
ucopy_take_is_ripe(const struct rcd_ucopy *ucopy)
{
	const struct rcd_hcq *cq = TAILQ_FIRST(&ucopy->gated);

	return cq != NULL && !ucopy->voiding && (int32_t)(ucopy->taken - cq->gate_after) >= 0;
}

/* Jobs were taken: what waited for them goes on. @return units of work */
static uint32_t
ucopy_take_go_on(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy)
{
	struct rcd_turn *turn;
	uint32_t gates = 0;
	uint32_t starved = 0;

	for (; gates < GATES_AT_ONCE && ucopy_take_is_ripe(ucopy); gates++)
		ucopy_take_open_gate(lcore, ucopy, TAILQ_FIRST(&ucopy->gated));
	ucopy->more = ucopy_take_is_ripe(ucopy);
	while (ucopy->held_count > 0 &&
		(int32_t)(ucopy->taken - ucopy->held[ucopy->held_first & HELD_MASK].posted) >= 0) {
		ucopy->held_first++;
		ucopy->held_count--;
	}
	for (; starved < STARVED_AT_ONCE && (turn = TAILQ_FIRST(&ucopy->starved)) != NULL;
		starved++) {
		rcd_turn_end(turn);
		rcd_turn_begin(&lcore->turns, turn);
	}
	if (ucopy->taken == ucopy->posted && TAILQ_EMPTY(&ucopy->starved) &&
		TAILQ_EMPTY(&ucopy->gated)) {
		ucopy->active = false;
		TAILQ_REMOVE(&lcore->copying, ucopy, link);
	}
	return gates + starved;
}

/* Jobs as far as the client says that they are done. */
static uint32_t
ucopy_take_done_of(struct rcd_ucopy *ucopy)
{
	uint32_t done = rcd_shm_load(&ucopy->queue->done);

	if (done - ucopy->taken > ucopy->posted - ucopy->taken && !ucopy->broken) {
		rcd_counter_add(&ucopy->client->counters, RCD_COUNTER_CLIENT_BAD_INDEX, 1);
		__atomic_store_n(&ucopy->broken, true, __ATOMIC_RELAXED);
	}
	return ucopy->broken ? ucopy->posted : done;
}

/* @return units of work; 0: there was nothing to do but look */
static uint32_t
ucopy_take_done(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy, uint32_t budget)
{
	uint32_t done = ucopy_take_done_of(ucopy);
	uint32_t units = 0;

	while (ucopy->taken != done && units < budget) {
		uint32_t more = ucopy_take_one(lcore, ucopy);

		if (more == 0)
			break;
		units += more;
	}
	if (unlikely(units >= budget && ucopy->taken != done))
		rcd_late_spent(lcore, ucopy->client);
	if (units > 0 || ucopy->more || ucopy->taken == ucopy->posted)
		units += ucopy_take_go_on(lcore, ucopy);
	return units;
}

bool
rcd_ucopy_poll(struct rcd_lcore *lcore)
{
	const struct rcd_ucopy *last = TAILQ_LAST(&lcore->copying, rcd_ucopy_queue);
	struct rcd_ucopy *ucopy = NULL;
	uint32_t units = 0;
	uint32_t looks = 0;

	RCD_ON_LCORE(lcore);
	while (last != NULL && ucopy != last && units + looks < RCD_WORK_ALL) {
		uint32_t left = RCD_WORK_ALL - units - looks;

		ucopy = TAILQ_FIRST(&lcore->copying);
		TAILQ_REMOVE(&lcore->copying, ucopy, link);
		TAILQ_INSERT_TAIL(&lcore->copying, ucopy, link);
		/* A look at an index that another core writes. */
		looks++;
		units += ucopy_take_done(
			lcore, ucopy, left < RCD_WORK_CLIENT ? left : RCD_WORK_CLIENT);
	}
	if (ucopy != last)
		rcd_late_spent(lcore, NULL);
	lcore->work += units + looks;
	return units > 0;
}

/* @return units of work */
static uint32_t
ucopy_take_ring(struct rcd_ucopy *ucopy)
{
	uint32_t *asleep = &ucopy->queue->asleep;

	/* The indices before the look, as the client has it the other way round. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(asleep, __ATOMIC_RELAXED) == 0)
		return 1;
	__atomic_store_n(asleep, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
	return RCD_WORK_EVENT;
}

bool
rcd_ucopy_ring(struct rcd_lcore *lcore)
{
	struct rcd_ucopy *ucopy;
	uint32_t units = 0;

	RCD_ON_LCORE(lcore);
	while (units < RCD_WORK_ALL && (ucopy = TAILQ_FIRST(&lcore->ringing)) != NULL) {
		TAILQ_REMOVE(&lcore->ringing, ucopy, ring_link);
		ucopy->ringing = false;
		units += ucopy_take_ring(ucopy);
	}
	if (!TAILQ_EMPTY(&lcore->ringing))
		rcd_late_spent(lcore, NULL);
	lcore->work += units;
	return units > 0;
}

bool
rcd_ucopy_any(const struct rcd_lcore *lcore)
{
	const struct rcd_ucopy *ucopy;

	RCD_ON_LCORE(lcore);
	TAILQ_FOREACH(ucopy, &lcore->copying, link)
		if (ucopy->broken || ucopy->more ||
			rcd_shm_load(&ucopy->queue->done) != ucopy->taken ||
			ucopy->taken == ucopy->posted)
			return true;
	return !TAILQ_EMPTY(&lcore->ringing);
}

/* Whether a completion says that data of a job is there, or was. */
static bool
ucopy_take_depends(const struct rcd_hqp *hqp, const struct rcd_cqe *cqe)
{
	return cqe->status == RCD_WC_SUCCESS &&
		(cqe->recv || !hqp->reliable || cqe->opcode == RCD_WC_RDMA_READ ||
			cqe->opcode == RCD_WC_COMP_SWAP || cqe->opcode == RCD_WC_FETCH_ADD);
}

void
rcd_ucopy_hold(struct rcd_hqp *hqp, struct rcd_hcq *cq, const struct rcd_cqe *cqe)
{
	struct rcd_ucopy *ucopy = hqp->ucopy;
	uint32_t index = cq->producer - 1;

	RCD_ON_LCORE(hqp->lcore);
	if (!ucopy_take_depends(hqp, cqe))
		return;
	if (ucopy->held_count == RCD_UCOPY_HELD) {
		/* There is room for what one packet completes: this is no packet of a peer. */
		hqp->faulty = true;
		return;
	}
	ucopy->held[(ucopy->held_first + ucopy->held_count++) & HELD_MASK] =
		(struct rcd_uheld){ .hqp = hqp,
			.cq = cq,
			.index = index,
			.after = hqp->copy_last,
			.posted = ucopy->posted };
	/*
	 * Two gates, so that the first stays where it is while more comes behind it: with one that
	 * moves, nothing would ever be shown as long as there is traffic.
	 */
	if (!cq->gated) {
		cq->gated = true;
		cq->gate_at = index;
		cq->gate_after = ucopy->posted;
		TAILQ_INSERT_TAIL(&ucopy->gated, cq, gated_link);
	} else if (cq->gated_twice) {
		cq->next_gate_after = ucopy->posted;
	} else if (cq->gate_after != ucopy->posted) {
		cq->gated_twice = true;
		cq->next_gate_at = index;
		cq->next_gate_after = ucopy->posted;
	}
}

void
rcd_ucopy_hold_shared(struct rcd_hsrq *srq, const struct rcd_cqe *cqe)
{
	struct rcd_lcore *lcore = srq->client->lcore;
	struct rcd_hqp *hqp = lcore->qps[cqe->qpn.val % RCD_QP_SLOTS];

	RCD_ON_LCORE(lcore);
	if (hqp != NULL && hqp->qpn == cqe->qpn.val && hqp->copies > 0 &&
		hqp->ucopy == srq->client->ucopy)
		rcd_ucopy_hold(hqp, srq->cq, cqe);
}

/* The completions that are hidden now. */
static void
ucopy_take_keep_hidden(struct rcd_ucopy *ucopy, struct rcd_hcq *cq)
{
	cq->void_end = cq->producer;
	cq->void_count = cq->gated ? cq->producer - cq->gate_at : 0;
	ucopy->voiding |= cq->gated;
}

void
rcd_ucopy_forget(struct rcd_hqp *hqp)
{
	struct rcd_ucopy *ucopy = hqp->ucopy;

	RCD_ON_LCORE(hqp->lcore);
	if (ucopy == NULL) {
		/* A target without jobs may wait for the room of a member, no more now. */
		if (hqp->target != NULL)
			rcd_turn_end(&hqp->turn);
		return;
	}
	/* Of a target they are in queues of others, where they stay: it has acknowledged none. */
	if (hqp->target != NULL)
		hqp->lcore->work +=
			ucopy_take_turn_to_errors(ucopy, hqp, ucopy->taken, RCD_WC_WR_FLUSH_ERR);
	hqp->lcore->work += ucopy_take_orphan(ucopy, hqp);
	/* It may wait for jobs that are nobody's now. */
	rcd_turn_end(&hqp->turn);
	for (uint32_t i = 0; i < ucopy->held_count; i++) {
		struct rcd_uheld *held = &ucopy->held[(ucopy->held_first + i) & HELD_MASK];

		if (held->hqp == hqp)
			held->hqp = NULL;
	}
	if (hqp->target != NULL)
		return;
	ucopy_take_keep_hidden(ucopy, hqp->send_cq);
	ucopy_take_keep_hidden(ucopy, hqp->recv_cq);
}

/* Nobody else touches these: no gate opens, and what turns to errors is other queue pairs'. */
static void
ucopy_take_make_void(const struct rcd_hqp *hqp, struct rcd_hcq *cq)
{
	for (uint32_t i = 0; i < cq->void_count; i++) {
		struct rcd_cq_slot *slot = ucopy_take_slot_of(cq, cq->void_end - 1 - i);

		if (slot->qpn == hqp->qpn)
			slot->status = RCD_CQ_VOID;
	}
}

static int
ucopy_take_voided_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_ucopy *ucopy = arg;

	(void)lcore;
	ucopy->voiding = false;
	ucopy->more = true;
	return 0;
}

void
rcd_ucopy_void(struct rcd_hqp *hqp)
{
	/* A target's is the lcore's. */
	struct rcd_ucopy *ucopy = hqp->target == NULL ? hqp->ucopy : NULL;

	RCD_ON_CONTROL();
	if (ucopy == NULL || !ucopy->voiding)
		return;
	ucopy_take_make_void(hqp, hqp->send_cq);
	if (hqp->recv_cq != hqp->send_cq)
		ucopy_take_make_void(hqp, hqp->recv_cq);
	rcd_lcore_call(hqp->lcore, ucopy_take_voided_on_lcore, ucopy);
}

void
rcd_ucopy_forget_cq(struct rcd_lclient *client, struct rcd_hcq *cq)
{
	struct rcd_ucopy *ucopy = client->ucopy;

	RCD_ON_LCORE(client->lcore);
	if (ucopy == NULL)
		return;
	if (cq->gated)
		TAILQ_REMOVE(&ucopy->gated, cq, gated_link);
	cq->gated = cq->gated_twice = false;
	for (uint32_t i = 0; i < ucopy->held_count; i++) {
		struct rcd_uheld *held = &ucopy->held[(ucopy->held_first + i) & HELD_MASK];

		if (held->cq == cq)
			held->hqp = NULL;
	}
}

/* Nobody will say whether this job was done. */
static void
ucopy_take_end_target(struct rcd_lcore *lcore, struct rcd_hqp *hqp, const struct rcd_ujob *job)
{
	hqp->copies = hqp->blocks = hqp->staged = 0;
	ucopy_take_part(hqp);
	rcd_qp_copy_failed(hqp->qp, &job->late);
	rcd_turn_end(&hqp->turn);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	rcd_lcore_touch(lcore, hqp);
}

bool
rcd_ucopy_release(struct rcd_lclient *client)
{
	struct rcd_lcore *lcore = client->lcore;
	struct rcd_ucopy *ucopy = client->ucopy;
	struct rcd_turn *turn;

	RCD_ON_LCORE(lcore);
	if (ucopy == NULL)
		return false;
	__atomic_store_n(&ucopy->broken, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < RELEASED_AT_ONCE; i++) {
		turn = TAILQ_FIRST(&ucopy->starved);
		if (turn == NULL)
			return false;
		rcd_turn_end(turn);
		rcd_turn_begin(&lcore->turns, turn);
	}
	return true;
}

void
rcd_ucopy_end(struct rcd_lclient *client)
{
	struct rcd_lcore *lcore = client->lcore;
	struct rcd_ucopy *ucopy = client->ucopy;
	struct rcd_hcq *cq;

	RCD_ON_LCORE(lcore);
	if (ucopy == NULL)
		return;
	for (uint32_t i = ucopy->taken; i != ucopy->posted; i++) {
		struct rcd_hqp *hqp = ucopy->jobs[i & MASK].hqp;

		ucopy->jobs[i & MASK].hqp = NULL;
		/* The others go with the client. */
		if (hqp != NULL && hqp->target != NULL && hqp->copies > 0)
			ucopy_take_end_target(lcore, hqp, &ucopy->jobs[i & MASK]);
		if (hqp != NULL)
			hqp->copies = hqp->blocks = hqp->staged = 0;
	}
	ucopy->held_count = 0;
	while ((cq = TAILQ_FIRST(&ucopy->gated)) != NULL) {
		TAILQ_REMOVE(&ucopy->gated, cq, gated_link);
		cq->gated = cq->gated_twice = false;
	}
	if (ucopy->active)
		TAILQ_REMOVE(&lcore->copying, ucopy, link);
	if (ucopy->ringing)
		TAILQ_REMOVE(&lcore->ringing, ucopy, ring_link);
	ucopy->active = ucopy->ringing = false;
}
