/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the tests of the network share: the engine, the link into which they inject, its counters.
 */
#ifndef NETWORK_H
#define NETWORK_H

#include "link.h"
#include "rig.h"

extern struct rig rig;
extern struct link far; /**< the test's end */
extern uint8_t engine_mac[RCD_MAC_LEN];

/** A counter of p0. @return -1 when it has not counted anything */
long long
counter(const char *name);

/** The value of a counter that grows no more. */
long long
settles(const char *name);

/** A node on p0. Its place of the untagged address, and of the tagged one. */
void
open_node(struct node *node, uint32_t type, uint8_t *plain, uint8_t *tagged);

/**
 * The peer has a connection; somebody with its address asks for others of the same queue pair, and
 * for thousands of what nobody offers.
 */
void
requests_of_nobody(void);

#endif /* NETWORK_H */
