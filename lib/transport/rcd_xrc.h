/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Domains of extended reliable connections (IBTA Vol. 1, Annex A14): which shared receive queues
 * the targets of a domain deliver to. A packet names one of them, and what it may touch are that
 * queue's receive work requests and the memory of its protection domain, whoever made the target.
 *
 * Nobody keeps a pointer to a queue across two calls: a target looks it up for every packet, so a
 * queue may go at any time, and with it the keys of its owner.
 *
 * Threads: as the queue pairs of the domain. Numbers are chosen by whoever adds and removes.
 */
#ifndef RCD_XRC_H
#define RCD_XRC_H

#include <stddef.h>

#include "rcd_srq.h"

/** Shared receive queues of a domain. */
#define RCD_XRC_SRQS 1024

/** Bits of their numbers. */
#define RCD_XRC_SRQN_BITS 24

/** A domain. Initialise with zeros; members are private. */
struct rcd_xrc_domain {
	struct rcd_srq *slots[RCD_XRC_SRQS];
	uint16_t high[RCD_XRC_SRQS]; /**< high bits of the number that each had last */
	uint64_t serial;             /**< of the queue that was added last */
	uint32_t count;
};

/**
 * A number for a queue to be added: of a free slot, and not the one that was last given there.
 *
 * @param random  where to begin, so that nobody guesses it
 * @return a number, never 0; 0: the domain is full
 */
uint32_t
rcd_xrc_number(const struct rcd_xrc_domain *domain, uint32_t random);

/**
 * Add a queue.
 *
 * @param number  from rcd_xrc_number(), with nothing added since
 * @param mrs     keys of its owner, there until it is removed
 * @param pd      its protection domain, among those
 */
void
rcd_xrc_add(struct rcd_xrc_domain *domain, struct rcd_srq *srq, uint32_t number,
	struct rcd_mr_table *mrs, uint32_t pd);

/** Remove a queue: nothing of it, nor of its keys, is looked at afterwards. */
void
rcd_xrc_remove(struct rcd_xrc_domain *domain, struct rcd_srq *srq);

/** The queue with this number, whatever that is. @return NULL: there is none in this domain */
static inline struct rcd_srq *
rcd_xrc_find(const struct rcd_xrc_domain *domain, uint32_t number)
{
	struct rcd_srq *srq = domain->slots[number % RCD_XRC_SRQS];

	return srq != NULL && srq->number == number ? srq : NULL;
}

#endif /* RCD_XRC_H */
