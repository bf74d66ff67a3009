/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: accounts and users have a part of the table of neighbours each, whoever comes and goes, and
 * nobody keeps others out or takes from them what they use. Method: users who ask for as many as
 * they get, in a table with a clock and a link of the test's own.
 */
#include <errno.h>

#include "neigh_link.h"
#include "rcd_tap.h"

#define NOT_LATER 160 /**< seconds, until what is not used is forgotten */

/* What an account leaves is charged to its user until it is forgotten, or another one's. */
static void
what_is_left_is_charged(void)
{
	struct guest carol;
	uint32_t hop;

	link_open(false, true);
	link_join(&carol, 1000);
	CU_ASSERT_EQUAL(link_ask_for(&alice, LINK_PEER, &hop), -EAGAIN);
	link_learn(LINK_PEER, link_peer_mac);
	CU_ASSERT_EQUAL(link_ask_for(&alice, 1000, &hop), -EAGAIN);
	rcd_neigh_hand(link_neighs, &alice.quota, &carol.quota);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_NEIGHBOURS], 0);
	CU_ASSERT_EQUAL(carol.quota.used[RCD_RESOURCE_NEIGHBOURS], 2);
	link_leave(&carol);
	CU_ASSERT_EQUAL(rcd_neigh_left(link_neighs), 2);
	CU_ASSERT_EQUAL(alice.quota.user->used[RCD_RESOURCE_NEIGHBOURS], 2);
	CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 2);
	/* One that somebody else asks for is his. */
	CU_ASSERT_EQUAL(link_ask_for(&bob, LINK_PEER, &hop), 0);
	CU_ASSERT_EQUAL(bob.quota.used[RCD_RESOURCE_NEIGHBOURS], 1);
	CU_ASSERT_EQUAL(rcd_neigh_left(link_neighs), 1);
	CU_ASSERT_EQUAL(alice.quota.user->used[RCD_RESOURCE_NEIGHBOURS], 1);
	rcd_waiter_cancel(&alice.waiter);
	link_pass(NOT_LATER);
	CU_ASSERT_EQUAL(rcd_neigh_left(link_neighs), 0);
	CU_ASSERT_EQUAL(link_book.used[RCD_RESOURCE_NEIGHBOURS], 0);
	link_close();
}

/* One user comes again and again, and asks for others each time; they answer or don't. */
static void
who_comes_and_goes_has_no_more(void)
{
	for (int answers = 0; answers < 2; answers++) {
		const uint32_t few = 20;
		uint32_t hop, next = 10000;

		link_open(false, true);
		link_answering = false;
		for (uint32_t i = 0; i < few; i++) {
			link_ask_for(&bob, 100 + i, &hop);
			link_learn(100 + i, link_peer_mac);
			CU_ASSERT_EQUAL(link_ask_for(&bob, 100 + i, &hop), 0);
			if (i < few / 2)
				rcd_hop_get(link_hops, hop);
		}
		for (uint32_t times = 0; times < 20; times++) {
			struct guest mallory;

			link_join(&mallory, 1000);
			for (uint32_t i = 0; i < LINK_QUOTA; i++) {
				/* What was left goes for it: nobody locks himself out. */
				CU_ASSERT_EQUAL(link_ask_for(&mallory, next, &hop), -EAGAIN);
				if (answers)
					link_learn(next, link_peer_mac);
				next++;
			}
			link_leave(&mallory);
			CU_ASSERT(alice.quota.user->used[RCD_RESOURCE_NEIGHBOURS] <=
				RCD_NEIGHS_MAX * 3 / 4);
			link_tick();
		}
		CU_ASSERT(rcd_neigh_count(link_neighs) > RCD_NEIGHS_MAX / 2);
		/* The other one has what he had, and gets what he asks for. */
		CU_ASSERT_EQUAL(link_known(100, few), few);
		for (uint32_t i = 0; i < LINK_QUOTA - few; i++)
			CU_ASSERT_EQUAL(link_ask_for(&bob, 1000 + i, &hop), -EAGAIN);
		CU_ASSERT_EQUAL(link_known(100, few), few);
		link_put(100, few / 2);
		link_close();
	}
}

/* The table is full, of what is used and of what nobody is charged for, used or not. */
static void
used_go_for_nobody_else(void)
{
	const uint32_t used = 300, others = RCD_NEIGHS_MAX;

	for (int all_used = 0; all_used < 2; all_used++) {
		uint32_t hop;

		link_open(false, true);
		for (uint32_t i = 0; i < used; i++) {
			link_ask_for(&alice, 1000 + i, &hop);
			link_learn(1000 + i, link_peer_mac);
			CU_ASSERT_EQUAL(link_ask_for(&alice, 1000 + i, &hop), 0);
			rcd_hop_get(link_hops, hop);
		}
		for (uint32_t i = 0; i < others; i++) {
			CU_ASSERT_EQUAL(link_ask(10000 + i), -EAGAIN);
			link_learn(10000 + i, link_peer_mac);
			if (all_used && link_ask_for(NULL, 10000 + i, &hop) == 0)
				rcd_hop_get(link_hops, hop);
		}
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), RCD_NEIGHS_MAX);
		CU_ASSERT_EQUAL(link_known(1000, used), used);
		for (uint32_t i = 0; i < LINK_QUOTA; i++) {
			CU_ASSERT_EQUAL(link_ask_for(&bob, 30000 + i, &hop), -EAGAIN);
			link_learn(30000 + i, link_peer_mac);
			if (all_used && link_ask_for(&bob, 30000 + i, &hop) == 0)
				rcd_hop_get(link_hops, hop);
		}
		CU_ASSERT_EQUAL(link_known(1000, used), used);
		CU_ASSERT_EQUAL(link_known(30000, LINK_QUOTA), LINK_QUOTA);
		link_put(1000, used);
		if (all_used) {
			link_put(10000, others);
			link_put(30000, LINK_QUOTA);
		}
		link_close();
	}
}

/* One account has so many, those that don't answer go first, and those that are used last. */
static void
accounts_are_bounded(void)
{
	uint32_t hop, used, unused;

	link_open(false, true);
	link_answering = false;
	for (uint32_t i = 0; i < LINK_QUOTA; i++)
		CU_ASSERT_EQUAL(link_ask_for(&alice, 1000 + i, &hop), -EAGAIN);
	rcd_waiter_cancel(&alice.waiter);
	CU_ASSERT_EQUAL(link_ask_for(&alice, LINK_PEER, &hop), -ENOMEM);
	CU_ASSERT_FALSE(rcd_waiter_waits(&alice.waiter));
	CU_ASSERT_EQUAL(link_ask_for(&bob, LINK_PEER, &hop), -EAGAIN);
	/* The first is used, the second is not, and a third does not answer. */
	link_learn(1000, link_peer_mac);
	link_learn(1001, link_peer_mac);
	CU_ASSERT_EQUAL(link_ask_for(&alice, 1000, &used), 0);
	CU_ASSERT_EQUAL(link_ask_for(&alice, 1001, &unused), 0);
	rcd_hop_get(link_hops, used);
	CU_ASSERT_EQUAL(link_ask_for(&alice, 11, &hop), -EAGAIN);
	CU_ASSERT_PTR_NOT_NULL(rcd_hop_entry(link_hops, used));
	CU_ASSERT_EQUAL(link_ask_for(&alice, 12, &hop), -EAGAIN);
	CU_ASSERT_EQUAL(link_ask_for(&alice, 13, &hop), -ENOMEM);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_NEIGHBOURS], LINK_QUOTA);
	/* It is the one that was used that went last, and its vector has its MAC yet. */
	CU_ASSERT(link_shows(used, link_peer_mac));
	CU_ASSERT_EQUAL(rcd_hop_users(link_hops, used), 1);
	CU_ASSERT_PTR_NULL(rcd_hop_entry(link_hops, used));
	rcd_hop_put(link_hops, used);
	rcd_waiter_cancel(&alice.waiter);
	rcd_waiter_cancel(&bob.waiter);
	link_close();
}

/* All places taken by used ones of others: who comes has one all the same. */
static void
nobody_is_kept_out(void)
{
	static uint32_t places[RCD_NEIGHS_MAX];
	uint32_t hop;

	link_open(false, true);
	for (uint32_t i = 0; i < RCD_NEIGHS_MAX; i++) {
		CU_ASSERT_EQUAL(link_ask(1000 + i), -EAGAIN);
		link_learn(1000 + i, link_peer_mac);
		CU_ASSERT_EQUAL(link_ask_for(NULL, 1000 + i, &places[i]), 0);
		rcd_hop_get(link_hops, places[i]);
	}
	CU_ASSERT_EQUAL(link_ask_for(&alice, LINK_PEER, &hop), -EAGAIN);
	CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), RCD_NEIGHS_MAX);
	CU_ASSERT_EQUAL(rcd_hops_count(link_hops), RCD_NEIGHS_MAX + 1);
	link_learn(LINK_PEER, link_peer_mac);
	CU_ASSERT_EQUAL(link_ask_for(&alice, LINK_PEER, &hop), 0);
	for (uint32_t i = 0; i < RCD_NEIGHS_MAX; i++) {
		CU_ASSERT(link_shows(places[i], link_peer_mac));
		rcd_hop_put(link_hops, places[i]);
	}
	rcd_waiter_cancel(&alice.waiter);
	link_close();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S10 accounts are bounded", accounts_are_bounded },
		{ "S10 nobody is kept out by neighbours that are used", nobody_is_kept_out },
		{ "S10 who comes and goes has no more than who stays",
			who_comes_and_goes_has_no_more },
		{ "S10 what is used goes for nobody else", used_go_for_nobody_else },
		RCD_TEST(what_is_left_is_charged),
	};

	return rcd_tap_run("neigh_table", tests, sizeof(tests) / sizeof(tests[0]));
}
