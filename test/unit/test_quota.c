/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: accounts are right at every edge: limits of a session, of a user and of all, at 2^64 too.
 * Method: charges against limits worked out by hand, and random ones against a sum.
 */
#include "rcd_quota.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_tap.h"

enum {
	ROOT = 0,
	ALICE = 1000,
	BOB = 1001
};

static struct rcd_quota_book book;

static void
open_book(uint64_t session, uint64_t user, uint64_t total)
{
	struct rcd_quota of_session = { .qps = session };
	struct rcd_quota of_user = { .qps = user };
	struct rcd_quota of_all = { .qps = total };

	rcd_quota_open(&book, &of_session, &of_user, &of_all);
}

static struct rcd_quota_entry
join(uid_t uid)
{
	struct rcd_quota_entry entry;

	CU_ASSERT_EQUAL_FATAL(rcd_quota_join(&book, &entry, uid), 0);
	return entry;
}

static int
charge(struct rcd_quota_entry *entry, uint64_t amount)
{
	return rcd_quota_charge(entry, RCD_RESOURCE_QPS, amount);
}

static void
limits(void)
{
	struct rcd_quota_entry a, b;

	open_book(10, 15, 0);
	a = join(ALICE);
	b = join(ALICE);
	CU_ASSERT_EQUAL(charge(&a, 11), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&a, 10), 0);
	CU_ASSERT_EQUAL(charge(&a, 1), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&a, UINT64_MAX), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&b, 6), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&b, 5), 0);
	CU_ASSERT_EQUAL(charge(&b, 0), 0);
	rcd_quota_uncharge(&a, RCD_RESOURCE_QPS, 3);
	CU_ASSERT_EQUAL(charge(&b, 4), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&b, 3), 0);
	CU_ASSERT_EQUAL(rcd_quota_limit(&b, RCD_RESOURCE_QPS), 10);
	rcd_quota_leave(&a);
	CU_ASSERT_EQUAL(charge(&b, 2), 0);
	rcd_quota_leave(&b);
	CU_ASSERT(LIST_EMPTY(&book.users));
	CU_ASSERT_EQUAL(book.used[RCD_RESOURCE_QPS], 0);
	CU_ASSERT_EQUAL(book.refusals, 5);
}

/* Alone one has nearly all; each who comes later has three quarters of what is left. */
static void
shares(void)
{
	struct rcd_quota_entry root, alice, bob;

	open_book(0, 0, 1600);
	alice = join(ALICE);
	bob = join(BOB);
	root = join(ROOT);
	CU_ASSERT_EQUAL(rcd_quota_limit(&alice, RCD_RESOURCE_QPS), 1125);
	CU_ASSERT_EQUAL(charge(&alice, 1126), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&alice, 1125), 0);
	CU_ASSERT_EQUAL(charge(&bob, 283), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&bob, 282), 0);
	CU_ASSERT_EQUAL(charge(&alice, 1), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_quota_limit(&root, RCD_RESOURCE_QPS), 145);
	CU_ASSERT_EQUAL(charge(&root, 145), 0);
	rcd_quota_leave(&alice);
	CU_ASSERT_EQUAL(charge(&bob, 735), 0);
	CU_ASSERT_EQUAL(charge(&bob, 1), -ENOMEM);
	rcd_quota_leave(&bob);
	rcd_quota_leave(&root);
}

/* A total of one is had by somebody. */
static void
small_totals(void)
{
	struct rcd_quota_entry alice, bob;

	open_book(0, 0, 1);
	alice = join(ALICE);
	bob = join(BOB);
	CU_ASSERT_EQUAL(charge(&alice, 1), 0);
	CU_ASSERT_EQUAL(charge(&bob, 1), -ENOMEM);
	rcd_quota_leave(&alice);
	CU_ASSERT_EQUAL(charge(&bob, 1), 0);
	rcd_quota_leave(&bob);
}

static void
a_context_moves(void)
{
	struct rcd_quota_entry alice, bob;

	open_book(0, 10, 0);
	alice = join(ALICE);
	bob = join(BOB);
	CU_ASSERT_EQUAL(charge(&alice, 8), 0);
	CU_ASSERT_EQUAL(charge(&bob, 8), 0);
	CU_ASSERT_EQUAL(rcd_quota_move(&alice, BOB), 0);
	CU_ASSERT_EQUAL(bob.user->used[RCD_RESOURCE_QPS], 16);
	CU_ASSERT_EQUAL(charge(&bob, 1), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_quota_move(&alice, BOB), 0);
	rcd_quota_leave(&alice);
	CU_ASSERT_EQUAL(charge(&bob, 2), 0);
	rcd_quota_leave(&bob);
	CU_ASSERT(LIST_EMPTY(&book.users));
}

/* A context's entry stands beside that of the connection which opened it, and goes another way. */
static void
a_context_beside(void)
{
	struct rcd_quota_entry alice, bob, context;

	open_book(10, 20, 0);
	alice = join(ALICE);
	bob = join(BOB);
	CU_ASSERT_EQUAL(charge(&alice, 8), 0);
	rcd_quota_join_beside(&context, &alice);
	CU_ASSERT_EQUAL(alice.user->clients, 1);
	CU_ASSERT_EQUAL(alice.user->others, 1);
	/* What the connection had before is the context's; its own limit is full of that. */
	rcd_quota_hand(&alice, &context, RCD_RESOURCE_QPS, 7);
	CU_ASSERT_EQUAL(alice.used[RCD_RESOURCE_QPS], 1);
	CU_ASSERT_EQUAL(context.used[RCD_RESOURCE_QPS], 7);
	CU_ASSERT_EQUAL(alice.user->used[RCD_RESOURCE_QPS], 8);
	CU_ASSERT_EQUAL(book.used[RCD_RESOURCE_QPS], 8);
	CU_ASSERT_EQUAL(charge(&context, 4), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&context, 3), 0);
	/* The connection goes, the context stays: the user is there for it, then another one. */
	rcd_quota_leave(&alice);
	CU_ASSERT_EQUAL(context.user->clients, 0);
	CU_ASSERT_EQUAL(rcd_quota_move(&context, BOB), 0);
	CU_ASSERT_PTR_EQUAL(context.user, bob.user);
	CU_ASSERT_EQUAL(bob.user->clients, 1);
	CU_ASSERT_EQUAL(bob.user->others, 1);
	CU_ASSERT_EQUAL(bob.user->used[RCD_RESOURCE_QPS], 10);
	CU_ASSERT_PTR_EQUAL(LIST_FIRST(&book.users), bob.user);
	CU_ASSERT_PTR_NULL(LIST_NEXT(bob.user, link));
	rcd_quota_leave(&bob);
	/* To the user that has it, which has nothing else. */
	CU_ASSERT_EQUAL(rcd_quota_move(&context, BOB), 0);
	CU_ASSERT_EQUAL(context.user->others, 1);
	rcd_quota_leave(&context);
	CU_ASSERT(LIST_EMPTY(&book.users));
	CU_ASSERT_EQUAL(book.used[RCD_RESOURCE_QPS], 0);
}

/* What outlives a session is its user's, who may have no more for that. */
static void
left_to_an_heir(void)
{
	struct rcd_quota_entry alice, heir;

	open_book(0, 10, 0);
	alice = join(ALICE);
	CU_ASSERT_EQUAL(charge(&alice, 8), 0);
	rcd_quota_bequeath(&alice, &heir, RCD_RESOURCE_QPS);
	rcd_quota_leave(&alice);
	alice = join(ALICE);
	CU_ASSERT_EQUAL(alice.user->clients, 1);
	CU_ASSERT(!rcd_quota_fits(&alice, RCD_RESOURCE_QPS, 3));
	CU_ASSERT_EQUAL(book.refusals, 0);
	CU_ASSERT_EQUAL(charge(&alice, 3), -ENOMEM);
	CU_ASSERT_EQUAL(book.refusals, 1);
	CU_ASSERT(rcd_quota_fits(&alice, RCD_RESOURCE_QPS, 2));
	rcd_quota_leave(&alice);
	CU_ASSERT_EQUAL(book.used[RCD_RESOURCE_QPS], 8);
	rcd_quota_uncharge(&heir, RCD_RESOURCE_QPS, 8);
	rcd_quota_leave(&heir);
	CU_ASSERT(LIST_EMPTY(&book.users));
}

/* What is there already is somebody's, whatever the limits say. */
static void
debts(void)
{
	struct rcd_quota_entry alice, heir, more;

	open_book(10, 10, 40);
	alice = join(ALICE);
	CU_ASSERT_EQUAL(charge(&alice, 2), 0);
	CU_ASSERT_EQUAL(rcd_quota_owe(&book, &heir, ALICE, RCD_RESOURCE_QPS, 30), 0);
	CU_ASSERT_PTR_EQUAL(heir.user, alice.user);
	CU_ASSERT_EQUAL(alice.user->clients, 1);
	CU_ASSERT_EQUAL(alice.user->others, 1);
	CU_ASSERT_EQUAL(alice.user->used[RCD_RESOURCE_QPS], 32);
	CU_ASSERT_EQUAL(charge(&alice, 1), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_quota_over(&book, RCD_RESOURCE_QPS), 0);
	/* Of a user who has no session. */
	CU_ASSERT_EQUAL(rcd_quota_owe(&book, &more, BOB, RCD_RESOURCE_QPS, 13), 0);
	CU_ASSERT_EQUAL(more.user->clients, 0);
	CU_ASSERT_EQUAL(rcd_quota_over(&book, RCD_RESOURCE_QPS), 5);
	rcd_quota_leave(&alice);
	CU_ASSERT_EQUAL(rcd_quota_over(&book, RCD_RESOURCE_QPS), 3);
	rcd_quota_uncharge(&heir, RCD_RESOURCE_QPS, 30);
	CU_ASSERT_EQUAL(rcd_quota_over(&book, RCD_RESOURCE_QPS), 0);
	rcd_quota_leave(&heir);
	rcd_quota_leave(&more);
	CU_ASSERT(LIST_EMPTY(&book.users));
	CU_ASSERT_EQUAL(book.used[RCD_RESOURCE_QPS], 0);
}

static void
more_debts(void)
{
	/* A quarter of the total and 320 may be owed, and of the total root has a sixteenth. */
	static const struct {
		uint64_t total, used, owed;
		bool may;
	} table[] = {
		{ 1600, 0, 0, true },
		{ 1600, 0, 719, true },
		{ 1600, 0, 720, false },
		{ 1600, 1500, 0, true },
		{ 1600, 1501, 0, false },
		{ 1600, 1600, 719, false },
		{ 8, 0, 321, true },
		{ 8, 0, 322, false },
		{ 8, 8, 0, true }, /* too few for a part of them */
		{ 8, 9, 0, false },
		{ 0, UINT64_MAX, UINT64_MAX, true },
		{ UINT64_MAX, UINT64_MAX, 0, false },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct rcd_quota_entry entry;

		open_book(0, 0, table[i].total);
		CU_ASSERT_EQUAL(
			rcd_quota_owe(&book, &entry, ALICE, RCD_RESOURCE_QPS, table[i].used), 0);
		CU_ASSERT_EQUAL(
			rcd_quota_may_owe(&book, RCD_RESOURCE_QPS, table[i].owed), table[i].may);
		rcd_quota_leave(&entry);
	}
}

static void
edges_of_64_bits(void)
{
	struct rcd_quota_entry entry;

	open_book(0, 0, 0);
	entry = join(ALICE);
	CU_ASSERT_EQUAL(charge(&entry, UINT64_MAX), 0);
	CU_ASSERT_EQUAL(charge(&entry, 1), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&entry, UINT64_MAX), -ENOMEM);
	rcd_quota_uncharge(&entry, RCD_RESOURCE_QPS, 1);
	CU_ASSERT_EQUAL(charge(&entry, 2), -ENOMEM);
	CU_ASSERT_EQUAL(charge(&entry, 1), 0);
	rcd_quota_leave(&entry);
	open_book(0, UINT64_MAX, UINT64_MAX);
	entry = join(ROOT);
	CU_ASSERT_EQUAL(charge(&entry, UINT64_MAX - UINT64_MAX / 4), 0);
	CU_ASSERT_EQUAL(charge(&entry, UINT64_MAX / 2), -ENOMEM);
	rcd_quota_leave(&entry);
}

static void
random_charges(void)
{
	struct rcd_quota_entry entries[8];
	uint64_t sum = 0;

	srand(7);
	open_book(100, 250, 400);
	for (uid_t i = 0; i < 8; i++)
		entries[i] = join(i % 3);
	for (int i = 0; i < 100000; i++) {
		struct rcd_quota_entry *entry = &entries[rand() % 8];
		uint64_t amount = (uint64_t)rand() % 20;

		if (rand() % 2 == 0) {
			sum += charge(entry, amount) == 0 ? amount : 0;
		} else if (entry->used[RCD_RESOURCE_QPS] >= amount) {
			rcd_quota_uncharge(entry, RCD_RESOURCE_QPS, amount);
			sum -= amount;
		}
		CU_ASSERT(sum == book.used[RCD_RESOURCE_QPS] && sum <= 400);
		CU_ASSERT(entry->used[RCD_RESOURCE_QPS] <= 100);
		CU_ASSERT(entry->user->used[RCD_RESOURCE_QPS] <= 250);
	}
	for (int i = 0; i < 8; i++)
		rcd_quota_leave(&entries[i]);
	CU_ASSERT(LIST_EMPTY(&book.users));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S17 limits of a session and of a user", limits },
		{ "S17 shares of a total", shares },
		RCD_TEST(small_totals),
		RCD_TEST(a_context_moves),
		RCD_TEST(a_context_beside),
		RCD_TEST(left_to_an_heir),
		RCD_TEST(debts),
		RCD_TEST(more_debts),
		RCD_TEST(edges_of_64_bits),
		RCD_TEST(random_charges),
	};

	return rcd_tap_run("quota", tests, sizeof(tests) / sizeof(tests[0]));
}
