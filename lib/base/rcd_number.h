/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Rights, states, services, path MTUs and masks of attributes: numbers that several layers share,
 * made of lists, rcd_number.def and rcd_qp_attr.def. Those of work requests and completions are in
 * rcd_wr.h.
 *
 * Threads: any.
 */
#ifndef RCD_NUMBER_H
#define RCD_NUMBER_H

#include <stdint.h>

/** Access rights, with the numbers that the verbs give them. */
enum rcd_access {
#define RCD_ACCESS(symbol, bit) RCD_ACCESS_##symbol = 1 << (bit),
#include "rcd_number.def"
	/** All addresses are its first: what lies there takes everything and is zeros. Not for
	 * verbs users, who have ibv_alloc_null_mr(). */
	RCD_ACCESS_NULL = 1 << 6,
};

/** All rights of peers that regions can give. None gives RCD_ACCESS_FLUSH_PERSISTENT: no memory
 * that there is here outlives a loss of power. */
#define RCD_ACCESS_REMOTE                                                                          \
	(RCD_ACCESS_REMOTE_WRITE | RCD_ACCESS_REMOTE_READ | RCD_ACCESS_REMOTE_ATOMIC |             \
		RCD_ACCESS_FLUSH_GLOBAL)

/** Those that need memory that can be written. */
#define RCD_ACCESS_WRITES                                                                          \
	(RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE_WRITE | RCD_ACCESS_REMOTE_ATOMIC)

/**
 * Service of a queue pair. GSI is UD on QP1, and the engine's own. RAW is none, and has Ethernet
 * frames. XRC has two ends.
 */
enum rcd_qp_type {
#define RCD_QP_TYPE(symbol, number) RCD_QP_##symbol = (number),
#include "rcd_number.def"
	RCD_QP_GSI = 3,
	RCD_QP_RAW = 4,
};

/** Numbers of services: one more than the largest. */
#define RCD_QP_TYPE_COUNT 7

/** State of a queue pair, with the numbers that the verbs give them. */
enum rcd_qp_state {
#define RCD_QP_STATE(symbol, number) RCD_QP_##symbol = (number),
#include "rcd_number.def"
};

/** Likewise of states. */
#define RCD_QP_STATE_COUNT 7

/** State of a port, with the numbers that the verbs give them: ours are up or not. */
enum rcd_port_state {
#define RCD_PORT(symbol, number) RCD_PORT_##symbol = (number),
#include "rcd_number.def"
};

/** State of a port's link. */
enum rcd_port_phys {
#define RCD_PORT_PHYS(symbol, number) RCD_PORT_PHYS_##symbol = (number),
#include "rcd_number.def"
};

/** The link of a port in this state. */
static inline enum rcd_port_phys
rcd_port_phys_of(uint32_t port_state)
{
	return port_state == RCD_PORT_ACTIVE ? RCD_PORT_PHYS_LINK_UP : RCD_PORT_PHYS_DISABLED;
}

/** Attributes of a queue pair in masks, with the bits that the verbs give them. */
enum rcd_qp_attr_mask {
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field)                           \
	RCD_QP_ATTR_##symbol = 1 << (bit),
#include "rcd_qp_attr.def"
};

/** All that there are. */
enum {
	RCD_QP_ATTR_ALL = 0
#define RCD_QP_ATTR(symbol, bit, kind, field, verbs_symbol, verbs_field) | RCD_QP_ATTR_##symbol
#include "rcd_qp_attr.def"
};

/** Bytes of a path MTU by its code of the verbs and CM. @return 0: there is no such code */
static inline uint32_t
rcd_mtu_bytes(uint32_t code)
{
#define RCD_MTU(bytes, number)                                                                     \
	if (code == (number))                                                                      \
		return bytes;
#include "rcd_number.def"
	return 0;
}

/** Code of the largest path MTU that fits into so many bytes. @return 0: none does */
static inline uint8_t
rcd_mtu_code(uint32_t bytes)
{
	uint8_t code = 0;

#define RCD_MTU(size, number)                                                                      \
	if (bytes >= (size))                                                                       \
		code = number;
#include "rcd_number.def"
	return code;
}

#endif /* RCD_NUMBER_H */
