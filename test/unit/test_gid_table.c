/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: an address finds its entry, and one on the link the entry of its narrowest subnet, at the
 * edges of prefixes too. Method: one table of IPv4 and IPv6 addresses, and a row for each question.
 */
#include "rcd_gid_table.h"

#include "gid_text.h"
#include "rcd_tap.h"

static const struct {
	const char *addr;
	uint8_t prefix_len;
} entries[] = {
	{ "10.1.2.3", 8 },
	{ "10.1.2.4", 25 },
	{ NULL, 0 }, /* unused: all zero, with a prefix of nothing */
	{ "fd00::1", 64 },
	{ "fd00::2:1", 127 },
	{ "192.0.2.7", 32 },
	{ "fe80::1", 128 },
};

static struct rcd_gid_table
table_of(void)
{
	struct rcd_gid_table table = { .count = 0 };

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		table.count++;
		if (entries[i].addr == NULL)
			continue;
		table.entries[i].gid = gid_text(entries[i].addr);
		table.entries[i].prefix_len = entries[i].prefix_len;
		table.entries[i].used = true;
	}
	return table;
}

static void
finds_addresses(void)
{
	static const struct {
		const char *addr;
		int at;
	} rows[] = {
		{ "10.1.2.3", 0 },
		{ "10.1.2.4", 1 },
		{ "10.1.2.5", -1 },
		{ "::", -1 },
		{ "fd00::2:1", 4 },
		{ "::10.1.2.3", -1 },
		{ "fe80::1", 6 },
	};
	struct rcd_gid_table table = table_of();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rcd_gid gid = gid_text(rows[i].addr);

		CU_ASSERT_EQUAL(rcd_gid_table_find(&table, &gid), rows[i].at);
	}
	/* Behind the last used one nothing is looked at. */
	table.count = 4;
	CU_ASSERT_EQUAL(rcd_gid_table_find(&table, &table.entries[4].gid), -1);
}

static void
finds_subnets(void)
{
	static const struct {
		const char *addr;
		int at;
	} rows[] = {
		{ "10.1.2.3", 1 },   /* the narrower one, though it is another's address */
		{ "10.1.2.127", 1 }, /* the last of the 25 bits */
		{ "10.1.2.128", 0 },
		{ "10.255.0.1", 0 },
		{ "11.0.0.1", -1 },
		{ "192.0.2.7", 5 },
		{ "192.0.2.6", -1 },
		{ "fd00::ffff", 3 },
		{ "fd00::2:0", 4 },
		{ "fd00::2:2", 3 },
		{ "fd00:0:0:1::1", -1 },
		{ "fe80::1", 6 },
		{ "fe80::2", -1 },
		{ "::", -1 },
	};
	const struct rcd_gid_table table = table_of();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rcd_gid gid = gid_text(rows[i].addr);

		CU_ASSERT_EQUAL(rcd_gid_table_on_link(&table, &gid), rows[i].at);
	}
}

static void
prefixes_of_nothing(void)
{
	struct rcd_gid_table table = { .count = 1 };
	struct rcd_gid four = gid_text("8.8.8.8"), six = gid_text("2001:db8::1");

	table.entries[0].gid = gid_text("10.0.0.1");
	CU_ASSERT_FALSE(rcd_gid_table_covers(&table, 0, &four));
	table.entries[0].used = true;
	CU_ASSERT_TRUE(rcd_gid_table_covers(&table, 0, &four));
	CU_ASSERT_FALSE(rcd_gid_table_covers(&table, 0, &six));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(finds_addresses),
		RCD_TEST(finds_subnets),
		RCD_TEST(prefixes_of_nothing),
	};

	return rcd_tap_run("gid_table", tests, sizeof(tests) / sizeof(tests[0]));
}
