/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Toeplitz and a table of queues.
 */
#include "rcd_rss.h"

#include <rte_ethdev.h>
#include <rte_thash.h>

#include "rcd_bytes.h"

/** Words of the longest input: two addresses of IPv6, and the ports. */
#define INPUT_WORDS 9

/** Some NICs hash less of what they hash. */
#define PARTS                                                                                      \
	(RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY | RTE_ETH_RSS_L4_SRC_ONLY |             \
		RTE_ETH_RSS_L4_DST_ONLY)

/* @param first  byte of both addresses that counts */
static uint32_t
rss_put_addresses(uint32_t *input, const struct rcd_rss_tuple *tuple, uint32_t first)
{
	uint32_t words = 0;

	for (uint32_t i = first; i < sizeof(tuple->src.raw); i += 4)
		input[words++] = rcd_get_be32(tuple->src.raw + i);
	for (uint32_t i = first; i < sizeof(tuple->dst.raw); i += 4)
		input[words++] = rcd_get_be32(tuple->dst.raw + i);
	return words;
}

bool
rcd_rss_hash(const struct rcd_rss *rss, const struct rcd_rss_tuple *tuple, uint32_t *hash)
{
	bool v4 = rcd_gid_is_ipv4(&tuple->dst);
	uint64_t with_ports = v4 ? RTE_ETH_RSS_NONFRAG_IPV4_UDP : RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	uint64_t without = v4 ? RTE_ETH_RSS_IPV4 : RTE_ETH_RSS_IPV6;
	uint32_t input[INPUT_WORDS];
	uint32_t words;

	if ((rss->types & PARTS) != 0 || (rss->types & (with_ports | without)) == 0)
		return false;
	words = rss_put_addresses(input, tuple, v4 ? 12 : 0);
	if (rss->types & with_ports)
		input[words++] = (uint32_t)tuple->sport << 16 | tuple->dport;
	/* A bit of the input takes 32 of the key. */
	if (rss->key_len < (words + 1) * 4)
		return false;
	*hash = rte_softrss(input, words, rss->key);
	return true;
}

int
rcd_rss_queue(const struct rcd_rss *rss, const struct rcd_rss_tuple *tuple)
{
	uint32_t hash;

	if (rss->reta_size == 0 || !rcd_rss_hash(rss, tuple, &hash))
		return RCD_RSS_UNKNOWN;
	return rss->reta[hash % rss->reta_size];
}
