/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which queue of a port gets what: RoCE those of the lcores, and the rest one of its own where the
 * kernel has a part in the port and the NIC knows flow rules; else all of it goes to all by RSS, or
 * as the driver likes. What was refused is said once, and less is asked for.
 *
 * Threads: the control thread.
 */
#ifndef RCD_STEER_H
#define RCD_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_rss.h"

struct rcd_av;
struct rcd_dev;
struct rte_eth_conf;
struct rte_eth_dev_info;
struct rte_flow;

#define RCD_STEER_RULES 4 /**< IPv4 and IPv6, untagged and tagged */

/** How it is done. */
enum rcd_steer_kind {
	RCD_STEER_NONE, /**< one queue, or a driver that has nothing to be told */
	RCD_STEER_RSS,
	RCD_STEER_FLOW,
};

/** That of a port. All zero: nothing was asked for. */
struct rcd_steer {
	enum rcd_steer_kind kind;
	bool as_driver;     /**< rules leave the hash to the driver, which may be any */
	struct rcd_rss rss; /**< of packets for queue pairs */
	struct rte_flow *rules[RCD_STEER_RULES];
};

/** "none", "rss" or "flow". Any thread. */
const char *
rcd_steer_name(enum rcd_steer_kind kind);

/** The most that can be asked for, of a port that is about to be configured. */
void
rcd_steer_plan(struct rcd_dev *dev, const struct rte_eth_dev_info *info);

/** Ask for less. @return false: there is nothing less */
bool
rcd_steer_less(struct rcd_dev *dev);

/** What it takes of a port's configuration; the number of queues is known. */
void
rcd_steer_configure(
	struct rcd_dev *dev, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf);

/** Whether a port that is configured would take the rules. @return 0, or -errno: it is said why */
int
rcd_steer_check(const struct rcd_dev *dev);

/**
 * Set up a port that has been started, and learn where packets come to.
 *
 * @return 0, or -errno: it has no rules, and is to be configured with less; it is said why
 */
int
rcd_steer_begin(struct rcd_dev *dev);

/** The port is about to be stopped: it has no rules any more. */
void
rcd_steer_end(struct rcd_dev *dev);

/**
 * The queue, and so the lcore, that packets of a peer come to: of a Rocade or a Linux, which have
 * the same source port at both ends of a connection.
 *
 * @param av  of our own packets to it
 * @return RCD_RSS_UNKNOWN: it can't be told, or they come without a port
 */
int
rcd_steer_queue(
	const struct rcd_dev *dev, const struct rcd_av *av, uint32_t qpn, uint32_t dest_qpn);

#endif /* RCD_STEER_H */
