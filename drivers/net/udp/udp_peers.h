/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who is known to mind no IPv4 identification.
 *
 * The kernel and NICs number the datagrams of a run in their own ways, and the ICRC covers the
 * number. Who receives by a socket does not see it, and has to take any; and such a one sends from
 * the port that it receives by, which nobody else does: other RoCE peers send from 49152 and above.
 * So who was heard from that port can be sent runs. Few places are enough: who lost his gets single
 * datagrams until he is heard again.
 *
 * What is learned here is not trusted: a stranger who makes a peer look like a socket has it get
 * runs, whose packets fail at it only where a NIC numbers in another way than the kernel.
 *
 * Threads: any, together.
 */
#ifndef UDP_PEERS_H
#define UDP_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#define UDP_PEERS 1024

/** All zero: nobody is known. */
struct udp_peers {
	/** Address and port that was sent from; any thread, relaxed: each word is by itself. */
	uint64_t places[UDP_PEERS];
};

/**
 * Somebody was heard.
 *
 * @param ip    in network byte order
 * @param port  that it sent from, likewise
 */
void
udp_peers_heard(struct udp_peers *peers, uint32_t ip, uint16_t port);

/** Whether who is at this port sent from it. In network byte order. */
bool
udp_peers_known(const struct udp_peers *peers, uint32_t ip, uint16_t port);

#endif /* UDP_PEERS_H */
