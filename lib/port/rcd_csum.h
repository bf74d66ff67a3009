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

/** What a port has to know of a frame. */
struct rcd_csum_layout {
	uint16_t l2_len; /**< bytes of the Ethernet header, with up to two tags */
	uint16_t l3_len; /**< bytes of the IP header */
	bool ipv6;
	bool udp; /**< else TCP */
};

/**
 * Whether a port can work it out: TCP or UDP, directly in IPv4 that is no fragment or in IPv6.
 *
 * @param len     of the frame, any
 * @param start   offset of the first byte that is summed, any
 * @param offset  of the checksum from there, any
 * @param layout  set when true is returned
 */
bool
rcd_csum_layout(const uint8_t *frame, size_t len, uint16_t start, uint16_t offset,
	struct rcd_csum_layout *layout);

/**
 * Work it out (RFC 1071) and put it there, in any protocol.
 *
 * @return false: that is not within the frame
 */
bool
rcd_csum_finish(uint8_t *frame, size_t len, uint16_t start, uint16_t offset);

#endif /* RCD_CSUM_H */
