/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The queue of copies, a part of the segment: what the engine wants copied from and to memory of
 * the client that is not shared. The client's library carries it out, in a thread of the client:
 * the engine itself never touches an address space that is not its own, and so can't be made to
 * wait for a page that never comes, or to write into a program that took the client's place.
 *
 * Jobs are carried out in order. The engine fills slots and then stores `posted`; the client
 * carries out one after the other, and after each stores its status, then `done`. Both indices run
 * freely through 32 bits. A job's bytes lie in the arena, whose use is the engine's affair.
 *
 * Sleep: a client that is going to block stores 1 to `asleep`, looks at `posted` once more, and
 * waits on `asleep` as a futex. The engine, after it has posted, takes what it finds there and, if
 * it was set, wakes it. Both sides order their store before their load (seq_cst). The engine is
 * woken as by doorbells (rcd_shm.h).
 *
 * The engine believes none of what the client writes here: `done` can at most fail the client's own
 * queue pairs, and the bytes are what the client sends or receives anyway.
 */
#ifndef RCD_COPYQ_H
#define RCD_COPYQ_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_shm.h"

/** Jobs at once: the packets that a peer has in flight at most, twice. */
#define RCD_COPYQ_JOBS 1024

/** Bytes of jobs at once: as many packets of the largest size as jobs. */
#define RCD_COPYQ_BYTES (UINT32_C(4) << 20)

/** What a job is. */
enum rcd_copyq_op {
	RCD_COPYQ_NOTHING, /**< holds a place in the order */
	RCD_COPYQ_READ,    /**< from the client's memory to the arena */
	RCD_COPYQ_WRITE,   /**< from the arena to the client's memory */
	RCD_COPYQ_ADD,     /**< eight bytes: what was there to the arena, the sum to the memory */
	RCD_COPYQ_SWAP,    /**< likewise, if what was there equals `compare`: `operand` */
};

/** A job: written by the engine before it posts, but for the status. */
struct rcd_copyq_job {
	uint64_t addr; /**< in the client */
	uint64_t data; /**< offset in the arena */
	uint32_t len;  /**< bytes */
	uint32_t op;   /**< enum rcd_copyq_op */
	uint32_t key;  /**< of the region */
	/** Written by the client: 0, or an errno value; ECANCELED: the region is gone. */
	uint32_t status;
	uint64_t operand;
	uint64_t compare;
	uint64_t reserved[2];
};

/** The queue. Zeroed: empty. */
struct rcd_copyq {
	_Alignas(RCD_CACHE_LINE) uint32_t posted; /**< written by the engine */
	_Alignas(RCD_CACHE_LINE) uint32_t done;   /**< written by the client */
	_Alignas(RCD_CACHE_LINE) uint32_t asleep; /**< set by the client, cleared by both */
	_Alignas(RCD_CACHE_LINE) struct rcd_copyq_job jobs[RCD_COPYQ_JOBS];
	uint8_t arena[RCD_COPYQ_BYTES];
};

static_assert(sizeof(struct rcd_copyq_job) == 64, "ABI 2");
static_assert(offsetof(struct rcd_copyq, arena) ==
		3 * RCD_CACHE_LINE + RCD_COPYQ_JOBS * sizeof(struct rcd_copyq_job),
	"ABI 2");

#endif /* RCD_COPYQ_H */
