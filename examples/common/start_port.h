/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A port of a program's own, started with one queue to receive from, as simple programs do it.
 */
#ifndef START_PORT_H
#define START_PORT_H

#include <rte_ethdev.h>

static inline int
start_port(uint16_t port, uint16_t tx_queues, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { .rxmode.mq_mode = RTE_ETH_MQ_RX_NONE };
	uint16_t rx = 1024, tx = 1024;

	if (rte_eth_dev_configure(port, 1, tx_queues, &conf) != 0 ||
		rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx) != 0 ||
		rte_eth_rx_queue_setup(port, 0, rx, SOCKET_ID_ANY, NULL, pool) != 0)
		return -1;
	for (uint16_t i = 0; i < tx_queues; i++)
		if (rte_eth_tx_queue_setup(port, i, tx, SOCKET_ID_ANY, NULL) != 0)
			return -1;
	rte_eth_promiscuous_enable(port);
	return rte_eth_dev_start(port);
}

#endif /* START_PORT_H */
