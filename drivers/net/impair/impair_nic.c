/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A NIC made of a port with one queue and a ring for each of its own.
 */
#include "impair_nic.h"

#include <errno.h>
#include <rte_flow_driver.h>
#include <rte_malloc.h>
#include <rte_ring.h>
#include <rte_spinlock.h>
#include <stdio.h>
#include <string.h>

#include <ethdev_driver.h>

#include "impair_dev.h"
#include "impair_steer.h"

#define BURST 32

/** The NIC. */
struct impair_nic {
	rte_spinlock_t lock; /**< around the port's queue, and what decides */
	rte_spinlock_t tx_lock;
	uint16_t most;   /**< queues that it may have */
	uint64_t missed; /**< under the lock; relaxed, any thread looks */
	bool plain;      /**< its rules choose their hash */
	struct impair_steer steer;
	struct rte_ring *rings[IMPAIR_QUEUES]; /**< NULL: not set up */
};

struct impair_nic *
impair_nic_create(const struct impair_args *args, int socket_id)
{
	struct impair_nic *nic = rte_zmalloc_socket("impair_nic", sizeof(*nic), 0, socket_id);

	if (nic == NULL)
		return NULL;
	rte_spinlock_init(&nic->lock);
	rte_spinlock_init(&nic->tx_lock);
	nic->most = (uint16_t)args->queues;
	nic->plain = args->flow == 2;
	impair_steer_set(&nic->steer, 1, NULL);
	return nic;
}

static void
impair_nic_forget_rules(struct impair_nic *nic)
{
	struct rte_flow *flow;

	while ((flow = TAILQ_FIRST(&nic->steer.rules)) != NULL) {
		TAILQ_REMOVE(&nic->steer.rules, flow, link);
		rte_free(flow);
	}
}

static void
impair_nic_empty_ring(struct rte_ring *ring)
{
	void *mbuf;

	while (ring != NULL && rte_ring_dequeue(ring, &mbuf) == 0)
		rte_pktmbuf_free(mbuf);
}

static void
impair_nic_free_ring(struct rte_ring *ring)
{
	impair_nic_empty_ring(ring);
	rte_ring_free(ring);
}

void
impair_nic_destroy(struct impair_nic *nic)
{
	if (nic == NULL)
		return;
	impair_nic_forget_rules(nic);
	for (uint16_t i = 0; i < IMPAIR_QUEUES; i++)
		impair_nic_free_ring(nic->rings[i]);
	rte_free(nic);
}

void
impair_nic_clear(struct impair_nic *nic)
{
	for (uint16_t i = 0; i < IMPAIR_QUEUES; i++)
		impair_nic_empty_ring(nic->rings[i]);
}

int
impair_nic_configure(struct impair_nic *nic, const struct rte_eth_dev *eth)
{
	const struct rte_eth_conf *conf = &eth->data->dev_conf;
	bool rss = (conf->rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) != 0;

	impair_nic_forget_rules(nic);
	for (uint16_t i = 0; i < IMPAIR_QUEUES; i++) {
		impair_nic_free_ring(nic->rings[i]);
		nic->rings[i] = NULL;
	}
	nic->steer.plain = nic->plain;
	return impair_steer_set(
		&nic->steer, eth->data->nb_rx_queues, rss ? &conf->rx_adv_conf.rss_conf : NULL);
}

int
impair_nic_queue_setup(
	struct impair_nic *nic, uint16_t port_id, uint16_t index, uint16_t count, int socket_id)
{
	char name[RTE_RING_NAMESIZE];

	impair_nic_free_ring(nic->rings[index]);
	snprintf(name, sizeof(name), "impair_%u_%u", port_id, index);
	nic->rings[index] = rte_ring_create(
		name, count, socket_id, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	return nic->rings[index] != NULL ? 0 : -ENOMEM;
}

void
impair_nic_lose(struct impair_nic *nic, uint32_t queues)
{
	nic->most = (uint16_t)(queues < nic->most ? nic->most - queues : 1);
}

uint64_t
impair_nic_missed(const struct impair_nic *nic)
{
	return __atomic_load_n(&nic->missed, __ATOMIC_RELAXED);
}

void
impair_nic_info(const struct impair_nic *nic, struct rte_eth_dev_info *info)
{
	info->max_rx_queues = info->max_tx_queues = nic->most;
	info->hash_key_size = IMPAIR_KEY_LEN;
	info->reta_size = IMPAIR_RETA_SIZE;
	info->flow_type_rss_offloads = IMPAIR_HASH_TYPES;
}

/* A full queue loses what comes, and no other does. */
static void
impair_nic_spread(struct impair_nic *nic, struct rte_mbuf *mbuf)
{
	uint16_t queue = impair_steer_queue(
		&nic->steer, rte_pktmbuf_mtod(mbuf, const uint8_t *), rte_pktmbuf_data_len(mbuf));

	if (rte_ring_enqueue(nic->rings[queue], mbuf) == 0)
		return;
	rte_pktmbuf_free(mbuf);
	__atomic_store_n(&nic->missed, nic->missed + 1, __ATOMIC_RELAXED);
}

uint16_t
impair_nic_rx_burst(struct impair_nic *nic, uint16_t index, struct rte_mbuf **mbufs, uint16_t count,
	uint16_t (*take)(void *arg, struct rte_mbuf **mbufs, uint16_t count), void *arg)
{
	struct rte_ring *ring = nic->rings[index];
	struct rte_mbuf *received[BURST];

	/* Who is at it spreads for all. */
	if (rte_ring_count(ring) < count && rte_spinlock_trylock(&nic->lock)) {
		uint16_t got = take(arg, received, BURST);

		for (uint16_t i = 0; i < got; i++)
			impair_nic_spread(nic, received[i]);
		rte_spinlock_unlock(&nic->lock);
	}
	return (uint16_t)rte_ring_dequeue_burst(ring, (void **)mbufs, count, NULL);
}

void
impair_nic_tx_lock(struct impair_nic *nic)
{
	if (nic != NULL)
		rte_spinlock_lock(&nic->tx_lock);
}

void
impair_nic_tx_unlock(struct impair_nic *nic)
{
	if (nic != NULL)
		rte_spinlock_unlock(&nic->tx_lock);
}

static struct impair_nic *
impair_nic_of(const struct rte_eth_dev *eth)
{
	return ((const struct impair_dev *)eth->data->dev_private)->nic;
}

int
impair_nic_rss_hash_update(struct rte_eth_dev *eth, struct rte_eth_rss_conf *conf)
{
	struct impair_nic *nic = impair_nic_of(eth);
	int err;

	if (nic == NULL)
		return -ENOTSUP;
	rte_spinlock_lock(&nic->lock);
	err = impair_steer_set_hash(&nic->steer, conf);
	rte_spinlock_unlock(&nic->lock);
	return err;
}

int
impair_nic_rss_hash_conf_get(struct rte_eth_dev *eth, struct rte_eth_rss_conf *conf)
{
	const struct impair_nic *nic = impair_nic_of(eth);

	if (nic == NULL)
		return -ENOTSUP;
	if (conf->rss_key != NULL && conf->rss_key_len >= IMPAIR_KEY_LEN)
		memcpy(conf->rss_key, nic->steer.key, IMPAIR_KEY_LEN);
	conf->rss_key_len = IMPAIR_KEY_LEN;
	conf->rss_hf = nic->steer.rss ? nic->steer.hash_types : 0;
	return 0;
}

int
impair_nic_reta_update(
	struct rte_eth_dev *eth, struct rte_eth_rss_reta_entry64 *reta, uint16_t size)
{
	struct impair_nic *nic = impair_nic_of(eth);

	if (nic == NULL)
		return -ENOTSUP;
	if (size != IMPAIR_RETA_SIZE)
		return -EINVAL;
	rte_spinlock_lock(&nic->lock);
	for (uint16_t i = 0; i < size; i++)
		if (reta[i / RTE_ETH_RETA_GROUP_SIZE].mask >> i % RTE_ETH_RETA_GROUP_SIZE & 1)
			nic->steer.reta[i] =
				reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
	rte_spinlock_unlock(&nic->lock);
	return 0;
}

int
impair_nic_reta_query(struct rte_eth_dev *eth, struct rte_eth_rss_reta_entry64 *reta, uint16_t size)
{
	const struct impair_nic *nic = impair_nic_of(eth);

	if (nic == NULL)
		return -ENOTSUP;
	if (size != IMPAIR_RETA_SIZE)
		return -EINVAL;
	for (uint16_t i = 0; i < size; i++)
		if (reta[i / RTE_ETH_RETA_GROUP_SIZE].mask >> i % RTE_ETH_RETA_GROUP_SIZE & 1)
			reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] =
				nic->steer.reta[i];
	return 0;
}

static int
impair_nic_flow_validate(struct rte_eth_dev *eth, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct impair_rule rule;

	return impair_steer_parse(&impair_nic_of(eth)->steer, attr, pattern, actions, &rule, error);
}

static struct rte_flow *
impair_nic_flow_create(struct rte_eth_dev *eth, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct impair_nic *nic = impair_nic_of(eth);
	struct impair_rule rule;
	struct rte_flow *flow;

	if (impair_steer_parse(&nic->steer, attr, pattern, actions, &rule, error) != 0)
		return NULL;
	flow = rte_zmalloc("impair_flow", sizeof(*flow), 0);
	if (flow == NULL) {
		rte_flow_error_set(
			error, ENOMEM, RTE_FLOW_ERROR_TYPE_HANDLE, NULL, "no memory for a rule");
		return NULL;
	}
	flow->rule = rule;
	rte_spinlock_lock(&nic->lock);
	TAILQ_INSERT_TAIL(&nic->steer.rules, flow, link);
	rte_spinlock_unlock(&nic->lock);
	return flow;
}

static int
impair_nic_flow_destroy(
	struct rte_eth_dev *eth, struct rte_flow *flow, struct rte_flow_error *error)
{
	struct impair_nic *nic = impair_nic_of(eth);

	(void)error;
	rte_spinlock_lock(&nic->lock);
	TAILQ_REMOVE(&nic->steer.rules, flow, link);
	rte_spinlock_unlock(&nic->lock);
	rte_free(flow);
	return 0;
}

static int
impair_nic_flow_flush(struct rte_eth_dev *eth, struct rte_flow_error *error)
{
	struct impair_nic *nic = impair_nic_of(eth);

	(void)error;
	rte_spinlock_lock(&nic->lock);
	impair_nic_forget_rules(nic);
	rte_spinlock_unlock(&nic->lock);
	return 0;
}

int
impair_nic_flow_ops_get(struct rte_eth_dev *eth, const struct rte_flow_ops **ops)
{
	static const struct rte_flow_ops of_rules = {
		.validate = impair_nic_flow_validate,
		.create = impair_nic_flow_create,
		.destroy = impair_nic_flow_destroy,
		.flush = impair_nic_flow_flush,
	};
	const struct impair_dev *dev = eth->data->dev_private;

	/* None: ethdev says that there is no such thing. */
	*ops = dev->nic != NULL && dev->args.flow ? &of_rules : NULL;
	return 0;
}
