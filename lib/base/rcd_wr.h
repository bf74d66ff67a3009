/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Work requests, completions and asynchronous events as values: what an application asked for,
 * already copied out of its memory, and what it gets back. Enumerators have the numbers that the
 * verbs give them, so that the drop-in libraries convert nothing.
 *
 * Where the queues live, and how a request gets from an application into these structs, is the
 * host's business (rcd_qp.h, struct rcd_qp_ops).
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
	RCD_WR_RDMA_WRITE = 0,
	RCD_WR_RDMA_WRITE_WITH_IMM = 1,
	RCD_WR_SEND = 2,
	RCD_WR_SEND_WITH_IMM = 3,
	RCD_WR_RDMA_READ = 4,
	RCD_WR_COMPARE_SWAP = 5,
	RCD_WR_FETCH_ADD = 6,
	RCD_WR_LOCAL_INV = 7,
	RCD_WR_BIND_MW = 8,
	RCD_WR_SEND_WITH_INV = 9,
};

#define RCD_WR_OPCODE_COUNT 10

/** Flags of a send work request. */
enum rcd_send_flags {
	RCD_SEND_FENCE = 1 << 0,
	RCD_SEND_SIGNALED = 1 << 1,
	RCD_SEND_SOLICITED = 1 << 2,
	RCD_SEND_INLINE = 1 << 3,
};

/** A piece of local memory. */
struct rcd_sge {
	uint64_t addr;
	uint32_t len; /**< bytes */
	struct rcd_key lkey;
};

/**
 * A send work request.
 *
 * The queue pair points sges and inline_data to its own memory before it asks the host for a
 * request, and says how much fits there; the host copies at most that much. A count above the
 * room is handed over as it is, and the queue pair refuses the request.
 */
struct rcd_send_wr {
	uint64_t wr_id;
	uint8_t opcode;      /**< enum rcd_wr_opcode, or anything that a client wrote */
	uint8_t flags;       /**< RCD_SEND_* */
	uint8_t sge_count;   /**< elements; not looked at with RCD_SEND_INLINE */
	uint8_t sge_max;     /**< room at sges; set by the queue pair */
	uint16_t inline_len; /**< bytes; with RCD_SEND_INLINE only */
	uint16_t inline_max; /**< room at inline_data; set by the queue pair */
	uint32_t imm;        /**< immediate data, host order; or the key to invalidate */
	struct rcd_sge *sges;
	uint8_t *inline_data;
	union {
		struct {
			uint64_t va;
			struct rcd_key rkey;
			uint64_t compare_or_add; /**< of the atomics */
			uint64_t swap;
		} remote;
		struct {
			uint32_t ah; /**< number of the address handle */
			struct rcd_qpn qpn;
			struct rcd_qkey qkey;
		} ud;
		struct {
			struct rcd_key mw; /**< the window as it is now */
			struct rcd_key
				new_rkey; /**< low 8 bits count: the caller's part of the key */
			struct rcd_key mr;
			uint32_t access; /**< RCD_ACCESS_* */
			uint64_t addr;
			uint64_t len;
		} bind;
	};
};

/** A receive work request. Room and counts as for struct rcd_send_wr. */
struct rcd_recv_wr {
	uint64_t wr_id;
	uint8_t sge_count;
	uint8_t sge_max;
	struct rcd_sge *sges;
};

/** Completion status. */
enum rcd_wc_status {
	RCD_WC_SUCCESS = 0,
	RCD_WC_LOC_LEN_ERR = 1,
	RCD_WC_LOC_QP_OP_ERR = 2,
	RCD_WC_LOC_PROT_ERR = 4,
	RCD_WC_WR_FLUSH_ERR = 5,
	RCD_WC_MW_BIND_ERR = 6,
	RCD_WC_BAD_RESP_ERR = 7,
	RCD_WC_LOC_ACCESS_ERR = 8,
	RCD_WC_REM_INV_REQ_ERR = 9,
	RCD_WC_REM_ACCESS_ERR = 10,
	RCD_WC_REM_OP_ERR = 11,
	RCD_WC_RETRY_EXC_ERR = 12,
	RCD_WC_RNR_RETRY_EXC_ERR = 13,
};

/** What a completion is of. */
enum rcd_wc_opcode {
	RCD_WC_SEND = 0,
	RCD_WC_RDMA_WRITE = 1,
	RCD_WC_RDMA_READ = 2,
	RCD_WC_COMP_SWAP = 3,
	RCD_WC_FETCH_ADD = 4,
	RCD_WC_BIND_MW = 5,
	RCD_WC_LOCAL_INV = 6,
	RCD_WC_RECV = 128,
	RCD_WC_RECV_RDMA_WITH_IMM = 129,
};

/** Flags of a completion. */
enum rcd_wc_flags {
	RCD_WC_GRH = 1 << 0,
	RCD_WC_WITH_IMM = 1 << 1,
	RCD_WC_WITH_INV = 1 << 3,
};

/** A completion. With a status other than success only wr_id, status, qpn and recv count. */
struct rcd_cqe {
	uint64_t wr_id;
	uint8_t status; /**< enum rcd_wc_status */
	uint8_t opcode; /**< enum rcd_wc_opcode */
	uint8_t flags;  /**< RCD_WC_* */
	bool recv;      /**< of the receive queue */
	bool solicited; /**< wakes who waits for solicited completions: solicited or an error */
	uint32_t byte_len;
	uint32_t imm; /**< immediate data, host order; or the key that was invalidated */
	struct rcd_qpn qpn;
	struct rcd_qpn src_qpn; /**< of a datagram */
	uint8_t sl; /**< of a datagram: kind of network header, as adapters have it there */
};

/** Asynchronous events of a queue pair or shared receive queue. */
enum rcd_event {
	RCD_EVENT_QP_FATAL = 1,
	RCD_EVENT_QP_REQ_ERR = 2,
	RCD_EVENT_QP_ACCESS_ERR = 3,
	RCD_EVENT_COMM_EST = 4,
	RCD_EVENT_SQ_DRAINED = 5,
	RCD_EVENT_SRQ_ERR = 14,
	RCD_EVENT_SRQ_LIMIT_REACHED = 15,
	RCD_EVENT_QP_LAST_WQE_REACHED = 16,
};

#endif /* RCD_WR_H */
