/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A port of a program's own, started with one queue to receive from, as simple programs do it: it
 * hears all frames, or those for its MAC and for groups; and stopped.
 */
#ifndef START_PORT_H
#define START_PORT_H

#include <rte_ethdev.h>
#include <stdbool.h>

#define START_PORT_DESCRIPTORS 1024

/* Ports of sockets and the like have others' as well, whatever they are told. */
static inline uint16_t
start_port_filter(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count,
	uint16_t max, void *arg)
{
	struct rte_ether_addr mac;
	uint16_t kept = 0;

	(void)queue;
	(void)max;
	(void)arg;
	if (rte_eth_macaddr_get(port, &mac) != 0)
		return count;
	for (uint16_t i = 0; i < count; i++) {
		const struct rte_ether_addr *to =
			rte_pktmbuf_mtod(mbufs[i], const struct rte_ether_addr *);

		if (rte_is_unicast_ether_addr(to) && !rte_is_same_ether_addr(to, &mac))
			rte_pktmbuf_free(mbufs[i]);
		else
			mbufs[kept++] = mbufs[i];
	}
	return kept;
}

static inline int
start_port(uint16_t port, uint16_t tx_queues, struct rte_mempool *pool, bool all)
{
	struct rte_eth_conf conf = { .rxmode.mq_mode = RTE_ETH_MQ_RX_NONE };
	uint16_t rx = START_PORT_DESCRIPTORS, tx = START_PORT_DESCRIPTORS;

	if (rte_eth_dev_configure(port, 1, tx_queues, &conf) != 0 ||
		rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx) != 0 ||
		rte_eth_rx_queue_setup(port, 0, rx, SOCKET_ID_ANY, NULL, pool) != 0)
		return -1;
	for (uint16_t i = 0; i < tx_queues; i++)
		if (rte_eth_tx_queue_setup(port, i, tx, SOCKET_ID_ANY, NULL) != 0)
			return -1;
	if (!all && rte_eth_add_rx_callback(port, 0, start_port_filter, NULL) == NULL)
		return -1;
	/* A driver that knows no such thing as all groups has to hear everything. */
	if (all || rte_eth_allmulticast_enable(port) != 0)
		rte_eth_promiscuous_enable(port);
	return rte_eth_dev_start(port);
}

/* Before the engine ends, whose buffers it may have. */
static inline void
start_port_stop(uint16_t ports)
{
	for (uint16_t port = 0; port < ports; port++) {
		rte_eth_dev_stop(port);
		rte_eth_dev_close(port);
	}
}

#endif /* START_PORT_H */
