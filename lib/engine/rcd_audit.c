/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The audit of an engine: what belongs to whom, and whether it lies where it may.
 */
#include "rcd_engine_priv.h"

#include "rcd_audit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "rcd_closer.h"
#include "rcd_cma_client.h"
#include "rcd_cma_event.h"
#include "rcd_guard.h"
#include "rcd_ushare.h"

#define HUGE ((uint64_t)2 << 20)

/* An object, and the addresses that were reserved for it, if any. */
struct item {
	const void *object;
	const struct rcd_session *owner;
	uintptr_t start;
	uint64_t len;
};

struct audit {
	const struct rcd_engine *engine;
	struct item *items;
	size_t count;
	size_t room;
	size_t first; /**< item of the session that is looked at */
	uint32_t clients, parked, qps;
	int err;
	char *error;
	size_t error_len;
};

__attribute__((format(printf, 2, 3))) static void
wrong(struct audit *audit, const char *format, ...)
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
add_item(struct audit *audit, const struct rcd_session *owner, const void *object,
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
	audit->items[audit->count++] = (struct item){ object, owner, (uintptr_t)start, len };
}

/* All objects of a table; numbers are given from the lowest. */
static void
add_table(struct audit *audit, const struct rcd_session *owner, const struct rcd_table *table,
	const char *what)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < table->capacity && found < table->used; i++) {
		if (table->slots[i] == NULL)
			continue;
		add_item(audit, owner, table->slots[i], NULL, 0);
		found++;
	}
	if (found != table->used)
		wrong(audit, "client %u has %u of %u %s", owner->serial, found, table->used, what);
}

static void
add_mem(struct audit *audit, const struct rcd_session *owner, const struct rcd_mem *mem)
{
	if (mem != NULL)
		add_item(audit, owner, mem, mem->base, mem->len);
}

static void
check_memory(struct audit *audit, const struct rcd_session *session)
{
	uint32_t umrs = 0, mems = 0;

	for (uint32_t i = 0; i < session->umem.mems.capacity && mems < session->umem.mems.used;
		i++) {
		mems += session->umem.mems.slots[i] != NULL;
		add_mem(audit, session, session->umem.mems.slots[i]);
	}
	for (uint32_t i = 0; i < RCD_UMR_BUCKETS && umrs < session->umem.umr_count; i++) {
		const struct rcd_umr *umr;

		LIST_FOREACH(umr, &session->umem.umrs[i], hash_link) {
			umrs++;
			add_item(audit, session, umr, umr->reserved, umr->reserved_len);
			for (uint32_t k = 0; k < umr->mem_count; k++)
				add_mem(audit, session, umr->mems[k]);
		}
	}
	if (umrs != session->umem.umr_count)
		wrong(audit, "client %u has %u of %u regions", session->serial, umrs,
			session->umem.umr_count);
}

static void
check_mr(void *arg, const struct rcd_mr *mr)
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
	wrong(audit, "key %08x: %llu bytes at %p are not all the client's", mr->key,
		(unsigned long long)mr->len, (void *)mr->base);
}

static bool
has(const struct rcd_table *table, uint32_t handle, const void *object)
{
	return rcd_table_get(table, handle) == object;
}

static void
check_queues(struct audit *audit, const struct rcd_session *session)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < session->hqps.capacity && found < session->hqps.used; i++) {
		const struct rcd_hqp *hqp = session->hqps.slots[i];

		if (hqp == NULL)
			continue;
		found++;
		if (hqp->session != session || session->qps[hqp->index] != hqp ||
			!has(&session->cqs, hqp->send_cq->handle, hqp->send_cq) ||
			!has(&session->cqs, hqp->recv_cq->handle, hqp->recv_cq) ||
			(hqp->srq != NULL && !has(&session->srqs, hqp->srq->handle, hqp->srq)) ||
			hqp->lcore->qps[hqp->qpn % RCD_QP_SLOTS] != hqp ||
			session->engine->qp_owner[hqp->qpn % RCD_QP_SLOTS] != hqp->lcore->index + 1)
			wrong(audit, "queue pair %u refers to what is not its client's", hqp->qpn);
	}
	audit->qps += found;
}

static void
check_cm(struct audit *audit, const struct rcd_session *session)
{
	const struct rcd_cma_client *cma = session->cma;
	uint32_t found = 0, ports = 0;

	if (cma == NULL)
		return;
	if (cma->cma != audit->engine->cma || cma->owner != session ||
		cma->quota != &session->quota)
		wrong(audit, "client %u is charged and told by another one's CM", session->serial);
	add_table(audit, session, &cma->ids, "identifiers");
	add_table(audit, session, &cma->channels, "CM channels");
	for (uint32_t i = 0; i < cma->ids.capacity && found < cma->ids.used; i++) {
		const struct rcd_cmid *id = cma->ids.slots[i];

		if (id == NULL)
			continue;
		found++;
		ports += id->on_port;
		if (id->client != cma || !has(&cma->channels, id->channel->handle, id->channel) ||
			(id->listener != NULL && id->listener->client != cma))
			wrong(audit, "identifier %u refers to what is not its client's",
				id->handle);
	}
	if (session->quota.used[RCD_RESOURCE_CM_PORTS] != ports)
		wrong(audit, "client %u has %u ports and is charged for %llu", session->serial,
			ports, (unsigned long long)session->quota.used[RCD_RESOURCE_CM_PORTS]);
}

static void
check_session(struct audit *audit, const struct rcd_session *session)
{
	audit->clients++;
	audit->parked += session->parked;
	add_item(audit, session, session, session->shm,
		session->segment.bytes + session->segment.huge_bytes);
	audit->first = audit->count;
	check_cm(audit, session);
	if (session->shm == NULL || session->mrs == NULL)
		return;
	add_table(audit, session, &session->pds, "protection domains");
	add_table(audit, session, &session->channels, "channels");
	add_table(audit, session, &session->cqs, "completion queues");
	add_table(audit, session, &session->srqs, "shared receive queues");
	add_table(audit, session, &session->hqps, "queue pairs");
	check_memory(audit, session);
	check_queues(audit, session);
	if (audit->err == 0)
		rcd_mr_table_each(session->mrs, check_mr, audit);
}

static bool
is_session(const struct rcd_engine *engine, const struct rcd_session *wanted)
{
	const struct rcd_session *session;

	LIST_FOREACH(session, &engine->sessions, link)
		if (session == wanted)
			return true;
	return false;
}

static bool
is_client(const struct rcd_engine *engine, const struct rcd_cma_client *wanted)
{
	const struct rcd_session *session;

	LIST_FOREACH(session, &engine->sessions, link)
		if (session->cma == wanted)
			return true;
	return false;
}

/* Nothing may name a session that is gone. */
static void
check_lists(struct audit *audit)
{
	const struct rcd_engine *engine = audit->engine;
	const struct rcd_session *session;
	const struct rcd_cmid *id;

	LIST_FOREACH(session, &engine->sessions, link) {
		const struct rcd_session *guest;

		if (session->host != NULL && !is_session(engine, session->host))
			wrong(audit, "the host of client %u is gone", session->serial);
		LIST_FOREACH(guest, &session->guests, guest_link)
			if (!is_session(engine, guest) || guest->host != session) {
				wrong(audit, "a guest of client %u is gone", session->serial);
				break;
			}
	}
	LIST_FOREACH(id, &engine->cma->ids, all_link)
		if (!is_client(engine, id->client) || !has(&id->client->ids, id->handle, id)) {
			wrong(audit, "identifier %u belongs to nobody", id->handle);
			break;
		}
	if (audit->qps != engine->qp_used)
		wrong(audit, "%u queue pairs, counted %u", audit->qps, engine->qp_used);
	if (audit->clients != engine->client_count || audit->parked != engine->parked_count)
		wrong(audit, "%u clients, %u parked; counted %u, %u", audit->clients, audit->parked,
			engine->client_count, engine->parked_count);
}

/* What is charged to a session is what it has, where the audit can count it. */
static void
check_account(struct audit *audit, const struct rcd_session *session)
{
	const uint64_t *used = session->quota.used;

	/* One that has ended is charged until its connection is closed. */
	if (session->quota.book == NULL || session->ended)
		return;
	if (session->quota.user->uid != session->uid)
		wrong(audit, "client %u is charged to another user", session->serial);
	if (used[RCD_RESOURCE_CLIENTS] != 1 || used[RCD_RESOURCE_QPS] != session->hqps.used ||
		used[RCD_RESOURCE_SRQS] != session->srqs.used ||
		used[RCD_RESOURCE_PDS] != session->pds.used ||
		used[RCD_RESOURCE_AHS] != session->ah_count ||
		used[RCD_RESOURCE_SHARED] != rcd_ufile_charged(&session->umem.files) ||
		used[RCD_RESOURCE_CM_IDS] != (session->cma != NULL ? session->cma->ids.used : 0))
		wrong(audit, "client %u is charged for what it does not have", session->serial);
}

static void
check_book(struct audit *audit)
{
	const struct rcd_quota_book *book = &audit->engine->book;
	const struct rcd_quota_user *user;
	const struct rcd_cma_account *rest;
	const struct rcd_session *session;

	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		uint64_t sessions = 0, users = 0;

		LIST_FOREACH(session, &audit->engine->sessions, link)
			sessions += session->quota.book != NULL ? session->quota.used[i] : 0;
		LIST_FOREACH(rest, &audit->engine->cma->rests, link)
			sessions += rest->rest.used[i];
		sessions +=
			i == RCD_RESOURCE_DESCRIPTORS ? rcd_closer_owed(audit->engine->closer) : 0;
		LIST_FOREACH(user, &book->users, link)
			users += user->used[i];
		if (sessions != book->used[i] || users != book->used[i])
			wrong(audit, "%s: sessions have %llu, users %llu, all %llu",
				rcd_resource_name((enum rcd_resource)i),
				(unsigned long long)sessions, (unsigned long long)users,
				(unsigned long long)book->used[i]);
	}
	if (book->used[RCD_RESOURCE_CM_CONNECTIONS] != rcd_cma_connections(audit->engine->cma))
		wrong(audit, "%llu connections are charged for",
			(unsigned long long)book->used[RCD_RESOURCE_CM_CONNECTIONS]);
	LIST_FOREACH(session, &audit->engine->sessions, link)
		check_account(audit, session);
}

static int
by_object(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->object < y->object ? -1 : x->object > y->object;
}

static int
by_start(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool
in_window(const struct item *item)
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
check_items(struct audit *audit)
{
	uintptr_t end = 0;
	uint64_t used = rcd_guard_nowhere() != NULL ? RCD_MSG_MAX_BYTES : 0;
	const void *last = NULL;

	qsort(audit->items, audit->count, sizeof(audit->items[0]), by_object);
	for (size_t i = 1; i < audit->count; i++)
		if (audit->items[i].object == audit->items[i - 1].object &&
			audit->items[i].owner != audit->items[i - 1].owner)
			wrong(audit, "an object belongs to clients %u and %u",
				audit->items[i].owner->serial, audit->items[i - 1].owner->serial);
	qsort(audit->items, audit->count, sizeof(audit->items[0]), by_start);
	for (size_t i = 0; i < audit->count; i++) {
		const struct item *item = &audit->items[i];

		/* A file is known by its handle and by each of its regions. */
		if (item->start == 0 || item->object == last)
			continue;
		last = item->object;
		if (item->start < end || !in_window(item)) {
			wrong(audit, "client %u: %llu bytes at %p are not its own",
				item->owner->serial, (unsigned long long)item->len,
				(void *)item->start);
			return;
		}
		end = item->start + item->len;
		used += (item->len + HUGE - 1) & ~(HUGE - 1);
	}
	if (used != rcd_guard_used())
		wrong(audit, "%zu bytes of addresses are taken, and %llu are used",
			rcd_guard_used(), (unsigned long long)used);
}

int
rcd_engine_audit(const struct rcd_engine *engine, char *error, size_t error_len)
{
	struct audit audit = { .engine = engine, .error = error, .error_len = error_len };
	const struct rcd_session *session;

	error[0] = '\0';
	LIST_FOREACH(session, &engine->sessions, link)
		check_session(&audit, session);
	check_lists(&audit);
	check_book(&audit);
	if (audit.err == 0 && audit.count > 0)
		check_items(&audit);
	free(audit.items);
	return audit.err;
}

void
rcd_engine_holdings(const struct rcd_engine *engine, struct rcd_holdings *holdings)
{
	*holdings = (struct rcd_holdings){ .clients = engine->client_count,
		.parked = engine->parked_count,
		.qps = engine->qp_used,
		.cm_connections = rcd_cma_connections(engine->cma),
		.closing = rcd_closer_held(engine->closer),
		.cm_ids = rcd_cmid_count(engine->cma, RCD_CMA_NO_DEV),
		.window_bytes = rcd_guard_used() };
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++)
		holdings->charged += engine->book.used[i];
}
