/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Every limit that more than one file relies on, each with its reason.
 *
 * A limit that belongs to one file stays in that file; a size fixed by a header's layout stays
 * beside that header in lib/wire.
 */
#ifndef RCD_LIMITS_H
#define RCD_LIMITS_H

/** PSNs and MSNs are 24 bits wide on the wire (IBTA Vol. 1, 9.2 and 9.3). */
#define RCD_PSN_BITS 24

/** Smallest and largest path MTU in bytes: the five values that the verbs enumerate. */
#define RCD_PATH_MTU_MIN_BYTES 256
#define RCD_PATH_MTU_MAX_BYTES 4096

/** Longest message in bytes, 2^31 (IBTA Vol. 1, 9.3.3: DMA length of a RETH). */
#define RCD_MSG_MAX_BYTES (UINT32_C(1) << 31)

/**
 * Longest memory region in bytes. Lengths above it are refused where they come in, so that sums of
 * a few of them can't wrap, and one region never fills the engine's window of client memory.
 */
#define RCD_MR_MAX_BYTES (UINT64_C(1) << 40)

/**
 * Length of a region of all addresses of a process: no machine gives a process more of them (x86-64
 * with five levels of page tables: 56 bits). It takes none of the engine's. 254 of them fit beside
 * what a pointer can be, and into 64 bits.
 */
#define RCD_MR_ALL_BITS  56
#define RCD_MR_ALL_BYTES (UINT64_C(1) << RCD_MR_ALL_BITS)
#define RCD_MR_ALL_MAX   254

/**
 * Most packets handled between two looks at anything else. 64 keeps a burst of parsed packets
 * within the first-level cache and is the burst size that DPDK drivers are tuned for.
 */
#define RCD_BURST_MAX 64

/**
 * Work requests of a queue, and completions of one: what an application could have in flight with a
 * thousand peers, and still small enough to be flushed and moved in reasonable time.
 */
#define RCD_WQ_DEPTH_MAX (1u << 16)
#define RCD_CQ_DEPTH_MAX (1u << 22)

/**
 * Longest Ethernet frame in bytes, without its check sequence: headers, a payload of the largest
 * path MTU, padding and ICRC, in whole cache lines. A frame of raw packets is no longer.
 */
#define RCD_FRAME_MAX_BYTES 4480

/** Flows of a device, each of which may be compared with every frame that is not RoCE's... */
#define RCD_FLOWS_MAX 64

/** ...of one context, and of all of one user, so that nobody keeps others from having any. */
#define RCD_FLOWS_CLIENT_MAX 32
#define RCD_FLOWS_USER_MAX   48

/** Hop limit, or time to live, of packets of which nobody says one. */
#define RCD_HOP_LIMIT 64

/** Address handles of an engine. */
#define RCD_AHS_MAX (1u << 18)

/** Pieces of device memory of a context: its segment may have as many holes behind them. */
#define RCD_DMS_MAX 1024

/** Addresses of a device: what a reply of the control protocol has room for. */
#define RCD_GIDS_MAX 128

/**
 * What an MTU of IP is above a path MTU that fits into it: as much as rxe takes off a netdev's, so
 * that both ends of a link come to the same.
 */
#define RCD_PATH_MTU_ROOM_BYTES 80

/** Connections of an engine: places that each lcore has for clients. */
#define RCD_CLIENTS_MAX 4096

/** Queue pairs of an engine: the low bits of a queue pair number are a place in a table. */
#define RCD_QP_SLOTS 65536

/** Numbers of queue pairs that have meanings of their own: below this (IBTA Vol. 1, 3.9). */
#define RCD_QPNS_RESERVED 16

/** Memberships of multicast groups, of a device and an lcore: room of their table. */
#define RCD_MCAST_GROUPS 1024

/** Neighbours, of all devices and clients: each is asked for again now and then. */
#define RCD_NEIGHS_MAX 4096

/** Connections of the CM service, of all clients, those in timewait included. */
#define RCD_CMA_CONNECTIONS 65536

#endif /* RCD_LIMITS_H */
