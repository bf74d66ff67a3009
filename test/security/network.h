/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the tests of the network share: the engine, the link into which they inject, its counters.
 */
#ifndef NETWORK_H
#define NETWORK_H

#include "link.h"
#include "rig.h"

#define SOME                                                                                       \
	50 /**< packets that come besides: the kernel's, or of neighbours that are asked again */
#define VLAN 7 /**< of 10.79.0.0/16 and fd79::/64 */

extern struct rig rig;
extern struct link far; /**< the test's end */
extern uint8_t engine_mac[RCD_MAC_LEN];

/** A counter of p0. @return -1 when it has not counted anything */
long long
counter(const char *name);

/** Wait until a counter has grown by so much. @return whether it has, and by no more */
bool
grows(const char *name, long long before, long long by);

/** The value of a counter that grows no more. */
long long
settles(const char *name);

/** Wait until so much was told or dropped by rate since two counts. @return how much was */
long long
told_or_limited(long long told, long long limited, long long least);

/** When settles() last saw its counter change, ms. */
uint64_t
last_change(void);

/** A node on p0. Its place of the untagged address, and of the tagged one. */
void
open_node(struct node *node, uint32_t type, uint8_t *plain, uint8_t *tagged);

/** An address handle of a node. @return 0 or -errno */
int
new_ah(struct node *node, uint8_t sgid_index, const struct rcd_gid *dgid, uint32_t *handle);

/** An RC queue pair whose peer is number 0x4242 at 10.78.0.2. */
void
join_peer(struct node *node, uint8_t sgid_index);

/** A packet from the peer of join_peer() to its queue pair. */
void
to_rc(const struct node *node, struct rcd_roce roce, uint16_t vlan_id, uint32_t len);

/** Send by an address handle, or by a connection. @return whether it went to a MAC */
bool
sends_to(struct node *node, uint32_t ah, uint32_t qpn, const uint8_t *mac, int limit_ms);

/**
 * The peer has a connection; somebody with its address asks for others of the same queue pair, and
 * for thousands of what nobody offers.
 */
void
requests_of_nobody(void);

/** Strangers and a neighbour send ND by the thousand, and connections go on. */
void
floods_of_nd(void);

/** Questions and answers of ND that are not for the VLAN of their address. */
void
nd_of_another_vlan(void);

/** Acknowledges that end hundreds of requests each, many of them at once. */
void
acknowledges_of_much(void);

/** A burst that a budget cut, with packets for a group waiting: what is left is still checked. */
void
rest_behind_groups(void);

#endif /* NETWORK_H */
