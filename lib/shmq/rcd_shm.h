/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The memory segment that an engine shares with one client context: header, doorbells and the
 * shape of rings. All offsets count from the start of the segment; all numbers have host order,
 * since both sides run on one machine.
 *
 * Ring indices run freely through 32 bits and are masked on access. Each has one writer, who
 * stores it with release after what it covers is in place; the other side loads it with acquire
 * before it looks there.
 *
 * The engine trusts nothing here: it copies before it looks, bounds every index, and keeps its own
 * copy of every index that it writes. The layout of slots is in rcd_wqe.h.
 */
#ifndef RCD_SHM_H
#define RCD_SHM_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RCD_SHM_MAGIC 0x00646352u /* "Rcd" */

/** Version of everything in lib/shmq. Raised by every change of layout or meaning. */
#define RCD_SHM_ABI 2

#define RCD_CACHE_LINE 64

/** Words of doorbell bits: one bit for each queue pair of a context. */
#define RCD_DB_WORDS   256
#define RCD_DB_BITS    (RCD_DB_WORDS * 64)
#define RCD_DB_PER_BIT (RCD_DB_WORDS / 64) /**< words that a summary bit stands for */

/** What the engine says of itself. */
enum rcd_shm_state {
	RCD_SHM_LIVE = 1,
	RCD_SHM_GONE = 2, /**< the engine has ended the context: nothing is served any more */
};

/**
 * First bytes of a segment.
 *
 * Doorbells: after the client has stored a producer index of a send queue (or of the receive queue
 * of a queue pair in ERR) it sets the bit of the queue pair, then that of its word group in the
 * summary, both by atomic OR. The engine takes the summary, then the words, both by atomic
 * exchange with 0, then looks at the indices. So a post is either seen, or its bit is set again.
 *
 * Sleep: an engine thread that is going to block stores `sleeping`, and then looks at the summary
 * once more. A client looks at `sleeping` after it has rung, and if it is set writes to the wake
 * event fd. Both sides order their store before their load (seq_cst).
 */
struct rcd_shm_hdr {
	/* Written by the engine before the segment is handed over, constant from then on. */
	uint32_t magic;
	uint32_t abi;
	uint64_t size;       /**< bytes of the segment */
	uint64_t generation; /**< of the engine: differs from one start to the next */

	/** Written by the engine, enum rcd_shm_state; relaxed. */
	_Alignas(RCD_CACHE_LINE) uint32_t state;

	/** Written by the engine: 1 when it has to be woken. seq_cst. */
	_Alignas(RCD_CACHE_LINE) uint32_t sleeping;

	/** Set by the client, taken by the engine: words that have bits. seq_cst. */
	_Alignas(RCD_CACHE_LINE) uint64_t db_summary;

	/** Set by the client, taken by the engine: queue pairs that have work. seq_cst. */
	_Alignas(RCD_CACHE_LINE) uint64_t db_words[RCD_DB_WORDS];
};

static_assert(sizeof(struct rcd_shm_hdr) == 4 * RCD_CACHE_LINE + RCD_DB_WORDS * 8, "ABI 1");
static_assert(offsetof(struct rcd_shm_hdr, db_words) == 256, "ABI 1");

/** Indices of a ring that the client fills: send, receive and shared receive queues. */
struct rcd_shm_wq {
	_Alignas(RCD_CACHE_LINE) uint32_t producer; /**< written by the client */
	/** Written by the engine: slots before it are free for reuse. */
	_Alignas(RCD_CACHE_LINE) uint32_t consumer;
	/**
	 * Written by the engine, relaxed: the queue pair is in ERR, so every post has to ring. A
	 * post that comes just before is found a moment later.
	 */
	uint32_t attention;
	/**
	 * Written by the engine, which may be killed between a consumer and the completions of what
	 * that covers. They are all in the completion queue when its producer has come to
	 * `covered_at`; until then those before `reported` are, and no others.
	 */
	uint32_t reported;
	uint32_t covered_at;
};

/** Indices of a completion queue, which the engine fills. */
struct rcd_shm_cq {
	_Alignas(RCD_CACHE_LINE) uint32_t producer; /**< written by the engine */
	_Alignas(RCD_CACHE_LINE) uint32_t consumer; /**< written by the client */
	/**
	 * Written by the client, seq_cst: a request for one event. The low two bits are enum
	 * rcd_shm_arm, the rest a count that makes each request differ from the one before.
	 */
	_Alignas(RCD_CACHE_LINE) uint32_t arm;
};

static_assert(sizeof(struct rcd_shm_wq) == 2 * RCD_CACHE_LINE, "ABI 1");
static_assert(sizeof(struct rcd_shm_cq) == 3 * RCD_CACHE_LINE, "ABI 1");

/** When a completion queue raises an event. */
enum rcd_shm_arm {
	RCD_SHM_ARM_NONE = 0,
	RCD_SHM_ARM_SOLICITED = 1, /**< at the next solicited or failed completion */
	RCD_SHM_ARM_NEXT = 2,      /**< at the next completion */
};

#define RCD_SHM_ARM_MASK 3u

/**
 * Say that a queue pair has work. Client, any thread.
 *
 * @param qp_index  bit of the queue pair, below RCD_DB_BITS
 * @return whether the engine sleeps and has to be woken
 */
static inline bool
rcd_db_ring(struct rcd_shm_hdr *hdr, uint32_t qp_index)
{
	uint32_t word = qp_index / 64;
	uint64_t bit = UINT64_C(1) << (qp_index % 64);

	/* Who finds the bit set comes after another post, which is going to set the summary. */
	if (!(__atomic_fetch_or(&hdr->db_words[word], bit, __ATOMIC_SEQ_CST) & bit))
		__atomic_fetch_or(
			&hdr->db_summary, UINT64_C(1) << (word / RCD_DB_PER_BIT), __ATOMIC_SEQ_CST);
	return __atomic_load_n(&hdr->sleeping, __ATOMIC_SEQ_CST) != 0;
}

/** Whether any doorbell may be set. Engine; the cheap look of every poll. */
static inline bool
rcd_db_any(const struct rcd_shm_hdr *hdr)
{
	return __atomic_load_n(&hdr->db_summary, __ATOMIC_RELAXED) != 0;
}

/** Take the summary. Engine. */
static inline uint64_t
rcd_db_take_summary(struct rcd_shm_hdr *hdr)
{
	return __atomic_exchange_n(&hdr->db_summary, 0, __ATOMIC_SEQ_CST);
}

/** Take a word. Engine. @param word below RCD_DB_WORDS */
static inline uint64_t
rcd_db_take_word(struct rcd_shm_hdr *hdr, uint32_t word)
{
	if (__atomic_load_n(&hdr->db_words[word], __ATOMIC_RELAXED) == 0)
		return 0;
	return __atomic_exchange_n(&hdr->db_words[word], 0, __ATOMIC_SEQ_CST);
}

/** Load an index that the other side writes. */
static inline uint32_t
rcd_shm_load(const uint32_t *index)
{
	return __atomic_load_n(index, __ATOMIC_ACQUIRE);
}

/** Store an index of our own, after what it covers. */
static inline void
rcd_shm_store(uint32_t *index, uint32_t val)
{
	__atomic_store_n(index, val, __ATOMIC_RELEASE);
}

/** What an engine knows of a completion queue. */
struct rcd_shm_reach {
	uint32_t published; /**< its producer as the client sees it */
	uint32_t producer;  /**< as it is going to be */
	uint32_t mask;      /**< its length - 1 */
};

/**
 * Whether a completion queue has come to a place, which is ahead of it by its length at most.
 *
 * @param producer  of the completion queue
 * @param place     struct rcd_shm_wq::covered_at
 * @param mask      length of the completion queue - 1
 */
static inline bool
rcd_shm_covered(uint32_t producer, uint32_t place, uint32_t mask)
{
	return place - producer - 1 > mask;
}

/**
 * Free slots of a ring before their completions are published. Whatever store is a killed engine's
 * last, rcd_shm_wq_reported() tells how far the completions go. Engine.
 *
 * @param before  the consumer until now
 * @param done    from now on
 * @param cq      that of the ring
 */
static inline void
rcd_shm_wq_done(
	struct rcd_shm_wq *ring, uint32_t before, uint32_t done, const struct rcd_shm_reach *cq)
{
	/* In the client's reach: what it writes there it reads itself. */
	uint32_t covered_at = __atomic_load_n(&ring->covered_at, __ATOMIC_RELAXED);

	if (rcd_shm_covered(cq->published, covered_at, cq->mask))
		rcd_shm_store(&ring->reported, before);
	rcd_shm_store(&ring->covered_at, cq->producer);
	rcd_shm_store(&ring->consumer, done);
}

/**
 * How far a ring was worked off, as far as its completion queue tells. Client, when the engine is
 * gone.
 *
 * @param producer  of the completion queue
 * @param mask      its length - 1
 * @return one past the last slot whose completion, if it wanted one, is there
 */
static inline uint32_t
rcd_shm_wq_reported(const struct rcd_shm_wq *ring, uint32_t producer, uint32_t mask)
{
	return rcd_shm_covered(producer, rcd_shm_load(&ring->covered_at), mask)
		? rcd_shm_load(&ring->consumer)
		: rcd_shm_load(&ring->reported);
}

#endif /* RCD_SHM_H */
