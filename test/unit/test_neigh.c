/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a neighbour is asked for, kept and forgotten as it is answered and used; who waits is
 * always told, once; a MAC that changes is at its place; and whoever is asked for, what is asked
 * stays bounded, and nobody enters the table unasked. Method: the table with a clock and a link of
 * the test's own, over IPv4 and over IPv6, by ourselves and by a kernel.
 */
#include <errno.h>

#include "neigh_link.h"
#include "rcd_tap.h"

#define NOT_EARLY 100
#define NOT_LATER 160
#define LONG      1000
#define MANY      (3 * RCD_NEIGHS_MAX)

/* Ask for the peer, which answers. @return its place */
static uint32_t
meet(void)
{
	uint32_t hop = RCD_HOP_NONE;

	CU_ASSERT_EQUAL(link_ask(LINK_PEER), -EAGAIN);
	link_learn(LINK_PEER, link_peer_mac);
	CU_ASSERT_EQUAL(link_ask_for(NULL, LINK_PEER, &hop), 0);
	CU_ASSERT(link_shows(hop, link_peer_mac));
	CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 1);
	return hop;
}

/* More than there is room for, none of whom answers; and the peer, who does. */
static void
nobody_answers(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t most = 0;

		link_open(v6, true);
		for (uint32_t i = 0; i < MANY; i++) {
			link_ask(1000 + i);
			if (rcd_neigh_count(link_neighs) > most)
				most = rcd_neigh_count(link_neighs);
		}
		CU_ASSERT(most > 1000 && most <= RCD_NEIGHS_MAX);
		link_answering = false;
		CU_ASSERT_EQUAL(link_ask(LINK_PEER), -EAGAIN);
		link_answering = true;
		link_round_ns = RCD_NEIGH_TICK_NS;
		/* 25 questions for each, 64 in a round: and then they are no more. */
		link_pass(NOT_LATER);
		CU_ASSERT(link_asked <= MANY + 1 + 25 * RCD_NEIGHS_MAX + 10);
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 0);
		link_close();
	}
}

/* Whoever tells of himself unasked, or of another VLAN, is not remembered. */
static void
nobody_asked(void)
{
	static const uint8_t bad[][RCD_MAC_LEN] = { { 0 }, { 3, 1, 1, 1, 1, 1 },
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };

	for (int v6 = 0; v6 < 2; v6++) {
		struct rcd_hop_key tagged;
		uint32_t hop;

		link_open(v6, true);
		hop = meet();
		tagged = link_addr(LINK_PEER);
		tagged.vlan_id = 7;
		for (uint32_t i = 0; i < MANY; i++) {
			link_learn(1000 + i, link_peer_mac);
			rcd_neigh_learn(link_neighs, &tagged, link_new_mac);
		}
		/* Nor is what no station has for a MAC. */
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			link_learn(LINK_PEER, bad[i]);
		CU_ASSERT_EQUAL(link_ask(LINK_PEER), 0);
		CU_ASSERT(link_shows(hop, link_peer_mac));
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 1);
		CU_ASSERT_EQUAL(rcd_hops_count(link_hops), 1);
		link_close();
	}
}

static void
unused_is_forgotten(void)
{
	for (int i = 0; i < 4; i++) {
		struct rcd_hop_key peer;
		uint32_t hop;

		link_open(i & 1, i & 2);
		peer = link_addr(LINK_PEER);
		hop = meet();
		CU_ASSERT(rcd_neigh_wanted(link_neighs, &peer));
		link_pass(NOT_EARLY);
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 1);
		link_pass(NOT_LATER - NOT_EARLY);
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 0);
		CU_ASSERT_FALSE(rcd_neigh_wanted(link_neighs, &peer));
		CU_ASSERT_EQUAL(rcd_neigh_next(link_neighs), UINT64_MAX);
		/* It was asked whether it is still there, now and then and no more; or never. */
		CU_ASSERT(i & 2 ? link_asked >= 2 && link_asked <= 8 : link_asked == 1);
		/* One that vectors have stays. */
		hop = meet();
		rcd_hop_get(link_hops, hop);
		link_pass(LONG);
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 1);
		CU_ASSERT_EQUAL(link_ask(LINK_PEER), 0);
		rcd_hop_put(link_hops, hop);
		link_pass(NOT_LATER);
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 0);
		link_close();
	}
}

static void
who_is_gone_is_forgotten(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t before, hop;

		link_open(v6, true);
		hop = meet();
		rcd_hop_get(link_hops, hop);
		link_answering = false;
		before = link_asked;
		/* In use: asked for every ten seconds until it comes back. */
		link_pass(LONG);
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 1);
		CU_ASSERT(
			link_asked - before >= LONG / 20 && link_asked - before <= LONG / 10 + 10);
		CU_ASSERT(link_shows(hop, link_peer_mac));
		CU_ASSERT_NOT_EQUAL(link_ask(LINK_PEER), 0);
		link_answering = true;
		link_pass(20);
		CU_ASSERT_EQUAL(link_ask(LINK_PEER), 0);
		/* Not in use: forgotten long before one that is there. */
		rcd_hop_put(link_hops, hop);
		link_answering = false;
		link_now_ns += NOT_LATER * SECOND;
		CU_ASSERT_EQUAL(link_ask(LINK_PEER), 0);
		link_pass(NOT_EARLY / 2);
		CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 0);
		link_close();
	}
}

/* What a kernel has lost is kept by those that have it, until it comes back, or they go. */
static void
a_kernel_loses_it(void)
{
	struct rcd_hop_key peer;
	uint32_t before, hop;

	link_open(false, false);
	peer = link_addr(LINK_PEER);
	hop = meet();
	rcd_neigh_forget(link_neighs, &peer);
	CU_ASSERT_EQUAL(rcd_neigh_known(link_neighs, &peer), RCD_HOP_NONE);
	link_pass(1);
	CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 0);
	hop = meet();
	rcd_hop_get(link_hops, hop);
	rcd_neigh_forget(link_neighs, &peer);
	link_answering = false;
	before = link_asked;
	link_pass(LONG);
	CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 1);
	CU_ASSERT(link_shows(hop, link_peer_mac));
	/* It is asked for now and then: nobody else may, and the kernel asks nobody by itself. */
	CU_ASSERT(link_asked - before >= LONG / 20 && link_asked - before <= LONG / 10 + 10);
	link_answering = true;
	link_pass(20);
	CU_ASSERT_EQUAL(rcd_neigh_known(link_neighs, &peer), hop);
	link_learn(LINK_PEER, link_new_mac);
	CU_ASSERT(link_shows(hop, link_new_mac));
	CU_ASSERT_EQUAL(rcd_neigh_known(link_neighs, &peer), hop);
	rcd_neigh_forget(link_neighs, &peer);
	rcd_hop_put(link_hops, hop);
	link_pass(20);
	CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 0);
	/* One that it knows is there when the question is done, and nobody waits. */
	link_at_once = true;
	CU_ASSERT_EQUAL(link_ask_for(&alice, LINK_PEER, &hop), 0);
	CU_ASSERT_FALSE(rcd_waiter_waits(&alice.waiter));
	link_close();
}

/* On nobody's account. */
static void
wait_for(uint32_t number, struct rcd_waiter *waiter)
{
	struct rcd_neigh_target target = { .key = link_addr(number), .ours = true };
	uint32_t hop;

	CU_ASSERT_EQUAL(rcd_neigh_resolve(link_neighs, &target, NULL, waiter, &hop), -EAGAIN);
}

static void
who_waits_is_told(void)
{
	static const struct {
		const char *what;
		int then; /**< of who looks again */
	} rows[] = {
		{ "learned", 0 },
		{ "failed", -ETIMEDOUT },
		{ "flushed", -EAGAIN },
		{ "evicted", -EAGAIN },
	};

	static struct rcd_waiter crowd[RCD_NEIGHS_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t hop;

		link_open(false, true);
		link_answering = false;
		CU_ASSERT_EQUAL(link_ask_for(&alice, LINK_PEER, &hop), -EAGAIN);
		CU_ASSERT_EQUAL(link_ask_for(&bob, LINK_PEER, &hop), -EAGAIN);
		CU_ASSERT_FALSE(rcd_neigh_call(link_neighs, 9));
		CU_ASSERT_EQUAL(alice.told + bob.told, 0);
		switch (i) {
		case 0:
			link_learn(LINK_PEER, link_peer_mac);
			break;
		case 1:
			link_round_ns = RCD_NEIGH_TICK_NS;
			while (!rcd_neigh_call(link_neighs, 0) && link_now_ns < 5 * SECOND)
				link_tick();
			break;
		case 2:
			rcd_neigh_flush(link_neighs, 1);
			CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 0);
			break;
		default:
			/* Those that nobody waits for would go before it. */
			for (uint32_t k = 0; k < RCD_NEIGHS_MAX; k++)
				wait_for(1000 + k, &crowd[k]);
			break;
		}
		/* Those who have each other's go take turns by ticks, and not without end. */
		if (i >= 2) {
			CU_ASSERT_FALSE(rcd_neigh_call(link_neighs, 9));
			CU_ASSERT_EQUAL(alice.told, 0);
			CU_ASSERT(rcd_neigh_next(link_neighs) <= link_now_ns + RCD_NEIGH_TICK_NS);
			link_tick();
		}
		/* A few at a time, the first first, and none of them again. */
		CU_ASSERT(rcd_neigh_call(link_neighs, 1));
		CU_ASSERT_EQUAL(alice.told, 1);
		CU_ASSERT_EQUAL(bob.told, 0);
		CU_ASSERT_FALSE(rcd_neigh_call(link_neighs, 1));
		CU_ASSERT_EQUAL(bob.told, 1);
		CU_ASSERT_EQUAL(link_ask_for(&alice, LINK_PEER, &hop), rows[i].then);
		CU_ASSERT_EQUAL(rcd_waiter_waits(&alice.waiter), rows[i].then == -EAGAIN);
		rcd_waiter_cancel(&alice.waiter);
		link_learn(LINK_PEER, link_peer_mac);
		rcd_neigh_call(link_neighs, 9);
		CU_ASSERT_EQUAL(alice.told + bob.told, 2);
		link_close();
	}
}

/* Who goes is not told, wherever it waits by then. */
static void
who_goes_is_not_told(void)
{
	uint32_t hop;

	link_open(false, true);
	link_answering = false;
	CU_ASSERT_EQUAL(link_ask_for(&alice, LINK_PEER, &hop), -EAGAIN);
	CU_ASSERT_EQUAL(link_ask_for(&bob, LINK_PEER, &hop), -EAGAIN);
	rcd_waiter_cancel(&alice.waiter);
	link_learn(LINK_PEER, link_peer_mac);
	rcd_waiter_cancel(&bob.waiter);
	CU_ASSERT_FALSE(rcd_neigh_call(link_neighs, 9));
	CU_ASSERT_EQUAL(alice.told + bob.told, 0);
	link_close();
}

static void
a_new_mac_is_at_its_place(void)
{
	uint32_t before, hop, again;

	link_open(false, true);
	hop = meet();
	rcd_hop_get(link_hops, hop);
	link_learn(LINK_PEER, link_new_mac);
	CU_ASSERT(link_shows(hop, link_new_mac));
	/* Its entry has to go; the place stays, and the next entry finds it with its users. */
	rcd_neigh_flush(link_neighs, 1);
	CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 0);
	CU_ASSERT(link_shows(hop, link_new_mac));
	link_learn(LINK_PEER, link_peer_mac);
	CU_ASSERT(link_shows(hop, link_new_mac));
	CU_ASSERT_EQUAL(link_ask(LINK_PEER), -EAGAIN);
	CU_ASSERT(link_shows(hop, link_new_mac));
	link_learn(LINK_PEER, link_peer_mac);
	CU_ASSERT(link_shows(hop, link_peer_mac));
	CU_ASSERT_EQUAL(link_ask_for(NULL, LINK_PEER, &again), 0);
	CU_ASSERT_EQUAL(again, hop);
	/* So it is in use: confirmed, and not forgotten. */
	before = link_asked;
	link_pass(LONG);
	CU_ASSERT_EQUAL(rcd_neigh_count(link_neighs), 1);
	CU_ASSERT(link_asked - before >= LONG / 40);
	rcd_hop_put(link_hops, hop);
	link_close();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S10 many that don't answer are bounded, and go", nobody_answers },
		{ "S10 who is not asked for is not remembered", nobody_asked },
		{ "S10 neighbours that are not used are forgotten", unused_is_forgotten },
		{ "S10 neighbours that are gone are forgotten", who_is_gone_is_forgotten },
		{ "T6 a new MAC is at its place", a_new_mac_is_at_its_place },
		RCD_TEST(a_kernel_loses_it),
		RCD_TEST(who_waits_is_told),
		RCD_TEST(who_goes_is_not_told),
	};

	return rcd_tap_run("neigh", tests, sizeof(tests) / sizeof(tests[0]));
}
