/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What becomes of copies: jobs that the client has done are taken back, packets that waited for
 * their payload go out, completions are shown, and those whose data did not arrive are errors.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rcd_engine_priv.h"
#include "rcd_ucopy.h"

#define MASK      (RCD_COPYQ_JOBS - 1)
#define HELD_MASK (RCD_UCOPY_HELD - 1)

#define STARVED_AT_ONCE 64    /**< queue pairs that go on when there is room again */
#define VOID_MAX        65536 /**< completions that are looked at when a queue pair goes */

/* Its jobs, still out, are nobody's. */
static void
orphan(struct rcd_ucopy *ucopy, struct rcd_hqp *hqp)
{
	for (uint32_t i = ucopy->taken; hqp->copies > 0 && i != ucopy->posted; i++) {
		struct rcd_ujob *job = &ucopy->jobs[i & MASK];

		if (job->hqp != hqp)
			continue;
		job->hqp = NULL;
		hqp->copies--;
	}
	hqp->copies = hqp->blocks = hqp->staged = 0;
}

static struct rcd_cq_slot *
slot_of(const struct rcd_hcq *cq, uint32_t index)
{
	return &cq->slots[index & cq->mask];
}

/* What a queue pair completed behind this job never happened. @return whether there was any */
static bool
turn_to_errors(struct rcd_ucopy *ucopy, const struct rcd_hqp *hqp, uint32_t job)
{
	uint8_t status = RCD_WC_LOC_PROT_ERR;

	for (uint32_t i = 0; i < ucopy->held_count; i++) {
		const struct rcd_uheld *held = &ucopy->held[(ucopy->held_first + i) & HELD_MASK];

		if (held->hqp != hqp || (int32_t)(held->after - job) <= 0)
			continue;
		slot_of(held->cq, held->index)->status = status;
		/* Spec: IBTA 11.4.2 an error wakes those who wait for solicited completions */
		held->cq->held_solicited = true;
		status = RCD_WC_WR_FLUSH_ERR;
	}
	return status != RCD_WC_LOC_PROT_ERR;
}

static void
fail(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy, const struct rcd_ujob *job)
{
	struct rcd_hqp *hqp = job->hqp;
	struct rcd_qp_copy late = job->late;
	bool writes = job->writes;

	late.told = turn_to_errors(ucopy, hqp, ucopy->taken);
	rcd_counter_add(rcd_dev_counters(hqp->dev, lcore), RCD_COUNTER_COPY_FAILED, 1);
	orphan(ucopy, hqp);
	if (writes)
		rcd_qp_copy_failed(hqp->qp, &late);
	else
		hqp->faulty = true;
	rcd_turn_end(&hqp->turn);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	rcd_lcore_touch(lcore, hqp);
}

static void
finish(struct rcd_lcore *lcore, struct rcd_ujob *job)
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
	if (!job->blocks || --hqp->blocks > 0)
		return;
	rcd_turn_end(&hqp->turn);
	rcd_turn_begin(&lcore->turns, &hqp->turn);
	rcd_lcore_touch(lcore, hqp);
}

/* @return false when its packet can't go now */
static bool
take_one(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy)
{
	struct rcd_ujob *job = &ucopy->jobs[ucopy->taken & MASK];
	uint32_t status =
		__atomic_load_n(&ucopy->queue->jobs[ucopy->taken & MASK].status, __ATOMIC_RELAXED);
	bool staged = job->staged != NULL;
	bool failed = ucopy->broken || status != 0;

	/* What is read of a region that went is lost on the way: when it is sent again, if ever,
	 * the transport finds that it is gone. */
	if (job->hqp != NULL && status == ECANCELED && !job->writes && job->hqp->reliable &&
		!ucopy->broken) {
		ucopy->lost = true;
		failed = false;
	}
	if (job->hqp != NULL && failed) {
		fail(lcore, ucopy, job);
	} else if (job->hqp != NULL) {
		if (staged && !ucopy->lost && !rcd_tx_staged(lcore, job->hqp, job->staged))
			return false;
		finish(lcore, job);
	}
	if (staged)
		ucopy->lost = false;
	ucopy->staged_count -= staged;
	ucopy->tail = job->end;
	ucopy->taken++;
	return true;
}

/* All of a completion queue up to its next gate is shown. */
static void
open_gate(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy, struct rcd_hcq *cq)
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

/* Jobs were taken: what waited for them goes on. */
static void
go_on(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy)
{
	struct rcd_turn *turn;
	struct rcd_hcq *cq;

	while ((cq = TAILQ_FIRST(&ucopy->gated)) != NULL &&
		(int32_t)(ucopy->taken - cq->gate_after) >= 0)
		open_gate(lcore, ucopy, cq);
	while (ucopy->held_count > 0 &&
		(int32_t)(ucopy->taken - ucopy->held[ucopy->held_first & HELD_MASK].posted) >= 0) {
		ucopy->held_first++;
		ucopy->held_count--;
	}
	for (int i = 0; i < STARVED_AT_ONCE && (turn = TAILQ_FIRST(&ucopy->starved)) != NULL; i++) {
		rcd_turn_end(turn);
		rcd_turn_begin(&lcore->turns, turn);
	}
	if (ucopy->taken == ucopy->posted && TAILQ_EMPTY(&ucopy->starved)) {
		ucopy->active = false;
		LIST_REMOVE(ucopy, link);
	}
}

static uint32_t
take(struct rcd_lcore *lcore, struct rcd_ucopy *ucopy)
{
	uint32_t done = rcd_shm_load(&ucopy->queue->done);
	uint32_t count = 0;

	if (done - ucopy->taken > ucopy->posted - ucopy->taken && !ucopy->broken) {
		rcd_counter_add(&ucopy->session->counters, RCD_COUNTER_CLIENT_BAD_INDEX, 1);
		ucopy->broken = true;
	}
	if (ucopy->broken)
		done = ucopy->posted;
	while (ucopy->taken != done && count < RCD_UCOPY_TAKEN && take_one(lcore, ucopy))
		count++;
	if (count > 0 || ucopy->taken == ucopy->posted)
		go_on(lcore, ucopy);
	return count;
}

uint32_t
rcd_ucopy_poll(struct rcd_lcore *lcore)
{
	struct rcd_ucopy *ucopy = LIST_FIRST(&lcore->copying);
	uint32_t count = 0;

	while (ucopy != NULL) {
		struct rcd_ucopy *next = LIST_NEXT(ucopy, link);

		count += take(lcore, ucopy);
		ucopy = next;
	}
	lcore->work += count;
	return count;
}

void
rcd_ucopy_ring(struct rcd_lcore *lcore)
{
	struct rcd_ucopy *ucopy;

	LIST_FOREACH(ucopy, &lcore->copying, link)
	{
		uint32_t *asleep = &ucopy->queue->asleep;

		if (ucopy->rung == ucopy->posted)
			continue;
		ucopy->rung = ucopy->posted;
		/* The indices before the look, as the client has it the other way round. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(asleep, __ATOMIC_RELAXED) == 0)
			continue;
		__atomic_store_n(asleep, 0, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

bool
rcd_ucopy_any(const struct rcd_lcore *lcore)
{
	const struct rcd_ucopy *ucopy;

	LIST_FOREACH(ucopy, &lcore->copying, link)
	if (ucopy->broken || rcd_shm_load(&ucopy->queue->done) != ucopy->taken)
		return true;
	return false;
}

/* Whether a completion says that data of a job is there, or was. */
static bool
depends(const struct rcd_hqp *hqp, const struct rcd_cqe *cqe)
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

	if (!depends(hqp, cqe))
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

/* What is not shown of a queue pair never will be. */
static void
make_void(const struct rcd_hqp *hqp, struct rcd_hcq *cq)
{
	uint32_t count = cq->gated ? cq->producer - cq->gate_at : 0;

	for (uint32_t i = 0; i < count && i < VOID_MAX; i++) {
		struct rcd_cq_slot *slot = slot_of(cq, cq->gate_at + i);

		if (slot->qpn == hqp->qpn)
			slot->status = RCD_CQ_VOID;
	}
}

void
rcd_ucopy_forget(struct rcd_hqp *hqp)
{
	struct rcd_ucopy *ucopy = hqp->ucopy;

	if (ucopy == NULL)
		return;
	orphan(ucopy, hqp);
	/* It may wait for jobs that are nobody's now. */
	rcd_turn_end(&hqp->turn);
	make_void(hqp, hqp->send_cq);
	if (hqp->recv_cq != hqp->send_cq)
		make_void(hqp, hqp->recv_cq);
	for (uint32_t i = 0; i < ucopy->held_count; i++) {
		struct rcd_uheld *held = &ucopy->held[(ucopy->held_first + i) & HELD_MASK];

		if (held->hqp == hqp)
			held->hqp = NULL;
	}
}

void
rcd_ucopy_forget_cq(struct rcd_session *session, struct rcd_hcq *cq)
{
	struct rcd_ucopy *ucopy = session->ucopy;

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

void
rcd_ucopy_end(struct rcd_session *session)
{
	struct rcd_ucopy *ucopy = session->ucopy;
	struct rcd_hcq *cq;

	if (ucopy == NULL)
		return;
	for (uint32_t i = ucopy->taken; i != ucopy->posted; i++) {
		struct rcd_hqp *hqp = ucopy->jobs[i & MASK].hqp;

		if (hqp != NULL)
			hqp->copies = hqp->blocks = hqp->staged = 0;
		ucopy->jobs[i & MASK].hqp = NULL;
	}
	ucopy->held_count = 0;
	while ((cq = TAILQ_FIRST(&ucopy->gated)) != NULL) {
		TAILQ_REMOVE(&ucopy->gated, cq, gated_link);
		cq->gated = cq->gated_twice = false;
	}
	if (ucopy->active)
		LIST_REMOVE(ucopy, link);
	ucopy->active = false;
}
