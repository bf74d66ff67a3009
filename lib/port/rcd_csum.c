/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Where the sums of TCP (RFC 9293, 3.1) and UDP (RFC 768) are, and the sum itself.
 */
#include "rcd_csum.h"

#include "rcd_bytes.h"
#include "rcd_eth.h"
#include "rcd_ip.h"

#define ETHERTYPE_QINQ 0x88a8
#define TAGS_MAX       2
#define PROTO_TCP      6
#define TCP_CSUM       16 /**< offset of the checksum in its header */
#define UDP_CSUM       6
#define TCP_LEN        20
#define UDP_LEN        8
#define IPV4_FRAGMENT  0x3fff /**< more of them, and the offset */

/* @return the EtherType behind all tags, whose end is *l2_len; 0: the frame ends before */
static uint16_t
csum_skip_tags(const uint8_t *frame, size_t len, uint16_t *l2_len)
{
	uint16_t type;

	*l2_len = RCD_ETH_LEN;
	for (int tags = 0;; tags++) {
		if (len < *l2_len)
			return 0;
		type = rcd_get_be16(frame + *l2_len - 2);
		if (tags == TAGS_MAX || (type != RCD_ETHERTYPE_VLAN && type != ETHERTYPE_QINQ))
			return type;
		*l2_len += RCD_VLAN_TAG_LEN;
	}
}

bool
rcd_csum_layout(const uint8_t *frame, size_t len, uint16_t start, uint16_t offset,
	struct rcd_csum_layout *layout)
{
	uint16_t type = csum_skip_tags(frame, len, &layout->l2_len);
	const uint8_t *ip = frame + layout->l2_len;
	uint8_t proto;

	if (type == RCD_ETHERTYPE_IPV4 && len >= (size_t)layout->l2_len + RCD_IPV4_LEN) {
		layout->ipv6 = false;
		layout->l3_len = (uint16_t)((ip[0] & 0xf) * 4);
		proto = ip[9];
		if (layout->l3_len < RCD_IPV4_LEN || (rcd_get_be16(ip + 6) & IPV4_FRAGMENT) != 0)
			return false;
	} else if (type == RCD_ETHERTYPE_IPV6 && len >= (size_t)layout->l2_len + RCD_IPV6_LEN) {
		layout->ipv6 = true;
		layout->l3_len = RCD_IPV6_LEN;
		proto = ip[6];
	} else {
		return false;
	}
	layout->udp = proto == RCD_IP_PROTO_UDP;
	if (!layout->udp && proto != PROTO_TCP)
		return false;
	/* Drivers look for the whole header. */
	return start == layout->l2_len + layout->l3_len &&
		offset == (layout->udp ? UDP_CSUM : TCP_CSUM) &&
		len >= (size_t)start + (layout->udp ? UDP_LEN : TCP_LEN);
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
