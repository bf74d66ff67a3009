/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Where the sums of TCP (RFC 9293, 3.1) and UDP (RFC 768) are, and the sum itself.
 */
#include "rcd_csum.h"

#include "rcd_bytes.h"
#include "rcd_eth.h"
#include "rcd_ip.h"

#define TCP_LEN 20
#define UDP_LEN 8

/* The protocol behind an IP header that all ports understand. @return -1: it is none of those */
static int
csum_protocol(uint16_t ethertype, const uint8_t *ip, size_t len, struct rcd_csum_layout *layout)
{
	struct rcd_ipv4 ipv4;
	struct rcd_ipv6 ipv6;

	layout->ipv6 = ethertype == RCD_ETHERTYPE_IPV6;
	if (layout->ipv6) {
		layout->l3_len = RCD_IPV6_LEN;
		return rcd_ipv6_parse(ip, len, &ipv6) == RCD_VERDICT_OK ? ipv6.next_header : -1;
	}
	layout->l3_len = RCD_IPV4_LEN;
	/* With an option that is a route it says another destination than the one in the sum. */
	if (ethertype != RCD_ETHERTYPE_IPV4 || rcd_ipv4_parse(ip, len, &ipv4) != RCD_VERDICT_OK ||
		ipv4.fragment || ipv4.hdr_len != RCD_IPV4_LEN)
		return -1;
	return ipv4.protocol;
}

bool
rcd_csum_layout_parse(const uint8_t *frame, size_t len, uint16_t start, uint16_t offset,
	struct rcd_csum_layout *layout)
{
	struct rcd_eth eth;
	int protocol;

	if (rcd_eth_parse(frame, len, &eth) != RCD_VERDICT_OK)
		return false;
	layout->l2_len = (uint16_t)rcd_eth_len(&eth);
	protocol =
		csum_protocol(eth.ethertype, frame + layout->l2_len, len - layout->l2_len, layout);
	layout->udp = protocol == RCD_IP_PROTO_UDP;
	if (!layout->udp && protocol != RCD_IP_PROTO_TCP)
		return false;
	/* Drivers look for the whole header. */
	layout->l4_len = layout->udp ? UDP_LEN : TCP_LEN;
	return start == layout->l2_len + layout->l3_len &&
		offset == (layout->udp ? RCD_CSUM_UDP : RCD_CSUM_TCP) &&
		len >= (size_t)start + layout->l4_len;
}

bool
rcd_csum_finish(uint8_t *frame, size_t len, uint16_t start, uint16_t offset)
{
	uint16_t sum;

	if ((size_t)start + offset + sizeof(sum) > len)
		return false;
	sum = rcd_csum_fold(rcd_csum_add(0, frame + start, len - start));
	/* To UDP that would be none; to others it is the same number. */
	rcd_put_be16(frame + start + offset, sum != 0 ? sum : UINT16_MAX);
	return true;
}
