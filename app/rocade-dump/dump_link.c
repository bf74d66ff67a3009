/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * From the bytes of a capture to a judged packet: the link types of libpcap that carry IP
 * (https://www.tcpdump.org/linktypes.html), then lib/wire.
 */
#include <arpa/inet.h>
#include <pcap/pcap.h>

#include "dump.h"

enum {
	SLL_LEN = 16,
	SLL_PROTOCOL_OFFSET = 14,
	SLL2_LEN = 20,
	SLL2_PROTOCOL_OFFSET = 0,
};

void
dump_addr_text(const struct rcd_gid *gid, char *buf)
{
	if (rcd_gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid->raw + 12, buf, DUMP_ADDR_SIZE);
	else
		inet_ntop(AF_INET6, gid->raw, buf, DUMP_ADDR_SIZE);
}

bool
dump_link_known(int dlt)
{
	return dlt == DLT_EN10MB || dlt == DLT_LINUX_SLL || dlt == DLT_LINUX_SLL2 ||
		dlt == DLT_RAW || dlt == DLT_IPV4 || dlt == DLT_IPV6;
}

static enum rcd_verdict
dump_link_parse_l3(uint16_t ethertype, struct dump_packet *packet)
{
	switch (ethertype) {
	case RCD_ETHERTYPE_IPV4:
		return rcd_pkt_parse_ip(RCD_L3_IPV4, packet->l3, packet->l3_len, &packet->pkt);
	case RCD_ETHERTYPE_IPV6:
		return rcd_pkt_parse_ip(RCD_L3_IPV6, packet->l3, packet->l3_len, &packet->pkt);
	case RCD_ETHERTYPE_ARP:
		return RCD_VERDICT_ARP;
	default:
		return RCD_VERDICT_OTHER_ETHERTYPE;
	}
}

/* A link header of fixed length with an EtherType in it. */
static enum rcd_verdict
dump_link_parse_cooked(
	const uint8_t *data, size_t hdr_len, size_t protocol_offset, struct dump_packet *packet)
{
	if (packet->cap_len < hdr_len)
		return RCD_VERDICT_ETH_SHORT;
	packet->l3 = data + hdr_len;
	packet->l3_len = packet->cap_len - hdr_len;
	return dump_link_parse_l3(rcd_get_be16(data + protocol_offset), packet);
}

/* No link header: the IP version tells. */
static enum rcd_verdict
dump_link_parse_raw(const uint8_t *data, struct dump_packet *packet)
{
	bool v6 = packet->cap_len > 0 && data[0] >> 4 == 6;

	packet->l3 = data;
	packet->l3_len = packet->cap_len;
	return dump_link_parse_l3(v6 ? RCD_ETHERTYPE_IPV6 : RCD_ETHERTYPE_IPV4, packet);
}

static enum rcd_verdict
dump_link_parse_ethernet(const uint8_t *data, struct dump_packet *packet)
{
	enum rcd_verdict verdict = rcd_pkt_parse(data, packet->cap_len, &packet->pkt);

	if (verdict != RCD_VERDICT_ETH_SHORT) {
		size_t eth_len = rcd_eth_len(&packet->pkt.eth);

		packet->l3 = data + eth_len;
		packet->l3_len = packet->cap_len - eth_len;
	}
	return verdict;
}

void
dump_link_parse(int dlt, const uint8_t *data, struct dump_packet *packet)
{
	packet->pkt = (struct rcd_pkt){ .ip = NULL };
	packet->l3 = NULL;
	packet->l3_len = 0;
	switch (dlt) {
	case DLT_EN10MB:
		packet->verdict = dump_link_parse_ethernet(data, packet);
		break;
	case DLT_LINUX_SLL:
		packet->verdict =
			dump_link_parse_cooked(data, SLL_LEN, SLL_PROTOCOL_OFFSET, packet);
		break;
	case DLT_LINUX_SLL2:
		packet->verdict =
			dump_link_parse_cooked(data, SLL2_LEN, SLL2_PROTOCOL_OFFSET, packet);
		break;
	default:
		packet->verdict = dump_link_parse_raw(data, packet);
		break;
	}
	if (packet->verdict != RCD_VERDICT_OK)
		return;
	packet->icrc_stored = rcd_pkt_icrc_stored(&packet->pkt);
	packet->icrc_computed = rcd_pkt_icrc_computed(&packet->pkt);
	if (packet->icrc_stored != packet->icrc_computed)
		packet->verdict = RCD_VERDICT_ICRC;
}
