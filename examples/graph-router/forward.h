/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What is forwarded, and where. A node before pkt_cls lets IPv4 on which a router may forward (RFC
 * 1812, 5.2 and 5.3), as DPDK's nodes look at addresses alone: sent to it and to no group, whole,
 * with a right header and hops left, between addresses of hosts. All else goes to pkt_drop. The
 * broadcast address of a network behind it is such an address.
 */
#ifndef FORWARD_H
#define FORWARD_H

#include <rte_ether.h>
#include <stdint.h>

/** Where packets to a prefix go. */
struct route {
	uint32_t prefix;          /**< host order */
	uint16_t port, len;       /**< of DPDK; bits of the prefix */
	struct rte_ether_hdr eth; /**< that they get; without the source */
};

/** @param text  PREFIX/LEN,PORT,MAC @return 0; -1: it is none */
int
forward_route(struct route *route, const char *text);

/** Its name, for struct rcd_node_conf's others. */
#define FORWARD_NODE "router_forward"

#endif /* FORWARD_H */
