/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A device of net_udp and its queues.
 */
#ifndef UDP_DEV_H
#define UDP_DEV_H

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "udp_args.h"
#include "udp_icrc.h"
#include "udp_peers.h"
#include "udp_socket.h"

#define UDP_RUN_MAX  64    /**< datagrams that are sent in a call (UDP_MAX_SEGMENTS of Linux) */
#define UDP_RUN_ROOM 128   /**< that may come in one: newer kernels send twice as many */
#define UDP_CALLS    32    /**< calls that are made by one system call */
#define UDP_BYTES    65535 /**< of a run that is received, at most */
#define UDP_CTRL_LEN 256   /**< bytes of control messages */

struct udp_dev;

/** What is counted, each by its queue's thread; read by any, relaxed. */
struct udp_counts {
	uint64_t packets, bytes;
	uint64_t calls;     /**< datagrams and runs */
	uint64_t runs;      /**< those with several datagrams */
	uint64_t copied;    /**< received: packets that another size was expected for */
	uint64_t invalid;   /**< sent: no UDP; received: cut, without a destination */
	uint64_t too_long;  /**< for the path, or for a buffer */
	uint64_t options;   /**< received: with options of IPv4, or more headers of IPv6 */
	uint64_t fragments; /**< received: put together of fragments */
	uint64_t refused;   /**< by the kernel: no route, or a filter */
	uint64_t full;      /**< sent: no room for too long */
	uint64_t no_buffer; /**< received: the pool is empty */
	uint64_t icmp;      /**< errors that others told of */
};

/** What a queue counts, for any thread to read. */
static inline void
udp_count(uint64_t *counter, uint64_t by)
{
	__atomic_store_n(counter, *counter + by, __ATOMIC_RELAXED);
}

/** What is expected of a socket. */
struct udp_guess {
	uint32_t size;  /**< of the next datagrams, bytes; not 0 */
	uint32_t firm;  /**< so many datagrams of another size don't change it */
	uint32_t quiet; /**< looks at it in a row that found nothing */
};

/** A queue that is received from. One thread at a time. */
struct udp_rxq {
	struct udp_dev *dev;
	const struct udp_sockets *sockets;
	struct rte_mempool *pool;
	uint16_t port_id;
	uint32_t room; /**< bytes of a datagram that a buffer takes */
	struct udp_guess guess[UDP_FAMILIES];
	uint32_t bursts;                      /**< asked for */
	uint32_t armed_count;                 /**< of armed, empty */
	struct rte_mbuf *armed[UDP_RUN_ROOM]; /**< that the next datagrams go into */
	uint32_t ready_at, ready_count;       /**< of ready: the first, and how many there are */
	struct rte_mbuf *ready[UDP_RUN_ROOM]; /**< that the program takes */
	uint8_t *rest, *whole;                /**< UDP_BYTES each: what no buffer took, and a run */
	struct udp_counts counts;
};

/** A queue that is sent by. One thread at a time. */
struct udp_txq {
	struct udp_dev *dev;
	const struct udp_sockets *sockets;
	uint32_t apart;   /**< the kernel refused a run: so many go one by one */
	bool apart_asked; /**< whether that is because it was a run, the first of them will tell */
	uint64_t full_tsc[UDP_SOCKETS];  /**< since when they have no room; 0: they have */
	uint64_t asked_tsc[UDP_SOCKETS]; /**< when they had none last */
	struct udp_icrc icrc;
	struct udp_counts counts;
};

/** The device. */
struct udp_dev {
	struct udp_args args;
	unsigned int ifindex; /**< 0: any */
	bool cuts; /**< a NIC cuts runs before anybody sees them; others may give them on whole */
	uint64_t mac; /**< that received frames go to, as it lies in memory; any thread, relaxed */
	uint64_t any_id; /**< flag of received IPv4 packets */
	uint16_t sockets_count;
	struct udp_sockets sockets[UDP_QUEUES];
	struct udp_rxq *rx[UDP_QUEUES];
	struct udp_txq *tx[UDP_QUEUES];
	struct udp_peers peers;
	/** Counted by queues that are gone, and what all had counted at the last reset. */
	struct udp_counts gone_rx, gone_tx, reset_rx, reset_tx;
	uint64_t gone_missed, reset_missed; /**< likewise, of datagrams that found no room */
};

/* udp_rx.c */

uint16_t
udp_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t count);

/** Whether there is anything to receive. The queue's thread; errors are not, and are read. */
bool
udp_rx_waiting(struct udp_rxq *rxq);

/** Buffers go back to their pool. */
void
udp_rx_clear(struct udp_rxq *rxq);

/* udp_tx.c */

uint16_t
udp_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t count);

/* udp_stats.c */

struct rte_eth_dev;
struct rte_eth_stats;
struct rte_eth_xstat;
struct rte_eth_xstat_name;

/* As struct eth_dev_ops has them. */
int
udp_stats_get(struct rte_eth_dev *eth, struct rte_eth_stats *stats);
int
udp_stats_reset(struct rte_eth_dev *eth);
int
udp_stats_xget(struct rte_eth_dev *eth, struct rte_eth_xstat *xstats, unsigned int count);
int
udp_stats_xget_names(struct rte_eth_dev *eth, struct rte_eth_xstat_name *names, unsigned int count);

/* udp_errors.c */

/**
 * Read all that the kernel keeps of errors that a socket had.
 *
 * @return whether one came from elsewhere: who was told of it may try again
 */
bool
udp_errors_clear(int fd, struct udp_counts *counts);

#endif /* UDP_DEV_H */
