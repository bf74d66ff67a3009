/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The numbers that name things on the wire, each a type of its own, so that one can't be passed
 * for another. All hold host byte order.
 */
#ifndef RCD_ID_H
#define RCD_ID_H

#include <stdint.h>

/** Queue pair number, 24 bits. */
struct rcd_qpn {
	uint32_t val; /**< host order */
};

/** Memory key (L_Key or R_Key), 32 bits. */
struct rcd_key {
	uint32_t val; /**< host order */
};

/** Queue key of a datagram, 32 bits; the top bit marks a privileged one. */
struct rcd_qkey {
	uint32_t val; /**< host order */
};

/** Partition key, 16 bits; the top bit is set for full membership. */
struct rcd_pkey {
	uint16_t val; /**< host order */
};

/** Queue pair numbers with a meaning of their own. */
enum {
	RCD_QPN_GSI = 1,              /**< QP1, general services: all RDMA CM traffic */
	RCD_QPN_MULTICAST = 0xffffff, /**< destination of every multicast datagram */
};

/** Queue key of QP1. */
#define RCD_QKEY_GSI 0x80010000u

/** The default partition with full membership, the only one of a RoCE port here. */
#define RCD_PKEY_DEFAULT 0xffffu

#endif /* RCD_ID_H */
