/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Parse and build of whole packets, layer by layer. What a RoCEv2 packet must look like below the
 * BTH is in IBTA Vol. 1, Annex A17: UDP to port 4791 directly behind an IPv4 header without
 * options or an IPv6 header without extensions, and never in fragments.
 */
#include "rcd_pkt.h"

/* Cache lines of a frame that the headers of an untagged packet can touch. */
#define PREFETCH_BYTES 64

/* How many frames ahead of the one being parsed to fetch. */
#define PREFETCH_AHEAD 4

/*
 * From the UDP header on.
 *
 * l4_len: bytes that IP says follow its header. avail: how many of them are in the frame; less
 * than l4_len when the frame was cut, which is a verdict only for what would be RoCEv2.
 * defect: what was found wrong in the IP header, to be told once the port shows that it matters.
 */
static enum rcd_verdict
pkt_parse_udp(const uint8_t *l4, size_t l4_len, size_t avail, enum rcd_verdict defect,
	struct rcd_pkt *pkt)
{
	struct rcd_udp udp;
	enum rcd_verdict verdict = rcd_udp_parse(l4, avail < l4_len ? avail : l4_len, &udp);

	if (verdict != RCD_VERDICT_OK)
		return defect != RCD_VERDICT_OK ? defect : verdict;
	pkt->sport = udp.sport;
	pkt->dport = udp.dport;
	pkt->udp_csum = udp.csum;
	if (udp.dport != RCD_UDP_PORT_ROCE)
		return RCD_VERDICT_OTHER_UDP_PORT;
	if (defect != RCD_VERDICT_OK)
		return defect;
	if (udp.len != l4_len)
		return RCD_VERDICT_UDP_LENGTH;
	if (l4_len < RCD_UDP_LEN + RCD_BTH_LEN + RCD_ICRC_LEN)
		return RCD_VERDICT_BTH_SHORT;

	const uint8_t *bth = l4 + RCD_UDP_LEN;
	size_t payload_len = 0;

	verdict =
		rcd_roce_parse(bth, l4_len - RCD_UDP_LEN - RCD_ICRC_LEN, &pkt->roce, &payload_len);
	if (verdict != RCD_VERDICT_OK)
		return verdict;
	pkt->payload = bth + rcd_roce_hdr_len(pkt->roce.bth.opcode);
	pkt->payload_len = (uint16_t)payload_len;
	return RCD_VERDICT_OK;
}

static enum rcd_verdict
pkt_parse_ipv4(const uint8_t *data, size_t len, struct rcd_pkt *pkt)
{
	struct rcd_ipv4 ip;
	enum rcd_verdict verdict = rcd_ipv4_parse(data, len, &ip);

	if (verdict != RCD_VERDICT_OK)
		return verdict;
	pkt->ip = data;
	pkt->l3 = RCD_L3_IPV4;
	pkt->ip_len = ip.total_len;
	pkt->tclass = ip.tclass;
	pkt->hop_limit = ip.ttl;
	pkt->dont_fragment = ip.dont_fragment;
	pkt->ipv4_id = ip.id;
	pkt->flow_label = 0;
	pkt->sgid = rcd_gid_from_ipv4(ip.src);
	pkt->dgid = rcd_gid_from_ipv4(ip.dst);
	if (ip.fragment)
		return RCD_VERDICT_IP_FRAGMENT;
	if (ip.protocol != RCD_IP_PROTO_UDP)
		return ip.protocol == RCD_IP_PROTO_ICMP ? RCD_VERDICT_ICMP
							: RCD_VERDICT_OTHER_IP_PROTOCOL;

	enum rcd_verdict defect = RCD_VERDICT_OK;

	if (ip.total_len < ip.hdr_len || ip.total_len > len)
		defect = RCD_VERDICT_IPV4_LENGTH;
	else if (ip.hdr_len != RCD_IPV4_LEN)
		defect = rcd_ipv4_csum_ok(data, ip.hdr_len) ? RCD_VERDICT_IPV4_OPTIONS
							    : RCD_VERDICT_IPV4_CHECKSUM;
	else if (!rcd_ipv4_csum_ok(data, RCD_IPV4_LEN))
		defect = RCD_VERDICT_IPV4_CHECKSUM;
	return pkt_parse_udp(data + ip.hdr_len,
		ip.total_len < ip.hdr_len ? 0 : (size_t)ip.total_len - ip.hdr_len, len - ip.hdr_len,
		defect, pkt);
}

static enum rcd_verdict
pkt_parse_ipv6(const uint8_t *data, size_t len, struct rcd_pkt *pkt)
{
	struct rcd_ipv6 ip;
	enum rcd_verdict verdict = rcd_ipv6_parse(data, len, &ip);

	if (verdict != RCD_VERDICT_OK)
		return verdict;
	pkt->ip = data;
	pkt->l3 = RCD_L3_IPV6;
	pkt->ip_len = (uint16_t)(RCD_IPV6_LEN + ip.payload_len);
	pkt->tclass = ip.tclass;
	pkt->hop_limit = ip.hop_limit;
	pkt->dont_fragment = false;
	pkt->ipv4_id = 0;
	pkt->flow_label = ip.flow_label;
	pkt->sgid = ip.src;
	pkt->dgid = ip.dst;
	switch (ip.next_header) {
	case RCD_IP_PROTO_UDP:
		break;
	case RCD_IP_PROTO_ICMPV6:
		return RCD_VERDICT_ICMPV6;
	case RCD_IP_PROTO_FRAGMENT:
		return RCD_VERDICT_IP_FRAGMENT;
	default:
		return RCD_VERDICT_OTHER_IP_PROTOCOL;
	}

	/* No jumbograms: with the header the packet must stay within 16 bits. */
	bool fits =
		ip.payload_len <= len - RCD_IPV6_LEN && ip.payload_len <= UINT16_MAX - RCD_IPV6_LEN;

	return pkt_parse_udp(data + RCD_IPV6_LEN, ip.payload_len, len - RCD_IPV6_LEN,
		fits ? RCD_VERDICT_OK : RCD_VERDICT_IPV6_LENGTH, pkt);
}

static inline enum rcd_verdict
pkt_parse_ip(enum rcd_l3 l3, const uint8_t *data, size_t len, struct rcd_pkt *pkt)
{
	return l3 == RCD_L3_IPV4 ? pkt_parse_ipv4(data, len, pkt) : pkt_parse_ipv6(data, len, pkt);
}

enum rcd_verdict
rcd_pkt_parse_ip(enum rcd_l3 l3, const uint8_t *data, size_t len, struct rcd_pkt *pkt)
{
	pkt->ip = NULL;
	pkt->sport = 0;
	pkt->dport = 0;
	pkt->eth = (struct rcd_eth){ .tagged = false };
	return pkt_parse_ip(l3, data, len, pkt);
}

enum rcd_verdict
rcd_pkt_parse(const uint8_t *data, size_t len, struct rcd_pkt *pkt)
{
	pkt->ip = NULL;
	pkt->sport = 0;
	pkt->dport = 0;

	enum rcd_verdict verdict = rcd_eth_parse(data, len, &pkt->eth);

	if (verdict != RCD_VERDICT_OK)
		return verdict;

	size_t eth_len = rcd_eth_len(&pkt->eth);

	switch (pkt->eth.ethertype) {
	case RCD_ETHERTYPE_IPV4:
		return pkt_parse_ip(RCD_L3_IPV4, data + eth_len, len - eth_len, pkt);
	case RCD_ETHERTYPE_IPV6:
		return pkt_parse_ip(RCD_L3_IPV6, data + eth_len, len - eth_len, pkt);
	case RCD_ETHERTYPE_ARP:
		return RCD_VERDICT_ARP;
	default:
		return RCD_VERDICT_OTHER_ETHERTYPE;
	}
}

unsigned int
rcd_pkt_parse_burst(const struct rcd_frame *frames, struct rcd_pkt *pkts,
	enum rcd_verdict *verdicts, unsigned int count)
{
	unsigned int ok = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (i + PREFETCH_AHEAD < count) {
			const uint8_t *next = frames[i + PREFETCH_AHEAD].data;

			__builtin_prefetch(next);
			__builtin_prefetch(next + PREFETCH_BYTES);
		}
		verdicts[i] = rcd_pkt_parse(frames[i].data, frames[i].len, &pkts[i]);
		ok += verdicts[i] == RCD_VERDICT_OK;
	}
	return ok;
}

static size_t
pkt_l2_len(const struct rcd_path *path)
{
	return path->tagged ? RCD_ETH_LEN + RCD_VLAN_TAG_LEN : RCD_ETH_LEN;
}

static size_t
pkt_l3_len(const struct rcd_path *path)
{
	return path->l3 == RCD_L3_IPV4 ? RCD_IPV4_LEN : RCD_IPV6_LEN;
}

size_t
rcd_pkt_hdr_len(const struct rcd_path *path, uint8_t opcode)
{
	return pkt_l2_len(path) + pkt_l3_len(path) + RCD_UDP_LEN + rcd_roce_hdr_len(opcode);
}

static void
pkt_build_ip(uint8_t *dst, const struct rcd_path *path, uint16_t l4_len)
{
	if (path->l3 == RCD_L3_IPV4) {
		struct rcd_ipv4 ip = {
			.tclass = path->tclass,
			.ttl = path->hop_limit,
			.protocol = RCD_IP_PROTO_UDP,
			.total_len = (uint16_t)(RCD_IPV4_LEN + l4_len),
			.id = path->ipv4_id,
			.dont_fragment = true,
		};

		memcpy(ip.src, path->sgid.raw + 12, 4);
		memcpy(ip.dst, path->dgid.raw + 12, 4);
		rcd_ipv4_build(dst, &ip);
	} else {
		struct rcd_ipv6 ip = {
			.tclass = path->tclass,
			.hop_limit = path->hop_limit,
			.next_header = RCD_IP_PROTO_UDP,
			.payload_len = l4_len,
			.flow_label = path->flow_label,
			.src = path->sgid,
			.dst = path->dgid,
		};

		rcd_ipv6_build(dst, &ip);
	}
}

/* Where the fields are that differ from packet to packet. */
#define IPV4_TOTAL_LEN   2
#define IPV4_ID          4
#define IPV4_CSUM        10
#define IPV6_PAYLOAD_LEN 4
#define UDP_LENGTH       4

void
rcd_pkt_hdr_init(struct rcd_pkt_hdr *hdr, const struct rcd_path *path)
{
	struct rcd_path same = *path;
	struct rcd_eth eth = {
		.tagged = path->tagged,
		.vlan_tci = path->vlan_tci,
		.ethertype = path->l3 == RCD_L3_IPV4 ? RCD_ETHERTYPE_IPV4 : RCD_ETHERTYPE_IPV6,
	};
	struct rcd_udp udp = { .sport = path->sport, .dport = RCD_UDP_PORT_ROCE };
	uint8_t *ip;

	memset(hdr, 0, sizeof(*hdr));
	same.ipv4_id = 0;
	memcpy(eth.dst, path->dmac, RCD_MAC_LEN);
	memcpy(eth.src, path->smac, RCD_MAC_LEN);
	rcd_eth_build(hdr->bytes, &eth);
	hdr->l3 = path->l3;
	hdr->ip_offset = (uint8_t)pkt_l2_len(path);
	ip = hdr->bytes + hdr->ip_offset;
	pkt_build_ip(ip, &same, 0);
	rcd_udp_build(ip + pkt_l3_len(path), &udp);
	hdr->len = (uint8_t)(hdr->ip_offset + pkt_l3_len(path) + RCD_UDP_LEN);
	if (path->l3 == RCD_L3_IPV4) {
		rcd_put_be16(ip + IPV4_TOTAL_LEN, 0);
		rcd_put_be16(ip + IPV4_CSUM, 0);
		hdr->csum = (uint16_t)~rcd_csum_fold(rcd_csum_add(0, ip, RCD_IPV4_LEN));
	}
}

size_t
rcd_pkt_build_on(uint8_t *dst, const struct rcd_pkt_hdr *hdr, uint16_t ipv4_id,
	const struct rcd_roce *roce, size_t payload_len)
{
	uint8_t pad = rcd_roce_pad(payload_len);
	uint16_t l4_len = (uint16_t)(RCD_UDP_LEN + rcd_roce_hdr_len(roce->bth.opcode) +
		payload_len + pad + RCD_ICRC_LEN);
	uint8_t *ip = dst + hdr->ip_offset;
	uint8_t *bth = dst + hdr->len;

	memcpy(dst, hdr->bytes, RCD_PKT_HDR_ROOM);
	if (hdr->l3 == RCD_L3_IPV4) {
		uint16_t total_len = (uint16_t)(RCD_IPV4_LEN + l4_len);

		rcd_put_be16(ip + IPV4_TOTAL_LEN, total_len);
		rcd_put_be16(ip + IPV4_ID, ipv4_id);
		rcd_put_be16(
			ip + IPV4_CSUM, rcd_csum_fold((uint64_t)hdr->csum + total_len + ipv4_id));
	} else {
		rcd_put_be16(ip + IPV6_PAYLOAD_LEN, l4_len);
	}
	rcd_put_be16(bth - RCD_UDP_LEN + UDP_LENGTH, l4_len);

	size_t len = rcd_roce_build(bth, roce);

	bth[1] = (uint8_t)((bth[1] & ~0x30) | pad << 4);
	return hdr->len + len;
}

size_t
rcd_pkt_build(
	uint8_t *dst, const struct rcd_path *path, const struct rcd_roce *roce, size_t payload_len)
{
	uint8_t frame[RCD_PKT_HDR_ROOM + RCD_ROCE_HDR_MAX_LEN];
	struct rcd_pkt_hdr hdr;
	size_t len;

	rcd_pkt_hdr_init(&hdr, path);
	len = rcd_pkt_build_on(frame, &hdr, path->ipv4_id, roce, payload_len);
	memcpy(dst, frame, len);
	return len;
}

size_t
rcd_pkt_seal_on(uint8_t *frame, const struct rcd_pkt_hdr *hdr, size_t hdr_len, size_t payload_len)
{
	const uint8_t *ip = frame + hdr->ip_offset;
	uint8_t *end = frame + hdr_len + payload_len;
	uint8_t pad = rcd_roce_pad(payload_len);

	for (uint8_t i = 0; i < pad; i++)
		*end++ = 0;
	rcd_put_le32(end, rcd_icrc((enum rcd_l3)hdr->l3, ip, (size_t)(end - ip)));
	return (size_t)(end + RCD_ICRC_LEN - frame);
}

size_t
rcd_pkt_seal(uint8_t *frame, const struct rcd_path *path, size_t hdr_len, size_t payload_len)
{
	struct rcd_pkt_hdr hdr = { .l3 = path->l3, .ip_offset = (uint8_t)pkt_l2_len(path) };

	return rcd_pkt_seal_on(frame, &hdr, hdr_len, payload_len);
}
