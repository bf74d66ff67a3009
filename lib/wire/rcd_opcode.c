/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The opcode table and the names, made from rcd_opcode.def.
 */
#include "rcd_opcode.h"

#include <assert.h>
#include <stddef.h>

/* Length of a set of extended headers as a constant: an #include can't stand within a macro. */
#define LEN_IF(set, symbol) ((set)&RCD_EXT_##symbol ? RCD_##symbol##_LEN : 0)
#define EXT_LEN(set)                                                                               \
	(LEN_IF(set, XRCETH) + LEN_IF(set, DETH) + LEN_IF(set, FETH) + LEN_IF(set, RETH) +         \
		LEN_IF(set, ATOMICETH) + LEN_IF(set, AETH) + LEN_IF(set, ATOMICACKETH) +           \
		LEN_IF(set, IMMDT) + LEN_IF(set, IETH) + LEN_IF(set, CNP) + LEN_IF(set, SACKETH) + \
		LEN_IF(set, HELLOETH))
static_assert(RCD_EXT_COUNT == 12, "EXT_LEN() has a term for every extended header");
static_assert(sizeof(struct rcd_opcode_info) == 8, "a row never straddles cache lines");

const struct rcd_opcode_info rcd_opcode_table[256] = {
#define RCD_OPCODE(symbol, value, svc, operation, pos, set, allowed)                               \
	[value] = {                                                                                \
		.exts = (set),                                                                     \
		.ext_len = EXT_LEN(set),                                                           \
		.service = RCD_SERVICE_##svc,                                                      \
		.op = RCD_OP_##operation,                                                          \
		.position = RCD_POS_##pos,                                                         \
		.payload = RCD_PAYLOAD_##allowed,                                                  \
	},
#include "rcd_opcode.def"
#undef RCD_OPCODE
};

static const char *const opcode_names[256] = {
#define RCD_OPCODE(symbol, value, service, op, position, exts, payload) [value] = #symbol,
#include "rcd_opcode.def"
#undef RCD_OPCODE
};

const char *
rcd_opcode_name(uint8_t opcode)
{
	return opcode_names[opcode];
}
