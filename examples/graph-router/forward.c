/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a router forwards.
 */
#include "forward.h"

#include <arpa/inet.h>
#include <netinet/ether.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	FORWARD_ON,
	FORWARD_DROP,
	FORWARD_NEXTS,
};

/* Not this network, the machine itself, groups, or what is reserved. */
static bool
is_host(rte_be32_t address)
{
	uint32_t first = rte_be_to_cpu_32(address) >> 24;

	return first != 0 && first != 127 && first < 224;
}

static bool
may_go_on(const struct rte_mbuf *mbuf)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(const void *)(eth + 1);
	uint32_t head, total;

	if (rte_pktmbuf_data_len(mbuf) < sizeof(*eth) + sizeof(*ip) ||
		!rte_is_unicast_ether_addr(&eth->dst_addr) ||
		eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return false;
	head = rte_ipv4_hdr_len(ip);
	total = rte_be_to_cpu_16(ip->total_length);
	return ip->version_ihl >> 4 == 4 && head >= sizeof(*ip) &&
		rte_pktmbuf_data_len(mbuf) >= sizeof(*eth) + head && total >= head &&
		total <= rte_pktmbuf_pkt_len(mbuf) - sizeof(*eth) && ip->time_to_live > 1 &&
		is_host(ip->src_addr) && is_host(ip->dst_addr) &&
		rte_raw_cksum(ip, head) == UINT16_MAX;
}

static uint16_t
forward_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++)
		rte_node_enqueue_x1(
			graph, node, may_go_on(objs[i]) ? FORWARD_ON : FORWARD_DROP, objs[i]);
	return count;
}

static struct rte_node_register forward_node = {
	.name = FORWARD_NODE,
	.process = forward_process,
	.nb_edges = FORWARD_NEXTS,
	.next_nodes = { [FORWARD_ON] = "pkt_cls", [FORWARD_DROP] = "pkt_drop" },
};

RTE_NODE_REGISTER(forward_node)

int
forward_route(struct route *route, const char *text)
{
	char prefix[32], mac[32];
	struct ether_addr hop;

	if (sscanf(text, "%31[^/]/%hu,%hu,%31s", prefix, &route->len, &route->port, mac) != 4 ||
		route->len > 32 || inet_pton(AF_INET, prefix, &route->prefix) != 1 ||
		ether_aton_r(mac, &hop) == NULL)
		return -1;
	route->prefix = rte_be_to_cpu_32(route->prefix);
	memcpy(&route->eth.dst_addr, &hop, sizeof(hop));
	route->eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	return 0;
}
