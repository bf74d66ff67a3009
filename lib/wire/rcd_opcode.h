/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * BTH opcodes: one list (rcd_opcode.def) makes the enum, the names, the header lengths and the
 * predicates (IBTA Vol. 1, 9.2.1).
 */
#ifndef RCD_OPCODE_H
#define RCD_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_ext.h"

/** BTH opcodes, RCD_OPCODE_<symbol>. */
enum rcd_opcode {
#define RCD_OPCODE(symbol, value, service, op, position, exts, payload) RCD_OPCODE_##symbol = value,
#include "rcd_opcode.def"
#undef RCD_OPCODE
};

/** Transport service of an opcode. NONE marks reserved values. */
enum rcd_service {
	RCD_SERVICE_NONE,
	RCD_SERVICE_RC,
	RCD_SERVICE_UC,
	RCD_SERVICE_UD,
	RCD_SERVICE_XRC,
	RCD_SERVICE_CNP,
	RCD_SERVICE_SACK,  /**< of RC and XRC alike */
	RCD_SERVICE_HELLO, /**< likewise */
};

/** What a packet asks for or answers. Requests come first, responses after. */
enum rcd_op {
	RCD_OP_SEND,
	RCD_OP_RDMA_WRITE,
	RCD_OP_RDMA_READ,
	RCD_OP_COMPARE_SWAP,
	RCD_OP_FETCH_ADD,
	RCD_OP_FLUSH,
	RCD_OP_ATOMIC_WRITE,
	RCD_OP_READ_RESPONSE,
	RCD_OP_ACKNOWLEDGE,
	RCD_OP_ATOMIC_RESPONSE,
	RCD_OP_SACK,
	RCD_OP_CNP,
	RCD_OP_HELLO,
	RCD_OP_HELLO_ACK,
};

/** Place of a packet in its message. */
enum rcd_pos {
	RCD_POS_FIRST,
	RCD_POS_MIDDLE,
	RCD_POS_LAST,
	RCD_POS_ONLY,
};

/** Which payload sizes an opcode allows, before the path MTU is known. */
enum rcd_payload {
	RCD_PAYLOAD_NONE,
	RCD_PAYLOAD_ANY,
	RCD_PAYLOAD_ATOMIC, /**< exactly RCD_ATOMIC_LEN bytes */
	RCD_PAYLOAD_BITMAP, /**< whole words, 4 to RCD_SACK_BITMAP_MAX_LEN bytes */
};

/** Bytes that an atomic operation reads or writes. */
#define RCD_ATOMIC_LEN 8

/** Most bytes of the bitmap of a SACK. */
#define RCD_SACK_BITMAP_MAX_LEN 64

/** Facts about one opcode. 8 bytes, so that a row never straddles cache lines. */
struct rcd_opcode_info {
	uint16_t exts;    /**< RCD_EXT_* flags */
	uint8_t ext_len;  /**< bytes of all extended headers */
	uint8_t service;  /**< enum rcd_service; RCD_SERVICE_NONE for a reserved value */
	uint8_t op;       /**< enum rcd_op */
	uint8_t position; /**< enum rcd_pos */
	uint8_t payload;  /**< enum rcd_payload */
	uint8_t reserved;
};

/** Indexed by the opcode byte; reserved values have RCD_SERVICE_NONE and nothing else. */
extern const struct rcd_opcode_info rcd_opcode_table[256];

/** Facts about the opcode with this byte. */
static inline const struct rcd_opcode_info *
rcd_opcode_info(uint8_t opcode)
{
	return &rcd_opcode_table[opcode];
}

/** Name, for example "RC_RDMA_WRITE_ONLY". @return static string; NULL for a reserved value */
const char *
rcd_opcode_name(uint8_t opcode);

/** Whether the value has a meaning here. */
static inline bool
rcd_opcode_known(uint8_t opcode)
{
	return rcd_opcode_info(opcode)->service != RCD_SERVICE_NONE;
}

/** Whether it is a request: something for a responder. */
static inline bool
rcd_opcode_is_request(uint8_t opcode)
{
	return rcd_opcode_known(opcode) && rcd_opcode_info(opcode)->op <= RCD_OP_ATOMIC_WRITE;
}

/** Whether it answers a request: something for a requester. */
static inline bool
rcd_opcode_is_response(uint8_t opcode)
{
	return rcd_opcode_info(opcode)->op >= RCD_OP_READ_RESPONSE &&
		rcd_opcode_info(opcode)->op <= RCD_OP_SACK;
}

/** Whether the packet begins a message: FIRST or ONLY. */
static inline bool
rcd_opcode_begins(uint8_t opcode)
{
	const struct rcd_opcode_info *info = rcd_opcode_info(opcode);

	return rcd_opcode_known(opcode) &&
		(info->position == RCD_POS_FIRST || info->position == RCD_POS_ONLY);
}

/** Whether the packet ends a message: LAST or ONLY. */
static inline bool
rcd_opcode_ends(uint8_t opcode)
{
	const struct rcd_opcode_info *info = rcd_opcode_info(opcode);

	return rcd_opcode_known(opcode) && info->position >= RCD_POS_LAST;
}

/** Whether an extended header of this kind follows the BTH. */
static inline bool
rcd_opcode_has(uint8_t opcode, enum rcd_ext ext)
{
	return rcd_opcode_info(opcode)->exts & ext;
}

/** Whether a message with this packet consumes a receive work request: SEND, or immediate data. */
static inline bool
rcd_opcode_consumes_recv(uint8_t opcode)
{
	return rcd_opcode_known(opcode) &&
		(rcd_opcode_info(opcode)->op == RCD_OP_SEND ||
			rcd_opcode_has(opcode, RCD_EXT_IMMDT));
}

#endif /* RCD_OPCODE_H */
