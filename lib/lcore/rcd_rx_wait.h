/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an lcore that sleeps waits for of its receive queues: a descriptor of the driver's, where it
 * has one (DPDK Programmer's Guide, Poll Mode Driver, "Rx interrupts"; a socket, as a port on a
 * netdev is).
 *
 * Threads: the lcore, in the functions.
 */
#ifndef RCD_RX_WAIT_H
#define RCD_RX_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct epoll_event;
struct rcd_lcore;
struct rcd_lport;

/** The longest sleep where one of the ports can't end it, ns; others are longer. */
#define RCD_RX_WAIT_BLIND_NS 1000000

/** How one learns of packets in a queue. */
enum rcd_rx_wait_kind {
	RCD_RX_WAIT_NONE,      /**< not at all: it looks again before long */
	RCD_RX_WAIT_READABLE,  /**< the descriptor is readable while packets are there */
	RCD_RX_WAIT_INTERRUPT, /**< an eventfd that is written when one comes, if asked for */
};

/** That of one queue. The descriptor is the driver's. */
struct rcd_rx_wait {
	enum rcd_rx_wait_kind kind;
	int fd;
	bool sure; /**< not seen yet to end a sleep, it is known to: a socket of the kernel's */
};

/** Know those of a port, from now on. */
void
rcd_rx_wait_join(const struct rcd_lcore *lcore, const struct rcd_lport *lport);

/** Forget them, before the driver closes them. */
void
rcd_rx_wait_leave(const struct rcd_lcore *lcore, const struct rcd_lport *lport);

/** How long to sleep at most, if nothing else ends it. @return ns */
uint64_t
rcd_rx_wait_longest(const struct rcd_lcore *lcore);

/** Before a sleep: have packets end it. @return false: there are some already */
bool
rcd_rx_wait_arm(const struct rcd_lcore *lcore);

/**
 * What ended a sleep, before rcd_rx_wait_disarm(). An event of what is no queue has -1 for its
 * descriptor.
 *
 * @param count   0: nothing did
 * @param nap_ns  how long it was to be at most
 */
void
rcd_rx_wait_woken(
	struct rcd_lcore *lcore, const struct epoll_event *events, int count, uint64_t nap_ns);

/** After rcd_rx_wait_arm(), whatever it returned. */
void
rcd_rx_wait_disarm(const struct rcd_lcore *lcore);

#endif /* RCD_RX_WAIT_H */
