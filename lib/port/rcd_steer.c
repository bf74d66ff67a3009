/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * RSS and flow rules of a port, as DPDK's drivers take them. Rules go with a port that is stopped
 * (rte_flow.h, "flow rules"), and some drivers take none before it runs: so they are made behind
 * each start, and the table of RSS is filled there too.
 */
#include "rcd_steer.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_version.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_hop_word.h"
#include "rcd_lcores.h"
#include "rcd_log.h"
#include "rcd_lport.h"
#include "rcd_ports.h"
#include "rcd_qp.h"
#include "rcd_thread.h"
#include "rcd_udp.h"

/** Bytes of a key where a driver does not say. */
#define KEY_LEN 40

#define GROUP RTE_ETH_RETA_GROUP_SIZE

#define TYPES (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP)

/** The published one (Microsoft, "Verifying the RSS Hash Calculation"); longer keys repeat it. */
static const uint8_t published_key[KEY_LEN] = { 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2,
	0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30,
	0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
	0x01, 0xfa };

/** A rule for RoCE, as rte_flow has it. */
struct steer_rule {
	struct rte_flow_item pattern[5];
	struct rte_flow_item_udp spec, mask;
	struct rte_flow_action actions[2];
	struct rte_flow_action_queue queue;
	struct rte_flow_action_rss rss;
	uint16_t queues[RCD_LCORES_MAX];
	uint8_t key[RCD_RSS_KEY_MAX];
};

/* Whether its rules say what packets are told apart by. */
static bool
steer_has_hash(const struct rcd_dev *dev)
{
	return dev->steer.kind == RCD_STEER_FLOW && !dev->steer.as_driver && dev->lport.queues > 1;
}

const char *
rcd_steer_name(enum rcd_steer_kind kind)
{
	static const char *const names[] = { "none", "rss", "flow" };

	return names[kind];
}

void
rcd_steer_plan(struct rcd_dev *dev, const struct rte_eth_dev_info *info)
{
	uint16_t lcores = (uint16_t)dev->ports->conf.lcores->count;

	RCD_ON_CONTROL();
	memset(&dev->steer, 0, sizeof(dev->steer));
	/* All that is not RoCE goes by the table of RSS to the queue behind those of the lcores. */
	if (dev->conf.kernel[0] != '\0' && info->max_rx_queues > lcores &&
		info->flow_type_rss_offloads != 0 && info->reta_size != 0)
		dev->steer.kind = RCD_STEER_FLOW;
	else if (RTE_MIN(lcores, RTE_MIN(info->max_rx_queues, info->max_tx_queues)) > 1 &&
		info->flow_type_rss_offloads != 0)
		dev->steer.kind = RCD_STEER_RSS;
}

bool
rcd_steer_less(struct rcd_dev *dev)
{
	struct rcd_steer *steer = &dev->steer;

	RCD_ON_CONTROL();
	if (steer->kind == RCD_STEER_NONE)
		return false;
	if (steer_has_hash(dev)) {
		steer->as_driver = true;
		return true;
	}
	steer->kind = steer->kind == RCD_STEER_FLOW && dev->lport.queues > 1 ? RCD_STEER_RSS
									     : RCD_STEER_NONE;
	return true;
}

void
rcd_steer_configure(
	struct rcd_dev *dev, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	static uint8_t key[RCD_RSS_KEY_MAX];

	RCD_ON_CONTROL();
	if (dev->steer.kind == RCD_STEER_NONE)
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = TYPES & info->flow_type_rss_offloads;
	/* A driver that has no length of a key has one of its own. */
	if (info->hash_key_size == 0 || info->hash_key_size > sizeof(key))
		return;
	for (uint32_t i = 0; i < info->hash_key_size; i++)
		key[i] = published_key[i % KEY_LEN];
	conf->rx_adv_conf.rss_conf.rss_key = key;
	conf->rx_adv_conf.rss_conf.rss_key_len = info->hash_key_size;
}

/*
 * What a rule's packets are told apart by: as the port's own, since a rule that says nothing may
 * have a key of the driver's, and look at addresses alone.
 */
static void
steer_make_hash(struct steer_rule *rule, const struct rcd_dev *dev)
{
	struct rte_eth_rss_conf conf = { .rss_key = rule->key, .rss_key_len = sizeof(rule->key) };
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(dev->lport.port_id, &info) != 0 ||
		rte_eth_dev_rss_hash_conf_get(dev->lport.port_id, &conf) != 0)
		return;
	rule->rss.types = conf.rss_hf & TYPES;
	rule->rss.key_len = RTE_MIN(conf.rss_key_len, info.hash_key_size);
	rule->rss.key = rule->rss.key_len > 0 ? rule->key : NULL;
}

/* UDP to RoCE's port, over IPv4 or IPv6, tagged or not, to the queues of the lcores. */
static void
steer_make_rule(struct steer_rule *rule, const struct rcd_dev *dev, uint32_t number)
{
	struct rte_flow_item *item = rule->pattern;

	*rule = (struct steer_rule){ .spec.hdr.dst_port = RTE_BE16(RCD_UDP_PORT_ROCE),
		.mask.hdr.dst_port = RTE_BE16(0xffff) };
	(item++)->type = RTE_FLOW_ITEM_TYPE_ETH;
	if (number >= 2)
		(item++)->type = RTE_FLOW_ITEM_TYPE_VLAN;
	(item++)->type = number % 2 == 0 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6;
	*item++ = (struct rte_flow_item){
		.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &rule->spec, .mask = &rule->mask
	};
	item->type = RTE_FLOW_ITEM_TYPE_END;
	for (uint16_t i = 0; i < dev->lport.queues; i++)
		rule->queues[i] = i;
	rule->rss = (struct rte_flow_action_rss){ .queue_num = dev->lport.queues,
		.queue = rule->queues };
	if (steer_has_hash(dev))
		steer_make_hash(rule, dev);
	rule->actions[0].type =
		dev->lport.queues > 1 ? RTE_FLOW_ACTION_TYPE_RSS : RTE_FLOW_ACTION_TYPE_QUEUE;
	rule->actions[0].conf =
		dev->lport.queues > 1 ? (const void *)&rule->rss : (const void *)&rule->queue;
	rule->actions[1].type = RTE_FLOW_ACTION_TYPE_END;
}

static void
steer_say(const struct rcd_dev *dev, const char *what, const char *why)
{
	RCD_LOG(NOTICE, "%s: %s: %s: %s", dev->conf.name,
		steer_has_hash(dev) ? "what tells packets apart is left to the driver"
				    : "no queue for what is no RoCE",
		what, why != NULL ? why : "the driver does not say why");
}

int
rcd_steer_check(const struct rcd_dev *dev)
{
	static const struct rte_flow_attr ingress = { .ingress = 1 };
	int err = 0;

	RCD_ON_CONTROL();
	/* Tagged ones are made if they can be: those that strip tags know no others. */
	for (uint32_t i = 0; i < 2 && err == 0 && dev->steer.kind == RCD_STEER_FLOW; i++) {
		struct rte_flow_error error = { .message = NULL };
		struct steer_rule rule;

		steer_make_rule(&rule, dev, i);
		err = rte_flow_validate(
			dev->lport.port_id, &ingress, rule.pattern, rule.actions, &error);
		if (err != 0)
			steer_say(dev, "flow rules are refused", error.message);
	}
	return err;
}

/* Each place of the table by a function of its number. @return 0 or -errno */
static int
steer_fill_reta(const struct rcd_dev *dev, uint16_t size, uint16_t first, uint16_t count)
{
	struct rte_eth_rss_reta_entry64 reta[RCD_RSS_RETA_MAX / GROUP] = { { .mask = 0 } };

	if (size > RCD_RSS_RETA_MAX)
		return -ENOTSUP;
	for (uint16_t i = 0; i < size; i++) {
		reta[i / GROUP].mask |= UINT64_C(1) << i % GROUP;
		reta[i / GROUP].reta[i % GROUP] = (uint16_t)(first + i % count);
	}
	return rte_eth_dev_rss_reta_update(dev->lport.port_id, reta, size);
}

static int
steer_make_rules(struct rcd_dev *dev)
{
	static const struct rte_flow_attr ingress = { .ingress = 1 };

	for (uint32_t i = 0; i < RCD_STEER_RULES; i++) {
		struct rte_flow_error error = { .message = NULL };
		struct steer_rule rule;

		steer_make_rule(&rule, dev, i);
		dev->steer.rules[i] = rte_flow_create(
			dev->lport.port_id, &ingress, rule.pattern, rule.actions, &error);
		if (dev->steer.rules[i] != NULL)
			continue;
		if (i < 2) {
			steer_say(dev, "a flow rule is refused", error.message);
			return -ENOTSUP;
		}
		RCD_LOG(NOTICE, "%s: tagged RoCE comes by the queue of the rest: %s",
			dev->conf.name,
			error.message != NULL ? error.message : "the driver does not say why");
	}
	return 0;
}

/* Whether the hash is Toeplitz, as far as the driver tells. */
static bool
steer_is_toeplitz(const struct rte_eth_rss_conf *conf)
{
#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
	return conf->algorithm == RTE_ETH_HASH_FUNCTION_DEFAULT ||
		conf->algorithm == RTE_ETH_HASH_FUNCTION_TOEPLITZ;
#else
	(void)conf;
	return true;
#endif
}

static int
steer_ask_reta(const struct rcd_dev *dev, struct rcd_rss *rss, uint16_t size)
{
	struct rte_eth_rss_reta_entry64 reta[RCD_RSS_RETA_MAX / GROUP];
	int err;

	memset(reta, 0xff, sizeof(reta));
	err = rte_eth_dev_rss_reta_query(dev->lport.port_id, reta, size);
	for (uint16_t i = 0; err == 0 && i < size; i++)
		rss->reta[i] = reta[i / GROUP].reta[i % GROUP];
	return err;
}

/*
 * What the port has now, whatever was asked for. The queues of a rule have a table of their own,
 * that nobody tells of: as far as is known of drivers, one that is filled in turn. Of a hash that
 * is the driver's nothing is known.
 */
static void
steer_ask(struct rcd_dev *dev, const struct rte_eth_dev_info *info)
{
	struct rcd_rss *rss = &dev->steer.rss;
	struct rte_eth_rss_conf conf = { .rss_key = rss->key, .rss_key_len = sizeof(rss->key) };

	memset(rss, 0, sizeof(*rss));
	if ((dev->steer.kind == RCD_STEER_FLOW && dev->steer.as_driver) || dev->lport.queues < 2 ||
		info->reta_size == 0 || info->reta_size > RCD_RSS_RETA_MAX ||
		rte_eth_dev_rss_hash_conf_get(dev->lport.port_id, &conf) != 0 ||
		!steer_is_toeplitz(&conf))
		return;
	rss->types = conf.rss_hf;
	rss->key_len = RTE_MIN(conf.rss_key_len, info->hash_key_size);
	if (dev->steer.kind == RCD_STEER_FLOW)
		for (uint16_t i = 0; i < info->reta_size; i++)
			rss->reta[i] = i % dev->lport.queues;
	else if (steer_ask_reta(dev, rss, info->reta_size) != 0)
		return;
	rss->reta_size = info->reta_size;
}

int
rcd_steer_begin(struct rcd_dev *dev)
{
	const struct rcd_lport *lport = &dev->lport;
	struct rte_eth_dev_info info;
	int err;

	RCD_ON_CONTROL();
	if (dev->steer.kind == RCD_STEER_NONE || rte_eth_dev_info_get(lport->port_id, &info) != 0)
		return 0;
	if (dev->steer.kind == RCD_STEER_FLOW) {
		err = steer_fill_reta(dev, info.reta_size, lport->exception_queue, 1);
		if (err != 0)
			steer_say(dev, "the table of RSS stays as it is", strerror(-err));
		else
			err = steer_make_rules(dev);
		if (err != 0) {
			rcd_steer_end(dev);
			return err;
		}
	} else {
		/* As most do by themselves, and those that can't be told. */
		steer_fill_reta(dev, info.reta_size, 0, lport->queues);
	}
	steer_ask(dev, &info);
	return 0;
}

void
rcd_steer_end(struct rcd_dev *dev)
{
	struct rte_flow_error error;

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < RCD_STEER_RULES; i++)
		if (dev->steer.rules[i] != NULL)
			rte_flow_destroy(dev->lport.port_id, dev->steer.rules[i], &error);
	memset(dev->steer.rules, 0, sizeof(dev->steer.rules));
}

int
rcd_steer_queue(const struct rcd_dev *dev, const struct rcd_av *av, uint32_t qpn, uint32_t dest_qpn)
{
	const struct rcd_rss_tuple tuple = {
		.src = av->dgid,
		.dst = av->sgid,
		.sport = rcd_udp_roce_sport(av->flow_label, qpn, dest_qpn),
		.dport = RCD_UDP_PORT_ROCE,
	};
	uint8_t mac[RCD_MAC_LEN];
	int queue;

	RCD_ON_CONTROL();
	if (dev->steer.rss.reta_size == 0)
		return RCD_RSS_UNKNOWN;
	memcpy(mac, av->dmac, sizeof(mac));
	if (av->hop != RCD_HOP_NONE)
		rcd_hop_mac(rcd_hop_word(dev->ports->conf.lcores->hop_macs, av->hop), mac);
	if (rcd_lport_view_local(rcd_lport_view(&dev->lport), mac) >= 0)
		return RCD_RSS_UNKNOWN;
	queue = rcd_rss_queue(&dev->steer.rss, &tuple);
	return queue < dev->lport.queues ? queue : RCD_RSS_UNKNOWN;
}
