/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Bursts: what ethdev calls for a queue (ethdev_driver.h). They are all that drives packets which
 * wait: of a queue, its sender's too when it receives.
 *
 * Threads: who sends, or receives, by the queue.
 */
#ifndef IMPAIR_PATH_H
#define IMPAIR_PATH_H

#include <stdint.h>

struct rte_mbuf;

uint16_t
impair_path_tx_burst(void *queue, struct rte_mbuf **mbufs, uint16_t count);
uint16_t
impair_path_tx_prepare(void *queue, struct rte_mbuf **mbufs, uint16_t count);
uint16_t
impair_path_rx_burst(void *queue, struct rte_mbuf **mbufs, uint16_t count);

#endif /* IMPAIR_PATH_H */
