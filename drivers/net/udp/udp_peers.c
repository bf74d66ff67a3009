/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A table of one word for each place.
 */
#include "udp_peers.h"

static uint64_t
udp_peers_word(uint32_t ip, uint16_t port)
{
	return (uint64_t)ip << 16 | port;
}

static uint32_t
udp_peers_place(uint32_t ip)
{
	/* Neighbours differ in the last byte, which is the highest here. */
	return (ip ^ ip >> 10 ^ ip >> 22) % UDP_PEERS;
}

void
udp_peers_heard(struct udp_peers *peers, uint32_t ip, uint16_t port)
{
	uint64_t *place = &peers->places[udp_peers_place(ip)];
	uint64_t word = udp_peers_word(ip, port);

	/* Stored once, not for each packet: all queues look at it. */
	if (__atomic_load_n(place, __ATOMIC_RELAXED) != word)
		__atomic_store_n(place, word, __ATOMIC_RELAXED);
}

bool
udp_peers_known(const struct udp_peers *peers, uint32_t ip, uint16_t port)
{
	return ip != 0 &&
		__atomic_load_n(&peers->places[udp_peers_place(ip)], __ATOMIC_RELAXED) ==
		udp_peers_word(ip, port);
}
