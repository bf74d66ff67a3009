/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Receive side scaling, worked out as a NIC does it: which queue a packet comes to. Knows no port.
 *
 * Threads: any; a struct is its caller's.
 */
#ifndef RCD_RSS_H
#define RCD_RSS_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid.h"

#define RCD_RSS_KEY_MAX  64
#define RCD_RSS_RETA_MAX 512

/** No queue that can be told. */
#define RCD_RSS_UNKNOWN (-1)

/** What a port says of its RSS. */
struct rcd_rss {
	uint64_t types;     /**< of packets that it hashes: RTE_ETH_RSS_* */
	uint16_t reta_size; /**< 0: nothing is known */
	uint8_t key_len;
	uint8_t key[RCD_RSS_KEY_MAX] __attribute__((aligned(4)));
	uint16_t reta[RCD_RSS_RETA_MAX]; /**< queues */
};

/** A packet as it is hashed: UDP, in one piece. */
struct rcd_rss_tuple {
	struct rcd_gid src; /**< IPv4 in its mapped form */
	struct rcd_gid dst;
	uint16_t sport;
	uint16_t dport;
};

/**
 * The hash of a packet by Toeplitz (Microsoft, "RSS Hashing Functions").
 *
 * @param hash  set if there is one
 * @return false: it is of a type that is not hashed, or the key is too short for it
 */
bool
rcd_rss_hash(const struct rcd_rss *rss, const struct rcd_rss_tuple *tuple, uint32_t *hash);

/** The queue that a packet comes to. @return RCD_RSS_UNKNOWN: who knows */
int
rcd_rss_queue(const struct rcd_rss *rss, const struct rcd_rss_tuple *tuple);

#endif /* RCD_RSS_H */
