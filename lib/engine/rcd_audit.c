/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The audit of an engine: what belongs to whom, and whether it lies where it may.
 */
#include "rcd_audit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "rcd_closer.h"
#include "rcd_cma.h"
#include "rcd_cma_client.h"
#include "rcd_cma_dev.h"
#include "rcd_cma_event.h"
#include "rcd_cmid.h"
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_engine_priv.h"
#include "rcd_guard.h"
#include "rcd_lcore.h"
#include "rcd_lcore_ctl.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_mr.h"
#include "rcd_neigh.h"
#include "rcd_number.h"
#include "rcd_queue.h"
#include "rcd_quota.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_ufile.h"
#include "rcd_umem.h"
#include "rcd_ushare.h"
#include "rcd_xqp.h"
#include "rcd_xrcd.h"

#define HUGE ((uint64_t)2 << 20)

/* An object, and the addresses that were reserved for it, if any. */
struct item {
	const void *object;
	const void *owner; /**< connection or context */
	uint32_t client;   /**< serial of the connection, or of the context's first */
	uintptr_t start;
	uint64_t len;
};

/* Whose objects are looked at. */
struct owner {
	const void *who;
	uint32_t client;
};

struct audit {
	const struct rcd_engine *engine;
	struct item *items;
	size_t count;
	size_t room;
	size_t first;                /**< item of the owner that is looked at */
	const struct rcd_umem *umem; /**< of that owner */
	uint32_t clients, parked, qps;
	int err;
	char *error;
	size_t error_len;
};

__attribute__((format(printf, 2, 3))) static void
audit_wrong(struct audit *audit, const char *format, ...)
{
	va_list args;

	if (audit->err != 0)
		return;
	audit->err = -EFAULT;
	va_start(args, format);
	vsnprintf(audit->error, audit->error_len, format, args);
	va_end(args);
}

static void
audit_add_item(struct audit *audit, const struct owner *owner, const void *object,
	const void *start, uint64_t len)
{
	if (audit->count == audit->room) {
		size_t room = audit->room == 0 ? 256 : audit->room * 2;
		struct item *more = realloc(audit->items, room * sizeof(*more));

		if (more == NULL) {
			audit->err = audit->err != 0 ? audit->err : -ENOMEM;
			return;
		}
		audit->items = more;
		audit->room = room;
	}
	audit->items[audit->count++] =
		(struct item){ object, owner->who, owner->client, (uintptr_t)start, len };
}

/* All objects of a table; numbers are given from the lowest. */
static void
audit_add_table(struct audit *audit, const struct owner *owner, const struct rcd_table *table,
	const char *what)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < table->capacity && found < table->used; i++) {
		if (table->slots[i] == NULL)
			continue;
		audit_add_item(audit, owner, table->slots[i], NULL, 0);
		found++;
	}
	if (found != table->used)
		audit_wrong(audit, "client %u has %u of %u %s", owner->client, found, table->used,
			what);
}

static void
audit_add_mem(struct audit *audit, const struct owner *owner, const struct rcd_mem *mem)
{
	if (mem != NULL)
		audit_add_item(audit, owner, mem, mem->base, mem->len);
}

static void
audit_check_memory(
	struct audit *audit, const struct owner *owner, const struct rcd_context *context)
{
	const struct rcd_umr *umr;
	uint32_t umrs = 0, mems = 0;

	for (uint32_t i = 0; i < context->umem.mems.capacity && mems < context->umem.mems.used;
		i++) {
		mems += context->umem.mems.slots[i] != NULL;
		audit_add_mem(audit, owner, context->umem.mems.slots[i]);
	}
	TAILQ_FOREACH(umr, &context->umem.umrs, link) {
		umrs++;
		audit_add_item(audit, owner, umr, umr->reserved, umr->reserved_len);
		for (uint32_t k = 0; k < umr->mem_count; k++)
			audit_add_mem(audit, owner, umr->mems[k]);
	}
	if (umrs != context->umem.umr_count)
		audit_wrong(audit, "client %u has %u of %u regions", owner->client, umrs,
			context->umem.umr_count);
}

/* Whether these bytes are of a region of this process's own memory, which is no client's, or of one
 * that has no addresses of the engine's. */
static bool
audit_is_apart(const struct rcd_umem *umem, uintptr_t base, uint64_t len)
{
	const struct rcd_umr *umr;

	TAILQ_FOREACH(umr, &umem->umrs, link)
		if ((umr->own || umr->far != 0) && base >= (uintptr_t)umr->base &&
			base - (uintptr_t)umr->base <= umr->len &&
			len <= umr->len - (base - (uintptr_t)umr->base))
			return true;
	return false;
}

static void
audit_check_mr(void *arg, const struct rcd_mr *mr)
{
	struct audit *audit = arg;
	uint64_t len = mr->len;
	uintptr_t base = (uintptr_t)mr->base;

	if ((mr->kind != RCD_MR_REGION && !mr->bound) || len == 0)
		return;
	/* A null region is its first byte, as often as is wanted. */
	if ((mr->access & RCD_ACCESS_NULL) && mr->base == rcd_guard_nowhere())
		return;
	for (size_t i = audit->first; i < audit->count; i++) {
		const struct item *item = &audit->items[i];

		if (base >= item->start && base - item->start <= item->len &&
			len <= item->len - (base - item->start))
			return;
	}
	if (audit_is_apart(audit->umem, base, len))
		return;
	audit_wrong(audit, "key %08x: %llu bytes at %p are not all the client's", mr->key,
		(unsigned long long)mr->len, (void *)mr->base);
}

static bool
audit_has(const struct rcd_table *table, uint32_t handle, const void *object)
{
	return rcd_table_get(table, handle) == object;
}

static void
audit_check_queues(struct audit *audit, const struct rcd_context *context)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < context->hqps.capacity && found < context->hqps.used; i++) {
		const struct rcd_hqp *hqp = context->hqps.slots[i];

		if (hqp == NULL)
			continue;
		found++;
		if (hqp->client != &context->client || context->client.qps[hqp->index] != hqp ||
			!audit_has(&context->cqs, hqp->send_cq->handle, hqp->send_cq) ||
			!audit_has(&context->cqs, hqp->recv_cq->handle, hqp->recv_cq) ||
			(hqp->srq != NULL &&
				!audit_has(&context->srqs, hqp->srq->handle, hqp->srq)) ||
			hqp->lcore->qps[hqp->qpn % RCD_QP_SLOTS] != hqp ||
			context->all->conf.lcores->qp_owner[hqp->qpn % RCD_QP_SLOTS] !=
				rcd_lcore_index(hqp->lcore) + 1)
			audit_wrong(audit, "queue pair %u refers to what is not its client's",
				hqp->qpn);
	}
	audit->qps += found;
}

/* Domains have as many members as contexts say, and what is in them is of members. */
static void
audit_check_domains(struct audit *audit)
{
	const struct rcd_contexts *contexts = &audit->engine->contexts;
	const struct rcd_xrcd *xrcd;
	const struct rcd_xqp *target;
	const struct rcd_xopen *open;

	LIST_FOREACH(xrcd, &contexts->xrcds, link) {
		const struct rcd_context *context;
		uint32_t members = 0, srqs = 0;

		LIST_FOREACH(context, &contexts->list, link) {
			for (uint32_t i = 0; i < context->xrcds.fresh; i++) {
				const struct rcd_xmember *member = context->xrcds.slots[i];

				members += member != NULL && member->xrcd == xrcd;
			}
			for (uint32_t i = 0; i < context->srqs.fresh; i++) {
				const struct rcd_hsrq *srq = context->srqs.slots[i];

				srqs += srq != NULL && srq->member != NULL &&
					srq->member->xrcd == xrcd &&
					rcd_xrc_find(&xrcd->srqs, srq->srq.number) == &srq->srq;
			}
		}
		if (members != xrcd->members || srqs != xrcd->srqs.count)
			audit_wrong(audit, "an XRC domain has other members than it counts");
		LIST_FOREACH(target, &xrcd->targets, link) {
			audit->qps++;
			LIST_FOREACH(open, &target->opens, link)
				if (!audit_has(&open->context->xqps, open->handle, open) ||
					open->member->xrcd != xrcd ||
					open->context->client.lcore != xrcd->lcore)
					audit_wrong(audit, "target %u is open where it is not",
						target->hqp.qpn);
			if (LIST_EMPTY(&target->opens))
				audit_wrong(audit, "target %u is nobody's", target->hqp.qpn);
		}
	}
}

static void
audit_check_cm(struct audit *audit, const struct owner *owner, const struct rcd_cm_user *user)
{
	const struct rcd_cma_client *cma = user->cma;
	uint32_t found = 0, ports = 0;

	if (user->quota->used[RCD_RESOURCE_CM_IDS] != (cma != NULL ? cma->ids.used : 0))
		audit_wrong(audit, "client %u is charged for other identifiers than it has",
			owner->client);
	if (cma == NULL)
		return;
	if (cma->cma != audit->engine->cm.cma || cma->owner != user || cma->quota != user->quota)
		audit_wrong(
			audit, "client %u is charged and told by another one's CM", owner->client);
	audit_add_table(audit, owner, &cma->ids, "identifiers");
	audit_add_table(audit, owner, &cma->channels, "CM channels");
	for (uint32_t i = 0; i < cma->ids.capacity && found < cma->ids.used; i++) {
		const struct rcd_cmid *id = cma->ids.slots[i];

		if (id == NULL)
			continue;
		found++;
		ports += id->port_part != NULL;
		if (id->client != cma ||
			!audit_has(&cma->channels, id->channel->handle, id->channel) ||
			(id->listener != NULL && id->listener->client != cma))
			audit_wrong(audit, "identifier %u refers to what is not its client's",
				id->handle);
	}
	if (user->quota->used[RCD_RESOURCE_CM_PORTS] != ports)
		audit_wrong(audit, "client %u has %u ports and is charged for %llu", owner->client,
			ports, (unsigned long long)user->quota->used[RCD_RESOURCE_CM_PORTS]);
}

static void
audit_check_context(struct audit *audit, const struct rcd_context *context)
{
	const struct rcd_lclient *client = &context->client;
	struct owner owner = { context, rcd_context_first(context)->serial };

	audit_add_item(audit, &owner, context, client->shm,
		context->segment.bytes + context->segment.huge_bytes);
	audit->first = audit->count;
	audit->umem = &context->umem;
	audit_check_cm(audit, &owner, &context->cm);
	audit_add_table(audit, &owner, &context->pds, "protection domains");
	audit_add_table(audit, &owner, &context->channels, "channels");
	audit_add_table(audit, &owner, &context->cqs, "completion queues");
	audit_add_table(audit, &owner, &context->srqs, "shared receive queues");
	audit_add_table(audit, &owner, &context->hqps, "queue pairs");
	audit_add_table(audit, &owner, &context->xrcds, "memberships of XRC domains");
	audit_add_table(audit, &owner, &context->xqps, "open XRC targets");
	audit_check_memory(audit, &owner, context);
	audit_check_queues(audit, context);
	if (audit->err == 0)
		rcd_mr_table_each(client->mrs, audit_check_mr, audit);
}

static void
audit_check_conn(struct audit *audit, const struct rcd_conn *conn)
{
	struct owner owner = { conn, conn->serial };

	audit->clients++;
	audit->parked += conn->parked;
	audit_add_item(audit, &owner, conn, NULL, 0);
	audit_check_cm(audit, &owner, &conn->cm);
	if (rcd_conns_find(&audit->engine->conns, conn->serial) != conn)
		audit_wrong(audit, "client %u is not found", conn->serial);
}

static bool
audit_is_client(const struct rcd_engine *engine, const struct rcd_cma_client *wanted)
{
	const struct rcd_context *context;
	const struct rcd_conn *conn;

	LIST_FOREACH(conn, &engine->conns.list, link)
		if (conn->cm.cma == wanted)
			return true;
	LIST_FOREACH(context, &engine->contexts.list, link)
		if (context->cm.cma == wanted)
			return true;
	return false;
}

/* Connections of a context are those that say so. */
static void
audit_check_shares(struct audit *audit)
{
	const struct rcd_engine *engine = audit->engine;
	const struct rcd_context *context;
	const struct rcd_conn *conn;
	uint32_t listed = 0;

	LIST_FOREACH(context, &engine->contexts.list, link) {
		if (rcd_context_first(context) == NULL)
			audit_wrong(audit, "a context is nobody's");
		LIST_FOREACH(conn, &context->conns, context_link) {
			listed++;
			if (conn->context != context || conn->cm.cma != NULL || conn->ended)
				audit_wrong(audit, "client %u is not where its context has it",
					conn->serial);
		}
	}
	LIST_FOREACH(conn, &engine->conns.list, link)
		listed -= conn->context != NULL;
	if (listed != 0)
		audit_wrong(audit, "contexts have more connections than there are, or fewer");
}

/* Nothing may name a client that is gone. */
static void
audit_check_lists(struct audit *audit)
{
	const struct rcd_engine *engine = audit->engine;
	const struct rcd_cmid *id;

	audit_check_domains(audit);
	LIST_FOREACH(id, &engine->cm.cma->ids, all_link)
		if (!audit_is_client(engine, id->client) ||
			!audit_has(&id->client->ids, id->handle, id)) {
			audit_wrong(audit, "identifier %u belongs to nobody", id->handle);
			break;
		}
	if (audit->qps != engine->qpns.used)
		audit_wrong(audit, "%u queue pairs, counted %u", audit->qps, engine->qpns.used);
	if (audit->clients != engine->conns.count || audit->parked != engine->conns.inbox.parked)
		audit_wrong(audit, "%u clients, %u parked; counted %u, %u", audit->clients,
			audit->parked, engine->conns.count, engine->conns.inbox.parked);
}

/* What is charged to somebody is what it has, where the audit can count it. */
static void
audit_check_accounts(struct audit *audit)
{
	const struct rcd_context *context;
	const struct rcd_conn *conn;

	LIST_FOREACH(conn, &audit->engine->conns.list, link) {
		if (conn->quota.user->uid != conn->uid)
			audit_wrong(audit, "client %u is charged to another user", conn->serial);
		if (conn->quota.used[RCD_RESOURCE_CLIENTS] != 1 ||
			(conn->context != NULL &&
				conn->quota.used[RCD_RESOURCE_DESCRIPTORS] !=
					rcd_conn_descriptors(conn)))
			audit_wrong(audit, "client %u is charged for what it does not have",
				conn->serial);
	}
	LIST_FOREACH(context, &audit->engine->contexts.list, link) {
		const uint64_t *used = context->quota.used;
		const struct rcd_conn *first = rcd_context_first(context);

		if (context->quota.user->uid != first->uid)
			audit_wrong(audit, "the context of client %u is charged to another user",
				first->serial);
		if (used[RCD_RESOURCE_CLIENTS] != 0 ||
			used[RCD_RESOURCE_QPS] != context->hqps.used + context->xqps.used ||
			used[RCD_RESOURCE_SRQS] != context->srqs.used ||
			used[RCD_RESOURCE_PDS] != context->pds.used ||
			used[RCD_RESOURCE_XRCDS] != context->xrcds.used ||
			used[RCD_RESOURCE_AHS] != context->ah_count ||
			used[RCD_RESOURCE_SHARED] != rcd_ufile_charged(&context->umem.files))
			audit_wrong(audit,
				"the context of client %u is charged for what it does not have",
				first->serial);
	}
}

static void
audit_check_book(struct audit *audit)
{
	const struct rcd_quota_book *book = &audit->engine->book;
	const struct rcd_quota_user *user;
	const struct rcd_cma_account *rest;
	const struct rcd_context *context;
	const struct rcd_conn *conn;

	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		uint64_t clients = 0, users = 0;

		LIST_FOREACH(conn, &audit->engine->conns.list, link)
			clients += conn->quota.used[i];
		LIST_FOREACH(context, &audit->engine->contexts.list, link)
			clients += context->quota.used[i];
		LIST_FOREACH(rest, &audit->engine->cm.cma->rests, link)
			clients += rest->rest.used[i];
		clients +=
			i == RCD_RESOURCE_DESCRIPTORS ? rcd_closer_owed(audit->engine->closer) : 0;
		clients += i == RCD_RESOURCE_NEIGHBOURS
			? rcd_neigh_left(audit->engine->ports.neighs)
			: 0;
		LIST_FOREACH(user, &book->users, link)
			users += user->used[i];
		if (clients != book->used[i] || users != book->used[i])
			audit_wrong(audit, "%s: clients have %llu, users %llu, all %llu",
				rcd_resource_name((enum rcd_resource)i),
				(unsigned long long)clients, (unsigned long long)users,
				(unsigned long long)book->used[i]);
	}
	if (book->used[RCD_RESOURCE_CM_CONNECTIONS] != rcd_cma_connections(audit->engine->cm.cma))
		audit_wrong(audit, "%llu connections are charged for",
			(unsigned long long)book->used[RCD_RESOURCE_CM_CONNECTIONS]);
}

static int
audit_by_object(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->object < y->object ? -1 : x->object > y->object;
}

static int
audit_by_start(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool
audit_in_window(const struct item *item)
{
	for (int part = RCD_GUARD_SHARED; part <= RCD_GUARD_COPIED; part++) {
		uintptr_t start;
		size_t len;

		rcd_guard_window((enum rcd_guard_part)part, &start, &len);
		if (item->start >= start && item->start - start <= len &&
			item->len <= len - (item->start - start))
			return true;
	}
	return false;
}

static void
audit_check_items(struct audit *audit)
{
	uintptr_t end = 0;
	uint64_t used = rcd_guard_nowhere() != NULL ? RCD_MSG_MAX_BYTES : 0;
	const void *last = NULL;

	qsort(audit->items, audit->count, sizeof(audit->items[0]), audit_by_object);
	for (size_t i = 1; i < audit->count; i++)
		if (audit->items[i].object == audit->items[i - 1].object &&
			audit->items[i].owner != audit->items[i - 1].owner)
			audit_wrong(audit, "an object belongs to clients %u and %u",
				audit->items[i].client, audit->items[i - 1].client);
	qsort(audit->items, audit->count, sizeof(audit->items[0]), audit_by_start);
	for (size_t i = 0; i < audit->count; i++) {
		const struct item *item = &audit->items[i];

		/* A file is known by its handle and by each of its regions. */
		if (item->start == 0 || item->object == last)
			continue;
		last = item->object;
		if (item->start < end || !audit_in_window(item)) {
			audit_wrong(audit, "client %u: %llu bytes at %p are not its own",
				item->client, (unsigned long long)item->len, (void *)item->start);
			return;
		}
		end = item->start + item->len;
		used += (item->len + HUGE - 1) & ~(HUGE - 1);
	}
	if (used != rcd_guard_used())
		audit_wrong(audit, "%zu bytes of addresses are taken, and %llu are used",
			rcd_guard_used(), (unsigned long long)used);
}

int
rcd_engine_audit(const struct rcd_engine *engine, char *error, size_t error_len)
{
	struct audit audit = { .engine = engine, .error = error, .error_len = error_len };
	const struct rcd_context *context;
	const struct rcd_conn *conn;

	RCD_ON_CONTROL();
	error[0] = '\0';
	audit_check_shares(&audit);
	if (audit.err != 0)
		return audit.err;
	LIST_FOREACH(conn, &engine->conns.list, link)
		audit_check_conn(&audit, conn);
	LIST_FOREACH(context, &engine->contexts.list, link)
		audit_check_context(&audit, context);
	audit_check_lists(&audit);
	audit_check_accounts(&audit);
	audit_check_book(&audit);
	if (audit.err == 0 && audit.count > 0)
		audit_check_items(&audit);
	free(audit.items);
	return audit.err;
}

void
rcd_engine_holdings(const struct rcd_engine *engine, struct rcd_holdings *holdings)
{
	RCD_ON_CONTROL();
	*holdings = (struct rcd_holdings){ .clients = engine->conns.count,
		.parked = engine->conns.inbox.parked,
		.qps = engine->qpns.used,
		.cm_connections = rcd_cma_connections(engine->cm.cma),
		.closing = rcd_closer_held(engine->closer),
		.cm_ids = rcd_cmid_count(engine->cm.cma, RCD_CMA_NO_DEV),
		.window_bytes = rcd_guard_used() };
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++)
		holdings->charged += engine->book.used[i];
}
