/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a port needs besides RoCE: ARP, neighbour discovery, echo, memberships.
 *
 * Threads: the lcore.
 */
#ifndef RCD_LINK_H
#define RCD_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_eth.h"
#include "rcd_gid.h"
#include "rcd_pkt.h"
#include "rcd_verdict.h"

struct rcd_lport;
struct rcd_lcore;

/** No VLAN: what is in one within another is not for us. */
#define RCD_VLAN_NONE    0xffffu
#define RCD_VLAN_ID_MASK 0xfffu

/**
 * The VLAN of a frame, 0: untagged. Any thread.
 *
 * @param stripped  the tag that the port took off; 0: none
 */
static inline uint16_t
rcd_link_vlan(const struct rcd_eth *eth, uint16_t stripped)
{
	uint16_t vlan_id = eth->tagged ? eth->vlan_tci & RCD_VLAN_ID_MASK : 0;

	if (stripped != 0)
		return eth->tagged ? RCD_VLAN_NONE : stripped;
	return vlan_id;
}

/** A packet that is not RoCE: answered, learned from, or nothing. */
void
rcd_link_rx(struct rcd_lcore *lcore, const struct rcd_lport *lport, enum rcd_verdict verdict,
	const struct rcd_frame *frame, uint16_t stripped);

/** Ask who has an address. */
void
rcd_link_solicit(struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_gid *source, const struct rcd_gid *target, uint16_t vlan_id);

/** Tell routers of a membership, or of its end. */
void
rcd_link_membership(struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_gid *source, const struct rcd_gid *group, uint16_t vlan_id, bool leave);

#endif /* RCD_LINK_H */
