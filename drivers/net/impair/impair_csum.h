/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A NIC that works out checksums of TCP and UDP when it is asked to (DPDK, mbuf library, "Meta
 * Information"): of frames in one piece, from the end of the IP header on, over what stands there,
 * which is to be the pseudo header's sum. Frames are written to: nobody else holds them.
 *
 * Threads: who sends by the queue.
 */
#ifndef IMPAIR_CSUM_H
#define IMPAIR_CSUM_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdint.h>

#define IMPAIR_CSUM_OFFLOADS (RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM)

/** All that a driver works out of bytes which it is then sure of. */
#define IMPAIR_CSUM_DAMAGED                                                                        \
	(IMPAIR_CSUM_OFFLOADS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_SCTP_CKSUM |    \
		RTE_ETH_TX_OFFLOAD_OUTER_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_OUTER_UDP_CKSUM |         \
		RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_UDP_TSO |                          \
		RTE_ETH_TX_OFFLOAD_VXLAN_TNL_TSO | RTE_ETH_TX_OFFLOAD_GRE_TNL_TSO |                \
		RTE_ETH_TX_OFFLOAD_IPIP_TNL_TSO | RTE_ETH_TX_OFFLOAD_GENEVE_TNL_TSO |              \
		RTE_ETH_TX_OFFLOAD_UDP_TNL_TSO | RTE_ETH_TX_OFFLOAD_IP_TNL_TSO)

/** Put sums of pseudo headers there. @return how many it can do; rte_errno: why not the next */
uint16_t
impair_csum_prepare(struct rte_mbuf **mbufs, uint16_t count);

/** The sum, if the frame asks for one: it does no more. One that lies about itself is left. */
void
impair_csum_finish(struct rte_mbuf *mbuf);

#endif /* IMPAIR_CSUM_H */
