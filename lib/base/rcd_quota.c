/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The accounts of clients and users. What the numbers stand for is their owners' business.
 */
#include "rcd_quota.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_check.h"
#include "rcd_limits.h"
#include "rcd_thread.h"

/** Of a total, this part is root's alone: whoever is to mend things gets in. */
#define ROOT_PART 16

/** What all users owe together ends at this part, and at what one user may besides. */
#define OWED_PART  4
#define OWED_LEAST 320

static const struct {
	const char *name;
	size_t offset; /**< in struct rcd_quota */
	uint64_t client, most;
	int error;
} resources[RCD_RESOURCE_COUNT] = {
#define RCD_RESOURCE(symbol, name, client, most, error, what)                                      \
	[RCD_RESOURCE_##symbol] = { #name, offsetof(struct rcd_quota, name), client, most, error },
#include "rcd_resource.def"
};

uint64_t *
rcd_quota_at(struct rcd_quota *quota, enum rcd_resource resource)
{
	return (uint64_t *)(void *)((uint8_t *)quota + resources[resource].offset);
}

static uint64_t
quota_at(const struct rcd_quota *quota, enum rcd_resource resource)
{
	uint64_t val;

	memcpy(&val, (const uint8_t *)quota + resources[resource].offset, sizeof(val));
	return val;
}

void
rcd_quota_init(struct rcd_quota *quota)
{
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++)
		*rcd_quota_at(quota, (enum rcd_resource)i) = resources[i].client;
}

const char *
rcd_resource_name(enum rcd_resource resource)
{
	return resources[resource].name;
}

uint64_t
rcd_resource_most(enum rcd_resource resource)
{
	return resources[resource].most;
}

void
rcd_quota_open(struct rcd_quota_book *book, const struct rcd_quota *client,
	const struct rcd_quota *user, const struct rcd_quota *total)
{
	RCD_ON_CONTROL();
	memset(book, 0, sizeof(*book));
	book->client = *client;
	book->user = *user;
	book->total = *total;
	LIST_INIT(&book->users);
}

static struct rcd_quota_user *
quota_user_get(struct rcd_quota_book *book, uid_t uid)
{
	struct rcd_quota_user *user;

	LIST_FOREACH(user, &book->users, link)
		if (user->uid == uid)
			break;
	if (user == NULL) {
		user = calloc(1, sizeof(*user));
		if (user == NULL)
			return NULL;
		user->uid = uid;
		LIST_INSERT_HEAD(&book->users, user, link);
	}
	return user;
}

/* How many entries of its kind the user has. */
static uint32_t *
quota_kind_of(const struct rcd_quota_entry *entry)
{
	return entry->other ? &entry->user->others : &entry->user->clients;
}

/* The user has an entry less. */
static void
quota_user_put(struct rcd_quota_user *user, uint32_t *count)
{
	--*count;
	if (user->clients + user->others > 0)
		return;
	/* What is charged is an entry's, and they are gone. */
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++)
		RCD_CHECK(user->used[i] == 0);
	LIST_REMOVE(user, link);
	free(user);
}

int
rcd_quota_join(struct rcd_quota_book *book, struct rcd_quota_entry *entry, uid_t uid)
{
	RCD_ON_CONTROL();
	memset(entry, 0, sizeof(*entry));
	entry->user = quota_user_get(book, uid);
	if (entry->user == NULL)
		return -ENOMEM;
	entry->book = book;
	++*quota_kind_of(entry);
	return 0;
}

void
rcd_quota_join_beside(struct rcd_quota_entry *entry, const struct rcd_quota_entry *of)
{
	RCD_ON_CONTROL();
	*entry = (struct rcd_quota_entry){ .book = of->book, .user = of->user, .other = true };
	++*quota_kind_of(entry);
}

void
rcd_quota_leave(struct rcd_quota_entry *entry)
{
	RCD_ON_CONTROL();
	if (entry->book == NULL)
		return;
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++)
		rcd_quota_uncharge(entry, (enum rcd_resource)i, entry->used[i]);
	quota_user_put(entry->user, quota_kind_of(entry));
	memset(entry, 0, sizeof(*entry));
}

void
rcd_quota_bequeath(
	struct rcd_quota_entry *entry, struct rcd_quota_entry *heir, enum rcd_resource resource)
{
	RCD_ON_CONTROL();
	rcd_quota_join_beside(heir, entry);
	rcd_quota_hand(entry, heir, resource, entry->used[resource]);
}

void
rcd_quota_hand(struct rcd_quota_entry *from, struct rcd_quota_entry *to, enum rcd_resource resource,
	uint64_t amount)
{
	RCD_ON_CONTROL();
	RCD_CHECK(from->user == to->user && amount <= from->used[resource]);
	from->used[resource] -= amount;
	to->used[resource] += amount;
}

int
rcd_quota_owe(struct rcd_quota_book *book, struct rcd_quota_entry *heir, uid_t uid,
	enum rcd_resource resource, uint64_t amount)
{
	struct rcd_quota_user *user;

	RCD_ON_CONTROL();
	user = quota_user_get(book, uid);
	memset(heir, 0, sizeof(*heir));
	if (user == NULL)
		return -ENOMEM;
	*heir = (struct rcd_quota_entry){ .book = book, .user = user, .other = true };
	++*quota_kind_of(heir);
	heir->used[resource] = amount;
	user->used[resource] += amount;
	book->used[resource] += amount;
	return 0;
}

uint64_t
rcd_quota_over(const struct rcd_quota_book *book, enum rcd_resource resource)
{
	uint64_t total = quota_at(&book->total, resource);

	RCD_ON_CONTROL();
	return total != 0 && book->used[resource] > total ? book->used[resource] - total : 0;
}

bool
rcd_quota_may_owe(const struct rcd_quota_book *book, enum rcd_resource resource, uint64_t owed)
{
	uint64_t total = quota_at(&book->total, resource);

	RCD_ON_CONTROL();
	return total == 0 ||
		(owed < total / OWED_PART + OWED_LEAST &&
			book->used[resource] <= total - total / ROOT_PART);
}

int
rcd_quota_move(struct rcd_quota_entry *entry, uid_t uid)
{
	struct rcd_quota_user *user, *before = entry->user;
	uint32_t *count;

	RCD_ON_CONTROL();
	count = quota_kind_of(entry);
	user = quota_user_get(entry->book, uid);
	if (user == NULL)
		return -ENOMEM;
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++) {
		before->used[i] -= entry->used[i];
		user->used[i] += entry->used[i];
	}
	entry->user = user;
	++*quota_kind_of(entry);
	quota_user_put(before, count);
	return 0;
}

uint64_t
rcd_quota_user_limit(
	const struct rcd_quota_book *book, const struct rcd_quota_user *user, enum rcd_resource of)
{
	uint64_t limit = quota_at(&book->user, of);
	uint64_t total = quota_at(&book->total, of);
	uint64_t others = book->used[of] - user->used[of];
	uint64_t left;

	RCD_ON_CONTROL();
	if (total == 0)
		return limit != 0 ? limit : UINT64_MAX;
	if (user->uid != 0)
		total -= total / ROOT_PART;
	left = total > others ? total - others : 0;
	left -= left / 4;
	return limit != 0 && limit < left ? limit : left;
}

uint64_t
rcd_quota_limit(const struct rcd_quota_entry *entry, enum rcd_resource resource)
{
	uint64_t own = quota_at(&entry->book->client, resource);
	uint64_t user = rcd_quota_user_limit(entry->book, entry->user, resource);

	RCD_ON_CONTROL();
	return own != 0 && own < user ? own : user;
}

/* Whether a limit leaves room for so much more. */
static bool
quota_fits(uint64_t used, uint64_t amount, uint64_t limit)
{
	return used <= limit && amount <= limit - used;
}

bool
rcd_quota_fits(const struct rcd_quota_entry *entry, enum rcd_resource resource, uint64_t amount)
{
	uint64_t own = quota_at(&entry->book->client, resource);

	RCD_ON_CONTROL();
	return (own == 0 || quota_fits(entry->used[resource], amount, own)) &&
		quota_fits(entry->user->used[resource], amount,
			rcd_quota_user_limit(entry->book, entry->user, resource));
}

int
rcd_quota_charge(struct rcd_quota_entry *entry, enum rcd_resource resource, uint64_t amount)
{
	struct rcd_quota_book *book = entry->book;

	RCD_ON_CONTROL();
	if (!rcd_quota_fits(entry, resource, amount)) {
		book->refusals++;
		return -resources[resource].error;
	}
	entry->used[resource] += amount;
	entry->user->used[resource] += amount;
	book->used[resource] += amount;
	return 0;
}

void
rcd_quota_uncharge(struct rcd_quota_entry *entry, enum rcd_resource resource, uint64_t amount)
{
	RCD_ON_CONTROL();
	RCD_CHECK(amount <= entry->used[resource]);
	entry->used[resource] -= amount;
	entry->user->used[resource] -= amount;
	entry->book->used[resource] -= amount;
}
