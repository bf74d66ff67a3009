/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: whoever is asked for, the table of neighbours and what it asks stay bounded, nobody enters
 * it unasked, and who is gone or not used is forgotten. Method: the engine's table on a device that
 * sends nothing, and a clock of the test's own; over IPv4 and over IPv6, by ARP and ND.
 */
#include <rte_eal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rcd_engine_priv.h"
#include "rcd_tap.h"

#define SECOND    UINT64_C(1000000000)
#define TICK      (SECOND / 50) /**< as the engine's own */
#define TICK_ASKS 64            /**< at most */
#define NOT_EARLY 100
#define NOT_LATER 160
#define LONG      1000
#define PEER      1
#define MANY      (3 * RCD_NEIGHS_MAX)

static uint64_t now;
static uint32_t asked; /**< questions to the link */
static bool answering; /**< the peer answers them */
static uint64_t round_ns;
static int six; /**< over IPv6 */
static struct rcd_engine engine;
static struct rcd_dev dev;
static struct rcd_gid_table gids;

static const uint8_t peer_mac[RCD_MAC_LEN] = { 2, 1, 1, 1, 1, 1 };

uint64_t
__wrap_rcd_clock_ns(void);
void
__wrap_rcd_lcore_call(
	struct rcd_lcore *lcore, void (*fn)(struct rcd_lcore *lcore, void *arg), void *arg);

uint64_t
__wrap_rcd_clock_ns(void)
{
	return now;
}

/* An address of the link. */
static struct rcd_gid
addr(uint32_t number)
{
	struct rcd_gid gid = { { 0xfd, 0x78 } };

	if (!six)
		gid = (struct rcd_gid){ { [10] = 0xff, [11] = 0xff, [12] = 10 } };
	gid.raw[13] = (uint8_t)(number >> 16);
	gid.raw[14] = (uint8_t)(number >> 8);
	gid.raw[15] = (uint8_t)number;
	return gid;
}

/* All that a table has an lcore do is ask. */
void
__wrap_rcd_lcore_call(
	struct rcd_lcore *lcore, void (*fn)(struct rcd_lcore *lcore, void *arg), void *arg)
{
	(void)lcore;
	(void)fn;
	(void)arg;
	asked++;
}

static void
setup(int v6)
{
	struct rcd_gid own;

	six = v6;
	own = addr(0xffff);
	now = SECOND;
	asked = 0;
	answering = true;
	round_ns = SECOND / 10;
	memset(&dev, 0, sizeof(dev));
	gids.count = 1;
	gids.entries[0].gid = own;
	gids.entries[0].prefix_len = v6 ? 64 : 8;
	gids.entries[0].used = true;
	dev.answers = true;
	dev.gids = &gids;
	dev.engine = &engine;
	engine.devs[0] = &dev;
	engine.neighs = rcd_neigh_create(&engine);
	CU_ASSERT_PTR_NOT_NULL_FATAL(engine.neighs);
}

static void
teardown(void)
{
	rcd_neigh_destroy(engine.neighs);
	engine.neighs = NULL;
}

static int
look(uint32_t number, struct rcd_next *next)
{
	struct rcd_gid gid = addr(number);

	return rcd_neigh_resolve(NULL, &dev, 0, &gid, next);
}

/* One round of the control thread. A peer that answers does so at once. */
static void
tick(void)
{
	struct rcd_gid gid = addr(PEER);
	uint32_t before = asked;

	now += round_ns;
	rcd_neigh_tick(&engine, now);
	CU_ASSERT(asked - before <= TICK_ASKS);
	if (answering && asked != before)
		rcd_neigh_learn(&dev, 0, &gid, peer_mac);
}

/* Rounds for so many seconds. @param next  it is used all the while; NULL: it is not */
static void
pass(uint32_t seconds, struct rcd_next *next)
{
	for (uint64_t end = now + seconds * SECOND; now < end;) {
		tick();
		if (next != NULL)
			rcd_neigh_moved(&dev, next, now);
	}
}

/* Ask for the peer, which answers. */
static void
meet(struct rcd_next *next)
{
	struct rcd_gid gid = addr(PEER);

	CU_ASSERT_EQUAL(look(PEER, next), -EAGAIN);
	rcd_neigh_learn(&dev, 0, &gid, peer_mac);
	CU_ASSERT_EQUAL(look(PEER, next), 0);
	CU_ASSERT_EQUAL(memcmp(next->mac, peer_mac, RCD_MAC_LEN), 0);
	CU_ASSERT_EQUAL(rcd_neigh_count(&engine), 1);
}

/* More than there is room for, none of whom answers; and the peer, who does. */
static void
nobody_answers(void)
{
	struct rcd_next next;

	for (int v6 = 0; v6 < 2; v6++) {
		uint32_t most = 0;

		setup(v6);
		for (uint32_t i = 0; i < MANY; i++) {
			look(1000 + i, &next);
			if (rcd_neigh_count(&engine) > most)
				most = rcd_neigh_count(&engine);
		}
		CU_ASSERT(most > 1000 && most <= RCD_NEIGHS_MAX);
		answering = false;
		CU_ASSERT_EQUAL(look(PEER, &next), -EAGAIN);
		answering = true;
		round_ns = TICK;
		/* 25 questions for each, 64 in a round: and then they are no more. */
		pass(NOT_LATER, NULL);
		CU_ASSERT(asked <= MANY + 1 + 25 * RCD_NEIGHS_MAX + 10);
		CU_ASSERT_EQUAL(rcd_neigh_count(&engine), 0);
		teardown();
	}
}

/* Whoever tells of himself unasked, or of another VLAN, is not remembered. */
static void
nobody_asked(void)
{
	static const uint8_t wrong[RCD_MAC_LEN] = { 2, 9, 9, 9, 9, 9 };
	struct rcd_next next;

	for (int v6 = 0; v6 < 2; v6++) {
		struct rcd_gid peer;

		setup(v6);
		meet(&next);
		peer = addr(PEER);
		for (uint32_t i = 0; i < MANY; i++) {
			struct rcd_gid gid = addr(1000 + i);

			CU_ASSERT_FALSE(rcd_neigh_learn(&dev, 0, &gid, peer_mac));
			CU_ASSERT_FALSE(rcd_neigh_learn(&dev, 7, &peer, wrong));
		}
		CU_ASSERT_EQUAL(look(PEER, &next), 0);
		CU_ASSERT_EQUAL(memcmp(next.mac, peer_mac, RCD_MAC_LEN), 0);
		CU_ASSERT_EQUAL(rcd_neigh_count(&engine), 1);
		teardown();
	}
}

static void
unused_is_forgotten(void)
{
	struct rcd_next next;

	for (int v6 = 0; v6 < 2; v6++) {
		setup(v6);
		meet(&next);
		pass(NOT_EARLY, NULL);
		CU_ASSERT_EQUAL(rcd_neigh_count(&engine), 1);
		pass(NOT_LATER - NOT_EARLY, NULL);
		CU_ASSERT_EQUAL(rcd_neigh_count(&engine), 0);
		/* It was asked whether it is still there, now and then and no more. */
		CU_ASSERT(asked >= 2 && asked <= 8);
		/* One that queue pairs use stays. */
		meet(&next);
		pass(LONG, &next);
		CU_ASSERT_EQUAL(rcd_neigh_count(&engine), 1);
		CU_ASSERT_EQUAL(look(PEER, &next), 0);
		teardown();
	}
}

static void
who_is_gone_is_forgotten(void)
{
	struct rcd_next next;
	uint32_t before;

	for (int v6 = 0; v6 < 2; v6++) {
		setup(v6);
		meet(&next);
		answering = false;
		before = asked;
		/* In use: asked for every ten seconds until it comes back. */
		pass(LONG, &next);
		CU_ASSERT_EQUAL(rcd_neigh_count(&engine), 1);
		CU_ASSERT(asked - before >= LONG / 20 && asked - before <= LONG / 10 + 10);
		CU_ASSERT_NOT_EQUAL(look(PEER, &next), 0);
		answering = true;
		pass(20, &next);
		CU_ASSERT_EQUAL(look(PEER, &next), 0);
		/* Not in use: forgotten long before one that is there. */
		answering = false;
		now += NOT_LATER * SECOND;
		CU_ASSERT_EQUAL(look(PEER, &next), 0);
		pass(NOT_EARLY / 2, NULL);
		CU_ASSERT_EQUAL(rcd_neigh_count(&engine), 0);
		teardown();
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S10 many that don't answer are bounded, and go", nobody_answers },
		{ "S10 who is not asked for is not remembered", nobody_asked },
		{ "S10 neighbours that are not used are forgotten", unused_is_forgotten },
		{ "S10 neighbours that are gone are forgotten", who_is_gone_is_forgotten },
	};
	static char prefix[40];
	char *args[] = { (char *)(uintptr_t) "neigh", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "64",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-telemetry",
		(char *)(uintptr_t) "-a", (char *)(uintptr_t) "0000:00:00.0",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "-l",
		(char *)(uintptr_t) "0", (char *)(uintptr_t) "--file-prefix", prefix };

	/* For the hash of the table. */
	snprintf(prefix, sizeof(prefix), "rcdneigh%d", (int)getpid());
	if (rte_eal_init(sizeof(args) / sizeof(args[0]), args) < 0)
		return 1;
	return rcd_tap_run("neigh", tests, sizeof(tests) / sizeof(tests[0]));
}
