/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who was heard, and who is known to mind no IPv4 identification.
 *
 * The kernel and NICs number the datagrams of a run in their own ways, and the ICRC covers the
 * number. Who receives by a socket does not see it, and has to take any; and such a one sends from
 * the port that it receives by, which nobody else does: other RoCE peers send from 49152 and above.
 * So who was heard from that port can be sent runs.
 *
 * What is learned here is not trusted: it comes before any check. A stranger who makes a peer look
 * like a socket has it get runs, whose packets fail at it only where a NIC numbers in another way
 * than the kernel; one who takes a peer's place has it get single datagrams until it is heard
 * again.
 *
 * Threads: any, together.
 */
#ifndef UDP_PEERS_H
#define UDP_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "udp_frame.h"

#define UDP_PEERS 4096

/** All zero but for the seed: nobody is known. */
struct udp_peers {
	uint64_t seed; /**< that nobody can guess: who shares a place with whom */
	/** Address, strange ports, and port of a peer; any thread, relaxed: each is by itself. */
	uint64_t places[UDP_PEERS];
};

/** What is known of a peer. */
enum udp_peer {
	UDP_PEER_STRANGER, /**< it was not heard, or others since */
	UDP_PEER_HEARD,
	UDP_PEER_SOCKET, /**< from the port that it is sent to */
};

/**
 * Somebody was heard: flow->src.
 *
 * @param sport  the port that it sent from, in network byte order
 */
void
udp_peers_heard(struct udp_peers *peers, const struct udp_flow *flow, uint16_t sport);

/** What is known of whom a flow goes to. */
enum udp_peer
udp_peers_find(const struct udp_peers *peers, const struct udp_flow *flow);

#endif /* UDP_PEERS_H */
