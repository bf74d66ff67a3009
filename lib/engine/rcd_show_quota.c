/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Quotas: use and limit of all clients together, of each user, and of each client.
 */
#include "rcd_show.h"

#include <stdint.h>

#include "rcd_context.h"
#include "rcd_engine_priv.h"
#include "rcd_quota.h"
#include "rcd_thread.h"

static void
show_quota_text(const struct rcd_show *show, const char *name, const char *val)
{
	show->ops->text(show->out, name, val);
}

static void
show_quota_number(const struct rcd_show *show, const char *name, uint64_t val)
{
	show->ops->number(show->out, name, val);
}

static void
show_quota_use(
	const struct rcd_show *show, enum rcd_resource resource, uint64_t used, uint64_t limit)
{
	show->ops->object(show->out, rcd_resource_name(resource));
	show_quota_number(show, "used", used);
	/* Without a limit, as JSON has no number for it. */
	if (limit > INT64_MAX)
		show->ops->none(show->out, "limit");
	else
		show_quota_number(show, "limit", limit);
	show->ops->end(show->out);
}

static void
show_quota_total(const struct rcd_show *show, struct rcd_quota_book *book)
{
	show->ops->object(show->out, NULL);
	show_quota_text(show, "of", "all");
	show_quota_number(show, "refusals", book->refusals);
	show->ops->object(show->out, "quota");
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		enum rcd_resource resource = (enum rcd_resource)i;
		uint64_t total = *rcd_quota_at(&book->total, resource);

		show_quota_use(show, resource, book->used[i], total != 0 ? total : UINT64_MAX);
	}
	show->ops->end(show->out);
	show->ops->end(show->out);
}

static void
show_quota_user(const struct rcd_show *show, const struct rcd_quota_book *book,
	const struct rcd_quota_user *user)
{
	show->ops->object(show->out, NULL);
	show_quota_text(show, "of", "uid");
	show_quota_number(show, "uid", user->uid);
	show_quota_number(show, "clients", user->clients);
	show->ops->object(show->out, "quota");
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		enum rcd_resource resource = (enum rcd_resource)i;

		show_quota_use(
			show, resource, user->used[i], rcd_quota_user_limit(book, user, resource));
	}
	show->ops->end(show->out);
	show->ops->end(show->out);
}

/* A context is its first connection's. */
static void
show_quota_client(const struct rcd_show *show, const struct rcd_conn *conn)
{
	const struct rcd_context *context = conn->context;
	bool first = context != NULL && rcd_context_first(context) == conn;

	show->ops->object(show->out, NULL);
	show_quota_text(show, "of", "client");
	show_quota_number(show, "uid", conn->uid);
	show_quota_number(show, "pid", (uint64_t)conn->pid);
	show_quota_text(show, "comm", conn->comm);
	show_quota_number(show, "ctxn", conn->serial);
	show->ops->object(show->out, "quota");
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		enum rcd_resource resource = (enum rcd_resource)i;

		show_quota_use(show, resource,
			conn->quota.used[i] + (first ? context->quota.used[i] : 0),
			rcd_quota_limit(&conn->quota, resource));
	}
	show->ops->end(show->out);
	show->ops->end(show->out);
}

void
rcd_show_quota(const struct rcd_show *show)
{
	struct rcd_engine *engine = show->engine;
	const struct rcd_quota_user *user;
	const struct rcd_conn *conn;

	RCD_ON_CONTROL();
	show_quota_total(show, &engine->book);
	LIST_FOREACH(user, &engine->book.users, link)
		show_quota_user(show, &engine->book, user);
	LIST_FOREACH(conn, &engine->conns.list, link)
		show_quota_client(show, conn);
}
