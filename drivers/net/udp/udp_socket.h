/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The sockets of a queue, for each version of IP, which both directions share.
 *
 * Threads: opened and closed by who configures the device; used by the queue's.
 */
#ifndef UDP_SOCKET_H
#define UDP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "udp_args.h"

/** Kernels of 2018 have them; headers may be older. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IP_RECVFRAGSIZE
#define IP_RECVFRAGSIZE 25
#endif
#ifndef IPV6_RECVFRAGSIZE
#define IPV6_RECVFRAGSIZE 77
#endif

enum udp_family {
	UDP_V4,
	UDP_V6,
	UDP_FAMILIES, /**< how many there are */
};

/**
 * Sockets by their numbers: first those that are bound to the port, of each version, then those to
 * send by to who was not heard. The kernel keeps what is for a neighbour that does not answer, some
 * seconds long, and a socket's room is all that it keeps: that of the former is for those who are
 * there.
 */
#define UDP_STRANGERS UDP_FAMILIES

/** Of one queue. */
struct udp_sockets {
	int fds[UDP_SOCKETS];        /**< -1: this machine does not have that version */
	uint16_t ports[UDP_SOCKETS]; /**< that they send from, in host byte order */
	int epoll;                   /**< readable while one that is bound is; -1: not open */
	bool runs;                   /**< the kernel takes several datagrams in a call */
	bool gro;                    /**< likewise, gives */
	bool given;                  /**< somebody else made them: they stay when all is stopped */
};

_Static_assert(UDP_SOCKETS == 2 * UDP_FAMILIES && UDP_SOCKETS == 4, "as UDP_SOCKETS_NONE has");

/** None is open. */
#define UDP_SOCKETS_NONE ((struct udp_sockets){ .fds = { -1, -1, -1, -1 }, .epoll = -1 })

/**
 * Whether the port is nobody's: several queues share one, and so others could.
 *
 * @return 0 or -errno, with a sentence in error
 */
int
udp_socket_claim(const struct udp_args *args, char *error, size_t error_len);

/**
 * Open those of a queue.
 *
 * @param queue   number of the queue: groups are received by the first alone
 * @param shared  there are other queues
 * @return 0 or -errno, with a sentence in error: nothing is open
 */
int
udp_socket_open(struct udp_sockets *sockets, const struct udp_args *args, uint16_t queue,
	bool shared, char *error, size_t error_len);

/**
 * Take those of a queue that somebody else made, of a network namespace maybe that we can't go to.
 * They are duplicated; what is not of the version of IP that belongs in its place is left out.
 *
 * @param fds  UDP_SOCKETS, by number
 * @return 0 or -errno, with a sentence in error: nothing is open
 */
int
udp_socket_take(struct udp_sockets *sockets, const int *fds, char *error, size_t error_len);

/** How many datagrams found no room in those that receive. Any thread, while they are open. */
uint64_t
udp_socket_missed(const struct udp_sockets *sockets);

/** Close what is open; those that were given stay, and keep their port. */
void
udp_socket_stop(struct udp_sockets *sockets);

/** Close what is open. */
void
udp_socket_close(struct udp_sockets *sockets);

#endif /* UDP_SOCKET_H */
