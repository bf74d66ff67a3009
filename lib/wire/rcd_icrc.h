/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The invariant CRC of RoCEv2 (IBTA Vol. 1, 7.8.1 and Annex A17), computed by ISA-L.
 *
 * CRC-32 over 8 bytes of ones, then the packet from the IP header to the end of the padding, in
 * which fields that routers may change count as ones: IPv4 TOS, TTL and header checksum; IPv6
 * traffic class, flow label and hop limit; UDP checksum; FECN, BECN and reserved bits of the BTH.
 * It follows the padding on the wire, least significant byte first.
 *
 * The packet is read as it is and never written: masking happens in the initial value. All
 * functions are pure and may be called from any thread.
 */
#ifndef RCD_ICRC_H
#define RCD_ICRC_H

#include <stddef.h>
#include <stdint.h>

#include "rcd_ip.h"

#define RCD_ICRC_LEN 4

/** Bytes that rcd_icrc_start() reads behind the first byte of the IP header: into the BTH. */
#define RCD_ICRC_START_LEN_IPV4 34
#define RCD_ICRC_START_LEN_IPV6 54

/**
 * Begin an ICRC.
 *
 * @param l3   which IP header @p ip points to; IPv4 without options
 * @param ip   IP header, UDP header and the start of the BTH: RCD_ICRC_START_LEN_* readable
 *             bytes. The same bytes are then given to rcd_icrc_update(), unchanged.
 * @return value for rcd_icrc_update()
 */
uint32_t
rcd_icrc_start(enum rcd_l3 l3, const uint8_t *ip);

/**
 * Go on over the next bytes; the first call begins with the IP header.
 *
 * @param crc  what rcd_icrc_start() or the last call returned
 * @return the ICRC over everything so far, host order: write it with rcd_put_le32()
 */
uint32_t
rcd_icrc_update(uint32_t crc, const uint8_t *src, size_t len);

/**
 * ICRC of a contiguous packet.
 *
 * @param ip   first byte of the IP header
 * @param len  bytes to the end of the padding, at least RCD_ICRC_START_LEN_*
 * @return the ICRC, host order
 */
uint32_t
rcd_icrc(enum rcd_l3 l3, const uint8_t *ip, size_t len);

#endif /* RCD_ICRC_H */
