/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the command line sees of quotas: use and limit of all clients together, of each user, and
 * of each client.
 */
#include <jansson.h>

#include "rcd_admin.h"
#include "rcd_context.h"
#include "rcd_engine_priv.h"
#include "rcd_quota.h"
#include "rcd_thread.h"

/** Without a limit, as JSON has no number for it. */
static json_t *
admin_quota_limit_json(uint64_t limit)
{
	return limit > INT64_MAX ? json_null() : json_integer((json_int_t)limit);
}

static json_t *
admin_quota_use_json(uint64_t used, uint64_t limit)
{
	return json_pack(
		"{s:I, s:o}", "used", (json_int_t)used, "limit", admin_quota_limit_json(limit));
}

static void
admin_quota_add(json_t *list, json_t *entry, json_t *quota)
{
	json_object_set_new(entry, "quota", quota);
	json_array_append_new(list, entry);
}

static void
admin_quota_list_total(struct rcd_quota_book *book, json_t *list)
{
	json_t *quota = json_object();

	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		enum rcd_resource resource = (enum rcd_resource)i;
		uint64_t total = *rcd_quota_at(&book->total, resource);

		json_object_set_new(quota, rcd_resource_name(resource),
			admin_quota_use_json(book->used[i], total != 0 ? total : UINT64_MAX));
	}
	admin_quota_add(list,
		json_pack("{s:s, s:I}", "of", "all", "refusals", (json_int_t)book->refusals),
		quota);
}

static void
admin_quota_list_users(const struct rcd_quota_book *book, json_t *list)
{
	const struct rcd_quota_user *user;

	LIST_FOREACH(user, &book->users, link) {
		json_t *quota = json_object();

		for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
			enum rcd_resource resource = (enum rcd_resource)i;

			json_object_set_new(quota, rcd_resource_name(resource),
				admin_quota_use_json(
					user->used[i], rcd_quota_user_limit(book, user, resource)));
		}
		admin_quota_add(list,
			json_pack("{s:s, s:I, s:i}", "of", "uid", "uid", (json_int_t)user->uid,
				"sessions", (int)user->sessions),
			quota);
	}
}

/* A context is its first connection's. */
static void
admin_quota_list_clients(const struct rcd_engine *engine, json_t *list)
{
	const struct rcd_conn *conn;

	LIST_FOREACH(conn, &engine->conns, link) {
		const struct rcd_context *context = conn->context;
		bool first = context != NULL && rcd_context_first(context) == conn;
		json_t *quota = json_object();

		for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
			enum rcd_resource resource = (enum rcd_resource)i;
			uint64_t used = conn->quota.used[i] + (first ? context->quota.used[i] : 0);

			json_object_set_new(quota, rcd_resource_name(resource),
				admin_quota_use_json(
					used, rcd_quota_limit(&conn->quota, resource)));
		}
		admin_quota_add(list,
			json_pack("{s:s, s:I, s:i, s:s, s:i}", "of", "client", "uid",
				(json_int_t)conn->uid, "pid", (int)conn->pid, "comm", conn->comm,
				"ctxn", (int)conn->serial),
			quota);
	}
}

struct json_t *
rcd_admin_quota(struct rcd_engine *engine)
{
	json_t *list = json_array();

	RCD_ON_CONTROL();
	admin_quota_list_total(&engine->book, list);
	admin_quota_list_users(&engine->book, list);
	admin_quota_list_clients(engine, list);
	return list;
}
