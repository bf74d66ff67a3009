/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which queue a frame goes to, as NICs decide it: by flow rules, then by RSS (Toeplitz, a key and a
 * table), else to the first. Knows no port; no EAL is needed.
 */
#ifndef IMPAIR_STEER_H
#define IMPAIR_STEER_H

#include <rte_ethdev.h>
#include <rte_flow.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define IMPAIR_QUEUES    16
#define IMPAIR_RETA_SIZE 128
#define IMPAIR_KEY_LEN   40

/** What can be hashed. */
#define IMPAIR_HASH_TYPES                                                                          \
	(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_IPV6 |                      \
		RTE_ETH_RSS_NONFRAG_IPV6_UDP)

/** UDP to some ports, over one version of IP, with a VLAN tag or without one. */
struct impair_rule {
	bool ipv6;
	bool tagged;
	uint16_t port; /**< destination, host order */
	uint16_t mask;
	uint16_t count; /**< of queues: to more than one by a hash */
	uint64_t types; /**< that is hashed of them, RTE_ETH_RSS_*; with the port's key */
	uint16_t queues[IMPAIR_QUEUES];
};

/** A rule that was made. */
struct rte_flow {
	TAILQ_ENTRY(rte_flow) link;
	struct impair_rule rule;
};

/** All of it. */
struct impair_steer {
	uint16_t queues; /**< that are in use */
	bool rss;
	bool plain;          /**< rules may say neither key nor types */
	uint64_t hash_types; /**< RTE_ETH_RSS_* */
	uint8_t key[IMPAIR_KEY_LEN];
	uint16_t reta[IMPAIR_RETA_SIZE];
	TAILQ_HEAD(, rte_flow) rules; /**< the first that matches */
};

/**
 * As configured; it has no rules. `plain` stays.
 *
 * @param conf  NULL: no RSS
 * @return 0; -EINVAL: a key of another length
 */
int
impair_steer_set(struct impair_steer *steer, uint16_t queues, const struct rte_eth_rss_conf *conf);

/** Other keys and types. @return 0; -EINVAL: a key of another length, nothing is changed */
int
impair_steer_set_hash(struct impair_steer *steer, const struct rte_eth_rss_conf *conf);

/**
 * A rule of rte_flow's, as far as such rules are known: ETH [/ VLAN] / IPV4 | IPV6 / UDP, of which
 * the destination port alone is compared, to QUEUE or RSS: with the port's key, by what the rule
 * says is hashed, and by addresses if it says nothing.
 *
 * @return 0, or what rte_flow_error_set() returns
 */
int
impair_steer_parse(const struct impair_steer *steer, const struct rte_flow_attr *attr,
	const struct rte_flow_item *pattern, const struct rte_flow_action *actions,
	struct impair_rule *rule, struct rte_flow_error *error);

/** Where a frame goes. @return a queue that is in use */
uint16_t
impair_steer_queue(const struct impair_steer *steer, const uint8_t *frame, uint32_t len);

#endif /* IMPAIR_STEER_H */
