/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The transport headers of a packet together: the BTH and the extended headers of its opcode.
 */
#ifndef RCD_ROCE_H
#define RCD_ROCE_H

#include "rcd_bth.h"
#include "rcd_ext.h"
#include "rcd_opcode.h"

/** Most bytes that the BTH and the extended headers of one opcode take: COMPARE_SWAP over XRC. */
#define RCD_ROCE_HDR_MAX_LEN (RCD_BTH_LEN + RCD_XRCETH_LEN + RCD_ATOMICETH_LEN)

/**
 * Transport headers, host order. An extended header has a meaning only when the opcode has it:
 * rcd_opcode_has(bth.opcode, RCD_EXT_...). Parse leaves the others as they were.
 */
struct rcd_roce {
	struct rcd_bth bth;
#define RCD_EXT_HEADER(symbol, field, length) struct rcd_##field field;
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
};

/** Bytes of the BTH and of the opcode's extended headers. */
static inline size_t
rcd_roce_hdr_len(uint8_t opcode)
{
	return RCD_BTH_LEN + rcd_opcode_info(opcode)->ext_len;
}

/**
 * Parse and judge the transport headers.
 *
 * @param src          first byte of the BTH
 * @param len          bytes from there to the end of the padding, ICRC not included
 * @param roce         filled on RCD_VERDICT_OK; with RCD_VERDICT_BTH_* its bth, if it fitted
 * @param payload_len  set on RCD_VERDICT_OK: payload bytes, pad not included; the payload begins
 *                     rcd_roce_hdr_len() bytes behind @p src
 * @return RCD_VERDICT_OK, _BTH_SHORT, _BTH_TVER, _BTH_OPCODE, _EXT_SHORT, _ALIGN, _PAD, _PAYLOAD
 */
enum rcd_verdict
rcd_roce_parse(const uint8_t *src, size_t len, struct rcd_roce *roce, size_t *payload_len);

/**
 * Write the BTH and the extended headers of its opcode. The pad count is written as it stands in
 * the BTH; see rcd_roce_pad().
 *
 * @param dst  rcd_roce_hdr_len(roce->bth.opcode) writable bytes
 * @return that length
 */
size_t
rcd_roce_build(uint8_t *dst, const struct rcd_roce *roce);

/** Pad bytes that bring a payload of this length to a multiple of 4. */
static inline uint8_t
rcd_roce_pad(size_t payload_len)
{
	return (uint8_t)(-payload_len & 3);
}

#endif /* RCD_ROCE_H */
