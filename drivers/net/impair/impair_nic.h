/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queues of a device's own, before a port that has one: a NIC with RSS and flow rules, on any port.
 * Whoever polls a queue takes what the port has, and spreads it (impair_steer.h).
 */
#ifndef IMPAIR_NIC_H
#define IMPAIR_NIC_H

#include <rte_mbuf.h>
#include <stdint.h>

struct impair_dev;
struct impair_args;
struct impair_nic;
struct rte_eth_dev;
struct rte_eth_dev_info;
struct rte_flow_ops;
struct rte_eth_rss_conf;
struct rte_eth_rss_reta_entry64;

/** Make it. @return NULL: no memory */
struct impair_nic *
impair_nic_create(const struct impair_args *args, int socket_id);

/** Free it, with what is in its queues. NULL is allowed. */
void
impair_nic_destroy(struct impair_nic *nic);

/** So many queues from now on, and RSS if it is configured; rules are gone. @return 0 or -EINVAL */
int
impair_nic_configure(struct impair_nic *nic, const struct rte_eth_dev *eth);

/** A queue for received frames. @return 0 or -ENOMEM */
int
impair_nic_queue_setup(
	struct impair_nic *nic, uint16_t port_id, uint16_t index, uint16_t count, int socket_id);

/** Free what is in the queues. */
void
impair_nic_clear(struct impair_nic *nic);

/** From now on it may have so many queues less; one stays. While it is stopped. */
void
impair_nic_lose(struct impair_nic *nic, uint32_t queues);

/** Frames that had no place in their queue. */
uint64_t
impair_nic_missed(const struct impair_nic *nic);

/** What such a device says of itself. */
void
impair_nic_info(const struct impair_nic *nic, struct rte_eth_dev_info *info);

/**
 * Receive from a queue.
 *
 * @param take  takes a burst from the port, for all queues, of the device's first one
 */
uint16_t
impair_nic_rx_burst(struct impair_nic *nic, uint16_t index, struct rte_mbuf **mbufs, uint16_t count,
	uint16_t (*take)(void *arg, struct rte_mbuf **mbufs, uint16_t count), void *arg);

/** The port has one queue to send by: one at a time. @param nic  NULL: it has its own */
void
impair_nic_tx_lock(struct impair_nic *nic);
void
impair_nic_tx_unlock(struct impair_nic *nic);

/* Operations of ethdev; -ENOTSUP: the device has no queues of its own. */
int
impair_nic_rss_hash_update(struct rte_eth_dev *eth, struct rte_eth_rss_conf *conf);
int
impair_nic_rss_hash_conf_get(struct rte_eth_dev *eth, struct rte_eth_rss_conf *conf);
int
impair_nic_reta_update(
	struct rte_eth_dev *eth, struct rte_eth_rss_reta_entry64 *reta, uint16_t size);
int
impair_nic_reta_query(
	struct rte_eth_dev *eth, struct rte_eth_rss_reta_entry64 *reta, uint16_t size);
int
impair_nic_flow_ops_get(struct rte_eth_dev *eth, const struct rte_flow_ops **ops);

#endif /* IMPAIR_NIC_H */
