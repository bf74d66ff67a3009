/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Congestion Experienced in a frame, as routers set it (RFC 3168, section 5).
 *
 * Threads: who owns the frame.
 */
#ifndef IMPAIR_MARK_H
#define IMPAIR_MARK_H

#include <rte_mbuf.h>
#include <stdbool.h>

/** Whether a packet is ECN-capable: of IPv4 or IPv6, untagged or in a VLAN, and says so. */
bool
impair_mark_can(const struct rte_mbuf *mbuf);

/** Mark such a packet; it is written to. The checksum of IPv4 is right if it was. */
void
impair_mark(struct rte_mbuf *mbuf);

#endif /* IMPAIR_MARK_H */
