/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the command line sees of quotas: use and limit of all clients together, of each user, and
 * of each client.
 */
#include "rcd_engine_priv.h"

#include <jansson.h>

#include "rcd_admin.h"

/** Without a limit, as JSON has no number for it. */
static json_t *
limit_json(uint64_t limit)
{
	return limit > INT64_MAX ? json_null() : json_integer((json_int_t)limit);
}

static json_t *
use_json(uint64_t used, uint64_t limit)
{
	return json_pack("{s:I, s:o}", "used", (json_int_t)used, "limit", limit_json(limit));
}

static void
add(json_t *list, json_t *entry, json_t *quota)
{
	json_object_set_new(entry, "quota", quota);
	json_array_append_new(list, entry);
}

static void
list_total(struct rcd_quota_book *book, json_t *list)
{
	json_t *quota = json_object();

	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		enum rcd_resource resource = (enum rcd_resource)i;
		uint64_t total = *rcd_quota_at(&book->total, resource);

		json_object_set_new(quota, rcd_resource_name(resource),
			use_json(book->used[i], total != 0 ? total : UINT64_MAX));
	}
	add(list, json_pack("{s:s, s:I}", "of", "all", "refusals", (json_int_t)book->refusals),
		quota);
}

static void
list_users(const struct rcd_quota_book *book, json_t *list)
{
	const struct rcd_quota_user *user;

	LIST_FOREACH(user, &book->users, link) {
		json_t *quota = json_object();

		for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
			enum rcd_resource resource = (enum rcd_resource)i;

			json_object_set_new(quota, rcd_resource_name(resource),
				use_json(
					user->used[i], rcd_quota_user_limit(book, user, resource)));
		}
		add(list,
			json_pack("{s:s, s:I, s:i}", "of", "uid", "uid", (json_int_t)user->uid,
				"sessions", (int)user->sessions),
			quota);
	}
}

static void
list_clients(const struct rcd_engine *engine, json_t *list)
{
	const struct rcd_session *session;

	LIST_FOREACH(session, &engine->sessions, link) {
		json_t *quota = json_object();

		for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
			enum rcd_resource resource = (enum rcd_resource)i;

			json_object_set_new(quota, rcd_resource_name(resource),
				use_json(session->quota.used[i],
					rcd_quota_limit(&session->quota, resource)));
		}
		add(list,
			json_pack("{s:s, s:I, s:i, s:s, s:i}", "of", "client", "uid",
				(json_int_t)session->uid, "pid", (int)session->pid, "comm",
				session->comm, "ctxn", (int)session->serial),
			quota);
	}
}

struct json_t *
rcd_admin_quota(struct rcd_engine *engine)
{
	json_t *list = json_array();

	list_total(&engine->book, list);
	list_users(&engine->book, list);
	list_clients(engine, list);
	return list;
}
