/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a place belongs to its address as long as an entry or a vector needs it, shows the MAC that
 * was stored last, and is given to another afterwards; it is found however many there are. Method:
 * small tables, and one that is filled, beside a count of the test's own.
 */
#include "rcd_hop.h"

#include <stdlib.h>

#include "rcd_tap.h"

#define MANY 100000u

static const uint64_t seed[2] = { 12345, 67890 };
static const uint8_t mac_a[RCD_MAC_LEN] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t mac_b[RCD_MAC_LEN] = { 2, 0xff, 0xff, 0xff, 0xff, 0xfe };
static int entries[2];

static struct rcd_hop_key
key_of(uint32_t number)
{
	struct rcd_hop_key key = { .dev = 1, .gid = { { [10] = 0xff, [11] = 0xff, [12] = 10 } } };

	key.gid.raw[13] = (uint8_t)(number >> 16);
	key.gid.raw[14] = (uint8_t)(number >> 8);
	key.gid.raw[15] = (uint8_t)number;
	return key;
}

static struct rcd_hops *
make(uint32_t capacity)
{
	struct rcd_hops *hops = rcd_hops_create(capacity, seed);

	CU_ASSERT_PTR_NOT_NULL_FATAL(hops);
	return hops;
}

static int
shows(const struct rcd_hops *hops, uint32_t hop, const uint8_t *mac)
{
	uint8_t now[RCD_MAC_LEN];

	rcd_hop_mac(rcd_hop_word(rcd_hops_macs(hops), hop), now);
	return memcmp(now, mac, RCD_MAC_LEN) == 0;
}

/* Steps: c claim, d disclaim, g get, p put. It is there after each of them, or not. */
static void
lives(void)
{
	static const struct {
		const char *steps, *there;
	} rows[] = {
		{ "cd", "y-" },
		{ "cgpd", "yyy-" },
		{ "cgdp", "yyy-" },
		{ "cggdpp", "yyyyy-" },
		{ "cgdcpd", "yyyyy-" },
		{ "cgdcdp", "yyyyy-" },
	};
	struct rcd_hop_key key = key_of(1);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rcd_hops *hops = make(3);
		uint32_t hop = RCD_HOP_NONE;

		for (size_t k = 0; rows[i].steps[k] != '\0'; k++) {
			uint32_t before = hop;

			switch (rows[i].steps[k]) {
			case 'c':
				hop = rcd_hop_claim(hops, &key, &entries[0]);
				CU_ASSERT(before == RCD_HOP_NONE || hop == before);
				CU_ASSERT_PTR_EQUAL(rcd_hop_entry(hops, hop), &entries[0]);
				if (before == RCD_HOP_NONE)
					rcd_hop_set(hops, hop, mac_a);
				break;
			case 'd':
				rcd_hop_disclaim(hops, hop);
				break;
			case 'g':
				rcd_hop_get(hops, hop);
				break;
			default:
				rcd_hop_put(hops, hop);
				break;
			}
			CU_ASSERT_EQUAL(rcd_hop_find(hops, &key),
				rows[i].there[k] == 'y' ? hop : RCD_HOP_NONE);
			CU_ASSERT_EQUAL(rcd_hops_count(hops), rows[i].there[k] == 'y');
			/* Who has it has its MAC. */
			if (rows[i].there[k] == 'y')
				CU_ASSERT(shows(hops, hop, mac_a));
		}
		rcd_hops_destroy(hops);
	}
}

static void
a_store_is_seen_by_all(void)
{
	struct rcd_hops *hops = make(3);
	const uint64_t *macs = rcd_hops_macs(hops);
	struct rcd_hop_key key = key_of(1);
	uint32_t hop = rcd_hop_claim(hops, &key, &entries[0]);
	uint64_t word;

	CU_ASSERT_NOT_EQUAL(hop, RCD_HOP_NONE);
	CU_ASSERT_EQUAL(rcd_hop_word(macs, hop), 0);
	rcd_hop_set(hops, hop, mac_a);
	word = rcd_hop_word(macs, hop);
	CU_ASSERT_NOT_EQUAL(word, 0);
	rcd_hop_set(hops, hop, mac_b);
	CU_ASSERT_NOT_EQUAL(rcd_hop_word(macs, hop), word);
	CU_ASSERT(shows(hops, hop, mac_b));
	/* No place never has a MAC, and nobody is counted for it. */
	rcd_hop_get(hops, RCD_HOP_NONE);
	rcd_hop_put(hops, RCD_HOP_NONE);
	CU_ASSERT_EQUAL(rcd_hop_word(macs, RCD_HOP_NONE), 0);
	CU_ASSERT_PTR_NULL(rcd_hop_entry(hops, RCD_HOP_NONE));
	rcd_hops_destroy(hops);
}

/* Of the same address there is one for each link. */
static void
links_are_apart(void)
{
	struct rcd_hops *hops = make(3);
	struct rcd_hop_key a = key_of(1), b = a, c = a;
	uint32_t hop;

	b.dev = 2;
	c.vlan_id = 7;
	hop = rcd_hop_claim(hops, &a, &entries[0]);
	CU_ASSERT_EQUAL(rcd_hop_find(hops, &b), RCD_HOP_NONE);
	CU_ASSERT_EQUAL(rcd_hop_find(hops, &c), RCD_HOP_NONE);
	CU_ASSERT_NOT_EQUAL(rcd_hop_claim(hops, &b, &entries[1]), hop);
	CU_ASSERT_EQUAL(rcd_hops_count(hops), 2);
	rcd_hops_destroy(hops);
}

/* That of a device: found as others are, and gone with its last user. */
static void
made_without_an_entry(void)
{
	struct rcd_hops *hops = make(1);
	struct rcd_hop_key key = key_of(1), other = key_of(2);
	uint32_t hop = rcd_hop_make(hops, &key, mac_a);

	CU_ASSERT_NOT_EQUAL_FATAL(hop, RCD_HOP_NONE);
	CU_ASSERT(shows(hops, hop, mac_a));
	CU_ASSERT_PTR_NULL(rcd_hop_entry(hops, hop));
	CU_ASSERT_EQUAL(rcd_hop_users(hops, hop), 1);
	CU_ASSERT_EQUAL(rcd_hop_make(hops, &other, mac_b), RCD_HOP_NONE);
	rcd_hop_get(hops, hop);
	rcd_hop_put(hops, hop);
	rcd_hop_set(hops, hop, mac_b);
	CU_ASSERT(shows(hops, hop, mac_b));
	rcd_hop_put(hops, hop);
	CU_ASSERT_EQUAL(rcd_hops_count(hops), 0);
	rcd_hops_destroy(hops);
}

static void
ends_at_its_capacity(void)
{
	struct rcd_hops *hops = make(2);
	struct rcd_hop_key keys[3] = { key_of(1), key_of(2), key_of(3) };
	uint32_t a = rcd_hop_claim(hops, &keys[0], &entries[0]);
	uint32_t b = rcd_hop_claim(hops, &keys[1], &entries[0]);

	CU_ASSERT(a != b && a != RCD_HOP_NONE && b != RCD_HOP_NONE);
	rcd_hop_set(hops, a, mac_a);
	CU_ASSERT_EQUAL(rcd_hop_claim(hops, &keys[2], &entries[0]), RCD_HOP_NONE);
	rcd_hop_disclaim(hops, a);
	/* Another's has nothing of who was there. */
	CU_ASSERT_EQUAL(rcd_hop_claim(hops, &keys[2], &entries[0]), a);
	CU_ASSERT_EQUAL(rcd_hop_word(rcd_hops_macs(hops), a), 0);
	CU_ASSERT_EQUAL(rcd_hop_users(hops, a), 0);
	rcd_hops_destroy(hops);
}

static void
many_are_found(void)
{
	struct rcd_hops *hops = make(MANY);
	uint32_t *places = calloc(MANY, sizeof(places[0]));

	CU_ASSERT_PTR_NOT_NULL_FATAL(places);
	for (uint32_t i = 0; i < MANY; i++) {
		struct rcd_hop_key key = key_of(i);

		places[i] = rcd_hop_claim(hops, &key, &entries[0]);
		CU_ASSERT_FATAL(places[i] != RCD_HOP_NONE);
	}
	for (uint32_t i = 0; i < MANY; i += 2)
		rcd_hop_disclaim(hops, places[i]);
	CU_ASSERT_EQUAL(rcd_hops_count(hops), MANY / 2);
	for (uint32_t i = 0; i < MANY; i++) {
		struct rcd_hop_key key = key_of(i);

		if (rcd_hop_find(hops, &key) != (i % 2 == 0 ? RCD_HOP_NONE : places[i])) {
			CU_FAIL("a place is not found");
			break;
		}
	}
	free(places);
	rcd_hops_destroy(hops);
}

/* Of addresses in a row, as a subnet has them, few share a cell with those of another row. */
static void
rows_share_few_cells(void)
{
	enum {
		CELLS = 16384,
		WANTED = 400,
		OTHERS = 2000,
		SEEDS = 200
	};
	static uint8_t cells[CELLS];
	uint32_t worst = 0;

	for (uint64_t i = 1; i <= SEEDS; i++) {
		const uint64_t random[2] = { i * UINT64_C(0x9e3779b97f4a7c15),
			i * UINT64_C(0xd1342543de82ef95) };
		uint32_t shared = 0;

		memset(cells, 0, sizeof(cells));
		for (uint32_t k = 0; k < WANTED + OTHERS; k++) {
			struct rcd_hop_key key = key_of(k < WANTED ? k : 1000 + k);
			uint8_t *cell = &cells[rcd_hop_hash(&key, random) % CELLS];

			shared += k < WANTED ? 0 : *cell;
			*cell |= k < WANTED;
		}
		worst = shared > worst ? shared : worst;
	}
	/* Were cells chosen by lot: 48, with a deviation of 7. */
	CU_ASSERT(worst < 100);
	printf("# %u of %u addresses share a cell\n", worst, (uint32_t)OTHERS);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(lives),
		RCD_TEST(a_store_is_seen_by_all),
		RCD_TEST(links_are_apart),
		RCD_TEST(made_without_an_entry),
		RCD_TEST(ends_at_its_capacity),
		RCD_TEST(many_are_found),
		RCD_TEST(rows_share_few_cells),
	};

	return rcd_tap_run("hop", tests, sizeof(tests) / sizeof(tests[0]));
}
