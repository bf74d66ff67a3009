/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A table of neighbours for tests.
 */
#include "neigh_link.h"

#include <errno.h>

#include "rcd_bits.h"
#include "rcd_tap.h"

#define TICK_ASKS 64 /**< at most */
#define HOPS      (RCD_NEIGHS_MAX + 1000)

uint64_t link_now_ns;
uint32_t link_asked;
bool link_answering;
bool link_at_once;
uint64_t link_round_ns;
static bool link_six;  /**< over IPv6 */
static bool link_ours; /**< the link is asked by ourselves */
struct rcd_hops *link_hops;
struct rcd_neighs *link_neighs;
struct rcd_quota_book link_book;

const uint8_t link_peer_mac[RCD_MAC_LEN] = { 2, 1, 1, 1, 1, 1 };
const uint8_t link_new_mac[RCD_MAC_LEN] = { 2, 1, 1, 1, 1, 2 };

struct guest alice, bob;

static uint64_t
link_clock_ns(void)
{
	return link_now_ns;
}

struct rcd_hop_key
link_addr(uint32_t number)
{
	struct rcd_hop_key key = { .dev = 1, .gid = { { 0xfd, 0x78 } } };

	if (!link_six)
		key.gid = (struct rcd_gid){ { [10] = 0xff, [11] = 0xff, [12] = 10 } };
	key.gid.raw[13] = (uint8_t)(number >> 16);
	key.gid.raw[14] = (uint8_t)(number >> 8);
	key.gid.raw[15] = (uint8_t)number;
	return key;
}

void
link_learn(uint32_t number, const uint8_t *mac)
{
	struct rcd_hop_key key = link_addr(number);

	rcd_neigh_learn(link_neighs, &key, mac);
}

static void
link_on_ask(void *arg, const struct rcd_neigh_target *target)
{
	struct rcd_hop_key peer = link_addr(LINK_PEER);

	CU_ASSERT_PTR_EQUAL(arg, &link_asked);
	CU_ASSERT_EQUAL(target->ours, link_ours);
	CU_ASSERT(rcd_neigh_wanted(link_neighs, &target->key));
	link_asked++;
	if (link_answering && link_at_once && memcmp(&target->key, &peer, sizeof(peer)) == 0)
		link_learn(LINK_PEER, link_peer_mac);
}

static void
link_told(struct rcd_waiter *waiter)
{
	RCD_OWNER(waiter, struct guest, waiter)->told++;
}

void
link_join(struct guest *guest, uid_t uid)
{
	*guest = (struct guest){ .waiter.fn = link_told };
	CU_ASSERT_EQUAL_FATAL(rcd_quota_join(&link_book, &guest->quota, uid), 0);
}

void
link_leave(struct guest *guest)
{
	rcd_waiter_cancel(&guest->waiter);
	rcd_neigh_leave(link_neighs, &guest->quota);
	CU_ASSERT_EQUAL(guest->quota.used[RCD_RESOURCE_NEIGHBOURS], 0);
	rcd_quota_leave(&guest->quota);
}

void
link_open(bool by_v6, bool by_us)
{
	static const struct rcd_neigh_ops ops = { .now_ns = link_clock_ns, .ask = link_on_ask };
	static const uint64_t seed[2] = { 12345, 67890 };
	static const struct rcd_quota none;
	static const struct rcd_quota total = { .neighbours = RCD_NEIGHS_MAX };
	struct rcd_quota each = { .neighbours = LINK_QUOTA };
	struct rcd_neigh_conf conf = { .ops = &ops, .arg = &link_asked, .seed = seed };

	link_six = by_v6;
	link_ours = by_us;
	link_now_ns = SECOND;
	link_asked = 0;
	link_answering = true;
	link_at_once = false;
	link_round_ns = SECOND / 10;
	link_hops = conf.hops = rcd_hops_create(HOPS, seed);
	CU_ASSERT_PTR_NOT_NULL_FATAL(link_hops);
	link_neighs = rcd_neighs_create(&conf);
	CU_ASSERT_PTR_NOT_NULL_FATAL(link_neighs);
	rcd_quota_open(&link_book, &each, &none, &total);
	link_join(&alice, 1000);
	link_join(&bob, 1001);
}

void
link_close(void)
{
	link_leave(&alice);
	link_leave(&bob);
	CU_ASSERT_EQUAL(link_book.used[RCD_RESOURCE_NEIGHBOURS], rcd_neigh_left(link_neighs));
	rcd_neighs_destroy(link_neighs);
	CU_ASSERT_EQUAL(link_book.used[RCD_RESOURCE_NEIGHBOURS], 0);
	CU_ASSERT(LIST_EMPTY(&link_book.users));
	CU_ASSERT_EQUAL(rcd_hops_count(link_hops), 0);
	rcd_hops_destroy(link_hops);
}

int
link_ask_for(struct guest *guest, uint32_t number, uint32_t *hop)
{
	struct rcd_neigh_target target = { .key = link_addr(number), .ours = link_ours };

	return rcd_neigh_resolve(link_neighs, &target, guest != NULL ? &guest->quota : NULL,
		guest != NULL ? &guest->waiter : NULL, hop);
}

int
link_ask(uint32_t number)
{
	uint32_t hop;

	return link_ask_for(NULL, number, &hop);
}

bool
link_shows(uint32_t hop, const uint8_t *mac)
{
	uint8_t shown[RCD_MAC_LEN];

	rcd_hop_mac(rcd_hop_word(rcd_hops_macs(link_hops), hop), shown);
	return memcmp(shown, mac, RCD_MAC_LEN) == 0;
}

void
link_tick(void)
{
	uint32_t before = link_asked;

	link_now_ns += link_round_ns;
	rcd_neigh_tick(link_neighs, link_now_ns);
	CU_ASSERT(link_asked - before <= TICK_ASKS);
	if (link_answering && link_asked != before)
		link_learn(LINK_PEER, link_peer_mac);
}

void
link_pass(uint32_t seconds)
{
	for (uint64_t end = link_now_ns + seconds * SECOND; link_now_ns < end;)
		link_tick();
}

uint32_t
link_known(uint32_t first, uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t i = first; i < first + count; i++) {
		struct rcd_hop_key key = link_addr(i);

		found += rcd_neigh_known(link_neighs, &key) != RCD_HOP_NONE;
	}
	return found;
}

void
link_put(uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		struct rcd_hop_key key = link_addr(i);

		rcd_hop_put(link_hops, rcd_hop_find(link_hops, &key));
	}
}
