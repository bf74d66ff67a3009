/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Whose a packet is, told from its headers. What most packets show at a few fixed places is looked
 * at by who asks (rcd_inline.c); this is for those that may be ours.
 *
 * Threads: the lcore.
 */
#ifndef RCD_INLINE_WHOSE_H
#define RCD_INLINE_WHOSE_H

struct rcd_lcore;
struct rcd_lport;
struct rte_mbuf;

enum rcd_inline_whose {
	RCD_INLINE_PROGRAMS,
	RCD_INLINE_OURS,
	RCD_INLINE_BOTHS, /**< told to all: of groups, and of neighbours that have another MAC */
};

/** Whose a packet is that came to a device. */
enum rcd_inline_whose
rcd_inline_whose(
	const struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rte_mbuf *mbuf);

#endif /* RCD_INLINE_WHOSE_H */
