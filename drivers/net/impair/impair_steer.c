/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Flow rules and RSS, decided for one frame.
 */
#include "impair_steer.h"

#include <errno.h>
#include <netinet/in.h>
#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_thash.h>
#include <rte_udp.h>
#include <string.h>

/** Words of the longest tuple: two addresses of IPv6, and ports. */
#define TUPLE_WORDS 9

/** The key that NICs begin with (Microsoft, "Verifying the RSS Hash Calculation"). */
static const uint8_t default_key[IMPAIR_KEY_LEN] = { 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2,
	0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30,
	0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
	0x01, 0xfa };

/* What a frame is, as far as anybody asks. */
struct look {
	bool tagged;
	bool ipv4, ipv6;
	bool udp;            /**< with its ports: no fragment */
	uint16_t port;       /**< destination */
	uint32_t addr_words; /**< of both addresses, in the tuple */
	uint32_t tuple[TUPLE_WORDS];
};

int
impair_steer_set_hash(struct impair_steer *steer, const struct rte_eth_rss_conf *conf)
{
	if (conf->rss_key != NULL && conf->rss_key_len != 0 && conf->rss_key_len != IMPAIR_KEY_LEN)
		return -EINVAL;
	if (conf->rss_key != NULL)
		memcpy(steer->key, conf->rss_key, IMPAIR_KEY_LEN);
	steer->hash_types = conf->rss_hf & IMPAIR_HASH_TYPES;
	return 0;
}

int
impair_steer_set(struct impair_steer *steer, uint16_t queues, const struct rte_eth_rss_conf *conf)
{
	*steer = (struct impair_steer){
		.queues = queues, .rss = conf != NULL, .plain = steer->plain
	};
	TAILQ_INIT(&steer->rules);
	memcpy(steer->key, default_key, sizeof(steer->key));
	for (uint32_t i = 0; i < IMPAIR_RETA_SIZE; i++)
		steer->reta[i] = (uint16_t)(i % queues);
	return conf != NULL ? impair_steer_set_hash(steer, conf) : 0;
}

static int
impair_steer_refuse(struct rte_flow_error *error, enum rte_flow_error_type type, const void *cause,
	const char *why)
{
	return rte_flow_error_set(error, ENOTSUP, type, cause, why);
}

/* The next item that says something. */
static const struct rte_flow_item *
impair_steer_next_item(const struct rte_flow_item *item)
{
	while (item->type == RTE_FLOW_ITEM_TYPE_VOID)
		item++;
	return item;
}

static int
impair_steer_parse_udp(
	const struct rte_flow_item *item, struct impair_rule *rule, struct rte_flow_error *error)
{
	const struct rte_flow_item_udp *spec = item->spec;
	const struct rte_flow_item_udp *mask =
		item->mask != NULL ? item->mask : &rte_flow_item_udp_mask;

	if (item->type != RTE_FLOW_ITEM_TYPE_UDP)
		return impair_steer_refuse(
			error, RTE_FLOW_ERROR_TYPE_ITEM, item, "rules are about UDP alone");
	if (spec == NULL || item->last != NULL)
		return impair_steer_refuse(
			error, RTE_FLOW_ERROR_TYPE_ITEM_SPEC, item, "no port, or a range of them");
	if (mask->hdr.src_port != 0 || mask->hdr.dgram_len != 0 || mask->hdr.dgram_cksum != 0)
		return impair_steer_refuse(error, RTE_FLOW_ERROR_TYPE_ITEM_MASK, item,
			"only the destination port is compared");
	rule->mask = rte_be_to_cpu_16(mask->hdr.dst_port);
	rule->port = rte_be_to_cpu_16(spec->hdr.dst_port) & rule->mask;
	return 0;
}

static int
impair_steer_parse_pattern(
	const struct rte_flow_item *item, struct impair_rule *rule, struct rte_flow_error *error)
{
	bool ip = false;
	int err;

	item = impair_steer_next_item(item);
	for (; item->type != RTE_FLOW_ITEM_TYPE_UDP; item = impair_steer_next_item(item + 1)) {
		bool first = !rule->tagged && item->type == RTE_FLOW_ITEM_TYPE_VLAN;
		bool last = item->type == RTE_FLOW_ITEM_TYPE_IPV4 ||
			item->type == RTE_FLOW_ITEM_TYPE_IPV6;

		if (!first && !last && item->type != RTE_FLOW_ITEM_TYPE_ETH)
			return impair_steer_refuse(error, RTE_FLOW_ERROR_TYPE_ITEM, item,
				"a pattern is ETH, perhaps VLAN, IPV4 or IPV6, UDP");
		if (item->spec != NULL || item->mask != NULL || item->last != NULL)
			return impair_steer_refuse(error, RTE_FLOW_ERROR_TYPE_ITEM_SPEC, item,
				"nothing is compared below UDP");
		ip |= last;
		rule->tagged |= first;
		rule->ipv6 = item->type == RTE_FLOW_ITEM_TYPE_IPV6;
		if (last && impair_steer_next_item(item + 1)->type != RTE_FLOW_ITEM_TYPE_UDP)
			return impair_steer_refuse(
				error, RTE_FLOW_ERROR_TYPE_ITEM, item, "rules are about UDP alone");
	}
	if (!ip)
		return impair_steer_refuse(
			error, RTE_FLOW_ERROR_TYPE_ITEM, item, "UDP over which IP?");
	err = impair_steer_parse_udp(item, rule, error);
	item = impair_steer_next_item(item + 1);
	if (err == 0 && item->type != RTE_FLOW_ITEM_TYPE_END)
		return impair_steer_refuse(
			error, RTE_FLOW_ERROR_TYPE_ITEM, item, "nothing is compared behind UDP");
	return err;
}

static int
impair_steer_parse_rss(const struct impair_steer *steer, const struct rte_flow_action *action,
	struct impair_rule *rule, struct rte_flow_error *error)
{
	const struct rte_flow_action_rss *rss = action->conf;

	if (rss == NULL || !steer->rss || rss->queue_num == 0 || rss->queue_num > IMPAIR_QUEUES ||
		rss->level != 0 || (rss->types & ~IMPAIR_HASH_TYPES) != 0 ||
		(rss->func != RTE_ETH_HASH_FUNCTION_DEFAULT &&
			rss->func != RTE_ETH_HASH_FUNCTION_TOEPLITZ))
		return impair_steer_refuse(error, RTE_FLOW_ERROR_TYPE_ACTION_CONF, action,
			"RSS over queues, by what the port can hash");
	if (rss->key_len != 0 &&
		(rss->key == NULL || rss->key_len != IMPAIR_KEY_LEN ||
			memcmp(rss->key, steer->key, IMPAIR_KEY_LEN) != 0))
		return impair_steer_refuse(error, RTE_FLOW_ERROR_TYPE_ACTION_CONF, action,
			"RSS by the port's own key");
	if (steer->plain && (rss->key_len != 0 || rss->types != 0))
		return impair_steer_refuse(
			error, RTE_FLOW_ERROR_TYPE_ACTION_CONF, action, "RSS of rules is as it is");
	rule->types = rss->types != 0 ? rss->types : RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6;
	rule->count = (uint16_t)rss->queue_num;
	memcpy(rule->queues, rss->queue, rule->count * sizeof(rule->queues[0]));
	return 0;
}

static int
impair_steer_parse_actions(const struct impair_steer *steer, const struct rte_flow_action *action,
	struct impair_rule *rule, struct rte_flow_error *error)
{
	int err = 0;

	while (action->type == RTE_FLOW_ACTION_TYPE_VOID)
		action++;
	if (action->type == RTE_FLOW_ACTION_TYPE_QUEUE && action->conf != NULL) {
		rule->queues[0] = ((const struct rte_flow_action_queue *)action->conf)->index;
		rule->count = 1;
	} else if (action->type == RTE_FLOW_ACTION_TYPE_RSS) {
		err = impair_steer_parse_rss(steer, action, rule, error);
	} else {
		err = impair_steer_refuse(error, RTE_FLOW_ERROR_TYPE_ACTION, action,
			"a rule sends to a queue, or to queues by RSS");
	}
	for (uint16_t i = 0; err == 0 && i < rule->count; i++)
		if (rule->queues[i] >= steer->queues)
			err = impair_steer_refuse(error, RTE_FLOW_ERROR_TYPE_ACTION_CONF, action,
				"there is no such queue");
	if (err == 0 && (action + 1)->type != RTE_FLOW_ACTION_TYPE_END)
		err = impair_steer_refuse(
			error, RTE_FLOW_ERROR_TYPE_ACTION, action + 1, "one action alone");
	return err;
}

int
impair_steer_parse(const struct impair_steer *steer, const struct rte_flow_attr *attr,
	const struct rte_flow_item *pattern, const struct rte_flow_action *actions,
	struct impair_rule *rule, struct rte_flow_error *error)
{
	int err;

	*rule = (struct impair_rule){ .count = 0 };
	if (!attr->ingress || attr->egress || attr->transfer || attr->group != 0 ||
		attr->priority != 0)
		return impair_steer_refuse(error, RTE_FLOW_ERROR_TYPE_ATTR, attr,
			"rules are about what is received, of one group and priority");
	err = impair_steer_parse_pattern(pattern, rule, error);
	return err == 0 ? impair_steer_parse_actions(steer, actions, rule, error) : err;
}

static uint32_t
impair_steer_word(const uint8_t *at)
{
	rte_be32_t word;

	memcpy(&word, at, sizeof(word));
	return rte_be_to_cpu_32(word);
}

/* Addresses in words, and ports if they are there. */
static void
impair_steer_look_at_ip(
	struct look *look, const uint8_t *addrs, const uint8_t *ports, const uint8_t *end)
{
	for (uint32_t i = 0; i < look->addr_words; i++)
		look->tuple[i] = impair_steer_word(addrs + 4 * i);
	look->udp = look->udp && ports + sizeof(struct rte_udp_hdr) <= end;
	if (!look->udp)
		return;
	look->tuple[look->addr_words] = impair_steer_word(ports);
	look->port = (uint16_t)look->tuple[look->addr_words];
}

static void
impair_steer_look(struct look *look, const uint8_t *frame, uint32_t len)
{
	const uint8_t *at = frame + sizeof(struct rte_ether_hdr);
	const uint8_t *end = frame + len;
	uint32_t type;

	*look = (struct look){ .udp = false };
	if (len < sizeof(struct rte_ether_hdr) + sizeof(struct rte_vlan_hdr))
		return;
	type = (uint32_t)at[-2] << 8 | at[-1];
	look->tagged = type == RTE_ETHER_TYPE_VLAN;
	if (look->tagged) {
		at += sizeof(struct rte_vlan_hdr);
		type = (uint32_t)at[-2] << 8 | at[-1];
	}
	if (type == RTE_ETHER_TYPE_IPV4 && at + sizeof(struct rte_ipv4_hdr) <= end) {
		look->ipv4 = true;
		look->addr_words = 2;
		/* Neither a first fragment nor a later one. */
		look->udp = at[9] == IPPROTO_UDP && ((at[6] & 0x3f) | at[7]) == 0;
		impair_steer_look_at_ip(look, at + 12, at + (at[0] & 0xfu) * 4, end);
	} else if (type == RTE_ETHER_TYPE_IPV6 && at + sizeof(struct rte_ipv6_hdr) <= end) {
		look->ipv6 = true;
		look->addr_words = 8;
		look->udp = at[6] == IPPROTO_UDP;
		impair_steer_look_at_ip(look, at + 8, at + sizeof(struct rte_ipv6_hdr), end);
	}
}

/* What nothing is hashed of has the hash 0. */
static uint32_t
impair_steer_hash(const struct impair_steer *steer, struct look *look, uint64_t types)
{
	uint64_t with_ports =
		look->ipv4 ? RTE_ETH_RSS_NONFRAG_IPV4_UDP : RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	uint64_t without = look->ipv4 ? RTE_ETH_RSS_IPV4 : RTE_ETH_RSS_IPV6;

	if (!look->ipv4 && !look->ipv6)
		return 0;
	if (look->udp && (types & with_ports))
		return rte_softrss(look->tuple, look->addr_words + 1, steer->key);
	if (types & without)
		return rte_softrss(look->tuple, look->addr_words, steer->key);
	return 0;
}

static bool
impair_steer_matches(const struct impair_rule *rule, const struct look *look)
{
	return look->udp && rule->tagged == look->tagged && rule->ipv6 == look->ipv6 &&
		(look->port & rule->mask) == rule->port;
}

uint16_t
impair_steer_queue(const struct impair_steer *steer, const uint8_t *frame, uint32_t len)
{
	const struct rte_flow *flow;
	struct look look;
	uint32_t hash;

	impair_steer_look(&look, frame, len);
	TAILQ_FOREACH(flow, &steer->rules, link) {
		if (!impair_steer_matches(&flow->rule, &look))
			continue;
		hash = impair_steer_hash(steer, &look, flow->rule.types);
		return flow->rule.queues[hash % IMPAIR_RETA_SIZE % flow->rule.count];
	}
	if (!steer->rss)
		return 0;
	hash = impair_steer_hash(steer, &look, steer->hash_types);
	return steer->reta[hash % IMPAIR_RETA_SIZE];
}
