/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The memory of contexts, which is lib/memory's: how it reaches their lcore, who makes copies, and
 * who is told of memory that was taken away.
 */
#include <errno.h>
#include <stdlib.h>

#include "rcd_contexts.h"
#include "rcd_copyq.h"
#include "rcd_counter.h"
#include "rcd_ctrl.h"
#include "rcd_lcore_ctl.h"
#include "rcd_log.h"
#include "rcd_near.h"
#include "rcd_qp.h"
#include "rcd_queue.h"
#include "rcd_segment.h"
#include "rcd_thread.h"
#include "rcd_ucopy.h"
#include "rcd_umem.h"
#include "rcd_xqp.h"
#include "rcd_xrcd.h"

/* Queue pairs that learn of the queue by one command: more of them take several. */
#define QPS_AT_ONCE 256

struct call {
	int (*fn)(void *arg);
	void *arg;
};

static int
context_mem_run(struct rcd_lcore *lcore, void *arg)
{
	const struct call *call = arg;

	(void)lcore;
	return call->fn(call->arg);
}

static int
context_mem_on_lcore(void *owner, int (*fn)(void *arg), void *arg)
{
	struct call call = { .fn = fn, .arg = arg };
	const struct rcd_context *context = owner;

	return rcd_lcore_call(context->client.lcore, context_mem_run, &call);
}

int
rcd_context_mem_make(struct rcd_context *context)
{
	const struct rcd_contexts_conf *all = &context->all->conf;
	const struct rcd_segment_conf conf = { .quota = all->quota,
		.generation = all->generation,
		.socket_id = rcd_lcore_socket_id(context->client.lcore),
		.entry = &context->quota,
		.work = all->work };
	int err;

	RCD_ON_CONTROL();
	err = rcd_segment_make(&context->segment, &conf);
	context->client.shm = context->segment.shm;
	return err;
}

int
rcd_context_mem_open(struct rcd_context *context)
{
	static const struct rcd_umem_ops ops = { .on_lcore = context_mem_on_lcore };
	const struct rcd_umem_conf conf = { .ops = &ops,
		.owner = context,
		.mrs = context->client.mrs,
		.quota = &context->quota,
		.pds = &context->pds,
		.work = context->all->conf.work,
		.mems_max = (uint32_t)context->all->conf.quota->mrs };
	int err;

	RCD_ON_CONTROL();
	err = rcd_umem_init(&context->umem, &conf);
	context->client.copied = &context->umem.copied;
	if (err == 0)
		rcd_ucopy_open(&context->client);
	return err;
}

/* The lcore says so when it likes. */
static bool
context_mem_is_broken(const struct rcd_context *context)
{
	return __atomic_load_n(&context->client.ucopy->broken, __ATOMIC_RELAXED);
}

int
rcd_context_mem_copies(const struct rcd_context *context, const struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	/* Copies are made by the process that opened the context, and by no other. */
	if (conn != rcd_context_first(context))
		return -EOPNOTSUPP;
	return context->client.ucopy != NULL && !context_mem_is_broken(context) ? 0 : -EPERM;
}

struct attach {
	struct rcd_lclient *client;
	struct rcd_ucopy *ucopy;
	uint32_t first;
};

static int
context_mem_attach_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct attach *attach = arg;
	struct rcd_lclient *client = attach->client;

	(void)lcore;
	client->ucopy = attach->ucopy;
	for (uint32_t i = attach->first; i < client->qp_places && i < attach->first + QPS_AT_ONCE;
		i++) {
		struct rcd_hqp *hqp = client->qps[i];

		if (hqp == NULL)
			continue;
		hqp->ucopy = attach->ucopy;
		hqp->may_copy = true;
		/* What one packet sets free must not be hundreds of others. */
		rcd_qp_keep_nothing(hqp->qp);
	}
	return 0;
}

int
rcd_context_mem_copy(
	struct rcd_context *context, const struct rcd_conn *conn, struct rcd_ctrl_copy_rep *rep)
{
	struct attach attach = { .client = &context->client };
	struct rcd_ucopy *ucopy;
	int err;

	RCD_ON_CONTROL();
	if (conn != rcd_context_first(context))
		return -EOPNOTSUPP;
	if (context->client.ucopy != NULL)
		return context_mem_is_broken(context) ? -EPERM : -EBUSY;
	/* Frames wait for nobody. */
	if (context->raw_count > 0)
		return -EOPNOTSUPP;
	ucopy = rcd_near_zalloc(rcd_lcore_socket_id(context->client.lcore), sizeof(*ucopy));
	if (ucopy == NULL)
		return -ENOMEM;
	err = rcd_segment_alloc(
		&context->segment, conn->serial, sizeof(*ucopy->queue), &ucopy->offset);
	if (err != 0) {
		free(ucopy);
		return err;
	}
	ucopy->client = &context->client;
	ucopy->queue = (struct rcd_copyq *)(void *)((uint8_t *)context->client.shm + ucopy->offset);
	TAILQ_INIT(&ucopy->blocked);
	TAILQ_INIT(&ucopy->starved);
	TAILQ_INIT(&ucopy->gated);
	attach.ucopy = ucopy;
	do {
		rcd_lcore_call(context->client.lcore, context_mem_attach_on_lcore, &attach);
		attach.first += QPS_AT_ONCE;
	} while (attach.first < context->client.qp_places);
	for (uint32_t i = 0; i < context->xrcds.fresh; i++) {
		const struct rcd_xmember *member = context->xrcds.slots[i];

		if (member != NULL)
			rcd_xqp_copy(member->xrcd);
	}
	*rep = (struct rcd_ctrl_copy_rep){
		.offset = ucopy->offset, .jobs = RCD_COPYQ_JOBS, .bytes = RCD_COPYQ_BYTES
	};
	return 0;
}

static int
context_mem_break_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_ucopy *ucopy = arg;

	(void)lcore;
	__atomic_store_n(&ucopy->broken, true, __ATOMIC_RELAXED);
	return 0;
}

void
rcd_context_mem_break(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	if (context->client.ucopy != NULL)
		rcd_lcore_call(
			context->client.lcore, context_mem_break_on_lcore, context->client.ucopy);
}

void
rcd_context_mem_blame(struct rcd_context *context)
{
	const struct rcd_conn *first = rcd_context_first(context);

	RCD_ON_CONTROL();
	rcd_counter_add(&context->client.counters, RCD_COUNTER_CLIENT_BAD_MEMORY, 1);
	if (!context->bad_memory)
		RCD_LOG(WARNING, "client %d (%s) took memory away that it shares", (int)first->pid,
			first->comm);
	context->bad_memory = true;
}

void
rcd_context_mem_settle(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	if (context->umem.lost)
		rcd_context_mem_blame(context);
	context->umem.lost = false;
}

void
rcd_context_mem_close(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	rcd_umem_close(&context->umem);
	rcd_context_mem_settle(context);
}

void
rcd_context_mem_end(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	rcd_umem_fini(&context->umem);
	rcd_segment_end(&context->segment, context->pages_go);
	context->client.shm = NULL;
}
