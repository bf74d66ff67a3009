/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Operations of ethdev that are the wrapped port's, or nearly: ethdev_driver.h says what each does.
 */
#ifndef IMPAIR_OPS_H
#define IMPAIR_OPS_H

#include <stdint.h>

struct rte_ether_addr;
struct rte_eth_dev;
struct rte_eth_fc_conf;
struct rte_eth_stats;
struct rte_eth_xstat;
struct rte_eth_xstat_name;

int
impair_ops_link_update(struct rte_eth_dev *eth, int wait);
int
impair_ops_mtu_set(struct rte_eth_dev *eth, uint16_t mtu);
int
impair_ops_promiscuous_enable(struct rte_eth_dev *eth);
int
impair_ops_promiscuous_disable(struct rte_eth_dev *eth);
int
impair_ops_allmulticast_enable(struct rte_eth_dev *eth);
int
impair_ops_allmulticast_disable(struct rte_eth_dev *eth);
int
impair_ops_set_mc_addr_list(struct rte_eth_dev *eth, struct rte_ether_addr *list, uint32_t count);
int
impair_ops_vlan_filter_set(struct rte_eth_dev *eth, uint16_t id, int on);
int
impair_ops_vlan_offload_set(struct rte_eth_dev *eth, int mask);
int
impair_ops_flow_ctrl_get(struct rte_eth_dev *eth, struct rte_eth_fc_conf *conf);
int
impair_ops_flow_ctrl_set(struct rte_eth_dev *eth, struct rte_eth_fc_conf *conf);
int
impair_ops_mac_addr_set(struct rte_eth_dev *eth, struct rte_ether_addr *mac);
int
impair_ops_stats_get(struct rte_eth_dev *eth, struct rte_eth_stats *stats);
int
impair_ops_stats_reset(struct rte_eth_dev *eth);
int
impair_ops_xstats_get_names(
	struct rte_eth_dev *eth, struct rte_eth_xstat_name *names, unsigned int size);
int
impair_ops_xstats_get(struct rte_eth_dev *eth, struct rte_eth_xstat *stats, unsigned int size);
int
impair_ops_xstats_reset(struct rte_eth_dev *eth);

#endif /* IMPAIR_OPS_H */
