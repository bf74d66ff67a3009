/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a neighbour is asked for, kept and forgotten as it is answered and used; who waits is
 * always told, once; a MAC that changes is at its place; and whoever is asked for, the table and
 * what it asks stay bounded, nobody enters it unasked, and nobody keeps others out. Method: the
 * table with a clock and a link of the test's own, over IPv4 and over IPv6, by ourselves and by a
 * kernel.
 */
#include "rcd_neigh.h"

#include <errno.h>

#include "rcd_bits.h"
#include "rcd_tap.h"

#define SECOND    UINT64_C(1000000000)
#define TICK      RCD_NEIGH_TICK_NS
#define TICK_ASKS 64 /**< at most */
#define NOT_EARLY 100
#define NOT_LATER 160
#define LONG      1000
#define PEER      1
#define MANY      (3 * RCD_NEIGHS_MAX)
#define QUOTA     512
#define HOPS      (RCD_NEIGHS_MAX + 1000)

static uint64_t now;
static uint32_t asked; /**< questions to the link */
static bool answering; /**< the peer answers them */
static bool at_once;   /**< ...before the question is done, as a kernel does */
static uint64_t round_ns;
static bool six;  /**< over IPv6 */
static bool ours; /**< the link is asked by ourselves */
static struct rcd_hops *hops;
static struct rcd_neighs *neighs;
static struct rcd_quota_book book;

static const uint8_t peer_mac[RCD_MAC_LEN] = { 2, 1, 1, 1, 1, 1 };
static const uint8_t new_mac[RCD_MAC_LEN] = { 2, 1, 1, 1, 1, 2 };

struct guest {
	struct rcd_waiter waiter;
	struct rcd_quota_entry quota;
	uint32_t told;
};

static struct guest alice, bob;

static uint64_t
clock_ns(void)
{
	return now;
}

/* An address of the link. */
static struct rcd_hop_key
addr(uint32_t number)
{
	struct rcd_hop_key key = { .dev = 1, .gid = { { 0xfd, 0x78 } } };

	if (!six)
		key.gid = (struct rcd_gid){ { [10] = 0xff, [11] = 0xff, [12] = 10 } };
	key.gid.raw[13] = (uint8_t)(number >> 16);
	key.gid.raw[14] = (uint8_t)(number >> 8);
	key.gid.raw[15] = (uint8_t)number;
	return key;
}

static void
learn(uint32_t number, const uint8_t *mac)
{
	struct rcd_hop_key key = addr(number);

	rcd_neigh_learn(neighs, &key, mac);
}

static void
ask(void *arg, const struct rcd_neigh_target *target)
{
	struct rcd_hop_key peer = addr(PEER);

	CU_ASSERT_PTR_EQUAL(arg, &asked);
	CU_ASSERT_EQUAL(target->ours, ours);
	CU_ASSERT(rcd_neigh_wanted(neighs, &target->key));
	asked++;
	if (answering && at_once && memcmp(&target->key, &peer, sizeof(peer)) == 0)
		learn(PEER, peer_mac);
}

static void
told(struct rcd_waiter *waiter)
{
	RCD_OWNER(waiter, struct guest, waiter)->told++;
}

static void
join(struct guest *guest, uid_t uid)
{
	*guest = (struct guest){ .waiter.fn = told };
	CU_ASSERT_EQUAL_FATAL(rcd_quota_join(&book, &guest->quota, uid), 0);
}

static void
setup(bool by_v6, bool by_us)
{
	static const struct rcd_neigh_ops ops = { .now_ns = clock_ns, .ask = ask };
	static const uint64_t seed[2] = { 12345, 67890 };
	static const struct rcd_quota none;
	struct rcd_quota each = { .neighbours = QUOTA };
	struct rcd_neigh_conf conf = { .ops = &ops, .arg = &asked, .seed = seed };

	six = by_v6;
	ours = by_us;
	now = SECOND;
	asked = 0;
	answering = true;
	at_once = false;
	round_ns = SECOND / 10;
	hops = conf.hops = rcd_hops_create(HOPS, seed);
	CU_ASSERT_PTR_NOT_NULL_FATAL(hops);
	neighs = rcd_neighs_create(&conf);
	CU_ASSERT_PTR_NOT_NULL_FATAL(neighs);
	rcd_quota_open(&book, &each, &none, &none);
	join(&alice, 1000);
	join(&bob, 1001);
}

static void
teardown(void)
{
	rcd_neigh_disown(neighs, &alice.quota);
	rcd_neigh_disown(neighs, &bob.quota);
	CU_ASSERT_EQUAL(book.used[RCD_RESOURCE_NEIGHBOURS], 0);
	rcd_quota_leave(&alice.quota);
	rcd_quota_leave(&bob.quota);
	rcd_neighs_destroy(neighs);
	CU_ASSERT_EQUAL(rcd_hops_count(hops), 0);
	rcd_hops_destroy(hops);
}

static int
look_for(struct guest *guest, uint32_t number, uint32_t *hop)
{
	struct rcd_neigh_target target = { .key = addr(number), .ours = ours };

	return rcd_neigh_resolve(neighs, &target, guest != NULL ? &guest->quota : NULL,
		guest != NULL ? &guest->waiter : NULL, hop);
}

static int
look(uint32_t number)
{
	uint32_t hop;

	return look_for(NULL, number, &hop);
}

static bool
shows(uint32_t hop, const uint8_t *mac)
{
	uint8_t shown[RCD_MAC_LEN];

	rcd_hop_mac(rcd_hop_word(rcd_hops_macs(hops), hop), shown);
	return memcmp(shown, mac, RCD_MAC_LEN) == 0;
}

/* One round of the control thread. A peer that answers does so at once. */
static void
tick(void)
{
	uint32_t before = asked;

	now += round_ns;
	rcd_neigh_tick(neighs, now);
	CU_ASSERT(asked - before <= TICK_ASKS);
	if (answering && asked != before)
		learn(PEER, peer_mac);
}

static void
pass(uint32_t seconds)
{
	for (uint64_t end = now + seconds * SECOND; now < end;)
		tick();
}

/* Ask for the peer, which answers. @return its place */
static uint32_t
meet(void)
{
	uint32_t hop = RCD_HOP_NONE;

	CU_ASSERT_EQUAL(look(PEER), -EAGAIN);
	learn(PEER, peer_mac);
	CU_ASSERT_EQUAL(look_for(NULL, PEER, &hop), 0);
	CU_ASSERT(shows(hop, peer_mac));
	CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 1);
	return hop;
}

/* More than there is room for, none of whom answers; and the peer, who does. */
static void
nobody_answers(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t most = 0;

		setup(v6, true);
		for (uint32_t i = 0; i < MANY; i++) {
			look(1000 + i);
			if (rcd_neigh_count(neighs) > most)
				most = rcd_neigh_count(neighs);
		}
		CU_ASSERT(most > 1000 && most <= RCD_NEIGHS_MAX);
		answering = false;
		CU_ASSERT_EQUAL(look(PEER), -EAGAIN);
		answering = true;
		round_ns = TICK;
		/* 25 questions for each, 64 in a round: and then they are no more. */
		pass(NOT_LATER);
		CU_ASSERT(asked <= MANY + 1 + 25 * RCD_NEIGHS_MAX + 10);
		CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 0);
		teardown();
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

		setup(v6, true);
		hop = meet();
		tagged = addr(PEER);
		tagged.vlan_id = 7;
		for (uint32_t i = 0; i < MANY; i++) {
			learn(1000 + i, peer_mac);
			rcd_neigh_learn(neighs, &tagged, new_mac);
		}
		/* Nor is what no station has for a MAC. */
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			learn(PEER, bad[i]);
		CU_ASSERT_EQUAL(look(PEER), 0);
		CU_ASSERT(shows(hop, peer_mac));
		CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 1);
		CU_ASSERT_EQUAL(rcd_hops_count(hops), 1);
		teardown();
	}
}

static void
unused_is_forgotten(void)
{
	for (int i = 0; i < 4; i++) {
		struct rcd_hop_key peer;
		uint32_t hop;

		setup(i & 1, i & 2);
		peer = addr(PEER);
		hop = meet();
		CU_ASSERT(rcd_neigh_wanted(neighs, &peer));
		pass(NOT_EARLY);
		CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 1);
		pass(NOT_LATER - NOT_EARLY);
		CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 0);
		CU_ASSERT_FALSE(rcd_neigh_wanted(neighs, &peer));
		CU_ASSERT_EQUAL(rcd_neigh_next(neighs), UINT64_MAX);
		/* It was asked whether it is still there, now and then and no more; or never. */
		CU_ASSERT(ours ? asked >= 2 && asked <= 8 : asked == 1);
		/* One that vectors have stays. */
		hop = meet();
		rcd_hop_get(hops, hop);
		pass(LONG);
		CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 1);
		CU_ASSERT_EQUAL(look(PEER), 0);
		rcd_hop_put(hops, hop);
		pass(NOT_LATER);
		CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 0);
		teardown();
	}
}

static void
who_is_gone_is_forgotten(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t before, hop;

		setup(v6, true);
		hop = meet();
		rcd_hop_get(hops, hop);
		answering = false;
		before = asked;
		/* In use: asked for every ten seconds until it comes back. */
		pass(LONG);
		CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 1);
		CU_ASSERT(asked - before >= LONG / 20 && asked - before <= LONG / 10 + 10);
		CU_ASSERT(shows(hop, peer_mac));
		CU_ASSERT_NOT_EQUAL(look(PEER), 0);
		answering = true;
		pass(20);
		CU_ASSERT_EQUAL(look(PEER), 0);
		/* Not in use: forgotten long before one that is there. */
		rcd_hop_put(hops, hop);
		answering = false;
		now += NOT_LATER * SECOND;
		CU_ASSERT_EQUAL(look(PEER), 0);
		pass(NOT_EARLY / 2);
		CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 0);
		teardown();
	}
}

/* What a kernel has lost is kept by those that have it, until it comes back, or they go. */
static void
a_kernel_loses_it(void)
{
	struct rcd_hop_key peer;
	uint32_t hop;

	setup(false, false);
	peer = addr(PEER);
	hop = meet();
	rcd_neigh_forget(neighs, &peer);
	CU_ASSERT_EQUAL(rcd_neigh_known(neighs, &peer), RCD_HOP_NONE);
	pass(1);
	CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 0);
	hop = meet();
	rcd_hop_get(hops, hop);
	rcd_neigh_forget(neighs, &peer);
	pass(LONG);
	CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 1);
	CU_ASSERT(shows(hop, peer_mac));
	learn(PEER, new_mac);
	CU_ASSERT(shows(hop, new_mac));
	CU_ASSERT_EQUAL(rcd_neigh_known(neighs, &peer), hop);
	rcd_neigh_forget(neighs, &peer);
	rcd_hop_put(hops, hop);
	pass(20);
	CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 0);
	/* One that it knows is there when the question is done, and nobody waits. */
	at_once = true;
	CU_ASSERT_EQUAL(look_for(&alice, PEER, &hop), 0);
	CU_ASSERT_FALSE(rcd_waiter_waits(&alice.waiter));
	teardown();
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

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t hop;

		setup(false, true);
		answering = false;
		CU_ASSERT_EQUAL(look_for(&alice, PEER, &hop), -EAGAIN);
		CU_ASSERT_EQUAL(look_for(&bob, PEER, &hop), -EAGAIN);
		CU_ASSERT_FALSE(rcd_neigh_call(neighs, 9));
		CU_ASSERT_EQUAL(alice.told + bob.told, 0);
		switch (i) {
		case 0:
			learn(PEER, peer_mac);
			break;
		case 1:
			round_ns = TICK;
			while (!rcd_neigh_call(neighs, 0) && now < 5 * SECOND)
				tick();
			break;
		case 2:
			rcd_neigh_flush(neighs, 1);
			CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 0);
			break;
		default:
			for (uint32_t k = 0; k < RCD_NEIGHS_MAX; k++)
				look(1000 + k);
			break;
		}
		/* Those who have each other's go take turns by ticks, and not without end. */
		if (i >= 2) {
			CU_ASSERT_FALSE(rcd_neigh_call(neighs, 9));
			CU_ASSERT_EQUAL(alice.told, 0);
			CU_ASSERT(rcd_neigh_next(neighs) <= now + TICK);
			tick();
		}
		/* A few at a time, the first first, and none of them again. */
		CU_ASSERT(rcd_neigh_call(neighs, 1));
		CU_ASSERT_EQUAL(alice.told, 1);
		CU_ASSERT_EQUAL(bob.told, 0);
		CU_ASSERT_FALSE(rcd_neigh_call(neighs, 1));
		CU_ASSERT_EQUAL(bob.told, 1);
		CU_ASSERT_EQUAL(look_for(&alice, PEER, &hop), rows[i].then);
		CU_ASSERT_EQUAL(rcd_waiter_waits(&alice.waiter), rows[i].then == -EAGAIN);
		rcd_waiter_cancel(&alice.waiter);
		learn(PEER, peer_mac);
		rcd_neigh_call(neighs, 9);
		CU_ASSERT_EQUAL(alice.told + bob.told, 2);
		teardown();
	}
}

/* Who goes is not told, wherever it waits by then. */
static void
who_goes_is_not_told(void)
{
	uint32_t hop;

	setup(false, true);
	answering = false;
	CU_ASSERT_EQUAL(look_for(&alice, PEER, &hop), -EAGAIN);
	CU_ASSERT_EQUAL(look_for(&bob, PEER, &hop), -EAGAIN);
	rcd_waiter_cancel(&alice.waiter);
	learn(PEER, peer_mac);
	rcd_waiter_cancel(&bob.waiter);
	CU_ASSERT_FALSE(rcd_neigh_call(neighs, 9));
	CU_ASSERT_EQUAL(alice.told + bob.told, 0);
	/* One that ends leaves the neighbour to nobody's account. */
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_NEIGHBOURS], 1);
	rcd_neigh_disown(neighs, &alice.quota);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_NEIGHBOURS], 0);
	CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 1);
	teardown();
}

static void
a_new_mac_is_at_its_place(void)
{
	uint32_t before, hop, again;

	setup(false, true);
	hop = meet();
	rcd_hop_get(hops, hop);
	learn(PEER, new_mac);
	CU_ASSERT(shows(hop, new_mac));
	/* Its entry has to go; the place stays, and the next entry finds it with its users. */
	rcd_neigh_flush(neighs, 1);
	CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 0);
	CU_ASSERT(shows(hop, new_mac));
	learn(PEER, peer_mac);
	CU_ASSERT(shows(hop, new_mac));
	CU_ASSERT_EQUAL(look(PEER), -EAGAIN);
	CU_ASSERT(shows(hop, new_mac));
	learn(PEER, peer_mac);
	CU_ASSERT(shows(hop, peer_mac));
	CU_ASSERT_EQUAL(look_for(NULL, PEER, &again), 0);
	CU_ASSERT_EQUAL(again, hop);
	/* So it is in use: confirmed, and not forgotten. */
	before = asked;
	pass(LONG);
	CU_ASSERT_EQUAL(rcd_neigh_count(neighs), 1);
	CU_ASSERT(asked - before >= LONG / 40);
	rcd_hop_put(hops, hop);
	teardown();
}

/* One account has so many, those that don't answer go first, and those that are used last. */
static void
accounts_are_bounded(void)
{
	uint32_t hop, used, unused;

	setup(false, true);
	answering = false;
	for (uint32_t i = 0; i < QUOTA; i++)
		CU_ASSERT_EQUAL(look_for(&alice, 1000 + i, &hop), -EAGAIN);
	rcd_waiter_cancel(&alice.waiter);
	CU_ASSERT_EQUAL(look_for(&alice, PEER, &hop), -ENOMEM);
	CU_ASSERT_FALSE(rcd_waiter_waits(&alice.waiter));
	CU_ASSERT_EQUAL(look_for(&bob, PEER, &hop), -EAGAIN);
	/* The first is used, the second is not, and a third does not answer. */
	learn(1000, peer_mac);
	learn(1001, peer_mac);
	CU_ASSERT_EQUAL(look_for(&alice, 1000, &used), 0);
	CU_ASSERT_EQUAL(look_for(&alice, 1001, &unused), 0);
	rcd_hop_get(hops, used);
	CU_ASSERT_EQUAL(look_for(&alice, 11, &hop), -EAGAIN);
	CU_ASSERT_PTR_NOT_NULL(rcd_hop_entry(hops, used));
	CU_ASSERT_EQUAL(look_for(&alice, 12, &hop), -EAGAIN);
	CU_ASSERT_EQUAL(look_for(&alice, 13, &hop), -ENOMEM);
	CU_ASSERT_EQUAL(alice.quota.used[RCD_RESOURCE_NEIGHBOURS], QUOTA);
	/* It is the one that was used that went last, and its vector has its MAC yet. */
	CU_ASSERT(shows(used, peer_mac));
	CU_ASSERT_EQUAL(rcd_hop_users(hops, used), 1);
	CU_ASSERT_PTR_NULL(rcd_hop_entry(hops, used));
	rcd_hop_put(hops, used);
	rcd_waiter_cancel(&alice.waiter);
	rcd_waiter_cancel(&bob.waiter);
	teardown();
}

/* All places taken by used ones of others: who comes has one all the same. */
static void
nobody_is_kept_out(void)
{
	static uint32_t places[RCD_NEIGHS_MAX];
	uint32_t hop;

	setup(false, true);
	for (uint32_t i = 0; i < RCD_NEIGHS_MAX; i++) {
		CU_ASSERT_EQUAL(look(1000 + i), -EAGAIN);
		learn(1000 + i, peer_mac);
		CU_ASSERT_EQUAL(look_for(NULL, 1000 + i, &places[i]), 0);
		rcd_hop_get(hops, places[i]);
	}
	CU_ASSERT_EQUAL(look_for(&alice, PEER, &hop), -EAGAIN);
	CU_ASSERT_EQUAL(rcd_neigh_count(neighs), RCD_NEIGHS_MAX);
	CU_ASSERT_EQUAL(rcd_hops_count(hops), RCD_NEIGHS_MAX + 1);
	learn(PEER, peer_mac);
	CU_ASSERT_EQUAL(look_for(&alice, PEER, &hop), 0);
	for (uint32_t i = 0; i < RCD_NEIGHS_MAX; i++) {
		CU_ASSERT(shows(places[i], peer_mac));
		rcd_hop_put(hops, places[i]);
	}
	rcd_waiter_cancel(&alice.waiter);
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S10 many that don't answer are bounded, and go", nobody_answers },
		{ "S10 who is not asked for is not remembered", nobody_asked },
		{ "S10 neighbours that are not used are forgotten", unused_is_forgotten },
		{ "S10 neighbours that are gone are forgotten", who_is_gone_is_forgotten },
		{ "S10 accounts are bounded", accounts_are_bounded },
		{ "S10 nobody is kept out by neighbours that are used", nobody_is_kept_out },
		{ "T6 a new MAC is at its place", a_new_mac_is_at_its_place },
		RCD_TEST(a_kernel_loses_it),
		RCD_TEST(who_waits_is_told),
		RCD_TEST(who_goes_is_not_told),
	};

	return rcd_tap_run("neigh", tests, sizeof(tests) / sizeof(tests[0]));
}
