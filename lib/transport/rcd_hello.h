/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How a queue pair finds out that its peer is a Rocade when nobody has told it (doc/sack.md): marks
 * in reserved bits of its packets, and HELLOs to who marks as well. Inside of a queue pair, on its
 * lcore. What agreed peers do then is rcd_sack.h's.
 *
 * A peer that does not mark is never sent anything that it may not know. Marks are not covered by
 * the ICRC, HELLOs are; neither changes what is sent or executed otherwise.
 */
#ifndef RCD_HELLO_H
#define RCD_HELLO_H

#include "rcd_qp.h"

/** Marked packets in a row after which a peer may be sent a HELLO. */
#define RCD_HELLO_ROW 8

/** HELLOs of a queue pair, at most: each after twice as many marked packets as the one before. */
#define RCD_HELLO_TRIES 12

/** HELLOs that it answers, at most: a peer's, and copies that a network makes. */
#define RCD_HELLO_ANSWERS 64

/** State of it. */
struct rcd_hello {
	uint64_t nonce;            /**< of this life, from RESET to RESET */
	uint64_t asked;            /**< the peer's, to be answered */
	uint32_t tx_seed, rx_seed; /**< of marks: by the sender's address and the other's number */
	struct rcd_psn last[2];    /**< that was looked at, of requests and of answers, */
	bool any[2];               /**< if one was */
	uint16_t row;              /**< marked packets, one after the other */
	uint8_t tries;
	uint8_t answers;
	bool passed; /**< they were enough, once */
	bool agreed; /**< a HELLO was answered */
};

/** Forget everything: for RESET. */
void
rcd_hello_reset(struct rcd_qp *qp);

/**
 * The mark of a packet: 6 bits, never 0. Those of requests have the highest bit, those of answers
 * have not, and each sender has its own seed, so that who writes back what it read is not taken for
 * a Rocade.
 */
uint8_t
rcd_hello_mark(uint32_t seed, uint8_t opcode, struct rcd_psn psn);

/** A packet of RC or XRC was taken, or executed. Only while the queue pair looks for marks. */
void
rcd_hello_note(struct rcd_qp *qp, const struct rcd_bth *bth);

/** A HELLO, or an answer to one. */
enum rcd_rx_verdict
rcd_hello_rx(struct rcd_qp *qp, const struct rcd_roce *roce);

/** Build what is due of both. @return false: nothing is */
bool
rcd_hello_next(struct rcd_qp *qp, struct rcd_tx_pkt *pkt);

#endif /* RCD_HELLO_H */
