/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What flows look at in an Ethernet frame, at fixed places: a flow is a key and a mask, both of
 * which may be any bytes. The drop-in library makes them of the verbs' specifications, and the
 * engine compares them with keys of frames (rcd_flow.h of lib/wire).
 */
#ifndef RCD_FLOW_KEY_H
#define RCD_FLOW_KEY_H

#include <assert.h>
#include <stdint.h>

/** Bytes of a key. */
#define RCD_FLOW_KEY_LEN 64

/** The key. Numbers as on the wire, in network order; what a frame has not is 0. */
struct rcd_flow_key {
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	uint8_t ether_type[2]; /**< behind a tag, if there is one */
	uint8_t vlan_tag[2];   /**< priority, DEI and VLAN identifier of the tag */
	uint8_t src_ip[16];    /**< IPv4: the first four */
	uint8_t dst_ip[16];    /**< likewise */
	uint8_t flow_label[4]; /**< IPv6: 20 bits */
	uint8_t version;       /**< of IP: 4 or 6; 0: it is none */
	uint8_t proto;         /**< protocol of IPv4, next header of IPv6 */
	uint8_t tos;           /**< type of service, or traffic class */
	uint8_t ttl;           /**< or hop limit */
	uint8_t src_port[2];
	uint8_t dst_port[2];
	uint8_t ip_flags; /**< IPv4: of fragments, 3 bits; the lowest is "more" */
	uint8_t l4;       /**< 6: TCP, 17: UDP, whose ports are there; 0: neither */
	uint8_t tagged;   /**< 1: it has a tag */
	uint8_t reserved;
};

static_assert(sizeof(struct rcd_flow_key) == RCD_FLOW_KEY_LEN, "no padding that is not named");

/** Kinds of flows: in this order they are tried, whatever their priorities. */
enum rcd_flow_kind {
	RCD_FLOW_NORMAL,
	RCD_FLOW_MULTICAST, /**< group addresses that no other flow of the client wants */
	RCD_FLOW_ALL,       /**< what no other does */
	RCD_FLOW_SNIFFER,   /**< RoCE too, and what is sent; beside the others */
	RCD_FLOW_KIND_COUNT,
};

#endif /* RCD_FLOW_KEY_H */
