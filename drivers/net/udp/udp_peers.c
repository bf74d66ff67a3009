/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A table of one word for each place: 40 bits of an address, 8 of how often it was heard from
 * another port since, 16 of its port. Those of IPv6 are hashed: two that look the same cost no more
 * than a wrong guess.
 */
#include "udp_peers.h"

#include <string.h>

#include "rcd_bits.h"

/** So many packets from another port make that the peer's: a few are anybody's. */
#define STRANGE_MOST 64

/** From here on ports are those of RoCE's senders (annex A17), with what kernels choose. */
#define SENDERS_ONLY 32768

/* @return 40 bits for an address, in the high ones; never 0 */
static uint64_t
udp_peers_key(const struct udp_peers *peers, const struct in6_addr *addr, uint32_t *place)
{
	uint64_t halves[2], hash;

	memcpy(halves, addr, sizeof(halves));
	hash = rcd_mix(halves[0] ^ peers->seed,
		halves[1] ^ (peers->seed | 1) ^ UINT64_C(0x9e3779b97f4a7c15));
	hash = rcd_mix(hash ^ peers->seed, UINT64_C(0xd6e8feb86659fd93));
	*place = (uint32_t)hash % UDP_PEERS;
	return (hash | UINT64_C(1) << 63) & ~UINT64_C(0xffffff);
}

void
udp_peers_heard(struct udp_peers *peers, const struct udp_flow *flow, uint16_t sport)
{
	uint32_t place;
	uint64_t key = udp_peers_key(peers, &flow->src, &place), fresh;
	uint64_t word = __atomic_load_n(&peers->places[place], __ATOMIC_RELAXED);

	/* Many ports are one: those that RoCE peers send from are nobody's to receive by. */
	if (rte_be_to_cpu_16(sport) >= SENDERS_ONLY)
		sport = 0;
	fresh = key | sport;
	/* From the port that it sends to, a socket's: at once. */
	if ((word & ~UINT64_C(0xffffff)) == key && (uint16_t)word != sport &&
		sport != flow->dport && (word >> 16 & 0xff) < STRANGE_MOST)
		fresh = word + (1u << 16);
	/* Stored when it is news, not for each packet: all queues look at it. */
	if (word != fresh)
		__atomic_store_n(&peers->places[place], fresh, __ATOMIC_RELAXED);
}

enum udp_peer
udp_peers_find(const struct udp_peers *peers, const struct udp_flow *flow)
{
	uint32_t place;
	uint64_t key = udp_peers_key(peers, &flow->dst, &place);
	uint64_t word = __atomic_load_n(&peers->places[place], __ATOMIC_RELAXED);

	if ((word & ~UINT64_C(0xffffff)) != key)
		return UDP_PEER_STRANGER;
	return (uint16_t)word == flow->dport ? UDP_PEER_SOCKET : UDP_PEER_HEARD;
}
