/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Contexts: opened, joined and left by connections, destroyed with all that is in them.
 */
#include "rcd_context.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rcd_ah.h"
#include "rcd_bits.h"
#include "rcd_cm_host.h"
#include "rcd_conn.h"
#include "rcd_contexts.h"
#include "rcd_counter.h"
#include "rcd_dev.h"
#include "rcd_hcq.h"
#include "rcd_host.h"
#include "rcd_lcore_ctl.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_mr.h"
#include "rcd_neigh.h"
#include "rcd_ports.h"
#include "rcd_quota.h"
#include "rcd_segment.h"
#include "rcd_shm.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_ufile.h"
#include "rcd_ushare.h"
#include "rcd_xrcd.h"

/** What the engine holds for a context; heap included. */
#define CONTEXT_DESCRIPTORS 3
#define CONTEXT_MAPPINGS    24

/* The lcore with the fewest clients among those that have a queue of the device. */
static struct rcd_lcore *
context_choose_lcore(const struct rcd_lcores *lcores, const struct rcd_dev *dev)
{
	struct rcd_lcore *best = lcores->lcore[0];

	for (uint32_t i = 1; i < lcores->count && i < dev->lport.queues; i++)
		if (rcd_lcore_contexts(lcores->lcore[i]) < rcd_lcore_contexts(best))
			best = lcores->lcore[i];
	return best;
}

/* All that was made of it. Its connections are known to the last: what is told may name one. */
static void
context_destroy(struct rcd_context *context)
{
	const struct rcd_contexts_conf *conf = &context->all->conf;
	struct rcd_lclient *client = &context->client;
	struct rcd_conn *conn;

	rcd_cm_host_end(&context->cm);
	/* The client has it as well: closed alone, it would stay in the set. */
	if (context->wake_fd >= 0) {
		rcd_lcore_unwatch(client->lcore, context->wake_fd);
		close(context->wake_fd);
	}
	rcd_neigh_leave(conf->ports->neighs, &context->quota);
	if (context->dev != NULL) {
		rcd_xrcd_leave(context);
		rcd_context_objects_leave(context);
		rcd_lcore_context_del(client->lcore);
		LIST_REMOVE(context, link);
	}
	if (client->shm != NULL)
		rcd_context_mem_close(context);
	/* What it did wrong stays known. */
	for (int i = 0; i < RCD_COUNTER_COUNT; i++)
		rcd_counter_add(conf->counters, (enum rcd_counter)i,
			rcd_counter_get(&client->counters, (enum rcd_counter)i));
	rcd_hcq_end(context);
	rcd_context_objects_free(context);
	rcd_table_fini(&context->pds);
	rcd_table_fini(&context->dms);
	rcd_table_fini(&context->channels);
	rcd_table_fini(&context->cqs);
	rcd_table_fini(&context->srqs);
	rcd_table_fini(&context->hqps);
	rcd_table_fini(&context->xrcds);
	rcd_table_fini(&context->xqps);
	rcd_mr_table_destroy(client->mrs);
	rcd_ah_table_destroy(client->ahs);
	free(client->qps);
	rcd_context_mem_end(context);
	free(client->ucopy);
	while ((conn = rcd_context_first(context)) != NULL) {
		LIST_REMOVE(conn, context_link);
		conn->context = NULL;
	}
	rcd_quota_leave(&context->quota);
	free(context);
}

/* Descriptors of the segment and of the wake-up; mappings of the segment, and of the heap. */
static int
context_charge(struct rcd_context *context)
{
	int err = rcd_quota_charge(&context->quota, RCD_RESOURCE_DESCRIPTORS, CONTEXT_DESCRIPTORS);

	if (err != 0)
		return err;
	return rcd_quota_charge(&context->quota, RCD_RESOURCE_MAPPINGS, CONTEXT_MAPPINGS);
}

/* Its tables, as large as the limits that a client has. */
static int
context_make_tables(struct rcd_context *context)
{
	const struct rcd_quota *quota = context->all->conf.quota;
	struct rcd_lclient *client = &context->client;
	uint64_t secret;

	if (getentropy(&secret, sizeof(secret)) != 0)
		return -errno;
	/* A table has two keys at least. */
	client->mrs =
		rcd_mr_table_create(rcd_log2_up(quota->mrs > 2 ? (uint32_t)quota->mrs : 2), secret);
	client->ahs = rcd_ah_table_create((uint32_t)quota->ahs);
	client->qp_places = quota->qps < RCD_DB_BITS ? (uint32_t)quota->qps : RCD_DB_BITS;
	client->qps = calloc(client->qp_places, sizeof(client->qps[0]));
	if (client->mrs == NULL || client->ahs == NULL || client->qps == NULL ||
		rcd_table_init(&context->pds, (uint32_t)quota->pds) != 0 ||
		rcd_table_init(&context->dms, RCD_DMS_MAX) != 0 ||
		rcd_table_init(&context->channels, (uint32_t)quota->cqs) != 0 ||
		rcd_table_init(&context->cqs, (uint32_t)quota->cqs) != 0 ||
		rcd_table_init(&context->srqs, (uint32_t)quota->srqs) != 0 ||
		rcd_table_init(&context->hqps, client->qp_places) != 0 ||
		rcd_table_init(&context->xrcds, (uint32_t)quota->xrcds) != 0 ||
		rcd_table_init(&context->xqps, client->qp_places) != 0)
		return -ENOMEM;
	return rcd_context_mem_open(context);
}

static int
context_make_wake(struct rcd_context *context)
{
	context->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (context->wake_fd < 0)
		return -errno;
	return rcd_lcore_watch(context->client.lcore, context->wake_fd);
}

/* What a connection had before, but for itself, is the context's. */
static void
context_take_over(struct rcd_context *context, struct rcd_conn *conn)
{
	rcd_neigh_hand(context->all->conf.ports->neighs, &conn->quota, &context->quota);
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		uint64_t own = i == RCD_RESOURCE_CLIENTS ? 1
			: i == RCD_RESOURCE_DESCRIPTORS  ? rcd_conn_descriptors(conn)
							 : 0;

		rcd_quota_hand(&conn->quota, &context->quota, (enum rcd_resource)i,
			conn->quota.used[i] - own);
	}
	rcd_cm_host_hand(&conn->cm, &context->cm);
}

int
rcd_context_open(struct rcd_contexts *all, struct rcd_conn *conn, struct rcd_dev *dev,
	struct rcd_lcore *lcore)
{
	struct rcd_context *context = calloc(1, sizeof(*context));
	int err;

	RCD_ON_CONTROL();
	if (context == NULL)
		return -ENOMEM;
	context->all = all;
	rcd_host_client_init(&context->client);
	context->segment.fd = context->segment.huge_fd = context->wake_fd = -1;
	context->client.lcore = lcore != NULL ? lcore : context_choose_lcore(all->conf.lcores, dev);
	if (conn->owner != NULL) {
		context->client.ops = conn->owner->lcore;
		context->client.arg = conn->owner_arg;
	}
	context->cm = (struct rcd_cm_user){ .host = all->conf.cm,
		.quota = &context->quota,
		.context = context,
		.netns = conn->netns };
	rcd_quota_join_beside(&context->quota, &conn->quota);
	err = context_charge(context);
	if (err == 0)
		err = rcd_context_mem_make(context);
	if (err == 0)
		err = context_make_tables(context);
	if (err == 0)
		err = context_make_wake(context);
	if (err != 0) {
		/* The client knows nothing of it. */
		context->pages_go = true;
		context_destroy(context);
		return err;
	}
	context->dev = dev;
	context_take_over(context, conn);
	LIST_INSERT_HEAD(&all->list, context, link);
	LIST_INSERT_HEAD(&context->conns, conn, context_link);
	conn->context = context;
	rcd_lcore_context_add(context->client.lcore);
	rcd_lcore_call(context->client.lcore, rcd_host_client_add, &context->client);
	return 0;
}

int
rcd_context_join(struct rcd_contexts *all, struct rcd_conn *conn, int fd)
{
	struct rcd_context *context;
	struct stat given;

	RCD_ON_CONTROL();
	if (conn->context != NULL)
		return -EINVAL;
	/* They would have to be one with the context's own. */
	if (conn->cm.cma != NULL)
		return -EINVAL;
	if (!rcd_ufile_is_memory(fd) || fstat(fd, &given) != 0)
		return -EBADF;
	LIST_FOREACH(context, &all->list, link) {
		if (context->segment.file_dev != given.st_dev ||
			context->segment.file_ino != given.st_ino)
			continue;
		LIST_INSERT_AFTER(rcd_context_first(context), conn, context_link);
		conn->context = context;
		return 0;
	}
	return -EBADF;
}

void
rcd_context_leave(struct rcd_context *context, struct rcd_conn *conn)
{
	bool was_first = rcd_context_first(context) == conn;
	const struct rcd_conn *next = LIST_NEXT(conn, context_link);

	RCD_ON_CONTROL();
	if (was_first && next == NULL) {
		/* A client that is ended reads what its queues still tell; this one has left. */
		context->pages_go = true;
		context_destroy(context);
		return;
	}
	LIST_REMOVE(conn, context_link);
	conn->context = NULL;
	if (!was_first)
		return;
	/* What there is belongs to the next one's user; short of memory, to the old one. */
	if (next->uid != conn->uid)
		rcd_quota_move(&context->quota, next->uid);
	/* The process is gone, and so is memory that is reached by copies. */
	rcd_context_mem_break(context);
}

void
rcd_context_end(struct rcd_context *context)
{
	struct rcd_conn *conn;

	RCD_ON_CONTROL();
	LIST_FOREACH(conn, &context->conns, context_link)
		rcd_conn_end(conn);
	context_destroy(context);
}

void
rcd_context_settle(struct rcd_context *context, const struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	rcd_segment_settle(&context->segment, conn->serial);
	rcd_ushare_settle(&context->umem, conn->serial);
	rcd_hcq_settle(context, conn->serial);
}

void
rcd_context_event(struct rcd_context *context, uint32_t type, uint32_t of, uint64_t cookie)
{
	struct rcd_conn *conn;

	RCD_ON_CONTROL();
	LIST_FOREACH(conn, &context->conns, context_link)
		rcd_conn_event(conn, type, of, cookie);
}
