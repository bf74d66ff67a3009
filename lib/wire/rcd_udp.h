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

/**
 * The source port of a connection's packets, which spreads connections over paths and queues: of
 * the flow label, or of both queue pairs where that is 0. Linux does the same
 * (rdma_get_udp_sport()), and so both ends of a connection come to one port.
 *
 * @param qpn, dest_qpn  in any order
 */
static inline uint16_t
rcd_udp_roce_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t mixed = flow_label;

	if (mixed == 0) {
		mixed = (uint64_t)qpn * dest_qpn;
		mixed ^= mixed >> 20;
		mixed ^= mixed >> 40;
		mixed &= 0xfffff;
	}
	return (uint16_t)(0xc000 | ((mixed & 0x3fff) ^ ((mixed & 0xfc000) >> 14)));
}

#endif /* RCD_UDP_H */
