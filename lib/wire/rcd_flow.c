/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Keys of Ethernet frames.
 */
#include "rcd_flow.h"

#include <string.h>

#include "rcd_eth.h"
#include "rcd_ip.h"
#include "rcd_udp.h"

#define PROTO_TCP   6
#define PORTS_LEN   4
#define FRAG_OFFSET 0x1fff

/* The ports, where the whole header that has them could be. */
static void
flow_take_ports(const uint8_t *frame, size_t len, size_t at, struct rcd_flow_key *key,
	struct rcd_flow_layout *layout)
{
	if ((key->proto != PROTO_TCP && key->proto != RCD_IP_PROTO_UDP) || at + PORTS_LEN > len)
		return;
	memcpy(key->src_port, frame + at, 2);
	memcpy(key->dst_port, frame + at + 2, 2);
	key->l4 = key->proto;
	layout->l4 = (uint16_t)at;
}

static void
flow_take_ipv4(const uint8_t *frame, size_t len, size_t at, struct rcd_flow_key *key,
	struct rcd_flow_layout *layout)
{
	const uint8_t *ip = frame + at;
	size_t hdr_len;

	if (len - at < RCD_IPV4_LEN || ip[0] >> 4 != 4)
		return;
	hdr_len = (size_t)(ip[0] & 0xf) * 4;
	if (hdr_len < RCD_IPV4_LEN)
		return;
	key->version = 4;
	key->tos = ip[1];
	key->ip_flags = ip[6] >> 5;
	key->ttl = ip[8];
	key->proto = ip[9];
	memcpy(key->src_ip, ip + 12, 4);
	memcpy(key->dst_ip, ip + 16, 4);
	layout->l3 = (uint16_t)at;
	/* Later fragments have no ports. */
	if ((rcd_get_be16(ip + 6) & FRAG_OFFSET) == 0)
		flow_take_ports(frame, len, at + hdr_len, key, layout);
}

static void
flow_take_ipv6(const uint8_t *frame, size_t len, size_t at, struct rcd_flow_key *key,
	struct rcd_flow_layout *layout)
{
	const uint8_t *ip = frame + at;

	if (len - at < RCD_IPV6_LEN || ip[0] >> 4 != 6)
		return;
	key->version = 6;
	key->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	key->flow_label[1] = ip[1] & 0xf;
	key->flow_label[2] = ip[2];
	key->flow_label[3] = ip[3];
	key->proto = ip[6];
	key->ttl = ip[7];
	memcpy(key->src_ip, ip + 8, 16);
	memcpy(key->dst_ip, ip + 24, 16);
	layout->l3 = (uint16_t)at;
	flow_take_ports(frame, len, at + RCD_IPV6_LEN, key, layout);
}

void
rcd_flow_key_of(
	const uint8_t *frame, size_t len, struct rcd_flow_key *key, struct rcd_flow_layout *layout)
{
	struct rcd_eth eth;
	size_t at;

	memset(key, 0, sizeof(*key));
	*layout = (struct rcd_flow_layout){ 0 };
	if (rcd_eth_parse(frame, len, &eth) != RCD_VERDICT_OK)
		return;
	memcpy(key->dst_mac, eth.dst, RCD_MAC_LEN);
	memcpy(key->src_mac, eth.src, RCD_MAC_LEN);
	rcd_put_be16(key->ether_type, eth.ethertype);
	rcd_put_be16(key->vlan_tag, eth.vlan_tci);
	key->tagged = eth.tagged;
	at = rcd_eth_len(&eth);
	if (eth.ethertype == RCD_ETHERTYPE_IPV4)
		flow_take_ipv4(frame, len, at, key, layout);
	else if (eth.ethertype == RCD_ETHERTYPE_IPV6)
		flow_take_ipv6(frame, len, at, key, layout);
}

bool
rcd_flow_key_matches(const struct rcd_flow_key *key, const struct rcd_flow_key *value,
	const struct rcd_flow_key *mask)
{
	uint64_t differs = 0;

	for (size_t i = 0; i < RCD_FLOW_KEY_LEN && differs == 0; i += sizeof(uint64_t)) {
		uint64_t k, v, m;

		memcpy(&k, (const uint8_t *)key + i, sizeof(k));
		memcpy(&v, (const uint8_t *)value + i, sizeof(v));
		memcpy(&m, (const uint8_t *)mask + i, sizeof(m));
		differs = (k ^ v) & m;
	}
	return differs == 0;
}

bool
rcd_flow_key_is_roce(const struct rcd_flow_key *key)
{
	return key->l4 == RCD_IP_PROTO_UDP && rcd_get_be16(key->dst_port) == RCD_UDP_PORT_ROCE;
}
