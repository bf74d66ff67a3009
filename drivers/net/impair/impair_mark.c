/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Where the ECN bits of a frame are.
 */
#include "impair_mark.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <string.h>

#define ECN_MASK 3 /* of the traffic class; RFC 3168, section 5 */
#define ECN_CE   3

/* Of the traffic class of IPv6, which lies across the first two bytes: ECN bits in the second. */
#define ECN_SHIFT_V6 4

/* @return where the IP header begins, all of which is there; 0: there is none */
static uint32_t
impair_mark_find(const struct rte_mbuf *mbuf, bool *v6)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	uint32_t len = rte_pktmbuf_data_len(mbuf);
	uint32_t at = sizeof(struct rte_ether_hdr);
	uint32_t type;

	*v6 = false;
	if (len < at + sizeof(struct rte_vlan_hdr))
		return 0;
	type = (uint32_t)frame[at - 2] << 8 | frame[at - 1];
	if (type == RTE_ETHER_TYPE_VLAN) {
		at += sizeof(struct rte_vlan_hdr);
		type = (uint32_t)frame[at - 2] << 8 | frame[at - 1];
	}
	*v6 = type == RTE_ETHER_TYPE_IPV6;
	if (*v6)
		return len >= at + sizeof(struct rte_ipv6_hdr) ? at : 0;
	return type == RTE_ETHER_TYPE_IPV4 && len >= at + sizeof(struct rte_ipv4_hdr) ? at : 0;
}

bool
impair_mark_can(const struct rte_mbuf *mbuf)
{
	bool v6;
	uint32_t at = impair_mark_find(mbuf, &v6);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, at);

	return at != 0 && (ip[1] >> (v6 ? ECN_SHIFT_V6 : 0) & ECN_MASK) != 0;
}

void
impair_mark(struct rte_mbuf *mbuf)
{
	bool v6;
	uint32_t at = impair_mark_find(mbuf, &v6);
	uint8_t *ip = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, at);
	uint16_t before, after;
	rte_be16_t sum;
	uint32_t wide;

	if (at == 0)
		return;
	if (v6) {
		ip[1] |= ECN_CE << ECN_SHIFT_V6;
		return;
	}
	before = ip[1];
	ip[1] |= ECN_CE;
	after = ip[1];
	/* Of the change alone (RFC 1624, equation 3): a header that was damaged is so still. */
	memcpy(&sum, ip + offsetof(struct rte_ipv4_hdr, hdr_checksum), sizeof(sum));
	wide = (uint16_t)~rte_be_to_cpu_16(sum) + (uint16_t)~before + (uint32_t)after;
	wide = (wide & UINT16_MAX) + (wide >> 16);
	wide = (wide & UINT16_MAX) + (wide >> 16);
	sum = rte_cpu_to_be_16((uint16_t)~wide);
	memcpy(ip + offsetof(struct rte_ipv4_hdr, hdr_checksum), &sum, sizeof(sum));
}
