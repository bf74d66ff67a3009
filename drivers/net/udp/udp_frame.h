/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames to and from what a socket knows of a datagram. Pure.
 */
#ifndef UDP_FRAME_H
#define UDP_FRAME_H

#include <netinet/in.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <stdbool.h>
#include <stdint.h>

/** Bytes of headers before a datagram. */
#define UDP_FRAME_HDR_LEN4                                                                         \
	(RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
#define UDP_FRAME_HDR_LEN6                                                                         \
	(RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr))

/** All that datagrams of one call have in common. Addresses and ports in network byte order. */
struct udp_flow {
	struct in6_addr src, dst; /**< IPv4 in the first four bytes, with zeroes behind */
	uint16_t dport;
	uint8_t tclass; /**< TOS or traffic class, ECN among it */
	uint8_t hop_limit;
	bool v6;
};

/** A frame that is to be sent. */
struct udp_frame {
	struct udp_flow flow;
	uint16_t id;    /**< of IPv4, in host byte order */
	uint16_t sport; /**< in host byte order */
	uint16_t l3_len;
	uint16_t hdr_len; /**< bytes before the datagram, all in the first segment */
	uint16_t len;     /**< of the datagram */
};

static inline bool
udp_flow_same(const struct udp_flow *a, const struct udp_flow *b)
{
	return a->v6 == b->v6 && a->dport == b->dport && a->tclass == b->tclass &&
		a->hop_limit == b->hop_limit && memcmp(&a->dst, &b->dst, sizeof(a->dst)) == 0 &&
		memcmp(&a->src, &b->src, sizeof(a->src)) == 0;
}

/**
 * What is in a frame.
 *
 * @return false: it is no UDP in IPv4 or IPv6, has a tag, options, is a fragment or cut
 */
bool
udp_frame_parse(const struct rte_mbuf *mbuf, struct udp_frame *frame);

/**
 * Write what the kernel will write instead, and the ICRC for it.
 *
 * @param change  bits of the ICRC that become others, as udp_icrc_change() tells
 */
void
udp_frame_amend(struct rte_mbuf *mbuf, const struct udp_frame *frame, uint16_t id, uint16_t sport,
	uint32_t change);

/**
 * Headers before a datagram.
 *
 * @param hdr   UDP_FRAME_HDR_LEN4 or _LEN6 bytes before it
 * @param flow  of whom sent it: dport is the port of the socket here
 * @param mac   that it is sent to
 * @param sport in network byte order
 */
void
udp_frame_build(uint8_t *hdr, const struct udp_flow *flow, const struct rte_ether_addr *mac,
	uint16_t sport, uint16_t id, uint16_t len);

#endif /* UDP_FRAME_H */
