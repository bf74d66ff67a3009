/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: net_impair with queues of its own puts each frame where its rules and its RSS say, loses
 * what a full queue has no place for, and takes no rule that it can't hold to. Method: it wraps a
 * ring port that receives what it sends; the hash is worked out bit by bit, as its definition has
 * it.
 */
#include <errno.h>
#include <rte_bus_vdev.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_flow.h>
#include <rte_ip.h>
#include <rte_mempool.h>
#include <rte_udp.h>
#include <stdio.h>
#include <string.h>

#include "begin.h"
#include "rcd_pmd_impair.h"
#include "rcd_tap.h"

#define QUEUES  3
#define RETA    128
#define KEY_LEN 40
#define DEPTH   64
#define BUFFERS 1023
#define ROCE    4791

static struct rte_mempool *pool;
static uint16_t port;
static uint8_t key[KEY_LEN];

/** A frame to be sent. */
struct shape {
	bool v6, tagged, fragment;
	uint8_t protocol;
	uint32_t salt; /**< of addresses */
	uint16_t sport, dport;
};

static uint32_t
build(uint8_t *frame, const struct shape *shape)
{
	uint8_t *at = frame;
	rte_be16_t type = RTE_BE16(shape->v6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
	struct rte_udp_hdr udp = { .src_port = rte_cpu_to_be_16(shape->sport),
		.dst_port = rte_cpu_to_be_16(shape->dport) };

	memset(frame, 0, 128);
	memcpy(frame, "\2\0\0\0\0\1\2\0\0\0\0\2", 12);
	at += 12;
	if (shape->tagged) {
		memcpy(at, "\x81\0\0\5", 4);
		at += 4;
	}
	memcpy(at, &type, 2);
	at += 2;
	at[0] = shape->v6 ? 0x60 : 0x45;
	if (shape->v6) {
		at[6] = shape->protocol;
		for (uint32_t i = 8; i < 40; i++)
			at[i] = (uint8_t)(shape->salt * i);
		at += 40;
	} else {
		at[6] = shape->fragment ? 0x20 : 0x40;
		at[9] = shape->protocol;
		for (uint32_t i = 12; i < 20; i++)
			at[i] = (uint8_t)(shape->salt * i);
		at += 20;
	}
	memcpy(at, &udp, sizeof(udp));
	return (uint32_t)(at - frame) + 40;
}

static bool
give(const struct shape *shape)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	uint8_t frame[128];
	uint32_t len = build(frame, shape);

	if (mbuf == NULL)
		return false;
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)len), frame, len);
	if (rte_eth_tx_burst(port, (uint16_t)(shape->salt % QUEUES), &mbuf, 1) == 1)
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

/* Where a frame came out. @return -1: nowhere */
static int
queue_of(const struct shape *shape)
{
	int where = -1;

	CU_ASSERT(give(shape));
	for (int round = 0; round < 2; round++)
		for (uint16_t queue = 0; queue < QUEUES; queue++) {
			struct rte_mbuf *mbuf;

			if (rte_eth_rx_burst(port, queue, &mbuf, 1) != 1)
				continue;
			CU_ASSERT_EQUAL(where, -1);
			where = queue;
			rte_pktmbuf_free(mbuf);
		}
	return where;
}

/* Each bit of the input that is set adds the 32 bits of the key that begin with its place. */
static uint32_t
toeplitz(const uint8_t *input, uint32_t len)
{
	uint32_t hash = 0;

	for (uint32_t bit = 0; bit < len * 8; bit++) {
		uint32_t window = 0;

		if (!(input[bit / 8] >> (7 - bit % 8) & 1))
			continue;
		for (uint32_t i = bit; i < bit + 32; i++)
			window = window << 1 | (key[i / 8] >> (7 - i % 8) & 1);
		hash ^= window;
	}
	return hash;
}

static uint32_t
hash_of(const struct shape *shape, bool ports)
{
	uint8_t frame[128];
	uint32_t at = 14 + (shape->tagged ? 4 : 0);

	build(frame, shape);
	return shape->v6 ? toeplitz(frame + at + 8, ports ? 36 : 32)
			 : toeplitz(frame + at + 12, ports ? 12 : 8);
}

static void
set_reta(uint16_t first, uint16_t count)
{
	struct rte_eth_rss_reta_entry64 reta[RETA / 64], now[RETA / 64];

	for (uint16_t i = 0; i < RETA; i++) {
		reta[i / 64].mask = now[i / 64].mask = UINT64_MAX;
		reta[i / 64].reta[i % 64] = (uint16_t)(first + i % count);
	}
	CU_ASSERT_EQUAL(rte_eth_dev_rss_reta_update(port, reta, RETA), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_rss_reta_query(port, now, RETA), 0);
	CU_ASSERT_EQUAL(memcmp(reta, now, sizeof(reta)), 0);
}

static struct shape
udp(bool v6, bool tagged, uint32_t salt, uint16_t dport)
{
	return (struct shape){ .v6 = v6,
		.tagged = tagged,
		.protocol = 17,
		.salt = salt,
		.sport = (uint16_t)(0xc000 + salt * 7),
		.dport = dport };
}

static void
spreads_by_the_hash(void)
{
	struct rte_eth_rss_conf conf = { .rss_key = key, .rss_key_len = KEY_LEN };
	uint32_t seen[QUEUES] = { 0 };

	set_reta(0, QUEUES);
	CU_ASSERT_EQUAL(rte_eth_dev_rss_hash_conf_get(port, &conf), 0);
	CU_ASSERT_EQUAL(conf.rss_key_len, KEY_LEN);
	for (uint32_t salt = 1; salt < 60; salt++) {
		struct shape shape = udp(salt % 2, salt % 3 == 0, salt, ROCE);
		int queue = queue_of(&shape);

		CU_ASSERT_EQUAL(queue, (int)(hash_of(&shape, true) % RETA % QUEUES));
		if (queue >= 0)
			seen[queue]++;
		/* What has no ports, or may not have them, by its addresses. */
		shape.protocol = 6;
		CU_ASSERT_EQUAL(queue_of(&shape), (int)(hash_of(&shape, false) % RETA % QUEUES));
		shape.protocol = 17;
		shape.fragment = true;
		CU_ASSERT_EQUAL(queue_of(&shape), (int)(hash_of(&shape, shape.v6) % RETA % QUEUES));
	}
	for (uint32_t i = 0; i < QUEUES; i++)
		CU_ASSERT(seen[i] > 8);
}

static void
hashes_what_it_is_told_to(void)
{
	struct shape shape = udp(false, false, 9, ROCE);
	struct rte_eth_rss_conf conf = { .rss_hf = RTE_ETH_RSS_IPV4 };
	uint8_t longer[KEY_LEN + 1] = { 0 };

	set_reta(0, QUEUES);
	CU_ASSERT_EQUAL(rte_eth_dev_rss_hash_update(port, &conf), 0);
	CU_ASSERT_EQUAL(queue_of(&shape), (int)(hash_of(&shape, false) % RETA % QUEUES));
	conf.rss_hf = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_IPV6 |
		RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	key[0] ^= 0xff;
	conf.rss_key = key;
	conf.rss_key_len = KEY_LEN;
	CU_ASSERT_EQUAL(rte_eth_dev_rss_hash_update(port, &conf), 0);
	CU_ASSERT_EQUAL(queue_of(&shape), (int)(hash_of(&shape, true) % RETA % QUEUES));
	conf.rss_key = longer;
	conf.rss_key_len = sizeof(longer);
	CU_ASSERT(rte_eth_dev_rss_hash_update(port, &conf) != 0);
}

/** A rule as a test gives it; what is zero is left out. */
struct rule {
	enum rte_flow_item_type items[6];
	uint16_t dport, mask, source_mask;
	bool egress, priority, spec_below;
	enum rte_flow_action_type action;
	uint16_t queues[QUEUES];
	uint32_t count;
	bool second_action;
	uint64_t types;
	uint32_t key_len; /**< of the port's key, or another one */
	bool other_key;
};

static struct rte_flow *
make(const struct rule *rule, int *valid)
{
	struct rte_flow_attr attr = {
		.ingress = !rule->egress, .egress = rule->egress, .priority = rule->priority
	};
	struct rte_flow_item_udp spec = { .hdr.dst_port = rte_cpu_to_be_16(rule->dport) };
	struct rte_flow_item_udp mask = { .hdr.dst_port = rte_cpu_to_be_16(rule->mask),
		.hdr.src_port = rte_cpu_to_be_16(rule->source_mask) };
	struct rte_flow_item_ipv4 below = { .hdr.src_addr = 1 };
	struct rte_flow_item pattern[7];
	struct rte_flow_action_queue queue = { .index = rule->queues[0] };
	static const uint8_t other_key[KEY_LEN] = { 1 };
	struct rte_flow_action_rss rss = { .queue = rule->queues,
		.queue_num = rule->count,
		.types = rule->types,
		.key_len = rule->key_len,
		.key = rule->other_key ? other_key : key };
	struct rte_flow_action actions[3] = { { .type = rule->action } };
	struct rte_flow_error error = { .message = NULL };
	struct rte_flow *flow;

	memset(pattern, 0, sizeof(pattern));
	for (int i = 0; i < 6; i++) {
		pattern[i].type = rule->items[i];
		if (rule->items[i] == RTE_FLOW_ITEM_TYPE_UDP && rule->dport != 0) {
			pattern[i].spec = &spec;
			pattern[i].mask = &mask;
		}
		if (rule->items[i] == RTE_FLOW_ITEM_TYPE_IPV4 && rule->spec_below)
			pattern[i].spec = &below;
	}
	actions[0].conf = rule->action == RTE_FLOW_ACTION_TYPE_RSS ? (const void *)&rss
								   : (const void *)&queue;
	if (rule->second_action)
		actions[1].type = RTE_FLOW_ACTION_TYPE_DROP;
	*valid = rte_flow_validate(port, &attr, pattern, actions, &error);
	CU_ASSERT_EQUAL(*valid != 0, error.message != NULL);
	flow = rte_flow_create(port, &attr, pattern, actions, &error);
	CU_ASSERT_EQUAL(flow != NULL, *valid == 0);
	return flow;
}

#define ETH  RTE_FLOW_ITEM_TYPE_ETH
#define VLAN RTE_FLOW_ITEM_TYPE_VLAN
#define IP4  RTE_FLOW_ITEM_TYPE_IPV4
#define IP6  RTE_FLOW_ITEM_TYPE_IPV6
#define UDP  RTE_FLOW_ITEM_TYPE_UDP
#define TCP  RTE_FLOW_ITEM_TYPE_TCP
#define TO   RTE_FLOW_ACTION_TYPE_QUEUE
#define OVER RTE_FLOW_ACTION_TYPE_RSS

static void
rules_come_first(void)
{
	static const struct rule rules[] = {
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = OVER, .queues = { 0, 1 }, .count = 2,
			.types = RTE_ETH_RSS_NONFRAG_IPV4_UDP, .key_len = KEY_LEN },
		{ { ETH, IP6, UDP }, ROCE, 0xffff, .action = TO, .queues = { 1 } },
		{ { ETH, VLAN, IP4, UDP }, ROCE & 0xfff0, 0xfff0, .action = TO },
		{ { ETH, IP4, UDP }, ROCE + 2, 0xffff, .action = OVER, .queues = { 0, 1 },
			.count = 2 },
	};
	struct rte_flow *flows[RTE_DIM(rules)];
	struct rte_flow_error error;
	int valid;

	set_reta(2, 1);
	for (size_t i = 0; i < RTE_DIM(rules); i++) {
		flows[i] = make(&rules[i], &valid);
		CU_ASSERT_EQUAL(valid, 0);
	}
	for (uint32_t salt = 1; salt < 30; salt++) {
		struct shape v4 = udp(false, false, salt, ROCE), v6 = udp(true, false, salt, ROCE);
		struct shape tagged = udp(false, true, salt, ROCE + 1), other = v4;

		CU_ASSERT_EQUAL(queue_of(&v4), (int)(hash_of(&v4, true) % RETA % 2));
		CU_ASSERT_EQUAL(queue_of(&v6), 1);
		CU_ASSERT_EQUAL(queue_of(&tagged), 0);
		/* Which says nothing of what is hashed: addresses. */
		other.dport = ROCE + 2;
		CU_ASSERT_EQUAL(queue_of(&other), (int)(hash_of(&other, false) % RETA % 2));
		/* Another port, another protocol, a fragment, another tag: the rest. */
		other.dport = ROCE + 1;
		CU_ASSERT_EQUAL(queue_of(&other), 2);
		other = v4;
		other.protocol = 6;
		CU_ASSERT_EQUAL(queue_of(&other), 2);
		other = v4;
		other.fragment = true;
		CU_ASSERT_EQUAL(queue_of(&other), 2);
		v6.tagged = true;
		CU_ASSERT_EQUAL(queue_of(&v6), 2);
	}
	CU_ASSERT_EQUAL(rte_flow_destroy(port, flows[1], &error), 0);
	{
		struct shape v6 = udp(true, false, 3, ROCE), v4 = udp(false, false, 3, ROCE);

		CU_ASSERT_EQUAL(queue_of(&v6), 2);
		CU_ASSERT(queue_of(&v4) != 2);
		CU_ASSERT_EQUAL(rte_flow_flush(port, &error), 0);
		CU_ASSERT_EQUAL(queue_of(&v4), 2);
	}
}

static void
other_rules_are_refused(void)
{
	static const struct rule rules[] = {
		{ { ETH, IP4, TCP }, ROCE, 0xffff, .action = TO },
		{ { ETH, IP4 }, ROCE, 0xffff, .action = TO },
		{ { ETH, UDP }, ROCE, 0xffff, .action = TO },
		{ { ETH, IP4, IP6, UDP }, ROCE, 0xffff, .action = TO },
		{ { ETH, VLAN, VLAN, IP4, UDP }, ROCE, 0xffff, .action = TO },
		{ { ETH, IP4, UDP, UDP }, ROCE, 0xffff, .action = TO },
		{ { ETH, IP4, UDP }, 0, 0, .action = TO },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .source_mask = 1, .action = TO },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .spec_below = true, .action = TO },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .egress = true, .action = TO },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .priority = true, .action = TO },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = RTE_FLOW_ACTION_TYPE_DROP },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = TO, .queues = { QUEUES } },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = TO, .second_action = true },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = OVER },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = OVER, .count = 17 },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = OVER, .queues = { 0, 9 }, .count = 2 },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = OVER, .count = 1, .key_len = KEY_LEN,
			.other_key = true },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = OVER, .count = 1,
			.key_len = KEY_LEN - 1 },
		{ { ETH, IP4, UDP }, ROCE, 0xffff, .action = OVER, .count = 1,
			.types = RTE_ETH_RSS_TCP },
	};
	int valid;

	for (size_t i = 0; i < RTE_DIM(rules); i++) {
		make(&rules[i], &valid);
		if (valid == 0)
			printf("# rule %zu is taken\n", i);
		CU_ASSERT(valid < 0);
	}
}

/* A flood of what nobody takes fills the queue that it goes to. */
static void
a_full_queue_loses_alone(void)
{
	static const struct rule roce = { { ETH, IP4, UDP }, ROCE, 0xffff, .action = TO };
	struct shape flood = udp(false, false, 5, 9), wanted = udp(false, false, 5, ROCE);
	struct rte_eth_stats before, after;
	struct rte_mbuf *mbufs[DEPTH];
	struct rte_flow_error error;
	int valid;

	set_reta(2, 1);
	make(&roce, &valid);
	rte_eth_stats_get(port, &before);
	for (uint32_t i = 0; i < 3 * DEPTH; i++) {
		CU_ASSERT(give(&flood));
		CU_ASSERT_EQUAL(rte_eth_rx_burst(port, 1, mbufs, 1), 0);
	}
	CU_ASSERT(give(&wanted));
	CU_ASSERT_EQUAL(rte_eth_rx_burst(port, 0, mbufs, 4), 1);
	rte_pktmbuf_free(mbufs[0]);
	CU_ASSERT_EQUAL(rte_eth_rx_burst(port, 2, mbufs, DEPTH), DEPTH);
	rte_pktmbuf_free_bulk(mbufs, DEPTH);
	CU_ASSERT_EQUAL(rte_eth_rx_burst(port, 2, mbufs, DEPTH), 0);
	rte_eth_stats_get(port, &after);
	CU_ASSERT_EQUAL(after.imissed - before.imissed, 2 * DEPTH);
	rte_flow_flush(port, &error);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static void
queues_stay(void)
{
	char error[200] = "";

	CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, "drop=0", error, sizeof(error)), 0);
	CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, "queues=3", error, sizeof(error)), 0);
	CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, "queues=4", error, sizeof(error)), -EINVAL);
	CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, "flow=0", error, sizeof(error)), -EINVAL);
	CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, "flow=3", error, sizeof(error)), -EINVAL);
	CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, "fewer=16", error, sizeof(error)), -EINVAL);
	CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, "queues=17", error, sizeof(error)), -EINVAL);
	CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, "queues=1", error, sizeof(error)), -EINVAL);
}

/* What is in its queues goes with it, and rules too. */
static void
stops_and_goes(void)
{
	static const struct rule roce = { { ETH, IP4, UDP }, ROCE, 0xffff, .action = TO };
	struct shape shape = udp(false, false, 5, 9);
	struct rte_mbuf *mbuf;
	int valid;

	make(&roce, &valid);
	for (uint32_t i = 0; i < 10; i++)
		give(&shape);
	CU_ASSERT_EQUAL(rte_eth_rx_burst(port, 0, &mbuf, 1), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_stop(port), 0);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
	CU_ASSERT_EQUAL(rte_eth_dev_start(port), 0);
	CU_ASSERT_EQUAL(queue_of(&shape), 2);
	CU_ASSERT_EQUAL(rte_eth_dev_stop(port), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_close(port), 0);
	CU_ASSERT_EQUAL(rte_vdev_uninit("net_impair0"), 0);
}

static void
no_rules_where_it_has_none(void)
{
	struct rte_flow_attr attr = { .ingress = 1 };
	struct rte_flow_item pattern = { .type = RTE_FLOW_ITEM_TYPE_END };
	struct rte_flow_action action = { .type = RTE_FLOW_ACTION_TYPE_END };
	struct rte_eth_dev_info info;
	struct rte_flow_error error;
	uint16_t inner;

	CU_ASSERT_EQUAL(rte_vdev_init("net_null7", "no-rx=1"), 0);
	CU_ASSERT_EQUAL(rte_vdev_init("net_impair7", "port=net_null7,queues=2,flow=0"), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_get_port_by_name("net_impair7", &inner), 0);
	CU_ASSERT_EQUAL(rte_flow_validate(inner, &attr, &pattern, &action, &error), -ENOSYS);
	CU_ASSERT_EQUAL(rte_eth_dev_info_get(inner, &info), 0);
	CU_ASSERT_EQUAL(info.max_rx_queues, 2);
	CU_ASSERT_EQUAL(info.max_tx_queues, 2);
	CU_ASSERT_EQUAL(rte_eth_dev_close(inner), 0);
	CU_ASSERT_EQUAL(rte_vdev_uninit("net_impair7"), 0);
}

static int
open_port(void)
{
	struct rte_ring *ring =
		rte_ring_create("loop", 512, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	struct rte_eth_conf conf = { .rxmode.mtu = 1500, .rxmode.mq_mode = RTE_ETH_MQ_RX_RSS };
	struct rte_eth_dev_info info;
	int err = 0;

	for (uint32_t i = 0; i < KEY_LEN; i++)
		key[i] = (uint8_t)(i * 59 + 7);
	pool = rte_pktmbuf_pool_create(
		"pool", BUFFERS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (ring == NULL || pool == NULL ||
		rte_eth_from_rings("loop", &ring, 1, &ring, 1, (unsigned int)SOCKET_ID_ANY) < 0 ||
		rte_vdev_init("net_impair0", "port=net_ring_loop,queues=3") != 0 ||
		rte_eth_dev_get_port_by_name("net_impair0", &port) != 0 ||
		rte_eth_dev_info_get(port, &info) != 0)
		return -1;
	conf.rx_adv_conf.rss_conf = (struct rte_eth_rss_conf){ .rss_key = key,
		.rss_key_len = info.hash_key_size,
		.rss_hf = info.flow_type_rss_offloads };
	err = rte_eth_dev_configure(port, QUEUES, QUEUES, &conf);
	for (uint16_t i = 0; i < QUEUES && err == 0; i++) {
		err = rte_eth_rx_queue_setup(port, i, DEPTH, 0, NULL, pool);
		if (err == 0)
			err = rte_eth_tx_queue_setup(port, i, DEPTH, 0, NULL);
	}
	return err != 0 ? err : rte_eth_dev_start(port);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(spreads_by_the_hash),
		RCD_TEST(hashes_what_it_is_told_to),
		RCD_TEST(rules_come_first),
		RCD_TEST(other_rules_are_refused),
		RCD_TEST(a_full_queue_loses_alone),
		RCD_TEST(queues_stay),
		RCD_TEST(no_rules_where_it_has_none),
		RCD_TEST(stops_and_goes),
	};

	if (begin_eal("impair_steer") != 0 || open_port() != 0) {
		printf("Bail out! no port\n");
		return 1;
	}
	return rcd_tap_run("impair_steer", tests, RTE_DIM(tests));
}
