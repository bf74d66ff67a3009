/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Looking for addresses in a GID table.
 */
#include "rcd_gid_table.h"

int
rcd_gid_table_find(const struct rcd_gid_table *table, const struct rcd_gid *gid)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (table->entries[i].used && rcd_gid_eq(&table->entries[i].gid, gid))
			return (int)i;
	return -1;
}

static bool
gid_table_same_subnet(const struct rcd_gid *a, const struct rcd_gid *b, uint8_t prefix_len)
{
	uint32_t bits = prefix_len;
	uint32_t i = 0;

	if (rcd_gid_is_ipv4(a) != rcd_gid_is_ipv4(b))
		return false;
	if (rcd_gid_is_ipv4(a))
		bits += 96;
	for (; bits >= 8; bits -= 8, i++)
		if (a->raw[i] != b->raw[i])
			return false;
	return bits == 0 || (a->raw[i] ^ b->raw[i]) >> (8 - bits) == 0;
}

bool
rcd_gid_table_covers(const struct rcd_gid_table *table, uint32_t at, const struct rcd_gid *gid)
{
	return table->entries[at].used &&
		gid_table_same_subnet(&table->entries[at].gid, gid, table->entries[at].prefix_len);
}

int
rcd_gid_table_on_link(const struct rcd_gid_table *table, const struct rcd_gid *gid)
{
	int best = -1;

	for (uint32_t i = 0; i < table->count; i++)
		if (rcd_gid_table_covers(table, i, gid) &&
			(best < 0 ||
				table->entries[i].prefix_len > table->entries[best].prefix_len))
			best = (int)i;
	return best;
}
