/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A whole packet: from an Ethernet frame, or from an IP packet, to a judged view of its headers,
 * and from header values back to bytes.
 *
 * Frames are contiguous in memory and belong to the caller; a view points into its frame and is
 * good for as long as the frame is. Nothing here allocates or keeps state; all functions may be
 * called from any thread.
 */
#ifndef RCD_PKT_H
#define RCD_PKT_H

#include "rcd_eth.h"
#include "rcd_icrc.h"
#include "rcd_ip.h"
#include "rcd_limits.h"
#include "rcd_roce.h"
#include "rcd_udp.h"

/** Most header bytes before the payload of a RoCEv2 frame: tagged Ethernet, IPv6, UDP, RoCE. */
#define RCD_PKT_HDR_MAX_LEN                                                                        \
	(RCD_ETH_LEN + RCD_VLAN_TAG_LEN + RCD_IPV6_LEN + RCD_UDP_LEN + RCD_ROCE_HDR_MAX_LEN)

/** Most bytes behind the payload: padding and ICRC. */
#define RCD_PKT_TAIL_MAX_LEN (3 + RCD_ICRC_LEN)

/** Received bytes. */
struct rcd_frame {
	const uint8_t *data;
	uint32_t len; /**< bytes */
};

/**
 * View of a received packet.
 *
 * With verdict OK every field is filled. With another verdict the headers in front of the place
 * where the parser stopped are: the addresses when ip is not NULL, the ports when dport is not 0.
 */
struct rcd_pkt {
	const uint8_t *ip;      /**< first byte of the IP header, in the caller's frame, or NULL */
	const uint8_t *payload; /**< first payload byte */
	uint16_t ip_len;        /**< bytes from the IP header to the end of the ICRC */
	uint16_t payload_len;   /**< bytes, pad not included */
	uint8_t l3;             /**< enum rcd_l3 */
	uint8_t tclass;         /**< TOS or traffic class; the low two bits are ECN */
	uint8_t hop_limit;      /**< TTL or hop limit */
	bool dont_fragment;     /**< IPv4 only */
	uint16_t ipv4_id;
	uint16_t sport;      /**< UDP ports; 0 when no UDP header was reached */
	uint16_t dport;      /**< RCD_UDP_PORT_ROCE when the verdict is OK */
	uint16_t udp_csum;   /**< as received; not judged */
	uint32_t flow_label; /**< IPv6 only, 20 bits */
	struct rcd_gid sgid;
	struct rcd_gid dgid;
	struct rcd_eth eth; /**< all zero when parsing began at the IP header */
	struct rcd_roce roce;
};

/**
 * Parse an Ethernet frame. Every length is checked before a byte behind it is read. Bytes behind
 * the IP packet (Ethernet padding) are ignored. The ICRC is not computed: see rcd_pkt_icrc_ok().
 *
 * @param data  frame
 * @param len   readable bytes
 * @param pkt   view to fill
 * @return RCD_VERDICT_OK for a well-formed RoCEv2 packet, else what it is or what is wrong;
 *         never RCD_VERDICT_ICRC or a verdict of ARP_*, ICMP_* and MAD_* contents
 */
enum rcd_verdict
rcd_pkt_parse(const uint8_t *data, size_t len, struct rcd_pkt *pkt);

/**
 * Parse a packet that begins with its IP header. As rcd_pkt_parse(); pkt->eth is zeroed.
 *
 * @param l3  what the layer below says it is; the version field must agree
 */
enum rcd_verdict
rcd_pkt_parse_ip(enum rcd_l3 l3, const uint8_t *data, size_t len, struct rcd_pkt *pkt);

/**
 * Parse a burst of Ethernet frames.
 *
 * @param frames    @p count frames
 * @param pkts      @p count views to fill
 * @param verdicts  @p count verdicts to fill
 * @param count     any number; RCD_BURST_MAX keeps it within the cache
 * @return how many are RCD_VERDICT_OK
 */
unsigned int
rcd_pkt_parse_burst(const struct rcd_frame *frames, struct rcd_pkt *pkts,
	enum rcd_verdict *verdicts, unsigned int count);

/** The ICRC that the packet carries. @param pkt a view with verdict OK */
static inline uint32_t
rcd_pkt_icrc_stored(const struct rcd_pkt *pkt)
{
	return rcd_get_le32(pkt->ip + pkt->ip_len - RCD_ICRC_LEN);
}

/** The ICRC that the packet should carry. @param pkt a view with verdict OK */
static inline uint32_t
rcd_pkt_icrc_computed(const struct rcd_pkt *pkt)
{
	return rcd_icrc((enum rcd_l3)pkt->l3, pkt->ip, pkt->ip_len - (size_t)RCD_ICRC_LEN);
}

/** Whether the two agree. @param pkt a view with verdict OK */
static inline bool
rcd_pkt_icrc_ok(const struct rcd_pkt *pkt)
{
	return rcd_pkt_icrc_stored(pkt) == rcd_pkt_icrc_computed(pkt);
}

/* rcd_icrc.c */

/**
 * Check the ICRCs of a burst that rcd_pkt_parse_burst() filled: the verdict of a packet that was
 * OK becomes RCD_VERDICT_ICRC when its ICRC is wrong. Packets with other verdicts are passed over.
 *
 * @return how many are still RCD_VERDICT_OK
 */
unsigned int
rcd_pkt_icrc_check_burst(
	const struct rcd_pkt *pkts, enum rcd_verdict *verdicts, unsigned int count);

/**
 * Whether the ICRC is right for some IPv4 identification, whichever the packet has: for who does
 * not know it. One wrong ICRC in 65536 is. Never of IPv6, which has none.
 *
 * @param pkt  a view with verdict OK, or ICRC
 */
bool
rcd_pkt_icrc_any_id(const struct rcd_pkt *pkt);

/** Everything below the BTH of a packet to send. */
struct rcd_path {
	uint8_t smac[RCD_MAC_LEN];
	uint8_t dmac[RCD_MAC_LEN];
	bool tagged; /**< send an 802.1Q tag with vlan_tci */
	uint16_t vlan_tci;
	uint8_t l3; /**< enum rcd_l3; for IPv4 both GIDs are mapped addresses */
	uint8_t tclass;
	uint8_t hop_limit;
	uint16_t sport;      /**< UDP source port */
	uint16_t ipv4_id;    /**< IPv4 only; the ICRC covers it */
	uint32_t flow_label; /**< IPv6 only, 20 bits */
	struct rcd_gid sgid;
	struct rcd_gid dgid;
};

/** Room for the headers of a frame below the BTH, in whole words for copying. */
#define RCD_PKT_HDR_ROOM 72

/**
 * The headers below the BTH, as all packets of a path have them: to be copied, lengths and the IPv4
 * identification then put in. Made once for a connection.
 */
struct rcd_pkt_hdr {
	uint8_t bytes[RCD_PKT_HDR_ROOM]; /**< first the destination's MAC */
	uint8_t len;                     /**< bytes of it */
	uint8_t ip_offset;               /**< where the IP header begins */
	uint8_t l3;                      /**< enum rcd_l3 */
	uint32_t csum; /**< sum of the IPv4 header without what differs, host order words */
};

/* rcd_pkt.c */

/** Make them. path->ipv4_id is not looked at. */
void
rcd_pkt_hdr_init(struct rcd_pkt_hdr *hdr, const struct rcd_path *path);

/** Bytes of all headers of a frame on @p path with this opcode. */
size_t
rcd_pkt_hdr_len(const struct rcd_path *path, uint8_t opcode);

/**
 * Write all headers of a frame, from Ethernet to the last extended header, as rcd_pkt_build().
 *
 * @param dst  as for that, and at least RCD_PKT_HDR_ROOM bytes
 * @return bytes written: where the payload begins
 */
size_t
rcd_pkt_build_on(uint8_t *dst, const struct rcd_pkt_hdr *hdr, uint16_t ipv4_id,
	const struct rcd_roce *roce, size_t payload_len);

/** Finish a frame that rcd_pkt_build_on() began, as rcd_pkt_seal(). */
size_t
rcd_pkt_seal_on(uint8_t *frame, const struct rcd_pkt_hdr *hdr, size_t hdr_len, size_t payload_len);

/**
 * Write all headers of a frame, from Ethernet to the last extended header. DF is set, the UDP
 * checksum is 0, lengths, the pad count and the IPv4 checksum are computed.
 *
 * @param dst          rcd_pkt_hdr_len() writable bytes
 * @param path         where the packet goes
 * @param roce         transport headers; bth.pad_count is not looked at
 * @param payload_len  bytes that will follow; with headers, pad and ICRC at most 65,535
 * @return bytes written: where the payload begins
 */
size_t
rcd_pkt_build(
	uint8_t *dst, const struct rcd_path *path, const struct rcd_roce *roce, size_t payload_len);

/**
 * Finish a frame whose headers rcd_pkt_build() wrote and whose payload has been put behind them:
 * write the padding (zeros) and the ICRC.
 *
 * @param frame        first byte of the Ethernet header; room for RCD_PKT_TAIL_MAX_LEN bytes
 *                     behind the payload
 * @param path         as given to rcd_pkt_build()
 * @param hdr_len      what that returned
 * @param payload_len  as given to it
 * @return bytes of the whole frame
 */
size_t
rcd_pkt_seal(uint8_t *frame, const struct rcd_path *path, size_t hdr_len, size_t payload_len);

#endif /* RCD_PKT_H */
