/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A link of a test's own, in a network namespace of its own: the engine has one end by AF_PACKET,
 * and the test the other. A thread there answers ARP and ND for peers, and counts what it sees.
 */
#ifndef LINK_H
#define LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_arp.h"
#include "rcd_cm.h"
#include "rcd_nd.h"
#include "rcd_pkt.h"

/** The test's end, and what was seen there. Counts are atomic. */
struct link {
	int sock;
	uint8_t peer_mac
		[RCD_MAC_LEN]; /**< it answers by it for 10.78.0.0/24, fd78::/120: link_be() */
	uint32_t asked;        /**< ARP requests and solicitations of the engine */
	uint32_t answers;      /**< ARP replies and advertisements of the engine */
	uint32_t rep_id;       /**< of the last REP: the engine's ID */
	uint32_t dreps;
	uint32_t dreps_astray;       /**< to another MAC than the question came from */
	uint32_t to_qpn;             /**< destination of the last RoCE packet that is no MAD */
	uint8_t to_mac[RCD_MAC_LEN]; /**< its MAC: link_went_to() */
};

/** What questions of strangers come from: answers have to go there. */
extern const uint8_t link_stranger_mac[RCD_MAC_LEN];

/** Make the namespace and the pair v0, v1. @return NULL, or why that can't be done here */
const char *
link_make(void);

/** Take the end v1, and answer there. */
void
link_open(struct link *link);

/** Answer by another MAC from now on. */
void
link_be(struct link *link, const uint8_t *mac);

/** Whether the last RoCE packet that is no MAD went to a MAC. */
bool
link_went_to(const struct link *link, const uint8_t *mac);

/** A frame into the link. */
void
link_send(struct link *link, const void *frame, size_t len);

/** An IPv4 address 10.net.high.low as a GID. */
struct rcd_gid
link_gid(uint8_t net, uint8_t high, uint8_t low);

/** Ask for an address, or tell of one's own when it is the sender's. @param vlan_id 0: untagged */
void
link_arp(struct link *link, const struct rcd_gid *sender, const uint8_t *mac,
	const struct rcd_gid *target, uint16_t vlan_id);

/** An IPv6 address fd<net>::high:low as a GID. */
struct rcd_gid
link_gid6(uint8_t net, uint8_t high, uint8_t low);

/** Neighbour discovery, from an address to another. @param vlan_id 0: untagged */
void
link_nd(struct link *link, const struct rcd_gid *sender, const struct rcd_gid *to,
	const struct rcd_nd *nd, uint16_t vlan_id);

/** Ask for an address of IPv6. */
void
link_nd_ask(struct link *link, const struct rcd_gid *sender, const uint8_t *mac,
	const struct rcd_gid *target, uint16_t vlan_id);

/** Tell an address of IPv6 that another has a MAC. */
void
link_nd_tell(struct link *link, const struct rcd_gid *sender, const uint8_t *mac,
	const struct rcd_gid *to, uint16_t vlan_id);

/** A RoCE packet with a payload of 8 bytes or of a MAD. */
void
link_roce(struct link *link, const struct rcd_path *path, const struct rcd_roce *roce,
	const void *payload, uint32_t len);

/** The way from an address to another, from a MAC. */
struct rcd_path
link_path(const struct rcd_gid *sgid, const struct rcd_gid *dgid, const uint8_t *smac,
	const uint8_t *dmac, uint16_t vlan_id);

/** A CM message to QP1. */
void
link_cm(struct link *link, const struct rcd_path *path, const struct rcd_cm *msg);

#endif /* LINK_H */
