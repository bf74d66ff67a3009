/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * UDP header (RFC 768). RoCEv2 sends a checksum of 0 and does not look at a received one: the
 * ICRC covers more (IBTA Vol. 1, Annex A17).
 */
#ifndef RCD_UDP_H
#define RCD_UDP_H

#include "rcd_bytes.h"
#include "rcd_verdict.h"

#define RCD_UDP_LEN 8

/** The destination port of every RoCEv2 packet, assigned by IANA. */
#define RCD_UDP_PORT_ROCE 4791

/** A UDP header, host order. */
struct rcd_udp {
	uint16_t sport;
	uint16_t dport;
	uint16_t len; /**< bytes, header included */
	uint16_t csum;
};

/**
 * Parse a UDP header. The length is not judged.
 *
 * @return RCD_VERDICT_OK or RCD_VERDICT_UDP_SHORT
 */
static inline enum rcd_verdict
rcd_udp_parse(const uint8_t *src, size_t len, struct rcd_udp *udp)
{
	if (len < RCD_UDP_LEN)
		return RCD_VERDICT_UDP_SHORT;
	udp->sport = rcd_get_be16(src);
	udp->dport = rcd_get_be16(src + 2);
	udp->len = rcd_get_be16(src + 4);
	udp->csum = rcd_get_be16(src + 6);
	return RCD_VERDICT_OK;
}

/** Write the header. @param dst RCD_UDP_LEN writable bytes */
static inline void
rcd_udp_build(uint8_t *dst, const struct rcd_udp *udp)
{
	rcd_put_be16(dst, udp->sport);
	rcd_put_be16(dst + 2, udp->dport);
	rcd_put_be16(dst + 4, udp->len);
	rcd_put_be16(dst + 6, udp->csum);
}

#endif /* RCD_UDP_H */
