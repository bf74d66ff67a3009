/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Work requests, completions and asynchronous events as values: what is asked for, and what comes
 * back. Enumerators have the numbers that the verbs give them, so that the drop-in libraries
 * convert nothing (rcd_number.def). Programs with an engine of their own post requests
 * (rcd_local.h); the transport has its host read them out of a client's queue.
 */
#ifndef RCD_WR_H
#define RCD_WR_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_id.h"

/** Most scatter/gather elements of a work request: what rxe offers. */
#define RCD_SGE_MAX 32

/** Most inline bytes of a send work request: what rxe offers. */
#define RCD_INLINE_MAX 512

/** Bytes in front of a datagram's payload that hold its GRH, or for IPv4 the IP header. */
#define RCD_GRH_LEN 40

/** What a send work request asks for. */
enum rcd_wr_opcode {
#define RCD_WR_OPCODE(symbol, number, verbs) RCD_WR_##symbol = (number),
#include "rcd_number.def"
};

/** Numbers of opcodes: one more than the largest. Not all of them are opcodes. */
#define RCD_WR_OPCODE_COUNT 16

/** Flags of a send work request. */
enum rcd_send_flags {
#define RCD_SEND_FLAG(symbol, bit) RCD_SEND_##symbol = 1 << (bit),
#include "rcd_number.def"
};

/** What a FLUSH asks for, as bits: the placement types of the wire (IBTA Vol. 1, Annex A19). */
enum rcd_placement {
	RCD_PLACEMENT_GLOBAL = 1 << 0,     /**< seen by all of the peer's processors and devices */
	RCD_PLACEMENT_PERSISTENT = 1 << 1, /**< kept when the peer loses power */
};

/** All placement types that there are. */
#define RCD_PLACEMENT_ALL (RCD_PLACEMENT_GLOBAL | RCD_PLACEMENT_PERSISTENT)

/** What a FLUSH is about. */
enum rcd_selectivity {
	RCD_SELECTIVITY_RANGE,  /**< the bytes that it names */
	RCD_SELECTIVITY_REGION, /**< all of their region */
};

/** A piece of local memory. */
struct rcd_sge {
	uint64_t addr;       /**< as the region of the key counts addresses */
	uint32_t len;        /**< bytes */
	struct rcd_key lkey; /**< of a region, local */
};

/**
 * A send work request. Who posts one points sges and inline_data to what is copied then.
 *
 * Of one that is read the reader has pointed both to its own memory, and says how much fits there:
 * at most that much is copied. A count above the room is told as it is, and refused.
 *
 * FLUSH and ATOMIC WRITE have no elements and no inline data.
 */
struct rcd_send_wr {
	uint64_t wr_id;       /**< given back with its completion */
	uint8_t opcode;       /**< enum rcd_wr_opcode, or anything that a client wrote */
	uint8_t flags;        /**< RCD_SEND_* */
	uint8_t sge_count;    /**< elements; not looked at with RCD_SEND_INLINE */
	uint8_t sge_max;      /**< room at sges, of who reads it */
	uint16_t inline_len;  /**< bytes; with RCD_SEND_INLINE only */
	uint16_t inline_max;  /**< room at inline_data, of who reads it */
	uint32_t imm;         /**< immediate data, host order; or the key to invalidate */
	struct rcd_sge *sges; /**< elements */
	uint8_t *inline_data; /**< bytes */
	union {
		struct {
			uint64_t va;             /**< address in the peer's region */
			struct rcd_key rkey;     /**< of that */
			uint64_t compare_or_add; /**< of the atomics */
			uint64_t swap;           /**< of a compare and swap */
			uint32_t srqn;           /**< of XRC: the peer's queue, 24 bits */
		} remote;                        /**< WRITE, READ, atomics; of XRC SEND too */
		struct {
			uint64_t va;         /**< address in the peer's region, of 8 bytes */
			struct rcd_key rkey; /**< of that */
			uint8_t bytes[8];    /**< to be there, in the order of memory */
		} atomic_write;
		struct {
			uint64_t va;         /**< address in the peer's region */
			struct rcd_key rkey; /**< of that */
			uint8_t placement;   /**< RCD_PLACEMENT_*, one at least */
			uint8_t selectivity; /**< enum rcd_selectivity */
			uint64_t len;        /**< bytes, of a range */
		} flush;
		struct {
			uint32_t ah;          /**< number of the address handle */
			struct rcd_qpn qpn;   /**< the peer's */
			struct rcd_qkey qkey; /**< likewise */
		} ud;                         /**< of a datagram */
		struct {
			struct rcd_key mw; /**< the window as it is now */
			struct rcd_key
				new_rkey;  /**< low 8 bits count: the caller's part of the key */
			struct rcd_key mr; /**< its region */
			uint32_t access;   /**< RCD_ACCESS_* */
			uint64_t addr;     /**< that it begins at */
			uint64_t len;      /**< bytes */
		} bind;                    /**< of a window; clients' alone */
	};
};

/** A receive work request. Room and counts as for struct rcd_send_wr. */
struct rcd_recv_wr {
	uint64_t wr_id;       /**< given back with its completion */
	uint8_t sge_count;    /**< elements */
	uint8_t sge_max;      /**< room at sges, of who reads it */
	struct rcd_sge *sges; /**< elements */
};

/** Completion status. */
enum rcd_wc_status {
#define RCD_WC_STATUS(symbol, number) RCD_WC_##symbol = (number),
#include "rcd_number.def"
};

/** What a completion is of. */
enum rcd_wc_opcode {
#define RCD_WC_OPCODE(symbol, number) RCD_WC_##symbol = (number),
#include "rcd_number.def"
};

/** Flags of a completion. */
enum rcd_wc_flags {
#define RCD_WC_FLAG(symbol, bit) RCD_WC_##symbol = 1 << (bit),
#include "rcd_number.def"
};

/** A completion. With a status other than success only wr_id, status, qpn and recv count. */
struct rcd_cqe {
	uint64_t wr_id;     /**< of the request */
	uint8_t status;     /**< enum rcd_wc_status */
	uint8_t opcode;     /**< enum rcd_wc_opcode */
	uint8_t flags;      /**< RCD_WC_* */
	bool recv;          /**< of the receive queue */
	bool solicited;     /**< wakes who waits for solicited completions: solicited or an error */
	uint32_t byte_len;  /**< of what was received, READ or an atomic */
	uint32_t imm;       /**< immediate data, host order; or the key that was invalidated */
	struct rcd_qpn qpn; /**< whose request it was */
	struct rcd_qpn src_qpn; /**< of a datagram */
	uint8_t sl; /**< of a datagram: kind of network header, as adapters have it there */
};

/** Asynchronous events, the transport's and the host's. */
enum rcd_event {
#define RCD_EVENT(symbol, number) RCD_EVENT_##symbol = (number),
#include "rcd_number.def"
};

#endif /* RCD_WR_H */
