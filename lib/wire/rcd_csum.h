/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames whose sender left a checksum to others: over what it goes, and where it belongs, stands
 * beside the frame (virtio 1.2, 5.1.6.2, VIRTIO_NET_HDR_F_NEEDS_CSUM), and the sum of the pseudo
 * header is in its place. A port does the rest where it knows the protocol, else this does.
 *
 * Threads: any. Frames are in one piece, and the caller's.
 */
#ifndef RCD_CSUM_H
#define RCD_CSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Offsets of checksums in their headers. */
#define RCD_CSUM_TCP 16
#define RCD_CSUM_UDP 6

/** What a port has to know of a frame. */
struct rcd_csum_layout {
	uint16_t l2_len; /**< bytes of the Ethernet header, with its tag if it has one */
	uint16_t l3_len; /**< bytes of the IP header */
	uint16_t l4_len; /**< bytes of the header with the sum; of TCP without options */
	bool ipv6;
	bool udp; /**< else TCP */
};

/**
 * Whether ports can work it out, as far as they differ: TCP or UDP, directly in IPv4 that has no
 * options and is no fragment or in IPv6, behind one tag at most.
 *
 * @param len     of the frame, any
 * @param start   offset of the first byte that is summed, any
 * @param offset  of the checksum from there, any
 * @param layout  set when true is returned
 */
bool
rcd_csum_layout_parse(const uint8_t *frame, size_t len, uint16_t start, uint16_t offset,
	struct rcd_csum_layout *layout);

/**
 * Work it out (RFC 1071) and put it there, in any protocol.
 *
 * @return false: that is not within the frame
 */
bool
rcd_csum_finish(uint8_t *frame, size_t len, uint16_t start, uint16_t offset);

#endif /* RCD_CSUM_H */
