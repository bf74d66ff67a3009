/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Every length of a frame is checked before what is behind it is read: whoever sends by a port may
 * send anything.
 */
#include "udp_frame.h"

#include <string.h>

#include "udp_icrc.h"

static bool
udp_frame_parse4(const uint8_t *at, uint32_t room, struct udp_frame *frame, uint32_t *l3_total)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(const void *)at;

	if (room < sizeof(*ip) + sizeof(struct rte_udp_hdr) ||
		ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_UDP ||
		(ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)) !=
			0)
		return false;
	memcpy(&frame->flow.src, &ip->src_addr, sizeof(ip->src_addr));
	memcpy(&frame->flow.dst, &ip->dst_addr, sizeof(ip->dst_addr));
	frame->flow.tclass = ip->type_of_service;
	frame->flow.hop_limit = ip->time_to_live;
	frame->id = rte_be_to_cpu_16(ip->packet_id);
	frame->l3_len = sizeof(*ip);
	*l3_total = rte_be_to_cpu_16(ip->total_length);
	return true;
}

static bool
udp_frame_parse6(const uint8_t *at, uint32_t room, struct udp_frame *frame, uint32_t *l3_total)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(const void *)at;

	if (room < sizeof(*ip) + sizeof(struct rte_udp_hdr) || at[0] >> 4 != 6 ||
		ip->proto != IPPROTO_UDP)
		return false;
	/* Arrays, or structs of arrays, by the version of DPDK. */
	memcpy(&frame->flow.src, &ip->src_addr, sizeof(frame->flow.src));
	memcpy(&frame->flow.dst, &ip->dst_addr, sizeof(frame->flow.dst));
	frame->flow.tclass = (uint8_t)(rte_be_to_cpu_32(ip->vtc_flow) >> RTE_IPV6_HDR_TC_SHIFT);
	frame->flow.hop_limit = ip->hop_limits;
	frame->flow.v6 = true;
	frame->l3_len = sizeof(*ip);
	*l3_total = (uint32_t)sizeof(*ip) + rte_be_to_cpu_16(ip->payload_len);
	return true;
}

bool
udp_frame_parse(const struct rte_mbuf *mbuf, struct udp_frame *frame)
{
	const uint8_t *data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	uint32_t room = rte_pktmbuf_data_len(mbuf), l3_total, udp_len;
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)(const void *)data;
	const struct rte_udp_hdr *udp;
	bool fine;

	memset(frame, 0, sizeof(*frame));
	if (room < sizeof(*eth))
		return false;
	data += sizeof(*eth);
	room -= (uint32_t)sizeof(*eth);
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		fine = udp_frame_parse4(data, room, frame, &l3_total);
	else
		fine = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) &&
			udp_frame_parse6(data, room, frame, &l3_total);
	if (!fine || l3_total > rte_pktmbuf_pkt_len(mbuf) - sizeof(*eth))
		return false;
	udp = (const struct rte_udp_hdr *)(const void *)(data + frame->l3_len);
	udp_len = rte_be_to_cpu_16(udp->dgram_len);
	if (udp_len < sizeof(*udp) || udp_len + frame->l3_len != l3_total || udp->dst_port == 0)
		return false;
	frame->flow.dport = udp->dst_port;
	frame->sport = rte_be_to_cpu_16(udp->src_port);
	frame->hdr_len = (uint16_t)(sizeof(*eth) + frame->l3_len + sizeof(*udp));
	frame->len = (uint16_t)(udp_len - sizeof(*udp));
	return true;
}

/* Bytes of a packet that may lie in several segments. */
static void
udp_frame_flip(struct rte_mbuf *mbuf, uint32_t at, const uint8_t *bits, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, at++) {
		while (at >= rte_pktmbuf_data_len(mbuf)) {
			at -= rte_pktmbuf_data_len(mbuf);
			mbuf = mbuf->next;
		}
		*rte_pktmbuf_mtod_offset(mbuf, uint8_t *, at) ^= bits[i];
	}
}

void
udp_frame_amend(struct rte_mbuf *mbuf, const struct udp_frame *frame, uint16_t id, uint16_t sport,
	uint32_t change)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, RTE_ETHER_HDR_LEN);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(void *)(ip + frame->l3_len);
	/* The lowest byte of the CRC is sent first. */
	const uint8_t bits[UDP_ICRC_LEN] = { (uint8_t)change, (uint8_t)(change >> 8),
		(uint8_t)(change >> 16), (uint8_t)(change >> 24) };

	/* The header says what the ICRC is right for: it may be amended again. */
	if (!frame->flow.v6)
		((struct rte_ipv4_hdr *)(void *)ip)->packet_id = rte_cpu_to_be_16(id);
	udp->src_port = rte_cpu_to_be_16(sport);
	udp_frame_flip(
		mbuf, (uint32_t)frame->hdr_len + frame->len - UDP_ICRC_LEN, bits, UDP_ICRC_LEN);
}

static void
udp_frame_build4(struct rte_ipv4_hdr *ip, const struct udp_flow *flow, uint16_t id, uint16_t len)
{
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = flow->tclass,
		.total_length = rte_cpu_to_be_16(
			(uint16_t)(len + sizeof(*ip) + sizeof(struct rte_udp_hdr))),
		.packet_id = rte_cpu_to_be_16(id),
		/* Nobody sends RoCE without. */
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = flow->hop_limit,
		.next_proto_id = IPPROTO_UDP,
	};
	memcpy(&ip->src_addr, &flow->src, sizeof(ip->src_addr));
	memcpy(&ip->dst_addr, &flow->dst, sizeof(ip->dst_addr));
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static void
udp_frame_build6(struct rte_ipv6_hdr *ip, const struct udp_flow *flow, uint16_t len)
{
	*ip = (struct rte_ipv6_hdr){
		.vtc_flow = rte_cpu_to_be_32(
			6u << 28 | (uint32_t)flow->tclass << RTE_IPV6_HDR_TC_SHIFT),
		.payload_len = rte_cpu_to_be_16((uint16_t)(len + sizeof(struct rte_udp_hdr))),
		.proto = IPPROTO_UDP,
		.hop_limits = flow->hop_limit,
	};
	memcpy(&ip->src_addr, &flow->src, sizeof(ip->src_addr));
	memcpy(&ip->dst_addr, &flow->dst, sizeof(ip->dst_addr));
}

void
udp_frame_build(uint8_t *hdr, const struct udp_flow *flow, const struct rte_ether_addr *mac,
	uint16_t sport, uint16_t id, uint16_t len)
{
	/* Whose it is the kernel does not tell; nobody's. */
	static const struct rte_ether_addr someone = { { 2, 0, 0, 0, 0, 0 } };
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)(void *)hdr;
	uint8_t *ip = hdr + sizeof(*eth);
	struct rte_udp_hdr *udp;

	eth->dst_addr = *mac;
	eth->src_addr = someone;
	eth->ether_type = flow->v6 ? RTE_BE16(RTE_ETHER_TYPE_IPV6) : RTE_BE16(RTE_ETHER_TYPE_IPV4);
	if (flow->v6)
		udp_frame_build6((struct rte_ipv6_hdr *)(void *)ip, flow, len);
	else
		udp_frame_build4((struct rte_ipv4_hdr *)(void *)ip, flow, id, len);
	ip += flow->v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr);
	udp = (struct rte_udp_hdr *)(void *)ip;
	*udp = (struct rte_udp_hdr){ .src_port = sport,
		.dst_port = flow->dport,
		.dgram_len = rte_cpu_to_be_16((uint16_t)(len + sizeof(*udp))) };
}
