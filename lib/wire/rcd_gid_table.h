/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The GID table of a port (IBTA Vol. 1, 4.1.1): its addresses by index, with the VLAN and the
 * subnet of each. What changes it, and who is told, is its owner's business.
 */
#ifndef RCD_GID_TABLE_H
#define RCD_GID_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid.h"
#include "rcd_limits.h"

/** GIDs of a device. */
struct rcd_gid_table {
	uint32_t count; /**< one past the last used */
	struct {
		struct rcd_gid gid; /**< all zero: unused */
		uint16_t vlan_id;   /**< 0: untagged */
		uint8_t prefix_len; /**< bits; of IPv4, without those of the mapped form */
		bool used;
	} entries[RCD_GIDS_MAX];
};

/** Whether the address is in the table. @return its place; -1: no */
int
rcd_gid_table_find(const struct rcd_gid_table *table, const struct rcd_gid *gid);

/** The table's own address on the subnet of this one, the narrowest. @return its place; -1: none */
int
rcd_gid_table_on_link(const struct rcd_gid_table *table, const struct rcd_gid *gid);

/** Whether an address is on the subnet of an entry that is used. */
bool
rcd_gid_table_covers(const struct rcd_gid_table *table, uint32_t at, const struct rcd_gid *gid);

#endif /* RCD_GID_TABLE_H */
