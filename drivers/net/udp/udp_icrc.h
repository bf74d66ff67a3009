/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * RoCE's invariant CRC amended for what the kernel writes into headers: an IPv4 identification and
 * the port of the socket (InfiniBand Architecture Specification, annex A17, of what it covers).
 *
 * Threads: one at a time.
 */
#ifndef UDP_ICRC_H
#define UDP_ICRC_H

#include <stdint.h>

#define UDP_ICRC_LEN  4  /**< bytes of it */
#define UDP_ICRC_LENS 64 /**< lengths that are remembered */

/** What each bit changes, for packets of one length. */
struct udp_icrc_len {
	uint32_t key; /**< of length and IP header; 0: none is here */
	uint32_t id[16];
	uint32_t sport[16];
};

/** All zero: nothing is remembered. */
struct udp_icrc {
	struct udp_icrc_len lens[UDP_ICRC_LENS];
};

/**
 * How the CRC of a packet changes with its header.
 *
 * @param l3_len  bytes of the IP header: 20 or 40; only that of IPv4 has an identification
 * @param len     bytes that the CRC is over, from the IP header on
 * @param id      bits of the identification that become others, in host byte order
 * @param sport   likewise, of the source's port
 * @return bits of the CRC that become others
 */
uint32_t
udp_icrc_change(struct udp_icrc *icrc, uint32_t l3_len, uint32_t len, uint16_t id, uint16_t sport);

#endif /* UDP_ICRC_H */
