/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Slots of the rings in a segment: send and receive work requests, completions. The client writes
 * work requests and the engine reads each slot once, into private memory; completions go the
 * other way.
 */
#ifndef RCD_WQE_H
#define RCD_WQE_H

#include <assert.h>
#include <stddef.h>

#include "rcd_cq_slot.h"
#include "rcd_wr.h"

/** A scatter/gather element in a slot. */
struct rcd_wqe_sge {
	uint64_t addr;
	uint32_t len; /**< bytes */
	uint32_t lkey;
};

/**
 * A send work request. Behind it follow sge_count elements or, with RCD_SEND_INLINE, inline_len
 * bytes.
 *
 *            key      va                 arg[0]    arg[1]
 * WRITE/READ rkey     remote address
 * atomics    rkey     remote address     compare/add  swap
 * datagram   AH       QPN | Q_Key << 32
 * bind       window   address            length    region key | access << 32; imm: new key
 * FLUSH      rkey     remote address     length    placement | selectivity << 8
 * ATOMIC WR. rkey     remote address     the bytes, in the order of memory
 */
struct rcd_sq_wqe {
	uint64_t wr_id;
	uint8_t opcode; /**< enum rcd_wr_opcode */
	uint8_t flags;  /**< RCD_SEND_* */
	uint8_t sge_count;
	uint8_t srqn_high; /**< of XRC: bits 16 to 23 of the peer's queue, and the others behind */
	uint16_t inline_len;
	uint16_t srqn_low;
	uint32_t imm; /**< immediate data, host order; key to invalidate; new key of a window */
	uint32_t key;
	uint64_t va;
	uint64_t arg[2];
};

/** A receive work request. Behind it follow sge_count elements. */
struct rcd_rq_wqe {
	uint64_t wr_id;
	uint32_t sge_count;
	uint32_t reserved;
};

static_assert(sizeof(struct rcd_wqe_sge) == 16, "ABI 1");
static_assert(sizeof(struct rcd_sq_wqe) == 48, "ABI 1: with one element a cache line");
static_assert(sizeof(struct rcd_rq_wqe) == 16, "ABI 1");

/** Bytes between slots of a send queue. @param max_inline bytes of inline data */
static inline uint32_t
rcd_sq_stride(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t tail = max_sge * (uint32_t)sizeof(struct rcd_wqe_sge);

	if (tail < max_inline)
		tail = max_inline;
	return ((uint32_t)sizeof(struct rcd_sq_wqe) + tail + 63) & ~UINT32_C(63);
}

/** Bytes between slots of a receive queue. */
static inline uint32_t
rcd_rq_stride(uint32_t max_sge)
{
	return ((uint32_t)sizeof(struct rcd_rq_wqe) +
		       max_sge * (uint32_t)sizeof(struct rcd_wqe_sge) + 31) &
		~UINT32_C(31);
}

/** What a work request says of a remote side. */
enum rcd_wqe_form {
	RCD_WQE_REMOTE,
	RCD_WQE_DATAGRAM,
	RCD_WQE_BIND,
	RCD_WQE_FLUSH,
	RCD_WQE_ATOMIC_WRITE,
};

/** Which it is, from who it is of and what it asks for. @param opcode enum rcd_wr_opcode, or any */
static inline enum rcd_wqe_form
rcd_wqe_form_of(bool datagram, uint8_t opcode)
{
	if (datagram)
		return RCD_WQE_DATAGRAM;
	if (opcode == RCD_WR_BIND_MW)
		return RCD_WQE_BIND;
	if (opcode == RCD_WR_FLUSH)
		return RCD_WQE_FLUSH;
	return opcode == RCD_WR_ATOMIC_WRITE ? RCD_WQE_ATOMIC_WRITE : RCD_WQE_REMOTE;
}

/**
 * Write a send work request into a slot. Client.
 *
 * @param slot  rcd_sq_stride() bytes with room for the elements or inline bytes of @p wr
 * @param form  how to take the union of @p wr
 */
void
rcd_sq_wqe_put(void *slot, const struct rcd_send_wr *wr, enum rcd_wqe_form form);

/**
 * Copy a send work request out of a slot. Engine: every byte of the slot is read at most once.
 *
 * @param slot      in memory that another process may write at the same time
 * @param datagram  the queue pair is UD
 * @param wr        its sges and inline_data point to room for sge_max and inline_max; at most that
 *                  much is copied, and the counts are handed over as they are
 */
void
rcd_sq_wqe_get(const void *slot, bool datagram, struct rcd_send_wr *wr);

/** Write a receive work request into a slot. Client. */
void
rcd_rq_wqe_put(void *slot, const struct rcd_recv_wr *wr);

/** Copy a receive work request out of a slot. Engine; as rcd_sq_wqe_get(). */
void
rcd_rq_wqe_get(const void *slot, struct rcd_recv_wr *wr);

#endif /* RCD_WQE_H */
