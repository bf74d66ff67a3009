/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Traffic of all kinds into lanes, and what must come out of them: packets to be routed, others
 * that end in a graph, and those that are for the engine. A lane is a queue of a port: what the
 * port receives by it, and what it sends by the queue of the same number.
 */
#ifndef MIX_H
#define MIX_H

#include <stdint.h>

struct rte_mempool;
struct rte_ring;

#define MIX_PORTS  2
#define MIX_QUEUES 2
#define MIX_LEN    600 /**< bytes of the longest packet */
#define MIX_FLOW   65536

/** MACs, by port: 02:00:00:00:0a:<port> of the port, and 0b of the host behind it. */
#define MIX_MAC(port, host)                                                                        \
	{                                                                                          \
		2, 0, 0, 0, (host) ? 0xb : 0xa, (uint8_t)(port)                                    \
	}

/** Packets that shall come out in this order: numbers. */
struct mix_flow {
	uint32_t numbers[MIX_FLOW];
	uint32_t head, tail;
};

/** What has been put in, or has come out. */
struct mix_count {
	uint64_t all;    /**< put in */
	uint64_t roce;   /**< for the engine, of which none is answered */
	uint64_t arp;    /**< for the engine; the answers to these... */
	uint64_t echo;   /**< ...and to these */
	uint64_t groups; /**< that the engine has a copy of */
	uint64_t routed;
	uint64_t dropped; /**< what the graph has no way for */
	uint64_t wrong;
};

struct mix {
	struct rte_mempool *pool;
	struct rte_ring *in[MIX_PORTS][MIX_QUEUES], *out[MIX_PORTS][MIX_QUEUES];
	struct mix_flow flow[MIX_PORTS][MIX_PORTS][MIX_QUEUES]; /**< from, to, by queue */
	struct mix_count put[MIX_PORTS], got[MIX_PORTS];
	uint64_t random;
	uint32_t number;
};

/** Which packets mix_put() makes. */
enum mix_kind {
	MIX_ANY,
	MIX_OTHERS, /**< routed, all of them */
	MIX_ROCE,   /**< for the engine, all of them */
};

/** Make rings of 1024 places. @return 0 or -1 */
int
mix_init(struct mix *mix, struct rte_mempool *pool, uint64_t seed);

/** Let packets come by a lane. */
void
mix_put(struct mix *mix, uint16_t port, uint16_t queue, enum mix_kind kind, uint32_t count);

/** Take what was sent by a lane, and look at it. @return packets */
uint32_t
mix_get(struct mix *mix, uint16_t port, uint16_t queue);

/** Packets that are to be routed and have not come out. */
uint64_t
mix_missing(const struct mix *mix);

#endif /* MIX_H */
