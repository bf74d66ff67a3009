/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Membership of multicast groups, told to routers and snooping switches: IGMPv2 (RFC 2236) and
 * MLDv1 (RFC 2710), which routers of the later versions take too. Whole IP packets with the router
 * alert option (RFC 2113, RFC 2711) that both demand.
 */
#ifndef RCD_IGMP_H
#define RCD_IGMP_H

#include "rcd_gid.h"
#include "rcd_ip.h"

#define RCD_IP_PROTO_IGMP 2

/** Room for any of the packets: an IPv6 header, 8 bytes of options, 24 of MLD. */
#define RCD_MEMBERSHIP_MAX_LEN (RCD_IPV6_LEN + 8 + 24)

/**
 * Write a packet that tells of a membership, or of its end.
 *
 * @param dst    RCD_MEMBERSHIP_MAX_LEN writable bytes
 * @param src    of the sender; for an IPv6 group a link-local address, or the routers ignore it
 * @param group  IPv4 in its mapped form, or IPv6; of the family of src
 * @param leave  the end
 * @param to     set to where the packet goes
 * @return bytes of the IP packet
 */
size_t
rcd_membership_build(uint8_t *dst, const struct rcd_gid *src, const struct rcd_gid *group,
	bool leave, struct rcd_gid *to);

/**
 * Whether an IP packet asks for memberships: a query of any version of IGMP or MLD.
 *
 * @param ip   first byte of an IP header whose lengths are right
 * @param len  bytes from there
 */
bool
rcd_membership_is_query(enum rcd_l3 l3, const uint8_t *ip, size_t len);

#endif /* RCD_IGMP_H */
