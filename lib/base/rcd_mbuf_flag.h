/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a driver says of a packet to the engine, besides what DPDK has words for: by dynamic flags
 * of mbufs (rte_mbuf_dyn.h), which go along through any port between the two.
 */
#ifndef RCD_MBUF_FLAG_H
#define RCD_MBUF_FLAG_H

/**
 * Of a received IPv4 packet: its identification is not known, as from a socket, which does not show
 * it. The header has a guess. Registered before the port's device is added to an engine.
 */
#define RCD_MBUF_FLAG_ANY_ID "rocade_any_ipv4_id"

#endif /* RCD_MBUF_FLAG_H */
