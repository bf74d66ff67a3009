/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * GIDs: 16-byte addresses in network order. Over RoCEv2 a GID is the IPv6 address itself, or an
 * IPv4 address in its mapped form "::ffff:a.b.c.d" (IBTA Vol. 1, Annex A17).
 *
 * Threads: any.
 */
#ifndef RCD_GID_H
#define RCD_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rcd_api.h"

RCD_API_BEGIN

#define RCD_GID_LEN 16 /**< bytes */

/** A GID, network byte order. */
struct rcd_gid {
	uint8_t raw[RCD_GID_LEN]; /**< the most significant byte first */
};

/** The GID of an IPv4 address. @param addr 4 bytes, network order */
static inline struct rcd_gid
rcd_gid_from_ipv4(const uint8_t *addr)
{
	struct rcd_gid gid = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff } };

	memcpy(gid.raw + 12, addr, 4);
	return gid;
}

/** The GID of an IPv6 address. @param addr 16 bytes, network order */
static inline struct rcd_gid
rcd_gid_from_ipv6(const uint8_t *addr)
{
	struct rcd_gid gid;

	memcpy(gid.raw, addr, RCD_GID_LEN);
	return gid;
}

/** Whether both are the same address. */
static inline bool
rcd_gid_eq(const struct rcd_gid *a, const struct rcd_gid *b)
{
	return memcmp(a->raw, b->raw, RCD_GID_LEN) == 0;
}

/** Whether it stands for an IPv4 address, which is then in raw[12..15]. */
static inline bool
rcd_gid_is_ipv4(const struct rcd_gid *gid)
{
	static const uint8_t prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

/** The MAC that a multicast address has on Ethernet. @param mac 6 bytes, set */
static inline void
rcd_gid_multicast_mac(const struct rcd_gid *gid, uint8_t *mac)
{
	if (rcd_gid_is_ipv4(gid)) {
		/* RFC 1112, 6.4: the low 23 bits. */
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = gid->raw[13] & 0x7f;
		mac[4] = gid->raw[14];
		mac[5] = gid->raw[15];
	} else {
		/* RFC 2464, 7. */
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, gid->raw + 12, 4);
	}
}

RCD_API_END

#endif /* RCD_GID_H */
