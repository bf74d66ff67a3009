/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A completion as it lies in a completion queue, and as programs with an engine of their own take
 * it (rcd_local.h).
 */
#ifndef RCD_CQ_SLOT_H
#define RCD_CQ_SLOT_H

#include <assert.h>
#include <stdint.h>

/** Status of a completion that is none: of a queue pair that began anew, or went. */
#define RCD_CQ_VOID 0xff

/** A completion: one cache line. Of one whose status is no success wr_id, status and qpn count. */
struct rcd_cq_slot {
	uint64_t wr_id;        /**< of the request */
	uint64_t timestamp_ns; /**< CLOCK_MONOTONIC when it was made */
	uint8_t status;        /**< enum rcd_wc_status */
	uint8_t opcode;        /**< enum rcd_wc_opcode */
	uint8_t flags;         /**< RCD_WC_* */
	uint8_t sl;            /**< of a datagram: 1: with an IPv6 header; 2: IPv4 */
	uint32_t byte_len;     /**< of what was received, READ or an atomic */
	uint32_t imm;          /**< immediate data, host order; or the key that was invalidated */
	uint32_t qpn;          /**< whose request it was */
	uint32_t src_qpn;      /**< of a datagram */
	uint32_t reserved[7];  /**< 0 */
};

static_assert(sizeof(struct rcd_cq_slot) == 64, "ABI 1");

#endif /* RCD_CQ_SLOT_H */
