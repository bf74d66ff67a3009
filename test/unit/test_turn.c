/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a short message of one waits at most a quantum behind the long ones of others, no long one
 * starves, and all get the same. Method: senders with packets of their own sizes on a wire whose
 * clock is the bytes sent.
 */
#include <stdlib.h>
#include <string.h>

#include "rcd_tap.h"
#include "rcd_turn.h"

#define SENDERS 12
#define LARGEST 4096
#define LIMIT   (100 * RCD_TURN_QUANTUM) /* nobody waits as long as that */

struct sender {
	struct rcd_turn turn; /* first */
	uint32_t packet;      /**< bytes */
	uint64_t left;        /**< bytes to send; UINT64_MAX: for ever */
	uint64_t sent;
	uint64_t began_at;
	uint64_t waited; /**< longest, from having something to send to the first of it */
	bool waits;
};

struct world {
	struct rcd_turns turns;
	uint64_t now; /**< bytes sent by all */
	struct sender senders[SENDERS];
};

static void
setup(struct world *world)
{
	memset(world, 0, sizeof(*world));
	rcd_turns_init(&world->turns);
}

static void
begin(struct world *world, struct sender *sender, uint32_t packet, uint64_t bytes)
{
	sender->packet = packet;
	sender->left = bytes;
	sender->began_at = world->now;
	sender->waits = true;
	rcd_turn_begin(&world->turns, &sender->turn);
}

/* One packet. @return whose; NULL when nobody wants to send */
static struct sender *
step(struct world *world)
{
	struct sender *sender = (struct sender *)(void *)rcd_turn_next(&world->turns);
	uint32_t bytes;

	if (sender == NULL)
		return NULL;
	if (sender->waits && world->now - sender->began_at > sender->waited)
		sender->waited = world->now - sender->began_at;
	sender->waits = false;
	bytes = sender->left < sender->packet ? (uint32_t)sender->left : sender->packet;
	rcd_turn_charge(&world->turns, &sender->turn, bytes);
	world->now += bytes;
	sender->sent += bytes;
	if (sender->left != UINT64_MAX)
		sender->left -= bytes;
	if (sender->left == 0)
		rcd_turn_end(&sender->turn);
	return sender;
}

/* Long ones from the first sender on, under way for a while. */
static void
long_ones(struct world *world, int count)
{
	setup(world);
	for (int i = 0; i < count; i++)
		begin(world, &world->senders[i], LARGEST, UINT64_MAX);
	for (int i = 0; i < 200; i++)
		step(world);
}

static void
short_beside_long(void)
{
	static struct world world;
	struct sender *small = &world.senders[SENDERS - 1];

	for (int count = 1; count < SENDERS; count++) {
		long_ones(&world, count);
		for (int round = 0; round < 1000; round++) {
			begin(&world, small, 8, 8);
			while (small->left > 0 && world.now - small->began_at < LIMIT)
				step(&world);
			/* From anywhere in the turn of a long one. */
			for (int i = rand() % 20; i > 0; i--)
				step(&world);
		}
		CU_ASSERT_EQUAL(small->sent, 8000);
		CU_ASSERT(small->waited <= RCD_TURN_QUANTUM);
	}
}

static void
shorts_wait_for_each_other(void)
{
	static struct world world;

	long_ones(&world, 3);
	for (int round = 0; round < 1000; round++) {
		for (int i = 3; i < SENDERS; i++)
			begin(&world, &world.senders[i], 1024, 1024);
		for (int i = 3; i < SENDERS; i++)
			while (world.senders[i].left > 0 &&
				world.now - world.senders[i].began_at < LIMIT)
				step(&world);
		for (int i = rand() % 20; i > 0; i--)
			step(&world);
	}
	for (int i = 3; i < SENDERS; i++)
		CU_ASSERT(world.senders[i].waited <= RCD_TURN_QUANTUM + (SENDERS - 3) * 1024);
}

/* Ones that become busy again and again do not keep an old one from its turn. */
static void
nobody_starves(void)
{
	static struct world world;
	uint64_t last, longest = 0;

	long_ones(&world, 1);
	last = world.now;
	for (int round = 0; round < 10000; round++) {
		for (int i = 1; i < SENDERS; i++)
			if (world.senders[i].left == 0)
				begin(&world, &world.senders[i], 2048, 2048);
		if (step(&world) != &world.senders[0])
			continue;
		longest = world.now - last > longest ? world.now - last : longest;
		last = world.now;
	}
	CU_ASSERT(longest <= RCD_TURN_NEW_BYTES + 2 * LARGEST);
	CU_ASSERT(world.senders[0].sent > world.now / 8);
}

/* Short ones that had the wire to themselves owe nothing for it to a long one that comes later. */
static void
new_ones_run_up_no_debt(void)
{
	static struct world world;
	struct sender *small = &world.senders[1];

	setup(&world);
	for (int round = 0; round < 100000; round++) {
		begin(&world, small, 1024, 1024);
		step(&world);
	}
	begin(&world, &world.senders[0], LARGEST, UINT64_MAX);
	while (world.senders[0].sent < 2 * RCD_TURN_QUANTUM)
		step(&world);
	small->waited = 0;
	begin(&world, small, 8, 8);
	while (small->left > 0 && world.now - small->began_at < LIMIT)
		step(&world);
	CU_ASSERT_EQUAL(small->left, 0);
	CU_ASSERT(small->waited <= RCD_TURN_QUANTUM);
}

static void
shares_are_even(void)
{
	static struct world world;
	uint64_t least = UINT64_MAX, most = 0;

	setup(&world);
	for (int i = 0; i < SENDERS; i++)
		begin(&world, &world.senders[i], 64 + (uint32_t)i * 360, UINT64_MAX);
	for (int i = 0; i < 100000; i++)
		step(&world);
	for (int i = 0; i < SENDERS; i++) {
		least = world.senders[i].sent < least ? world.senders[i].sent : least;
		most = world.senders[i].sent > most ? world.senders[i].sent : most;
		CU_ASSERT_EQUAL(rcd_turn_bytes(&world.senders[i].turn), world.senders[i].sent);
	}
	/* A quantum is the new ones' start, another the round that is under way. */
	CU_ASSERT(most - least <= 2 * RCD_TURN_QUANTUM + LARGEST);
}

static void
blocked_ones_wait(void)
{
	static struct world world;
	struct rcd_turn_list blocked;

	TAILQ_INIT(&blocked);
	long_ones(&world, 2);
	rcd_turn_block(&world.senders[0].turn, &blocked);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_PTR_EQUAL(step(&world), &world.senders[1]);
	/* Something new to send changes nothing. */
	rcd_turn_begin(&world.turns, &world.senders[0].turn);
	CU_ASSERT_PTR_EQUAL(step(&world), &world.senders[1]);
	rcd_turn_end(&world.senders[1].turn);
	CU_ASSERT_PTR_NULL(step(&world));
	rcd_turn_unblock(&world.turns, &blocked, 0);
	CU_ASSERT_PTR_NULL(step(&world));
	rcd_turn_unblock(&world.turns, &blocked, 2);
	CU_ASSERT(TAILQ_EMPTY(&blocked));
	CU_ASSERT_PTR_EQUAL(step(&world), &world.senders[0]);
	rcd_turn_end(&world.senders[0].turn);
	rcd_turn_end(&world.senders[0].turn);
	CU_ASSERT_PTR_NULL(step(&world));
}

/* Who uses up turns without a packet has its share of them, and is not said to have sent. */
static void
skipped_turns_are_turns(void)
{
	static struct world world;
	uint32_t skipped = 0;

	setup(&world);
	for (int i = 0; i < 2; i++)
		begin(&world, &world.senders[i], 1024, UINT64_MAX);
	for (int i = 0; i < 17000; i++) {
		struct rcd_turn *turn = rcd_turn_next(&world.turns);

		if (turn == &world.senders[0].turn) {
			rcd_turn_skip(&world.turns, turn);
			skipped++;
		} else {
			step(&world);
		}
	}
	CU_ASSERT(skipped >= 999 && skipped <= 1001);
	CU_ASSERT_EQUAL(rcd_turn_bytes(&world.senders[0].turn), 0);
	CU_ASSERT_EQUAL(rcd_turn_bytes(&world.senders[1].turn), world.senders[1].sent);
}

/* Each once, so many at most, and none that waits for something else than its turn. */
static void
urgent_ones_are_few(void)
{
	static struct world world;
	struct rcd_turn_list blocked;
	struct rcd_turns *turns = &world.turns;
	struct rcd_turn *turn;
	uint32_t count = 0;

	TAILQ_INIT(&blocked);
	/* Old ones, which were behind their turn, and new ones; the last one is in no list. */
	long_ones(&world, 2);
	for (int i = 2; i < SENDERS - 1; i++)
		begin(&world, &world.senders[i], 1024, 1024);
	rcd_turn_block(&world.senders[2].turn, &blocked);
	CU_ASSERT(!rcd_turn_any_urgent(turns));
	rcd_turn_urge(turns, &world.senders[2].turn);
	rcd_turn_urge(turns, &world.senders[SENDERS - 1].turn);
	CU_ASSERT(!rcd_turn_any_urgent(turns));
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < SENDERS; i++)
			rcd_turn_urge(turns, &world.senders[i].turn);
	/* One is blocked meanwhile. */
	rcd_turn_block(&world.senders[3].turn, &blocked);
	while ((turn = rcd_turn_next_urgent(turns)) != NULL) {
		CU_ASSERT_PTR_NOT_EQUAL(turn, &world.senders[2].turn);
		CU_ASSERT_PTR_NOT_EQUAL(turn, &world.senders[3].turn);
		CU_ASSERT_PTR_NOT_NULL(turn->list);
		count++;
	}
	CU_ASSERT_EQUAL(count, RCD_TURN_URGENT - 1);
	CU_ASSERT(!rcd_turn_any_urgent(turns));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(short_beside_long),
		RCD_TEST(shorts_wait_for_each_other),
		RCD_TEST(nobody_starves),
		RCD_TEST(new_ones_run_up_no_debt),
		RCD_TEST(shares_are_even),
		RCD_TEST(blocked_ones_wait),
		RCD_TEST(skipped_turns_are_turns),
		RCD_TEST(urgent_ones_are_few),
	};

	return rcd_tap_run("turn", tests, sizeof(tests) / sizeof(tests[0]));
}
