/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The memory of sessions, which is lib/memory's: how it reaches their lcore, and what becomes of
 * sessions that take memory away.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_guard.h"
#include "rcd_ulost.h"

/* Queue pairs that learn of the queue by one command: more of them take several. */
#define QPS_AT_ONCE 256

struct call {
	int (*fn)(void *arg);
	void *arg;
};

static int
run(struct rcd_lcore *lcore, void *arg)
{
	const struct call *call = arg;

	(void)lcore;
	return call->fn(call->arg);
}

static int
on_lcore(void *owner, int (*fn)(void *arg), void *arg)
{
	struct call call = { .fn = fn, .arg = arg };
	const struct rcd_session *session = owner;

	return rcd_lcore_ask(session->lcore, run, &call);
}

int
rcd_session_mem_make(struct rcd_session *session)
{
	struct rcd_engine *engine = session->engine;
	const struct rcd_segment_conf conf = { .quota = &engine->conf.quota,
		.generation = engine->generation,
		.socket_id = session->lcore->socket_id,
		.entry = &session->quota,
		.work = &engine->work };
	int err = rcd_segment_make(&session->segment, &conf);

	session->shm = session->segment.shm;
	return err;
}

int
rcd_session_mem_open(struct rcd_session *session)
{
	static const struct rcd_umem_ops ops = { .on_lcore = on_lcore };
	const struct rcd_umem_conf conf = { .ops = &ops,
		.owner = session,
		.mrs = session->mrs,
		.quota = &session->quota,
		.pds = &session->pds,
		.work = &session->engine->work,
		.mems_max = (uint32_t)session->engine->conf.quota.mrs };
	int err = rcd_umem_init(&session->umem, &conf);

	if (err == 0)
		rcd_ucopy_open(session);
	return err;
}

int
rcd_session_mem_copies(const struct rcd_session *session)
{
	/* Copies are made by the process that opened the context, and by no other. */
	if (session->via != session->serial)
		return -EOPNOTSUPP;
	return session->ucopy != NULL && !session->ucopy->broken ? 0 : -EPERM;
}

struct attach {
	struct rcd_session *session;
	struct rcd_ucopy *ucopy;
	uint32_t first;
};

static void
attach_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct attach *attach = arg;
	const struct rcd_session *session = attach->session;

	(void)lcore;
	for (uint32_t i = attach->first; i < session->qp_places && i < attach->first + QPS_AT_ONCE;
		i++) {
		struct rcd_hqp *hqp = session->qps[i];

		if (hqp == NULL)
			continue;
		hqp->ucopy = attach->ucopy;
		/* What one packet sets free must not be hundreds of others. */
		rcd_qp_keep_nothing(hqp->qp);
	}
}

int
rcd_session_mem_copy(struct rcd_session *session, struct rcd_ctrl_copy_rep *rep)
{
	struct attach attach = { .session = session };
	struct rcd_ucopy *ucopy;
	int err;

	if (session->via != session->serial)
		return -EOPNOTSUPP;
	if (session->ucopy != NULL)
		return session->ucopy->broken ? -EPERM : -EBUSY;
	ucopy = rcd_session_zalloc(session, sizeof(*ucopy));
	if (ucopy == NULL)
		return -ENOMEM;
	err = rcd_segment_alloc(
		&session->segment, session->via, sizeof(*ucopy->queue), &ucopy->offset);
	if (err != 0) {
		free(ucopy);
		return err;
	}
	ucopy->session = session;
	ucopy->queue = (struct rcd_copyq *)(void *)((uint8_t *)session->shm + ucopy->offset);
	TAILQ_INIT(&ucopy->blocked);
	TAILQ_INIT(&ucopy->starved);
	TAILQ_INIT(&ucopy->gated);
	session->ucopy = attach.ucopy = ucopy;
	for (; attach.first < session->qp_places; attach.first += QPS_AT_ONCE)
		rcd_lcore_call(session->lcore, attach_on_lcore, &attach);
	*rep = (struct rcd_ctrl_copy_rep){
		.offset = ucopy->offset, .jobs = RCD_COPYQ_JOBS, .bytes = RCD_COPYQ_BYTES
	};
	return 0;
}

static void
break_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_ucopy *ucopy = arg;

	(void)lcore;
	ucopy->broken = true;
}

void
rcd_session_mem_break(struct rcd_session *session)
{
	if (session->ucopy != NULL)
		rcd_lcore_call(session->lcore, break_on_lcore, session->ucopy);
}

/* What it did is counted, and told once. */
static void
blame(struct rcd_session *session)
{
	rcd_counter_add(&session->counters, RCD_COUNTER_CLIENT_BAD_MEMORY, 1);
	if (!session->bad_memory)
		RCD_LOG(WARNING, "client %d (%s) took memory away that it shares",
			(int)session->pid, session->comm);
	session->bad_memory = true;
}

static void
settle(struct rcd_session *session)
{
	if (session->umem.lost)
		blame(session);
	session->umem.lost = false;
}

void
rcd_session_mem_close(struct rcd_session *session)
{
	rcd_umem_close(&session->umem);
	settle(session);
}

void
rcd_session_mem_end(struct rcd_session *session)
{
	rcd_umem_fini(&session->umem);
	rcd_segment_end(&session->segment, session->pages_go);
	session->shm = NULL;
}

void
rcd_session_mem_check(struct rcd_engine *engine)
{
	const struct rcd_session *failed = NULL;
	struct rcd_session *session;
	uintptr_t addr;

	/* Those who gave the addresses back before anybody looked. */
	LIST_FOREACH(session, &engine->sessions, link) {
		if (!session->umem.lost)
			continue;
		settle(session);
		rcd_verbs_fail_all(session);
	}
	/* As many as the queue holds, and most are of one session: its queue pairs fail once. */
	while (rcd_guard_fault(&addr)) {
		LIST_FOREACH(session, &engine->sessions, link) {
			bool segment = rcd_segment_has(&session->segment, addr);

			if (session->dev == NULL ||
				(!segment && !rcd_ulost_cut(&session->umem, addr)))
				continue;
			blame(session);
			if (session != failed)
				rcd_verbs_fail_all(session);
			failed = session;
			if (segment) {
				session->pages_go = true;
				rcd_session_end(session);
			} else {
				rcd_guard_discard(addr);
			}
			break;
		}
	}
}
