/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What is asked of a device by ARP, neighbour discovery and echo requests, and which frame answers.
 */
#ifndef ASK_H
#define ASK_H

#include <stdbool.h>

struct rte_mbuf;
struct rte_mempool;

/** What is asked of the device, in a frame that is right down to its checksums. */
enum question {
	ASK_ARP,
	ASK_ARP_VLAN,
	ASK_ND,
	ASK_ECHO,
	ASK_ECHO6,
	ASK_COUNT,
};

/** The frame that asks. */
struct rte_mbuf *
ask(struct rte_mempool *pool, enum question question);

/** Whether this frame is the answer. */
bool
answered_by(const struct rte_mbuf *mbuf, enum question question);

#endif /* ASK_H */
