/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a message of rtnetlink about a netdev says, as far as devices have use for it. What is
 * shorter or longer than it should be says nothing.
 *
 * Threads: the control thread.
 */
#ifndef RCD_NL_LINK_H
#define RCD_NL_LINK_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

#include "rcd_eth.h"

struct rcd_nl_link {
	bool up;
	uint32_t mtu; /**< bytes; 0: not said */
	bool has_mac;
	uint8_t mac[RCD_MAC_LEN];
	bool has_promiscuity, promiscuous;
	bool has_groups, all_groups;
	bool has_xdp, xdp;
};

/** The tag of a VLAN's netdev, and the netdev that it is on. */
struct rcd_nl_vlan {
	uint32_t lower; /**< number of that netdev */
	uint16_t vlan_id;
};

/** Read RTM_NEWLINK; RTM_DELLINK is of one that is down. @param nlh  with a whole ifinfomsg */
void
rcd_nl_link_read(const struct nlmsghdr *nlh, struct rcd_nl_link *link);

/**
 * Read it as one of a VLAN on a netdev of the same namespace.
 *
 * @param nlh  with a whole ifinfomsg
 * @return false: it is none, or is elsewhere
 */
bool
rcd_nl_link_read_vlan(const struct nlmsghdr *nlh, struct rcd_nl_vlan *vlan);

#endif /* RCD_NL_LINK_H */
