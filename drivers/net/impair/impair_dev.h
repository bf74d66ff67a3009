/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A device of net_impair, as its files know it.
 */
#ifndef IMPAIR_DEV_H
#define IMPAIR_DEV_H

#include <rte_ethdev.h>
#include <stdbool.h>
#include <stdint.h>

#include "impair_args.h"
#include "impair_filter.h"
#include "impair_lane.h"
#include "impair_neck.h"

struct impair_dev;
struct impair_nic;

/** A queue, in one direction: what the ethdev layer knows as a queue. */
struct impair_queue {
	struct impair_dev *dev;
	struct impair_lane *lane;
	struct rte_mempool *pool;   /**< for received frames */
	struct impair_queue *other; /**< the same queue's sending side, for the receiving one */
	uint16_t port_id;           /**< of the wrapped port */
	uint16_t index;             /**< there */
};

/** A device. */
struct impair_dev {
	uint16_t port_id; /**< of the wrapped port */
	struct rte_eth_dev_owner owner;
	struct impair_args args;
	struct rte_mempool *whole; /**< for frames of the wrapped port, before they are in pieces */
	struct impair_nic *nic;    /**< it has queues of its own; NULL: those of the wrapped port */
	uint16_t burst;            /**< as in the arguments, UINT16_MAX: any; relaxed */
	bool down;                 /**< it was reset, and is not set up anew yet; relaxed */
	bool cut;                  /**< its cable is out; relaxed */
	bool csum;                 /**< as in the arguments, until a reset takes it; relaxed */
	bool strip;                /**< as in the arguments; relaxed, as the next */
	uint32_t segment;
	uint32_t tries; /**< that it takes until it is set up */
	struct impair_filter filter;
	uint64_t no_buffer;           /**< frames that there was nothing to put into; relaxed */
	enum rte_eth_fc_mode fc_mode; /**< where PAUSE frames are its own */
	struct impair_neck rx_neck, tx_neck; /**< its queues share them */
	struct impair_queue rx[RTE_MAX_QUEUES_PER_PORT];
	struct impair_queue tx[RTE_MAX_QUEUES_PER_PORT];
};

#endif /* IMPAIR_DEV_H */
